//! Which words of a hit's text are those that the query looked for.

use std::collections::HashMap;

use tantivy::tokenizer::{TextAnalyzer, TokenStream as _};

use super::inflection::{Stemmer, root};
use super::words;
use crate::query::{Query, Value};
use crate::snippet::Mark;

/// Most characters of a word that is compared with a fuzzy one.
const FUZZY_CHARS_MAX: usize = 64;

/// Recognizes the words of one query.
pub(super) struct Highlighter {
    exact: TextAnalyzer,
    stemmer: Stemmer,
    /// Stems, and numbers that tell the words of the query apart.
    stems: Vec<(String, u64)>,
    /// Words as they are, and their numbers.
    words: HashMap<String, u64>,
    patterns: Vec<(Pattern, u64)>,
}

enum Pattern {
    Prefix(String),
    Fuzzy(Vec<char>, usize),
    Regex(regex::Regex),
}

impl Highlighter {
    pub(super) fn new(query: &Query) -> Self {
        let mut highlighter = Self {
            exact: words::exact(),
            stemmer: Stemmer::new(),
            stems: Vec::new(),
            words: HashMap::new(),
            patterns: Vec::new(),
        };
        let mut number = 0;
        query.for_each_wanted(&mut |leaf| {
            number += 1_000;
            highlighter.add(&leaf.value, number);
        });
        highlighter
    }

    fn add(&mut self, value: &Value, mut number: u64) {
        match value {
            Value::Word(text) => {
                let exact = words::split(&mut self.exact, text);
                match &exact[..] {
                    [word] => self.stems.push((self.stemmer.stem(word), number)),
                    _ => self.add_words(exact, number),
                }
            }
            Value::Phrase(text) => {
                let exact = words::split(&mut self.exact, text);
                self.add_words(exact, number);
            }
            Value::Prefix(text) => {
                let mut exact = words::split(&mut self.exact, text);
                if let Some(last) = exact.pop() {
                    self.patterns.push((Pattern::Prefix(last), number));
                }
                self.add_words(exact, number + 1);
            }
            Value::Fuzzy(text, edits) => {
                for word in words::split(&mut self.exact, text) {
                    let pattern = Pattern::Fuzzy(word.chars().collect(), usize::from(*edits));
                    self.patterns.push((pattern, number));
                    number += 1;
                }
            }
            Value::Regex(pattern) => {
                let pattern = format!("^(?i:{})$", words::fold_pattern(pattern));
                if let Ok(regex) = regex::Regex::new(&pattern) {
                    self.patterns.push((Pattern::Regex(regex), number));
                }
            }
            Value::Range(..) | Value::Present => {}
        }
    }

    fn add_words(&mut self, words: Vec<String>, number: u64) {
        for (word, number) in words.into_iter().zip(number..) {
            self.words.entry(word).or_insert(number);
        }
    }

    /// Returns where the query's words are in `text`: ascending and disjoint.
    pub(super) fn marks(&mut self, text: &str) -> Vec<Mark> {
        let mut marks = Vec::new();
        let mut exact = self.exact.token_stream(text);
        while exact.advance() {
            let token = exact.token();
            let word = self
                .words
                .get(&token.text)
                .copied()
                .or_else(|| {
                    // Few words begin like one of the query: only those are worth the stemmer.
                    let mut alike =
                        self.stems.iter().filter(|(it, _)| token.text.starts_with(root(it)));
                    let found = alike.find(|(it, _)| self.stemmer.stem(&token.text) == *it);
                    found.map(|(_, number)| *number)
                })
                .or_else(|| {
                    let found = self.patterns.iter().find(|(it, _)| it.matches(&token.text));
                    found.map(|(_, number)| *number)
                });
            if let Some(word) = word {
                marks.push(Mark { start: token.offset_from, end: token.offset_to, word });
            }
        }
        marks
    }
}

impl Pattern {
    fn matches(&self, word: &str) -> bool {
        match self {
            Self::Prefix(prefix) => word.starts_with(prefix.as_str()),
            Self::Fuzzy(wanted, edits) => within(wanted, word, *edits),
            Self::Regex(regex) => regex.is_match(word),
        }
    }
}

/// Whether `word` is at most `edits` insertions, deletions, replacements or swaps of neighbors away.
///
/// Optimal string alignment, as the index counts edits.
fn within(wanted: &[char], word: &str, edits: usize) -> bool {
    let word: Vec<char> = word.chars().take(FUZZY_CHARS_MAX + 1).collect();
    if edits < wanted.len().abs_diff(word.len()) || FUZZY_CHARS_MAX < word.len() {
        return false;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (i, a) in wanted.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in word.iter().enumerate() {
            let cell = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
            let mut best = (cell(&row, j) + usize::from(a != b))
                .min(cell(&row, j + 1) + 1)
                .min(cell(&next, j) + 1);
            if 0 < i && 0 < j && wanted.get(i - 1) == Some(b) && word.get(j - 1) == Some(a) {
                best = best.min(cell(&before, j - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().is_some_and(|distance| *distance <= edits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::parse;

    /// Marks the words of `text` in brackets.
    fn check(query: &str, text: &str, expected: &str) {
        let mut highlighter = Highlighter::new(&parse(query).unwrap());
        let mut out = text.to_owned();
        for mark in highlighter.marks(text).iter().rev() {
            out.insert(mark.end, ']');
            out.insert(mark.start, '[');
        }
        assert_eq!(out, expected, "{query:?}");
    }

    #[test]
    fn every_form_of_a_word_is_recognized() {
        check("gather", "Gathering gatherers", "[Gathering] [gatherers]");
        check("\"gathering data\"", "gathering gather data", "[gathering] gather [data]");
        check("cafe", "the Café", "the [Café]");
        check("foo-bar", "foo_bar barfoo", "[foo]_[bar] barfoo");
        check("harv*", "harvest hare", "[harvest] hare");
        check("harvst~1", "harvest harvests", "[harvest] harvests");
        check("havrest~1", "harvest", "[harvest]");
        check("/h.r[a-e]/", "hare hard harder", "[hare] [hard] harder");
        check("title:x a NOT b size:>3", "x a b 4", "[x] [a] b 4");
        check("日本", "日本語", "[日][本]語");
    }
}
