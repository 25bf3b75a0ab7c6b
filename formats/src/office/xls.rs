//! Spreadsheets of Excel 2 to 2003: the records with names, cells and other text.
//!
//! Source: Microsoft's \[MS-XLS\] 2.1.4 (records), 2.4.21 (`BOF`), 2.4.28 (`BoundSheet8`), 2.4.127
//! (`Formula`), 2.4.149 (`LabelSst`), 2.4.353 (`XF`), 2.5.133 (`FormulaValue`); OpenOffice's "Excel File
//! Format" for the versions before 8.
//!
//! # Differences from the specification
//!
//! * Numbers are shown as [`NumberFormats`] says. Of formulas, the last results are read; errors are left out.
//! * The names of sheets in a workbook of version 4 are left out.

mod locked;
mod strings;

use strings::{ContinuedReader, narrow};

use super::cells::{Cells, NumberFormats, page_text, rk};
use super::compound::utf16;
use super::{OfficeDraft, codepage};
use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::numbers::{le_len32, le16, le32, le64};
use crate::object::ProblemKind;
use crate::{Draft, Input};

/// Kinds of records. Numbers after a name are of older versions.
const END: u16 = 0x000a;
const PAGE_HEADER: u16 = 0x0014;
const PAGE_FOOTER: u16 = 0x0015;
const NOTE: u16 = 0x001c;
const DATE_MODE: u16 = 0x0022;
const PASSWORD: u16 = 0x002f;
const CONTINUE: u16 = 0x003c;
const CODEPAGE: u16 = 0x0042;
const SHEET: u16 = 0x0085;
const PACKED_ROW: u16 = 0x00bd;
const RICH_LABEL: u16 = 0x00d6;
const CELL_FORMAT: u16 = 0x00e0;
const CELL_FORMAT_3: u16 = 0x0243;
const CELL_FORMAT_4: u16 = 0x0443;
const STRINGS: u16 = 0x00fc;
const SHARED_LABEL: u16 = 0x00fd;
const TEXT_OBJECT: u16 = 0x01b6;
const INTEGER_2: u16 = 0x0002;
const NUMBER: u16 = 0x0203;
const NUMBER_2: u16 = 0x0003;
const LABEL: u16 = 0x0204;
const LABEL_2: u16 = 0x0004;
const TRUTH: u16 = 0x0205;
const TRUTH_2: u16 = 0x0005;
const FORMULA: u16 = 0x0006;
const FORMULA_3: u16 = 0x0206;
const FORMULA_4: u16 = 0x0406;
const FORMULA_STRING: u16 = 0x0207;
const FORMULA_STRING_2: u16 = 0x0007;
const PACKED_NUMBER: u16 = 0x027e;
const FORMAT: u16 = 0x041e;
const FORMAT_2: u16 = 0x001e;
const SERIES_TEXT: u16 = 0x100d;
const START: u16 = 0x0809;
const START_2: u16 = 0x0009;
const START_3: u16 = 0x0209;
const START_4: u16 = 0x0409;
/// The kind of a part that is a chart, whose cells are copies.
const CHART: u16 = 0x0020;

/// The version of the format, by that of Excel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    Two,
    Three,
    Four,
    Five,
    /// With strings of UTF-16.
    Eight,
}

/// The reader of a workbook.
struct BookReader<'b> {
    is_started: bool,
    version: Version,
    page: i64,
    strings: Vec<String>,
    /// The names of the sheets, and where in the stream each begins.
    sheets: Vec<(usize, String)>,
    formats: NumberFormats,
    cells: Cells,
    row: u16,
    /// Number of open charts, one in the other.
    charts: usize,
    document: &'b mut OfficeDraft,
}

/// Returns whether a file is a workbook that is in no compound file, as all were before Excel 5.
pub(super) fn is_book(bytes: &[u8]) -> bool {
    matches!(le16(bytes, 0), Some(START_2 | START_3 | START_4 | START))
        && matches!(le16(bytes, 2), Some(4 | 6 | 8 | 16))
}

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut document = OfficeDraft::new(input);
    let end = read(&input.object.bytes, input, &mut document);
    let mut draft = document.draft();
    draft.add_problems(end.err());
    input.report_front(&mut draft);
    draft
}

pub(super) fn read(
    stream: &[u8],
    input: &Input<'_>,
    document: &mut OfficeDraft,
) -> Result<(), (ProblemKind, String)> {
    let opened = locked::opened(stream);
    let stream = opened.as_deref().unwrap_or(stream);
    let mut book = BookReader {
        is_started: false,
        version: Version::Eight,
        page: 1252,
        strings: Vec::new(),
        sheets: Vec::new(),
        formats: NumberFormats::default(),
        cells: Cells::new(""),
        row: 0,
        charts: 0,
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
        if matches!(kind, START | START_2 | START_3 | START_4) {
            book.start(kind, content, stream.len() - rest.len());
        }
        rest = after;
        if matches!(kind, STRINGS | TEXT_OBJECT) {
            let mut parts = vec![content];
            while let Some((CONTINUE, more, after)) = record(rest) {
                parts.push(more);
                rest = after;
            }
            if kind == STRINGS {
                let (strings, cut) = ContinuedReader::new(&parts, 8).shared();
                book.strings = strings;
                book.document.cuts.extend(cut);
            } else {
                let units = le16(content, 10).map_or(0, usize::from);
                let text = ContinuedReader::new(&parts, content.len()).text(units);
                book.add_lines(&text);
            }
        } else if !book.global(kind, content) {
            book.cell(kind, content);
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
    /// Reads a record that is no cell; returns false for others.
    fn global(&mut self, kind: u16, content: &[u8]) -> bool {
        match kind {
            START | START_2 | START_3 | START_4 => {}
            END if 0 < self.charts => self.charts -= 1,
            END => self.cells.end_row(self.document),
            SERIES_TEXT if 0 < self.charts => {
                let text = self.string_with_size(content, 2, 1);
                self.document.body.push_lines(&text);
            }
            // Cells of charts are copies of those of sheets.
            _ if 0 < self.charts => {}
            DATE_MODE => self.formats.is_1904 = le16(content, 0) == Some(1),
            CODEPAGE => {
                // For the Macintosh, 0x8000 stands for code page 10000.
                let page = le16(content, 0).map_or(1252, i64::from);
                self.page = if page == 0x8000 { 10000 } else { page };
            }
            SHEET => {
                let name = self.string_with_size(content, 6, 1);
                let is_known = self.sheets.iter().any(|(_, it)| *it == name);
                if is_known {
                    // Named twice.
                } else if self.sheets.len() < Limit::Sheets.bound() {
                    self.document.sheet(&name);
                    self.sheets.push((le_len32(content, 0).unwrap_or(0), name));
                } else {
                    self.document.cuts.insert(Limit::Sheets);
                }
            }
            FORMAT | FORMAT_2 => self.format(kind, content),
            CELL_FORMAT => self.formats.add_cell_format(le16(content, 2).map_or(0, u32::from)),
            CELL_FORMAT_3 | CELL_FORMAT_4 => {
                let id = content.get(1).map_or(0, |it| u32::from(*it));
                self.formats.add_cell_format(id);
            }
            PAGE_HEADER | PAGE_FOOTER => {
                let size_bytes = if self.version < Version::Eight { 1 } else { 2 };
                let codes = self.string_with_size(content, 0, size_bytes);
                self.add_lines(&page_text(&codes));
            }
            // In version 8 it only leads to a text object.
            NOTE if self.version < Version::Eight => {
                let text = self.string_with_size(content, 4, 2);
                self.add_lines(&text);
            }
            _ => return false,
        }
        true
    }

    /// Begins the part at this offset in the stream: a sheet, a chart, or what all share.
    fn start(&mut self, kind: u16, content: &[u8], at: usize) {
        // Later parts of files for two versions have another number.
        if !std::mem::replace(&mut self.is_started, true) {
            self.version = match (kind, le16(content, 0)) {
                (START_2, _) => Version::Two,
                (START_3, _) => Version::Three,
                (START_4, _) => Version::Four,
                (_, Some(0x0600)) => Version::Eight,
                _ => Version::Five,
            };
        }
        if le16(content, 2) == Some(CHART) {
            self.charts += 1;
        } else {
            // A chart may have lost its end.
            self.charts = 0;
            self.cells.end_row(self.document);
            let sheet = self.sheets.iter().find(|(start, _)| *start == at);
            self.cells = Cells::new(sheet.map_or("", |(_, name)| name));
            self.row = 0;
        }
    }

    fn format(&mut self, kind: u16, content: &[u8]) {
        if kind == FORMAT_2 || self.version == Version::Four {
            // Numbered by their order.
            let code = self.string_with_size(content, if kind == FORMAT_2 { 0 } else { 2 }, 1);
            let id = self.formats.define_next(&code);
            if self.version == Version::Two {
                // Cells name the number format itself.
                self.formats.add_cell_format(id);
            }
        } else {
            let size_bytes = if self.version < Version::Eight { 1 } else { 2 };
            let code = self.string_with_size(content, 2, size_bytes);
            self.formats.define(le16(content, 0).map_or(0, u32::from), &code);
        }
    }

    fn cell(&mut self, kind: u16, content: &[u8]) {
        // In version 2, a cell has attributes of three bytes in place of the number of its format.
        let value = if self.version == Version::Two { 7 } else { 6 };
        match kind {
            SHARED_LABEL => {
                self.reach_row(content);
                let index = le_len32(content, value).unwrap_or(usize::MAX);
                self.cells.cell(self.strings.get(index).map_or("", String::as_str));
            }
            LABEL | RICH_LABEL | LABEL_2 => {
                let text =
                    self.string_with_size(content, value, if kind == LABEL_2 { 1 } else { 2 });
                self.reach_row(content);
                self.cells.cell(&text);
            }
            INTEGER_2 => self.number(content, 4, le16(content, value).map(f64::from)),
            NUMBER | NUMBER_2 => {
                self.number(content, 4, le64(content, value).map(f64::from_bits));
            }
            PACKED_NUMBER => self.number(content, 4, le32(content, value).map(rk)),
            PACKED_ROW => {
                // Format and number of each, and the last column.
                for at in (4..content.len().saturating_sub(2)).step_by(6) {
                    self.number(content, at, le32(content, at + 2).map(rk));
                }
            }
            TRUTH | TRUTH_2 => {
                self.reach_row(content);
                if let Some([truth, 0]) = content.get(value..value + 2) {
                    self.cells.truth(*truth != 0);
                }
            }
            FORMULA | FORMULA_3 | FORMULA_4 => self.formula(content, value),
            FORMULA_STRING | FORMULA_STRING_2 => {
                let size_bytes = if kind == FORMULA_STRING { 2 } else { 1 };
                let text = self.string_with_size(content, 0, size_bytes);
                self.cells.cell(&text);
            }
            _ => {}
        }
    }

    /// Reads the last result of a formula. If that is a string, it follows in another record.
    fn formula(&mut self, content: &[u8], value: usize) {
        self.reach_row(content);
        let result = le64(content, value).unwrap_or(u64::MAX);
        match result.to_le_bytes() {
            [1, _, truth, _, _, _, 0xff, 0xff] => self.cells.truth(truth != 0),
            [.., 0xff, 0xff] => {}
            _ => self.number(content, 4, Some(f64::from_bits(result))),
        }
    }

    /// Adds a number in a cell whose format is at `at`.
    fn number(&mut self, content: &[u8], at: usize, number: Option<f64>) {
        self.reach_row(content);
        let format = match self.version {
            Version::Two => content.get(at + 1).map_or(0, |it| usize::from(*it & 0x3f)),
            _ => le16(content, at).map_or(0, usize::from),
        };
        if let Some(number) = number {
            self.cells.number(&self.formats.show(format, number));
        }
    }

    /// Adds lines that are not in cells.
    fn add_lines(&mut self, text: &str) {
        self.cells.end_row(self.document);
        self.document.body.push_lines(text);
    }

    /// Reads a string inside one record, whose size in characters is at `at`.
    fn string_with_size(&self, content: &[u8], at: usize, size_bytes: usize) -> String {
        let size = match size_bytes {
            1 => content.get(at).map(|it| u16::from(*it)),
            _ => le16(content, at),
        };
        let characters = size.map_or(0, usize::from);
        let bytes = content.get(at + size_bytes..).unwrap_or_default();
        let is_version_8 = self.version == Version::Eight;
        let (is_wide, text) = match bytes.split_first() {
            Some((flags, text)) if is_version_8 => (flags & 1 != 0, text),
            _ => (false, bytes),
        };
        let text = text.get(..characters * if is_wide { 2 } else { 1 }).unwrap_or(text);
        if is_wide {
            utf16(text)
        } else if is_version_8 {
            narrow(text)
        } else {
            codepage::of_number(self.page).decode_without_bom_handling(text).0.into_owned()
        }
    }

    fn reach_row(&mut self, content: &[u8]) {
        let row = le16(content, 0).unwrap_or(0);
        if row != self.row {
            self.cells.end_row(self.document);
            self.row = row;
        }
        self.cells.at(usize::from(row), le16(content, 2).map_or(0, usize::from));
    }
}
