//! Spreadsheets of Office Open XML, and the same with binary parts (`xlsb`).
//!
//! Source: ECMA-376 part 1 §18 (SpreadsheetML): §18.3.1.4 (`c`), §18.18.11 (kinds of cells), §18.8.10
//! (`cellXfs`), §18.4 (shared strings).
//!
//! # Differences from the specification
//!
//! * Numbers are shown as [`NumberFormats`] says. Of formulas, the last results are read.
//! * Errors such as `#N/A` are left out.

pub(super) mod binary;

use std::ops::Range;

use super::OfficeDraft;
use super::beside::Beside;
use super::cells::{Cells, NumberFormat, NumberFormats, page_text};
use super::package::{Package, Relationship};
use super::xml::{Element, Piece};
use crate::limit::Limit;
use crate::text::Body;
use crate::{Draft, Input};

/// Longest decimal number that is shown as it is written, in bytes: it has no noise.
const DECIMAL_BYTES_MAX: usize = 15;

/// The strings that cells share, concatenated.
#[derive(Default)]
struct StringPool {
    text: String,
    ranges: Vec<Range<usize>>,
    /// The limit that a string went beyond; it and all after it are left out.
    cut: Option<Limit>,
}

impl StringPool {
    fn get(&self, index: usize) -> &str {
        let range = self.ranges.get(index);
        range.and_then(|it| self.text.get(it.clone())).unwrap_or_default()
    }

    /// Ends the string that begins at `start`.
    fn end(&mut self, start: usize) {
        self.cut = if self.ranges.len() == Limit::Strings.bound() {
            Some(Limit::Strings)
        } else {
            Some(Limit::StringBytes).filter(|it| it.bound() < self.text.len())
        };
        match self.cut {
            Some(_) => self.text.truncate(start),
            None => self.ranges.push(start..self.text.len()),
        }
    }

    fn is_cut(&self) -> bool {
        self.cut.is_some()
    }
}

/// What the cells of all sheets share.
#[derive(Default)]
struct Book {
    strings: StringPool,
    formats: NumberFormats,
}

pub(super) fn summarize<'a>(input: &Input<'a>, package: &mut Package<'_>) -> Draft<'a> {
    let mut document = OfficeDraft::new(input);
    document.properties.read_parts(package, &super::PROPERTIES);
    let mut book = Book::default();
    let is_binary = !package.has("xl/workbook.xml");
    let main = if is_binary { "xl/workbook.bin" } else { "xl/workbook.xml" };
    let related = package.relationships(main);
    let path = |kind: &str, usual: &str| {
        let part = related.iter().find(|it| it.kind == kind && !it.is_external);
        part.map_or_else(|| usual.to_owned(), |it| it.target.clone())
    };
    let sheets = if is_binary {
        let sheets = binary::sheets(package, main, &related, &mut book, &mut document);
        binary::formats(package, &path("styles", "xl/styles.bin"), &mut book.formats);
        binary::strings(package, &path("sharedStrings", "xl/sharedStrings.bin"), &mut book.strings);
        sheets
    } else {
        let sheets = sheets(package, main, &related, &mut book, &mut document);
        formats(package, &path("styles", "xl/styles.xml"), &mut book.formats);
        strings(package, &path("sharedStrings", "xl/sharedStrings.xml"), &mut book.strings);
        sheets
    };
    let mut beside = Beside::with_cells();
    for (path, name) in sheets {
        if document.body.is_full() || package.is_over() {
            break;
        }
        if is_binary {
            binary::sheet(package, &path, &name, &book, &mut document);
        } else {
            sheet(package, &path, &name, &book, &mut document);
        }
        if !name.is_empty() {
            document.body.place(&format!("sheet {name}"));
        }
        beside.read(package, &path, &mut document);
    }
    document.cuts.extend(book.strings.cut);
    document.draft()
}

/// Adds the names of the sheets, and returns their paths and names.
fn sheets(
    package: &mut Package<'_>,
    main: &str,
    related: &[Relationship],
    book: &mut Book,
    document: &mut OfficeDraft,
) -> Vec<(String, String)> {
    package.listed(main, related, "sheet", "xl/worksheets/", Limit::Sheets, |it| match it.name {
        "sheet" => document.sheet(&it.get("name")),
        "workbookPr" => {
            book.formats.is_1904 = matches!(&*it.get("date1904"), "1" | "true" | "on");
        }
        _ => {}
    })
}

fn formats(package: &mut Package<'_>, path: &str, formats: &mut NumberFormats) {
    let mut in_cells = false;
    package.walk(path, &mut |piece| {
        match piece {
            Piece::Start(it) => match it.name {
                "numFmt" => {
                    if let Ok(id) = it.get("numFmtId").parse() {
                        formats.define(id, &it.get("formatCode"));
                    }
                }
                "cellXfs" => in_cells = true,
                "xf" if in_cells => {
                    formats.add_cell_format(it.get("numFmtId").parse().unwrap_or(0));
                }
                _ => {}
            },
            // What follows is for other things than cells.
            Piece::End("cellXfs") => return false,
            Piece::Text(_) | Piece::End(_) => {}
        }
        true
    });
}

fn strings(package: &mut Package<'_>, path: &str, strings: &mut StringPool) {
    let (mut start, mut in_text, mut in_reading) = (0, false, false);
    package.walk(path, &mut |piece| {
        match piece {
            Piece::Start(it) => match it.name {
                "si" => start = strings.text.len(),
                // The pronunciation of the characters before it.
                "rPh" => in_reading = true,
                "t" => in_text = !in_reading,
                _ => {}
            },
            Piece::Text(text) if in_text => strings.text.push_str(text),
            Piece::Text(_) => {}
            Piece::End("t") => in_text = false,
            Piece::End("rPh") => in_reading = false,
            Piece::End("si") => strings.end(start),
            Piece::End(_) => {}
        }
        !strings.is_cut()
    });
}

/// The kind of a cell's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CellKind {
    #[default]
    Number,
    Shared,
    Text,
    Truth,
    /// A date in ISO 8601.
    Date,
    Error,
}

impl CellKind {
    fn of(name: &str) -> Self {
        match name {
            "s" => Self::Shared,
            "str" | "inlineStr" => Self::Text,
            "b" => Self::Truth,
            "d" => Self::Date,
            "e" => Self::Error,
            _ => Self::Number,
        }
    }
}

/// The reader of one sheet.
struct SheetReader<'b> {
    book: &'b Book,
    cells: Cells,
    /// The open row, from 1 on, and the next column, from 0 on.
    row: usize,
    column: usize,
    kind: CellKind,
    /// The format of the open cell.
    format: usize,
    value: Body,
    in_value: bool,
    in_reading: bool,
}

fn sheet(
    package: &mut Package<'_>,
    path: &str,
    name: &str,
    book: &Book,
    document: &mut OfficeDraft,
) {
    let mut sheet = SheetReader {
        book,
        cells: Cells::new(name),
        row: 0,
        column: 0,
        kind: CellKind::Number,
        format: 0,
        value: Body::new(Limit::Paragraph.bound()),
        in_value: false,
        in_reading: false,
    };
    package.walk(path, &mut |piece| {
        match piece {
            Piece::Start(it) => sheet.start(&it),
            Piece::Text(text) if sheet.in_value => sheet.value.push(text),
            Piece::Text(_) => {}
            Piece::End(name) => sheet.end(name, document),
        }
        !document.body.is_full()
    });
    sheet.cells.end_row(document);
    if sheet.value.is_cut() {
        document.cuts.insert(Limit::Paragraph);
    }
}

impl SheetReader<'_> {
    fn start(&mut self, element: &Element<'_>) {
        match element.name {
            "row" => {
                let number = element.get("r").parse::<usize>().ok();
                self.row = number.unwrap_or_else(|| self.row.saturating_add(1));
                self.column = 0;
            }
            "c" => {
                if self.cells.is_row_empty() {
                    self.column = column(&element.get("r")).unwrap_or(self.column);
                    self.cells.at(self.row.saturating_sub(1), self.column);
                    self.column += 1;
                }
                self.kind = CellKind::of(&element.get("t"));
                if self.kind == CellKind::Number {
                    self.format = element.get("s").parse().unwrap_or(0);
                }
                self.value.take();
            }
            "v" | "t" => self.in_value = !self.in_reading,
            "rPh" => self.in_reading = true,
            name if is_page_text(name) => {
                self.value.take();
                self.in_value = true;
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &str, document: &mut OfficeDraft) {
        match name {
            "v" | "t" => self.in_value = false,
            "rPh" => self.in_reading = false,
            "c" => self.end_cell(),
            "row" => self.cells.end_row(document),
            name if is_page_text(name) => {
                self.in_value = false;
                document.body.push_lines(&page_text(self.value.as_str()));
            }
            _ => {}
        }
    }

    fn end_cell(&mut self) {
        let value = self.value.as_str();
        match self.kind {
            CellKind::Text => self.cells.cell(value),
            CellKind::Shared => {
                let index = value.trim().parse().unwrap_or(usize::MAX);
                self.cells.cell(self.book.strings.get(index));
            }
            CellKind::Truth => self.cells.truth(value.trim() == "1"),
            CellKind::Date => self.cells.number(&value.replace('T', " ")),
            CellKind::Number => {
                let formats = &self.book.formats;
                let is_plain = formats.of_cell(self.format) == NumberFormat::Plain;
                if is_plain && is_short_decimal(value) {
                    self.cells.number(value);
                } else if let Ok(number) = value.trim().parse() {
                    self.cells.number(&formats.show(self.format, number));
                } else {
                    self.cells.cell(value);
                }
            }
            CellKind::Error => {}
        }
    }
}

/// Returns the column in the name of a cell, from 0 on.
fn column(cell: &str) -> Option<usize> {
    let letters = cell.bytes().take(3).take_while(u8::is_ascii_uppercase);
    letters.fold(0, |number, it| 26 * number + usize::from(it - b'A') + 1).checked_sub(1)
}

/// Returns whether an element is a page's header or footer.
fn is_page_text(name: &str) -> bool {
    matches!(
        name,
        "oddHeader" | "oddFooter" | "evenHeader" | "evenFooter" | "firstHeader" | "firstFooter"
    )
}

/// Returns whether a number is written as it is shown.
fn is_short_decimal(value: &str) -> bool {
    value.len() <= DECIMAL_BYTES_MAX
        && value.bytes().all(|it| matches!(it, b'0'..=b'9' | b'.' | b'-'))
}
