//! AutoCAD's exchange format (`.dxf`) as text: the texts of the drawing.
//!
//! Source: Autodesk's "DXF Reference": group codes in general, TEXT, MTEXT, ATTRIB, ATTDEF, DIMENSION,
//! and the header's variables.

use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::text::{Body, decode};
use crate::{Draft, Input};

/// Returns whether this is a drawing as text: groups of a number and a value, each on a line.
pub(super) fn is_drawing(head: &[u8]) -> bool {
    let mut lines = head.split(|it| *it == b'\n').map(<[u8]>::trim_ascii);
    let code = lines.next().unwrap_or_default();
    let value = lines.next().unwrap_or_default();
    let is_section = |it: &[u8]| it == b"SECTION";
    code == b"0" && is_section(value) || code == b"999" && lines.any(is_section)
}

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    let text = decode(input.front(Limit::Document, &mut draft), None);
    let mut body = Body::new(input.text_bytes_max());
    let mut time = TimeLimit::new(input.cancelled);
    let (mut entity, mut variable) = ("", "");
    let mut lines = text.lines().map(str::trim);
    while let (Some(code), Some(value)) = (lines.next(), lines.next()) {
        if !time.goes_on() || body.is_full() {
            break;
        }
        match (code, entity) {
            ("0", _) => {
                body.line();
                entity = value;
            }
            ("999", _) => body.push_squeezed_line(value),
            ("9", _) => variable = value,
            ("1", "SECTION") => match variable {
                "$ACADVER" => draft.other("Version", value),
                "$TITLE" => value.clone_into(&mut draft.title),
                "$LASTSAVEDBY" => draft.authors.push(value.to_owned()),
                _ => {}
            },
            // Text of more than 250 characters comes in pieces, the last one under code 1.
            ("1" | "3", "TEXT" | "MTEXT" | "ATTRIB" | "ATTDEF" | "DIMENSION" | "MULTILEADER") => {
                shown(value, &mut body);
            }
            ("2", "LAYER" | "BLOCK") if !value.starts_with('*') => body.push_squeezed_line(value),
            _ => {}
        }
    }
    time.report("the drawing", &mut draft);
    draft.other("Kind", "AutoCAD exchange file");
    draft.set_body(body);
    draft
}

/// Adds a text without its codes: `\P` ends a line, `\f…;` is a font, `%%d` a sign, `\U+00e4` a letter.
fn shown(value: &str, body: &mut Body) {
    let mut rest = value;
    while let Some(at) = rest.find(['\\', '{', '}', '%']) {
        let (before, code) = rest.split_at(at);
        body.push_squeezed(before);
        let (code, after) = code.split_at(1);
        let mut letters = after.chars();
        let letter = letters.next();
        rest = match (code, letter) {
            ("{" | "}", _) => after,
            ("%", Some('%')) => {
                body.push(match letters.next() {
                    Some('d' | 'D') => "\u{b0}",
                    Some('c' | 'C') => "\u{2300}",
                    Some('p' | 'P') => "\u{b1}",
                    _ => "",
                });
                letters.as_str()
            }
            ("%", _) => {
                body.push("%");
                after
            }
            (_, Some('P' | 'N' | 'X')) => {
                body.line();
                letters.as_str()
            }
            (_, Some('~')) => {
                body.space();
                letters.as_str()
            }
            (_, Some('U')) if letters.as_str().starts_with('+') => {
                let digits = letters.as_str().get(1..5).unwrap_or_default();
                let number = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                body.push(number.unwrap_or(' ').encode_utf8(&mut [0; 4]));
                letters.as_str().get(5..).unwrap_or_default()
            }
            (_, Some('A' | 'C' | 'c' | 'f' | 'F' | 'H' | 'p' | 'Q' | 'T' | 'W')) => {
                after.split_once(';').map_or("", |(_, it)| it)
            }
            (_, Some('S')) => {
                let (stacked, it) = letters.as_str().split_once(';').unwrap_or_default();
                body.push(&stacked.replace(['#', '^'], "/"));
                it
            }
            (_, Some('L' | 'l' | 'O' | 'o' | 'K' | 'k')) => letters.as_str(),
            (_, Some('\\' | '{' | '}')) => {
                body.push(after.get(..1).unwrap_or_default());
                letters.as_str()
            }
            _ => after,
        };
    }
    body.push_squeezed(rest);
}
