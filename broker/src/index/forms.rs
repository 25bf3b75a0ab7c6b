//! The query for a plain word in all its forms: `gathering` finds `gathered` too.
//!
//! The index has every word once, as written. A search looks up the other forms of its words in the
//! dictionary of each segment ([`Inflected`]). Indexing stems in addition to the words would find
//! the same objects, but indexing would take almost three times as long.
//!
//! All forms count as one word: their frequencies in a document are added up, and the rarity of the
//! word is that of its most frequent form (as in Lucene's `SynonymQuery`).

use std::collections::HashMap;
use std::sync::Arc;

use query::stem::stem;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::SegmentId;
use tantivy::postings::{Postings as _, SegmentPostings, TermInfo};
use tantivy::query::{Bm25Weight, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED};

use super::inflection::Inflected;

/// Maximum number of forms of one word that a search uses in one segment.
pub(super) const FORMS_MAX: usize = 128;

/// The query for documents that have any form of a word.
#[derive(Clone, Debug)]
pub(super) struct Forms {
    field: Field,
    inflected: Arc<Inflected>,
}

impl Forms {
    pub(super) fn new(field: Field, inflected: Arc<Inflected>) -> Self {
        Self { field, inflected }
    }

    /// Returns the forms that occur in a segment, in the order of their bytes.
    pub(super) fn of(&self, segment: &SegmentReader) -> tantivy::Result<Vec<(String, TermInfo)>> {
        let index = segment.inverted_index(self.field)?;
        let mut forms = Vec::new();
        let words = index.terms().search(self.inflected.as_ref());
        let mut words = words.ge(self.inflected.root()).into_stream()?;
        while forms.len() < FORMS_MAX && words.advance() {
            let Ok(word) = str::from_utf8(words.key()) else { continue };
            if stem(word) == self.inflected.stem {
                forms.push((word.to_owned(), words.value().clone()));
            }
        }
        Ok(forms)
    }
}

impl Query for Forms {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let mut weight =
            FormsWeight { forms: self.clone(), postings: HashMap::new(), rarity: None };
        let EnableScoring::Enabled { searcher, statistics_provider } = scoring else {
            return Ok(Box::new(weight));
        };
        let mut documents: HashMap<String, u64> = HashMap::new();
        for segment in searcher.segment_readers() {
            let mut postings = Vec::new();
            for (form, info) in self.of(segment)? {
                *documents.entry(form).or_default() += u64::from(info.doc_freq);
                postings.push(info);
            }
            weight.postings.insert(segment.segment_id(), postings);
        }
        let most = documents.into_values().max().unwrap_or_default();
        let all = statistics_provider.total_num_docs()?;
        let words = statistics_provider.total_num_tokens(self.field)?;
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let length = if all == 0 { 0.0 } else { words as Score / all as Score };
        weight.rarity = Some(Bm25Weight::for_one_term_without_explain(most, all, length));
        Ok(Box::new(weight))
    }
}

struct FormsWeight {
    forms: Forms,
    /// Postings of the forms, by segment.
    postings: HashMap<SegmentId, Vec<TermInfo>>,
    /// `None` if scores are not needed.
    rarity: Option<Bm25Weight>,
}

impl Weight for FormsWeight {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let looked_up;
        let infos = match self.postings.get(&segment.segment_id()) {
            Some(postings) => postings,
            None => {
                let forms = self.forms.of(segment)?;
                looked_up = forms.into_iter().map(|(_, info)| info).collect();
                &looked_up
            }
        };
        if infos.is_empty() {
            return Ok(Box::new(EmptyScorer));
        }
        let index = segment.inverted_index(self.forms.field)?;
        let wanted = match self.rarity {
            Some(_) => IndexRecordOption::WithFreqs,
            None => IndexRecordOption::Basic,
        };
        let mut lists = Vec::with_capacity(infos.len());
        for info in infos {
            lists.push(index.read_postings_from_terminfo(info, wanted)?);
        }
        let measure = match &self.rarity {
            Some(rarity) => {
                let lengths = segment.get_fieldnorms_reader(self.forms.field)?;
                Some(Measure { rarity: rarity.boost_by(boost), lengths })
            }
            None => None,
        };
        let doc = first(&lists);
        Ok(Box::new(FormsScorer { lists, doc, measure, unmeasured: boost }))
    }

    fn explain(&self, segment: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(segment, 1.0)?;
        let score =
            if scorer.doc() <= doc && scorer.seek(doc) == doc { scorer.score() } else { 0.0 };
        Ok(Explanation::new("forms of one word", score))
    }
}

/// Statistics that turn frequencies into scores.
struct Measure {
    rarity: Bm25Weight,
    lengths: FieldNormReader,
}

struct FormsScorer {
    lists: Vec<SegmentPostings>,
    /// The lowest of the lists' current documents.
    doc: DocId,
    measure: Option<Measure>,
    /// The constant score that is returned when scores are not needed.
    unmeasured: Score,
}

fn first(lists: &[SegmentPostings]) -> DocId {
    lists.iter().map(DocSet::doc).min().unwrap_or(TERMINATED)
}

impl DocSet for FormsScorer {
    fn advance(&mut self) -> DocId {
        let mut least = TERMINATED;
        for list in &mut self.lists {
            let doc = if list.doc() == self.doc { list.advance() } else { list.doc() };
            least = least.min(doc);
        }
        self.doc = least;
        least
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let mut least = TERMINATED;
        for list in &mut self.lists {
            let doc = if list.doc() < target { list.seek(target) } else { list.doc() };
            least = least.min(doc);
        }
        self.doc = least;
        least
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.lists.iter().fold(0, |all, list| all.saturating_add(list.size_hint()))
    }
}

impl Scorer for FormsScorer {
    fn score(&mut self) -> Score {
        let Some(measure) = &self.measure else { return self.unmeasured };
        let here = self.lists.iter().filter(|list| list.doc() == self.doc);
        let often = here.fold(0_u32, |all, list| all.saturating_add(list.term_freq()));
        measure.rarity.score(measure.lengths.fieldnorm_id(self.doc), often)
    }
}
