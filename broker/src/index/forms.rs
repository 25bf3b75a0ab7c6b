//! The query for a plain word in all its forms: `gathering` finds `gathered` too.
//!
//! The index has every word once, as written. A search looks up the other forms of its words in the
//! dictionary of each segment ([`Inflected`]). Indexing stems in addition to the words would find
//! the same objects, but indexing would take almost three times as long.
//!
//! All forms in all fields count as one word ([`rank`]): the rarity of the word is that of its most
//! frequent form in any field (as in Lucene's `SynonymQuery`).

mod word_scorer;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use query::stem::stem;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::SegmentId;
use tantivy::postings::{SegmentPostings, TermInfo};
use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet as _, Score, Searcher, SegmentReader};

use super::inflection::Inflected;
use super::rank::Bm25f;
use super::schema::Text;
use word_scorer::{FieldLengths, FormList, WordScorer};

/// Maximum number of forms of one word that a search uses in one field of a segment.
pub(super) const FORMS_MAX: usize = 128;

/// The query for documents that have any form of a word in any of some fields. Clones share what
/// they have looked up.
#[derive(Clone, Debug)]
pub(super) struct Forms {
    fields: Vec<Text>,
    word: Arc<str>,
    inflected: Arc<Inflected>,
    found: Arc<OnceLock<Found>>,
}

/// The forms of a word in an index.
#[derive(Debug, Default)]
struct Found {
    /// The postings of each form with the index of its field, by segment.
    postings: HashMap<SegmentId, Vec<(usize, TermInfo)>>,
    /// Number of documents that have the most frequent form in one field.
    most: u64,
}

impl Forms {
    /// Returns the query for `word`; in fields that are not inflected, only for the word itself.
    pub(super) fn new(fields: Vec<Text>, word: &str) -> Self {
        let inflected = Arc::new(Inflected::new(&stem(word)));
        Self { fields, word: word.into(), inflected, found: Arc::default() }
    }

    /// Returns the forms that occur in a field of a segment, in the order of their bytes.
    pub(super) fn of(
        &self,
        field: Text,
        segment: &SegmentReader,
    ) -> tantivy::Result<Vec<(String, TermInfo)>> {
        let index = segment.inverted_index(field.field)?;
        if !field.inflected {
            let info = index.terms().get(self.word.as_bytes())?;
            return Ok(info.map(|info| (self.word.to_string(), info)).into_iter().collect());
        }
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

    /// Returns the forms in all segments, which are looked up once.
    fn found(&self, searcher: &Searcher) -> tantivy::Result<&Found> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let mut found = Found::default();
        let mut documents: HashMap<(usize, String), u64> = HashMap::new();
        for segment in searcher.segment_readers() {
            let mut postings = Vec::new();
            for (at, field) in self.fields.iter().enumerate() {
                for (form, info) in self.of(*field, segment)? {
                    *documents.entry((at, form)).or_default() += u64::from(info.doc_freq);
                    postings.push((at, info));
                }
            }
            found.postings.insert(segment.segment_id(), postings);
        }
        found.most = documents.into_values().max().unwrap_or_default();
        Ok(self.found.get_or_init(|| found))
    }

    /// Returns the postings of each form in some fields of a segment, with positions where they are.
    pub(super) fn postings<const N: usize>(
        &self,
        segment: &SegmentReader,
        fields: [Option<Field>; N],
    ) -> tantivy::Result<[Vec<SegmentPostings>; N]> {
        let mut all = std::array::from_fn(|_| Vec::new());
        let places = fields.map(|field| {
            let field = field?;
            self.fields.iter().position(|it| it.field == field)
        });
        let is_wanted = |at| places.contains(&Some(at));
        let wanted = IndexRecordOption::WithFreqsAndPositions;
        for list in self.lists(segment, wanted, is_wanted)? {
            for (at, lists) in places.iter().zip(&mut all) {
                if *at == Some(list.field) {
                    lists.push(list.postings);
                    break;
                }
            }
        }
        Ok(all)
    }

    /// Returns the lists of a segment in those fields for whose index `is_wanted` returns true, with
    /// the postings in `wanted` detail.
    fn lists(
        &self,
        segment: &SegmentReader,
        wanted: IndexRecordOption,
        is_wanted: impl Fn(usize) -> bool,
    ) -> tantivy::Result<Vec<FormList>> {
        let looked_up;
        let infos = match self.found.get().and_then(|it| it.postings.get(&segment.segment_id())) {
            Some(postings) => postings,
            None => {
                let mut postings = Vec::new();
                for (at, field) in self.fields.iter().enumerate() {
                    let forms = self.of(*field, segment)?;
                    postings.extend(forms.into_iter().map(|(_, info)| (at, info)));
                }
                looked_up = postings;
                &looked_up
            }
        };
        let mut lists = Vec::with_capacity(infos.len());
        for (at, info) in infos.iter().filter(|it| is_wanted(it.0)) {
            let Some(field) = self.fields.get(*at) else { continue };
            let index = segment.inverted_index(field.field)?;
            let postings = index.read_postings_from_terminfo(info, wanted)?;
            lists.push(FormList { postings, field: *at });
        }
        Ok(lists)
    }
}

impl Query for Forms {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let EnableScoring::Enabled { searcher, statistics_provider } = scoring else {
            return Ok(Box::new(FormsWeight { forms: self.clone(), measure: None }));
        };
        let most = self.found(searcher)?.most;
        let all = statistics_provider.total_num_docs()?;
        let mut weights = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let words = statistics_provider.total_num_tokens(field.field)?;
            #[expect(clippy::cast_precision_loss, reason = "a mean")]
            let mean = if all == 0 { 0.0 } else { words as Score / all as Score };
            weights.push(weights_of(*field, mean));
        }
        let measure = Some(Measure { most, all, weights });
        Ok(Box::new(FormsWeight { forms: self.clone(), measure }))
    }
}

/// Returns the weight of an occurrence in a field, by the code of its length, where `mean` is the
/// mean length.
fn weights_of(field: Text, mean: Score) -> Arc<[Score; 256]> {
    let mut weights = [0.0; 256];
    for (code, weight) in (0..=u8::MAX).zip(&mut weights) {
        #[expect(clippy::cast_precision_loss, reason = "a length, kept in eight bits")]
        let words = FieldNormReader::id_to_fieldnorm(code) as Score;
        *weight = field.weight.of_length(words, mean);
    }
    Arc::new(weights)
}

struct FormsWeight {
    forms: Forms,
    /// `None` if scores are not needed.
    measure: Option<Measure>,
}

/// Statistics that turn frequencies into scores.
struct Measure {
    /// Number of documents that have the word.
    most: u64,
    /// Number of all documents.
    all: u64,
    /// For each field, the weight of an occurrence by the code of the field's length.
    weights: Vec<Arc<[Score; 256]>>,
}

impl Weight for FormsWeight {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let wanted = match self.measure {
            Some(_) => IndexRecordOption::WithFreqs,
            None => IndexRecordOption::Basic,
        };
        let lists = self.forms.lists(segment, wanted, |_| true)?;
        if lists.is_empty() {
            return Ok(Box::new(EmptyScorer));
        }
        let Some(Measure { most, all, weights }) = &self.measure else {
            return Ok(Box::new(WordScorer::new(lists, Vec::new(), Bm25f::constant(boost))));
        };
        let mut fields = Vec::with_capacity(weights.len());
        for (text, weights) in self.forms.fields.iter().zip(weights) {
            let lengths = segment.get_fieldnorms_reader(text.field)?;
            fields.push(FieldLengths { lengths, weights: Arc::clone(weights) });
        }
        Ok(Box::new(WordScorer::new(lists, fields, Bm25f::new(*most, *all, boost))))
    }

    fn explain(&self, segment: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(segment, 1.0)?;
        let score =
            if scorer.doc() <= doc && scorer.seek(doc) == doc { scorer.score() } else { 0.0 };
        Ok(Explanation::new("forms of one word", score))
    }
}
