//! The rows of a spreadsheet: all are text, and the first with words in each sheet names its columns,
//! unless most of it is numbers.

mod shown;

pub(super) use shown::{NumberFormat, NumberFormats, rk};

use super::OfficeDraft;
use crate::limit::Limit;
use crate::text::{Body, is_telling};

/// The row that is being read.
#[derive(Debug)]
pub(super) struct Cells {
    row: Body,
    sheet: String,
    /// Row and column of its first cell with content, from 0 on.
    at: (usize, usize),
    /// Whether the sheet has a place in the text.
    is_placed: bool,
    /// The same text without numbers, each cell on a line.
    names: Body,
    texts: usize,
    numbers: usize,
    /// Whether the row that may be the header is over.
    is_below_header: bool,
}

impl Cells {
    /// Begins the sheet of this name, which may be empty.
    pub(super) fn new(sheet: &str) -> Self {
        Self {
            row: Body::new(Limit::Paragraph.bound()),
            sheet: sheet.to_owned(),
            at: (0, 0),
            is_placed: false,
            names: Body::new(super::HEADINGS_BYTES_MAX),
            texts: 0,
            numbers: 0,
            is_below_header: false,
        }
    }

    /// Returns whether the open row has no content yet.
    pub(super) fn is_row_empty(&self) -> bool {
        self.row.as_str().is_empty()
    }

    /// Says in which row and column, from 0 on, the next cell is; only the first in a row matters.
    pub(super) fn at(&mut self, row: usize, column: usize) {
        if self.is_row_empty() {
            self.at = (row, column);
        }
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
        if self.is_row_empty() {
            return;
        }
        if !self.is_below_header && is_telling(self.names.as_str()) {
            self.is_below_header = true;
            document.has_columns = true;
            if numbers <= texts {
                document.headings.push_line(self.names.as_str());
            }
        }
        let place = || place(&self.sheet, self.at);
        if self.is_placed {
            document.body.place_with(place);
        } else {
            document.body.place(&place());
            self.is_placed = true;
        }
        if self.row.is_cut() {
            document.cuts.insert(Limit::Paragraph);
        }
        document.body.push_line(self.row.as_str());
        self.row.take();
        self.names.take();
    }
}

/// Returns the name of a cell's place: `sheet Costs!B7`, or `cell B7` if the sheet has no name.
fn place(sheet: &str, (row, column): (usize, usize)) -> String {
    let mut letters = String::new();
    let mut rest = column.saturating_add(1);
    while 0 < rest {
        let letter = u8::try_from((rest - 1) % 26).unwrap_or(0);
        letters.insert(0, char::from(b'A' + letter));
        rest = (rest - 1) / 26;
    }
    let number = row.saturating_add(1);
    if sheet.is_empty() {
        format!("cell {letters}{number}")
    } else {
        format!("sheet {sheet}!{letters}{number}")
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
    fn cells_are_named_as_in_programs() {
        for (at, expected) in
            [((0, 0), "A1"), ((6, 25), "Z7"), ((8, 26), "AA9"), ((0, 16_383), "XFD1")]
        {
            assert_eq!(place("Costs", at), format!("sheet Costs!{expected}"));
        }
        assert_eq!(place("", (6, 1)), "cell B7");
        // Documents may say any number.
        assert!(place("", (usize::MAX, usize::MAX)).starts_with("cell "));
    }

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
