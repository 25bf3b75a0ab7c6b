//! Access databases (`.mdb`, `.accdb`): their version, and the text that stands in them as it is.
//!
//! Source: "The MDB file format" of mdbtools (HACKING.md). Jet 3 has text in a code page; Jet 4 and later have
//! UTF-16, of which runs of Latin-1 are packed to one byte a character after `FF FE`.
//!
//! # Differences from the specification
//!
//! * Pages, tables and rows are not told apart: the names of tables, columns and queries and the text of
//!   rows come in the order of the file.

use crate::code::strings;
use crate::limit::Limit;
use crate::object::ProblemKind;
use crate::text::{Body, one_line};
use crate::{Draft, Input};

/// Mark of a packed text.
const PACKED: &[u8] = b"\xff\xfe";
/// Longest packed text, in bytes: Access packs no longer ones.
const PACKED_BYTES_MAX: usize = 4 * 1024;
/// Shortest packed text, in bytes.
const PACKED_BYTES_MIN: usize = 3;
/// Position of the version.
const VERSION_AT: usize = 0x14;

pub(super) fn is_database(head: &[u8]) -> bool {
    let name = head.get(4..15).unwrap_or_default();
    matches!(name, b"Standard Je" | b"Standard AC" | b"MSISAM Data")
}

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    let bytes = input.front(Limit::Scan, &mut draft);
    let version = match bytes.get(VERSION_AT) {
        Some(0) => "Access 97",
        Some(1) => "Access 2000",
        Some(2) => "Access 2007",
        Some(3) => "Access 2010",
        Some(4 | 5) => "Access 2013",
        Some(6) => "Access 2016",
        _ => "",
    };
    draft.other("Version", version);
    let mut body = Body::new(input.text_bytes_max());
    if version == "Access 97" {
        strings::named(bytes, &mut body, input.cancelled);
    } else {
        strings::wide(bytes, &mut body, input.cancelled);
        for at in memchr::memmem::find_iter(bytes, PACKED) {
            if (input.cancelled)() {
                draft.problem(ProblemKind::Time, "ran out of time on the database's text");
                break;
            }
            if body.is_full() {
                break;
            }
            if let Some(text) = packed(bytes.get(at + PACKED.len()..).unwrap_or_default()) {
                body.push_line(&text);
            }
        }
    }
    draft.set_body(body);
    draft
}

/// Returns the packed text at the front of `bytes`, if it looks like text.
fn packed(bytes: &[u8]) -> Option<String> {
    let is_text = |it: &u8| matches!(it, 9 | 10 | 13 | b' '..=b'~' | 0xa0..=0xff);
    let front = bytes.get(..bytes.len().min(PACKED_BYTES_MAX)).unwrap_or_default();
    let end = front.iter().position(|it| !is_text(it)).unwrap_or(front.len());
    let text = front.get(..end).unwrap_or_default();
    let ascii = text.iter().filter(|it| it.is_ascii()).count();
    if text.len() < PACKED_BYTES_MIN || ascii * 4 < text.len() * 3 {
        return None;
    }
    let text: String = text.iter().copied().map(char::from).collect();
    Some(one_line(&text, PACKED_BYTES_MAX))
}
