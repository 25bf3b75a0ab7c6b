//! What can go wrong in this crate outside a request: files that an admin has to look at.

use std::io;
use std::path::PathBuf;

/// Why a token or the templates could not be used. Each message names the file and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The token file could not be read or made.
    #[error("cannot use the admin token file {}: {source}; check the folder's owner and mode", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file with the admin listener's address could not be read or written.
    #[error("cannot use the admin address file {}: {source}; check the folder's owner and mode", path.display())]
    AddressFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others may read the token file.
    #[error("{} can be read by others (mode {mode:03o}): run chmod 600 on it", path.display())]
    TokenMode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The token file does not hold a token.
    #[error(
        "{} does not hold a token of {min} or more visible ASCII characters: write one, or delete the file and a new one is made",
        path.display()
    )]
    TokenText {
        /// The file.
        path: PathBuf,
        /// Fewest characters of a token.
        min: usize,
    },
    /// The system gave no random bytes.
    #[error("cannot make an admin token: the system gives no random bytes: {reason}")]
    Random {
        /// What the system said.
        reason: String,
    },
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
