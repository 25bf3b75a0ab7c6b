//! What the broker says of itself: `harvest broker status`, `GET /status` of the admin listener.
//!
//! Shapes only; `crate::pipeline` fills them. Field names are the JSON's and stay: scripts of
//! site admins read them. Times are Unix milliseconds, durations seconds, rates changes per second.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use collection::Takedowns;
use serde::{Deserialize, Serialize};

/// The broker as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The name in the settings.
    pub name: String,
    /// The broker's id: 16 hex digits, made once.
    pub id: String,
    /// Version of the software.
    pub software: String,
    /// Where the public listener listens.
    pub listen: String,
    /// Where the admin listener listens.
    pub admin_listen: String,
    /// What peers of the public listener have done since the start, by event: `accepted`, and those
    /// that were sent away, refused or cut off.
    pub listener: BTreeMap<String, u64>,
    /// When this process started, Unix milliseconds.
    pub started_ms: u64,
    /// Live objects in the collection.
    pub objects: u64,
    /// The collection's epoch, 16 hex digits.
    pub epoch: String,
    /// The collection's serial.
    pub serial: u64,
    /// The serial that the full-text index covers, in this epoch; `None` before the first commit.
    pub index_covered: Option<u64>,
    /// What last went wrong in the index; `None` while it works.
    pub index_problem: Option<String>,
    /// What last went wrong in the sweep or the compaction; `None` while they work.
    pub catalog_problem: Option<String>,
    /// Why the collection takes no changes just now; `None` while it does.
    pub collection_problem: Option<String>,
    /// Members of the collection that are damaged and not yet replaced: file, byte and what is wrong;
    /// at most 100 are listed.
    pub damaged: Vec<String>,
    /// Members found damaged since the start.
    pub damaged_total: u64,
    /// What is suppressed, refused, and not genuine.
    pub takedowns: Takedowns,
    /// An expiry that waits for an admin's `confirm`.
    pub held: Option<Held>,
    /// The policy of the schedule: `oap`.
    pub policy: String,
    /// The freshness that the schedule aims at.
    pub theta: f64,
    /// Measured freshness over all sources, weighted by their size; `None` before a second pull.
    pub freshness: Option<f64>,
    /// Pulls finished since the start, of all sources.
    pub pulls: u64,
    /// The sources, in the order of the settings.
    pub sources: Vec<SourceStatus>,
}

/// An expiry sweep that would take more than its share and therefore waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Objects that would go.
    pub would_expire: u64,
    /// Of so many.
    pub of: u64,
}

/// One source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// Its address.
    pub url: String,
    /// `gatherer` or `broker`.
    pub kind: String,
    /// λ: estimated rate of change, changes per second; `None` before a second pull.
    pub rate_per_second: Option<f64>,
    /// The same per day.
    pub rate_per_day: Option<f64>,
    /// N: live objects at the source, as it last said.
    pub elements: Option<u64>,
    /// The interval that the policy gives it, seconds; `None` before its first pull.
    pub interval_seconds: Option<f64>,
    /// When it is due next, Unix milliseconds.
    pub next_due_ms: Option<u64>,
    /// Whether a pull is under way.
    pub pulling: bool,
    /// The last pull that succeeded.
    pub last_pull: Option<LastPull>,
    /// Pulls that succeeded since this process started.
    pub pulls: u64,
    /// Measured freshness; `None` before a second pull.
    pub freshness: Option<f64>,
    /// Whether a long poll is held open.
    pub follow: bool,
    /// What went wrong.
    pub errors: Errors,
    /// Why it waits for an administrator's `confirm`; `None` if it does not.
    pub held: Option<String>,
    /// Objects of the collection that this source holds.
    pub objects: u64,
}

/// A pull that succeeded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastPull {
    /// When it ended, Unix milliseconds.
    pub at_ms: u64,
    /// `delta` or `snapshot`.
    pub kind: String,
    /// Changes that it brought.
    pub changes: u64,
    /// Compressed bytes that it took.
    pub bytes: u64,
    /// How long it took, seconds; a long poll's wait is included.
    pub took_seconds: f64,
}

/// What went wrong with a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Pulls that failed since this process started.
    pub count: u64,
    /// The same by kind: `unreachable`, `too_slow`, `broken_off`, `refused`, `not_a_feed`,
    /// `other_format`, `corrupt`, `over_limit`, `wrong_epoch`, `loss`, `ours`; those that occurred.
    pub by_kind: BTreeMap<String, u64>,
    /// Failures since the last success.
    pub in_a_row: u32,
    /// The last failure, even if a success came after it.
    pub last: Option<String>,
    /// When that was, Unix milliseconds.
    pub last_ms: Option<u64>,
    /// How long the source is left alone after the last failure, seconds; 0 when it answers.
    pub back_off_seconds: f64,
}
