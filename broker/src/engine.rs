//! The engine: what answers searches. The one seam between an index and all that asks it.
//!
//! Pages, the API and the daemon ask with a [`SearchRequest`] and are given an [`Answer`]; none of
//! them knows what answers. An engine is a folder beside this file, a variant of [`Engine`], and, if
//! it is fed from the log, what feeds it (`indexer.rs`).

use std::path::{Path, PathBuf};

use collection::Collection;

use crate::answer::{Answer, SearchRequest};
use crate::error::Error;
use crate::index::{Index, IndexOptions};

pub use crate::index::Failure;
pub(crate) use crate::index::Place;

/// Folder of the full-text index in the data directory.
const INDEX: &str = "index";

/// What answers searches. Clones are the same one.
#[derive(Clone, Debug)]
pub enum Engine {
    /// The full-text index.
    Index(Index),
}

impl Engine {
    /// Opens the engine of a data directory where `place` says, for this collection. Blocks.
    ///
    /// # Errors
    ///
    /// Its folder cannot be used, or another process has it open.
    pub(crate) fn open(data: &Path, place: Place, collection: &Collection) -> Result<Self, Error> {
        let index = Index::open_at(&data.join(INDEX), IndexOptions::default(), place)?;
        // Before the first pull: it could bring the collection to where the index is.
        index.hold_to(|covered| collection.goes_on_from(covered));
        Ok(Self::Index(index))
    }

    /// Answers a search. Blocks: call it from `spawn_blocking`.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] when the request cannot be answered (who asked can mend it) or not within
    /// [`SEARCH_TIME_MAX`](crate::answer::SEARCH_TIME_MAX); another when the engine fails.
    pub fn search(&self, request: &SearchRequest) -> Result<Answer, Error> {
        match self {
            Self::Index(index) => index.search(request),
        }
    }

    /// Compares what it has on the disk with its checksums, and returns the damaged files. If there
    /// are any it is built anew, and answers from what it has until then. Blocks.
    ///
    /// # Errors
    ///
    /// The files cannot be read.
    pub(crate) fn verify(&self) -> Result<Vec<PathBuf>, Error> {
        match self {
            Self::Index(index) => index.verify(&|| false),
        }
    }

    /// Removes from its files what has been deleted, and returns how many remains are still there.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// Its files cannot be written; call again.
    pub(crate) fn purge(&self) -> Result<u64, Error> {
        match self {
            Self::Index(index) => index.purge(),
        }
    }

    /// Lets go of its folder, for all clones; searches go on. Blocks.
    pub(crate) fn close(&self) {
        match self {
            Self::Index(index) => index.close(),
        }
    }
}
