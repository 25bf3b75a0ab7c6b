//! The merge policy of the index's segments.
//!
//! The engine's own policy merges segments of similar size into one, whatever their size: at
//! a million documents, one merge maps half of the index into memory, which is more than everything
//! else takes. Here a large segment is never merged with others; it is only rewritten once many of
//! its documents are deleted. A search therefore reads a few more segments, and looks up each word
//! in each of them.

use tantivy::index::SegmentMeta;
use tantivy::indexer::{LogMergePolicy, MergeCandidate, MergePolicy};

/// Segments below this number of documents are merged as if they had one size.
const SMALL_DOCS: u32 = 1_000;
/// Segments above this number of documents are not merged with others. At a million generated
/// documents a broker took 561 MB at most, and the median wait of 200 simultaneous clients was
/// 0.7 s; with twice this limit, the figures were 1,133 MB and 0.5 s.
const LARGE_DOCS: u32 = 25_000;
/// Number of small segments of similar size that are merged into one. Long texts make segments of few documents: of
/// 4,817 files (124 MB), merging eight at a time took a fifth of the processor's time of gathering and indexing them.
const MERGED_MIN: usize = 12;
/// Share of deleted documents above which a segment is merged.
const DELETED_SHARE_MAX: f32 = 0.3;

/// Uses the engine's policy for small segments, and only removes deleted documents from large ones.
#[derive(Debug)]
pub(super) struct Merging {
    large_docs: u32,
    small: LogMergePolicy,
}

impl Default for Merging {
    fn default() -> Self {
        Self::new(SMALL_DOCS, LARGE_DOCS)
    }
}

impl Merging {
    fn new(small_docs: u32, large_docs: u32) -> Self {
        let mut small = LogMergePolicy::default();
        small.set_min_layer_size(small_docs);
        small.set_min_num_segments(MERGED_MIN);
        small.set_del_docs_ratio_before_merge(DELETED_SHARE_MAX);
        Self { large_docs, small }
    }
}

impl MergePolicy for Merging {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let is_small = |it: &SegmentMeta| it.max_doc() <= self.large_docs;
        let (small, large): (Vec<_>, Vec<_>) = segments.iter().cloned().partition(is_small);
        let mut merges = self.small.compute_merge_candidates(&small);
        let stale = large.iter().filter(|it| deleted_share(it) > DELETED_SHARE_MAX);
        merges.extend(stale.map(|it| MergeCandidate(vec![it.id()])));
        merges
    }
}

fn deleted_share(segment: &SegmentMeta) -> f32 {
    segment.num_deleted_docs() as f32 / segment.max_doc().max(1) as f32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tantivy::indexer::NoMergePolicy;
    use tantivy::schema::{STRING, Schema};
    use tantivy::{Index, IndexWriter, Term, doc};

    use super::*;

    /// Returns segments with the given numbers of (documents, deleted documents).
    fn segments(sizes: &[(u32, u32)]) -> Vec<SegmentMeta> {
        let mut schema = Schema::builder();
        let name = schema.add_text_field("name", STRING);
        let index = Index::create_in_ram(schema.build());
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for (segment, (docs, _)) in sizes.iter().enumerate() {
            for n in 0..*docs {
                writer.add_document(doc!(name => format!("{segment}/{n}"))).unwrap();
            }
            writer.commit().unwrap();
        }
        for (segment, (_, deleted)) in sizes.iter().enumerate() {
            for n in 0..*deleted {
                writer.delete_term(Term::from_field_text(name, &format!("{segment}/{n}")));
            }
        }
        writer.commit().unwrap();
        index.searchable_segment_metas().unwrap()
    }

    /// Returns, for each merge, the sizes of the segments that it merges.
    fn merged(sizes: &[(u32, u32)]) -> BTreeSet<Vec<u32>> {
        let segments = segments(sizes);
        let size = |id| segments.iter().find(|it| it.id() == id).unwrap().max_doc();
        let merges = Merging::new(2, 20).compute_merge_candidates(&segments);
        let sizes = merges.iter().map(|merge| {
            let mut sizes: Vec<u32> = merge.0.iter().map(|it| size(*it)).collect();
            sizes.sort_unstable();
            sizes
        });
        sizes.collect()
    }

    #[test]
    fn small_segments_are_merged_together_and_large_ones_never() {
        assert_eq!(merged(&[(20, 0); MERGED_MIN - 1]), BTreeSet::new());
        assert_eq!(merged(&[(20, 0); MERGED_MIN]), [vec![20; MERGED_MIN]].into());
        assert_eq!(merged(&[(21, 0); MERGED_MIN + 1]), BTreeSet::new());
    }

    #[test]
    fn a_large_segment_with_much_deleted_is_written_anew_alone() {
        let sizes = [(30, 9), (40, 13), (60, 0), (21, 0)];
        assert_eq!(merged(&sizes), [vec![40]].into(), "where more than 30 in 100 are deleted");
    }
}
