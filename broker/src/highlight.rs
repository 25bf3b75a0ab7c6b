//! Highlights: the words of a hit's text that match the query.
//!
//! Sans-I/O.

use std::collections::{BTreeSet, HashMap, VecDeque};

use query::distance::{edits, within};
use query::forms::Forms;
use query::language::Languages;
use query::phrase::{Phrase, Progress};
use query::stem::root;
use query::words::{Span, Words, pattern, split};
use query::{Query, Value};

use crate::snippet::Mark;

/// How far behind the place at which every word of the query has been seen others are looked for, in bytes. A word
/// that is frequent in a long text would else take as long as the text is.
const REACH_BYTES: usize = 256 << 10;
/// Number of words between two looks at the time.
const WORDS_BETWEEN: usize = 1_024;

/// Recognizes the words of one query.
#[derive(Debug, Default)]
pub(crate) struct Highlighter {
    /// Plain words of the query, each with its number.
    forms: Vec<(Forms, u64)>,
    /// Exact words of the query, each with its number.
    words: HashMap<String, u64>,
    patterns: Vec<(Pattern, u64)>,
    /// Phrases, each with the number of its first word, and how many words it has.
    phrases: Vec<(Phrase, u64, usize)>,
    /// Number of words that have a number.
    numbered: usize,
    beginnings: Beginnings,
}

/// The first bytes of words that may be marked. Most words of a text begin with another one.
#[derive(Debug, Default)]
struct Beginnings {
    all: bool,
    bytes: [u64; 4],
}

impl Beginnings {
    /// Adds those of words that begin like `word`; with nothing in common, all.
    fn add(&mut self, word: &str) {
        match word.as_bytes().first() {
            Some(first) => {
                if let Some(bits) = self.bytes.get_mut(usize::from(first / 64)) {
                    *bits |= 1 << (first % 64);
                }
            }
            None => self.all = true,
        }
    }

    fn has(&self, word: &str) -> bool {
        let first = word.as_bytes().first().copied().unwrap_or_default();
        let bits = self.bytes.get(usize::from(first / 64)).copied().unwrap_or_default();
        self.all || bits >> (first % 64) & 1 == 1
    }
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
        query.for_each_wanted(&mut |leaf| highlighter.add(&leaf.value));
        highlighter
    }

    /// Returns how many different words of a text can be marked at most.
    pub(crate) const fn words(&self) -> usize {
        self.numbered
    }

    /// Returns whether every word of a text is compared with a pattern.
    pub(crate) const fn has_patterns(&self) -> bool {
        !self.patterns.is_empty()
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::Word(text) => match <[String; 1]>::try_from(split(text)) {
                Ok([word]) => {
                    let (forms, number) = (Forms::new(&word), self.number(1));
                    self.beginnings.add(if forms.begin_alike() { &word } else { "" });
                    self.beginnings.add(root(forms.english()));
                    self.forms.push((forms, number));
                }
                Err(several) => self.add_phrase(several, None),
            },
            Value::Phrase(text) => self.add_phrase(split(text), None),
            Value::Prefix(text) => {
                let mut exact = split(text);
                let last = exact.pop();
                match last {
                    Some(last) if exact.is_empty() => self.add_pattern(Pattern::Prefix(last)),
                    last => self.add_phrase(exact, last),
                }
            }
            Value::Fuzzy(text, typed) => {
                for word in split(text) {
                    let edits = edits(&word, *typed).into();
                    self.add_pattern(Pattern::Fuzzy(word.chars().collect(), edits));
                }
            }
            Value::Regex(typed) => {
                let pattern = format!("^(?:{})$", pattern(typed));
                if let Ok(regex) = regex::Regex::new(&pattern) {
                    self.add_pattern(Pattern::Regex(regex));
                }
            }
            Value::Range(..) | Value::Present => {}
        }
    }

    /// Returns the first of `count` new numbers.
    fn number(&mut self, count: usize) -> u64 {
        let first = self.numbered as u64;
        self.numbered += count;
        first
    }

    fn add_pattern(&mut self, pattern: Pattern) {
        let number = self.number(1);
        self.beginnings.add(match &pattern {
            Pattern::Prefix(prefix) => prefix,
            Pattern::Fuzzy(..) | Pattern::Regex(_) => "",
        });
        self.patterns.push((pattern, number));
    }

    /// Adds words that are marked only side by side; the last may be only begun.
    fn add_phrase(&mut self, words: Vec<String>, begun: Option<String>) {
        let count = words.len() + usize::from(begun.is_some());
        words.iter().chain(&begun).for_each(|it| self.beginnings.add(it));
        match (count, words.first()) {
            (0, _) => {}
            (1, Some(word)) => {
                let (word, number) = (word.clone(), self.number(1));
                self.words.entry(word).or_insert(number);
            }
            _ => {
                let number = self.number(count);
                self.phrases.push((Phrase::new(words, begun), number, count));
            }
        }
    }

    /// Returns the positions of the query's words in `text`, of a record of `languages`: ascending
    /// and disjoint.
    pub(crate) fn marks<'a>(&'a self, text: &'a str, languages: Languages) -> Marks<'a> {
        self.marks_while(text, languages, None)
    }

    /// Returns the first of them, as long as `goes_on` says: until every word has been seen, and what is near to that.
    pub(crate) fn first_marks<'a>(
        &'a self,
        text: &'a str,
        languages: Languages,
        goes_on: &'a dyn Fn() -> bool,
    ) -> Marks<'a> {
        self.marks_while(text, languages, Some(goes_on))
    }

    fn marks_while<'a>(
        &'a self,
        text: &'a str,
        languages: Languages,
        goes_on: Option<&'a dyn Fn() -> bool>,
    ) -> Marks<'a> {
        Marks {
            goes_on,
            read: 0,
            end: usize::MAX,
            unseen: (0..self.numbered as u64).collect(),
            highlighter: self,
            languages,
            words: Words::new(text),
            word: String::new(),
            progress: vec![Progress::default(); self.phrases.len()],
            recent: VecDeque::new(),
            longest: self.phrases.iter().map(|it| it.2).max().unwrap_or(1),
            marked: 0,
            at_end: false,
        }
    }

    /// Returns the number of a word, whatever its neighbors are.
    fn number_of(&self, word: &str, languages: Languages) -> Option<u64> {
        let exact = self.words.get(word).copied();
        exact
            .or_else(|| {
                let form = self.forms.iter().find(|(it, _)| it.form(word, languages).is_some());
                form.map(|(_, number)| *number)
            })
            .or_else(|| {
                let found = self.patterns.iter().find(|(it, _)| it.matches(word));
                found.map(|(_, number)| *number)
            })
    }
}

/// Iterator over the marks of a text.
pub(crate) struct Marks<'a> {
    /// Says whether there is time; `None` reads all.
    goes_on: Option<&'a dyn Fn() -> bool>,
    /// Number of words read.
    read: usize,
    /// Where it ends, in bytes.
    end: usize,
    /// The numbers of the words that have not been marked yet.
    unseen: BTreeSet<u64>,
    highlighter: &'a Highlighter,
    languages: Languages,
    words: Words<'a>,
    word: String,
    /// Progress of each phrase.
    progress: Vec<Progress>,
    /// The last words, up to the length of the longest phrase, with the numbers of those to mark.
    recent: VecDeque<(Span, Option<u64>)>,
    longest: usize,
    /// The end of the last mark, in bytes.
    marked: usize,
    at_end: bool,
}

impl Marks<'_> {
    /// Reads one word.
    fn read(&mut self) {
        self.read += 1;
        let is_over =
            self.read.is_multiple_of(WORDS_BETWEEN) && self.goes_on.is_some_and(|it| !it());
        let span = if is_over { None } else { self.words.next_into(&mut self.word) };
        let Some(span) = span.filter(|it| it.start < self.end) else {
            self.at_end = true;
            return;
        };
        if !self.highlighter.beginnings.has(&self.word) {
            return;
        }
        let number = self.highlighter.number_of(&self.word, self.languages);
        match self.recent.back_mut().filter(|(last, _)| last.position == span.position) {
            // A part of a name, which may be marked as a whole.
            Some(last) if last.1.is_none() && number.is_some() => *last = (span, number),
            Some(_) => {}
            None => self.recent.push_back((span, number)),
        }
        for ((phrase, first, count), progress) in
            self.highlighter.phrases.iter().zip(&mut self.progress)
        {
            if phrase.step(progress, &self.word, span.position) {
                let members = (*first..).zip(self.recent.iter_mut().rev().take(*count).rev());
                for (number, (_, mark)) in members {
                    mark.get_or_insert(number);
                }
            }
        }
    }
}

impl Iterator for Marks<'_> {
    type Item = Mark;

    fn next(&mut self) -> Option<Mark> {
        loop {
            // The last one may still be replaced by its parts.
            if self.at_end || self.longest < self.recent.len() {
                let (span, number) = self.recent.pop_front()?;
                // Pairs of letters overlap.
                let start = self.marked.max(span.start);
                if let Some(word) = number.filter(|_| start < span.end) {
                    self.marked = span.end;
                    self.unseen.remove(&word);
                    if self.goes_on.is_some() && self.unseen.is_empty() {
                        self.end = self.end.min(span.end.saturating_add(REACH_BYTES));
                    }
                    return Some(Mark { start, end: span.end, word });
                }
            } else {
                self.read();
            }
        }
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
        check_in(&[], query, text, expected);
    }

    fn check_in(languages: &[&str], query: &str, text: &str, expected: &str) {
        let mut record = soif::Record::new("FILE", "http://h/");
        record.push("Language", languages.join("\n"));
        let languages = Languages::of(&record);
        let highlighter = Highlighter::new(&parse(query).unwrap());
        let mut out = text.to_owned();
        let marks: Vec<Mark> = highlighter.marks(text, languages).collect();
        assert!(marks.is_sorted_by(|one, next| one.end <= next.start), "{query:?}");
        for mark in marks.iter().rev() {
            out.insert(mark.end, ']');
            out.insert(mark.start, '[');
        }
        assert_eq!(out, expected, "{query:?}");
    }

    #[test]
    fn forms_of_the_records_language_are_recognized() {
        check_in(&["de"], "haus", "Die Häuser, die Haustür", "Die [Häuser], die [Haustür]");
        check_in(&["en"], "haus", "Die Häuser, die Haustür", "Die Häuser, die Haustür");
        check_in(&["fr"], "cheval", "les chevaux", "les [chevaux]");
        check_in(&["ko"], "서울", "서울에서", "[서울에서]");
        check_in(&["ar"], "كتاب", "في الكتاب", "في [الكتاب]");
        check_in(&["he"], "הספר", "ספר", "[ספר]");
        check_in(&["ru", "de"], "книга strasse", "книги, Straßen", "[книги], [Straßen]");
    }

    #[test]
    fn every_form_of_a_word_is_recognized() {
        check("gather", "Gathering gatherers", "[Gathering] [gatherers]");
        check("\"gathering data\"", "gathering gather data", "gathering gather data");
        check("\"a b a\" b", "a b a b a a b", "[a] [b] [a] [b] [a] a [b]");
        check("\"a b\" \"b c\"", "b a b c a", "b [a] [b] [c] a");
        check("foo-ba*", "foo bar ba foo", "[foo] [bar] ba foo");
        check("cafe", "the Café", "the [Café]");
        check("foo-bar", "foo_bar barfoo", "[foo]_[bar] barfoo");
        check("harv*", "harvest hare", "[harvest] hare");
        check("harvst~1", "harvest harvests", "[harvest] harvests");
        check("havrest~1", "harvest", "[harvest]");
        check("/h.r[a-e]/", "hare hard harder", "[hare] [hard] harder");
        check("title:x a1 NOT b size:>3", "x a1 b 4", "[x] [a1] b 4");
        check("a day in the life", "a day in life", "a [day] in [life]");
        check("日本", "日本語日", "[日][本]語日");
        check("日本~1", "日本語", "[日][本]語");
        check("ภาษา", "หภาษาห", "ห[ภา][ษ][า]ห");
        check("c++ c#", "C, C++, C#", "C, [C++], [C#]");
        check("documentation", "docu-\nmentation, mentation", "[docu-\nmentation], mentation");
        check("/.*tation/", "docu-\nmentation", "[docu-\nmentation]");
        check("c hub", "C, C++, GitHub", "[C], [C]++, Git[Hub]");
        check("github git hub", "GitHub, .GitHub", "[GitHub], .[GitHub]");
        check("git* \"a .net\"", "GitHub a .NET", "[GitHub] [a] [.NET]");
    }
}
