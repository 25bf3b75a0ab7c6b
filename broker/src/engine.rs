//! The engine: the interface between an index and its callers.
//!
//! Pages, the API and the daemon send a [`SearchRequest`] and receive an [`Answer`]; none of them
//! knows the index that is used. An engine consists of a folder next to this file, a variant of
//! [`Engine`] and, if it reads the log, its reader (`indexer.rs`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use collection::Collection;
use query::Query;
use soif::Record;

use crate::answer::{Answer, SearchRequest, Statistics};
use crate::error::Error;
use crate::index::{Index, IndexOptions};
use crate::route::summary::Content;

pub use crate::index::{Factors, Failure, FieldWeight, Ranking};
pub(crate) use crate::index::{Storage, feedback};

/// Folder of the full-text index in the data directory.
const INDEX: &str = "index";

/// The engine that answers searches. Clones share it.
#[derive(Clone, Debug)]
pub enum Engine {
    /// The full-text index.
    Index(Index),
}

impl Engine {
    /// Opens the engine of a data directory in `store`, for this collection. Blocks.
    ///
    /// # Errors
    ///
    /// The engine's folder cannot be used, or another process has it open.
    pub(crate) fn open(
        data: &Path,
        store: Storage,
        collection: &Collection,
    ) -> Result<Self, Error> {
        let index = Index::open_at(&data.join(INDEX), IndexOptions::default(), store)?;
        // This check comes before the first pull, since a pull could bring the collection to the
        // serial of the index.
        index.hold_to(|covered| collection.continues_from(covered));
        Ok(Self::Index(index))
    }

    /// Answers a search that may use the processor for `cpu`. Blocks: call it from `spawn_blocking`.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] when the request has a mistake, [`Error::Late`] when it needs more time;
    /// another error when the engine fails.
    pub fn search(&self, request: &SearchRequest, cpu: Duration) -> Result<Answer, Error> {
        match self {
            Self::Index(index) => index.search_within(request, cpu),
        }
    }

    /// Returns the most telling words of a record, the most telling first; none if no other object
    /// has any of them. Blocks.
    ///
    /// # Errors
    ///
    /// The engine failed.
    pub fn telling_words(&self, record: &Record) -> Result<Vec<String>, Error> {
        match self {
            Self::Index(index) => index.telling_words(record),
        }
    }

    /// Returns what the engine has, for a content summary; `None` if `is_cancelled`. Blocks.
    ///
    /// # Errors
    ///
    /// The engine failed.
    pub(crate) fn content(
        &self,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Content>, Error> {
        match self {
            Self::Index(index) => index.content(is_cancelled),
        }
    }

    /// Returns whether the engine has no objects.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Index(index) => index.is_empty(),
        }
    }

    /// Returns how many objects have the words of a query. Blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] when the query has a mistake; another error when the engine fails.
    pub(crate) fn statistics(&self, query: &Query) -> Result<Statistics, Error> {
        match self {
            Self::Index(index) => index.statistics(query),
        }
    }

    /// Returns the ranking of all searches that begin now.
    pub fn ranking(&self) -> Ranking {
        match self {
            Self::Index(index) => index.ranking(),
        }
    }

    /// Replaces the ranking.
    pub fn set_ranking(&self, ranking: Ranking) {
        match self {
            Self::Index(index) => index.set_ranking(ranking),
        }
    }

    /// Compares the engine's files with their checksums and returns the damaged ones. If there are
    /// any, the engine is built anew; until then it answers from the old files. Blocks.
    ///
    /// # Errors
    ///
    /// The files cannot be read.
    pub(crate) fn verify(&self) -> Result<Vec<PathBuf>, Error> {
        match self {
            Self::Index(index) => index.verify(&|| false),
        }
    }

    /// Removes deleted objects from the engine's files, and returns the number of deleted objects
    /// and old files that remain. Blocks.
    ///
    /// # Errors
    ///
    /// The engine's files cannot be written; call again.
    pub(crate) fn purge(&self) -> Result<u64, Error> {
        match self {
            Self::Index(index) => index.purge(),
        }
    }

    /// Closes the engine's folder for all clones; searches go on. Blocks.
    pub(crate) fn close(&self) {
        match self {
            Self::Index(index) => index.close(),
        }
    }
}
