//! The second look at the best hits: what is too dear to look at in all of them.
//!
//! The first objects by the score of their words are ranked again, by how the words stand in their
//! title, their name and, close to each other, their text, and by [standing](super::standing) and
//! age. Each is a factor of the score, so that none of them helps an object without the words.

use std::collections::{BTreeMap, BTreeSet};

use tantivy::columnar::Column;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings as _, SegmentPostings};
use tantivy::{DocAddress, DocId, DocSet as _, Searcher, SegmentReader};

use super::forms::Forms;
use super::rank::Factors;
use super::schema::{Fields, name};
use super::standing::FULL;
use crate::answer::Reasons;

/// Number of hits that are ranked again.
pub(super) const RANKED_MAX: usize = 100;
/// Maximum number of words of a query that are looked at.
const WORDS_MAX: usize = 16;
/// Maximum number of occurrences of one word in one text that are looked at.
const OCCURRENCES_MAX: usize = 1_000;

/// A hit with the reasons for its score.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked {
    pub(super) address: DocAddress,
    pub(super) reasons: Reasons,
}

impl Ranked {
    /// Returns a hit of which only the score of its words is known.
    pub(super) fn new(words: f32, address: DocAddress) -> Self {
        Self { address, reasons: Reasons::of_words(words) }
    }
}

/// Ranks the hits again, best first. `words` are the query's plain words; `now` is in Unix seconds.
///
/// # Errors
///
/// The engine failed.
pub(super) fn rerank(
    (searcher, fields): (&Searcher, &Fields),
    words: &[Forms],
    hits: &mut [Ranked],
    now: i64,
) -> tantivy::Result<()> {
    let mut by_segment: BTreeMap<u32, Vec<&mut Ranked>> = BTreeMap::new();
    for hit in hits.iter_mut() {
        by_segment.entry(hit.address.segment_ord).or_default().push(hit);
    }
    for (ord, mut hits) in by_segment {
        hits.sort_by_key(|it| it.address.doc_id);
        Segment::open(searcher.segment_reader(ord), fields, words)?.rank(hits, now);
    }
    // Of equal ones the one that was before stays before.
    hits.sort_by(|a, b| b.reasons.score().total_cmp(&a.reasons.score()));
    Ok(())
}

/// What is read of one segment.
struct Segment {
    /// For each word, its forms in title, name and body.
    words: Vec<[Vec<SegmentPostings>; 3]>,
    /// The lengths of titles and names.
    lengths: [FieldNormReader; 2],
    standing: Option<Column<u64>>,
    modified: Option<Column<i64>>,
    factors: Factors,
}

impl Segment {
    fn open(segment: &SegmentReader, fields: &Fields, words: &[Forms]) -> tantivy::Result<Self> {
        // One word alone is near to nothing.
        let body = (1 < words.len()).then_some(fields.body.field);
        let looked_at = [Some(fields.title.field), Some(fields.name.field), body];
        let mut all = Vec::new();
        for word in words.iter().take(WORDS_MAX) {
            all.push(word.postings(segment, looked_at)?);
        }
        let lengths = [
            segment.get_fieldnorms_reader(fields.title.field)?,
            segment.get_fieldnorms_reader(fields.name.field)?,
        ];
        let columns = segment.fast_fields();
        let standing = columns.column_opt::<u64>(name::STANDING)?;
        let modified = columns.column_opt::<i64>(name::MODIFIED)?;
        Ok(Self { words: all, lengths, standing, modified, factors: fields.factors })
    }

    /// Gives hits, in the order of their documents, their reasons.
    fn rank(&mut self, hits: Vec<&mut Ranked>, now: i64) {
        let mut places = Vec::new();
        let factors = self.factors;
        for hit in hits {
            let doc = hit.address.doc_id;
            places.clear();
            let (mut in_title, mut in_name) = (0, 0);
            for (word, [title, name, body]) in self.words.iter_mut().enumerate() {
                in_title += u32::from(has(title, doc));
                in_name += u32::from(has(name, doc));
                add_places(body, doc, word, &mut places);
            }
            let all = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
            let [title_words, name_words] = [0, 1]
                .map(|it: usize| self.lengths.get(it).map_or(0, |lengths| lengths.fieldnorm(doc)));
            let reasons = &mut hit.reasons;
            reasons.title = title_factor(&factors, in_title, title_words, all);
            let is_name = 0 < all && in_name == all && name_words == all;
            reasons.name = 1.0 + if is_name { factors.name } else { 0.0 };
            reasons.near = 1.0 + factors.near * nearness(&mut places, self.words.len());
            let standing = self.standing.as_ref().and_then(|it| it.first(doc)).unwrap_or(FULL);
            reasons.standing = share(standing, FULL).powf(factors.standing);
            let modified = self.modified.as_ref().and_then(|it| it.first(doc));
            reasons.age = modified.map_or(1.0, |it| age_factor(&factors, now.saturating_sub(it)));
        }
    }
}

/// Returns whether any of the lists has the document, which is not before that of the last call.
fn has(lists: &mut [SegmentPostings], doc: DocId) -> bool {
    lists.iter_mut().fold(false, |found, list| found | is_at(list, doc))
}

fn is_at(list: &mut SegmentPostings, doc: DocId) -> bool {
    if list.doc() < doc {
        list.seek(doc);
    }
    list.doc() == doc
}

/// Adds the places of a word in the document's text: the index of each occurrence among all words.
fn add_places(
    lists: &mut [SegmentPostings],
    doc: DocId,
    word: usize,
    places: &mut Vec<(u32, usize)>,
) {
    let mut found = Vec::new();
    for list in lists {
        if is_at(list, doc) {
            list.positions(&mut found);
            places.extend(found.iter().take(OCCURRENCES_MAX).map(|at| (*at, word)));
        }
    }
}

/// Returns the factor for `found` of `all` words in a title of `words` words.
fn title_factor(factors: &Factors, found: u32, words: u32, all: u32) -> f32 {
    if found == 0 {
        return 1.0;
    }
    let exact = if found == all && words == all { factors.title_exact } else { 0.0 };
    // All words of the query, and little else in the title.
    1.0 + factors.title
        * share(found.into(), all.into())
        * share(found.into(), words.max(found).into())
        + exact
}

/// Returns how near to each other the words of a query of `all` words stand, from 0 to 1: 1 if all
/// of them stand side by side. `places` are their occurrences in a text.
fn nearness(places: &mut [(u32, usize)], all: usize) -> f32 {
    if all < 2 {
        return 0.0;
    }
    places.sort_unstable();
    let mut counts = vec![0_u32; all];
    let there = places.iter().map(|it| it.1).collect::<BTreeSet<_>>().len();
    if there < 2 {
        return 0.0;
    }
    // The shortest part of the text that has all words that are there at all.
    let (mut inside, mut first, mut shortest) = (0, 0, u32::MAX);
    for (at, word) in places.iter() {
        if let Some(count) = counts.get_mut(*word) {
            inside += usize::from(*count == 0);
            *count += 1;
        }
        while inside == there
            && let Some((start, leaving)) = places.get(first)
        {
            shortest = shortest.min(at.saturating_sub(*start) + 1);
            if let Some(count) = counts.get_mut(*leaving) {
                *count -= 1;
                inside -= usize::from(*count == 0);
            }
            first += 1;
        }
    }
    let there = there as u64;
    share(there, all as u64) * share(there, u64::from(shortest).max(there))
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn share(part: u64, whole: u64) -> f32 {
    if whole == 0 { 0.0 } else { part as f32 / whole as f32 }
}

/// Returns the factor for an age in seconds.
#[expect(clippy::cast_precision_loss, reason = "a share")]
fn age_factor(factors: &Factors, age: i64) -> f32 {
    1.0 + factors.age * (-(age.max(0) as f32) / factors.age_half_secs).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "these are exact")]
    fn words_side_by_side_are_nearest() {
        let near = |places: &[(u32, usize)], all| nearness(&mut places.to_vec(), all);
        assert_eq!(near(&[(7, 0), (8, 1)], 2), 1.0);
        assert_eq!(near(&[(8, 0), (7, 1)], 2), 1.0);
        assert_eq!(near(&[(1, 0), (9, 0), (10, 1), (90, 1)], 2), 1.0);
        assert!(near(&[(1, 0), (9, 1)], 2) < near(&[(1, 0), (4, 1)], 2));
        assert!(near(&[(1, 0), (2, 1)], 3) < near(&[(1, 0), (2, 1), (3, 2)], 3));
        assert_eq!(near(&[(1, 0), (2, 0)], 2), 0.0);
        assert_eq!((near(&[], 2), near(&[(1, 0)], 1)), (0.0, 0.0));
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "these are exact")]
    fn a_title_of_the_words_alone_counts_most() {
        let factor = |found, words, all| title_factor(&Factors::default(), found, words, all);
        let titles = [factor(2, 2, 2), factor(2, 9, 2), factor(1, 9, 2), 1.0];
        assert!(titles.is_sorted_by(|more, less| more > less), "{titles:?}");
        assert_eq!(factor(0, 0, 0), 1.0);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "these are exact")]
    fn the_new_is_before_the_old() {
        let factors = Factors::default();
        let factor = |age| age_factor(&factors, age);
        assert!(factor(86_400) > factor(400 * 86_400));
        assert_eq!(factor(-5), 1.0 + factors.age);
        assert!(factor(i64::MAX) < 1.001);
    }
}
