//! A walk through XML: starts, ends and text, in order.
//!
//! Source: XML 1.0, by `quick-xml`.
//!
//! # Differences from the specification
//!
//! * The only entities are the five that need no declaration; others show nothing. So no text is longer than
//!   its source.
//! * Namespaces are not resolved: elements are known by their local names, which are unique within each part
//!   of the vocabularies here.
//! * Ends need not match their starts: broken documents are read as far as they make sense.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape::{resolve_xml_entity, unescape};
use quick_xml::events::{BytesStart, Event};

use crate::cancellable::TimeLimit;
use crate::object::ProblemKind;
use crate::text::decode;

/// Maximum number of attributes of an element that are read.
const ATTRIBUTES_MAX: usize = 64;
/// Length of the front in which the charset's declaration is looked for, in bytes.
const DECLARATION_BYTES_MAX: usize = 256;

/// One start, end or text of a document.
#[derive(Debug)]
pub(crate) enum Piece<'p> {
    /// An element starts; one that is empty ends right after.
    Start(Element<'p>),
    /// The element of this local name ends.
    End(&'p str),
    /// Text.
    Text(&'p str),
}

/// The start of an element.
#[derive(Debug)]
pub(crate) struct Element<'p> {
    /// Its name without prefix.
    pub(crate) name: &'p str,
    start: &'p BytesStart<'p>,
}

impl<'p> Element<'p> {
    /// Returns the value of the attribute with this local name; empty without one.
    pub(crate) fn get(&self, name: &str) -> Cow<'p, str> {
        self.find(|full| full.rsplit(':').next() == Some(name))
    }

    /// Returns the value of the attribute with this prefixed name; empty without one.
    pub(crate) fn get_prefixed(&self, name: &str) -> Cow<'p, str> {
        self.find(|full| full == name)
    }

    fn find(&self, is_wanted: impl Fn(&str) -> bool) -> Cow<'p, str> {
        let mut attributes = self.start.attributes();
        // The check for duplicates would compare all attributes with each other.
        let attributes = attributes.with_checks(false).take(ATTRIBUTES_MAX).flatten();
        let matching = attributes.into_iter().find(|it| is_wanted(it.key.into_inner()));
        let value = matching.map(|it| it.value).unwrap_or_default();
        match unescape(&value) {
            Ok(Cow::Owned(plain)) => Cow::Owned(plain),
            _ => value,
        }
    }
}

/// Decodes a document by its byte order mark or declaration.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    let front = bytes.get(..bytes.len().min(DECLARATION_BYTES_MAX)).unwrap_or_default();
    let front = String::from_utf8_lossy(front);
    let declaration = front.split("?>").next().unwrap_or_default();
    let declared = declaration.split_once("encoding=").map(|(_, it)| it.trim_start());
    let declared = declared.and_then(|it| it.get(1..)?.split(['"', '\'']).next());
    decode(bytes, declared)
}

/// Walks through `text`, and calls `visit` with every piece until it returns `false`. The error is the reason
/// why the end was not reached.
pub(crate) fn walk(
    text: &str,
    cancelled: &dyn Fn() -> bool,
    visit: &mut dyn FnMut(Piece<'_>) -> bool,
) -> Result<(), (ProblemKind, String)> {
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut time = TimeLimit::new(cancelled);
    loop {
        if !time.goes_on() {
            return Err((ProblemKind::Time, "ran out of time".to_owned()));
        }
        let event = reader.read_event().map_err(|error| {
            let at = reader.error_position();
            (ProblemKind::Broken, format!("is broken at byte {at}: {error}"))
        })?;
        let goes_on = match &event {
            Event::Start(start) => {
                let name = start.local_name().into_inner();
                visit(Piece::Start(Element { name, start }))
            }
            Event::Empty(start) => {
                let name = start.local_name().into_inner();
                visit(Piece::Start(Element { name, start })) && visit(Piece::End(name))
            }
            Event::End(end) => visit(Piece::End(end.local_name().into_inner())),
            Event::Text(text) => visit(Piece::Text(text)),
            Event::CData(text) => visit(Piece::Text(text)),
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(character)) => visit(Piece::Text(character.encode_utf8(&mut [0; 4]))),
                _ => visit(Piece::Text(resolve_xml_entity(reference).unwrap_or_default())),
            },
            Event::Eof => return Ok(()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => true,
        };
        if !goes_on {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut seen = String::new();
        let result = walk(text, &|| false, &mut |piece| {
            match piece {
                Piece::Start(it) => seen += &format!("<{} {}>", it.name, it.get("a")),
                Piece::End(name) => seen += &format!("</{name}>"),
                Piece::Text(text) => seen += text,
            }
            true
        });
        if let Err((_, message)) = result {
            seen += message.split(':').next().unwrap();
        }
        assert_eq!(seen, expected, "{text}");
    }

    #[test]
    fn pieces() {
        check(
            "<?xml version='1.0'?><x:b x:a='1&amp;2'>&lt;&#228;&#xE9;<![CDATA[<&]]><c/></x:b>",
            "<b 1&2><äé<&<c ></c></b>",
        );
    }

    #[test]
    fn nothing_grows_and_nothing_needs_to_match() {
        check("<!DOCTYPE a [<!ENTITY b \"cccc\">]><a>&b;&amp; & d</e>", "<a >& & d</e>");
        check("<a b", "is broken at byte 0");
    }

    #[test]
    fn charsets() {
        assert_eq!(
            text(b"<?xml version='1.0' encoding='ISO-8859-1'?>\xe4x").chars().rev().nth(1),
            Some('ä')
        );
        assert_eq!(text(b"\xff\xfe<\0a\0"), "<a");
    }
}
