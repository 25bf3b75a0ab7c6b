//! The matcher: it decides whether a record matches a query, and which of its attributes match.
//!
//! It finds the same records as the broker's index: both read records by [`record`](crate::record)
//! and words by [`words`](crate::words). An index may find less where it has its own limits (forms
//! of a word, words with a prefix, the size of a regular expression). It may find more than the
//! record says: the URLs of other objects with the same content.
//!
//! Sans-I/O.

mod needed;
mod reading;
mod split;

use std::collections::BTreeSet;

use regex::Regex;
use soif::Record;

pub(crate) use self::needed::of_record;
use self::reading::{Concerned, ReadWord, Reading};
use self::split::ItemKind;
pub(crate) use self::split::Split;
use crate::distance::edits;
use crate::field::{Quantity, Target, TextField, target};
use crate::forms::Forms;
use crate::language::Languages;
use crate::phrase::{Phrase, Progress};
use crate::record::{Searched, gatherer_id, integer, oid_key, quantity, searched};
use crate::words::{Words, pattern, split};
use crate::{Leaf, Node, Query, Value, span};

/// The attributes of a record that match a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// Names, in small letters, of the attributes that match a required or an optional condition.
    /// Values that are not found by an attribute's own name have their names in queries: `url`,
    /// `host`, `gatherer`, `oid`, `size`, `year`, `modified`, `updated`. Empty if the query only
    /// excludes records or asks for all.
    pub attributes: BTreeSet<String>,
}

/// A query prepared for matching many records. Threads may share it.
///
/// The time for one record is proportional to its searched text (see the limits of [`record`](crate::record)), and that
/// for its different words to the number of patterns (at most [`PATTERNS_MAX`](crate::PATTERNS_MAX) in a parsed query) and
/// of words that begin with one letter.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// `None` if the query has no condition, as in `???`: no record matches it.
    root: Option<Tree>,
    conditions: Vec<Condition>,
    concerned: Concerned,
}

/// Boolean combination of conditions; a leaf is an index in [`Matcher::conditions`].
#[derive(Clone, Debug)]
enum Tree {
    Leaf(usize),
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
}

/// The condition of one leaf.
#[derive(Clone, Debug)]
struct Condition {
    /// Whether the leaf is not under a NOT.
    wanted: bool,
    predicate: Predicate,
}

#[derive(Clone, Debug)]
enum Predicate {
    /// The same for every record.
    Fixed(bool),
    /// One of the attributes, in small letters, exists.
    Present(Vec<String>),
    /// The quantity lies between two numbers, both included.
    Between(Quantity, i64, i64),
    /// The attribute is a number between two numbers, both included.
    AttributeBetween(String, i64, i64),
    /// The [`oid_key`].
    Oid(String),
    /// Words.
    Words(Scope, Test),
}

/// The texts in which words are searched.
#[derive(Clone, Debug)]
enum Scope {
    Usual([TextField; 6]),
    Field(TextField),
    Attribute(String),
}

/// A test of the words of a text.
#[derive(Clone, Debug)]
enum Test {
    /// The word, or in inflected fields any of its forms.
    Forms(Forms),
    /// Words side by side.
    Phrase(Phrase),
    /// For each of these words, a word at most this number of edits away, all in one field.
    Near(Vec<(Vec<char>, usize)>),
    /// A word that matches as a whole; `None` for an invalid pattern.
    Regex(Option<Regex>),
}

/// Outcome of one condition on a record.
#[derive(Clone, Debug, Default)]
struct Outcome {
    holds: bool,
    /// Names of the attributes for which it holds.
    names: BTreeSet<String>,
    /// For [`Test::Near`]: the words found, by field (`None`: an attribute's own text) and index.
    near: BTreeSet<(Option<TextField>, usize)>,
}

impl Matcher {
    /// Prepares `query`. Takes as long as its regular expressions take to compile: well under a
    /// millisecond each, by the limits of [`parse`](crate::parse()).
    pub fn new(query: &Query) -> Self {
        let (conditions, concerned) = (Vec::new(), Concerned::default());
        let mut matcher = Self { root: None, conditions, concerned };
        matcher.root = matcher.node(&query.root, true);
        matcher
    }

    /// Returns the attributes of `record` that match; `None` if the record does not match. The
    /// record is as read from a stream: white space in its URL is percent-encoded.
    pub fn matches(&self, record: &Record) -> Option<Matched> {
        let mut found = self.begin(record);
        let languages = if self.has_forms() { Languages::of(record) } else { Languages::default() };
        searched(record, &mut |name, what| {
            self.test_item((name, what), languages, &mut found, &mut |read| {
                let (Searched::Text(_, text) | Searched::Attribute(text)) = what else { return };
                let (mut words, mut word) = (Words::new(text), String::new());
                while let Some(at) = words.next_into(&mut word)
                    && read(&word, at.position)
                {}
            });
        });
        self.answer(found)
    }

    /// Returns whether a record matches that was split already.
    pub(crate) fn takes(&self, record: &Record, split: &Split) -> bool {
        let mut found = self.begin(record);
        for item in &split.items {
            let what = match &item.what {
                ItemKind::Name => Searched::Name,
                ItemKind::Text(part) => Searched::Text(*part, ""),
                ItemKind::Attribute(text) => Searched::Attribute(text),
            };
            self.test_item((&item.name, what), split.languages, &mut found, &mut |read| {
                let _stopped = split.words_of(item).all(|(word, position)| read(word, position));
            });
        }
        self.answer(found).is_some()
    }

    /// Returns the attributes that match, if the conditions that hold are enough.
    fn answer(&self, found: Vec<Outcome>) -> Option<Matched> {
        if !self.root.as_ref().is_some_and(|root| root.holds(&found)) {
            return None;
        }
        let answering =
            self.conditions.iter().zip(found).filter(|(it, found)| it.wanted && found.holds);
        Some(Matched { attributes: answering.flat_map(|(_, found)| found.names).collect() })
    }

    /// Returns what is known of the conditions before any text is read.
    fn begin(&self, record: &Record) -> Vec<Outcome> {
        let mut found = vec![Outcome::default(); self.conditions.len()];
        for (condition, found) in self.conditions.iter().zip(&mut found) {
            let name = match &condition.predicate {
                Predicate::Fixed(holds) => {
                    found.holds = *holds;
                    continue;
                }
                Predicate::Between(number, low, high) => quantity(record, *number)
                    .filter(|it| (*low..=*high).contains(it))
                    .map(|_| number.name()),
                Predicate::Oid(key) => {
                    (*key == oid_key(&gatherer_id(record), &record.url)).then_some("oid")
                }
                Predicate::Present(_) | Predicate::AttributeBetween(..) | Predicate::Words(..) => {
                    continue;
                }
            };
            found.holds = name.is_some();
            found.names.extend(name.map(str::to_owned));
        }
        found
    }

    /// Returns whether a condition depends on the languages of a record.
    fn has_forms(&self) -> bool {
        let is_word = |it: &Condition| matches!(it.predicate, Predicate::Words(_, Test::Forms(_)));
        self.conditions.iter().any(is_word)
    }

    /// Prepares a node; `None` if it has no condition.
    fn node(&mut self, node: &Node, wanted: bool) -> Option<Tree> {
        match node {
            Node::All => Some(self.add(wanted, Predicate::Fixed(true))),
            Node::Leaf(leaf) => predicate(leaf).map(|it| self.add(wanted, it)),
            Node::Not(inner) => Some(Tree::Not(Box::new(self.node(inner, false)?))),
            Node::And(nodes) => non_empty(self.nodes(nodes, wanted)).map(Tree::All),
            Node::Beside(nodes) => {
                let nodes = Node::without_stop_words(nodes);
                non_empty(self.nodes(nodes, wanted)).map(Tree::All)
            }
            Node::Or(nodes) => non_empty(self.nodes(nodes, wanted)).map(Tree::Any),
            Node::Prefer { required, optional } => {
                let required = Tree::All(self.nodes(required, wanted));
                // Optional conditions give attribute names, but the match does not depend on them.
                self.nodes(optional, wanted);
                Some(required)
            }
        }
    }

    fn nodes<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>, wanted: bool) -> Vec<Tree> {
        nodes.into_iter().filter_map(|node| self.node(node, wanted)).collect()
    }

    fn add(&mut self, wanted: bool, predicate: Predicate) -> Tree {
        let number = self.conditions.len();
        if let Predicate::Words(_, test) = &predicate {
            self.concerned.add(number, test);
        }
        self.conditions.push(Condition { wanted, predicate });
        Tree::Leaf(number)
    }

    /// Tests the conditions on one searched item of a record of `languages`. `words` calls what it is given with each
    /// of the item's words, and with its position, until that returns false.
    fn test_item(
        &self,
        (name, what): (&str, Searched<'_>),
        languages: Languages,
        found: &mut [Outcome],
        words: &mut dyn FnMut(&mut ReadWord<'_>),
    ) {
        let mut readings = Vec::with_capacity(self.conditions.len());
        for (condition, found) in self.conditions.iter().zip(found) {
            readings.push(None);
            if found.holds && (!condition.wanted || found.names.contains(name)) {
                continue;
            }
            let holds = match (&condition.predicate, what) {
                (Predicate::Present(names), Searched::Name) => names.iter().any(|it| it == name),
                (Predicate::AttributeBetween(it, low, high), Searched::Attribute(text)) => {
                    it == name && integer(text).is_some_and(|it| (*low..=*high).contains(&it))
                }
                (Predicate::Words(scope, test), what) => {
                    if let Some(part) = scope.reads(name, what)
                        && let Some(place) = readings.last_mut()
                    {
                        let progress = Progress::default();
                        *place = Some(Reading { test, part, languages, progress, found });
                    }
                    continue;
                }
                _ => false,
            };
            if holds {
                found.note(name);
            }
        }
        reading::read(name, &self.concerned, readings, words);
    }
}

impl Outcome {
    fn note(&mut self, name: &str) {
        self.holds = true;
        self.names.insert(name.to_owned());
    }
}

impl Tree {
    fn holds(&self, found: &[Outcome]) -> bool {
        match self {
            Self::Leaf(at) => found.get(*at).is_some_and(|it| it.holds),
            Self::All(nodes) => nodes.iter().all(|it| it.holds(found)),
            Self::Any(nodes) => nodes.iter().any(|it| it.holds(found)),
            Self::Not(node) => !node.holds(found),
        }
    }
}

impl Scope {
    /// Returns the field to search in the item `name`; `Some(None)` for an attribute's own text,
    /// `None` if the item is not searched.
    fn reads(&self, name: &str, what: Searched<'_>) -> Option<Option<TextField>> {
        match (self, what) {
            (Self::Usual(fields), Searched::Text(part, _)) => {
                fields.contains(&part).then_some(Some(part))
            }
            (Self::Field(it), Searched::Text(part, _)) => (*it == part).then_some(Some(part)),
            (Self::Attribute(it), Searched::Attribute(_)) => (it == name).then_some(None),
            _ => None,
        }
    }
}

/// Returns the predicate of a leaf; `None` if it has no word and so is no condition.
fn predicate(leaf: &Leaf) -> Option<Predicate> {
    let Some(name) = &leaf.field else {
        return words(Scope::Usual(leaf.value.usual_fields()), &leaf.value);
    };
    match (target(name), &leaf.value) {
        (Target::Text(part), Value::Present) if part.names().is_empty() => {
            Some(Predicate::Fixed(true))
        }
        (Target::Text(part), Value::Present) => {
            Some(Predicate::Present(part.names().iter().map(|it| (*it).to_owned()).collect()))
        }
        (Target::Text(part), value) => words(Scope::Field(part), value),
        (Target::Quantity(quantity), value) => {
            let span = span(value, Some(quantity.kind()));
            Some(span.map_or(Predicate::Fixed(false), |(low, high)| {
                Predicate::Between(quantity, low, high)
            }))
        }
        (Target::Oid, Value::Present) => Some(Predicate::Fixed(true)),
        (Target::Oid, Value::Word(text) | Value::Phrase(text)) => {
            Some(Predicate::Oid(text.clone()))
        }
        (Target::Oid, _) => Some(Predicate::Fixed(false)),
        (Target::Attribute(name), Value::Present) => Some(Predicate::Present(vec![name])),
        (Target::Attribute(name), value @ Value::Range(..)) => {
            let span = span(value, None);
            Some(span.map_or(Predicate::Fixed(false), |(low, high)| {
                Predicate::AttributeBetween(name, low, high)
            }))
        }
        (Target::Attribute(name), value) => words(Scope::Attribute(name), value),
    }
}

/// Returns the predicate for a value that is searched by its words; `None` if it has no word.
fn words(scope: Scope, value: &Value) -> Option<Predicate> {
    let test = match value {
        Value::Word(text) | Value::Phrase(text) => {
            let mut words = split(text);
            match (value, words.len()) {
                (_, 0) => return None,
                (Value::Word(_), 1) => Test::Forms(Forms::new(&words.pop()?)),
                _ => Test::Phrase(Phrase::new(words, None)),
            }
        }
        Value::Prefix(text) => {
            let mut words = split(text);
            let beginning = words.pop()?;
            Test::Phrase(Phrase::new(words, Some(beginning)))
        }
        Value::Fuzzy(text, typed) => {
            let near = |it: &String| (it.chars().collect(), edits(it, *typed).into());
            let words: Vec<_> = split(text).iter().map(near).collect();
            if words.is_empty() {
                return None;
            }
            Test::Near(words)
        }
        Value::Regex(typed) => Test::Regex(Regex::new(&format!("^(?:{})$", pattern(typed))).ok()),
        Value::Range(..) | Value::Present => return Some(Predicate::Fixed(false)),
    };
    Some(Predicate::Words(scope, test))
}

/// Returns `nodes`, or `None` if there are none.
fn non_empty(nodes: Vec<Tree>) -> Option<Vec<Tree>> {
    (!nodes.is_empty()).then_some(nodes)
}

#[cfg(test)]
mod tests;
