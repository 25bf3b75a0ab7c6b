//! Pending changes: changes from failed pulls that the schedule has not counted yet.
//!
//! These changes are in the collection already, and the next pull goes on after them. If they were
//! not added to the next pull, its sample of the rate would lack them, and a source whose answers
//! always break off late would seem to change seldom.
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
    /// Whether one of the pulls brought a snapshot.
    pub(crate) full: bool,
    /// Number of updates and deletes, without records made anew of the same content.
    pub(crate) changes: u64,
    /// Mean age of the changes at the time `at`, in seconds.
    pub(crate) age_secs: f64,
    /// The first changes of objects; an object that changed in several pulls is in each.
    pub(crate) first_changes: FirstChanges,
    /// End of the last of the pulls.
    at: Instant,
}

impl PendingChanges {
    /// Returns the changes of a pull that ended at `at`, successful or not.
    pub(crate) fn new(pulled: &Summary, at: Instant) -> Self {
        let first_changes =
            FirstChanges { objects: pulled.changed, age_secs: pulled.changed_age_secs };
        let full = pulled.kind == Kind::Snapshot;
        // A record made anew of the same content is no change of the source.
        let (changes, age_secs) = (pulled.changes.saturating_sub(pulled.remade), pulled.age_secs);
        Self { full, changes, age_secs, first_changes, at }
    }

    /// Returns the sum of these and later changes, with the ages at the later time.
    pub(crate) fn plus(self, later: Self) -> Self {
        let passed = later.at.saturating_duration_since(self.at).as_secs_f64();
        let (one, other) = (self.first_changes, later.first_changes);
        Self {
            full: self.full || later.full,
            changes: self.changes.saturating_add(later.changes),
            age_secs: mean((self.age_secs + passed, self.changes), (later.age_secs, later.changes)),
            first_changes: FirstChanges {
                objects: one.objects.saturating_add(other.objects),
                age_secs: mean(
                    (one.age_secs + passed, one.objects),
                    (other.age_secs, other.objects),
                ),
            },
            at: later.at,
        }
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
        let first_changes = both.first_changes;
        assert_eq!((both.changes, first_changes.objects, both.full), (40, 20, false));
        assert!((both.age_secs - 9.5).abs() < 1e-9 && (first_changes.age_secs - 7.0).abs() < 1e-9);
        let none = PendingChanges::new(&Summary::default(), at)
            .plus(PendingChanges::new(&Summary::default(), at));
        assert_eq!((none.changes, none.age_secs), (0, 0.0));
        let whole = Summary { kind: Kind::Snapshot, ..Summary::default() };
        assert!(PendingChanges::new(&whole, at).plus(first).full);
    }
}
