//! The MARC-8 character sets: ASCII, and ANSEL for Latin letters.
//!
//! Source: MARC 21 Specifications for Record Structure, Character Sets, and Exchange Media
//! (MARC-8); ANSI/NISO Z39.47 (ANSEL). In ANSEL, marks stand before their letter; in Unicode, after
//! it.
//!
//! # Differences from the standard
//!
//! * Of the sets that escapes switch to, superscript and subscript digits are read. Each run of Greek,
//!   Cyrillic, Hebrew, Arabic or East Asian characters becomes one U+FFFD.

use super::compose::compose;

/// The letters and signs of ANSEL from 0xA1 on, with spaces for unassigned codes.
const SIGNS: &str = "ŁØĐÞÆŒʹ·♭®±ƠƯʼ ʻłøđþæœʺı£ð ơư  °ℓ℗©♯¿¡ß€";
/// Code of the first of [`SIGNS`].
const SIGNS_START: u8 = 0xa1;
/// The marks of ANSEL from 0xE0 on.
const MARKS: [char; 31] = [
    '\u{309}', '\u{300}', '\u{301}', '\u{302}', '\u{303}', '\u{304}', '\u{306}', '\u{307}',
    '\u{308}', '\u{30c}', '\u{30a}', '\u{fe20}', '\u{fe21}', '\u{315}', '\u{30b}', '\u{310}',
    '\u{327}', '\u{328}', '\u{323}', '\u{324}', '\u{325}', '\u{333}', '\u{332}', '\u{326}',
    '\u{31c}', '\u{32e}', '\u{fe22}', '\u{fe23}', '\u{fffd}', '\u{fffd}', '\u{313}',
];
/// Code of the first of [`MARKS`].
const MARKS_START: u8 = 0xe0;
/// Maximum number of marks before one letter.
const MARKS_MAX: usize = 8;

const ESCAPE: u8 = 0x1b;

/// The character set of the bytes below 0x80.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Charset {
    Ascii,
    Superscript,
    Subscript,
    /// A set that is not read.
    Other,
}

pub(super) fn decode(bytes: &[u8]) -> String {
    let signs: Vec<char> = SIGNS.chars().collect();
    let mut text = String::with_capacity(bytes.len());
    let mut marks: Vec<char> = Vec::new();
    let (mut set, mut is_ansel, mut rest) = (Charset::Ascii, true, bytes);
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == ESCAPE {
            rest = escape(rest, &mut set, &mut is_ansel);
            continue;
        }
        if is_ansel && let Some(mark) = at(&MARKS, *byte, MARKS_START) {
            if marks.len() < MARKS_MAX {
                marks.push(mark);
            }
            continue;
        }
        let sign = match (byte, set) {
            (0x80.., _) if is_ansel => at(&signs, *byte, SIGNS_START).filter(|it| *it != ' '),
            (0x80.., _) | (0x21.., Charset::Other) => None,
            (b'0'..=b'9', Charset::Superscript) => {
                "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(usize::from(byte - b'0'))
            }
            (b'0'..=b'9', Charset::Subscript) => char::from_u32(0x2080 + u32::from(byte - b'0')),
            // Controls for sorting and joining, and fillers, have no meaning here.
            (..=b' ', _) => Some(' '),
            _ => Some(char::from(*byte)),
        };
        match sign {
            Some(sign) => text.push(sign),
            None if text.ends_with('\u{fffd}') => {}
            None => text.push('\u{fffd}'),
        }
        text.extend(marks.drain(..));
    }
    compose(&text)
}

fn at(table: &[char], byte: u8, start: u8) -> Option<char> {
    table.get(usize::from(byte.checked_sub(start)?)).copied()
}

/// Applies an escape sequence; returns the bytes after it.
fn escape<'b>(rest: &'b [u8], set: &mut Charset, is_ansel: &mut bool) -> &'b [u8] {
    let (new_set, new_ansel, count) = match rest {
        [b's', ..] => (Some(Charset::Ascii), None, 1),
        [b'p', ..] => (Some(Charset::Superscript), None, 1),
        [b'b', ..] => (Some(Charset::Subscript), None, 1),
        [b'g', ..] => (Some(Charset::Other), None, 1),
        [b'$', b'(' | b',' | b')' | b'-', _, ..] => (Some(Charset::Other), None, 3),
        [b'$', _, ..] => (Some(Charset::Other), None, 2),
        [b'(' | b',', b'B', ..] => (Some(Charset::Ascii), None, 2),
        [b'(' | b',' | b')' | b'-', b'!', b'E', ..] => (None, Some(true), 3),
        [b')' | b'-', b'E', ..] => (None, Some(true), 2),
        [b'(' | b',', _, ..] => (Some(Charset::Other), None, 2),
        [b')' | b'-', _, ..] => (None, Some(false), 2),
        _ => (None, None, 0),
    };
    *set = new_set.unwrap_or(*set);
    *is_ansel = new_ansel.unwrap_or(*is_ansel);
    rest.get(count..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn latin_letters_and_their_marks() {
        for (bytes, expected) in [
            (&b"plain"[..], "plain"),
            (b"Gr\xe8u\xc7e", "Grüße"),
            (b"Dvo\xe9r\xe2ak", "Dvořák"),
            (b"\xa1\xf3d\xe2z", "Łd\u{324}ź"),
            (b"\xb1\xb2\xb5\xc3", "łøæ©"),
            (b"H\x1bb2\x1bsO 10\x1bp2\x1bs", "H₂O 10²"),
            (b"\x1b(Nabc\x1b(B end", "\u{fffd} end"),
            (b"\x1b$1!0a!0b\x1b(B end", "\u{fffd} end"),
            (b"x\xe2", "x"),
            (b"\x1b", ""),
        ] {
            assert_eq!(decode(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn tables_are_complete() {
        // The standard has 0xA1 to 0xC8.
        assert_eq!(SIGNS.chars().count(), 0xc8 - 0xa1 + 1);
        assert_eq!(usize::from(MARKS_START) + MARKS.len(), 0xff);
    }

    proptest! {
        #[test]
        fn any_bytes_decode(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            decode(&bytes);
        }
    }
}
