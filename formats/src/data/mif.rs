//! FrameMaker's interchange format: the text of a document, paragraph by paragraph.
//!
//! Source: Adobe's "FrameMaker MIF Reference": statements, strings and characters.
//!
//! # Differences from the specification
//!
//! * Text comes in the order of its flows in the file. Only strings and characters of paragraphs are
//!   read: not variables, markers or equations.

use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::text::{Body, decode, is_telling};
use crate::{Draft, Input};

/// First bytes of the file.
pub(super) const MARK: &[u8] = b"<MIFFile";

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    let text = decode(input.front(Limit::Document, &mut draft), None);
    let mut body = Body::new(input.text_bytes_max());
    let mut time = TimeLimit::new(input.cancelled);
    for line in text.lines() {
        if !time.goes_on() || body.is_full() {
            break;
        }
        let Some(line) = line.trim().strip_prefix('<') else { continue };
        let (statement, value) = line.split_once(' ').unwrap_or((line, ""));
        match statement {
            "String" => string(value, &mut body),
            "Char" => body.push(character(value)),
            "PgfTag" | "Para" | "PgfNumString" => body.line(),
            _ => {}
        }
    }
    body.line();
    let first = body.as_str().lines().find(|it| is_telling(it)).unwrap_or_default();
    first.clone_into(&mut draft.title);
    time.report("the document", &mut draft);
    draft.set_body(body);
    draft
}

/// Adds a string: `` `text'> ``.
fn string(value: &str, body: &mut Body) {
    let value = value.strip_prefix('`').unwrap_or(value);
    let value = value.rsplit_once('\'').map_or(value, |(value, _)| value);
    let mut parts = value.split('\\');
    body.push_squeezed(parts.next().unwrap_or_default());
    while let Some(part) = parts.next() {
        let mut rest = part.chars();
        let shown = match rest.next() {
            Some('t') => " ",
            Some('>') => ">",
            Some('q') => "'",
            Some('Q') => "`",
            // A backslash is doubled: it follows as a part of its own.
            None => {
                body.push("\\");
                body.push_squeezed(parts.next().unwrap_or_default());
                continue;
            }
            Some('x') => {
                // Two digits and a space: a character of FrameMaker's own set.
                body.push(special(rest.as_str().get(..2).unwrap_or_default()));
                body.push_squeezed(rest.as_str().get(3..).unwrap_or_default());
                continue;
            }
            Some(_) => "",
        };
        body.push(shown);
        body.push_squeezed(rest.as_str());
    }
}

/// Returns the character of this code; of those outside ASCII, the ones that are not letters of
/// Macintosh.
fn special(code: &str) -> &'static str {
    match code {
        "11" | "12" | "13" | "14" => " ",
        "15" => "-",
        "a5" => "\u{2022}",
        "d0" => "\u{2013}",
        "d1" => "\u{2014}",
        "d2" => "\u{201c}",
        "d3" => "\u{201d}",
        "d4" => "\u{2018}",
        "d5" => "\u{2019}",
        "80" => "Ä",
        "85" => "Ö",
        "86" => "Ü",
        "8a" => "ä",
        "8e" => "é",
        "8f" => "è",
        "88" => "à",
        "8d" => "ç",
        "96" => "ñ",
        "9a" => "ö",
        "9f" => "ü",
        "a7" => "ß",
        _ => "",
    }
}

/// Returns a character by its name.
fn character(value: &str) -> &'static str {
    match value.trim_end_matches('>') {
        "Tab" | "HardSpace" | "EnSpace" | "EmSpace" | "ThinSpace" | "NumberSpace" => " ",
        "HardReturn" => "\n",
        "HardHyphen" => "-",
        "EnDash" => "\u{2013}",
        "EmDash" => "\u{2014}",
        "Bullet" => "\u{2022}",
        _ => "",
    }
}
