//! What pulls brought that failed, and what sources sent without being asked.
//!
//! It is in the collection, and the next pull goes on after it: without it, what that one finds would be
//! short of it, and a source whose answers always break off near their end would be taken for a quiet one.
//!
//! Kept for as long as the process lives: after a restart, the first sample of such a source may be short.
//!
//! Sans-I/O.

use std::time::Instant;

use collection::pull::{Kind, Summary};
use freshness::schedule::Firsts;

/// What came of a source since the last pull that succeeded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brought {
    /// Everything came anew.
    pub(crate) full: bool,
    /// Updates and deletes.
    pub(crate) changes: u64,
    /// Their mean age then, in seconds.
    pub(crate) age_secs: f64,
    /// Of those that pulls brought, the first of each object.
    firsts: Firsts,
    /// How many of the changes were sent.
    pub(crate) sent: u64,
    /// The first of each object among those: they were as old as that when they were here.
    sent_firsts: Firsts,
    /// When it had come.
    at: Instant,
}

impl Brought {
    /// What a pull brought that ended at `at`, well or not.
    pub(crate) fn new(pulled: &Summary, at: Instant) -> Self {
        let firsts = Firsts { objects: pulled.changed, age_secs: pulled.changed_age_secs };
        let full = pulled.kind == Kind::Snapshot;
        let (changes, age_secs) = (pulled.changes, pulled.age_secs);
        Self { full, changes, age_secs, firsts, sent: 0, sent_firsts: NONE, at }
    }

    /// What a source sent, taken in at `at`.
    pub(crate) fn sent(taken: &Summary, at: Instant) -> Self {
        let it = Self::new(taken, at);
        Self { sent: it.changes, sent_firsts: it.firsts, firsts: NONE, ..it }
    }

    /// Of the changes, the first of each object, as far as one pull or part can tell.
    pub(crate) fn firsts(&self) -> Firsts {
        plus(self.firsts, self.sent_firsts)
    }

    /// This and what came later, as of then.
    pub(crate) fn plus(self, later: Self) -> Self {
        let passed = later.at.saturating_duration_since(self.at).as_secs_f64();
        let one = self.firsts;
        let older = Firsts { age_secs: one.age_secs + passed, ..one };
        Self {
            full: self.full || later.full,
            changes: self.changes.saturating_add(later.changes),
            age_secs: mean((self.age_secs + passed, self.changes), (later.age_secs, later.changes)),
            firsts: plus(older, later.firsts),
            sent: self.sent.saturating_add(later.sent),
            sent_firsts: plus(self.sent_firsts, later.sent_firsts),
            at: later.at,
        }
    }
}

/// Nothing.
const NONE: Firsts = Firsts { objects: 0, age_secs: 0.0 };

fn plus(one: Firsts, other: Firsts) -> Firsts {
    Firsts {
        objects: one.objects.saturating_add(other.objects),
        age_secs: mean((one.age_secs, one.objects), (other.age_secs, other.objects)),
    }
}

/// The mean of two means of so many numbers each; 0 of none.
fn mean((one, ones): (f64, u64), (other, others): (f64, u64)) -> f64 {
    let (ones, others) = (ones as f64, others as f64);
    if 0.0 < ones + others { (one * ones + other * others) / (ones + others) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_came_before_has_grown_older() {
        let at = net::clock::monotonic();
        let pulled = |changes, age_secs, changed, changed_age_secs| Summary {
            changes,
            age_secs,
            changed,
            changed_age_secs,
            ..Summary::default()
        };
        let first = Brought::new(&pulled(30, 4.0, 10, 5.0), at);
        let then = at + Duration::from_secs(8);
        let both = first.plus(Brought::new(&pulled(10, 2.0, 10, 1.0), then));
        // 30 changes of 12 s and 10 of 2 s; 10 first ones of 13 s and 10 of 1 s.
        let firsts = both.firsts();
        assert_eq!((both.changes, firsts.objects, both.full), (40, 20, false));
        assert!((both.age_secs - 9.5).abs() < 1e-9 && (firsts.age_secs - 7.0).abs() < 1e-9);
        // What was sent is here since then: the update is older, how long it was missing is not.
        let sent = Brought::sent(&pulled(30, 4.0, 10, 5.0), at);
        let both = sent.plus(Brought::new(&pulled(10, 2.0, 10, 1.0), then));
        assert_eq!((both.changes, both.sent, both.firsts().objects), (40, 30, 20));
        assert!((both.age_secs - 9.5).abs() < 1e-9 && (both.firsts().age_secs - 3.0).abs() < 1e-9);
        let none =
            Brought::new(&Summary::default(), at).plus(Brought::new(&Summary::default(), at));
        assert_eq!((none.changes, none.age_secs), (0, 0.0));
        let whole = Summary { kind: Kind::Snapshot, ..Summary::default() };
        assert!(Brought::new(&whole, at).plus(first).full);
    }
}
