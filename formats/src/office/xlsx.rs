//! Spreadsheets of Office Open XML.
//!
//! Source: ECMA-376 part 1 §18 (SpreadsheetML).
//!
//! # Differences from the specification
//!
//! * Numbers are left out: dates are numbers, too, and nobody searches for other numbers.

use std::ops::Range;

use super::cells::Cells;
use super::package::Package;
use super::xml::Piece;
use super::{OfficeDraft, PARAGRAPH_BYTES_MAX};
use crate::object::ProblemKind;
use crate::text::Body;
use crate::{Draft, Input};

/// Maximum length of all shared strings together, in bytes.
const STRINGS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum number of shared strings.
const STRINGS_MAX: usize = 1024 * 1024;
/// Maximum number of sheets that are read.
const SHEETS_MAX: usize = 1_000;
/// The part that lists the sheets.
const MAIN: &str = "xl/workbook.xml";

/// The strings that cells share, concatenated.
#[derive(Default)]
struct StringPool {
    text: String,
    ranges: Vec<Range<usize>>,
}

impl StringPool {
    fn get(&self, index: &str) -> &str {
        let range = index.trim().parse::<usize>().ok().and_then(|it| self.ranges.get(it));
        range.and_then(|it| self.text.get(it.clone())).unwrap_or_default()
    }
}

pub(super) fn summarize<'a>(input: &Input<'a>, package: &mut Package<'_>) -> Draft<'a> {
    let mut document = OfficeDraft::new(input);
    document.properties.read_parts(package, &super::PROPERTIES);
    let sheets = sheets(package, &mut document);
    let strings = strings(package);
    for path in sheets {
        if document.body.is_full() || package.is_over() {
            break;
        }
        document.hyperlinks(package, &path);
        sheet(package, &path, &strings, &mut document);
    }
    let is_binary = package.has("xl/workbook.bin");
    let mut draft = document.draft();
    if is_binary {
        let message = "has its cells in Excel's binary parts, which are not read";
        draft.problem(ProblemKind::Limit, message);
    }
    draft
}

/// Adds the names of the sheets, and returns their paths.
fn sheets(package: &mut Package<'_>, document: &mut OfficeDraft) -> Vec<String> {
    package.listed(MAIN, "sheet", "xl/worksheets/", SHEETS_MAX, |it| {
        document.sheet(&it.get("name"));
    })
}

fn strings(package: &mut Package<'_>) -> StringPool {
    let mut strings = StringPool::default();
    let (mut start, mut in_text, mut in_reading) = (0, false, false);
    package.walk("xl/sharedStrings.xml", &mut |piece| {
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
            Piece::End("si") => strings.ranges.push(start..strings.text.len()),
            Piece::End(_) => {}
        }
        strings.text.len() < STRINGS_BYTES_MAX && strings.ranges.len() < STRINGS_MAX
    });
    strings
}

fn sheet(package: &mut Package<'_>, path: &str, strings: &StringPool, document: &mut OfficeDraft) {
    let mut cells = Cells::new();
    let mut kind = String::new();
    let mut value = Body::new(PARAGRAPH_BYTES_MAX);
    let mut in_value = false;
    package.walk(path, &mut |piece| {
        match piece {
            Piece::Start(it) => match it.name {
                "c" => {
                    kind = it.get("t").into_owned();
                    value.take();
                }
                "v" | "t" => in_value = true,
                _ => {}
            },
            Piece::Text(text) if in_value => value.push(text),
            Piece::Text(_) => {}
            Piece::End("v" | "t") => in_value = false,
            Piece::End("c") => match kind.as_str() {
                "s" => cells.cell(strings.get(value.as_str())),
                "inlineStr" | "str" => cells.cell(value.as_str()),
                _ => {}
            },
            Piece::End("row") => cells.end_row(document),
            Piece::End(_) => {}
        }
        !document.body.is_full()
    });
    cells.end_row(document);
}
