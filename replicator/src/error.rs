//! Errors of a replicator as a whole.

use std::io;
use std::path::{Path, PathBuf};

use crate::group::OpenError;
use crate::group::charter::SignError;
use crate::version::Name;

/// An error at the start of a replicator or in an operation on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refuses an operation on this file.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// A listener cannot be opened, or has ended.
    #[error("{0}")]
    Listen(String),
    /// The keys cannot be read or made.
    #[error(transparent)]
    Identity(#[from] net::identity::Error),
    /// Connections cannot be made with the keys.
    #[error(transparent)]
    Peer(#[from] net::peer::Error),
    /// The administrator's token or the pages cannot be loaded.
    #[error(transparent)]
    Web(#[from] web::Error),
    /// The token or the address of the administration cannot be stored.
    #[error(transparent)]
    Daemon(#[from] daemon::Error),
    /// The stored group of this name cannot be opened.
    #[error("group {0}: {1}")]
    Open(Name, #[source] OpenError),
    /// A group of this name cannot be founded.
    #[error("group {0}: {1}")]
    Found(Name, #[source] SignError),
    /// These settings differ from those in use.
    #[error("{} can only be changed by a restart", .0.join(", "))]
    NeedsRestart(Vec<&'static str>),
    /// An operation on one of the replicator's trees fails.
    #[error(transparent)]
    Tree(#[from] crate::tree::error::Error),
    /// The replicator refuses the request.
    #[error("{0}")]
    Refused(String),
    /// The replicator's thread has ended.
    #[error("the replicator has stopped")]
    Stopped,
}

impl Error {
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io(path.to_owned(), error)
    }
}
