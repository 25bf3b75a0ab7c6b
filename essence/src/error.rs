//! What can be wrong with how a site would have its objects summarized.

use std::path::PathBuf;

/// Why the settings of summarizing cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A pattern of `[essence.select]` is no glob.
    #[error("pattern {pattern:?} of [essence.select]: {message}")]
    Pattern {
        /// The pattern as written.
        pattern: String,
        /// What is wrong with it.
        message: String,
    },
    /// What programs may read is not there.
    #[error("programs_read: {path}: {source}; correct the path, or take it out", path = .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The folder of programs cannot be read.
    #[error("cannot read the folder of programs {folder}: {source}", folder = .folder.display())]
    Programs {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}
