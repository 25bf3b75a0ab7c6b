//! How much a word counts for where it stands.
//!
//! BM25 scores of the parts are added up, each times its weight. A word of a title says more of an
//! object than one of its keywords, that more than one of its description, that more than one of its text. The
//! weights are of the size that field-weighted BM25 is usually given; only their order is tested.
//!
//! Sans-I/O.

/// Weight of a word in the title.
pub(super) const TITLE: f32 = 4.0;
/// Weight of a word in the keywords.
pub(super) const KEYWORDS: f32 = 2.5;
/// Weight of a word in the author's name.
pub(super) const AUTHOR: f32 = 2.0;
/// Weight of a word in the description or the abstract.
pub(super) const DESCRIPTION: f32 = 1.8;
/// Weight of a word in the address.
pub(super) const URL: f32 = 1.2;
/// Weight of a word in the text.
pub(super) const BODY: f32 = 1.0;

/// Weight of words that only resemble the one looked for; the very word is found besides and
/// counts in full, so that it comes first.
pub(super) const FUZZY: f32 = 0.3;

/// Returns the weight of something that the query says `times` times: linear, so that a repeated word counts
/// as often as it is said.
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
