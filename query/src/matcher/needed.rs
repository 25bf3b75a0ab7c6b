//! Needed by a query of a record, so that it can match it: keys, which are hashes of stems and of names, and words
//! that fit patterns.
//!
//! A query needs at least one of some keys and patterns, or nothing in particular. Whatever matches has one; what has one need
//! not match. Two things may have one key, too.
//!
//! Sans-I/O.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::{Matcher, Predicate, Scope, Split, Test, Tree};
use crate::field::TextField;
use crate::forms::{Forms, REST_LETTERS_MIN, WORD_LETTERS_MIN, stems};
use crate::language::{Language, Languages};
use crate::stem::stem;

/// The kind of a key, which is none of a language's number.
const ENGLISH: u64 = u64::MAX;
const NAME: u64 = u64::MAX - 1;
/// Added to a language's number: beginnings of compounds.
const BEGINNING: u64 = 1 << 32;

/// Shortest word that few records have by accident, in letters.
const LETTERS_MIN: usize = 4;
/// What a condition costs that many records meet, and what others do.
const OFTEN: u32 = 1_000;
const SELDOM: u32 = 10;

/// Keys and patterns of words of which one is needed, and how often records will have one, by a rule of thumb.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needed {
    pub(crate) keys: Vec<u64>,
    /// Regular expressions of whole words.
    pub(crate) patterns: Vec<String>,
    cost: u32,
}

fn key(kind: u64, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kind, text).hash(&mut hasher);
    hasher.finish()
}

impl Matcher {
    /// Returns the keys of which a record must have one; `None`: nothing in particular is needed.
    pub(crate) fn needed(&self) -> Option<Needed> {
        match &self.root {
            Some(root) => self.of(root),
            None => Some(Needed::default()),
        }
    }

    fn of(&self, tree: &Tree) -> Option<Needed> {
        match tree {
            Tree::Leaf(at) => self.conditions.get(*at).and_then(|it| it.predicate.needed()),
            Tree::All(nodes) => nodes.iter().filter_map(|it| self.of(it)).min_by_key(|it| it.cost),
            Tree::Any(nodes) => {
                let mut all = Needed::default();
                for node in nodes {
                    let Needed { keys, patterns, cost } = self.of(node)?;
                    all.keys.extend(keys);
                    all.patterns.extend(patterns);
                    all.cost = all.cost.saturating_add(cost);
                }
                Some(all)
            }
            Tree::Not(_) => None,
        }
    }
}

impl Predicate {
    fn needed(&self) -> Option<Needed> {
        let often = |keys: Vec<u64>| Some(Needed { keys, cost: OFTEN, ..Needed::default() });
        match self {
            Self::Fixed(true) | Self::Between(..) | Self::Oid(_) => None,
            Self::Fixed(false) => Some(Needed::default()),
            Self::Present(names) => often(names.iter().map(|it| key(NAME, it)).collect()),
            Self::AttributeBetween(name, ..) => often(vec![key(NAME, name)]),
            Self::Words(scope, test) => {
                let (keys, patterns, letters) = match test {
                    Test::Forms(forms) => {
                        (of_forms(forms), Vec::new(), forms.word().chars().count())
                    }
                    Test::Phrase(phrase) => {
                        match phrase.words().max_by_key(|it| it.chars().count()) {
                            Some(word) => {
                                (vec![key(ENGLISH, &stem(word))], Vec::new(), word.chars().count())
                            }
                            None => (Vec::new(), vec![begins(phrase.beginning()?)], 0),
                        }
                    }
                    Test::Regex(Some(regex)) => (Vec::new(), vec![regex.as_str().to_owned()], 0),
                    Test::Regex(None) => return Some(Needed::default()),
                    Test::Near(_) => return None,
                };
                let is_seldom = LETTERS_MIN <= letters && !scope.is_coarse();
                Some(Needed { keys, patterns, cost: if is_seldom { SELDOM } else { OFTEN } })
            }
        }
    }
}

/// Returns the pattern of words with a beginning.
fn begins(with: &str) -> String {
    format!("^{}", regex::escape(with))
}

impl Scope {
    /// Returns whether many records have the same words there.
    fn is_coarse(&self) -> bool {
        use TextField::{Gatherer, Host, Type};
        matches!(self, Self::Field(Gatherer | Host | Type))
    }
}

/// Returns the keys of which each form of a word has one, in each language.
fn of_forms(forms: &Forms) -> Vec<u64> {
    let mut keys = vec![key(ENGLISH, forms.english())];
    let all = (0..Language::count()).filter_map(|it| Language::by_number(it as u64));
    let mut languages = Languages::default();
    all.for_each(|it| languages.add(it));
    for own in forms.in_languages(languages) {
        let number = own.language.number();
        keys.push(key(number, &own.stem));
        keys.extend(own.beginning.as_deref().map(|it| key(BEGINNING + number, it)));
    }
    keys
}

/// Calls `key_of` with the keys that a record has, and `word_of` with each of its words.
pub(crate) fn of_record(split: &Split, key_of: &mut dyn FnMut(u64), word_of: &mut dyn FnMut(&str)) {
    split.names().for_each(|it| key_of(key(NAME, it)));
    let mut seen = HashSet::new();
    for word in split.words() {
        if seen.insert(word) {
            of_word(word, split.languages, key_of);
            word_of(word);
        }
    }
}

fn of_word(word: &str, languages: Languages, visit: &mut dyn FnMut(u64)) {
    visit(key(ENGLISH, &stem(word)));
    stems(word, languages, &mut |language, stem| {
        visit(key(language.number(), &stem));
        if language.has_compounds() {
            let ends: Vec<usize> = stem.char_indices().map(|it| it.0).collect();
            let to = (ends.len() + 1).saturating_sub(REST_LETTERS_MIN);
            for end in ends.get(WORD_LETTERS_MIN..to).unwrap_or_default() {
                let beginning = stem.get(..*end).unwrap_or_default();
                visit(key(BEGINNING + language.number(), beginning));
            }
        }
    });
}
