//! The settled moment: no later change gets a stamp up to it.
//!
//! A consumer that has received "all changes until T" next requests the changes since T. It must
//! not miss a change that becomes visible after T but has a stamp before T. This could happen,
//! because a commit gets its stamp before it is durable, from a clock that was read even earlier.
//! Therefore a reader settles the moment T: all later stamps are greater.
//!
//! Source: OAI-PMH §3.2 (`responseDate`, from which the next harvest starts); ours.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::change::Stamp;

/// The settled moment, and the commit in progress.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    promise: Mutex<Promise>,
}

#[derive(Debug, Default)]
struct Promise {
    /// No later commit gets a stamp before this one.
    floor: Stamp,
    /// The stamp of the commit that readers do not see yet.
    under_way: Option<Stamp>,
}

impl Settled {
    fn promise(&self) -> MutexGuard<'_, Promise> {
        self.promise.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a commit, and returns its stamp: `wanted` or later.
    pub(crate) fn begin(&self, wanted: Stamp) -> Stamp {
        let mut promise = self.promise();
        let stamp = wanted.max(promise.floor);
        promise.under_way = Some(stamp);
        stamp
    }

    /// Ends the commit in progress, once readers see it or it has failed.
    pub(crate) fn end(&self) {
        self.promise().under_way = None;
    }

    /// Returns the last moment, at most `at`, up to which readers see every change. From now on no
    /// commit gets a stamp up to it.
    pub(crate) fn settle(&self, at: Stamp) -> Stamp {
        let mut promise = self.promise();
        let before = |it: Stamp| Stamp(it.0.saturating_sub(1));
        let settled = promise.under_way.map_or(at, |it| at.min(before(it)));
        promise.floor = promise.floor.max(Stamp(settled.0.saturating_add(1)));
        settled
    }
}

#[cfg(test)]
mod tests {
    use soif::Record;

    use super::*;
    use crate::change::{Batch, Change, GATHERER_ID};
    use crate::collection::Collection;
    use crate::options::Options;

    #[test]
    fn no_change_comes_later_with_a_stamp_that_was_settled() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        let commit = |now: u64| {
            let mut record = Record::new("FILE", format!("http://h/{now}"));
            record.push(GATHERER_ID, "g");
            let batch = Batch { changes: vec![Change::Update(record)], notes: Vec::new() };
            collection.commit(batch, Stamp(now)).unwrap();
            collection.scan(0).unwrap().last().unwrap().unwrap().stamp.0
        };
        assert_eq!(commit(10), 10);
        assert_eq!(collection.settle(Stamp(20)), Stamp(20));
        assert_eq!(commit(15), 21, "its clock was read before the settled moment");
        assert_eq!(commit(30), 30);
        assert_eq!(collection.settle(Stamp(25)), Stamp(25));
        assert_eq!(commit(26), 30, "stamps never fall");

        let settled = &collection.inner.log.settled;
        assert_eq!(settled.begin(Stamp(40)), Stamp(40));
        assert_eq!(collection.settle(Stamp(50)), Stamp(39), "what is under way is not visible");
        settled.end();
        assert_eq!(collection.settle(Stamp(50)), Stamp(50));
        assert_eq!(settled.begin(Stamp(45)), Stamp(51));
        assert_eq!(collection.settle(Stamp(60)), Stamp(50), "no less than was promised");
    }

    #[test]
    fn a_commit_that_fails_is_not_under_way() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        collection.close();
        let mut record = Record::new("FILE", "http://h/");
        record.push(GATHERER_ID, "g");
        let batch = Batch { changes: vec![Change::Update(record)], notes: Vec::new() };
        assert!(collection.commit(batch, Stamp(2)).is_err());
        assert_eq!(collection.settle(Stamp(9)), Stamp(9));
    }
}
