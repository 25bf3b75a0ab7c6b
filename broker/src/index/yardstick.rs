//! Functions that only `benches/index` uses: they give access to the engine's handle, the documents
//! of the index, and the ranking of an answer.

use std::collections::BTreeSet;

use collection::{Change, Collection, Oid, Scanned};
use tantivy::TantivyDocument;
use tantivy::schema::Field;

use super::deadline::Deadline;
use super::document::{GroupRole, document};
use super::forms::Forms;
use super::rank;
use super::schema::Text;
use super::search::{self, Found};
use super::{Index, lookup};
use crate::answer::{SEARCH_CPU_MAX, SearchRequest};
use crate::error::Error;

/// What an answer ranks, without the content of its hits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    /// The hits' OIDs, best first.
    pub oids: Vec<String>,
    /// Number of objects that match, as in [`Answer::total`](crate::answer::Answer::total).
    pub total: u64,
    /// Number of facet values counted, over all facets.
    pub facet_values: usize,
}

impl Index {
    /// Returns the engine's handle, which has the schema, the tokenizers and the last commit.
    pub fn engine(&self) -> &tantivy::Index {
        &self.inner.engine
    }

    /// Returns the documents of all live objects of `collection`, in the order of the log. Blocks.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    pub fn documents(&self, collection: &Collection) -> Result<Vec<TantivyDocument>, Error> {
        let mut documents = Vec::new();
        for scanned in collection.scan(0)? {
            let Scanned { serial, change, .. } = scanned?;
            if let Change::Update(record) = change
                && let Some(oid) = Oid::of(&record)
            {
                let (fields, alone) = (&self.inner.fields, GroupRole::default());
                documents.push(document(fields, &oid, (&record, serial), &alone));
            }
        }
        Ok(documents)
    }

    /// Returns the forms of `word` in `field`, each once. Blocks.
    ///
    /// # Errors
    ///
    /// The engine failed.
    pub fn forms(&self, field: Field, word: &str) -> tantivy::Result<BTreeSet<String>> {
        let field = Text { field, inflected: true, weight: rank::BODY };
        let forms = Forms::new(&self.inner.fields, vec![field], word);
        let mut all = BTreeSet::new();
        for segment in self.inner.reader.searcher().segment_readers() {
            all.extend(forms.of(field, segment)?.into_iter().map(|(form, _)| form));
        }
        Ok(all)
    }

    /// Ranks and counts the objects that [`search`](Self::search) would show. Blocks.
    ///
    /// # Errors
    ///
    /// The errors of [`search`](Self::search).
    pub fn rank(&self, request: &SearchRequest) -> Result<Ranks, Error> {
        let searcher = self.inner.reader.searcher();
        let deadline = Deadline::after(SEARCH_CPU_MAX);
        let ranked = search::rank(&searcher, &self.inner.fields, request, (0, deadline));
        let Found { hits, counts, .. } = ranked.map_err(|refusal| self.refused(refusal))?;
        let mut ranks = Ranks { total: counts.total, ..Ranks::default() };
        for hit in hits.iter().skip(request.offset).take(request.limit) {
            let oid =
                lookup::oid_text(&searcher, hit.address).map_err(|source| self.failed(source))?;
            ranks.oids.extend(oid);
        }
        ranks.facet_values = counts.into_facets(&request.views).values().map(Vec::len).sum();
        Ok(ranks)
    }
}
