//! Strings in binaries of any kind: version marks, copyright notices and messages.
//!
//! Source: Essence's Binary summarizer (strings); what(1) and ident(1) for marks of source control.

use std::borrow::Cow;

use memchr::memmem;

use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::text::{Body, one_line};
use crate::{Draft, Input};

/// Longest string, in bytes.
const STRING_BYTES_MAX: usize = 200;
/// Shortest sentence, in bytes.
const SENTENCE_BYTES_MIN: usize = 12;
/// Fewest characters of a string in UTF-16, and of a name.
const NAME_CHARACTERS_MIN: usize = 4;
/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// The strings that what(1) and ident(1) print.
    pub(crate) idents: Vec<String>,
    pub(crate) copyrights: Vec<String>,
    pub(crate) version: String,
    /// Whether there are more marks of one kind than are read.
    is_cut: bool,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &input.object.bytes;
    let mut draft = Draft::default();
    input.report(Limit::ProgramScan, &mut draft);
    marks(bytes, input.cancelled).add_to(&mut draft);
    set_sentences(bytes, input, &mut draft);
    draft
}

/// Makes the strings that look like sentences the text of a draft.
pub(super) fn set_sentences(bytes: &[u8], input: &Input<'_>, draft: &mut Draft<'_>) {
    let (limit, bytes_max) = (Limit::ProgramText, input.text_bytes_max());
    let body = sentences(bytes, bytes_max.min(limit.bound()));
    if body.is_over() && limit.bound() <= bytes_max {
        draft.cut(limit.cut());
        draft.body = Cow::Owned(body.finish());
    } else {
        draft.set_body(body);
    }
}

impl Marks {
    /// Adds the marks as attributes.
    pub(crate) fn add_to(&self, draft: &mut Draft<'_>) {
        if self.is_cut {
            draft.cut(Limit::Marks.cut());
        }
        draft.other("Version", self.version.clone());
        draft.other("Copyright", self.copyrights.join("\n"));
        draft.other("Identification", self.idents.join("\n"));
    }
}

pub(crate) fn marks(bytes: &[u8], cancelled: &dyn Fn() -> bool) -> Marks {
    let bytes = bytes.get(..bytes.len().min(Limit::ProgramScan.bound())).unwrap_or_default();
    let mut marks = Marks::default();
    if cancelled() {
        return marks;
    }
    let mut is_cut = false;
    let mut find = |mark: &'static [u8]| -> Vec<usize> {
        let found: Vec<usize> =
            memmem::find_iter(bytes, mark).take(Limit::Marks.bound() + 1).collect();
        is_cut |= Limit::Marks.bound() < found.len();
        found.into_iter().take(Limit::Marks.bound()).collect()
    };
    for at in find(b"@(#)") {
        let text = printable(bytes, at + 4);
        let end = text.find(['"', '>', '\\', '\n']).unwrap_or(text.len());
        add(&mut marks.idents, text.get(..end).unwrap_or_default());
    }
    for mark in [b"$Id: ".as_slice(), b"$Header: ", b"$Revision: "] {
        for at in find(mark) {
            let text = printable(bytes, at + 1);
            if let Some((ident, _)) = text.split_once('$') {
                add(&mut marks.idents, ident);
            }
        }
    }
    for at in find(b"opyright ") {
        let start = line_start(bytes, at);
        let text = printable(bytes, start);
        // Matches with a year are notices; others are texts about notices.
        if text.contains("19") || text.contains("20") {
            add(&mut marks.copyrights, text.lines().next().unwrap_or_default());
        }
    }
    for at in find(b"ersion ") {
        let number = printable(bytes, at + 7);
        let end = number.find(|it: char| !it.is_ascii_alphanumeric() && !"._+~-".contains(it));
        let number = number.get(..end.unwrap_or(number.len())).unwrap_or_default();
        let dotted = number.starts_with(|it: char| it.is_ascii_digit()) && number.contains('.');
        if dotted && matches!(at.checked_sub(1).and_then(|it| bytes.get(it)), Some(b'v' | b'V')) {
            number.trim_end_matches(['.', '-']).clone_into(&mut marks.version);
            break;
        }
    }
    marks.is_cut = is_cut;
    marks
}

fn add(strings: &mut Vec<String>, string: &str) {
    let string = one_line(string, STRING_BYTES_MAX);
    if 3 < string.len() && !strings.contains(&string) {
        strings.push(string);
    }
}

/// Returns the start of the string around `at`.
fn line_start(bytes: &[u8], at: usize) -> usize {
    let from = at.saturating_sub(STRING_BYTES_MAX);
    let before = bytes.get(from..at).unwrap_or_default();
    before.iter().rposition(|it| !is_printable(*it)).map_or(from, |it| from + it + 1)
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t') || 0x80 <= byte
}

/// Returns the printable text at `at`, up to the end of its line.
fn printable(bytes: &[u8], at: usize) -> Cow<'_, str> {
    let rest = bytes.get(at..).unwrap_or_default();
    let rest = rest.get(..rest.len().min(STRING_BYTES_MAX)).unwrap_or_default();
    let end = rest.iter().position(|it| !is_printable(*it)).unwrap_or(rest.len());
    String::from_utf8_lossy(rest.get(..end).unwrap_or_default())
}

/// Returns the strings that look like sentences (messages, usage, help), one on each line.
fn sentences(bytes: &[u8], bytes_max: usize) -> Body {
    let bytes = bytes.get(..bytes.len().min(Limit::ProgramScan.bound())).unwrap_or_default();
    let mut body = Body::new(bytes_max);
    let text = |it: &u8| matches!(*it, b' '..=b'~');
    for run in bytes.split(|it| !text(it)) {
        if body.is_over() {
            break;
        }
        if SENTENCE_BYTES_MIN <= run.len()
            && let Ok(run) = std::str::from_utf8(run)
            && is_sentence(run)
        {
            body.push_line(run.trim());
        }
    }
    body
}

/// Adds the strings in UTF-16 (little-endian), one on each line: runs of letters, digits and signs of
/// Latin, Greek, Cyrillic and their neighbors, mostly letters. Other scripts would be found in data
/// that are no text.
pub(crate) fn wide(bytes: &[u8], body: &mut Body, cancelled: &dyn Fn() -> bool) {
    let mut time = TimeLimit::new(cancelled);
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|it| !it.is_empty()) {
        if !time.goes_on() || body.is_full() {
            break;
        }
        let units = rest.as_chunks::<2>().0.iter().map(|it| u16::from_le_bytes(*it));
        let characters = units.map_while(|it| char::from_u32(u32::from(it)).filter(is_wide_text));
        let run: String = characters.collect();
        let count = run.chars().count();
        if count < NAME_CHARACTERS_MIN {
            at += 1;
            continue;
        }
        // Words beyond Latin have spaces between them; numbers that look like such letters have none.
        let is_likely = run.contains(' ') || run.chars().all(|it| it < '\u{100}');
        if is_likely && is_mostly_letters(&run) {
            body.push_squeezed_line(&run);
        }
        at += 2 * count;
    }
}

fn is_wide_text(it: &char) -> bool {
    matches!(it, '\t' | ' '..='~' | '\u{a0}'..='\u{58f}' | '\u{2010}'..='\u{2026}' | '€')
}

/// Adds the strings in ASCII, one on each line: sentences, and names between zeros.
pub(crate) fn named(bytes: &[u8], body: &mut Body, cancelled: &dyn Fn() -> bool) {
    let mut time = TimeLimit::new(cancelled);
    let mut last = "";
    let mut before = 0;
    for run in bytes.split(|it| !matches!(*it, b' '..=b'~')) {
        let after = bytes.get(before + run.len()).copied().unwrap_or(0);
        let is_between =
            before.checked_sub(1).and_then(|it| bytes.get(it)).is_none_or(|it| *it == 0);
        before += run.len() + 1;
        if !time.goes_on() || body.is_full() {
            break;
        }
        let Ok(text) = std::str::from_utf8(run) else { continue };
        let text = text.trim();
        let is_name = is_between
            && after == 0
            && text.len() <= NAME_BYTES_MAX
            && text.starts_with(|it: char| it.is_ascii_alphabetic())
            && is_mostly_letters(text);
        let is_long = SENTENCE_BYTES_MIN <= text.len() && is_sentence(text);
        if (is_name || is_long) && text != last {
            last = text;
            body.push_line(text);
        }
    }
}

/// Returns whether a string is long enough and varied, and three quarters of it are spaces, digits and
/// letters, those of Latin-1 not counted: they are likely in data that are no text.
fn is_mostly_letters(run: &str) -> bool {
    let is_letter = |it: &char| match it {
        ' ' => true,
        it if it.is_ascii() => it.is_ascii_alphanumeric(),
        it => '\u{100}' <= *it && it.is_alphabetic(),
    };
    let all = run.chars().count();
    let letters = run.chars().filter(is_letter).count();
    let is_varied = run.chars().any(|it| !run.starts_with(it));
    NAME_CHARACTERS_MIN <= all && all * 3 <= letters * 4 && is_varied
}

/// Returns whether a string has three words of mostly small letters, and at least 60 % letters.
fn is_sentence(run: &str) -> bool {
    let words = run.split(' ').filter(|word| {
        2 <= word.len()
            && word.trim_matches(|it: char| it.is_ascii_punctuation()).len() * 5 >= word.len() * 3
            && word.bytes().filter(u8::is_ascii_lowercase).count() * 3 >= word.len() * 2
    });
    let letters = run.bytes().filter(u8::is_ascii_alphabetic).count();
    words.take(3).count() == 3 && run.len() * 3 <= letters * 5
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{named, wide};
    use crate::Type;
    use crate::testing::render;
    use crate::text::Body;

    fn check(bytes: &[u8], expected: &str) {
        assert_eq!(render("x.bin", Type::Binary, bytes), expected);
    }

    #[test]
    fn marks_and_sentences() {
        check(
            b"\x00\x01@(#)ed.c 1.2 (Bell)\"junk\0\0$Id: ed.c,v 1.3 $\0xyzzy-frob-123\0\
              Copyright (c) 1991 Regents\n\0usage: give a file name\0\0no Copyright \0\
              ed version 1.2.3, \0aBcD eFgH iJkL\x07",
            "Title: x.bin\nVersion: 1.2.3\nCopyright: Copyright (c) 1991 Regents\n\
             Identification: ed.c 1.2 (Bell) | Id: ed.c,v 1.3\n\
             Partial-Text: usage: give a file name",
        );
    }

    #[test]
    fn strings_of_two_bytes_a_character_and_names() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let bytes = [
            b"\0\0\x07".to_vec(),
            utf16("Caf\u{e9} menu"),
            vec![0xff, 0xfe, 0xfd],
            utf16("\u{43f}\u{43e} \u{440}\u{435}\u{43a}\u{435}"),
            vec![0, 0xff],
            utf16("\u{101}\u{102}\u{103}\u{104}\u{105}"),
            vec![0, 0xd8],
            utf16("xyz"),
        ]
        .concat();
        let found = |read: fn(&[u8], &mut Body, &dyn Fn() -> bool), bytes: &[u8]| {
            let mut body = Body::new(1000);
            read(bytes, &mut body, &|| false);
            body.finish()
        };
        assert_eq!(
            found(wide, &bytes),
            "Caf\u{e9} menu\n\u{43f}\u{43e} \u{440}\u{435}\u{43a}\u{435}\n"
        );
        let names = b"\0temperature\0temperature\0lat\0x#y!z?\0\x01aside\0sea_level\x02\0many words stand here\x01";
        assert_eq!(found(named, names), "temperature\nmany words stand here\n");
    }

    #[test]
    fn hostile_binaries_end() {
        render("x.bin", Type::Binary, &b"@(#)".repeat(1_000_000));
        render("x.bin", Type::Binary, &b"opyright 19ersion 1".repeat(200_000));
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 32..127_u8, Just(b' ')], 0..300),
        ) {
            render("x.bin", Type::Binary, &bytes);
        }
    }
}
