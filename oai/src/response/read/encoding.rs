//! The encoding of a response, and its conversion to UTF-8.
//!
//! Source: XML 1.0 §4.3.3 and appendix F (detection of encodings).
//!
//! # Differences from the standard
//!
//! * Valid UTF-8 with non-ASCII characters counts as UTF-8 despite its declaration: templates often
//!   have wrong declarations, and text in other encodings does not look like UTF-8.
//! * A declaration of UTF-16 in single bytes is ignored: a program that writes to a string in
//!   memory often declares that string's encoding.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::notes::{NoteKind, Notes};

/// Largest response in another encoding than UTF-8, in bytes.
pub const TRANSCODED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Length of the text in which the XML declaration is searched, in bytes: junk may precede it.
const DECLARATION_BYTES_MAX: usize = 4 * 1024;

/// Returns the response in UTF-8, or the bytes intended as such, without a byte order mark. Returns
/// the name of the encoding as the error if the response is too large to be converted.
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
            notes.add(NoteKind::Encoding, 0);
        }
        return Ok(Cow::Borrowed(bytes));
    }
    if TRANSCODED_BYTES_MAX < bytes.len() {
        return Err(encoding.name());
    }
    let (text, _, has_replaced) = encoding.decode(bytes);
    if has_replaced {
        notes.add(NoteKind::Utf8, 0);
    }
    Ok(Cow::Owned(text.into_owned().into_bytes()))
}

/// Returns the encoding of the XML declaration; UTF-8 if it is missing or unknown.
fn declared(bytes: &[u8], notes: &mut Notes) -> &'static Encoding {
    let head = bytes.get(..DECLARATION_BYTES_MAX).unwrap_or(bytes);
    let Some(label) = label(head) else { return UTF_8 };
    let encoding = Encoding::for_label(label).filter(|it| ![UTF_16LE, UTF_16BE].contains(it));
    encoding.unwrap_or_else(|| {
        notes.add(NoteKind::Encoding, 0);
        UTF_8
    })
}

fn label(head: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(head, b"<?xml")?;
    // A declaration within a record is not that of the page.
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
        assert_eq!((std::str::from_utf8(&found), notes.0.is_empty()), (Ok(expected), !has_note));
    }

    #[test]
    fn utf_8_counts_despite_its_declaration() {
        for label in ["iso-8859-1", "GB2312", "Shift_JIS", "Big5"] {
            let text = format!("<?xml version='1.0' encoding='{label}'?><a>\u{e9}</a>");
            check(text.as_bytes(), &text, true);
        }
        // Programs whose strings in memory are UTF-16 write such declarations.
        let text = "<?xml version=\"1.0\" encoding=\"utf-16\"?><a>\u{e9}</a>";
        check(text.as_bytes(), text, true);
    }

    #[test]
    fn the_declaration_counts_for_other_bytes() {
        let head = "<?xml version='1.0' encoding='Shift_JIS'?>";
        check(&[head.as_bytes(), b"\x83e"].concat(), &format!("{head}\u{30c6}"), false);
        let head = "<?xml version='1.0' encoding='iso-2022-jp'?>";
        check(&[head.as_bytes(), b"\x1b$B%F\x1b(B"].concat(), &format!("{head}\u{30c6}"), false);
        // A declaration within a record does not concern the page.
        let text = "<OAI-PMH><a><?xml version='1.0' encoding='Shift_JIS'?>";
        check(text.as_bytes(), text, false);
    }
}
