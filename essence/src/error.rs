//! Errors in a site's settings of summarizing.

use std::path::{Path, PathBuf};

use formats::Type;
use settings::{Mistake, nearest};

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

/// Returns the mistakes with `path` as their file.
pub(crate) fn in_file(found: Vec<Mistake>, path: &Path) -> impl Iterator<Item = Mistake> {
    found.into_iter().map(move |it| Mistake { file: Some(path.to_path_buf()), ..it })
}

/// Returns the message that no type is called `name`, and what is expected instead.
pub(crate) fn unknown_type(name: &str) -> (String, String) {
    let near = nearest(name, Type::ALL.iter().map(|it| it.name()));
    let expected = near.map(|near| format!("{near:?}"));
    let any = || "a built-in type, or one of the rule files".to_owned();
    (format!("no type is called {name:?}"), expected.unwrap_or_else(any))
}
