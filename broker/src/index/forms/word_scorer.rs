//! The scorer of a word: the documents of one segment that have any of its forms in any of its
//! fields, with their scores by BM25F.
//!
//! A word has a list of postings for each form in each field. To walk through all documents, the
//! lists are read in windows: one after the other adds the weights of its documents to an array. To
//! skip, as a search for all of several words does, each list is moved to the document alone. One list
//! needs no window.

use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings as _, SegmentPostings};
use tantivy::query::Scorer;
use tantivy::{DocId, DocSet, Score, TERMINATED};

use super::others::Only;
use crate::index::rank::Bm25f;

/// Number of documents of a window; a multiple of 64.
const WINDOW: DocId = 4_096;

/// The documents that have one form in one field.
pub(super) struct FormList {
    postings: SegmentPostings,
    /// Index of the field among those of the word.
    field: usize,
    /// How much an occurrence counts, as a share of one of the word itself.
    share: Score,
    /// The documents in which it is a form; `None` for all.
    only: Option<Only>,
}

impl FormList {
    pub(super) fn new(
        postings: SegmentPostings,
        field: usize,
        share: Score,
        only: Option<Only>,
    ) -> Self {
        let mut list = Self { postings, field, share, only };
        let first = list.doc();
        list.settle(first);
        list
    }

    fn doc(&self) -> DocId {
        self.postings.doc()
    }

    fn advance(&mut self) -> DocId {
        let next = self.postings.advance();
        self.settle(next)
    }

    fn seek(&mut self, target: DocId) {
        let next = self.postings.seek(target);
        self.settle(next);
    }

    /// Moves from `doc`, at which the list stands, to the first document in which it is a form.
    fn settle(&mut self, mut doc: DocId) -> DocId {
        if let Some(only) = &self.only {
            while doc != TERMINATED && !only.has(doc) {
                doc = self.postings.advance();
            }
        }
        doc
    }

    /// Returns the weight of the form in the present document.
    fn weight(&self, fields: &[FieldLengths]) -> Score {
        let Some(lengths) = fields.get(self.field) else { return 0.0 };
        self.share * lengths.weight(self.postings.doc(), self.postings.term_freq())
    }
}

/// What turns frequencies in one field into weights.
pub(super) struct FieldLengths {
    pub(super) lengths: FieldNormReader,
    /// Weight of one occurrence, by the code of the field's length.
    pub(super) weights: Arc<[Score; 256]>,
}

impl FieldLengths {
    fn weight(&self, doc: DocId, often: u32) -> Score {
        let code = usize::from(self.lengths.fieldnorm_id(doc));
        self.weights.get(code).copied().unwrap_or_default() * often as Score
    }
}

/// The scorer of a word in one segment.
pub(super) struct WordScorer {
    lists: Vec<FormList>,
    /// Empty if scores are not needed.
    fields: Vec<FieldLengths>,
    measure: Bm25f,
    doc: DocId,
    window: Window,
}

/// The documents from `start` on, with their weights, as far as they are looked up in advance.
struct Window {
    start: DocId,
    /// One bit for each document; all zero if the lists stand at the present document.
    found: Vec<u64>,
    weights: Vec<Score>,
}

impl WordScorer {
    /// Returns the scorer of `lists`. Without `fields`, the score is always that of `measure`.
    pub(super) fn new(lists: Vec<FormList>, fields: Vec<FieldLengths>, measure: Bm25f) -> Self {
        let window = Window { start: 0, found: Vec::new(), weights: Vec::new() };
        let mut scorer = Self { lists, fields, measure, doc: 0, window };
        scorer.doc = scorer.lowest();
        scorer
    }

    /// Returns the lowest document at which a list stands.
    fn lowest(&self) -> DocId {
        self.lists.iter().map(FormList::doc).min().unwrap_or(TERMINATED)
    }

    /// Returns whether the present document is of the window; else the lists stand at it.
    fn is_in_window(&self) -> bool {
        self.window.holds(self.doc)
    }

    /// Reads the window that begins with the lowest document of the lists.
    fn fill(&mut self) {
        let start = self.lowest();
        self.window.start = start;
        if self.window.found.is_empty() {
            self.window.found = vec![0; (WINDOW / 64) as usize];
            self.window.weights = vec![0.0; WINDOW as usize];
        }
        let end = start.saturating_add(WINDOW).min(TERMINATED);
        for list in &mut self.lists {
            let mut doc = list.doc();
            while doc < end {
                self.window.add(doc, list.weight(&self.fields));
                doc = list.advance();
            }
        }
    }

    /// Returns the weight of the present document.
    fn weight(&self) -> Score {
        if self.is_in_window() {
            let slot = self.doc.saturating_sub(self.window.start) as usize;
            return self.window.weights.get(slot).copied().unwrap_or_default();
        }
        let here = self.lists.iter().filter(|it| it.doc() == self.doc);
        here.map(|it| it.weight(&self.fields)).sum()
    }
}

impl Window {
    fn add(&mut self, doc: DocId, weight: Score) {
        let slot = doc.saturating_sub(self.start) as usize;
        let (Some(bits), Some(sum)) = (self.found.get_mut(slot / 64), self.weights.get_mut(slot))
        else {
            return;
        };
        let bit = 1 << (slot % 64);
        *sum = if *bits & bit == 0 { weight } else { *sum + weight };
        *bits |= bit;
    }

    fn holds(&self, doc: DocId) -> bool {
        let slot = doc.wrapping_sub(self.start) as usize;
        self.found.get(slot / 64).is_some_and(|bits| bits >> (slot % 64) & 1 == 1)
    }

    /// Returns the first document at `doc` or after it; `None` if there is none in the window.
    fn next(&self, doc: DocId) -> Option<DocId> {
        let slot = doc.saturating_sub(self.start) as usize;
        let mut at = slot / 64;
        let mut bits = self.found.get(at)? & (u64::MAX << (slot % 64));
        while bits == 0 {
            at += 1;
            bits = *self.found.get(at)?;
        }
        let slots = DocId::try_from(64 * at).ok()?;
        Some(self.start + slots + bits.trailing_zeros())
    }

    fn clear(&mut self) {
        self.found.fill(0);
    }
}

impl DocSet for WordScorer {
    fn advance(&mut self) -> DocId {
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        if let [list] = &mut self.lists[..] {
            self.doc = list.advance();
            return self.doc;
        }
        if !self.is_in_window() {
            for list in &mut self.lists {
                if list.doc() == self.doc {
                    list.advance();
                }
            }
        } else if let Some(doc) = self.window.next(self.doc + 1) {
            self.doc = doc;
            return doc;
        }
        self.window.clear();
        self.fill();
        self.doc = self.window.next(self.window.start).unwrap_or(TERMINATED);
        self.doc
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if target <= self.doc {
            return self.doc;
        }
        if self.is_in_window() {
            if let Some(doc) = self.window.next(target.min(TERMINATED - 1)) {
                self.doc = doc;
                return doc;
            }
            self.window.clear();
        }
        for list in &mut self.lists {
            if list.doc() < target {
                list.seek(target);
            }
        }
        self.doc = self.lowest();
        self.doc
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.lists.iter().fold(0, |all, list| all.saturating_add(list.postings.size_hint()))
    }
}

impl Scorer for WordScorer {
    fn score(&mut self) -> Score {
        if self.fields.is_empty() {
            self.measure.unmeasured()
        } else {
            self.measure.score(self.weight())
        }
    }
}
