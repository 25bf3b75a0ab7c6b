//! Errors in a site's settings of summarizing.

use std::path::PathBuf;

/// Reason why the settings of summarizing cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A pattern of `[essence.select]` is not a glob.
    #[error("pattern {pattern:?} of [essence.select]: {message}")]
    Pattern {
        /// The pattern as written.
        pattern: String,
        /// The mistake in the pattern.
        message: String,
    },
    /// A path of `programs_read` does not exist.
    #[error("programs_read: {path}: {source}; correct the path, or take it out", path = .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The folder of programs cannot be read.
    #[error("cannot read the folder of programs {folder}: {source}", folder = .folder.display())]
    Programs {
        /// The folder.
        folder: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
}
