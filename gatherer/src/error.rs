//! Errors of a gatherer as a whole.
//!
//! A broken object is never an error of this kind: it is a [`Problem`](crate::problems::Problem) on
//! the list of problems, and the run goes on.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::config::COLLECTION;

/// Reason why a gatherer cannot start, or cannot fulfill a request.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The collection cannot be opened, read or written.
    #[error("the collection in {path}: {message}")]
    Collection {
        /// The collection's directory.
        path: PathBuf,
        /// Error of the collection, with advice.
        message: String,
    },
    /// An include or exclude pattern is not valid.
    #[error("pattern {pattern:?} of root {root}: {message}")]
    Pattern {
        /// The root's URL.
        root: String,
        /// The pattern as written.
        pattern: String,
        /// The mistake in the pattern.
        message: String,
    },
    /// The data folder or a listener failed.
    #[error(transparent)]
    Daemon(#[from] daemon::Error),
    /// The settings of summarizing cannot be used.
    #[error(transparent)]
    Essence(#[from] essence::Error),
    /// Roots, maps or pages cannot be used, or a part of the gatherer failed.
    #[error("{0}")]
    Failed(String),
    /// New settings differ from the running ones in settings that only a restart can apply.
    #[error("restart to apply: {}; everything else was kept as it was", .settings.join(", "))]
    NeedsRestart {
        /// The settings' names, as in the settings file.
        settings: Vec<&'static str>,
    },
}

impl Error {
    /// Returns the error of the collection in the data folder `data`.
    pub(crate) fn collection(data: &Path, error: &collection::Error) -> Self {
        Self::Collection { path: data.join(COLLECTION), message: error.to_string() }
    }
}
