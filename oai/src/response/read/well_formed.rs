//! The check that a document is well-formed XML.
//!
//! Source: XML 1.0 §2.1 (well-formed documents); Namespaces in XML 1.0 §7.
//!
//! # Differences from the standard
//!
//! * A document with a DOCTYPE, or beyond the limits of the walk, is not well-formed.

use super::encoding::in_utf8;
use super::excerpt;
use super::notes::Notes;
use super::walk::{Cause, Step, Stop, Walker};
use crate::response::is_char;

/// Checks that a document is well-formed XML, in UTF-8 or in the encoding that it declares.
///
/// # Errors
///
/// The first mistake, with its position.
pub(crate) fn well_formed(bytes: &[u8]) -> Result<(), String> {
    let mut notes = Notes::default();
    let utf8 = in_utf8(bytes, &mut notes)
        .map_err(|encoding| format!("it is in {encoding}, and too large to be converted"))?;
    if let Some(note) = notes.0.first() {
        return Err(note.to_string());
    }
    let body = utf8.trim_ascii_start();
    if body.len() < utf8.len() && body.starts_with(b"<?xml") {
        return Err("white space before the XML declaration".to_owned());
    }
    let base = bytes.len().saturating_sub(body.len());
    let wrong = |problem: &str, at: usize| {
        Err(format!("{problem}, at byte {}: {}", base + at, excerpt(body, at)))
    };
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) => return wrong("bytes that are not UTF-8", error.valid_up_to()),
    };
    if let Some((at, _)) = text.char_indices().find(|(_, it)| !is_char(*it)) {
        return wrong("a character that XML does not allow", at);
    }
    match walk(&mut Walker::new(text, &[], false)) {
        Ok(()) => Ok(()),
        Err(Stop { at, cause: Cause::Malformed(problem) }) => wrong(&problem, at),
        Err(Stop { at, cause: Cause::End }) => wrong("an element or a tag without its end", at),
    }
}

fn walk(walker: &mut Walker<'_>) -> Result<(), Stop> {
    let mut has_root = false;
    loop {
        let step = walker.step()?;
        match &step {
            Step::Eof if has_root => return Ok(()),
            Step::Start(_) if !has_root => {
                has_root = true;
                walker.skip()?;
            }
            Step::Text(_) if !step.is_words() => {}
            _ => return Err(Stop::malformed(walker.position(), "text or an element too many")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &[u8], expected: Option<&str>) {
        let found = well_formed(text).err();
        let sound = match (&found, expected) {
            (Some(found), Some(expected)) => found.contains(expected),
            (found, expected) => found.is_none() && expected.is_none(),
        };
        assert!(sound, "{found:?}, not {expected:?}");
    }

    #[test]
    fn mistakes_are_found_with_their_positions() {
        check(b"<?xml version=\"1.0\"?>\n<a b='&lt;'><!-- c --><d/>&amp;</a>\n", None);
        check("\u{feff}<a>\u{e9}</a>".as_bytes(), None);
        check(b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>\xe9</a>", None);
        check(b"<a>b & c</a>", Some("at byte 5: & c"));
        check(b"<a>&nbsp;</a>", Some("&nbsp;"));
        check(b"<a><b></a></b>", Some("at byte 6"));
        check(b"<a><b></b>", Some("without its end"));
        check(b"<a/><b/>", Some("too many"));
        check(b"<a/>b", Some("too many"));
        check(b"", Some(""));
        check(b" <?xml version=\"1.0\"?><a/>", Some("before the XML declaration"));
        check(b"<a>\xe9</a>", Some("not UTF-8, at byte 3"));
        check(b"<a>\x01</a>", Some("does not allow, at byte 3"));
        check(b"<a:b/>", Some("not declared"));
    }
}
