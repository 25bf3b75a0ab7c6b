//! Repairs of characters, references and stray markup in records and pages that are not XML.
//!
//! Source: XML 1.0 §2.2 (characters), §2.4 (character data), §4.1 (references); common errors of
//! repositories.
//!
//! * Bytes that are not UTF-8 become U+FFFD. If a piece has no non-ASCII UTF-8 at all, they are
//!   read as windows-1252, so that a page in Latin-1 with a wrong declaration keeps its letters.
//! * Characters that XML does not allow become a space, both as such and by number. Two numbers
//!   that are a surrogate pair become its character; other surrogates become U+FFFD.
//! * Entities of HTML become their characters. `&` without a reference, `<` without a tag, and
//!   `]]>` in text are escaped.
//! * Comments, and XML declarations after the beginning, are removed.
//!
//! Tags are not repaired: elements that are not closed, or closed in the wrong order, stay so.

use std::borrow::Cow;

use super::entities::entity;
use super::notes::{NoteKind, Notes};
use super::walk::referred;
use crate::response::is_char;

/// Longest recognized reference, in bytes.
const REFERENCE_BYTES_MAX: usize = 32;

/// Repairs a piece of a response, which begins at `offset`; `None` if the result is longer than
/// `bytes_max`.
pub(super) fn mend(
    bytes: &[u8],
    bytes_max: usize,
    offset: u64,
    notes: &mut Notes,
) -> Option<String> {
    let text = decoded(bytes, offset, notes);
    let (out, unended) = (String::new(), Unended::default());
    let mut mender = Mender { text: &text, out, offset, notes, unended };
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|it| !it.is_empty()) {
        let plain = rest.find(|it| matches!(it, '&' | '<' | ']') || !is_char(it));
        let plain = plain.unwrap_or(rest.len());
        mender.out.push_str(rest.get(..plain).unwrap_or_default());
        at += plain;
        if bytes_max < mender.out.len() {
            return None;
        }
        let Some(next) = text.get(at..).and_then(|it| it.chars().next()) else { break };
        at += match next {
            '&' => mender.reference(at),
            '<' => mender.markup(at),
            ']' => mender.bracket(at),
            other => {
                mender.put(' ', NoteKind::Character);
                other.len_utf8()
            }
        };
    }
    Some(mender.out)
}

fn decoded<'a>(bytes: &'a [u8], offset: u64, notes: &mut Notes) -> Cow<'a, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    notes.add(NoteKind::Utf8, offset);
    if bytes.utf8_chunks().all(|it| it.valid().is_ascii()) {
        return encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0;
    }
    String::from_utf8_lossy(bytes)
}

#[derive(Debug)]
struct Mender<'t, 'n> {
    text: &'t str,
    out: String,
    offset: u64,
    notes: &'n mut Notes,
    unended: Unended,
}

/// The kinds of markup that have no end in the rest of the piece. Their ends are not searched for
/// again, because a piece may have very many beginnings.
#[derive(Debug, Default)]
struct Unended {
    comment: bool,
    declaration: bool,
}

/// Returns the length of the markup at the beginning of `rest`, including `end`; `None` if there is
/// no end.
fn length(rest: &str, end: &str, unended: &mut bool) -> Option<usize> {
    let found = Some(rest).filter(|_| !*unended).and_then(|it| it.find(end));
    *unended = found.is_none();
    found.map(|it| it + end.len())
}

impl<'t> Mender<'t, '_> {
    fn rest(&self, at: usize) -> &'t str {
        self.text.get(at..).unwrap_or_default()
    }

    fn put(&mut self, char: char, kind: NoteKind) {
        match char {
            '&' => self.out.push_str("&amp;"),
            '<' => self.out.push_str("&lt;"),
            _ => self.out.push(char),
        }
        self.notes.add(kind, self.offset);
    }

    /// Handles `&`. This and the next methods return the number of bytes that they have consumed.
    fn reference(&mut self, at: usize) -> usize {
        let rest = self.rest(at);
        let Some(name) = reference_name(rest) else {
            self.put('&', NoteKind::Ampersand);
            return 1;
        };
        let whole = name.len() + 2;
        if referred(name).is_some() {
            self.out.push_str(rest.get(..whole).unwrap_or_default());
            return whole;
        }
        if let Some(char) = entity(name) {
            self.put(char, NoteKind::Entity);
            return whole;
        }
        let Some(number) = name.strip_prefix('#') else {
            self.put('&', NoteKind::Ampersand);
            return 1;
        };
        let Some(code) = code(number) else {
            self.put('&', NoteKind::Ampersand);
            return 1;
        };
        if let 0xd800..0xdc00 = code
            && let Some(second) = reference_name(self.rest(at + whole))
            && let Some(low @ 0xdc00..0xe000) = second.strip_prefix('#').and_then(self::code)
        {
            let pair = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            self.put(char::from_u32(pair).unwrap_or('\u{fffd}'), NoteKind::Character);
            return whole + second.len() + 2;
        }
        let sound = char::from_u32(code).filter(|it| is_char(*it));
        let replaced = sound.unwrap_or(if code < 0x20 { ' ' } else { '\u{fffd}' });
        self.put(replaced, NoteKind::Character);
        whole
    }

    fn markup(&mut self, at: usize) -> usize {
        let rest = self.rest(at);
        if rest.starts_with("<![CDATA[") {
            return self.cdata(rest);
        }
        let left_out = match rest {
            _ if rest.starts_with("<!--") => length(rest, "-->", &mut self.unended.comment),
            _ if 0 < at && is_declaration(rest) => {
                length(rest, "?>", &mut self.unended.declaration)
            }
            _ => None,
        };
        if let Some(length) = left_out {
            self.notes.add(NoteKind::Markup, self.offset);
            return length;
        }
        let behind = rest.as_bytes().get(1).copied().unwrap_or_default();
        let begins = behind.is_ascii_alphabetic()
            || matches!(behind, b'/' | b'!' | b'?' | b'_' | 0x80..)
            // The piece ends here, so its markup is cut off. This is not repaired.
            || rest.len() == 1;
        if begins {
            self.out.push('<');
        } else {
            self.put('<', NoteKind::Markup);
        }
        1
    }

    fn cdata(&mut self, rest: &str) -> usize {
        let length = rest.find("]]>").map_or(rest.len(), |it| it + 3);
        for char in rest.get(..length).unwrap_or_default().chars() {
            if is_char(char) {
                self.out.push(char);
            } else {
                self.out.push(' ');
                self.notes.add(NoteKind::Character, self.offset);
            }
        }
        length
    }

    /// Handles `]`, outside of CDATA.
    fn bracket(&mut self, at: usize) -> usize {
        if self.rest(at).starts_with("]]>") {
            self.out.push_str("]]&gt;");
            self.notes.add(NoteKind::Markup, self.offset);
            return 3;
        }
        self.out.push(']');
        1
    }
}

/// Returns the text between `&` at the beginning and its `;`.
fn reference_name(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('&')?;
    let end = rest.bytes().take(REFERENCE_BYTES_MAX).position(|it| it == b';')?;
    let name = rest.get(..end)?;
    let sound = |it: u8| it.is_ascii_alphanumeric() || it == b'#';
    Some(name).filter(|it| !it.is_empty() && it.bytes().all(sound))
}

/// Reads the number of a character: `65`, `x41`.
fn code(number: &str) -> Option<u32> {
    match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => number.parse().ok(),
    }
}

fn is_declaration(text: &str) -> bool {
    let behind = text.strip_prefix("<?xml").and_then(|it| it.bytes().next());
    behind.is_some_and(|it| it.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &str, kinds: &[NoteKind]) {
        let mut notes = Notes::default();
        assert_eq!(mend(bytes, 1_000, 0, &mut notes).as_deref(), Some(expected));
        let found: Vec<NoteKind> = notes.0.iter().map(|it| it.kind).collect();
        assert_eq!(found, kinds, "{expected}");
    }

    #[test]
    fn valid_text_stays_unchanged() {
        for text in [
            "",
            "<a b=\"c\">d &amp; &#65;&#x1F600; ]] > e</a>",
            "<a><![CDATA[ & < &nbsp; ]]></a>",
            "Ünïcödé \u{10ffff}\t\r\n",
        ] {
            check(text.as_bytes(), text, &[]);
        }
    }

    #[test]
    fn unclosed_markup_is_searched_once() {
        for begin in ["<!--", "<?xml "] {
            // Quadratic, these would take minutes.
            let text = format!("a{}", begin.repeat(1 << 20));
            let mended = mend(text.as_bytes(), usize::MAX, 0, &mut Notes::default());
            assert!(mended.is_some_and(|it| it.contains(begin.trim_end())));
        }
        check(b"a<!-- b --><!-- c --> <!-- d", "a <!-- d", &[NoteKind::Markup]);
    }

    #[test]
    fn characters_and_references_are_mended() {
        check(b"a\x01b\x0bc", "a b c", &[NoteKind::Character]);
        check("a\u{ffff}".as_bytes(), "a ", &[NoteKind::Character]);
        check(b"<![CDATA[a\x00b]]>c", "<![CDATA[a b]]>c", &[NoteKind::Character]);
        check(b"a&#11;b&#x0;", "a b ", &[NoteKind::Character]);
        check(b"&#xD83D;&#xDE00;", "\u{1f600}", &[NoteKind::Character]);
        check(b"&#55357;&#56832;", "\u{1f600}", &[NoteKind::Character]);
        check(b"&#xD83D;x&#xDE00;", "\u{fffd}x\u{fffd}", &[NoteKind::Character]);
        check(b"&nbsp;&eacute;", "\u{a0}\u{e9}", &[NoteKind::Entity]);
        check(
            b"AT&T & &; &x &foo; &#; &#zz;",
            "AT&amp;T &amp; &amp;; &amp;x &amp;foo; &amp;#; &amp;#zz;",
            &[NoteKind::Ampersand],
        );
        check(b"a?b=1&c=2", "a?b=1&amp;c=2", &[NoteKind::Ampersand]);
    }

    #[test]
    fn bytes_are_mended() {
        check(b"Universit\xe9", "Universit\u{e9}", &[NoteKind::Utf8]);
        check(b"\xc3\xa9 \xc3 x", "\u{e9} \u{fffd} x", &[NoteKind::Utf8]);
        check(b"\xed\xa0\x80\xc3\xa9", "\u{fffd}\u{fffd}\u{fffd}\u{e9}", &[NoteKind::Utf8]);
    }

    #[test]
    fn stray_markup_is_mended() {
        check(b"1 < 2 <3 << <a/>", "1 &lt; 2 &lt;3 &lt;&lt; <a/>", &[NoteKind::Markup]);
        check(b"a]]>b", "a]]&gt;b", &[NoteKind::Markup]);
        check(b"<m><?xml version='1.0'?><a/><!-- -- --></m>", "<m><a/></m>", &[NoteKind::Markup]);
        check(b"<?xml version='1.0'?><a/>", "<?xml version='1.0'?><a/>", &[]);
    }

    #[test]
    fn a_too_large_result_is_given_up() {
        assert_eq!(mend(&[b'&'; 300], 1_000, 0, &mut Notes::default()), None);
    }

    proptest! {
        #[test]
        fn any_bytes_become_characters_of_xml(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mended = mend(&bytes, 10_000, 0, &mut Notes::default()).unwrap();
            prop_assert!(mended.chars().all(is_char));
            // A second repair changes nothing more.
            let mut notes = Notes::default();
            let again = mend(mended.as_bytes(), 10_000, 0, &mut notes).unwrap();
            prop_assert!(again.chars().all(is_char));
        }
    }
}
