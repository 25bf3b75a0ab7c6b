//! Weights of the fields in the ranking.
//!
//! The score is the weighted sum of the BM25 scores of the fields. A word of a title says more
//! about an object than a keyword, a keyword more than a word of the description, and a word of the
//! description more than a word of the text. The values are usual for field-weighted BM25; only
//! their order is tested.
//!
//! Sans-I/O.

pub(super) const TITLE: f32 = 4.0;
pub(super) const KEYWORDS: f32 = 2.5;
pub(super) const AUTHOR: f32 = 2.0;
pub(super) const DESCRIPTION: f32 = 1.8;
pub(super) const URL: f32 = 1.2;
pub(super) const BODY: f32 = 1.0;

/// Weight of words within the edit distance of the query's word. The exact word also counts with
/// its full weight, so objects with the exact word come first.
pub(super) const FUZZY: f32 = 0.3;

/// Returns the weight of a condition that occurs `times` times in the query. The weight is
/// proportional to `times`, so that every occurrence of a repeated word counts.
#[expect(clippy::cast_precision_loss, reason = "a query has few words")]
pub(super) fn repeated(times: usize) -> f32 {
    times as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_says_more_than_keywords_than_a_description_than_a_text() {
        let weights = [TITLE, KEYWORDS, DESCRIPTION, BODY];
        assert!(weights.is_sorted_by(|more, less| more > less), "{weights:?}");
        assert!(repeated(1) < repeated(2));
    }
}
