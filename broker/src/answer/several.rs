//! Answers of several brokers: who was asked, and by what they have scored alike.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How many objects have the words of a query, of one broker or of several together: by these words score alike
/// everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Number of objects.
    pub documents: u64,
    /// Number of words in each field of them all, by the field's name.
    pub lengths: BTreeMap<String, u64>,
    /// Number of objects that have a word in any form: `WORD`, or `FIELD:WORD` in one field alone.
    pub words: BTreeMap<String, u64>,
}

impl Statistics {
    /// Adds those of another broker.
    pub fn add(&mut self, more: &Self) {
        self.documents = self.documents.saturating_add(more.documents);
        for (into, from) in [(&mut self.lengths, &more.lengths), (&mut self.words, &more.words)] {
            for (name, count) in from {
                let sum = into.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
    }

    /// Returns whether they have more than there can be of a broker of so many objects, as [`within`](Self::within)
    /// cuts it.
    pub(crate) fn are_too_many(&self, objects_max: u64) -> bool {
        let longest = self.documents.saturating_mul(WORDS_MAX);
        objects_max < self.documents
            || self.words.values().any(|it| self.documents < *it)
            || self.lengths.values().any(|it| longest < *it)
    }

    /// Returns them made to fit: of the words and fields of `own` alone, of so many objects at most, and no word in more
    /// objects than there are.
    #[must_use]
    pub(crate) fn within(mut self, own: &Self, objects_max: u64) -> Self {
        self.documents = self.documents.min(objects_max);
        self.words.retain(|word, _| own.words.contains_key(word));
        self.lengths.retain(|field, _| own.lengths.contains_key(field));
        self.words.values_mut().for_each(|it| *it = (*it).min(self.documents));
        let longest = self.documents.saturating_mul(WORDS_MAX);
        self.lengths.values_mut().for_each(|it| *it = (*it).min(longest));
        self
    }
}

/// Most objects that a broker is believed to have.
pub(crate) const OBJECTS_MAX: u64 = 100_000_000_000;
/// Most words of one of them in a field.
const WORDS_MAX: u64 = 10_000_000;

/// A broker, as answers name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromBroker {
    /// Its id; empty if it is not known.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its address.
    pub url: String,
}

/// Who was asked by a search everywhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Everywhere {
    /// The id of the broker that asked them.
    pub by: String,
    /// The brokers that were asked, those that answered first before the others.
    pub asked: Vec<AskedBroker>,
    /// Number of brokers that are known.
    pub known: u64,
    /// Number of objects that they have, as far as their content summaries are known.
    #[serde(default)]
    pub objects: u64,
    /// Number of requests to other brokers.
    #[serde(default)]
    pub messages: u64,
    /// Number of bytes of their answers.
    #[serde(default)]
    pub bytes: u64,
    /// What search engines of other makes have; `None`: none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Foreign>,
}

/// What search engines of other makes have found, apart from the hits of brokers: their scores mean nothing beside ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Foreign {
    /// The engines, as the settings list them; their ids are empty.
    pub asked: Vec<AskedBroker>,
    /// What they have, by reciprocal rank.
    pub hits: Vec<ForeignHit>,
}

/// A hit of an engine of another make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForeignHit {
    /// Its title.
    pub title: String,
    /// Its address, `http` or `https`; empty if the engine gives none.
    pub url: String,
    /// What the engine says of it; empty if it says nothing.
    pub description: String,
    /// The names of the engines that have it.
    pub engines: Vec<String>,
    /// The sum of 1 ÷ (60 + rank) over these engines.
    pub score: f64,
}

/// A broker that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedBroker {
    /// Which.
    #[serde(flatten)]
    pub broker: FromBroker,
    /// What came of it.
    pub state: AskedState,
    /// Number of its matching objects.
    pub total: u64,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What it has claimed beyond what can be, which does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The name of the broker that has asked it in turn, if another one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

/// What came of a broker that was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AskedState {
    /// It answered.
    #[default]
    Answered,
    /// It did not answer in time.
    Late,
    /// It wants a token.
    Closed,
    /// It failed.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns statistics of so many objects, with these lengths of fields and numbers of objects by word.
    fn statistics(documents: u64, lengths: &[(&str, u64)], words: &[(&str, u64)]) -> Statistics {
        let map = |all: &[(&str, u64)]| all.iter().map(|it| (it.0.to_owned(), it.1)).collect();
        Statistics { documents, lengths: map(lengths), words: map(words) }
    }

    /// Checks what is left of statistics, where ours are of the words `ice` and `title:ice` in `body` and `title`.
    fn check(sent: &Statistics, is_too_many: bool, expected: &Statistics) {
        let own = statistics(1, &[("body", 1), ("title", 1)], &[("ice", 1), ("title:ice", 1)]);
        assert_eq!(sent.are_too_many(OBJECTS_MAX), is_too_many, "{sent:?}");
        assert_eq!(sent.clone().within(&own, OBJECTS_MAX), *expected);
    }

    #[test]
    fn statistics_of_others_are_made_to_fit() {
        // What fits stays, whatever ours are.
        let fits = statistics(100, &[("body", 9_000)], &[("ice", 100), ("title:ice", 0)]);
        check(&fits, false, &fits);
        check(&Statistics::default(), false, &Statistics::default());
        // Of words and fields that are not asked for, nothing.
        let more = statistics(9, &[("body", 9), ("url", 9)], &[("ice", 9), ("url:ice", 9)]);
        check(&more, false, &statistics(9, &[("body", 9)], &[("ice", 9)]));
        // No word in more objects than there are.
        let words = statistics(9, &[], &[("ice", 10), ("title:ice", 9)]);
        check(&words, true, &statistics(9, &[], &[("ice", 9), ("title:ice", 9)]));
        // No field of more words than so many objects have.
        let longest = 9 * WORDS_MAX;
        let lengths = statistics(9, &[("body", longest), ("title", longest + 1)], &[]);
        check(&lengths, true, &statistics(9, &[("body", longest), ("title", longest)], &[]));
        // No more objects than its summary has.
        let own = statistics(1, &[], &[("ice", 1)]);
        let few = statistics(9, &[], &[("ice", 9)]);
        assert!(few.are_too_many(8) && !few.are_too_many(9));
        assert_eq!(few.within(&own, 8), statistics(8, &[], &[("ice", 8)]));
        // No more objects than anybody has, and the rest is held against that.
        let all = statistics(u64::MAX, &[("body", u64::MAX)], &[("ice", u64::MAX)]);
        let longest = OBJECTS_MAX * WORDS_MAX;
        check(&all, true, &statistics(OBJECTS_MAX, &[("body", longest)], &[("ice", OBJECTS_MAX)]));
        let most = statistics(OBJECTS_MAX, &[("body", longest)], &[("ice", OBJECTS_MAX)]);
        check(&most, false, &most);
        // Sums of many are bounded, too.
        let mut sum = all.clone();
        sum.add(&all);
        assert_eq!(sum, all);
    }
}
