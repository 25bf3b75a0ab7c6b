//! Scanners for the small parts of a stream: names, byte counts, URLs. They keep no state.
//!
//! Source: TR §3; the original's parser, whose quirks [`Mode::Lenient`](crate::Mode) accepts.
//!
//! Sans-I/O.

use std::ops::Range;

use memchr::memchr2;

use crate::NO_URL;
use crate::error::ErrorKind;
use crate::writer::{encode_url, is_name_byte, is_url_byte};

/// Maximum number of digits in a byte count.
const DIGITS_MAX: usize = 20;

/// A part of the stream: whole (`Some`), not yet complete (`None`) or damaged (`Err`).
pub(crate) type Scan<T> = Result<Option<T>, ErrorKind>;

/// Returns the text of a range that is known to be UTF-8.
pub(crate) fn text<'a>(source: &'a [u8], range: &Range<usize>) -> &'a str {
    std::str::from_utf8(source.get(range.clone()).unwrap_or_default()).unwrap_or_default()
}

pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.first() != Some(&b'@')
        && name.iter().all(|byte| is_name_byte(*byte))
        && std::str::from_utf8(name).is_ok()
}

/// Returns the end of the name at the start of `rest`, which has at most `name_max` bytes.
pub(crate) fn name_end(rest: &[u8], name_max: usize) -> Scan<usize> {
    let head = rest.get(..=name_max).unwrap_or(rest);
    match memchr2(b'{', b'\n', head) {
        Some(end) if head.get(end) == Some(&b'{') => {
            if is_name(head.get(..end).unwrap_or_default()) {
                Ok(Some(end))
            } else {
                Err(ErrorKind::Name)
            }
        }
        Some(_) => Err(ErrorKind::Name),
        None if head.len() > name_max => Err(ErrorKind::NameTooLong),
        None => Ok(None),
    }
}

/// Reads `size}` from `from` on; returns the size in bytes and the offset of the brace.
pub(crate) fn byte_count(rest: &[u8], from: usize) -> Scan<(usize, usize)> {
    let mut size = 0_usize;
    for at in from..=from + DIGITS_MAX {
        match rest.get(at) {
            None => return Ok(None),
            Some(b'}') if at > from => return Ok(Some((size, at))),
            Some(digit @ b'0'..=b'9') => {
                let next =
                    size.checked_mul(10).and_then(|it| it.checked_add(usize::from(digit - b'0')));
                size = next.ok_or(ErrorKind::ByteCount)?;
            }
            Some(_) => return Err(ErrorKind::ByteCount),
        }
    }
    Err(ErrorKind::ByteCount)
}

pub(crate) fn trim_start(line: &[u8]) -> &[u8] {
    let start = line.iter().position(|byte| !matches!(byte, b' ' | b'\t'));
    line.get(start.unwrap_or(line.len())..).unwrap_or_default()
}

/// Cuts white space at the end of a URL; a CR only when `lenient`.
pub(crate) fn trim_end(line: &[u8], lenient: bool) -> &[u8] {
    let last = line
        .iter()
        .rposition(|byte| !(matches!(byte, b' ' | b'\t') || (lenient && *byte == b'\r')));
    line.get(..last.map_or(0, |at| at + 1)).unwrap_or_default()
}

/// Returns the URL of `url }`: an object without attributes that is closed on its first line.
pub(crate) fn closed_on_its_line(url: &[u8]) -> Option<&[u8]> {
    let before = url.strip_suffix(b"}")?;
    let trimmed = trim_end(before, true);
    (trimmed.len() < before.len() || before.is_empty()).then_some(trimmed)
}

/// Returns a URL with all bytes that it may not hold percent-encoded (all but ASCII if it is not
/// UTF-8); [`NO_URL`] if it is empty.
pub(crate) fn repaired(url: &[u8]) -> String {
    if url.is_empty() {
        return NO_URL.to_owned();
    }
    let kept = if std::str::from_utf8(url).is_ok() {
        is_url_byte
    } else {
        |byte: u8| byte.is_ascii_graphic()
    };
    let mut out = Vec::with_capacity(url.len() + 8);
    encode_url(&mut out, url, kept);
    String::from_utf8_lossy(&out).into_owned()
}
