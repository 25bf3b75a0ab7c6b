//! uuencoded files, and `begin-base64` of the successors of uuencode.
//!
//! Source: POSIX.1-2008, uuencode.

use super::budget::Fault;
use super::{Decoded, Walk};
use crate::object::ProblemKind;

/// Lines between two checks of the time limit.
const POLL_LINES: usize = 1000;

struct EncodedFile {
    name: Vec<u8>,
    content: Decoded,
}

pub(super) fn members(walk: &mut Walk<'_, '_>) -> Result<(), Fault> {
    let object = walk.object;
    if files(walk, &object.bytes)? == 0 {
        return Err((ProblemKind::Broken, "holds no uuencoded file".to_owned()));
    }
    Ok(())
}

/// Hands on every encoded file in `text`; returns their count.
pub(super) fn files(walk: &mut Walk<'_, '_>, text: &[u8]) -> Result<usize, Fault> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let mut count = 0;
    let budget = walk.budget;
    while let Some(EncodedFile { name, content }) = next(&mut lines, &|| budget.is_late()) {
        walk.emit(&name, None, content)?;
        count += 1;
    }
    Ok(count)
}

fn next<'a>(
    lines: &mut impl Iterator<Item = &'a [u8]>,
    is_late: &dyn Fn() -> bool,
) -> Option<EncodedFile> {
    let (name, is_base64) = lines.find_map(begin)?;
    let mut content = Decoded::default();
    let broken = |message: &str| Some((ProblemKind::Broken, message.to_owned()));
    for (number, line) in lines.enumerate() {
        if number % POLL_LINES == 0 && is_late() {
            content.fault = Some((ProblemKind::Time, "ran out of time".to_owned()));
            return Some(EncodedFile { name, content });
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_end = if is_base64 { line == b"====" } else { line == b"end" };
        if is_end {
            return Some(EncodedFile { name, content });
        }
        let good = if is_base64 {
            base64(line, &mut content.bytes)
        } else {
            line.is_empty() || uu(line, &mut content.bytes)
        };
        if !good && content.fault.is_none() {
            content.fault = broken(&format!("has a line {} that is not encoded", number + 1));
        }
    }
    content.fault = content.fault.or_else(|| broken("breaks off before its end"));
    Some(EncodedFile { name, content })
}

/// Parses `begin 644 name` or `begin-base64 644 name`; returns the name, and whether it is base64.
fn begin(line: &[u8]) -> Option<(Vec<u8>, bool)> {
    let (rest, is_base64) = match line.strip_prefix(b"begin ") {
        Some(rest) => (rest, false),
        None => (line.strip_prefix(b"begin-base64 ")?, true),
    };
    let space = memchr::memchr(b' ', rest)?;
    let (mode, name) = rest.split_at_checked(space)?;
    let is_mode = (3..=6).contains(&mode.len()) && mode.iter().all(u8::is_ascii_digit);
    let name = name.trim_ascii();
    (is_mode && !name.is_empty()).then(|| (name.to_vec(), is_base64))
}

/// Decodes a line: its count of bytes, then six bits in each character. Returns whether it is valid.
fn uu(line: &[u8], out: &mut Vec<u8>) -> bool {
    let Some((first, rest)) = line.split_first() else { return true };
    let (Some(count), true) = (six(*first), rest.iter().all(|it| six(*it).is_some())) else {
        return false;
    };
    // Spaces at the end of a line are often lost.
    let bits = |at: usize| rest.get(at).copied().and_then(six).unwrap_or_default();
    for number in 0..usize::from(count) {
        let at = number / 3 * 4;
        out.push(match number % 3 {
            0 => bits(at) << 2 | bits(at + 1) >> 4,
            1 => bits(at + 1) << 4 | bits(at + 2) >> 2,
            _ => bits(at + 2) << 6 | bits(at + 3),
        });
    }
    true
}

fn six(character: u8) -> Option<u8> {
    (b' '..=b'`').contains(&character).then_some((character.wrapping_sub(b' ')) & 0x3f)
}

/// Decodes a line of base64; returns whether it is valid, with a length that is a multiple of four.
fn base64(line: &[u8], out: &mut Vec<u8>) -> bool {
    let mut good = true;
    for four in line.trim_ascii().chunks(4) {
        let digits = four.iter().take_while(|it| **it != b'=');
        let (mut bits, mut count) = (0_u32, 0_usize);
        for digit in digits {
            let Some(value) = base64_digit(*digit) else { return false };
            bits = bits << 6 | u32::from(value);
            count += 1;
        }
        good &= four.len() == 4 && count != 1;
        let bytes = (bits << (6 * (4 - count.min(4))) << 8).to_be_bytes();
        out.extend(bytes.iter().take((count * 6) / 8));
    }
    good
}

fn base64_digit(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}
