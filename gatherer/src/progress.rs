//! How far a gatherer is, and its status for the page, the command line and the administrator.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use collection::Takedowns;
use daemon::Listening;
use daemon::health::Readiness;
use serde::Serialize;

/// What the gatherer is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Not yet begun.
    #[default]
    Starting,
    /// Walking a root, while what is new or changed is read and summarized: the number of files is
    /// not known yet.
    Walking,
    /// The walk is over; what it found is still being read and summarized.
    Gathering,
    /// Everything found is committed; waiting for changes.
    Idle,
    /// Shut down.
    Stopped,
}

/// How far a gatherer is. Counts are of the pass under way, or of the last one when idle, unless they
/// say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// Passes over all roots finished since the start; 1 means that everything was looked at once.
    pub passes_done: u64,
    /// Files found by the walk.
    pub files_seen: u64,
    /// Files that are done with: unchanged, committed, or problems.
    pub files_done: u64,
    /// Bytes read of new or changed files.
    pub bytes: u64,
    /// Objects summarized, by type.
    pub by_type: BTreeMap<String, u64>,
    /// Problems since the start.
    pub problems: u64,
    /// Records committed as new or changed.
    pub updated: u64,
    /// Records deleted.
    pub deleted: u64,
    /// Files that had not changed.
    pub unchanged: u64,
    /// Harvests of repositories that have yet to end, whatever comes of them: the first one of each since
    /// the start, and those that were confirmed.
    pub harvests_due: u64,
}

/// Why nothing is deleted under a root although objects are gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum Hold {
    /// The root is not there.
    Missing,
    /// The root is there, and nothing is in it.
    Empty,
    /// The root is on another device than before.
    OtherDevice,
    /// More than the allowed share of the root's objects are gone at once.
    Lost {
        /// Files gone.
        lost: u64,
        /// Of how many.
        of: u64,
    },
    /// The root is no longer in the settings.
    Removed,
}

/// A root, as status shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RootStatus {
    /// The root's URL.
    pub url: String,
    /// Files known under it; of a repository, records.
    pub files: u64,
    /// When its last finished pass or harvest ended, in Unix seconds.
    pub confirmed: Option<u64>,
    /// Why deletions are held, if they are; `POST /confirm?root=URL` releases them.
    pub hold: Option<Hold>,
    /// How many files are gone while held.
    pub held: u64,
}

/// How changes are noticed just now, whatever the settings ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Watching {
    /// Watches are being placed.
    #[default]
    Starting,
    /// By the system's notifications.
    Notify,
    /// By walking every root at this interval.
    Poll(Duration),
    /// Not at all.
    Off,
}

impl fmt::Display for Watching {
    /// As [`Status::watch`] has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::Notify => f.write_str("notify"),
            Self::Poll(interval) => write!(f, "poll {}", interval.as_secs()),
            Self::Off => f.write_str("off"),
        }
    }
}

/// Annotations, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Annotated {
    /// Files of annotations that are there.
    pub files: usize,
    /// Annotations in them; one about several objects counts for each.
    pub annotations: usize,
    /// Files and folders with something wrong; each is a problem.
    pub wrong: usize,
    /// Annotations that were about no object after the last pass; the first are problems.
    pub unmatched: usize,
}

/// Everything an administrator asks first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The gatherer's name.
    pub name: String,
    /// Its id: 16 hex digits, made once.
    pub id: String,
    /// The version of the software.
    pub software: String,
    /// When it started, in Unix seconds.
    pub started: u64,
    /// Its collection's version: `EPOCH-SERIAL`.
    pub version: String,
    /// Live objects in its collection.
    pub objects: u64,
    /// How changes are noticed: `notify`, `poll SECONDS`, `off`, or `starting`.
    pub watch: String,
    /// What its listeners met.
    #[serde(flatten)]
    pub listening: Listening,
    /// Whether it can do what it is for.
    pub ready: Readiness,
    /// Why its collection takes no changes just now, if so.
    pub collection_problem: Option<String>,
    /// Members of its collection that are damaged and not yet replaced: file, byte and what is wrong;
    /// at most 100 are listed.
    pub damaged: Vec<String>,
    /// Members found damaged since the start.
    pub damaged_total: u64,
    /// What the system lacks to fence in what reads foreign bytes, in words.
    pub fences_missing: Vec<String>,
    /// How many processes that read objects were ended since the start: they crashed, or took too much
    /// time or memory; each is a problem of its object.
    pub workers_ended: u64,
    /// What people say of its objects.
    pub annotations: Annotated,
    /// What is suppressed, refused, and not genuine.
    pub takedowns: Takedowns,
    /// Whom it tells of its changes.
    pub push: exchange::push::Status,
    /// How far it is.
    pub progress: Progress,
    /// Problems since the start by kind.
    pub problems: BTreeMap<String, u64>,
    /// The roots, in the order of the settings; removed ones that are held last.
    pub roots: Vec<RootStatus>,
}
