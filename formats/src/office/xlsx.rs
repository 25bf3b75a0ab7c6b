//! Spreadsheets of Office Open XML.
//!
//! Source: ECMA-376 part 1 §18 (SpreadsheetML).
//!
//! # Differences from the specification
//!
//! * Numbers are left out: days are numbers there, and no one looks for the others.
//!
//! Sans-I/O.

use std::collections::HashMap;
use std::ops::Range;

use super::cells::Cells;
use super::package::{Package, Relationship};
use super::xml::Piece;
use super::{Found, PARAGRAPH_BYTES_MAX};
use crate::object::ProblemKind;
use crate::text::Body;
use crate::{Draft, Input};

/// Longest sum of the strings that cells share, in bytes.
const STRINGS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most of those strings.
const STRINGS_MAX: usize = 1024 * 1024;
/// Most sheets that are read.
const SHEETS_MAX: usize = 1_000;
/// The part that lists the sheets.
const MAIN: &str = "xl/workbook.xml";

/// The strings that cells share, one after the other.
#[derive(Default)]
struct Strings {
    text: String,
    places: Vec<Range<usize>>,
}

impl Strings {
    fn get(&self, index: &str) -> &str {
        let place = index.trim().parse::<usize>().ok().and_then(|it| self.places.get(it));
        place.and_then(|it| self.text.get(it.clone())).unwrap_or_default()
    }
}

/// Summarizes a workbook.
pub(super) fn summarize<'a>(input: &Input<'a>, package: &mut Package<'_>) -> Draft<'a> {
    let mut found = Found::new(input);
    found.properties.read_parts(package);
    let sheets = sheets(package, &mut found);
    let strings = strings(package);
    for path in sheets {
        if found.body.is_full() || package.is_over() {
            break;
        }
        for it in package.relationships(&path) {
            if it.is_external && it.kind == "hyperlink" {
                found.references.add(&it.target);
            }
        }
        sheet(package, &path, &strings, &mut found);
    }
    let is_binary = package.has("xl/workbook.bin");
    let mut draft = found.draft();
    if is_binary {
        let message = "has its cells in Excel's binary parts, which are not read";
        draft.problem(ProblemKind::Limit, message);
    }
    draft
}

/// Notes the names of the sheets, and returns their paths.
fn sheets(package: &mut Package<'_>, found: &mut Found) -> Vec<String> {
    let parts: HashMap<String, Relationship> =
        package.relationships(MAIN).into_iter().map(|it| (it.id.clone(), it)).collect();
    let mut paths = Vec::new();
    package.walk(MAIN, &mut |piece| {
        if let Piece::Start(it) = piece
            && it.name == "sheet"
        {
            found.sheet(&it.get("name"));
            if let Some(part) = parts.get(&*it.get_prefixed("r:id")) {
                paths.push(part.target.clone());
            }
        }
        paths.len() < SHEETS_MAX
    });
    if paths.is_empty() {
        paths = package.in_folder("xl/worksheets/", ".xml");
        paths.truncate(SHEETS_MAX);
    }
    paths
}

fn strings(package: &mut Package<'_>) -> Strings {
    let mut strings = Strings::default();
    let (mut start, mut in_text, mut in_reading) = (0, false, false);
    package.walk("xl/sharedStrings.xml", &mut |piece| {
        match piece {
            Piece::Start(it) => match it.name {
                "si" => start = strings.text.len(),
                // How the characters before it are read aloud.
                "rPh" => in_reading = true,
                "t" => in_text = !in_reading,
                _ => {}
            },
            Piece::Text(text) if in_text => strings.text.push_str(text),
            Piece::Text(_) => {}
            Piece::End("t") => in_text = false,
            Piece::End("rPh") => in_reading = false,
            Piece::End("si") => strings.places.push(start..strings.text.len()),
            Piece::End(_) => {}
        }
        strings.text.len() < STRINGS_BYTES_MAX && strings.places.len() < STRINGS_MAX
    });
    strings
}

fn sheet(package: &mut Package<'_>, path: &str, strings: &Strings, found: &mut Found) {
    let mut cells = Cells::new();
    let mut kind = String::new();
    let mut value = Body::new(PARAGRAPH_BYTES_MAX);
    let mut in_value = false;
    package.walk(path, &mut |piece| {
        match piece {
            Piece::Start(it) => match it.name {
                "c" => {
                    kind = it.get("t").into_owned();
                    if !value.as_str().is_empty() {
                        value = Body::new(PARAGRAPH_BYTES_MAX);
                    }
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
            Piece::End("row") => cells.end_row(found),
            Piece::End(_) => {}
        }
        !found.body.is_full()
    });
    cells.end_row(found);
}
