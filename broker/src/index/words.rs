//! How text becomes words, in objects and in queries alike.
//!
//! A word is a run of letters and digits, in small letters and without accents; `foo_bar`,
//! `foo-bar`, paths and addresses are thus found by their parts, and as a whole by a phrase of
//! them. Han and kana have no spaces between words: every character is a word, and a word of
//! several is a phrase.
//!
//! A word keeps its ending. Plain words are found in all their forms nevertheless, by looking for
//! those (`forms.rs`); phrases, prefixes, fuzzy words and regular expressions mean words as they are:
//! on stems, `authentcation~1` would find nothing.

use tantivy::tokenizer::{
    AsciiFoldingFilter, LowerCaser, RawTokenizer, TextAnalyzer, Token, TokenStream, Tokenizer,
    TokenizerManager,
};

use crate::query::stands_alone;

/// Name of the chain.
pub(super) const EXACT: &str = "harvest_exact_1";

/// Longest word, in bytes; longer runs are data rather than words and are left out.
const WORD_BYTES_MAX: usize = 128;

/// Returns the chain [`EXACT`].
pub(super) fn exact() -> TextAnalyzer {
    TextAnalyzer::builder(Words::default()).filter(LowerCaser).filter(AsciiFoldingFilter).build()
}

/// Makes the chain known by its name.
pub(super) fn register(tokenizers: &TokenizerManager) {
    tokenizers.register(EXACT, exact());
}

/// Returns the words of `text`.
pub(super) fn split(chain: &mut TextAnalyzer, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut stream = chain.token_stream(text);
    while let Some(token) = stream.next() {
        words.push(token.text.clone());
    }
    words
}

/// Removes accents from `text` and makes it small, keeping everything else.
pub(super) fn fold(text: &str) -> String {
    first(
        TextAnalyzer::builder(RawTokenizer::default())
            .filter(LowerCaser)
            .filter(AsciiFoldingFilter)
            .build(),
        text,
    )
}

/// Removes accents from a regular expression, whose large letters may be classes (`\W`).
pub(super) fn fold_pattern(pattern: &str) -> String {
    first(
        TextAnalyzer::builder(RawTokenizer::default()).filter(AsciiFoldingFilter).build(),
        pattern,
    )
}

fn first(mut chain: TextAnalyzer, text: &str) -> String {
    let mut stream = chain.token_stream(text);
    stream.next().map(|token| token.text.clone()).unwrap_or_default()
}

/// Cuts text into runs of letters and digits, without combining accents.
#[derive(Clone, Debug, Default)]
struct Words {
    token: Token,
}

/// The words of one text.
#[derive(Debug)]
struct Stream<'a> {
    text: &'a str,
    /// How much of the text has been read, in bytes.
    at: usize,
    token: &'a mut Token,
}

impl Tokenizer for Words {
    type TokenStream<'a> = Stream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream<'a> {
        self.token.reset();
        Stream { text, at: 0, token: &mut self.token }
    }
}

impl TokenStream for Stream<'_> {
    fn advance(&mut self) -> bool {
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(start) = rest.find(char::is_alphanumeric) else { return false };
            let word = rest.get(start..).unwrap_or_default();
            let len = word_len(word);
            let word = word.get(..len).unwrap_or_default();
            self.token.offset_from = self.at + start;
            self.token.offset_to = self.at + start + len;
            self.token.position = self.token.position.wrapping_add(1);
            self.at += start + len;
            if WORD_BYTES_MAX < len {
                continue;
            }
            self.token.text.clear();
            if word.is_ascii() {
                self.token.text.push_str(word);
            } else {
                self.token.text.extend(word.chars().filter(|c| !is_accent(*c)));
            }
            return true;
        }
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

/// Length of the word that `text` begins with, in bytes.
fn word_len(text: &str) -> usize {
    let ascii = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    // Most words end so; where something else follows, it may belong to the word.
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

/// Whether `c` is an accent that stands after its letter.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(split(&mut exact(), text).join(" "), expected, "{text:?}");
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
        let mut chain = exact();
        let mut stream = chain.token_stream(&text);
        let mut positions = Vec::new();
        while let Some(token) = stream.next() {
            positions.push((token.text.clone(), token.position));
        }
        assert_eq!(positions, [("a".to_owned(), 0), ("b".to_owned(), 2)]);
    }

    #[test]
    fn folding_keeps_everything_else() {
        assert_eq!(fold("É[a-z]+ X"), "e[a-z]+ x");
        assert_eq!(fold_pattern("É\\W+"), "E\\W+");
    }
}
