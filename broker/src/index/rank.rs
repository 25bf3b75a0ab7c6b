//! The measures of the ranking: BM25F, and what else says that an object is the wanted one.
//!
//! Source: S. Robertson, H. Zaragoza, M. Taylor, "Simple BM25 extension to multiple weighted fields"
//! (2004). The occurrences of a word in all fields are added up, each with the weight of its field
//! and divided by the field's length, and the sum goes through one saturation: a word in title and
//! text is one word, not two.
//!
//! The values are ours. `tests/relevance` measures what they do.
//!
//! Sans-I/O.

pub(super) mod in_force;

use super::schema::{Fields, Text};
use crate::answer::Matching;

/// How much an occurrence in a field counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldWeight {
    /// Weight of an occurrence in a field of usual length, from 0.
    pub weight: f32,
    /// How much the field's length counts: 0 not at all, 1 in full (BM25's b).
    pub length: f32,
    /// The usual length of the field, in words; `None`: the mean of all objects.
    usual: Option<f32>,
    /// How soon further occurrences of a word in an object count less (BM25's k1), above 0.
    saturation: f32,
}

const fn weight(weight: f32, length: f32, usual: Option<f32>) -> FieldWeight {
    FieldWeight { weight, length, usual, saturation: K1 }
}

// Few objects of a collection may have a field, so that the mean of all says nothing.
pub(super) const TITLE: FieldWeight = weight(5.0, 0.4, Some(6.0));
pub(super) const KEYWORDS: FieldWeight = weight(2.0, 0.6, Some(20.0));
pub(super) const AUTHOR: FieldWeight = weight(2.0, 0.3, Some(4.0));
pub(super) const DESCRIPTION: FieldWeight = weight(1.7, 0.5, Some(30.0));
pub(super) const URL: FieldWeight = weight(1.0, 0.5, Some(12.0));
pub(super) const NAME: FieldWeight = weight(2.0, 0.5, Some(2.0));
pub(super) const BODY: FieldWeight = weight(1.0, 0.75, None);
/// Fields that are searched only by their names.
pub(super) const NAMED: FieldWeight = weight(1.0, 0.0, None);

/// How many words a hit has, and what comes first: `[ranking]` in `broker.toml`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranking {
    /// How many of the words side by side a hit has, unless a request says it.
    pub matching: Matching,
    /// Whether queries of plain words are expanded by what the best hits are about (RM3), unless a
    /// request says it.
    pub feedback: bool,
    /// How soon further occurrences of a word in an object count less (BM25's k1), above 0.
    pub k1: f32,
    /// The fields' weights, by the names that the settings have for them.
    pub fields: [(&'static str, FieldWeight); 7],
    /// What the second look at the best hits counts.
    pub factors: Factors,
}

/// How much each sign adds to the score of one of the best hits, as a share of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// All words of the query in the title, and little else.
    pub title: f32,
    /// The title is the query; in addition.
    pub title_exact: f32,
    /// The name of the file is the query.
    pub name: f32,
    /// The words stand side by side in the text.
    pub near: f32,
    /// The power of the standing: 0 leaves type and place out, 1 takes them as they are.
    pub standing: f32,
    /// The object is quite new.
    pub age: f32,
    /// Time after which half of the advantage of a new object is gone, in seconds, above 0.
    pub age_half_secs: f32,
}

impl Default for Ranking {
    fn default() -> Self {
        let fields = [
            ("title", TITLE),
            ("keywords", KEYWORDS),
            ("author", AUTHOR),
            ("description", DESCRIPTION),
            ("url", URL),
            ("name", NAME),
            ("text", BODY),
        ];
        let (matching, factors) = (Matching::default(), Factors::default());
        Self { matching, feedback: false, k1: K1, fields, factors }
    }
}

impl Default for Factors {
    /// The values that `tests/relevance` measures; an advantage of age lasts some two years.
    fn default() -> Self {
        Self {
            title: 0.4,
            title_exact: 0.6,
            name: 0.8,
            near: 0.6,
            standing: 1.0,
            age: 0.05,
            age_half_secs: 63_072_000.0,
        }
    }
}

impl Ranking {
    /// Returns the fields of an index with these weights.
    pub(super) fn weigh(&self, fields: &Fields) -> Fields {
        let mut fields = Fields { factors: self.factors, ..fields.clone() };
        for (name, weight) in self.fields {
            let field: &mut Text = match name {
                "title" => &mut fields.title,
                "keywords" => &mut fields.keywords,
                "author" => &mut fields.author,
                "description" => &mut fields.description,
                "url" => {
                    fields.path.weight = FieldWeight { saturation: self.k1, ..weight };
                    &mut fields.url
                }
                "name" => &mut fields.name,
                _ => &mut fields.body,
            };
            field.weight = FieldWeight { saturation: self.k1, ..weight };
        }
        fields
    }
}

/// Weight of words within the edit distance of the query's word. The exact word also counts with
/// its full weight, so objects with the exact word come first.
pub(super) const FUZZY: f32 = 0.3;

/// The usual k1: that of the engine's own BM25, which scores phrases.
const K1: f32 = 1.2;
/// How soon further occurrences of a word in the query count less.
const K3: f32 = 1.0;

/// Returns the weight of a condition that occurs `times` times in the query: each further
/// occurrence counts, but less.
#[expect(clippy::cast_precision_loss, reason = "a query has few words")]
pub(super) fn repeated(times: usize) -> f32 {
    let times = times as f32;
    times * (1.0 + K3) / (times + K3)
}

/// The score of a word, by the sum of the weights of its occurrences in an object, each divided by
/// its field's k1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bm25f {
    scale: f32,
}

impl Bm25f {
    /// Returns the measure of a word that `having` of `all` objects have, times `boost`.
    #[expect(clippy::cast_precision_loss, reason = "a logarithm of a ratio")]
    pub(super) fn new(having: u64, all: u64, boost: f32) -> Self {
        let (having, all) = (having as f32, all.max(having) as f32);
        let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        Self { scale: rarity * (K1 + 1.0) * boost }
    }

    /// Returns a measure that gives every object `score`.
    pub(super) fn constant(score: f32) -> Self {
        Self { scale: score }
    }

    pub(super) fn unmeasured(self) -> f32 {
        self.scale
    }

    pub(super) fn score(self, weight: f32) -> f32 {
        self.scale * weight / (weight + 1.0)
    }
}

impl FieldWeight {
    /// Returns the weight of one occurrence in a field of `words` words, divided by k1; the mean is
    /// `mean`.
    pub(super) fn of_length(self, words: f32, mean: f32) -> f32 {
        let usual = self.usual.unwrap_or(mean);
        let relative = if 0.0 < usual { words / usual } else { 1.0 };
        self.weight / (self.saturation * (1.0 - self.length + self.length * relative))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_says_more_than_a_description_than_a_text() {
        let weights = [TITLE, DESCRIPTION, BODY].map(|it| it.weight);
        assert!(weights.is_sorted_by(|more, less| more > less), "{weights:?}");
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "these are exact")]
    fn further_occurrences_count_less() {
        let word = Bm25f::new(10, 1_000, 1.0);
        let scores: Vec<f32> = (0_u8..9).map(|often| word.score(often.into())).collect();
        assert!(scores.windows(3).all(|it| it[1] < it[2] && it[2] - it[1] < it[1] - it[0]));
        assert!(repeated(1) == 1.0 && 1.0 < repeated(2) && repeated(3) < 2.0);
        assert!(Bm25f::new(900, 1_000, 1.0).score(1.0) < word.score(1.0), "a rarer word");
    }

    #[test]
    fn the_higher_k1_the_more_a_second_occurrence_counts() {
        let gain = |saturation| {
            let body = FieldWeight { saturation, ..BODY }.of_length(100.0, 100.0);
            let word = Bm25f::new(10, 1_000, 1.0);
            word.score(2.0 * body) / word.score(body)
        };
        assert!(gain(0.1) < gain(1.2) && gain(1.2) < gain(5.0));
        // As in the textbook: tf (k1 + 1) / (tf + k1).
        assert!((gain(1.2) - (2.0 / 3.2) / (1.0 / 2.2)).abs() < 1e-6);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "these are exact")]
    fn a_word_in_a_short_field_says_more() {
        assert!(BODY.of_length(1_000.0, 100.0) < BODY.of_length(50.0, 100.0));
        assert_eq!(NAMED.of_length(9.0, 1.0), NAMED.of_length(1.0, 1.0));
        assert_eq!(BODY.of_length(100.0, 100.0), BODY.weight / K1);
    }
}
