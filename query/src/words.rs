//! The tokenizer: it splits the text of records and of queries into words.
//!
//! A word is a run of letters and digits, in small letters and without accents. Thus `foo_bar`,
//! `foo-bar`, paths and URLs are found by their parts, and as a whole by a phrase of them. Han and
//! kana have no spaces between words: each character is a word, and several are a phrase.
//!
//! A word keeps its ending. A search for a plain word still finds all its forms, since it searches
//! for each form. Phrases, prefixes, fuzzy words and regular expressions mean words as written: on
//! stems, `authentcation~1` would find nothing.
//!
//! Sans-I/O.

use crate::folding::fold_char;

/// Longest word, in bytes as written. Longer runs are left out: they are data, not words.
pub const WORD_BYTES_MAX: usize = 128;

/// Iterator over the words of a text.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    text: &'a str,
    /// How much of the text has been read, in bytes.
    at: usize,
    /// Number of runs read, with those that were too long.
    runs: usize,
}

/// Position of a word in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start, in bytes.
    pub start: usize,
    /// End, in bytes.
    pub end: usize,
    /// Index of the word in the text, from 0. Runs that are too long for a word have an index too.
    pub position: usize,
}

impl<'a> Words<'a> {
    /// Returns the words of `text`.
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0, runs: 0 }
    }

    /// Overwrites `word` with the next word and returns its position; `None` at the end.
    pub fn next_into(&mut self, word: &mut String) -> Option<Span> {
        loop {
            let rest = self.text.get(self.at..)?;
            let before = rest.find(char::is_alphanumeric)?;
            let run = rest.get(before..)?;
            let len = run_len(run);
            let start = self.at + before;
            let span = Span { start, end: start + len, position: self.runs };
            self.at = span.end;
            self.runs += 1;
            if WORD_BYTES_MAX < len {
                continue;
            }
            word.clear();
            let run = run.get(..len)?;
            if run.is_ascii() {
                word.push_str(run);
                word.make_ascii_lowercase();
            } else {
                push_small(word, run.chars().filter(|c| !is_accent(*c)));
            }
            return Some(span);
        }
    }
}

/// Returns the words of `text`.
pub fn split(text: &str) -> Vec<String> {
    let (mut words, mut all, mut word) = (Words::new(text), Vec::new(), String::new());
    while words.next_into(&mut word).is_some() {
        all.push(word.clone());
    }
    all
}

/// Removes accents from `text` and lowers its case; keeps everything else.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    push_small(&mut folded, text.chars());
    folded
}

/// Turns a typed regular expression into one for words: without accents, and without regard to case
/// unless it has only small letters, as words have.
pub fn pattern(typed: &str) -> String {
    let mut pattern = String::with_capacity(typed.len());
    // Capitals stay, because they may be classes: `\W` is not `\w`.
    typed.chars().for_each(|c| push_folded(&mut pattern, c));
    // A case-sensitive automaton is made in half the time.
    let is_small = pattern
        .bytes()
        .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || b".*+?|(){}[],-".contains(&it));
    if is_small { pattern } else { format!("(?i:{pattern})") }
}

fn push_small(text: &mut String, chars: impl Iterator<Item = char>) {
    chars.flat_map(char::to_lowercase).for_each(|c| push_folded(text, c));
}

fn push_folded(text: &mut String, c: char) {
    match fold_char(c) {
        Some(folded) => text.push_str(folded),
        None => text.push(c),
    }
}

/// Returns the length of the run at the start of `text`, in bytes.
fn run_len(text: &str) -> usize {
    let ascii = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    // Most words end here; a following non-ASCII character may belong to the word.
    if ascii != 0 && text.as_bytes().get(ascii).is_none_or(u8::is_ascii) {
        return ascii;
    }
    let mut chars = text.char_indices();
    match chars.next() {
        Some((_, first)) if stands_alone(first) => first.len_utf8(),
        _ => chars
            .find(|(_, c)| stands_alone(*c) || !(c.is_alphanumeric() || is_accent(*c)))
            .map_or(text.len(), |(at, _)| at),
    }
}

/// Returns whether `c` is a combining accent after its letter.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Returns whether `c` belongs to a script without spaces between words: it is a word by itself.
fn stands_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(split(text).join(" "), expected, "{text:?}");
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        check("", "");
        check("... -- ", "");
        check("Hello, World!", "hello world");
        check("foo_bar foo-bar std::io", "foo bar foo bar std io");
        check("http://a.org/usr/share?q=1", "http a org usr share q 1");
        check("RFC2822 x86_64", "rfc2822 x86 64");
    }

    #[test]
    fn accents_are_folded_however_they_are_written() {
        check("Café cafe\u{301} ÅNGSTRÖM straße", "cafe cafe angstrom strasse");
        check("Москва Ελλάδα", "москва ελλάδα");
    }

    #[test]
    fn scripts_without_spaces_are_cut_by_character() {
        check("日本語 text検索", "日 本 語 text 検 索");
    }

    #[test]
    fn overlong_runs_are_left_out_but_keep_their_place() {
        let text = format!("a {} b", "x".repeat(WORD_BYTES_MAX + 1));
        let (mut words, mut word) = (Words::new(&text), String::new());
        let mut positions = Vec::new();
        while let Some(span) = words.next_into(&mut word) {
            positions.push((word.clone(), span.position));
        }
        assert_eq!(positions, [("a".to_owned(), 0), ("b".to_owned(), 2)]);
    }

    #[test]
    fn folding_keeps_everything_else() {
        assert_eq!(fold("É[a-z]+ X"), "e[a-z]+ x");
        assert_eq!(pattern("É\\W+"), "(?i:E\\W+)");
        assert_eq!(pattern("ha?r.*"), "ha?r.*");
    }
}
