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

/// How much an occurrence in a field counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FieldWeight {
    /// Weight of an occurrence in a field of usual length.
    pub(super) weight: f32,
    /// How much the field's length counts: 0 not at all, 1 in full.
    length: f32,
    /// The usual length of the field, in words; `None`: the mean of all objects.
    usual: Option<f32>,
}

const fn weight(weight: f32, length: f32, usual: Option<f32>) -> FieldWeight {
    FieldWeight { weight, length, usual }
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

/// Weight of words within the edit distance of the query's word. The exact word also counts with
/// its full weight, so objects with the exact word come first.
pub(super) const FUZZY: f32 = 0.3;

/// How soon further occurrences of a word in an object count less.
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

/// The score of a word, by the sum of the weights of its occurrences in an object.
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
        self.scale * weight / (weight + K1)
    }
}

impl FieldWeight {
    /// Returns the weight of one occurrence in a field of `words` words; the mean is `mean`.
    pub(super) fn of_length(self, words: f32, mean: f32) -> f32 {
        let usual = self.usual.unwrap_or(mean);
        let relative = if 0.0 < usual { words / usual } else { 1.0 };
        self.weight / (1.0 - self.length + self.length * relative)
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
    #[expect(clippy::float_cmp, reason = "these are exact")]
    fn a_word_in_a_short_field_says_more() {
        assert!(BODY.of_length(1_000.0, 100.0) < BODY.of_length(50.0, 100.0));
        assert_eq!(NAMED.of_length(9.0, 1.0), NAMED.of_length(1.0, 1.0));
        assert_eq!(BODY.of_length(100.0, 100.0), BODY.weight);
    }
}
