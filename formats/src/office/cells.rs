//! The rows of a spreadsheet: all are text, and the first with words in each sheet names its columns,
//! unless most of it is numbers.

mod shown;

pub(super) use shown::{NumberFormat, NumberFormats, rk};

use super::OfficeDraft;
use crate::text::{Body, is_telling};

/// Longest row, in bytes.
const ROW_BYTES_MAX: usize = 64 * 1024;

/// The row that is being read.
#[derive(Debug)]
pub(super) struct Cells {
    row: Body,
    /// The same text without numbers, each cell on a line.
    names: Body,
    texts: usize,
    numbers: usize,
    /// Whether the row that may be the header is over.
    is_below_header: bool,
}

impl Cells {
    pub(super) fn new() -> Self {
        let names = Body::new(super::HEADINGS_BYTES_MAX);
        let row = Body::new(ROW_BYTES_MAX);
        Self { row, names, texts: 0, numbers: 0, is_below_header: false }
    }

    pub(super) fn cell(&mut self, text: &str) {
        self.row.space();
        self.row.push_squeezed(text);
        if !self.is_below_header {
            self.texts += usize::from(!text.is_empty());
            self.names.push_squeezed_line(text);
        }
    }

    /// Adds a cell with a number or a date, as it is shown: it names no column.
    pub(super) fn number(&mut self, shown: &str) {
        self.numbers += 1;
        self.row.space();
        self.row.push_squeezed(shown);
    }

    pub(super) fn truth(&mut self, is_true: bool) {
        self.number(if is_true { "TRUE" } else { "FALSE" });
    }

    /// Ends the row. The header is the first row with letters or digits in its texts; if that has more
    /// numbers than texts, it is data, and there is no header.
    pub(super) fn end_row(&mut self, document: &mut OfficeDraft) {
        let (texts, numbers) = (std::mem::take(&mut self.texts), std::mem::take(&mut self.numbers));
        if self.row.as_str().is_empty() {
            return;
        }
        if !self.is_below_header && is_telling(self.names.as_str()) {
            self.is_below_header = true;
            document.has_columns = true;
            if numbers <= texts {
                document.headings.push_line(self.names.as_str());
            }
        }
        document.body.push_line(self.row.as_str());
        self.row.take();
        self.names.take();
    }
}

/// Returns the text of a page's header or footer without its codes: `&L&"Arial,Bold"Costs &P`.
pub(super) fn page_text(codes: &str) -> String {
    let mut text = String::new();
    let mut chars = codes.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '&' {
            text.push(char);
            continue;
        }
        match chars.next() {
            Some('&') => text.push('&'),
            // A font, up to the next quote; a color of six digits; a size.
            Some('"') => {
                chars.find(|it| *it == '"');
            }
            Some('K') => {
                chars.nth(5);
            }
            Some('0'..='9') => while chars.next_if(char::is_ascii_digit).is_some() {},
            _ => text.push(' '),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_pages_have_no_codes() {
        let codes = "&L&\"Arial,Bold\"&14Costs && fees&C&K01+000 Draft&RPage &P of &N";
        let text = page_text(codes);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words.join(" "), "Costs & fees Draft Page of");
        assert_eq!(page_text("&"), " ");
        assert_eq!(page_text("&\"x"), "");
    }
}
