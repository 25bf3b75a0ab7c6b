//! Spreadsheets of Lotus 1-2-3, Symphony, Works and Quattro Pro: labels and numbers of their cells.
//!
//! Source: "Lotus Worksheet File Format" (Lotus, 1984) for the records of releases 1 and 2, which Quattro
//! Pro and Works share; "Lotus File Formats for 1-2-3 Release 3" for the records of later releases.
//!
//! # Differences from the specification
//!
//! * Cells come in the order of the file, those of one row on one line. Formulas show their last value.
//! * Text is in the character set of DOS (LICS, LMBCS): what is not ASCII is read as Windows-1252.

use crate::cancellable::TimeLimit;
use crate::numbers::{le_len32, le16, le64, slice, u8_at, up_to_zero};
use crate::text::Body;
use crate::{Draft, Input};

/// Bytes of a record's head: its kind and length.
const HEAD_BYTES: usize = 4;

/// The layout of the cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Release {
    /// Releases 1 and 2, and programs that keep to them.
    Two,
    /// Release 3 and later.
    Three,
}

pub(super) fn is_sheet(head: &[u8]) -> bool {
    release(head).is_some()
}

fn release(head: &[u8]) -> Option<Release> {
    match head.get(..4)? {
        [0 | 0xff, 0, 2, 0] => Some(Release::Two),
        [0, 0, 0x1a, 0] => Some(Release::Three),
        _ => None,
    }
}

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &*input.object.bytes;
    let release = release(bytes).unwrap_or(Release::Two);
    let mut body = Body::new(input.text_bytes_max());
    let mut time = TimeLimit::new(input.cancelled);
    let (mut at, mut last, mut is_ended) = (0_usize, None, false);
    while let (Some(kind), Some(size)) = (le16(bytes, at), le16(bytes, at + 2)) {
        if !time.goes_on() || body.is_full() {
            break;
        }
        let Some(record) = slice(bytes, at + HEAD_BYTES, usize::from(size)) else { break };
        at += HEAD_BYTES + usize::from(size);
        // Record 1 ends the sheet.
        if kind == 1 {
            is_ended = true;
            break;
        }
        let cell = match release {
            Release::Two => cell(kind, record),
            Release::Three => late_cell(kind, record),
        };
        let Some((row, text)) = cell else { continue };
        if last != Some(row) {
            body.line();
        }
        last = Some(row);
        body.push_squeezed(&text);
        body.space();
    }
    let mut draft = Draft::default();
    time.report("the sheet", &mut draft);
    if !is_ended && !time.is_over() && !body.is_full() {
        super::breaks_off(input, "breaks off before its end", &mut draft);
    }
    draft.set_body(body);
    draft
}

/// Returns row and text of a cell of releases 1 and 2: a format, column, row and value.
fn cell(kind: u16, record: &[u8]) -> Option<((u8, u16), String)> {
    let row = (0, le16(record, 3)?);
    let value = record.get(5..)?;
    let text = match kind {
        0x0d => le16(value, 0)?.cast_signed().to_string(),
        0x0e | 0x10 => number(f64::from_bits(le64(value, 0)?))?,
        // A label, and the text that a formula gave; Quattro Pro has a length where others have its sign.
        0x0f | 0x33 => label(value),
        _ => return None,
    };
    Some((row, text))
}

/// Returns sheet and row, and text of a cell of release 3 and later: row, sheet, column and value.
fn late_cell(kind: u16, record: &[u8]) -> Option<((u8, u16), String)> {
    let row = (u8_at(record, 2)?, le16(record, 0)?);
    let value = record.get(4..)?;
    let text = match kind {
        0x16 | 0x1a => label(value),
        0x17 | 0x19 => number(extended(value)?)?,
        0x18 => small(le16(value, 0)?)?,
        0x25 => packed(le_len32(value, 0)?)?,
        0x27 | 0x28 => number(f64::from_bits(le64(value, 0)?))?,
        _ => return None,
    };
    Some((row, text))
}

/// Returns a text without the sign in front that aligns it.
fn label(value: &[u8]) -> String {
    let length_bytes = usize::from(value.first().is_some_and(|it| *it < b' '));
    let text = up_to_zero(value.get(length_bytes..).unwrap_or_default());
    let text = encoding_rs::WINDOWS_1252.decode_without_bom_handling(text).0;
    text.strip_prefix(['\'', '"', '^', '\\', '|']).unwrap_or(&text).to_owned()
}

fn number(value: f64) -> Option<String> {
    // Errors and empty values are no numbers.
    value.is_finite().then(|| value.to_string())
}

/// Returns a number of ten bytes, as the coprocessor has it.
fn extended(value: &[u8]) -> Option<f64> {
    let (mantissa, head) = (le64(value, 0)?, le16(value, 8)?);
    let sign = if head & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(head & 0x7fff);
    if exponent == 0x7fff {
        return None;
    }
    // A cell has no more digits than fit into 53 bits.
    Some(sign * mantissa as f64 * 2_f64.powi(exponent - 16_383 - 63))
}

/// Factors of numbers of two bytes, by three bits.
const FACTORS: [f64; 8] =
    [5000.0, 500.0, 1.0 / 20.0, 1.0 / 200.0, 1.0 / 2000.0, 1.0 / 20_000.0, 1.0 / 16.0, 1.0 / 64.0];

/// Returns a number of two bytes: a whole one, or one with a factor in its lowest bits.
fn small(value: u16) -> Option<String> {
    let value = value.cast_signed();
    let whole = f64::from(value >> 4);
    if value & 1 == 0 {
        return Some((value >> 1).to_string());
    }
    number(whole * FACTORS.get(usize::try_from(value >> 1 & 7).ok()?)?)
}

/// Returns a number of four bytes: a mantissa, a sign, and a power of ten.
fn packed(value: usize) -> Option<String> {
    let exponent = i32::try_from(value & 0xf).ok()?;
    let exponent = if value & 0x10 == 0 { exponent } else { -exponent };
    let sign = if value & 0x20 == 0 { 1.0 } else { -1.0 };
    let mantissa = f64::from(u32::try_from(value >> 6).ok()?);
    number(sign * mantissa * 10_f64.powi(exponent))
}

#[cfg(test)]
pub(super) fn sample() -> Vec<u8> {
    let record = |kind: u16, content: &[u8]| {
        let size = u16::try_from(content.len()).unwrap();
        [&kind.to_le_bytes()[..], &size.to_le_bytes(), content].concat()
    };
    [
        record(0, b"\x06\x04"),
        record(0x0f, b"\xff\0\0\0\0'Town\0"),
        record(0x0f, b"\xff\x01\0\0\0^People\0"),
        record(0x0f, b"\xff\0\0\x01\0'Ulm\0"),
        record(0x0e, &[&b"\xff\x01\0\x01\0"[..], &126_790_f64.to_le_bytes()].concat()),
        record(0x0d, b"\xff\x02\0\x01\0\xff\xff"),
        record(1, b""),
    ]
    .concat()
}
