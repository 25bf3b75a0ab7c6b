//! What can go wrong with a replicator as a whole.

use std::io;
use std::path::{Path, PathBuf};

use crate::group::OpenError;
use crate::group::charter::SignError;
use crate::version::Name;

/// Why a replicator does not start, or not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refuses something about a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A listener cannot be had, or is gone.
    #[error("{0}")]
    Listen(String),
    /// The keys cannot be had.
    #[error(transparent)]
    Identity(#[from] net::identity::Error),
    /// Connections cannot be made with them.
    #[error(transparent)]
    Peer(#[from] net::peer::Error),
    /// The admin's token, or the pages.
    #[error(transparent)]
    Web(#[from] web::Error),
    /// The token, or the address of the administration, cannot be kept.
    #[error(transparent)]
    Daemon(#[from] daemon::Error),
    /// A group cannot be gone on with.
    #[error("group {group}: {source}")]
    Open {
        /// Which.
        group: Name,
        /// Why.
        source: OpenError,
    },
    /// A group cannot be founded.
    #[error("group {group}: {source}")]
    Found {
        /// Which.
        group: Name,
        /// Why.
        source: SignError,
    },
    /// These settings differ from those that it runs with.
    #[error("{} can only be changed by a restart", .0.join(", "))]
    NeedsRestart(Vec<&'static str>),
    /// A tree of the system's.
    #[error(transparent)]
    Tree(#[from] crate::tree::error::Error),
    /// It does not do what it was asked.
    #[error("{0}")]
    Refused(String),
    /// What it runs on has ended.
    #[error("the replicator has stopped")]
    Stopped,
}

impl Error {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}
