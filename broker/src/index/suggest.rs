//! Suggestions: other spellings of words that hardly any object has.
//!
//! Only words of the index are suggested. A word may be a frequent misspelling itself, so it is
//! replaced if another one close to it occurs much more often.

use std::collections::HashMap;
use std::time::Duration;

use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use query::field::{Target, TextField, resembling, target};
use query::words::{Words, split};
use query::{Query, Value};
use tantivy::{Searcher, Term};
use tantivy_fst::Automaton;

use super::deadline::Deadline;
use super::document::PART;
use super::schema::Fields;
use crate::answer::Notice;

/// Maximum number of words of a query that are looked up.
const WORDS_MAX: usize = 8;
/// Length of the shortest word that is respelled, in characters.
const WORD_CHARS_MIN: usize = 4;
/// Length of the shortest word in which two letters may be wrong, in characters.
const TWO_EDITS_CHARS_MIN: usize = 6;
/// A word that more objects have is no misspelling.
const RARE_MAX: u64 = 20;
/// Processor time for looking up the words of a query. Further words and fields are left out; the
/// segments and fields before them have nearly all words.
const TIME_MAX: Duration = Duration::from_millis(200);
/// How many times as often as the typed word another one must occur.
const TIMES_MIN: u64 = 20;
/// How many times as often a word must occur to be preferred to one with one edit less, or to one
/// with the same first letter.
const PREFERRED_TIMES: u64 = 20;

/// Names of attributes that every query can use.
const NAMES: [&str; 14] = [
    "title",
    "author",
    "keywords",
    "description",
    "body",
    "url",
    "path",
    "type",
    "host",
    "gatherer",
    "size",
    "year",
    "modified",
    "updated",
];
/// The fields with the words of the objects' own language.
const FIELDS: [TextField; 4] =
    [TextField::Title, TextField::Keywords, TextField::Description, TextField::Body];

/// Returns the typed `text` with every rare word of the query in place of a similar frequent one;
/// `None` if there is none. Whoever suggests it checks first that it finds more.
///
/// # Errors
///
/// The engine failed.
pub(super) fn respelled(
    searcher: &Searcher,
    fields: &Fields,
    (text, query): (&str, &Query),
    deadline: Deadline,
) -> tantivy::Result<Option<String>> {
    let mut typed: Vec<String> = Vec::new();
    query.for_each_wanted(&mut |leaf| {
        if let (None, Value::Word(it)) = (&leaf.field, &leaf.value)
            && let [word] = &split(it)[..]
            && WORD_CHARS_MIN <= word.chars().count()
            && word.chars().all(char::is_alphabetic)
            && !typed.contains(word)
            && typed.len() < WORDS_MAX
        {
            typed.push(word.clone());
        }
    });
    let until = deadline.within(TIME_MAX);
    let mut others: HashMap<String, String> = HashMap::new();
    for word in typed {
        if let Some(other) = other_word(searcher, fields, &word, until)? {
            others.insert(word, other);
        }
    }
    let (mut words, mut word) = (Words::new(text), String::new());
    let (mut written, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(span) = words.next_into(&mut word) {
        if let Some(other) = others.get(&word) {
            written += text.get(at..span.start).unwrap_or_default();
            written += other;
            at = span.end;
        }
    }
    written += text.get(at..).unwrap_or_default();
    Ok((at != 0).then_some(written))
}

/// Returns the word for which `word` was probably meant.
fn other_word(
    searcher: &Searcher,
    fields: &Fields,
    word: &str,
    until: Deadline,
) -> tantivy::Result<Option<String>> {
    let own = FIELDS.map(|it| Term::from_field_text(fields.text(it).field, word));
    for term in &own {
        if RARE_MAX < searcher.doc_freq(term)? {
            return Ok(None);
        }
    }
    let edits = if word.chars().count() < TWO_EDITS_CHARS_MIN { 1 } else { 2 };
    let similar = Similar(LevenshteinAutomatonBuilder::new(edits, true).build_dfa(word));
    let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
    'lookup: for segment in searcher.segment_readers() {
        for field in FIELDS.map(|it| fields.text(it).field) {
            if until.check().is_err() {
                break 'lookup;
            }
            let index = segment.inverted_index(field)?;
            let mut found = index.terms().search(&similar).into_stream()?;
            while found.advance() {
                let count = u64::from(found.value().doc_freq);
                *counts.entry(found.key().to_vec()).or_default() += count;
            }
        }
    }
    let own = counts.remove(word.as_bytes()).unwrap_or_default();
    let weighed = counts.into_iter().filter_map(|(other, count)| {
        let mut weight = count.saturating_mul(PREFERRED_TIMES * PREFERRED_TIMES);
        if similar.0.eval(&other) != Distance::Exact(1) {
            weight /= PREFERRED_TIMES;
        }
        if other.first() != word.as_bytes().first() {
            weight /= PREFERRED_TIMES;
        }
        let other = String::from_utf8(other).ok()?;
        (own.saturating_mul(TIMES_MIN) <= count).then_some((weight, other))
    });
    // Of equal ones the first in the alphabet, so that all servers suggest the same.
    let best = weighed.max_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
    Ok(best.map(|(_, other)| other))
}

/// Returns a remark about the first attribute in the query that no object has; `None` if there is none.
///
/// # Errors
///
/// The engine failed.
pub(super) fn unknown_attribute(
    searcher: &Searcher,
    fields: &Fields,
    (text, query): (&str, &Query),
) -> tantivy::Result<Option<Notice>> {
    let mut named: Vec<&str> = Vec::new();
    query.for_each_wanted(&mut |leaf| named.extend(leaf.field.as_deref()));
    for name in named {
        let Target::Attribute(attribute) = target(name) else { continue };
        if searcher.doc_freq(&Term::from_field_text(fields.names, &attribute))? != 0 {
            continue;
        }
        let mut known: Vec<String> = NAMES.map(str::to_owned).into();
        for segment in searcher.segment_readers() {
            let index = segment.inverted_index(fields.names)?;
            let mut names = index.terms().stream()?;
            while names.advance() {
                let name = str::from_utf8(names.key()).ok().filter(|it| *it != PART);
                known.extend(name.map(str::to_owned));
            }
        }
        let near = resembling(&attribute, known.iter().map(String::as_str));
        let near = near.map_or_else(String::new, |it| format!("; did you mean {it}:"));
        let message = format!("no object here has an attribute {name}{near}");
        let offset = text.find(&format!("{name}:")).unwrap_or_default();
        return Ok(Some(Notice { message, offset, length: name.len() }));
    }
    Ok(None)
}

/// Accepts the words at most so many edits away.
struct Similar(DFA);

impl Automaton for Similar {
    type State = u32;

    fn start(&self) -> u32 {
        self.0.initial_state()
    }

    fn is_match(&self, state: &u32) -> bool {
        matches!(self.0.distance(*state), Distance::Exact(_))
    }

    fn can_match(&self, state: &u32) -> bool {
        *state != SINK_STATE
    }

    fn accept(&self, state: &u32, byte: u8) -> u32 {
        self.0.transition(*state, byte)
    }
}
