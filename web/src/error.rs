//! What can go wrong in this crate outside a request: files that an admin has to look at.

use std::io;
use std::path::PathBuf;

/// Why the templates could not be used. Each message names the file and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder for templates of one's own is not there.
    #[error("cannot read the templates folder {}: {source}; make it, or leave out the setting", path.display())]
    TemplatesFolder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A template that is built in is wrong: a fault of this program.
    #[error("template {name} failed: {source}; please report it")]
    Template {
        /// The template.
        name: String,
        /// What the engine said.
        source: minijinja::Error,
    },
}
