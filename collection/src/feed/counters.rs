//! The counters of a feed.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of a feed since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Answers with a delta, empty ones included.
    pub deltas: u64,
    /// Those of them that `wait` held and that then had new changes.
    pub woken: u64,
    /// Requests redirected to a snapshot.
    pub redirects: u64,
    /// Snapshots made.
    pub snapshots: u64,
    /// Answers with a snapshot, or with a part of one.
    pub snapshot_answers: u64,
    /// Requests refused: malformed, of unknown format, for unknown snapshots.
    pub refused: u64,
    /// Bytes of all bodies whose transfer has begun; consumers may not have fetched all of them.
    pub bytes: u64,
    /// Requests that `wait` holds at present.
    pub waiting: u64,
}

/// The counters, updated by requests.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) deltas: AtomicU64,
    pub(super) woken: AtomicU64,
    pub(super) redirects: AtomicU64,
    pub(super) snapshots: AtomicU64,
    pub(super) snapshot_answers: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) bytes: AtomicU64,
}

impl Counts {
    /// Reads all counters; `waiting` is the number of held requests.
    pub(super) fn read(&self, waiting: u64) -> Counters {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counters {
            deltas: get(&self.deltas),
            woken: get(&self.woken),
            redirects: get(&self.redirects),
            snapshots: get(&self.snapshots),
            snapshot_answers: get(&self.snapshot_answers),
            refused: get(&self.refused),
            bytes: get(&self.bytes),
            waiting,
        }
    }
}

pub(super) fn add(count: &AtomicU64, number: u64) {
    count.fetch_add(number, Ordering::Relaxed);
}
