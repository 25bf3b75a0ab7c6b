//! Which encoding a response is in, and the response in UTF-8.
//!
//! Source: XML 1.0 §4.3.3 and appendix F (detection of encodings).
//!
//! # Differences from the standard
//!
//! * What is UTF-8, with characters beyond ASCII, is taken for that even where a single-byte encoding is
//!   declared: templates keep declarations that have long been wrong, and no other text looks like it.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::notes::{Notes, What};

/// Largest response that is read in another encoding than UTF-8, in bytes.
pub const TRANSCODED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How far an XML declaration is looked for, in bytes: junk may stand before it.
const DECLARATION_BYTES_MAX: usize = 4 * 1024;

/// The response in UTF-8, or bytes that were meant to be that, without a byte order mark.
///
/// # Errors
///
/// The name of an encoding in which it is too large to be read.
pub(super) fn in_utf8<'a>(
    bytes: &'a [u8],
    notes: &mut Notes,
) -> Result<Cow<'a, [u8]>, &'static str> {
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return Ok(Cow::Borrowed(rest));
    }
    let encoding = match bytes {
        [0xff, 0xfe, ..] | [b'<', 0, ..] => UTF_16LE,
        [0xfe, 0xff, ..] | [0, b'<', ..] => UTF_16BE,
        _ => declared(bytes, notes),
    };
    if encoding == UTF_8 {
        return Ok(Cow::Borrowed(bytes));
    }
    if encoding.is_single_byte() && std::str::from_utf8(bytes).is_ok() {
        if !bytes.is_ascii() {
            notes.add(What::Encoding, 0);
        }
        return Ok(Cow::Borrowed(bytes));
    }
    if TRANSCODED_BYTES_MAX < bytes.len() {
        return Err(encoding.name());
    }
    let (text, _, has_replaced) = encoding.decode(bytes);
    if has_replaced {
        notes.add(What::Utf8, 0);
    }
    Ok(Cow::Owned(text.into_owned().into_bytes()))
}

/// The encoding of the XML declaration; UTF-8 without one, and for one that nobody knows.
fn declared(bytes: &[u8], notes: &mut Notes) -> &'static Encoding {
    let head = bytes.get(..DECLARATION_BYTES_MAX).unwrap_or(bytes);
    let Some(label) = label(head) else { return UTF_8 };
    Encoding::for_label(label).unwrap_or_else(|| {
        notes.add(What::Encoding, 0);
        UTF_8
    })
}

fn label(head: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(head, b"<?xml")?;
    let rest = head.get(start..)?;
    let rest = rest.get(..memchr::memchr(b'>', rest)?)?;
    let rest = rest.get(memchr::memmem::find(rest, b"encoding")? + b"encoding".len()..)?;
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, rest) = rest.split_first()?;
    rest.get(..memchr::memchr(*quote, rest)?)
}
