//! More like this: the most telling words of one record.
//!
//! The words with the highest tf·idf (G. Salton, C. Buckley, "Term-weighting approaches in automatic
//! text retrieval", 1988), with logarithmic frequencies and the rarity of each word in this index.

use query::field::TextField;
use soif::Record;
use tantivy::{Searcher, Term};

use super::counted::counted;
use crate::error::Error;
use crate::index::Index;
use crate::index::schema::Fields;

/// Maximum number of words that are looked for.
pub(in crate::index) const WORDS_MAX: usize = 25;
/// Number of words, the most frequent ones of the record, whose rarity is looked up.
const LOOKED_UP_MAX: usize = 200;
/// Number of objects that have a word at least: one alone is the record itself.
const OBJECTS_MIN: u64 = 2;
/// A word is left out if more than one of so many objects have it, and more than [`COMMON_MIN`].
const ONE_IN: u64 = 5;
const COMMON_MIN: u64 = 20;

/// The fields with the words of the objects' own language.
const FIELDS: [TextField; 4] =
    [TextField::Title, TextField::Keywords, TextField::Description, TextField::Body];

impl Index {
    /// Returns the most telling words of a record, at most 25, the most telling first; none if no
    /// other object has any of them. Blocks.
    ///
    /// # Errors
    ///
    /// The engine failed.
    pub fn telling_words(&self, record: &Record) -> Result<Vec<String>, Error> {
        let searcher = self.inner.reader.searcher();
        let found = telling_words(&searcher, &self.inner.fields, record);
        found.map_err(|source| self.failed(source))
    }
}

fn telling_words(
    searcher: &Searcher,
    fields: &Fields,
    record: &Record,
) -> tantivy::Result<Vec<String>> {
    let all = searcher.num_docs();
    let mut weighed = Vec::new();
    for (word, count) in counted(record).into_iter().take(LOOKED_UP_MAX) {
        let having = objects(searcher, fields, &word)?;
        if OBJECTS_MIN <= having && having <= (all / ONE_IN).max(COMMON_MIN) {
            weighed.push((weight(count, having, all), word));
        }
    }
    // The sort is stable: of equal ones the more frequent stays before.
    weighed.sort_by(|a, b| b.0.total_cmp(&a.0));
    Ok(weighed.into_iter().take(WORDS_MAX).map(|it| it.1).collect())
}

#[expect(clippy::cast_precision_loss, reason = "a logarithm of a ratio")]
fn weight(count: u32, having: u64, all: u64) -> f64 {
    (1.0 + f64::from(count).ln()) * (1.0 + all as f64 / having as f64).ln()
}

/// Returns how many objects have a word, as it is written, in the field where most have it.
pub(in crate::index) fn objects(
    searcher: &Searcher,
    fields: &Fields,
    word: &str,
) -> tantivy::Result<u64> {
    let mut most = 0;
    for field in FIELDS.map(|it| fields.text(it).field) {
        most = most.max(searcher.doc_freq(&Term::from_field_text(field, word))?);
    }
    Ok(most)
}
