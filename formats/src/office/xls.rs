//! Spreadsheets of Excel 5 to 2003: the records with strings.
//!
//! Source: Microsoft's \[MS-XLS\] 2.1.4 (records), 2.4.28 (`BoundSheet8`), 2.4.265 (`SST`), 2.4.149
//! (`LabelSst`), 2.5.293 (strings continued in the next record); OpenOffice's "Excel File Format" for
//! BIFF5.
//!
//! # Differences from the specification
//!
//! * Numbers are left out, as in `xlsx`.

use super::cells::Cells;
use super::compound::utf16;
use super::{OfficeDraft, codepage};
use crate::Input;
use crate::cancellable::TimeLimit;
use crate::numbers::{le_len32, le16};
use crate::object::ProblemKind;

/// Maximum length of all shared strings together, in bytes.
const STRINGS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Kinds of records.
const END: u16 = 0x000a;
const PASSWORD: u16 = 0x002f;
const CONTINUE: u16 = 0x003c;
const CODEPAGE: u16 = 0x0042;
const SHEET: u16 = 0x0085;
const RICH_LABEL: u16 = 0x00d6;
const STRINGS: u16 = 0x00fc;
const SHARED_LABEL: u16 = 0x00fd;
const LABEL: u16 = 0x0204;
const FORMULA_STRING: u16 = 0x0207;
const FORMULA: u16 = 0x0006;
const START: u16 = 0x0809;
/// The version with strings of UTF-16.
const VERSION_8: u16 = 0x0600;

/// The reader of a workbook.
struct BookReader<'b> {
    is_started: bool,
    is_version_8: bool,
    page: i64,
    strings: Vec<String>,
    names: Vec<String>,
    cells: Cells,
    row: u16,
    document: &'b mut OfficeDraft,
}

pub(super) fn read(
    stream: &[u8],
    input: &Input<'_>,
    document: &mut OfficeDraft,
) -> Result<(), (ProblemKind, String)> {
    let mut book = BookReader {
        is_started: false,
        is_version_8: true,
        page: 1252,
        strings: Vec::new(),
        names: Vec::new(),
        cells: Cells::new(),
        row: 0,
        document,
    };
    let mut rest = stream;
    let mut time = TimeLimit::new(input.cancelled);
    while let Some((kind, content, after)) = record(rest) {
        if !time.goes_on() {
            return Err((ProblemKind::Time, "ran out of time on the workbook".to_owned()));
        }
        if kind == PASSWORD {
            return Err((ProblemKind::Locked, "is locked by a password".to_owned()));
        }
        if book.document.body.is_full() {
            break;
        }
        rest = after;
        if kind == STRINGS {
            let mut parts = vec![content];
            while let Some((CONTINUE, more, after)) = record(rest) {
                parts.push(more);
                rest = after;
            }
            book.strings = SharedStringsReader { parts: &parts, part: 0, at: 8 }.read();
        } else {
            book.record(kind, content);
        }
    }
    book.cells.end_row(book.document);
    Ok(())
}

/// Returns the kind and the content of the first record, and the bytes after it.
fn record(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let content = bytes.get(4..)?;
    let size = usize::from(le16(bytes, 2)?);
    let (content, after) = content.split_at_checked(size).unwrap_or((content, &[]));
    Some((le16(bytes, 0)?, content, after))
}

impl BookReader<'_> {
    fn record(&mut self, kind: u16, content: &[u8]) {
        match kind {
            START => {
                // Later sheets in files for two versions have another number.
                if !std::mem::replace(&mut self.is_started, true) {
                    self.is_version_8 = le16(content, 0) == Some(VERSION_8);
                }
                self.cells = Cells::new();
                self.row = 0;
            }
            END => self.cells.end_row(self.document),
            CODEPAGE => {
                // For the Macintosh, 0x8000 stands for code page 10000.
                let page = le16(content, 0).map_or(1252, i64::from);
                self.page = if page == 0x8000 { 10000 } else { page };
            }
            SHEET => {
                let size = content.get(6).map_or(0, |it| usize::from(*it));
                let name = self.string(content.get(7..).unwrap_or_default(), size);
                if self.names.len() < 1_000 && !self.names.contains(&name) {
                    self.document.sheet(&name);
                    self.names.push(name);
                }
            }
            SHARED_LABEL => {
                let index = le_len32(content, 6).unwrap_or(usize::MAX);
                let text = self.strings.get(index).cloned().unwrap_or_default();
                self.cell(content, &text);
            }
            LABEL | RICH_LABEL => {
                let size = le16(content, 6).map_or(0, usize::from);
                let text = self.string(content.get(8..).unwrap_or_default(), size);
                self.cell(content, &text);
            }
            FORMULA => self.reach_row(content),
            FORMULA_STRING => {
                let size = le16(content, 0).map_or(0, usize::from);
                let text = self.string(content.get(2..).unwrap_or_default(), size);
                self.cells.cell(&text);
            }
            _ => {}
        }
    }

    /// Reads a string inside one record.
    fn string(&self, bytes: &[u8], characters: usize) -> String {
        let (is_wide, text) = match bytes.split_first() {
            Some((flags, text)) if self.is_version_8 => (flags & 1 != 0, text),
            _ => (false, bytes),
        };
        let text = text.get(..characters * if is_wide { 2 } else { 1 }).unwrap_or(text);
        if is_wide {
            utf16(text)
        } else if self.is_version_8 {
            narrow(text)
        } else {
            codepage::of_number(self.page).decode_without_bom_handling(text).0.into_owned()
        }
    }

    fn cell(&mut self, content: &[u8], text: &str) {
        self.reach_row(content);
        self.cells.cell(text);
    }

    fn reach_row(&mut self, content: &[u8]) {
        let row = le16(content, 0).unwrap_or(0);
        if row != self.row {
            self.cells.end_row(self.document);
            self.row = row;
        }
    }
}

/// Decodes text that has only the low bytes of UTF-16.
fn narrow(bytes: &[u8]) -> String {
    bytes.iter().map(|it| char::from(*it)).collect()
}

/// The reader of shared strings. They may be continued in the next record at any byte; if the break is inside
/// the text, the continuation begins with new flags.
struct SharedStringsReader<'p> {
    parts: &'p [&'p [u8]],
    part: usize,
    at: usize,
}

impl SharedStringsReader<'_> {
    fn read(mut self) -> Vec<String> {
        let mut strings = Vec::new();
        let mut bytes_left = STRINGS_BYTES_MAX;
        while let Some(text) = self.string(bytes_left) {
            // Empty strings take room as well.
            bytes_left = bytes_left.saturating_sub(text.len() + size_of::<String>());
            strings.push(text);
            if bytes_left == 0 {
                break;
            }
        }
        strings
    }

    fn left(&self) -> &[u8] {
        self.parts.get(self.part).and_then(|it| it.get(self.at..)).unwrap_or_default()
    }

    /// Moves to the next record at the end of this one; returns false if there is none.
    fn reach_bytes(&mut self) -> bool {
        while self.left().is_empty() {
            if self.parts.len() <= self.part + 1 {
                return false;
            }
            self.part += 1;
            self.at = 0;
        }
        true
    }

    fn number(&mut self, count: usize) -> Option<usize> {
        let mut number = 0;
        for at in 0..count {
            if !self.reach_bytes() {
                return None;
            }
            number |= usize::from(*self.left().first()?) << (8 * at);
            self.at += 1;
        }
        Some(number)
    }

    fn skip(&mut self, count: usize) {
        let mut left = count;
        while 0 < left && self.reach_bytes() {
            let step = left.min(self.left().len());
            self.at += step;
            left -= step;
        }
    }

    fn string(&mut self, bytes_max: usize) -> Option<String> {
        let mut characters = self.number(2)?;
        let mut flags = self.number(1)?;
        let runs = if flags & 8 != 0 { self.number(2)? } else { 0 };
        let reading = if flags & 4 != 0 { self.number(4)? } else { 0 };
        let mut text = String::new();
        while 0 < characters {
            if self.left().is_empty() {
                if !self.reach_bytes() {
                    break;
                }
                flags = self.number(1)?;
            }
            let width = 1 + (flags & 1);
            let here = (self.left().len() / width).min(characters);
            if here == 0 {
                // Half of a character.
                self.at += 1;
                continue;
            }
            let bytes = self.left().get(..here * width)?;
            let more = if width == 2 { utf16(bytes) } else { narrow(bytes) };
            text.push_str(crate::text::front(&more, bytes_max.saturating_sub(text.len())));
            self.at += here * width;
            characters -= here;
        }
        self.skip(4 * runs + reading);
        Some(text)
    }
}
