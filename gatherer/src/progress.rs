//! The progress and status of a gatherer, for the page, the command line and the administrator.

use std::collections::BTreeMap;

use collection::Takedowns;
use daemon::ListenerStatus;
use daemon::health::Readiness;
use serde::{Deserialize, Serialize};

/// Present activity of the gatherer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Not yet begun.
    #[default]
    Starting,
    /// Walking a root, while new and changed files are read and summarized: the number of files is
    /// not known yet.
    Walking,
    /// The walk is over; its files are still being read and summarized.
    Gathering,
    /// Everything found is committed; waiting for changes.
    Idle,
    /// Shut down.
    Stopped,
}

impl Phase {
    /// Returns the name in JSON and in the answers of commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Walking => "walking",
            Self::Gathering => "gathering",
            Self::Idle => "idle",
            Self::Stopped => "stopped",
        }
    }
}

/// Progress of a gatherer. Unless noted otherwise, counts are for the pass under way; when idle,
/// for the last pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Present activity.
    pub phase: Phase,
    /// Number of finished passes over all roots since the start; 1 means that everything was
    /// visited once.
    pub passes_done: u64,
    /// Files found by the walk.
    pub files_seen: u64,
    /// Files that the pass will find: known from earlier ones, or counted ahead of the walk, which
    /// waits for files to be read; 0 until this is known.
    #[serde(default)]
    pub files_expected: u64,
    /// Finished files: unchanged, committed, or with problems.
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
    /// Number of awaited harvests that have not ended yet, with or without success: the first one
    /// of each repository since the start, and those that an administrator has confirmed.
    pub harvests_due: u64,
}

impl Progress {
    /// Returns the number of files of the pass, and whether more are to be found.
    pub fn files_total(&self) -> (u64, bool) {
        // How many pages a site has is known at its end.
        let is_open = self.phase == Phase::Idle && 0 < self.harvests_due
            || self.files_expected == 0 && matches!(self.phase, Phase::Starting | Phase::Walking);
        (self.files_expected.max(self.files_seen).max(self.files_done), is_open)
    }

    /// Returns how much of the pass is done, in percent from 0 to 99; `None` until the number of
    /// files is known.
    pub fn percent(&self) -> Option<u64> {
        let (total, is_open) = self.files_total();
        let done = self.files_done.saturating_mul(100).checked_div(total)?;
        (!is_open).then_some(done.min(99))
    }
}

/// Reason why nothing is deleted under a root although objects are gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum Hold {
    /// The root does not exist.
    Missing,
    /// The root exists, and is empty.
    Empty,
    /// The root is on another device than before.
    OtherDevice,
    /// More than the allowed share of the root's objects are gone at once.
    Lost {
        /// Number of files that are gone.
        lost: u64,
        /// Total number of files.
        of: u64,
    },
    /// More than the allowed share of a site's pages have turned to one page.
    Alike {
        /// Number of such pages.
        alike: u64,
        /// Total number of pages.
        of: u64,
    },
    /// The root is no longer in the settings.
    Removed,
}

/// Status of a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootStatus {
    /// The root's URL.
    pub url: String,
    /// Number of known files under the root; for a repository, number of records.
    pub files: u64,
    /// End of the last finished pass or harvest, in Unix seconds.
    pub confirmed: Option<u64>,
    /// Reason of a hold on deletions, if there is one; `POST /confirm?root=URL` releases it.
    pub hold: Option<Hold>,
    /// Number of files that are gone while the root is held.
    pub held: u64,
    /// Of a web site: the crawl under way, or the last one since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crawl: Option<CrawlStatus>,
    /// Of a repository: what the harvest under way does, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harvest: Option<String>,
}

/// Status of a crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlStatus {
    /// URLs that wait, or are being fetched.
    pub waiting: usize,
    /// URLs that were fetched, or had not changed.
    pub done: usize,
    /// URLs that were tried in vain.
    pub failed: usize,
    /// URLs that robots.txt keeps out.
    pub refused: usize,
    /// The hosts with most URLs that wait or are paused, and the slowest of all; at most 20.
    pub hosts: Vec<HostStatus>,
    /// Beginnings of URLs without end, with the reason; at most 20.
    pub traps: Vec<String>,
}

/// Status of a host of a crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Scheme, name and port.
    pub host: String,
    /// Number of its URLs that wait.
    pub waiting: usize,
    /// Mean time of an answer in milliseconds, once there was one.
    pub answer_ms: Option<u64>,
    /// Why it is not asked now, if it has to wait or is paused.
    pub why: Option<String>,
}

/// Counts of annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnotationCounts {
    /// Number of annotation files.
    pub files: usize,
    /// Number of annotations in them; a term or template about several objects is one for each.
    pub annotations: usize,
    /// Number of files and folders with mistakes; each is a problem.
    #[serde(rename = "wrong")]
    pub with_mistakes: usize,
    /// Number of annotations without an object after the last pass; the first of them are problems.
    pub unmatched: usize,
}

/// Status for an administrator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The gatherer's name.
    pub name: String,
    /// Its id: 16 hex digits, generated once.
    pub id: String,
    /// The version of the software.
    pub software: String,
    /// Its start, in Unix seconds.
    pub started: u64,
    /// Its collection's version: `EPOCH-SERIAL`.
    pub version: String,
    /// Live objects in its collection.
    pub objects: u64,
    /// Way of noticing changes: `notify`, `poll SECONDS`, `off`, or `starting`.
    pub watch: String,
    /// Status of its listeners.
    #[serde(flatten)]
    pub listening: ListenerStatus,
    /// Readiness.
    #[serde(default)]
    pub ready: Readiness,
    /// Why the collection refuses changes at present; `None` if it accepts them.
    pub collection_problem: Option<String>,
    /// Damaged members of its collection that have not been replaced yet: file, byte and damage; at
    /// most 100 are listed.
    pub damaged: Vec<String>,
    /// Number of members found damaged since the start.
    pub damaged_total: u64,
    /// Missing fences of the processes that read foreign bytes, in words.
    pub fences_missing: Vec<String>,
    /// Number of processes that were ended since the start because they crashed, or took too much
    /// time or memory; each is a problem of its object.
    pub workers_ended: u64,
    /// Counts of annotations.
    pub annotations: AnnotationCounts,
    /// Counts of suppressed objects, refusals, and invalid notices.
    pub takedowns: Takedowns,
    /// Status of its notifications.
    pub push: exchange::push::Status,
    /// Progress.
    pub progress: Progress,
    /// Number of problems since the start, by kind.
    pub problems: BTreeMap<String, u64>,
    /// Roots, in the order of the settings, followed by removed ones that are held.
    pub roots: Vec<RootStatus>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_is_named_once_it_is_known() {
        let check = |phase, counts: [u64; 3], total, percent| {
            let [files_done, files_seen, files_expected] = counts;
            let progress =
                Progress { phase, files_done, files_seen, files_expected, ..Progress::default() };
            assert_eq!((progress.files_total(), progress.percent()), (total, percent));
        };
        check(Phase::Starting, [0, 0, 0], (0, true), None);
        check(Phase::Walking, [5, 8, 0], (8, true), None);
        check(Phase::Walking, [5, 8, 50], (50, false), Some(10));
        check(Phase::Walking, [50, 60, 50], (60, false), Some(83));
        check(Phase::Gathering, [7, 8, 0], (8, false), Some(87));
        check(Phase::Gathering, [8, 8, 8], (8, false), Some(99));
        check(Phase::Gathering, [0, 0, 0], (0, false), None);
    }
}
