//! The errors of a collection, and the kinds of damage.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use net::error::Retry;

use crate::change::Epoch;

/// An error of a collection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A process (perhaps this one) has the collection open. Stop it, or use another directory.
    #[error(
        "collection {dir} is in use by process {pid}: stop that process, or use another directory"
    )]
    InUse {
        /// The collection's directory.
        dir: PathBuf,
        /// The id of the process that has the collection open, from the lock file.
        pid: String,
    },
    /// The file system reports an error. Repair permissions or the disk; then open again.
    #[error("{action} {path}: {source}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// Its file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The disk is full; nothing of the commit is kept. Free space and try again.
    #[error("no space left for collection {path}: free some, then try again ({source})")]
    Full {
        /// The file that could not grow.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Too little space is free: changes are refused until there is more. Reads go on.
    #[error("not accepting changes: free {free} of {needed} bytes needed on the disk of {dir}")]
    NoRoom {
        /// The collection's directory.
        dir: PathBuf,
        /// Free bytes.
        free: u64,
        /// Needed bytes.
        needed: u64,
    },
    /// The collection is closed, is being closed, or was opened only to read. Open it again.
    #[error("collection {dir} is closed: open it again")]
    Stopped {
        /// The collection's directory.
        dir: PathBuf,
    },
    /// A file is damaged. A daemon fetches or gathers the lost objects again.
    #[error("{path}: {what} at byte {offset}; `harvest collection verify` says what is lost")]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// The start of the damaged member, in bytes.
        offset: u64,
        /// The kind of damage.
        what: Damage,
    },
    /// The manifest is missing or damaged, and so is its copy.
    #[error("{path}: {what}; `harvest collection repair` says what can be done, and does it")]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// A stream of members is damaged or cut. Fetch it again from the last whole member.
    #[error("{what} at byte {offset} of the stream")]
    Stream {
        /// The start of the damaged member, in bytes of the stream.
        offset: u64,
        /// The kind of damage.
        what: Damage,
    },
    /// A change is not allowed in a log. Correct or drop it.
    #[error("change {position} of the batch ({object}) is refused: {reason}")]
    Refused {
        /// Its position in the batch, from 0.
        position: usize,
        /// Its object.
        object: String,
        /// The fault.
        reason: &'static str,
    },
    /// The key index failed and cannot be rebuilt now. The message says why; try again later.
    #[error("key index {path}: {source}")]
    Keys {
        /// The index's directory.
        path: PathBuf,
        /// The index's error.
        source: sled::Error,
    },
    /// The source is read from the start again. Pull again.
    #[error("source {name} is read from the start again, because its changes were damaged here")]
    SetBack {
        /// The source.
        name: String,
    },
    /// A source cannot be reached or refuses. [`retry`](Error::retry) says when to try again.
    #[error("source {name}: {error}")]
    Source {
        /// The source.
        name: String,
        /// The error, which names the host or the URL.
        #[source]
        error: net::Error,
    },
    /// A source has damaged changes. The changes before the damaged ones are taken (of a snapshot,
    /// all that it still contains), and nothing is released. Pull again when
    /// [`retry`](Error::retry) says.
    #[error(
        "source {name}: {url}: its changes {missing} are damaged there and are being replaced; nothing is deleted meanwhile"
    )]
    Missing {
        /// The source.
        name: String,
        /// The URL of the request.
        url: String,
        /// The missing serials, in the form of `Harvest-Missing`.
        missing: String,
        /// The time after which the source is to be asked again.
        after: Duration,
    },
    /// A source's stream is damaged at every attempt. The part before the damage is kept; try again
    /// later, and inform the source's administrator.
    #[error("source {name}: {url}: {what} at byte {offset}; the part before it is kept")]
    Corrupt {
        /// The source.
        name: String,
        /// The URL of the request.
        url: String,
        /// The start of the damaged member, in bytes of the whole stream.
        offset: u64,
        /// The kind of damage.
        what: Damage,
    },
    /// The answer is not a feed. Correct the source's URL.
    #[error("source {name}: {url} is no feed of a collection ({what}); check the source's URL")]
    NotAFeed {
        /// The source.
        name: String,
        /// The URL of the request.
        url: String,
        /// The fault of the answer.
        what: String,
    },
    /// The source offers only other formats. Update the older side.
    #[error(
        "source {name}: {url} speaks format {spoken}, this release {ours}: update the older side"
    )]
    Format {
        /// The source.
        name: String,
        /// The URL of the request.
        url: String,
        /// The formats that the source offers.
        spoken: String,
        /// The format of this release.
        ours: u8,
    },
    /// A source sends more than its limit allows. Raise the limit if the amount is intended.
    #[error("source {name} brings {what}; raise its `{setting}` if that is meant")]
    OverLimit {
        /// The source.
        name: String,
        /// The amount.
        what: String,
        /// The setting with the limit.
        setting: &'static str,
    },
    /// The subject of a takedown is not valid. Correct the text.
    #[error("`{text}` is no URL, pattern or object identifier: {reason}")]
    Subject {
        /// The text.
        text: String,
        /// The fault.
        reason: &'static str,
    },
    /// No notice on the subject is in force.
    #[error(
        "nothing suppresses just `{subject}`; `harvest collection suppress DIR --list` shows what is suppressed"
    )]
    NotSuppressed {
        /// The subject of the lift.
        subject: String,
    },
    /// The listed notice on the subject has the latest possible date, so no later notice can exist.
    /// Find out why the clock was wrong at that time, and remove that notice from
    /// `suppressed.soif`.
    #[error(
        "no later notice on `{subject}` is possible: its notice in suppressed.soif has the latest possible date; check the clock, and remove that notice"
    )]
    Outdated {
        /// The subject.
        subject: String,
    },
    /// A source's stream unpacks to far more bytes than summaries normally do. The changes before
    /// that point are kept; inform the source's administrator.
    #[error(
        "source {name}: {url} unpacks to more than {ratio_max} times its bytes; no more of it is taken"
    )]
    Swollen {
        /// The source.
        name: String,
        /// The URL of the request.
        url: String,
        /// The highest allowed ratio.
        ratio_max: u64,
    },
    /// A source no longer names most of its earlier objects. Nothing is released until an
    /// administrator confirms the loss; the objects that the source still names are taken.
    #[error(
        "source {name} no longer names {lost} of its {of} objects: has it lost them, or is it another collection? `harvest broker confirm --source {name}` releases them"
    )]
    Loss {
        /// The source.
        name: String,
        /// Number of objects that would be released.
        lost: u64,
        /// Number of objects that the source held before.
        of: u64,
    },
    /// A source is back at an older epoch, or is another collection. Nothing is taken from the
    /// source until an administrator confirms the change; then all its changes are read anew.
    #[error(
        "source {name}: {url} is at epoch {epoch} and was at {epoch_before} before: an old copy, or another collection? `harvest broker confirm --source {name}` has it read anew"
    )]
    EpochBack {
        /// The source.
        name: String,
        /// The URL of the request.
        url: String,
        /// The epoch of the last pull.
        epoch_before: Epoch,
        /// The epoch of this answer.
        epoch: Epoch,
    },
    /// A log folder is damaged, or has another history than before. At a replica: remove the folder
    /// of that feed at its origin, so that the origin begins the log anew.
    #[error("log folder {dir}: {what}")]
    LogFolder {
        /// The folder.
        dir: PathBuf,
        /// The fault.
        what: String,
    },
    /// The text is not an epoch or a version.
    #[error("`{text}` is not an epoch (16 hex digits) or version (epoch, `-`, serial)")]
    Epoch {
        /// The text.
        text: String,
    },
}

/// The kinds of damage of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The bytes do not begin with the header of a member that Harvest has written.
    #[error("no member header")]
    Header,
    /// The header does not match its checksum.
    #[error("header checksum does not match")]
    HeaderChecksum,
    /// The member has a format that this release does not know.
    #[error("unknown member format {0}")]
    Format(u8),
    /// The compressed bytes do not match their checksum.
    #[error("checksum does not match")]
    Checksum,
    /// The bytes end inside a member.
    #[error("member is cut short")]
    Truncated,
    /// The member is larger than the limits allow.
    #[error("member is larger than allowed")]
    TooLarge,
    /// The compressed bytes do not unpack to the trailer's length and CRC.
    #[error("member does not unpack")]
    Deflate,
    /// The plain bytes are not the stream that the header announces.
    #[error("member does not hold the changes its header announces")]
    Content,
    /// Serials or stamps decrease.
    #[error("serials or stamps are out of order")]
    Order,
    /// Two changes of a member are about the same object.
    #[error("two changes of one object in a member")]
    Repeated,
    /// The disk reports an error instead of the bytes.
    #[error("cannot be read from the disk")]
    Unreadable,
    /// Acknowledged changes are gone: a file was cut short, or is missing.
    #[error("acknowledged changes are missing")]
    Missing,
    /// The file ends between the members of a commit.
    #[error("commit is cut short")]
    Commit,
}

impl From<disk::lock::Error> for Error {
    fn from(error: disk::lock::Error) -> Self {
        match error {
            disk::lock::Error::InUse { dir, pid } => Self::InUse { dir, pid },
            disk::lock::Error::Io { path, source } => Self::io("cannot lock", &path, source),
        }
    }
}

impl Error {
    /// Returns the time until the next pull after this error; `None` if waiting does not help.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        match self {
            Self::Source { error, .. } => match error.retry() {
                Retry::After(after) => Some(after),
                Retry::No => None,
            },
            Self::Missing { after, .. } => Some(*after),
            Self::Corrupt { .. } | Self::Full { .. } | Self::Keys { .. } => {
                Some(net::error::RETRY_DEFAULT)
            }
            _ => None,
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        if is_full(&source) {
            Self::Full { path, source }
        } else {
            Self::Io { action, path, source }
        }
    }

    pub(crate) fn keys(path: PathBuf, source: sled::Error) -> Self {
        match source {
            // A clone of sled's error would show only debug text.
            sled::Error::Io(source) if is_full(&source) => {
                Self::Full { path, source: io::Error::from(source.kind()) }
            }
            source => Self::Keys { path, source },
        }
    }

    /// Returns whether the cause is the machine's state, which may improve without a repair: the
    /// disk is full or read-only, too many files are open, or the key index cannot be made now.
    /// Nothing is damaged, and nothing of the refused batch is kept: commit it again later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Full { .. } | Self::NoRoom { .. } | Self::Keys { .. } => true,
            Self::Io { source, .. } => {
                let of_files = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
                source.kind() == io::ErrorKind::ReadOnlyFilesystem
                    || of_files.iter().any(|it| source.raw_os_error() == Some(it.raw_os_error()))
            }
            _ => false,
        }
    }

    /// Returns the key index's error; `None` if this is another error.
    pub(crate) fn keys_error(&self) -> Option<sled::Error> {
        match self {
            Self::Keys { source, .. } => Some(source.clone()),
            Self::Full { source, .. } => Some(sled::Error::Io(io::Error::from(source.kind()))),
            _ => None,
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
