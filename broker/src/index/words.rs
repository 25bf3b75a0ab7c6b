//! How text becomes words, in objects and in queries alike.
//!
//! A word is a run of letters and digits, in small letters and without accents; `foo_bar`,
//! `foo-bar`, paths and addresses are thus found by their parts, and as a whole by a phrase of
//! them. Han and kana have no spaces between words: every character is a word, and a word of
//! several is a phrase.
//!
//! There are two chains. [`EXACT`] keeps the word's ending; phrases, prefixes, fuzzy words and
//! regular expressions are held against it. [`STEMMED`] cuts the ending off by the English
//! stemmer, for plain words only: on stems, `authentcation~1` finds nothing.

use std::collections::HashMap;

use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RawTokenizer, Stemmer, TextAnalyzer, Token,
    TokenFilter, TokenStream, Tokenizer, TokenizerManager,
};

use crate::query::stands_alone;

/// Name of the chain that keeps words as they are.
pub(super) const EXACT: &str = "harvest_exact_1";
/// Name of the chain that cuts endings off.
pub(super) const STEMMED: &str = "harvest_stemmed_1";

/// Longest word, in bytes; longer runs are data rather than words and are left out.
const WORD_BYTES_MAX: usize = 128;

/// Returns the chain [`EXACT`].
pub(super) fn exact() -> TextAnalyzer {
    TextAnalyzer::builder(Words::default()).filter(LowerCaser).filter(AsciiFoldingFilter).build()
}

/// Returns the chain [`STEMMED`].
pub(super) fn stemmed() -> TextAnalyzer {
    TextAnalyzer::builder(Words::default())
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .filter(Endings)
        .build()
}

/// Makes both chains known by their names.
pub(super) fn register(tokenizers: &TokenizerManager) {
    tokenizers.register(EXACT, exact());
    tokenizers.register(STEMMED, stemmed());
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

/// Words whose stems are remembered; each takes about 100 bytes.
const STEMS_MAX: usize = 16 << 10;

/// Longest word whose stem is remembered, in bytes.
const STEM_BYTES_MAX: usize = 24;

/// Cuts endings off by the English stemmer, which takes longer than all else that is done to a word:
/// those of frequent words are remembered.
#[derive(Clone, Debug)]
struct Endings;

/// A chain that ends in [`Endings`].
struct Stemmed<T> {
    words: T,
    memory: Stems,
}

impl<T: Clone> Clone for Stemmed<T> {
    /// Every thread remembers for itself.
    fn clone(&self) -> Self {
        Self { words: self.words.clone(), memory: Stems::default() }
    }
}

/// Stems by their words.
struct Stems {
    known: HashMap<Box<str>, Box<str>>,
    stemmer: TextAnalyzer,
}

impl Default for Stems {
    fn default() -> Self {
        let stemmer = Stemmer::new(Language::English);
        let stemmer = TextAnalyzer::builder(RawTokenizer::default()).filter(stemmer).build();
        Self { known: HashMap::new(), stemmer }
    }
}

impl Stems {
    /// Puts the stem of `word` in its place.
    fn cut(&mut self, word: &mut String) {
        if let Some(stem) = self.known.get(word.as_str()) {
            word.clear();
            word.push_str(stem);
            return;
        }
        let mut stream = self.stemmer.token_stream(word);
        let stem = stream.next().map(|token| token.text.clone()).unwrap_or_default();
        drop(stream);
        if word.len() <= STEM_BYTES_MAX {
            if STEMS_MAX <= self.known.len() {
                self.known.clear();
            }
            self.known.insert(word.as_str().into(), stem.as_str().into());
        }
        *word = stem;
    }
}

impl TokenFilter for Endings {
    type Tokenizer<T: Tokenizer> = Stemmed<T>;

    fn transform<T: Tokenizer>(self, words: T) -> Stemmed<T> {
        Stemmed { words, memory: Stems::default() }
    }
}

impl<T: Tokenizer> Tokenizer for Stemmed<T> {
    type TokenStream<'a> = StemmedStream<'a, T::TokenStream<'a>>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Self::TokenStream<'a> {
        StemmedStream { words: self.words.token_stream(text), memory: &mut self.memory }
    }
}

/// The stems of one text.
struct StemmedStream<'a, T> {
    words: T,
    memory: &'a mut Stems,
}

impl<T: TokenStream> TokenStream for StemmedStream<'_, T> {
    fn advance(&mut self) -> bool {
        if !self.words.advance() {
            return false;
        }
        self.memory.cut(&mut self.words.token_mut().text);
        true
    }

    fn token(&self) -> &Token {
        self.words.token()
    }

    fn token_mut(&mut self) -> &mut Token {
        self.words.token_mut()
    }
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
    fn endings_are_cut_off_for_plain_words() {
        assert_eq!(
            split(&mut stemmed(), "gathering Gatherers gathered"),
            ["gather", "gather", "gather"]
        );
    }

    #[test]
    fn what_is_remembered_of_a_word_changes_nothing() {
        let mut remembering = stemmed();
        let mut engine = TextAnalyzer::builder(Words::default())
            .filter(LowerCaser)
            .filter(AsciiFoldingFilter)
            .filter(Stemmer::new(Language::English))
            .build();
        let words =
            "Running runs ran Querying queries CAFÉS naïvely 日本 Über-straße x86 generously";
        let text = format!("{words} {words} {}", "abc".repeat(20));
        assert_eq!(split(&mut remembering, &text), split(&mut engine, &text));
        assert_eq!(split(&mut remembering, words), split(&mut engine, words));
    }

    #[test]
    fn folding_keeps_everything_else() {
        assert_eq!(fold("É[a-z]+ X"), "e[a-z]+ x");
        assert_eq!(fold_pattern("É\\W+"), "E\\W+");
    }
}
