//! The content of the index, for a content summary and for searches of several brokers.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use query::Query;
use query::field::TextField;
use query::stem::stem;
use tantivy::postings::Postings as _;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet as _, Searcher, TERMINATED};

use super::Index;
use super::compile::Compiler;
use super::deadline::Deadline;
use super::schema::{Fields, Text};
use crate::answer::{Facet, Matching, SEARCH_CPU_MAX, SearchRequest, Sort, Statistics};
use crate::error::Error;
use crate::route::bloom::Bloom;
use crate::route::summary::{BEST_MAX, Content, Counts, SAMPLE_MAX, TERMS_MAX};

/// The fields whose words are summarized.
const FIELDS: [TextField; 4] =
    [TextField::Title, TextField::Keywords, TextField::Description, TextField::Body];
/// Processor time for the best objects of all words.
const WEIGHING_MAX: Duration = Duration::from_secs(5);
/// By how many objects words are weighed, and how many of them have each word: the same for all brokers.
const ALIKE: (u64, u64) = (1_000_000, 1_000);
/// Longest word that is summarized, in bytes.
const WORD_BYTES_MAX: usize = 40;

impl Index {
    /// Returns whether the index has no objects.
    pub(crate) fn is_empty(&self) -> bool {
        self.inner.reader.searcher().num_docs() == 0
    }

    /// Returns what the index has, for a content summary; `None` if `is_cancelled`. Blocks for about a second of each
    /// million objects.
    ///
    /// # Errors
    ///
    /// The engine failed.
    pub(crate) fn content(
        &self,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Content>, Error> {
        let searcher = self.inner.reader.searcher();
        let found = content(&searcher, &self.inner.fields, is_cancelled);
        let found = found.map_err(|source| self.failed(source))?;
        let Some(mut content) = found.filter(|_| !is_cancelled()) else { return Ok(None) };
        if !self.weigh(&mut content.terms, is_cancelled)? {
            return Ok(None);
        }
        let request = SearchRequest {
            limit: SAMPLE_MAX,
            sort: Sort::Updated,
            matching: Matching::All,
            snippets: false,
            ..SearchRequest::new(Query::all(), "")
        };
        let answer = self.search_within(&request, SEARCH_CPU_MAX)?;
        let types = answer.facets.get(Facet::Type.name()).cloned().unwrap_or_default();
        let sample = answer.hits.into_iter().map(|it| it.title).collect();
        Ok(Some(Content { types: types.into_iter().collect(), sample, ..content }))
    }

    /// Takes the score of the object that is best for each word. Those that most objects have come last; if there is no
    /// time left for them, they are taken to be as good as the best. Returns false if `is_cancelled`.
    fn weigh(
        &self,
        terms: &mut HashMap<String, Counts>,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        let deadline = Deadline::after(WEIGHING_MAX);
        let mut by_number: Vec<(&String, &mut Counts)> = terms.iter_mut().collect();
        by_number.sort_by(|a, b| a.1.objects.cmp(&b.1.objects).then_with(|| a.0.cmp(b.0)));
        let mut most = 0;
        for (word, counts) in by_number {
            if is_cancelled() {
                return Ok(false);
            }
            if deadline.check().is_err() {
                counts.best = most;
                continue;
            }
            let query = Query::word(word);
            let statistics = standard(self.statistics(&query)?);
            let request = SearchRequest {
                limit: 1,
                matching: Matching::All,
                facets: false,
                snippets: false,
                duplicates: true,
                statistics: Some(Arc::new(statistics)),
                ..SearchRequest::new(query, "")
            };
            let answer = self.search_within(&request, SEARCH_CPU_MAX)?;
            counts.best = answer.hits.first().map_or(0, |it| thousandths(it.score));
            most = most.max(counts.best);
        }
        Ok(true)
    }

    /// Returns how many objects have the words of a query, in any form. Blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] when the query has a mistake, [`Error::Index`] when the index fails.
    pub(crate) fn statistics(&self, query: &Query) -> Result<Statistics, Error> {
        let searcher = self.inner.reader.searcher();
        let fields = &self.inner.fields;
        let mut compiler = Compiler::new(fields, Deadline::after(SEARCH_CPU_MAX));
        let wrong = |message| Error::Query(query::QueryError { offset: 0, len: 0, message });
        compiler.query(query).map_err(wrong)?;
        let counted = compiler.counted();
        let failed = |source| self.failed(source);
        let (mut words, mut lengths) = (BTreeMap::new(), BTreeMap::new());
        let documents = searcher.num_docs();
        for forms in &counted {
            // The engine counts objects that are deleted, until it merges them away.
            let having = forms.objects(&searcher).map_err(failed)?.min(documents);
            words.insert(forms.key(searcher.schema()), having);
            for field in forms.fields() {
                let name = searcher.schema().get_field_name(field.field).to_owned();
                if let Entry::Vacant(it) = lengths.entry(name) {
                    it.insert(tokens(&searcher, field.field).map_err(failed)?);
                }
            }
        }
        Ok(Statistics { documents, lengths, words })
    }
}

/// Returns statistics of the same words and fields that are alike for all brokers.
fn standard(own: Statistics) -> Statistics {
    let length = |field: &str| match field {
        it if it.starts_with("body") => 400,
        it if it.starts_with("description") => 40,
        _ => 10,
    };
    let Statistics { lengths, words, .. } = own;
    let (documents, having) = ALIKE;
    Statistics {
        documents,
        lengths: lengths.into_keys().map(|it| (it.clone(), documents * length(&it))).collect(),
        words: words.into_keys().map(|it| (it, having)).collect(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the bounds")]
fn thousandths(score: f32) -> u64 {
    let thousandths = f64::from(score) * 1_000.0;
    if thousandths.is_nan() { 0 } else { thousandths.clamp(0.0, BEST_MAX as f64) as u64 }
}

/// Returns the number of words in a field of all objects.
fn tokens(searcher: &Searcher, field: Field) -> tantivy::Result<u64> {
    let mut tokens = 0;
    for segment in searcher.segment_readers() {
        tokens += segment.inverted_index(field)?.total_num_tokens();
    }
    Ok(tokens)
}

fn content(
    searcher: &Searcher,
    fields: &Fields,
    is_cancelled: &dyn Fn() -> bool,
) -> tantivy::Result<Option<Content>> {
    let objects = searcher.num_docs();
    let texts = FIELDS.map(|it| fields.text(it));
    // How many objects have the forms of a stem, in the field where most have them.
    let mut having: HashMap<String, u64> = HashMap::new();
    let mut words = 0;
    for field in &texts {
        words += tokens(searcher, field.field)?;
        let mut of_field: HashMap<String, u64> = HashMap::new();
        let visit = |stem: &str, word: &[u8], count: u64| {
            let _ = word;
            *of_field.entry(stem.to_owned()).or_default() += count;
        };
        if !for_each_word(searcher, field, visit, is_cancelled)? {
            return Ok(None);
        }
        for (stem, count) in of_field {
            let most = having.entry(stem).or_default();
            *most = (*most).max(count.min(objects));
        }
    }
    let mut told: Vec<(&String, u64)> = having.iter().map(|(stem, count)| (stem, *count)).collect();
    told.sort_by(|a, b| {
        weight(b.1, objects).total_cmp(&weight(a.1, objects)).then_with(|| a.0.cmp(b.0))
    });
    let mut terms: HashMap<String, Counts> = told
        .iter()
        .take(TERMS_MAX)
        .map(|(stem, count)| ((*stem).clone(), Counts { objects: *count, ..Counts::default() }))
        .collect();
    let mut rare = Bloom::for_words(told.len().saturating_sub(terms.len()));
    told.iter().skip(TERMS_MAX).for_each(|(stem, _)| rare.insert(stem));
    if !count_occurrences(searcher, &texts, &mut terms, is_cancelled)? {
        return Ok(None);
    }
    Ok(Some(Content { objects, words, terms, rare, ..Content::default() }))
}

/// Returns how telling a word is that so many of all objects have.
#[expect(clippy::cast_precision_loss, reason = "a logarithm of a ratio")]
fn weight(having: u64, all: u64) -> f64 {
    having as f64 * (1.0 + all as f64 / having.max(1) as f64).ln()
}

/// Calls `visit` with the stem of each word of a field, the word, and how many objects of a segment have it. Returns
/// false if `is_cancelled`.
fn for_each_word(
    searcher: &Searcher,
    field: &Text,
    mut visit: impl FnMut(&str, &[u8], u64),
    is_cancelled: &dyn Fn() -> bool,
) -> tantivy::Result<bool> {
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(field.field)?;
        let mut words = index.terms().stream()?;
        let mut count = 0_u32;
        while words.advance() {
            count = count.wrapping_add(1);
            if count.is_multiple_of(4_096) && is_cancelled() {
                return Ok(false);
            }
            let Ok(word) = str::from_utf8(words.key()) else { continue };
            if word.len() <= WORD_BYTES_MAX {
                visit(&stem(word), words.key(), words.value().doc_freq.into());
            }
        }
    }
    Ok(true)
}

/// Counts how often the words of some stems occur. Returns false if `is_cancelled`.
fn count_occurrences(
    searcher: &Searcher,
    texts: &[Text],
    terms: &mut HashMap<String, Counts>,
    is_cancelled: &dyn Fn() -> bool,
) -> tantivy::Result<bool> {
    for field in texts {
        for segment in searcher.segment_readers() {
            let index = segment.inverted_index(field.field)?;
            let mut words = index.terms().stream()?;
            while words.advance() {
                let Ok(word) = str::from_utf8(words.key()) else { continue };
                let Some(counts) = terms.get_mut(&*stem(word)) else { continue };
                if is_cancelled() {
                    return Ok(false);
                }
                let option = IndexRecordOption::WithFreqs;
                let mut postings = index.read_postings_from_terminfo(words.value(), option)?;
                while postings.doc() != TERMINATED {
                    counts.occurrences += u64::from(postings.term_freq());
                    postings.advance();
                }
            }
        }
    }
    for counts in terms.values_mut() {
        counts.occurrences = counts.occurrences.max(counts.objects);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::rank::{Bm25f, Factors};

    #[test]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small score")]
    fn the_highest_score_of_a_word_is_that_of_the_usual_ranking() {
        let (documents, having) = ALIKE;
        let words = Bm25f::new(having, documents, 1.0);
        assert!(words.score(1e6) <= words.unmeasured(), "however often it occurs");
        // As the second look has them for one word, which is near to nothing.
        let Factors { title, title_exact, name, age, .. } = Factors::default();
        let most = words.unmeasured() * (1.0 + title + title_exact) * (1.0 + name) * (1.0 + age);
        assert_eq!((most * 1_000.0).ceil() as u64, BEST_MAX);
        assert_eq!((thousandths(most), thousandths(2.0 * most)), (BEST_MAX - 1, BEST_MAX));
        assert_eq!((thousandths(f32::NAN), thousandths(-1.0)), (0, 0));
    }
}
