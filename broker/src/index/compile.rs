//! The compiler: it turns a tree of the query language into a query of the engine.
//!
//! The engine's own parser is not used because it drops repeated terms, which costs 4 points of
//! nDCG on long queries. Here every occurrence of a repeated term counts.
//!
//! A leaf of the tree without any word (`&`, `...`) is no condition.

mod pattern;

use std::ops::Bound as Limit;
use std::sync::Arc;

use query::distance::edits;
use query::field::{Target, TextField, target};
use query::words::{self, split};
use query::{Kind, Leaf, Node, Query, Value, span};
use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, FuzzyTermQuery,
    InvertedIndexRangeQuery, Occur, PhrasePrefixQuery, PhraseQuery, Query as Engine, RangeQuery,
    TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

use super::deadline::Deadline;
use super::forms::Forms;
use super::rank;
use super::schema::{Fields, Text};
use crate::answer::Statistics;
use pattern::{Pattern, PatternQuery};

/// Maximum number of words that a prefix after other words (`foo-ba*`) matches.
pub(super) const EXPANSIONS_MAX: u32 = 10_000;

pub(super) struct Compiler<'a> {
    fields: &'a Fields,
    /// Deadline, checked by every query that may take long in a single field of a segment.
    deadline: Deadline,
    /// The plain words that are looked for in the usual places.
    words: Vec<Forms>,
    /// The plain words in one place alone.
    placed: Vec<Forms>,
    /// By which words are scored; `None`: by what this index has.
    statistics: Option<Arc<Statistics>>,
}

type Clauses = Vec<(Occur, Box<dyn Engine>)>;

/// A place in the index where words are searched.
#[derive(Clone)]
enum WordPlace {
    Text(Text),
    /// An attribute's path in the field of attributes.
    Attribute(Term),
}

impl WordPlace {
    /// Returns the field that has the words of this place as written.
    fn exact(&self) -> Field {
        match self {
            Self::Text(text) => text.field,
            Self::Attribute(path) => path.field(),
        }
    }

    fn term(&self, word: &str) -> Term {
        match self {
            Self::Text(text) => Term::from_field_text(text.field, word),
            Self::Attribute(path) => {
                let mut term = path.clone();
                term.append_type_and_str(word);
                term
            }
        }
    }

    fn weight(&self) -> f32 {
        match self {
            Self::Text(text) => text.weight.weight,
            Self::Attribute(_) => rank::NAMED.weight,
        }
    }
}

impl<'a> Compiler<'a> {
    pub(super) fn new(fields: &'a Fields, deadline: Deadline) -> Self {
        Self { fields, deadline, words: Vec::new(), placed: Vec::new(), statistics: None }
    }

    /// Returns the same compiler, whose queries score words by statistics of several indexes.
    pub(super) fn scored_by(self, statistics: Option<Arc<Statistics>>) -> Self {
        Self { statistics, ..self }
    }

    /// Returns all plain words of the queries made so far.
    pub(super) fn counted(self) -> Vec<Forms> {
        [self.words, self.placed].concat()
    }

    /// Makes the engine's query.
    ///
    /// # Errors
    ///
    /// A regular expression is too large for the engine, or has unknown syntax.
    pub(super) fn query(&mut self, query: &Query) -> Result<Box<dyn Engine>, String> {
        Ok(self.node(&query.root)?.unwrap_or_else(|| Box::new(EmptyQuery)))
    }

    /// Returns the plain words in the usual places of the queries made so far, each once.
    pub(super) fn words(self) -> Vec<Forms> {
        self.words
    }

    /// Makes the query of one node; `None` when it is no condition.
    fn node(&mut self, node: &Node) -> Result<Option<Box<dyn Engine>>, String> {
        match node {
            Node::All => Ok(Some(everything())),
            Node::Leaf(leaf) => self.leaf(leaf),
            Node::Not(inner) => Ok(self.node(inner)?.map(all_but)),
            Node::And(nodes) => Ok(combine(self.musts(nodes)?)),
            Node::Beside(nodes) => Ok(combine(self.musts(Node::without_stop_words(nodes))?)),
            Node::Or(nodes) => Ok(combine(self.shoulds(nodes)?)),
            Node::Prefer { required, optional } => {
                let mut clauses = self.musts(required)?;
                if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) {
                    clauses.push((Occur::Must, everything()));
                }
                clauses.extend(self.shoulds(optional)?);
                Ok(combine(clauses))
            }
        }
    }

    fn musts<'n>(&mut self, nodes: impl IntoIterator<Item = &'n Node>) -> Result<Clauses, String> {
        let mut clauses = Vec::new();
        for (node, times) in counted(nodes) {
            if let Node::Not(inner) = node {
                clauses.extend(self.node(inner)?.map(|query| (Occur::MustNot, query)));
            } else {
                clauses.extend(self.node(node)?.map(|query| (Occur::Must, weigh(query, times))));
            }
        }
        Ok(clauses)
    }

    fn shoulds(&mut self, nodes: &[Node]) -> Result<Clauses, String> {
        let mut clauses = Vec::new();
        for (node, times) in counted(nodes) {
            clauses.extend(self.node(node)?.map(|query| (Occur::Should, weigh(query, times))));
        }
        Ok(clauses)
    }

    fn leaf(&mut self, leaf: &Leaf) -> Result<Option<Box<dyn Engine>>, String> {
        let Some(name) = &leaf.field else {
            if let Value::Word(text) = &leaf.value
                && let [word] = &split(text)[..]
            {
                return Ok(Some(self.usual_word(word)));
            }
            let parts = leaf.value.usual_fields();
            let places = parts.map(|part| WordPlace::Text(self.fields.text(part)));
            return self.in_places(&places, &leaf.value);
        };
        match (target(name), &leaf.value) {
            (Target::Text(part), Value::Present) => Ok(Some(self.present(part.names()))),
            (Target::Attribute(name), Value::Present) => Ok(Some(self.present(&[&name]))),
            (Target::Oid, Value::Present) => Ok(Some(everything())),
            (Target::Oid, Value::Word(text) | Value::Phrase(text)) => {
                let term = Term::from_field_text(self.fields.oid, text);
                Ok(Some(Box::new(TermQuery::new(term, IndexRecordOption::Basic))))
            }
            (Target::Oid, _) => Ok(Some(Box::new(EmptyQuery))),
            (Target::Quantity(quantity), value) => {
                let numbers = numbers(self.fields.quantity(quantity), value, quantity.kind());
                Ok(Some(match value {
                    // The number may come from any of the attributes of this quantity.
                    Value::Present => Box::new(ConstScoreQuery::new(numbers, 0.0)),
                    _ => numbers,
                }))
            }
            (Target::Text(part), value) => {
                self.in_places(&[WordPlace::Text(self.fields.text(part))], value)
            }
            (Target::Attribute(name), value) => {
                let path = attribute_path(self.fields.attributes, &name);
                if let Value::Range(..) = value {
                    return Ok(Some(self.deadline.hold(attribute_range(&path, value))));
                }
                self.in_places(&[WordPlace::Attribute(path)], value)
            }
        }
    }

    /// Returns the query for a plain word in the usual places. The words of a name are words of its
    /// path, so that the name only adds to the score.
    fn usual_word(&mut self, word: &str) -> Box<dyn Engine> {
        let mut fields: Vec<Text> = TextField::OF_A_WORD.map(|it| self.fields.text(it)).into();
        fields.push(self.fields.name);
        let forms = Forms::new(self.fields, fields, word).scored_by(self.statistics.clone());
        self.words.push(forms.clone());
        self.deadline.hold(Box::new(forms))
    }

    /// Returns the query for objects with one of the attributes, named in lower case; for all
    /// objects if `names` is empty.
    fn present(&self, names: &[&str]) -> Box<dyn Engine> {
        let has = |name: &&str| -> Box<dyn Engine> {
            let term = Term::from_field_text(self.fields.names, name);
            let query = TermQuery::new(term, IndexRecordOption::Basic);
            Box::new(ConstScoreQuery::new(Box::new(query), 0.0))
        };
        any(names.iter().map(has).collect()).unwrap_or_else(everything)
    }

    /// Returns the query for objects with `value` in one of the places; `None` if it has no word.
    fn in_places(
        &mut self,
        places: &[WordPlace],
        value: &Value,
    ) -> Result<Option<Box<dyn Engine>>, String> {
        let deadline = self.deadline;
        let held = |query| deadline.hold(query);
        let queries: Vec<Box<dyn Engine>> = match value {
            Value::Word(text) => {
                let exact = split(text);
                match &exact[..] {
                    [] => return Ok(None),
                    [word] => self.plain(places, word),
                    several => each(places, |place| held(phrase(place, several))),
                }
            }
            Value::Phrase(text) => {
                let exact = split(text);
                if exact.is_empty() {
                    return Ok(None);
                }
                each(places, |place| held(phrase(place, &exact)))
            }
            Value::Prefix(text) => {
                let exact = split(text);
                let Some((last, before)) = exact.split_last() else { return Ok(None) };
                each(places, |place| held(prefix(place, before, last)))
            }
            Value::Fuzzy(text, edits) => {
                let exact = split(text);
                if exact.is_empty() {
                    return Ok(None);
                }
                each(places, |place| held(fuzzy(place, &exact, *edits)))
            }
            Value::Regex(pattern) => regexes(places, &words::pattern(pattern), deadline)?,
            Value::Range(..) | Value::Present => return Ok(Some(Box::new(EmptyQuery))),
        };
        Ok(any(queries))
    }

    /// Returns the queries for one plain word; in inflected fields, for all forms of the word.
    fn plain(&mut self, places: &[WordPlace], word: &str) -> Vec<Box<dyn Engine>> {
        let mut queries: Vec<Box<dyn Engine>> = Vec::new();
        let mut fields = Vec::new();
        for place in places {
            match place {
                WordPlace::Text(text) => fields.push(*text),
                WordPlace::Attribute(_) => {
                    let term = TermQuery::new(place.term(word), IndexRecordOption::WithFreqs);
                    queries.push(Box::new(term));
                }
            }
        }
        if !fields.is_empty() {
            let forms = Forms::new(self.fields, fields, word).scored_by(self.statistics.clone());
            self.placed.push(forms.clone());
            queries.push(Box::new(forms));
        }
        queries.into_iter().map(|it| self.deadline.hold(it)).collect()
    }
}

/// Makes a query for each place and gives the query the place's weight.
fn each(
    places: &[WordPlace],
    query: impl Fn(&WordPlace) -> Box<dyn Engine>,
) -> Vec<Box<dyn Engine>> {
    places.iter().map(|place| weigh_by(query(place), place.weight())).collect()
}

/// Returns the query for exact words that follow each other; `words` must not be empty.
fn phrase(place: &WordPlace, words: &[String]) -> Box<dyn Engine> {
    let terms: Vec<Term> = words.iter().map(|word| place.term(word)).collect();
    match <[Term; 1]>::try_from(terms) {
        Ok([term]) => Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)),
        Err(terms) => Box::new(PhraseQuery::new(terms)),
    }
}

/// Returns the query for a word that begins with `last`, after the words `before`.
fn prefix(place: &WordPlace, before: &[String], last: &str) -> Box<dyn Engine> {
    if before.is_empty() {
        return Box::new(FuzzyTermQuery::new_prefix(place.term(last), 0, true));
    }
    let mut terms: Vec<Term> = before.iter().map(|word| place.term(word)).collect();
    terms.push(place.term(last));
    let mut query = PhrasePrefixQuery::new(terms);
    query.set_max_expansions(EXPANSIONS_MAX);
    Box::new(query)
}

/// Returns the query for words within the `typed` number of edits of each of `words`; exact words
/// weigh most.
fn fuzzy(place: &WordPlace, words: &[String], typed: u8) -> Box<dyn Engine> {
    let near = |word: &String| -> Box<dyn Engine> {
        let very = Box::new(TermQuery::new(place.term(word), IndexRecordOption::WithFreqs));
        let edits = edits(word, typed);
        if edits == 0 {
            return very;
        }
        let resembling: Box<dyn Engine> =
            Box::new(FuzzyTermQuery::new(place.term(word), edits, true));
        Box::new(BooleanQuery::union(vec![weigh_by(resembling, rank::FUZZY), very]))
    };
    Box::new(BooleanQuery::intersection(words.iter().map(near).collect()))
}

/// Returns the queries for words that `pattern` matches as a whole.
fn regexes(
    places: &[WordPlace],
    pattern: &str,
    deadline: Deadline,
) -> Result<Vec<Box<dyn Engine>>, String> {
    let mut of_texts = None;
    let mut queries: Vec<Box<dyn Engine>> = Vec::with_capacity(places.len());
    for place in places {
        let pattern = match (place, &of_texts) {
            (WordPlace::Text(_), Some(made)) => Arc::clone(made),
            (WordPlace::Text(_), None) => {
                Arc::clone(of_texts.insert(Pattern::new(pattern, deadline)?))
            }
            // A term of an attribute consists of the attribute's path, a mark for text, and the word.
            (WordPlace::Attribute(_), _) => {
                let before = place.term("");
                let path = String::from_utf8_lossy(before.serialized_value_bytes()).into_owned();
                Pattern::new(&format!("{}(?:{pattern})", regex::escape(&path)), deadline)?
            }
        };
        let query = deadline.hold(Box::new(PatternQuery { pattern, field: place.exact() }));
        queries.push(weigh_by(query, place.weight()));
    }
    Ok(queries)
}

fn attribute_path(field: Field, name: &str) -> Term {
    let escaped = name.replace('\\', "\\\\").replace('.', "\\.");
    Term::from_field_json_path(field, &escaped, false)
}

fn numbers(field: Field, value: &Value, kind: Kind) -> Box<dyn Engine> {
    match span(value, Some(kind)) {
        Some((low, high)) => Box::new(RangeQuery::new(
            Limit::Included(Term::from_field_i64(field, low)),
            Limit::Included(Term::from_field_i64(field, high)),
        )),
        None => Box::new(EmptyQuery),
    }
}

/// Returns the query for a range of an attribute's whole numbers.
fn attribute_range(path: &Term, value: &Value) -> Box<dyn Engine> {
    let at = |value: i64| {
        let mut term = path.clone();
        term.append_type_and_fast_value(value);
        Limit::Included(term)
    };
    match span(value, None) {
        Some((low, high)) => Box::new(InvertedIndexRangeQuery::new(at(low), at(high))),
        None => Box::new(EmptyQuery),
    }
}

/// Returns each distinct node with its count, in the order of first occurrence.
fn counted<'n>(nodes: impl IntoIterator<Item = &'n Node>) -> Vec<(&'n Node, usize)> {
    let mut counted: Vec<(&Node, usize)> = Vec::new();
    for node in nodes {
        match counted.iter_mut().find(|(it, _)| *it == node) {
            Some((_, times)) => *times += 1,
            None => counted.push((node, 1)),
        }
    }
    counted
}

fn weigh(query: Box<dyn Engine>, times: usize) -> Box<dyn Engine> {
    if times == 1 { query } else { weigh_by(query, rank::repeated(times)) }
}

fn weigh_by(query: Box<dyn Engine>, weight: f32) -> Box<dyn Engine> {
    Box::new(BoostQuery::new(query, weight))
}

fn everything() -> Box<dyn Engine> {
    Box::new(ConstScoreQuery::new(Box::new(AllQuery), 0.0))
}

fn all_but(query: Box<dyn Engine>) -> Box<dyn Engine> {
    Box::new(BooleanQuery::new(vec![(Occur::Must, everything()), (Occur::MustNot, query)]))
}

fn any(mut queries: Vec<Box<dyn Engine>>) -> Option<Box<dyn Engine>> {
    match queries.len() {
        0 => None,
        1 => queries.pop(),
        _ => Some(Box::new(BooleanQuery::union(queries))),
    }
}

/// Joins clauses; `None` when there are none. If all exclude, the rest of all objects matches.
fn combine(mut clauses: Clauses) -> Option<Box<dyn Engine>> {
    if clauses.is_empty() {
        return None;
    }
    if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) {
        clauses.push((Occur::Must, everything()));
    }
    Some(Box::new(BooleanQuery::new(clauses)))
}
