//! WordPerfect 5 and 6 (and later, up to X9): the text of a document.
//!
//! Source: the WordPerfect 5.1 and 6.0 developers' toolkits, as the documentation of libwpd retells them: the
//! prefix, single-byte functions, and functions of fixed and variable length.
//!
//! # Differences from the specification
//!
//! * Notes, headers and boxes stand in packets of the prefix or in functions: they are left out.
//! * Of the character sets beyond ASCII, the letters of western Europe and the signs of typography are read.

use crate::cancellable::TimeLimit;
use crate::numbers::{le_len32, le16, u8_at};
use crate::object::ProblemKind;
use crate::text::{Body, is_telling};
use crate::{Draft, Input};

/// First bytes of the file.
pub(crate) const MARK: &[u8] = b"\xffWPC";
/// Bytes of the functions F0 to FE of version 6.
const FIXED_6: [usize; 15] = [4, 5, 3, 3, 3, 3, 4, 4, 4, 5, 5, 6, 6, 8, 8];
/// Bytes of the functions C0 to CF of version 5.
const FIXED_5: [usize; 16] = [4, 9, 11, 3, 3, 5, 6, 7, 4, 5, 6, 6, 8, 10, 10, 12];
/// Letters of the codes 1 to 32 of version 6.
const SHORT: &str = "åÅæÆäÄáàâãÃçÇëéÉèêíñÑøØõÕöÖüÜúùß";
/// Letters of character set 1 from 26 on.
const LETTERS: &str = "ÁáÂâÄäÀàÅåÆæÇçÉéÊêËëÈèÍíÎîÏïÌìÑñÓóÔôÖöÒòÚúÛûÜüÙùŸÿÃãĐđØøÕõÝýÐðÞþ";
/// Signs of character set 4 from 28 on.
const SIGNS: &str = "’‘‛“”„–—";

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &*input.object.bytes;
    let mut draft = Draft::default();
    if le16(bytes, 12).is_some_and(|it| it != 0) {
        draft.problem(ProblemKind::Locked, "is locked by a password");
        return draft;
    }
    draft.other("Version", if is_late(bytes) { "6 or later" } else { "5" });
    let mut body = Body::new(input.text_bytes_max());
    let mut time = TimeLimit::new(input.cancelled);
    if text(bytes, &mut body, &mut time).is_none() {
        draft.problem(ProblemKind::Broken, "has no text where its prefix says");
    }
    time.report("the document", &mut draft);
    input.report_front(&mut draft);
    let first = body.as_str().lines().find(|it| is_telling(it)).unwrap_or_default();
    first.clone_into(&mut draft.title);
    draft.set_body(body);
    draft
}

fn is_late(bytes: &[u8]) -> bool {
    u8_at(bytes, 10).is_some_and(|it| 2 <= it)
}

/// Adds the text of a document; `None` if it is not where the prefix says.
pub(crate) fn text(bytes: &[u8], body: &mut Body, time: &mut TimeLimit<'_>) -> Option<()> {
    let text = bytes.get(le_len32(bytes, 4)?..)?;
    let is_late = is_late(bytes);
    let mut at = 0;
    while let Some(code) = u8_at(text, at) {
        if !time.goes_on() || body.is_full() {
            break;
        }
        let rest = text.get(at..).unwrap_or_default();
        at += if is_late { new(code, rest, body) } else { old(code, rest, body) };
    }
    body.line();
    Some(())
}

/// Reads a code of version 6; returns its length in bytes.
fn new(code: u8, rest: &[u8], body: &mut Body) -> usize {
    match code {
        0 => {}
        1..=0x20 => push(SHORT.chars().nth(usize::from(code) - 1), body),
        0x21..=0x7f => push(Some(char::from(code)), body),
        0x80 | 0x81 | 0xcd..=0xcf => body.space(),
        0x84 => body.push("-"),
        0x87 | 0xb7..=0xbb | 0xcc | 0xc7..=0xcb => body.line(),
        0x82 | 0x83 | 0x85 | 0x86 | 0x88..=0xb6 | 0xbc..=0xc6 => {}
        0xd0..=0xef => return variable(code, rest, body),
        0xf0 => {
            character(rest, body);
            return FIXED_6[0];
        }
        0xf1..=0xfe => {
            return FIXED_6.get(usize::from(code - 0xf0)).copied().unwrap_or(1);
        }
        0xff => {}
    }
    1
}

/// Reads a function of version 6: code, kind, and its length, which counts all of it.
fn variable(code: u8, rest: &[u8], body: &mut Body) -> usize {
    match code {
        // Ends of lines and pages: the first three are soft.
        0xd0 if rest.get(1).is_some_and(|it| (1..=3).contains(it)) => body.space(),
        0xd0 => body.line(),
        // Tabs.
        0xe0 => body.space(),
        _ => {}
    }
    le16(rest, 2).map_or(1, usize::from).max(1)
}

/// Reads a code of version 5; returns its length in bytes.
fn old(code: u8, rest: &[u8], body: &mut Body) -> usize {
    match code {
        0x0a..=0x0c => body.line(),
        0x09 | 0x0d | 0x20 | 0xa0 => body.space(),
        0x21..=0x7e => push(Some(char::from(code)), body),
        0xa9..=0xab => body.push("-"),
        0x8c | 0x99 => body.line(),
        0xc0 => {
            character(rest, body);
            return FIXED_5[0];
        }
        0xc1 | 0xc2 => {
            body.space();
            return FIXED_5.get(usize::from(code - 0xc0)).copied().unwrap_or(1);
        }
        0xc3..=0xcf => return FIXED_5.get(usize::from(code - 0xc0)).copied().unwrap_or(1),
        // The length counts what follows it.
        0xd0..=0xfe => return le16(rest, 2).map_or(1, |it| usize::from(it) + 4),
        _ => {}
    }
    1
}

/// Adds a character by its code and set: `F0 code set F0`, `C0 code set C0`.
fn character(rest: &[u8], body: &mut Body) {
    let (Some(code), Some(set)) = (rest.get(1).copied(), rest.get(2).copied()) else { return };
    let from = |first: u8, table: &str| table.chars().nth(usize::from(code.checked_sub(first)?));
    push(
        match (set, code) {
            (0, 0x20..=0x7e) => Some(char::from(code)),
            (1, 23) => Some('ß'),
            (1, _) => from(26, LETTERS),
            (4, 28..) => from(28, SIGNS),
            _ => None,
        },
        body,
    );
}

fn push(character: Option<char>, body: &mut Body) {
    if let Some(it) = character {
        body.push(it.encode_utf8(&mut [0; 4]));
    }
}

#[cfg(test)]
pub(super) fn sample(version: u8, text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 16];
    bytes[..4].copy_from_slice(MARK);
    bytes[4] = 16;
    bytes[8..11].copy_from_slice(&[1, 10, version]);
    [bytes, text.to_vec()].concat()
}
