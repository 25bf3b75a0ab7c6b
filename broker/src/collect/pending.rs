//! Pending changes: changes from failed pulls and from sent parts that the schedule has not counted
//! yet.
//!
//! These changes are in the collection already, and the next pull goes on after them. Without a sum
//! of them, the sample of the next pull would lack them, and a source whose answers always break
//! off late would seem to change seldom.
//!
//! The sum lives as long as the process: after a restart, the first sample of such a source may
//! miss changes.
//!
//! Sans-I/O.

use std::time::Instant;

use collection::pull::{Kind, Summary};
use freshness::schedule::FirstChanges;

#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingChanges {
    /// Whether a snapshot was among them.
    pub(crate) full: bool,
    /// Number of updates and deletes.
    pub(crate) changes: u64,
    /// Mean age of the changes at the time `at`, in seconds.
    pub(crate) age_secs: f64,
    /// Of the pulled changes, the first change of each object.
    first_changes: FirstChanges,
    pub(crate) sent: u64,
    /// Of the sent changes, the first change of each object, with its age at arrival.
    sent_first_changes: FirstChanges,
    /// Time of the last arrival.
    at: Instant,
}

impl PendingChanges {
    /// Returns the changes of a pull that ended at `at`, successful or not.
    pub(crate) fn new(pulled: &Summary, at: Instant) -> Self {
        let first_changes =
            FirstChanges { objects: pulled.changed, age_secs: pulled.changed_age_secs };
        let full = pulled.kind == Kind::Snapshot;
        let (changes, age_secs) = (pulled.changes, pulled.age_secs);
        Self { full, changes, age_secs, first_changes, sent: 0, sent_first_changes: NONE, at }
    }

    /// Returns the changes of a sent part, stored at `at`.
    pub(crate) fn sent(taken: &Summary, at: Instant) -> Self {
        let it = Self::new(taken, at);
        Self { sent: it.changes, sent_first_changes: it.first_changes, first_changes: NONE, ..it }
    }

    /// Returns, of all changes, the first change of each object, counted separately in each pull
    /// and part.
    pub(crate) fn first_changes(&self) -> FirstChanges {
        plus(self.first_changes, self.sent_first_changes)
    }

    /// Returns the sum of these and later changes, with the ages at the later time.
    pub(crate) fn plus(self, later: Self) -> Self {
        let passed = later.at.saturating_duration_since(self.at).as_secs_f64();
        let one = self.first_changes;
        let older = FirstChanges { age_secs: one.age_secs + passed, ..one };
        Self {
            full: self.full || later.full,
            changes: self.changes.saturating_add(later.changes),
            age_secs: mean((self.age_secs + passed, self.changes), (later.age_secs, later.changes)),
            first_changes: plus(older, later.first_changes),
            sent: self.sent.saturating_add(later.sent),
            sent_first_changes: plus(self.sent_first_changes, later.sent_first_changes),
            at: later.at,
        }
    }
}

const NONE: FirstChanges = FirstChanges { objects: 0, age_secs: 0.0 };

fn plus(one: FirstChanges, other: FirstChanges) -> FirstChanges {
    FirstChanges {
        objects: one.objects.saturating_add(other.objects),
        age_secs: mean((one.age_secs, one.objects), (other.age_secs, other.objects)),
    }
}

/// Returns the mean of all numbers of two groups, from the mean and the count of each group; 0 if
/// there are no numbers.
fn mean((one, ones): (f64, u64), (other, others): (f64, u64)) -> f64 {
    let (ones, others) = (ones as f64, others as f64);
    if 0.0 < ones + others { (one * ones + other * others) / (ones + others) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn earlier_changes_grow_older() {
        let at = net::clock::monotonic();
        let pulled = |changes, age_secs, changed, changed_age_secs| Summary {
            changes,
            age_secs,
            changed,
            changed_age_secs,
            ..Summary::default()
        };
        let first = PendingChanges::new(&pulled(30, 4.0, 10, 5.0), at);
        let then = at + Duration::from_secs(8);
        let both = first.plus(PendingChanges::new(&pulled(10, 2.0, 10, 1.0), then));
        // 30 changes are 12 s old and 10 are 2 s; of the first changes, 10 are 13 s old and 10 are
        // 1 s.
        let first_changes = both.first_changes();
        assert_eq!((both.changes, first_changes.objects, both.full), (40, 20, false));
        assert!((both.age_secs - 9.5).abs() < 1e-9 && (first_changes.age_secs - 7.0).abs() < 1e-9);
        // A sent change has been here since its arrival: its age grows, its delay does not.
        let sent = PendingChanges::sent(&pulled(30, 4.0, 10, 5.0), at);
        let both = sent.plus(PendingChanges::new(&pulled(10, 2.0, 10, 1.0), then));
        assert_eq!((both.changes, both.sent, both.first_changes().objects), (40, 30, 20));
        assert!(
            (both.age_secs - 9.5).abs() < 1e-9
                && (both.first_changes().age_secs - 3.0).abs() < 1e-9
        );
        let none = PendingChanges::new(&Summary::default(), at)
            .plus(PendingChanges::new(&Summary::default(), at));
        assert_eq!((none.changes, none.age_secs), (0, 0.0));
        let whole = Summary { kind: Kind::Snapshot, ..Summary::default() };
        assert!(PendingChanges::new(&whole, at).plus(first).full);
    }
}
