//! Errors of trees on disk.

use std::io;
use std::path::{Path, PathBuf};

use super::levels::{TooLong, WalkError};
use super::manifest::{Fault, ParseError};
use super::problems::Problems;
use crate::replica::Failure;
use crate::version::{Hash, Number};

/// An error of an operation on a tree. Unless documented otherwise, readers still see what they saw
/// before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk is full, or a quota is used up. Received chunks of a version are kept. Try again
    /// later.
    #[error("no space left for {0}: free some, it is tried again")]
    Full(PathBuf, #[source] io::Error),
    /// The system refused another operation.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// The daemon ends.
    #[error("stopped, as the daemon ends")]
    Stopped,
    /// Another process uses this directory. The text is its process id, or `unknown`.
    #[error("{0} is in use by another process, {1}: stop it, or use another directory")]
    InUse(PathBuf, String),
    /// The bytes of a chunk do not have the hash under which they were sent: their sender is faulty
    /// or lies.
    #[error("chunk {0} has other bytes than its hash says")]
    WrongHash(Hash),
    /// The chunks that lead to the manifest do not fit together: the version will never be whole.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// The manifest is invalid: the version will never be whole.
    #[error(transparent)]
    Manifest(#[from] ParseError),
    /// A manifest cannot end after its last item, for example because chunks of a file are missing.
    #[error(transparent)]
    Unfinished(#[from] Fault),
    /// The log of a collection is damaged, or does not continue the one before. Its origin has to
    /// begin the log anew.
    #[error(transparent)]
    Log(#[from] collection::Error),
    /// There are more entries or bytes than the settings allow.
    #[error(
        "{entries} entries of {bytes} bytes or more, where {entries_max} of {bytes_max} are the most: publish less, or several trees"
    )]
    Bounds {
        /// Bytes of all files.
        bytes: u64,
        /// Entries of the tree.
        entries: u64,
        /// See [`Options`](super::store::Options).
        bytes_max: u64,
        /// See [`Options`](super::store::Options).
        entries_max: u64,
    },
    /// The length, root or kind of a version differs from that of the content.
    #[error("version {0} is not of this content")]
    OtherVersion(Number),
    /// A file of a generation was changed, or is damaged. The chunks of the file are fetched again.
    #[error("{0} was changed or is damaged: verify the tree, and have it fetched again")]
    Damaged(PathBuf),
    /// A manifest is longer than other members accept.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// Entries of the directory cannot be replicated: change them, or leave them out.
    #[error(transparent)]
    Problems(Problems),
    /// Many entries that were published before are missing: check that the directory is the right
    /// one and mounted, or accept the loss.
    #[error(
        "{path} has {now} entries where {before} were published before: see that the directory is the right one and mounted; if that is meant, publish it with `--accept-loss`"
    )]
    Loss {
        /// The directory to publish.
        path: PathBuf,
        /// Entries of the present generation.
        before: u64,
        /// Entries in the directory.
        now: u64,
    },
    /// The directory to publish contains the store of its tree, or is inside it.
    #[error("{0} holds the replicator's own data: keep that elsewhere")]
    Own(PathBuf),
    /// There is no version to read yet.
    #[error("{0} leads to no tree yet")]
    NoTree(PathBuf),
}

impl From<disk::lock::Error> for Error {
    fn from(error: disk::lock::Error) -> Self {
        match error {
            disk::lock::Error::InUse { dir, pid } => Self::InUse(dir, pid),
            disk::lock::Error::Io { path, source } => Self::io(path)(source),
        }
    }
}

impl Error {
    /// Returns the kind of failure for a version that is fetched.
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

    /// Returns whether content is missing or damaged.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Damaged(_) => true,
            Self::Io(_, error) => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// Adds the path to an error of the system.
    pub(super) fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |error| {
            let path = path.as_ref().to_owned();
            match error.kind() {
                // A limit on the size of files is a kind of quota.
                io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::FileTooLarge => Self::Full(path, error),
                _ => Self::Io(path, error),
            }
        }
    }
}
