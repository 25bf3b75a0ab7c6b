//! Errors of a gatherer as a whole.
//!
//! A broken object is never an error of this kind: it is a [`Problem`](crate::problems::Problem) on
//! the list of problems, and the run goes on.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Reason why a gatherer cannot start, or cannot fulfill a request.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder of the data directory cannot be used.
    #[error("cannot use {path}: {source}; check that the folder exists and may be written")]
    Data {
        /// The file or folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The collection cannot be opened, read or written.
    #[error("the collection in {path}: {message}")]
    Collection {
        /// The collection's directory.
        path: PathBuf,
        /// Error of the collection, with advice.
        message: String,
    },
    /// A listener cannot be bound, or serving failed.
    #[error("{0}")]
    Listen(String),
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
    /// A root or a map cannot be used.
    #[error("{0}")]
    Spec(String),
    /// New settings differ from the running ones in settings that only a restart can apply.
    #[error("restart to apply: {}; everything else was kept as it was", .settings.join(", "))]
    NeedsRestart {
        /// The settings' names, as in the settings file.
        settings: Vec<&'static str>,
    },
    /// The gatherer has stopped.
    #[error("the gatherer has stopped; start it again")]
    Stopped,
}
