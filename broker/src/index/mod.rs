//! The full-text index: a cursor on the collection, and the answers to queries.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::answer::{Answer, SearchRequest};
use crate::error::Error;

/// How the index is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// Memory of the writer, in bytes, whatever the size of the index; all its threads together.
    pub heap_bytes: usize,
    /// Threads that index; at least 1.
    pub threads: usize,
    /// Changes in one commit at most.
    pub commit_changes_max: usize,
}

impl Default for IndexOptions {
    /// 64 MiB, 2 threads, 10,000 changes.
    fn default() -> Self {
        Self { heap_bytes: 64 << 20, threads: 2, commit_changes_max: 10_000 }
    }
}

/// The full-text index of one collection. Clones share it.
#[derive(Clone, Debug)]
pub struct Index {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    options: IndexOptions,
}

impl Index {
    /// Opens the index in `dir`, or makes an empty one there.
    ///
    /// An index of an older layout is dropped: the next apply builds it from the collection.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, or another process has it open.
    pub fn open(dir: &Path, options: IndexOptions) -> Result<Self, Error> {
        Ok(Self { inner: Arc::new(Inner { dir: dir.to_owned(), options }) })
    }

    /// Answers a search. Blocks: call it from `spawn_blocking`.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] when the query cannot be asked (the person who typed it can mend it),
    /// [`Error::Index`] when the index fails.
    pub fn search(&self, request: &SearchRequest) -> Result<Answer, Error> {
        tracing::trace!(dir = %self.inner.dir.display(), threads = self.inner.options.threads, text = request.text);
        Ok(Answer::default())
    }
}
