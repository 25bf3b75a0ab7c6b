//! The binary parts of spreadsheets (`xlsb`): records in place of elements.
//!
//! Source: Microsoft's \[MS-XLSB\] 2.1.4 (records), 2.4 (each of them), 2.5.9 (`Cell`), 2.5.165
//! (`XLNullableWideString`), 2.5.121 (`RichStr`).
//!
//! # Differences from the specification
//!
//! * The short records of cells, without a column, are read, too: programs write them, though the
//!   specification does not list them.

use super::super::OfficeDraft;
use super::super::beside;
use super::super::cells::{Cells, NumberFormats, page_text, rk};
use super::super::compound::utf16;
use super::super::package::{Package, Relationship};
use super::{Book, StringPool};
use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::numbers::{le_len32, le16, le32, le64, slice_up_to};
use crate::object::ProblemKind;

/// Kinds of records. Those of cells are in [`SheetReader::cell`].
const ROW: usize = 0;
const STRING: usize = 19;
const FORMAT: usize = 44;
const CELL_FORMAT: usize = 47;
const END_CELLS: usize = 146;
const BOOK: usize = 153;
const SHEET: usize = 156;
const PAGE_TEXTS: usize = 479;
const CELL_FORMATS: usize = 617;
const END_CELL_FORMATS: usize = 618;
const COMMENT: usize = 637;
/// The kinds of short records of cells, and their distance from the others.
const SHORT_CELLS: std::ops::RangeInclusive<usize> = 12..=18;
const SHORTER_BY: usize = 11;
/// Maximum number of bytes of the kind and of the size of a record.
const KIND_BYTES_MAX: usize = 2;
const SIZE_BYTES_MAX: usize = 4;
/// The length of a string that is absent.
const NULL: usize = u32::MAX as usize;

/// Walks through the records of the part at `path` until `visit` returns `false`.
fn walk(package: &mut Package<'_>, path: &str, visit: &mut dyn FnMut(usize, &[u8]) -> bool) {
    package.parse(path, |bytes, cancelled| {
        let mut time = TimeLimit::new(cancelled);
        let mut rest = bytes;
        while !rest.is_empty() {
            if !time.goes_on() {
                return Err((ProblemKind::Time, "ran out of time".to_owned()));
            }
            let at = bytes.len() - rest.len();
            let Some((kind, content, after)) = record(rest) else {
                return Err((
                    ProblemKind::Broken,
                    format!("breaks off in the record at byte {at}"),
                ));
            };
            if !visit(kind, content) {
                break;
            }
            rest = after;
        }
        Ok(())
    });
}

/// Returns the kind and the content of the first record, and the bytes after it.
fn record(bytes: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let (kind, rest) = number(bytes, KIND_BYTES_MAX)?;
    let (size, rest) = number(rest, SIZE_BYTES_MAX)?;
    let (content, after) = rest.split_at_checked(size)?;
    Some((kind, content, after))
}

/// Returns a number of seven bits a byte, the lowest first, and the bytes after it.
fn number(bytes: &[u8], bytes_max: usize) -> Option<(usize, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().take(bytes_max).enumerate() {
        number |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 || at + 1 == bytes_max {
            return Some((number, bytes.get(at + 1..)?));
        }
    }
    None
}

/// Returns the string at `at`, and the position after it.
fn string(content: &[u8], at: usize) -> (String, usize) {
    let units = le_len32(content, at).filter(|it| *it != NULL).unwrap_or(0);
    let text = slice_up_to(content, at + 4, units.saturating_mul(2));
    (utf16(text), at + 4 + text.len())
}

/// Adds the names of the sheets, and returns their paths and names.
pub(super) fn sheets(
    package: &mut Package<'_>,
    main: &str,
    related: &[Relationship],
    book: &mut Book,
    document: &mut OfficeDraft,
) -> Vec<(String, String)> {
    let mut paths = Vec::new();
    walk(package, main, &mut |kind, content| {
        match kind {
            BOOK => book.formats.is_1904 = content.first().is_some_and(|it| it & 1 != 0),
            SHEET => {
                let (id, end) = string(content, 8);
                let name = string(content, end).0;
                document.sheet(&name);
                let part = related.iter().find(|it| it.id == id);
                paths.extend(part.map(|it| (it.target.clone(), name)));
            }
            _ => {}
        }
        paths.len() <= Limit::Sheets.bound()
    });
    if paths.is_empty() {
        // Others in the folder are indexes of the sheets.
        let found = package.in_folder("xl/worksheets/sheet", ".bin").into_iter();
        paths = found.map(|it| (it, String::new())).collect();
    }
    package.cut_list(&mut paths, Limit::Sheets);
    paths
}

pub(super) fn formats(package: &mut Package<'_>, path: &str, formats: &mut NumberFormats) {
    let mut in_cells = false;
    walk(package, path, &mut |kind, content| {
        match kind {
            FORMAT => {
                let id = le16(content, 0).map_or(0, u32::from);
                formats.define(id, &string(content, 2).0);
            }
            CELL_FORMATS => in_cells = true,
            CELL_FORMAT if in_cells => {
                formats.add_cell_format(le16(content, 2).map_or(0, u32::from));
            }
            _ => {}
        }
        kind != END_CELL_FORMATS
    });
}

pub(super) fn strings(package: &mut Package<'_>, path: &str, strings: &mut StringPool) {
    walk(package, path, &mut |kind, content| {
        if kind == STRING {
            let start = strings.text.len();
            strings.text.push_str(&string(content, 1).0);
            strings.end(start);
        }
        !strings.is_cut()
    });
}

/// Reads the comments in the part at `path`.
pub(in crate::office) fn comments(
    package: &mut Package<'_>,
    path: &str,
    document: &mut OfficeDraft,
) {
    walk(package, path, &mut |kind, content| {
        if kind == COMMENT {
            beside::comment(&string(content, 1).0, document);
        }
        !document.body.is_full()
    });
}

/// The reader of one sheet.
struct SheetReader<'b> {
    book: &'b Book,
    cells: Cells,
    row: usize,
    /// The column of the next cell.
    column: usize,
}

pub(super) fn sheet(
    package: &mut Package<'_>,
    path: &str,
    name: &str,
    book: &Book,
    document: &mut OfficeDraft,
) {
    let mut sheet = SheetReader { book, cells: Cells::new(name), row: 0, column: 0 };
    walk(package, path, &mut |kind, content| {
        match kind {
            ROW | END_CELLS => {
                sheet.cells.end_row(document);
                (sheet.row, sheet.column) = (le_len32(content, 0).unwrap_or(0), 0);
            }
            PAGE_TEXTS => {
                // After two bytes of flags, six strings.
                let mut at = 2;
                while at < content.len() {
                    let (codes, end) = string(content, at);
                    document.body.push_lines(&page_text(&codes));
                    at = end;
                }
            }
            kind if SHORT_CELLS.contains(&kind) => sheet.cell(kind - SHORTER_BY, content, 0),
            kind => sheet.cell(kind, content, 4),
        }
        !document.body.is_full()
    });
    sheet.cells.end_row(document);
}

impl SheetReader<'_> {
    /// Reads a cell, whose format is at `at`, and its value after that; does nothing for other records.
    fn cell(&mut self, kind: usize, content: &[u8], at: usize) {
        let value = at + 4;
        if at == 4 {
            self.column = le_len32(content, 0).unwrap_or(0);
        }
        self.cells.at(self.row, self.column);
        self.column = self.column.saturating_add(1);
        let number = match kind {
            2 => le32(content, value).map(rk),
            5 | 9 => le64(content, value).map(f64::from_bits),
            _ => None,
        };
        if let Some(number) = number {
            let format = le_len32(content, at).unwrap_or(0) & 0xff_ffff;
            self.cells.number(&self.book.formats.show(format, number));
            return;
        }
        match kind {
            4 | 10 => self.cells.truth(content.get(value).is_some_and(|it| *it != 0)),
            6 | 8 => self.cells.cell(&string(content, value).0),
            7 => {
                let index = le_len32(content, value).unwrap_or(usize::MAX);
                self.cells.cell(self.book.strings.get(index));
            }
            // With runs of other fonts.
            62 => self.cells.cell(&string(content, value + 1).0),
            _ => {}
        }
    }
}
