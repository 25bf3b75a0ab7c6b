//! Which encoding a response is in, and the response in UTF-8.
//!
//! Source: XML 1.0 §4.3.3 and appendix F (detection of encodings).
//!
//! # Differences from the standard
//!
//! * What is UTF-8, with characters beyond ASCII, is taken for that whatever is declared: templates keep
//!   declarations that have long been wrong, and no other text looks like it.
//! * UTF-16 that is declared in single bytes is none, and taken for UTF-8: what writes to a string in memory
//!   often names that string's encoding.

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
    let is_wide = [UTF_16LE, UTF_16BE].contains(&encoding);
    let is_plain = !bytes.is_ascii() || encoding.is_ascii_compatible();
    if !is_wide && is_plain && std::str::from_utf8(bytes).is_ok() {
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
    let encoding = Encoding::for_label(label).filter(|it| ![UTF_16LE, UTF_16BE].contains(it));
    encoding.unwrap_or_else(|| {
        notes.add(What::Encoding, 0);
        UTF_8
    })
}

fn label(head: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(head, b"<?xml")?;
    // One within a record is not the page's.
    let is_within = memchr::memmem::find(head.get(..start)?, b"OAI-PMH").is_some();
    let start = Some(start).filter(|_| !is_within)?;
    let rest = head.get(start..)?;
    let rest = rest.get(..memchr::memchr(b'>', rest)?)?;
    let rest = rest.get(memchr::memmem::find(rest, b"encoding")? + b"encoding".len()..)?;
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, rest) = rest.split_first()?;
    rest.get(..memchr::memchr(*quote, rest)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &str, has_note: bool) {
        let mut notes = Notes::default();
        let found = in_utf8(bytes, &mut notes).unwrap();
        assert_eq!(
            (std::str::from_utf8(&found), notes.into_vec().is_empty()),
            (Ok(expected), !has_note)
        );
    }

    #[test]
    fn what_is_utf_8_is_that_whatever_is_declared() {
        for label in ["iso-8859-1", "GB2312", "Shift_JIS", "Big5"] {
            let text = format!("<?xml version='1.0' encoding='{label}'?><a>\u{e9}</a>");
            check(text.as_bytes(), &text, true);
        }
        // As it is written where a string in memory is UTF-16.
        let text = "<?xml version=\"1.0\" encoding=\"utf-16\"?><a>\u{e9}</a>";
        check(text.as_bytes(), text, true);
    }

    #[test]
    fn what_is_declared_counts_for_other_bytes() {
        let head = "<?xml version='1.0' encoding='Shift_JIS'?>";
        check(&[head.as_bytes(), b"\x83e"].concat(), &format!("{head}\u{30c6}"), false);
        let head = "<?xml version='1.0' encoding='iso-2022-jp'?>";
        check(&[head.as_bytes(), b"\x1b$B%F\x1b(B"].concat(), &format!("{head}\u{30c6}"), false);
        // One within a record says nothing of the page.
        let text = "<OAI-PMH><a><?xml version='1.0' encoding='Shift_JIS'?>";
        check(text.as_bytes(), text, false);
    }
}
