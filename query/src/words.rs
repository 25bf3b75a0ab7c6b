//! The tokenizer: it splits the text of records and of queries into words.
//!
//! A word is a run of letters and digits, in small letters and without accents. Thus `foo_bar`,
//! `foo-bar`, paths and URLs are found by their parts, and as a whole by a phrase of them.
//!
//! Some scripts have no spaces between words. Each character of Han and kana is a word, and several
//! are a phrase. So are the pairs of neighbors of Thai, Lao, Burmese and Khmer: `ภาษา` is the phrase
//! `ภา` `าษ` `ษา`. Hangul has spaces.
//!
//! Some names are found both whole and by their parts. Their parts are *stacked*: further words at
//! the position of the whole name, which comes first. A phrase goes through any of the words of each
//! position. A query has whole names only ([`split`]), so that `C++` finds no `C`.
//!
//! | written | word | stacked |
//! |---|---|---|
//! | `C++`, `F#` | `c++`, `f#` | `c`, `f` |
//! | `.NET`, `~/.bashrc` | `.net`, `.bashrc` | `net`, `bashrc` |
//! | `GitHub`, `parseHTTPQuery` | `github`, `parsehttpquery` | `git` `hub`, `parse` `http` `query` |
//!
//! So is the whole of a word that a hyphen breaks at the end of a line (`docu-`, `mentation`), at the
//! position of its front.
//!
//! A word keeps its ending. A search for a plain word still finds all its forms, since it searches
//! for each form. Phrases, prefixes, fuzzy words and regular expressions mean words as written: on
//! stems, `authentcation~1` would find nothing. They meet all words, stacked ones too: `c*` finds
//! `C++`, `que*` finds `parseQuery`, and `/.\+\+/` finds `C++` and `g++`.
//!
//! Sans-I/O.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

use crate::broken;
use crate::folding::{base, fold_char};
use crate::names::{is_dotted, parts, sign_len};
use crate::scripts::{is_invisible, is_unspaced, is_within_words, pair, stands_alone};

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
    /// End of the last pair of letters, in bytes.
    paired: usize,
    /// The words that are still to come at the position of the last one, from last to first.
    stacked: Vec<Range<usize>>,
}

/// Position of a word in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start, in bytes.
    pub start: usize,
    /// End, in bytes.
    pub end: usize,
    /// Index of the word in the text, from 0. Runs that are too long for a word have an index too.
    /// Stacked words have that of the name of which they are parts.
    pub position: usize,
}

impl<'a> Words<'a> {
    /// Returns the words of `text`.
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0, runs: 0, paired: 0, stacked: Vec::new() }
    }

    /// Overwrites `word` with the next word and returns its position; `None` at the end.
    pub fn next_into(&mut self, word: &mut String) -> Option<Span> {
        if let Some(Range { start, end }) = self.stacked.pop() {
            let part = self.text.get(start..end)?;
            match broken::halves(part) {
                Some((front, back)) => {
                    word.clear();
                    push_small(word, front);
                    push_small(word, back);
                }
                None => push_ascii(word, part, true),
            }
            return Some(Span { start, end, position: self.runs - 1 });
        }
        loop {
            let start = self.next_run()?;
            let run = self.text.get(start..)?;
            let ascii = AsciiRun::read(run.as_bytes());
            // Most words end here; a following non-ASCII character may belong to the word.
            let ends = ascii.len != 0 && run.as_bytes().get(ascii.len).is_none_or(u8::is_ascii);
            let (len, step) = if ends { (ascii.len, ascii.len) } else { run_len(run) };
            let mut span = Span { start, end: start + len, position: self.runs };
            self.at = start + step;
            if span.end == self.paired {
                continue;
            }
            if step < len {
                self.paired = span.end;
            }
            self.runs += 1;
            if WORD_BYTES_MAX < len {
                continue;
            }
            if self.text.as_bytes().get(span.end) == Some(&b'-') {
                self.stack_broken(&span);
            }
            if len == ascii.len {
                self.stack(&mut span, ascii.has_parts());
                let has_capitals = ascii.kinds & CAPITAL != 0;
                push_ascii(word, self.text.get(span.start..span.end)?, has_capitals);
            } else {
                word.clear();
                push_small(word, run.get(..len)?);
                if word.is_empty() {
                    continue;
                }
            }
            return Some(span);
        }
    }

    /// Returns the start of the next run of letters and digits; `None` if there is none.
    fn next_run(&self) -> Option<usize> {
        let mut at = self.at;
        loop {
            let byte = *self.text.as_bytes().get(at)?;
            if kind(byte) != 0 {
                return Some(at);
            }
            if byte.is_ascii() {
                at += 1;
                continue;
            }
            let c = self.text.get(at..)?.chars().next()?;
            if c.is_alphanumeric() {
                return Some(at);
            }
            at += c.len_utf8();
        }
    }

    /// Stacks the word that goes on in the next line, if the one at `span` is the front of such. Not
    /// inlined, like [`push_small`].
    #[inline(never)]
    fn stack_broken(&mut self, span: &Span) {
        let Some(back) = broken::back(self.text, span.start..span.end) else { return };
        let (len, _) = run_len(self.text.get(back..).unwrap_or_default());
        if span.end - span.start + len <= WORD_BYTES_MAX {
            self.stacked.push(span.start..back + len);
        }
    }

    /// Adds the signs of a name to the `span` of its run, and stacks the parts of the name.
    fn stack(&mut self, span: &mut Span, has_parts: bool) {
        let Span { start, end, .. } = *span;
        let bytes = self.text.as_bytes();
        let around = |at: usize| bytes.get(at).copied().unwrap_or_default();
        let run = || self.text.get(start..end).unwrap_or_default();
        if has_parts {
            let parts = parts(run()).into_iter().rev();
            self.stacked.extend(parts.map(|it| start + it.start..start + it.end));
        }
        if matches!(around(end), b'+' | b'#') {
            span.end += sign_len(run(), self.text.get(end..).unwrap_or_default());
        }
        if start != 0
            && around(start - 1) == b'.'
            && around(start).is_ascii_alphabetic()
            && end - start < WORD_BYTES_MAX
            && is_dotted(self.text.get(..start).unwrap_or_default())
        {
            span.start -= 1;
        }
        if span.end - span.start != end - start {
            self.at = span.end;
            self.stacked.push(start..end);
        }
    }
}

/// A run of ASCII letters and digits.
struct AsciiRun {
    /// Length in bytes.
    len: usize,
    /// The kinds of all bytes.
    kinds: u8,
    /// The kinds of all bytes but the first.
    later: u8,
}

impl AsciiRun {
    /// Reads the run at the start of `bytes`, which may be empty.
    fn read(bytes: &[u8]) -> Self {
        let mut run = Self { len: 0, kinds: 0, later: 0 };
        for byte in bytes {
            let kind = kind(*byte);
            if kind == 0 {
                break;
            }
            run.later |= if run.len == 0 { 0 } else { kind };
            run.kinds |= kind;
            run.len += 1;
        }
        run
    }

    /// Returns whether the run may have [parts]: a capital inside, and a small letter.
    fn has_parts(&self) -> bool {
        self.later & CAPITAL != 0 && self.kinds & SMALL != 0
    }
}

const SMALL: u8 = 1;
const CAPITAL: u8 = 2;
const DIGIT: u8 = 4;

/// The kind of each byte; 0 if it is no ASCII letter or digit.
static KINDS: [u8; 256] = {
    let (mut kinds, mut byte) = ([0; 256], 0_u8);
    while byte < 128 {
        kinds[byte as usize] = match byte {
            b'a'..=b'z' => SMALL,
            b'A'..=b'Z' => CAPITAL,
            b'0'..=b'9' => DIGIT,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};

fn kind(byte: u8) -> u8 {
    KINDS.get(usize::from(byte)).copied().unwrap_or_default()
}

/// Overwrites `word` with ASCII text in small letters.
fn push_ascii(word: &mut String, text: &str, has_capitals: bool) {
    word.clear();
    word.push_str(text);
    if has_capitals {
        word.make_ascii_lowercase();
    }
}

/// Returns the words of a query's `text`: those of [`Words`] without the stacked ones.
pub fn split(text: &str) -> Vec<String> {
    let (mut words, mut all, mut word) = (Words::new(text), Vec::new(), String::new());
    while words.next_into(&mut word).is_some() {
        all.push(word.clone());
        words.stacked.clear();
    }
    all
}

/// Removes accents from `text` and lowers its case; keeps everything else.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    push_small(&mut folded, text);
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

/// Appends `text` in small letters without accents. Not inlined, so that the loop over ASCII words
/// stays small.
#[inline(never)]
fn push_small(word: &mut String, text: &str) {
    let mut push = |c: char| {
        if c.is_ascii() {
            word.push(c.to_ascii_lowercase());
            return;
        }
        let small = c.to_lowercase().filter(|c| !is_accent(*c) && !is_invisible(*c));
        small.for_each(|c| push_folded(word, c));
    };
    // An accent behind its letter may make another letter of it (`й`), and so may parts of a syllable.
    // All of these begin with one of three bytes.
    if text.bytes().any(|byte| matches!(byte, 0xcc | 0xcd | 0xe1)) {
        text.nfc().for_each(push);
    } else {
        text.chars().for_each(&mut push);
    }
}

fn push_folded(text: &mut String, c: char) {
    match fold_char(c) {
        Some(folded) => text.push_str(folded),
        None => text.push(base(c)),
    }
}

/// Returns the length of the word at the start of `text`, and where the next one may begin, in
/// bytes. Not inlined, like [`push_small`].
#[inline(never)]
fn run_len(text: &str) -> (usize, usize) {
    if let Some((first, second)) = pair(text) {
        return (first + second, first);
    }
    let mut chars = text.char_indices();
    let len = match chars.next() {
        Some((_, first)) if stands_alone(first) => first.len_utf8(),
        _ => chars
            .find(|(_, c)| {
                let goes_on = c.is_alphanumeric() || is_accent(*c) || is_within_words(*c);
                is_unspaced(*c) || !goes_on
            })
            .map_or(text.len(), |(at, _)| at),
    };
    (len, len)
}

/// Returns whether `c` is a combining accent after its letter.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::SIGNED_LETTERS_MAX;

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
        check("Москва Ёлка й и\u{306} ї", "москва елка й й ї");
        check("Ελλάδα Ὀδυσσεύς ΟΔΟΣ ο\u{301}δός", "ελλαδα οδυσσευσ οδοσ οδοσ");
        check("\u{130}stanbul \u{1112}\u{1161}\u{11ab}\u{ae00} \u{345}", "istanbul 한글");
    }

    #[test]
    fn invisible_signs_within_words_are_left_out() {
        check("extra\u{ad}ordi\u{ad}nary con\u{200b}tinuous", "extraordinary continuous");
        check("\u{feff}word\u{2060}joiner, Stra\u{ad}ße\u{ad} x", "wordjoiner strasse x");
        check("می\u{200c}خواهم", "می خواهم");
    }

    #[test]
    fn scripts_without_spaces_are_cut_by_characters() {
        check("日本語 text検索", "日 本 語 text 検 索");
        check("한국어 검색", "한국어 검색");
        check("ภาษาไทย", "ภา าษ ษา าไ ไท ทย");
        check("ที่นี่ ก abก", "ที่นี่ ก ab ก");
        check("ភាសា\u{200b}ខ្មែរ ພາສາ မြန်မာ", "ភាសា សាខ្ ខ្មែ មែរ ພາ າສ ສາ မြန် န်မာ");
        check_stacks(
            "GitHubやC#の.NETไทย",
            "github=GitHub|git=Git|hub=Hub や=や c#=C#|c=C の=の .net=.NET|net=NET ไท=ไท ทย=ทย",
        );
    }

    /// Checks all words, with `|` before a stacked one and the name's own text after `=`.
    #[track_caller]
    fn check_stacks(text: &str, expected: &str) {
        let (mut words, mut word, mut seen) = (Words::new(text), String::new(), String::new());
        let mut position = None;
        while let Some(span) = words.next_into(&mut word) {
            let between = if position == Some(span.position) { "|" } else { " " };
            position = Some(span.position);
            seen.push_str(&format!("{between}{word}={}", &text[span.start..span.end]));
        }
        assert_eq!(seen.trim_start(), expected, "{text:?}");
        let whole: Vec<_> = expected.split(' ').filter_map(|it| it.split('=').next()).collect();
        assert_eq!(split(text).join(" "), whole.join(" "), "{text:?}");
    }

    #[test]
    fn names_are_words_whole_and_by_their_parts() {
        check_stacks("C++, c#", "c++=C++|c=C c#=c#|c=c");
        check_stacks("C++11 g+++", "c++=C++|c=C 11=11 g++=g++|g=g");
        check_stacks("a++b a+b x#y C2# é# é++", "a=a b=b a=a b=b x=x y=y c2=C2 e=é e=é");
        check_stacks(".NET", ".net=.NET|net=NET");
        check_stacks("(.net \"./.x\" a.b ..c .5", ".net=.net|net=net .x=.x|x=x a=a b=b c=c 5=5");
        check_stacks("GitHub", "github=GitHub|git=Git|hub=Hub");
        check_stacks(".fooBar++", ".foobar++=.fooBar++|foobar=fooBar|foo=foo|bar=Bar");
        check_stacks("Café's fooBarÉ", "cafe=Café s=s foobare=fooBarÉ");
        let long = "x".repeat(SIGNED_LETTERS_MAX);
        check_stacks(
            &format!("{long}# x{long}#"),
            &format!("{long}#={long}#|{long}={long} x{long}=x{long}"),
        );
        let longest = "x".repeat(WORD_BYTES_MAX);
        check_stacks(&format!(".{longest}"), &format!("{longest}={longest}"));
    }

    #[test]
    fn a_word_broken_at_the_end_of_a_line_is_a_word_as_well() {
        check_stacks(
            "a docu-\n\tmentation é",
            "a=a docu=docu|documentation=docu-\n\tmentation mentation=mentation e=é",
        );
        check_stacks("Stra-\r\nße", "stra=Stra|strasse=Stra-\r\nße sse=ße");
        check_stacks("ü-\nb-\nc", "u=ü|ub=ü-\nb b=b|bc=b-\nc c=c");
        check_stacks("gitHub-\ny", "github=gitHub|git=git|hub=Hub|githuby=gitHub-\ny y=y");
        check_stacks(
            "X-\nray 1-\nb a-\nB a-b a -\nb a-\n\nb",
            "x=X ray=ray 1=1 b=b a=a b=B a=a b=b a=a b=b a=a b=b",
        );
        let long = "x".repeat(WORD_BYTES_MAX);
        check_stacks(&format!("{long}-\na"), &format!("{long}={long} a=a"));
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
        assert_eq!(fold("É[a-z]+ Xe\u{301}"), "e[a-z]+ xe");
        assert_eq!(pattern("É\\W+"), "(?i:E\\W+)");
        assert_eq!(pattern("ha?r.*"), "ha?r.*");
    }
}
