//! What can go wrong in a collection.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use net::error::Retry;

use crate::change::Epoch;

/// An error of a collection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process (or this one) has the collection open. Stop it, or use another directory.
    #[error(
        "collection {dir} is in use by process {pid}: stop that process, or use another directory"
    )]
    InUse {
        /// The collection's directory.
        dir: PathBuf,
        /// The holder's process id, as the lock file says.
        pid: String,
    },
    /// The file system refused. Free space, repair permissions or the disk, then open again.
    #[error("{action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No room is left for a commit; nothing of it is kept. Free space and commit again.
    #[error("no space left for collection {path}: free some, then try again ({source})")]
    Full {
        /// The file that could not grow.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// So little space is free that nothing more is taken; all that is there is served. Free space;
    /// commits are taken again by themselves.
    #[error("not accepting changes: free {free} of {needed} bytes needed on the disk of {dir}")]
    NoRoom {
        /// The collection's directory.
        dir: PathBuf,
        /// What is free, in bytes.
        free: u64,
        /// What must be, in bytes.
        needed: u64,
    },
    /// The collection has been closed. Open it again.
    #[error("collection {dir} is closed: open it again")]
    Stopped {
        /// The collection's directory.
        dir: PathBuf,
    },
    /// A file is damaged. A daemon sees to it that what is lost is fetched or gathered again; `verify`
    /// lists all damage, and what is lost.
    #[error("{path}: {what} at byte {offset}; `harvest collection verify` says what is lost")]
    Damaged {
        /// The damaged file.
        path: PathBuf,
        /// Where the damaged member starts, in bytes.
        offset: u64,
        /// What is wrong with it.
        what: Damage,
    },
    /// The list of segments is missing or damaged, and so is its copy. `harvest collection repair` makes
    /// it anew.
    #[error("{path}: {what}; `harvest collection repair` says what can be done, and does it")]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A stream of members is damaged or cut. Fetch it again from the last whole member.
    #[error("{what} at byte {offset} of the stream")]
    Stream {
        /// Where the damaged member starts, in bytes of the stream.
        offset: u64,
        /// What is wrong with it.
        what: Damage,
    },
    /// A change cannot stand in a log. Correct or drop it.
    #[error("change {position} of the batch ({object}) is refused: {reason}")]
    Refused {
        /// Its place in the batch, from 0.
        position: usize,
        /// The object it is about.
        object: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The key index failed and cannot be rebuilt just now. Try again later: see what it says.
    #[error("key index {path}: {source}")]
    Keys {
        /// The index's directory.
        path: PathBuf,
        /// What the index said.
        source: sled::Error,
    },
    /// What the source brought before was damaged here: it is read from the start again. Pull again.
    #[error("source {name} is read from the start again, for what was damaged here")]
    SetBack {
        /// The source.
        name: String,
    },
    /// A source cannot be reached or refuses. Try again when [`retry`](Error::retry) says.
    #[error("source {name}: {error}")]
    Source {
        /// The source.
        name: String,
        /// What went wrong; it names host or URL.
        #[source]
        error: net::Error,
    },
    /// A source cannot tell some of its changes just now. What comes before them is taken, and of a
    /// snapshot what it has; nothing is released. Pull again when [`retry`](Error::retry) says.
    #[error(
        "source {name}: {url}: its changes {missing} are damaged there and are being replaced; nothing is deleted meanwhile"
    )]
    Missing {
        /// The source.
        name: String,
        /// What was fetched.
        url: String,
        /// The serials, as `Harvest-Missing` has them.
        missing: String,
        /// When the source says to ask again.
        after: Duration,
    },
    /// What a source sends is damaged, again and again. The part before is kept; try again later,
    /// and tell the source's admin.
    #[error("source {name}: {url}: {what} at byte {offset}; what came before is kept")]
    Corrupt {
        /// The source.
        name: String,
        /// What was fetched.
        url: String,
        /// Where the damaged member starts, in bytes of the whole stream.
        offset: u64,
        /// What is wrong with it.
        what: Damage,
    },
    /// What answers is no feed. Correct the source's URL.
    #[error("source {name}: {url} is no feed of a collection ({what}); check the source's URL")]
    NotAFeed {
        /// The source.
        name: String,
        /// What was fetched.
        url: String,
        /// What is wrong with the answer.
        what: String,
    },
    /// The source speaks other formats only. Bring the older side up to date.
    #[error(
        "source {name}: {url} speaks format {spoken}, this release {ours}: update the older side"
    )]
    Format {
        /// The source.
        name: String,
        /// What was fetched.
        url: String,
        /// The formats that it speaks.
        spoken: String,
        /// The format that this release speaks.
        ours: u8,
    },
    /// A source brings more than it may. Raise the limit if that is meant.
    #[error("source {name} brings {what}; raise its `{setting}` if that is meant")]
    OverLimit {
        /// The source.
        name: String,
        /// How much.
        what: String,
        /// The setting that forbids it.
        setting: &'static str,
    },
    /// What is to be suppressed is not said clearly. Say it otherwise.
    #[error("`{text}` is no URL, pattern or object identifier: {reason}")]
    Subject {
        /// The text.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// What is to be lifted is not in force. `harvest collection suppress DIR --list` shows what is.
    #[error(
        "nothing suppresses just `{subject}`; `harvest collection suppress DIR --list` shows what is suppressed"
    )]
    NotSuppressed {
        /// What was to be lifted.
        subject: String,
    },
    /// What is on the list of the subject is dated as late as can be: nothing later can be said. See what
    /// the clock was, and take that part out of `suppressed.soif`.
    #[error(
        "nothing later can be said of `{subject}`: its notice in suppressed.soif is dated at the end of time"
    )]
    Outdated {
        /// What it was to be said of.
        subject: String,
    },
    /// What a source sends unpacks to far more than summaries do. What came before is kept; tell the
    /// source's admin.
    #[error(
        "source {name}: {url} unpacks to more than {ratio_max} times its bytes; no more of it is taken"
    )]
    Swollen {
        /// The source.
        name: String,
        /// What was fetched.
        url: String,
        /// How many times is too much.
        ratio_max: u64,
    },
    /// A source names most of what it brought before no more. Nothing is released before an
    /// administrator confirms it; what the source does name is taken.
    #[error(
        "source {name} names {lost} of the {of} objects that it brought no more: has it lost them, or is it another collection? `harvest broker confirm --source {name}` lets them go"
    )]
    Loss {
        /// The source.
        name: String,
        /// Objects that would be released.
        lost: u64,
        /// Of so many that it holds.
        of: u64,
    },
    /// A source is back at an older life of its collection, or is another one. Nothing is taken from it
    /// before an administrator confirms it; all that it brought is read anew then.
    #[error(
        "source {name}: {url} is at epoch {told} and was at {known} before: an old copy, or another collection? `harvest broker confirm --source {name}` has it read anew"
    )]
    EpochBack {
        /// The source.
        name: String,
        /// What was fetched.
        url: String,
        /// The epoch that it was at.
        known: Epoch,
        /// The epoch that it says now.
        told: Epoch,
    },
    /// A log folder is damaged, or tells another story than before. At a replica: have its origin begin the
    /// log anew, by removing the folder that it follows its feed into.
    #[error("log folder {dir}: {what}")]
    LogFolder {
        /// The folder.
        dir: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The text is no epoch or version.
    #[error("`{text}` is not an epoch (16 hex digits) or version (epoch, `-`, serial)")]
    Epoch {
        /// The text.
        text: String,
    },
}

/// What is wrong with a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The bytes are no gzip member of ours.
    #[error("no member header")]
    Header,
    /// The header does not match its checksum.
    #[error("header checksum does not match")]
    HeaderChecksum,
    /// The member speaks a format that this release does not know.
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
    /// The compressed bytes do not unpack to what the trailer says.
    #[error("member does not unpack")]
    Deflate,
    /// The plain bytes are not the stream that the header announces.
    #[error("member does not hold the changes its header announces")]
    Content,
    /// Serials or stamps go back.
    #[error("serials or stamps are out of order")]
    Order,
    /// Two changes of a member are about the same object.
    #[error("two changes of one object in a member")]
    Repeated,
    /// The disk gives an error instead of the bytes.
    #[error("cannot be read from the disk")]
    Unreadable,
    /// Changes are not there any more: a file was cut short, or is gone.
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
    /// Returns when to pull again after this error; `None` if nothing will change by itself.
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

    /// Makes the error of a failed system call.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        if is_full(&source) {
            Self::Full { path, source }
        } else {
            Self::Io { action, path, source }
        }
    }

    /// Makes the error of a failed key index.
    pub(crate) fn keys(path: PathBuf, source: sled::Error) -> Self {
        match source {
            // A copy of sled's says it in the words of a debugger.
            sled::Error::Io(source) if is_full(&source) => {
                Self::Full { path, source: io::Error::from(source.kind()) }
            }
            source => Self::Keys { path, source },
        }
    }

    /// Whether the machine is at fault and may be well again by itself: the disk is full or read-only,
    /// too many files are open, the key index cannot be made just now. Nothing is damaged, and
    /// nothing of a batch that was refused so is kept: commit it again later.
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

    /// Returns what the key index said; `None` if the error is not its own.
    pub(crate) fn of_keys(&self) -> Option<sled::Error> {
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
