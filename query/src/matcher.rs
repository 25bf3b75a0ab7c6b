//! The matcher: whether a record answers a query, and which of its attributes do.
//!
//! It finds what the broker's index finds: both read records by [`record`](crate::record) and words by
//! [`words`](crate::words). An index may know less where it has bounds of its own (forms of a word,
//! words that a prefix stands for, the size of a regular expression), and it may know more than
//! the record says: the addresses of other objects with the same content.
//!
//! Sans-I/O.

use std::collections::BTreeSet;

use regex::Regex;
use soif::Record;

use crate::distance::within;
use crate::field::{Part, Quantity, Target, target};
use crate::phrase::{Phrase, Progress};
use crate::record::{Searched, gatherer_id, integer, oid_key, quantity, searched};
use crate::stem::{Stemmer, root};
use crate::words::{Words, pattern, split};
use crate::{Leaf, Node, Query, Value, span};

/// What of a record answers a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// The attributes that hold what was looked for or what raises the rank, by name in small letters.
    /// What stands in no attribute of its own is there as queries name it: `url`, `host`,
    /// `gatherer`, `oid`, `size`, `year`, `modified`, `updated`. Empty where only something else was
    /// excluded, or everything asked for.
    pub attributes: BTreeSet<String>,
}

/// A query made ready to be held against many records. Shared freely between threads.
///
/// To hold it against a record takes time in what is searched of the record (see the bounds of
/// [`record`](crate::record)) times the conditions of the query (at most
/// [`LEAVES_MAX`](crate::LEAVES_MAX) in one that was parsed), whatever they are.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// `None` if nothing in the query is a condition, as in `???`: nothing answers it.
    root: Option<Tree>,
    conditions: Vec<Condition>,
}

/// How conditions are joined, by their places in a list; each node is one.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(usize),
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
}

/// What one leaf asks for.
#[derive(Clone, Debug)]
struct Condition {
    /// Whether it is looked for, rather than excluded.
    wanted: bool,
    asks: Asks,
}

#[derive(Clone, Debug)]
enum Asks {
    /// It holds, or does not, whatever the record.
    Fixed(bool),
    /// One of the attributes, in small letters, is there.
    Present(Vec<String>),
    /// A number between two, both included.
    Between(Quantity, i64, i64),
    /// An attribute that is a number between two, both included.
    AttributeBetween(String, i64, i64),
    /// The [`oid_key`].
    Oid(String),
    /// Words.
    Words(Scope, Test),
}

/// Where words are looked for.
#[derive(Clone, Debug)]
enum Scope {
    Usual,
    Part(Part),
    Attribute(String),
}

/// Which words are looked for in a text.
#[derive(Clone, Debug)]
enum Test {
    /// The word, or where endings mean something any that has its stem.
    Forms { word: String, stem: String },
    /// Words side by side.
    Phrase(Phrase),
    /// For each of the words one at most so many edits away, in one part.
    Near(Vec<Vec<char>>, usize),
    /// A word that matches as a whole; none if the pattern makes no sense.
    Regex(Option<Regex>),
}

/// What has been found of one condition in a record.
#[derive(Clone, Debug, Default)]
struct Found {
    holds: bool,
    /// Where.
    names: BTreeSet<String>,
    /// For [`Test::Near`]: the part (`None` for an attribute's own text), and which of the words.
    near: BTreeSet<(Option<Part>, usize)>,
}

impl Matcher {
    /// Makes `query` ready. Takes as long as its regular expressions take to compile: well under a
    /// millisecond each, as [`parse`](crate::parse()) lets them.
    pub fn new(query: &Query) -> Self {
        let mut matcher = Self { root: None, conditions: Vec::new() };
        matcher.root = matcher.node(&query.root, true);
        matcher
    }

    /// Returns what of `record` answers; `None` if it does not answer. The record is as it was read
    /// from a stream: white space in its address is percent-encoded.
    pub fn matches(&self, record: &Record) -> Option<Matched> {
        let mut found = vec![Found::default(); self.conditions.len()];
        for (condition, found) in self.conditions.iter().zip(&mut found) {
            let name = match &condition.asks {
                Asks::Fixed(holds) => {
                    found.holds = *holds;
                    continue;
                }
                Asks::Between(number, low, high) => quantity(record, *number)
                    .filter(|it| (*low..=*high).contains(it))
                    .map(|_| number.name()),
                Asks::Oid(key) => {
                    (*key == oid_key(&gatherer_id(record), &record.url)).then_some("oid")
                }
                Asks::Present(_) | Asks::AttributeBetween(..) | Asks::Words(..) => continue,
            };
            found.holds = name.is_some();
            found.names.extend(name.map(str::to_owned));
        }
        searched(record, &mut |name, what| self.look(name, what, &mut found));
        if !self.root.as_ref().is_some_and(|root| root.holds(&found)) {
            return None;
        }
        let answering =
            self.conditions.iter().zip(found).filter(|(it, found)| it.wanted && found.holds);
        Some(Matched { attributes: answering.flat_map(|(_, found)| found.names).collect() })
    }

    /// Makes a node ready; `None` when it is no condition.
    fn node(&mut self, node: &Node, wanted: bool) -> Option<Tree> {
        match node {
            Node::All => Some(self.add(wanted, Asks::Fixed(true))),
            Node::Leaf(leaf) => asks(leaf).map(|asks| self.add(wanted, asks)),
            Node::Not(inner) => Some(Tree::Not(Box::new(self.node(inner, false)?))),
            Node::And(nodes) => some(self.nodes(nodes, wanted)).map(Tree::All),
            Node::Or(nodes) => some(self.nodes(nodes, wanted)).map(Tree::Any),
            Node::Prefer { required, optional } => {
                let required = Tree::All(self.nodes(required, wanted));
                // They are looked for, but nothing depends on them.
                self.nodes(optional, wanted);
                Some(required)
            }
        }
    }

    fn nodes(&mut self, nodes: &[Node], wanted: bool) -> Vec<Tree> {
        nodes.iter().filter_map(|node| self.node(node, wanted)).collect()
    }

    fn add(&mut self, wanted: bool, asks: Asks) -> Tree {
        self.conditions.push(Condition { wanted, asks });
        Tree::Leaf(self.conditions.len() - 1)
    }

    /// Looks at what stands under one name.
    fn look(&self, name: &str, what: Searched<'_>, found: &mut [Found]) {
        let mut readings = Vec::new();
        for (condition, found) in self.conditions.iter().zip(found) {
            if found.holds && (!condition.wanted || found.names.contains(name)) {
                continue;
            }
            let holds = match (&condition.asks, what) {
                (Asks::Present(names), Searched::Name) => names.iter().any(|it| it == name),
                (Asks::AttributeBetween(it, low, high), Searched::Attribute(text)) => {
                    it == name && integer(text).is_some_and(|it| (*low..=*high).contains(&it))
                }
                (Asks::Words(scope, test), what) => {
                    if let Some(part) = scope.reads(name, what) {
                        readings.push(Reading { test, part, progress: Progress::default(), found });
                    }
                    continue;
                }
                _ => false,
            };
            if holds {
                found.note(name);
            }
        }
        let (Searched::Text(_, text) | Searched::Attribute(text)) = what else { return };
        let (mut words, mut word, stemmer) = (Words::new(text), String::new(), Stemmer::default());
        while !readings.is_empty()
            && let Some(at) = words.next_into(&mut word)
        {
            readings.retain_mut(|reading| {
                let holds = reading.step(name, &word, at.position, &stemmer);
                if holds {
                    reading.found.note(name);
                }
                !holds
            });
        }
    }
}

/// A text as one condition reads it.
struct Reading<'a> {
    test: &'a Test,
    /// Where the text stands; `None` for an attribute's own.
    part: Option<Part>,
    progress: Progress,
    found: &'a mut Found,
}

impl Reading<'_> {
    /// Goes on with the next word, and returns whether the condition holds by it.
    fn step(&mut self, name: &str, word: &str, position: usize, stemmer: &Stemmer) -> bool {
        match self.test {
            Test::Forms { word: it, stem } => {
                let inflected = self.part.is_some_and(Part::is_inflected);
                it == word
                    || inflected && word.starts_with(root(stem)) && stemmer.stem(word) == *stem
            }
            Test::Phrase(phrase) => phrase.step(&mut self.progress, word, position),
            Test::Near(wanted, edits) => {
                let near = &mut self.found.near;
                let hits = wanted.iter().enumerate().filter(|(_, it)| within(it, word, *edits));
                let mut hits = hits.map(|(number, _)| (self.part, number)).peekable();
                if hits.peek().is_none() {
                    return false;
                }
                near.extend(hits);
                self.found.names.insert(name.to_owned());
                (0..wanted.len()).all(|number| near.contains(&(self.part, number)))
            }
            Test::Regex(regex) => regex.as_ref().is_some_and(|it| it.is_match(word)),
        }
    }
}

impl Found {
    fn note(&mut self, name: &str) {
        self.holds = true;
        self.names.insert(name.to_owned());
    }
}

impl Tree {
    fn holds(&self, found: &[Found]) -> bool {
        match self {
            Self::Leaf(at) => found.get(*at).is_some_and(|it| it.holds),
            Self::All(nodes) => nodes.iter().all(|it| it.holds(found)),
            Self::Any(nodes) => nodes.iter().any(|it| it.holds(found)),
            Self::Not(node) => !node.holds(found),
        }
    }
}

impl Scope {
    /// Whether words are looked for in what stands under `name`, and in which part that is.
    fn reads(&self, name: &str, what: Searched<'_>) -> Option<Option<Part>> {
        match (self, what) {
            (Self::Usual, Searched::Text(part, _)) => {
                Part::USUAL.contains(&part).then_some(Some(part))
            }
            (Self::Part(it), Searched::Text(part, _)) => (*it == part).then_some(Some(part)),
            (Self::Attribute(it), Searched::Attribute(_)) => (it == name).then_some(None),
            _ => None,
        }
    }
}

/// What a leaf asks for; `None` when it is no condition: it has no word in it.
fn asks(leaf: &Leaf) -> Option<Asks> {
    let Some(name) = &leaf.field else { return words(Scope::Usual, &leaf.value) };
    match (target(name), &leaf.value) {
        (Target::Part(part), Value::Present) if part.names().is_empty() => Some(Asks::Fixed(true)),
        (Target::Part(part), Value::Present) => {
            Some(Asks::Present(part.names().iter().map(|it| (*it).to_owned()).collect()))
        }
        (Target::Part(part), value) => words(Scope::Part(part), value),
        (Target::Quantity(quantity), value) => {
            let span = span(value, Some(quantity.kind()));
            Some(span.map_or(Asks::Fixed(false), |(low, high)| Asks::Between(quantity, low, high)))
        }
        (Target::Oid, Value::Present) => Some(Asks::Fixed(true)),
        (Target::Oid, Value::Word(text) | Value::Phrase(text)) => Some(Asks::Oid(text.clone())),
        (Target::Oid, _) => Some(Asks::Fixed(false)),
        (Target::Attribute(name), Value::Present) => Some(Asks::Present(vec![name])),
        (Target::Attribute(name), value @ Value::Range(..)) => {
            let span = span(value, None);
            Some(
                span.map_or(Asks::Fixed(false), |(low, high)| {
                    Asks::AttributeBetween(name, low, high)
                }),
            )
        }
        (Target::Attribute(name), value) => words(Scope::Attribute(name), value),
    }
}

/// What a value asks for as words; `None` when it has no word in it.
fn words(scope: Scope, value: &Value) -> Option<Asks> {
    let test = match value {
        Value::Word(text) | Value::Phrase(text) => {
            let mut words = split(text);
            match (value, words.len()) {
                (_, 0) => return None,
                (Value::Word(_), 1) => {
                    let word = words.pop()?;
                    Test::Forms { stem: Stemmer::default().stem(&word).into_owned(), word }
                }
                _ => Test::Phrase(Phrase::new(words, None)),
            }
        }
        Value::Prefix(text) => {
            let mut words = split(text);
            let beginning = words.pop()?;
            Test::Phrase(Phrase::new(words, Some(beginning)))
        }
        Value::Fuzzy(text, edits) => {
            let words: Vec<_> = split(text).iter().map(|it| it.chars().collect()).collect();
            if words.is_empty() {
                return None;
            }
            Test::Near(words, usize::from(*edits))
        }
        Value::Regex(typed) => Test::Regex(Regex::new(&format!("^(?:{})$", pattern(typed))).ok()),
        Value::Range(..) | Value::Present => return Some(Asks::Fixed(false)),
    };
    Some(Asks::Words(scope, test))
}

/// `nodes`, unless there are none.
fn some(nodes: Vec<Tree>) -> Option<Vec<Tree>> {
    (!nodes.is_empty()).then_some(nodes)
}

#[cfg(test)]
mod tests;
