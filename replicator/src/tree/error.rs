//! What can go wrong with trees on disk.

use std::io;
use std::path::{Path, PathBuf};

use super::levels::{TooLong, WalkError};
use super::manifest::{Fault, ParseError};
use super::problems::Problems;
use crate::replica::Failure;
use crate::version::{Hash, Number};

/// Why something was not done with a tree. Unless that is said elsewhere, what readers see is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no room, or a quota is used up. What has come of a version is kept. Try again later.
    #[error("no space left for {path}: free some, it is tried again")]
    Full {
        /// What was written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused something else.
    #[error("{path}: {source}")]
    Io {
        /// On what.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The daemon is about to end.
    #[error("stopped, as the daemon ends")]
    Stopped,
    /// Another process has this directory.
    #[error("{dir} is in use by another process, {pid}: stop that, or use another directory")]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// The number of the process, or `unknown`.
        pid: String,
    },
    /// Bytes do not have the hash under which they came: whoever sent them is broken, or lies.
    #[error("the bytes of chunk {0} are others")]
    WrongHash(Hash),
    /// The chunks that lead to the manifest do not fit together: the version will never be whole.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// The manifest is none: the version will never be whole.
    #[error(transparent)]
    Manifest(#[from] ParseError),
    /// What was put in a manifest last cannot be its end.
    #[error(transparent)]
    Unfinished(#[from] Fault),
    /// The log of a collection is damaged, or tells another story than before: readers see what they saw. Its origin
    /// has to begin it anew.
    #[error(transparent)]
    Log(#[from] collection::Error),
    /// There is more than is allowed here.
    #[error(
        "{entries} entries of {bytes} bytes or more, where {entries_max} of {bytes_max} are the most: publish less, or several trees"
    )]
    Bounds {
        /// Of all files.
        bytes: u64,
        /// Of the tree.
        entries: u64,
        /// See [`Options`](super::store::Options).
        bytes_max: u64,
        /// The same.
        entries_max: u64,
    },
    /// A version says another length, or root, than what there is has.
    #[error("version {0} is not of this content")]
    OtherVersion(Number),
    /// A file of a generation cannot be read as it was written. What it had is fetched anew.
    #[error("{0} was changed or is damaged: verify the tree, and have it fetched again")]
    Damaged(PathBuf),
    /// A manifest is longer than others take.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// Things in the directory cannot be replicated: have them changed, or left out.
    #[error(transparent)]
    Problems(Problems),
    /// Much that was published before is not there any more: see that the directory is the right one and mounted, and
    /// say that it is meant.
    #[error(
        "{path} has {now} entries where {before} were published before: see that the directory is the right one and mounted; if that is meant, publish it with `--accept-loss`"
    )]
    Loss {
        /// What was to be published.
        path: PathBuf,
        /// Entries of the present generation.
        before: u64,
        /// Entries in the directory.
        now: u64,
    },
    /// The directory that is to be published holds what the replicator keeps.
    #[error("{0} holds the replicator's own data: keep that elsewhere")]
    Own(PathBuf),
    /// Nothing has been switched to yet, so there is nothing to read.
    #[error("{0} leads to no tree yet")]
    NoTree(PathBuf),
}

impl From<disk::lock::Error> for Error {
    fn from(error: disk::lock::Error) -> Self {
        match error {
            disk::lock::Error::InUse { dir, pid } => Self::InUse { dir, pid },
            disk::lock::Error::Io { path, source } => Self::io(path)(source),
        }
    }
}

impl Error {
    /// What it means for a version that is fetched.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Walk(_) | Self::Manifest(_) | Self::Bounds { .. } | Self::OtherVersion(_) => {
                Failure::Content
            }
            Self::Log(collection::Error::LogFolder { .. } | collection::Error::Damaged { .. }) => {
                Failure::Content
            }
            Self::WrongHash(_) => Failure::Missing,
            _ => Failure::Disk,
        }
    }

    /// Whether content is to blame: what is not there, or says something else than what was written.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Damaged(_) => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// Names what an error of the system is about.
    pub(super) fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.as_ref().to_owned();
            match source.kind() {
                // A limit on the size of files is a quota of its kind.
                io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::FileTooLarge => Self::Full { path, source },
                _ => Self::Io { path, source },
            }
        }
    }
}
