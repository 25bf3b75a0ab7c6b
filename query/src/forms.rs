//! The forms of a word: which words of a record a plain word of a query finds.
//!
//! Words with one stem are forms of each other. The stem of the word's English is compared in every
//! record, since texts of all languages have words of it; those of other languages only in records
//! of the [language](crate::language). In languages that write compounds as one word, such as
//! German, a word finds those that begin with it too: `Haus` finds `Haustür`.
//!
//! All is decided on folded words, without accents, since only those are in an index.
//!
//! Sans-I/O.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::language::{Language, Languages};
use crate::particles::{is_hangul, is_semitic, joined};
use crate::stem::{root, stem};

/// Shortest word that has forms in other languages than English, in letters; a syllable of Hangul has two
/// or more.
const LETTERS_MIN: usize = 3;
/// Number of letters with which all forms of a word begin, in other languages than English.
const SAME_LETTERS: usize = 2;
/// Shortest word that is looked for as the first part of compounds, in letters.
pub(crate) const WORD_LETTERS_MIN: usize = 4;
/// Shortest stem that is looked for instead of its word, in letters.
const STEM_LETTERS_MIN: usize = 5;
/// Fewest letters of a compound's stem behind its first part.
pub(crate) const REST_LETTERS_MIN: usize = 3;

/// A plain word of a query.
#[derive(Clone, Debug)]
pub struct Forms {
    word: String,
    english: String,
    /// What is known of it in each other language, by number.
    others: OnceLock<Vec<OnceLock<Own>>>,
}

/// The word in one language.
#[derive(Clone, Debug)]
pub struct Own {
    /// The language.
    pub language: Language,
    /// The word's stem.
    pub stem: String,
    /// With what the stems of compounds begin; `None` if there are none.
    pub beginning: Option<String>,
}

/// What a word is to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// A compound that begins with it.
    Compound,
    /// Another form of it, or itself.
    Inflected,
}

impl Forms {
    /// Returns the forms of `word`, one of those from [`split`](crate::words::split).
    pub fn new(word: &str) -> Self {
        Self { word: word.to_owned(), english: stem(word).into_owned(), others: OnceLock::new() }
    }

    /// Returns the word itself.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// Returns its English stem.
    pub fn english(&self) -> &str {
        &self.english
    }

    /// Returns what `word` is to this word in a record of `languages`; `None` if it is no form of it.
    pub fn form(&self, word: &str, languages: Languages) -> Option<Form> {
        if self.word == word || self.is_english(word) {
            return Some(Form::Inflected);
        }
        if languages.is_empty() || !self.may_be(word) {
            return None;
        }
        self.in_languages(languages).filter_map(|it| it.form(&it.language.stem(word))).max()
    }

    /// Returns whether `word` is a form by English.
    pub fn is_english(&self, word: &str) -> bool {
        word.starts_with(root(&self.english)) && stem(word) == self.english
    }

    /// Returns whether `word` may be a form in another language: it begins like the word, or is it with
    /// or without particles.
    pub fn may_be(&self, word: &str) -> bool {
        if let Some(is_joined) = joined(&self.word, word) {
            return is_joined && has_forms(word);
        }
        let head = self.word.char_indices().nth(SAME_LETTERS).map_or(self.word.len(), |it| it.0);
        self.word.get(..head).is_some_and(|it| word.starts_with(it)) && has_forms(word)
    }

    /// Returns whether all its forms begin with the same letter.
    pub fn begin_alike(&self) -> bool {
        !is_semitic(&self.word)
    }

    /// Returns the word in each of some languages; nothing if it has no forms there.
    pub fn in_languages(&self, languages: Languages) -> impl Iterator<Item = &Own> {
        let make = || (0..Language::count()).map(|_| OnceLock::new()).collect();
        let others = has_forms(&self.word).then(|| self.others.get_or_init(make));
        let numbered = languages.iter().filter_map(move |language| {
            let at = usize::try_from(language.number()).ok()?;
            Some((language, others?.get(at)?))
        });
        numbered.map(|(language, own)| own.get_or_init(|| Own::new(language, &self.word)))
    }
}

impl Own {
    fn new(language: Language, word: &str) -> Self {
        let stem = language.stem(word);
        let long = |it: &str, letters: usize| letters <= it.chars().count();
        // Short stems begin too many other words: `Kommandant` is not of `kommen`.
        let beginning = match language.has_compounds() {
            true if long(&stem, STEM_LETTERS_MIN) => Some(stem.to_string()),
            true if long(word, WORD_LETTERS_MIN) => Some(word.to_owned()),
            _ => None,
        };
        Self { language, stem: stem.into_owned(), beginning }
    }

    /// Returns what a word with the given stem is to this one.
    pub fn form(&self, stem: &str) -> Option<Form> {
        if stem == self.stem {
            return Some(Form::Inflected);
        }
        let rest = stem.strip_prefix(self.beginning.as_deref()?)?;
        rest.chars().nth(REST_LETTERS_MIN - 1).map(|_| Form::Compound)
    }
}

/// Returns whether a word has forms in other languages than English: it is long enough, and has
/// letters alone.
fn has_forms(word: &str) -> bool {
    let signs_min = if is_hangul(word) { LETTERS_MIN / 2 + 1 } else { LETTERS_MIN };
    word.chars().all(char::is_alphabetic) && word.chars().nth(signs_min - 1).is_some()
}

/// Calls `visit` with each language and the stem there of a word from a record of `languages`.
pub fn stems<'a>(
    word: &'a str,
    languages: Languages,
    visit: &mut dyn FnMut(Language, Cow<'a, str>),
) {
    if has_forms(word) {
        languages.iter().for_each(|it| visit(it, it.stem(word)));
    }
}
