//! The query for a plain word in all its forms: `gathering` finds `gathered` too.
//!
//! The index has every word once, as written. A search looks up the other forms of its words in the
//! dictionary of each segment: English ones by their endings ([`Inflected`]), those of other languages
//! by their stems ([`others`]). Indexing English stems in addition to the words would find the same
//! objects, but indexing would take almost three times as long.
//!
//! All forms in all fields count as one word ([`rank`]): the rarity of the word is that of its most
//! frequent form in any field (as in Lucene's `SynonymQuery`).

mod others;
mod word_scorer;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use query::forms::Form;
use query::language::Languages;
use query::stem::{is_inflected, stem};
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::SegmentId;
use tantivy::postings::{SegmentPostings, TermInfo};
use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption, Schema};
use tantivy::{DocId, DocSet as _, Score, Searcher, SegmentReader};

use super::inflection::Inflected;
use super::rank::Bm25f;
use super::schema::{Fields, Text};
use crate::answer::Statistics;
use others::{KeyFields, Only};
use word_scorer::{FieldLengths, FormList, WordScorer};

#[cfg(test)]
pub(super) use others::COMPOUNDS_MAX;
pub(super) use others::add as add_languages;

/// Maximum number of English forms of one word that a search uses in one field of a segment.
pub(super) const FORMS_MAX: usize = 128;

/// How much an occurrence counts of a word that is derived from the wanted one, or from which that
/// is (`operation`, `operator`), as a share of one of the word itself.
const DERIVED: Score = 0.7;
/// The same for a compound that begins with the word.
const COMPOUND: Score = 0.2;

/// The query for documents that have any form of a word in any of some fields. Clones share what
/// they have looked up.
#[derive(Clone, Debug)]
pub(super) struct Forms {
    fields: Vec<Text>,
    keys: KeyFields,
    word: Arc<query::forms::Forms>,
    inflected: Arc<Inflected>,
    found: Arc<OnceLock<Found>>,
    /// By which it is scored; `None`: by what this index has.
    statistics: Option<Arc<Statistics>>,
}

/// The forms of a word in an index.
#[derive(Debug, Default)]
struct Found {
    /// The forms by segment.
    places: HashMap<SegmentId, Vec<Place>>,
    /// Number of documents that have the most frequent form in one field.
    most: u64,
}

/// A form in one field of a segment.
#[derive(Debug)]
struct Place {
    /// Index of the field.
    field: usize,
    info: TermInfo,
    /// How much an occurrence counts, as a share of one of the word itself.
    share: Score,
    /// The languages in whose documents it is a form; `None` for all documents.
    languages: Option<Languages>,
}

impl Forms {
    /// Returns the query for `word`; in fields that are not inflected, only for the word itself.
    pub(super) fn new(all: &Fields, fields: Vec<Text>, word: &str) -> Self {
        let keys = KeyFields { languages: all.languages, forms: all.forms };
        let word = Arc::new(query::forms::Forms::new(word));
        let inflected = Arc::new(Inflected::new(word.english()));
        Self { fields, keys, word, inflected, found: Arc::default(), statistics: None }
    }

    /// Returns the same query, scored by statistics of several indexes.
    pub(super) fn scored_by(self, statistics: Option<Arc<Statistics>>) -> Self {
        Self { statistics, ..self }
    }

    pub(super) fn fields(&self) -> &[Text] {
        &self.fields
    }

    /// Returns by what it is called in statistics.
    pub(super) fn key(&self, schema: &Schema) -> String {
        match &self.fields[..] {
            [field] => format!("{}:{}", schema.get_field_name(field.field), self.word.word()),
            _ => self.word.word().to_owned(),
        }
    }

    /// Returns how many objects have the word, in the form and field that most have.
    pub(super) fn objects(&self, searcher: &Searcher) -> tantivy::Result<u64> {
        Ok(self.found(searcher)?.most)
    }

    /// Returns the English forms that occur in a field of a segment, in the order of their bytes.
    pub(super) fn of(
        &self,
        field: Text,
        segment: &SegmentReader,
    ) -> tantivy::Result<Vec<(String, TermInfo)>> {
        let index = segment.inverted_index(field.field)?;
        if !field.inflected {
            let word = self.word.word();
            let info = index.terms().get(word.as_bytes())?;
            return Ok(info.map(|info| (word.to_owned(), info)).into_iter().collect());
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

    /// Returns all forms in a segment. Calls `count` with each form in each place, where the forms of
    /// other languages have one place, and with how many documents have it there.
    fn in_segment(
        &self,
        segment: &SegmentReader,
        count: &mut dyn FnMut(Option<usize>, String, u64),
    ) -> tantivy::Result<Vec<Place>> {
        let mut places = Vec::new();
        for (at, field) in self.fields.iter().enumerate() {
            for (form, info) in self.of(*field, segment)? {
                let share = if is_inflected(self.word.word(), &form) { 1.0 } else { DERIVED };
                count(Some(at), form, info.doc_freq.into());
                places.push(Place { field: at, info, share, languages: None });
            }
        }
        for (form, other) in others::of(&self.word, self.keys, segment)? {
            for (at, field) in self.fields.iter().enumerate().filter(|(_, it)| it.inflected) {
                let index = segment.inverted_index(field.field)?;
                let Some(info) = index.terms().get(form.as_bytes())? else { continue };
                let share = if other.form == Form::Compound { COMPOUND } else { 1.0 };
                places.push(Place { field: at, info, share, languages: Some(other.languages) });
            }
            if other.form == Form::Inflected {
                count(None, form, other.documents);
            }
        }
        Ok(places)
    }

    /// Returns the forms in all segments, which are looked up once.
    fn found(&self, searcher: &Searcher) -> tantivy::Result<&Found> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let mut found = Found::default();
        let mut documents: HashMap<(Option<usize>, String), u64> = HashMap::new();
        for segment in searcher.segment_readers() {
            let places = self.in_segment(segment, &mut |at, form, having| {
                *documents.entry((at, form)).or_default() += having;
            })?;
            found.places.insert(segment.segment_id(), places);
        }
        found.most = documents.into_values().max().unwrap_or_default();
        Ok(self.found.get_or_init(|| found))
    }

    /// Returns the postings of each form in some fields of a segment, with positions where they are.
    /// Compounds are not among them, and forms of all languages are, whatever the document's is.
    pub(super) fn postings<const N: usize>(
        &self,
        segment: &SegmentReader,
        fields: [Option<Field>; N],
    ) -> tantivy::Result<[Vec<SegmentPostings>; N]> {
        let mut all = std::array::from_fn(|_| Vec::new());
        let wanted = IndexRecordOption::WithFreqsAndPositions;
        self.for_each_place(segment, &mut |field, place| {
            let at = fields.iter().position(|it| *it == Some(field.field));
            if let Some(lists) = at.and_then(|at| all.get_mut(at))
                && place.share != COMPOUND
            {
                let index = segment.inverted_index(field.field)?;
                lists.push(index.read_postings_from_terminfo(&place.info, wanted)?);
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Returns the lists of a segment, with the postings in `wanted` detail.
    fn lists(
        &self,
        segment: &SegmentReader,
        wanted: IndexRecordOption,
    ) -> tantivy::Result<Vec<FormList>> {
        let mut lists = Vec::new();
        self.for_each_place(segment, &mut |field, place| {
            let index = segment.inverted_index(field.field)?;
            let postings = index.read_postings_from_terminfo(&place.info, wanted)?;
            let only = place.languages.map(|it| Only::new(it, segment)).transpose()?;
            lists.push(FormList::new(postings, place.field, place.share, only));
            Ok(())
        })?;
        Ok(lists)
    }

    /// Calls `visit` with each form in a segment and its field.
    fn for_each_place(
        &self,
        segment: &SegmentReader,
        visit: &mut dyn FnMut(&Text, &Place) -> tantivy::Result<()>,
    ) -> tantivy::Result<()> {
        let looked_up;
        let places = match self.found.get().and_then(|it| it.places.get(&segment.segment_id())) {
            Some(places) => places,
            None => {
                looked_up = self.in_segment(segment, &mut |_, _, _| {})?;
                &looked_up
            }
        };
        for place in places {
            if let Some(field) = self.fields.get(place.field) {
                visit(field, place)?;
            }
        }
        Ok(())
    }
}

impl Query for Forms {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let EnableScoring::Enabled { searcher, statistics_provider } = scoring else {
            return Ok(Box::new(FormsWeight { forms: self.clone(), measure: None }));
        };
        let schema = searcher.schema();
        let of_all = self.statistics.as_ref();
        let most = match of_all.and_then(|it| it.words.get(&self.key(schema))) {
            Some(most) => *most,
            None => self.found(searcher)?.most,
        };
        let all = match of_all {
            Some(of_all) => of_all.documents.max(most),
            None => statistics_provider.total_num_docs()?,
        };
        let mut weights = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let name = schema.get_field_name(field.field);
            let words = match of_all.and_then(|it| it.lengths.get(name)) {
                Some(words) => *words,
                None => statistics_provider.total_num_tokens(field.field)?,
            };
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
        let lists = self.forms.lists(segment, wanted)?;
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
