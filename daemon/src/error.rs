//! Errors that keep a daemon from starting or going on, for its administrator.

use std::io;
use std::path::PathBuf;

/// Failure to use the data folder or the listeners. Each message names the file or address and says
/// what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder of the data folder cannot be used.
    #[error("cannot use {path}: {source}; check that the folder exists and may be written", path = .path.display())]
    Data {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file of the id holds something else.
    #[error(
        "{path} does not hold an id (16 lower-case hex digits); restore it from a backup, or delete it and \
         identity.key to begin as a new one",
        path = .path.display()
    )]
    Id {
        /// The file.
        path: PathBuf,
    },
    /// The token file could not be read or made.
    #[error("cannot use the admin token file {}: {source}; check the folder's owner and mode", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file with the admin listener's address could not be read or written.
    #[error("cannot use the admin address file {}: {source}; check the folder's owner and mode", path.display())]
    AddressFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
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
        /// Minimum number of characters of a token.
        min: usize,
    },
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] net::identity::Error),
    /// A listener cannot be bound, or has failed.
    #[error(transparent)]
    Net(#[from] net::Error),
}
