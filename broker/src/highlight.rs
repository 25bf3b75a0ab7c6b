//! Highlights: the words of a hit's text that match the query.
//!
//! Sans-I/O.

use std::collections::HashMap;

use query::distance::within;
use query::stem::{root, stem};
use query::words::{Words, pattern, split};
use query::{Query, Value};

use crate::snippet::Mark;

/// Recognizes the words of one query.
#[derive(Debug, Default)]
pub(crate) struct Highlighter {
    /// Stems of the query's words, each with the number of its word.
    stems: Vec<(String, u64)>,
    /// Exact words of the query, each with its number.
    words: HashMap<String, u64>,
    patterns: Vec<(Pattern, u64)>,
}

#[derive(Debug)]
enum Pattern {
    Prefix(String),
    Fuzzy(Vec<char>, usize),
    Regex(regex::Regex),
}

impl Highlighter {
    pub(crate) fn new(query: &Query) -> Self {
        let mut highlighter = Self::default();
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
                let exact = split(text);
                match &exact[..] {
                    [word] => self.stems.push((stem(word).into_owned(), number)),
                    _ => self.add_words(exact, number),
                }
            }
            Value::Phrase(text) => self.add_words(split(text), number),
            Value::Prefix(text) => {
                let mut exact = split(text);
                if let Some(last) = exact.pop() {
                    self.patterns.push((Pattern::Prefix(last), number));
                }
                self.add_words(exact, number + 1);
            }
            Value::Fuzzy(text, edits) => {
                for word in split(text) {
                    let pattern = Pattern::Fuzzy(word.chars().collect(), usize::from(*edits));
                    self.patterns.push((pattern, number));
                    number += 1;
                }
            }
            Value::Regex(typed) => {
                let pattern = format!("^(?:{})$", pattern(typed));
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

    /// Returns the positions of the query's words in `text`: ascending and disjoint.
    pub(crate) fn marks(&self, text: &str) -> Vec<Mark> {
        let (mut words, mut word) = (Words::new(text), String::new());
        let mut marks: Vec<Mark> = Vec::new();
        while let Some(at) = words.next_into(&mut word) {
            // The parts of a name that is marked as a whole.
            if marks.last().is_some_and(|mark| at.start < mark.end) {
                continue;
            }
            let number = self
                .words
                .get(&word)
                .copied()
                .or_else(|| {
                    // Only the few words that begin like a stem are passed to the stemmer.
                    let mut alike = self.stems.iter().filter(|(it, _)| word.starts_with(root(it)));
                    let found = alike.find(|(it, _)| stem(&word) == *it);
                    found.map(|(_, number)| *number)
                })
                .or_else(|| {
                    let found = self.patterns.iter().find(|(it, _)| it.matches(&word));
                    found.map(|(_, number)| *number)
                });
            if let Some(word) = number {
                marks.push(Mark { start: at.start, end: at.end, word });
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

#[cfg(test)]
mod tests {
    use query::parse;

    use super::*;

    /// Marks the words of `text` in brackets.
    fn check(query: &str, text: &str, expected: &str) {
        let highlighter = Highlighter::new(&parse(query).unwrap());
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
        check("title:x a1 NOT b size:>3", "x a1 b 4", "[x] [a1] b 4");
        check("a day in the life", "a day in life", "a [day] in [life]");
        check("日本", "日本語", "[日][本]語");
        check("c++ c#", "C, C++, C#", "C, [C++], [C#]");
        check("c hub", "C, C++, GitHub", "[C], [C]++, Git[Hub]");
        check("github git hub", "GitHub, .GitHub", "[GitHub], .[GitHub]");
        check("git* \"a .net\"", "GitHub a .NET", "[GitHub] [a] [.NET]");
    }
}
