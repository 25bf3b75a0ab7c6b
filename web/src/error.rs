//! Errors of templates outside requests, for the administrator.

use std::io;
use std::path::PathBuf;

/// Failure to use the templates. Each message names the file and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The administrator's templates folder cannot be read.
    #[error("cannot read the templates folder {}: {source}; make it, or leave out the setting", path.display())]
    TemplatesFolder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A built-in template is wrong: a fault of this program.
    #[error("template {name} failed: {source}; please report it")]
    Template {
        /// The template.
        name: String,
        /// The error of the template engine.
        source: minijinja::Error,
    },
}
