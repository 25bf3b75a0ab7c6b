//! The live set: the serials of the updates that hold the live objects' records.
//!
//! Whoever lists the log by date must leave out superseded changes, and checks every change of a
//! page against this set. The set is built from the key index at the first request, and kept
//! current by the commits from then on. A collection that is never listed has no set. A million
//! objects take some 100 kB.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roaring::RoaringTreemap;

use crate::error::Error;

/// Maximum number of attempts to build the set, if the key index is rebuilt meanwhile.
const TRIES: usize = 3;

/// The live set; it exists once it was requested.
#[derive(Debug, Default)]
pub(crate) struct LiveSet {
    state: Mutex<SetState>,
    /// Locked while the set is built.
    making: Mutex<()>,
}

#[derive(Debug, Default)]
enum SetState {
    #[default]
    Unknown,
    /// The set is being built; these changes came meanwhile.
    Building(LiveSetDelta),
    /// The set. A commit copies it before a change if a reader is using it.
    Ready(Arc<RoaringTreemap>),
}

/// The changes of commits to the set.
#[derive(Debug, Default)]
pub(crate) struct LiveSetDelta {
    /// Serials of updates.
    pub(crate) added: Vec<u64>,
    /// Serials of superseded updates.
    pub(crate) removed: Vec<u64>,
}

impl LiveSet {
    fn state(&self) -> MutexGuard<'_, SetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a commit that is in the key index.
    pub(crate) fn take(&self, delta: LiveSetDelta) {
        match &mut *self.state() {
            SetState::Unknown => {}
            SetState::Building(before) => {
                before.added.extend(delta.added);
                before.removed.extend(delta.removed);
            }
            SetState::Ready(set) => delta.apply(Arc::make_mut(set)),
        }
    }

    /// Returns the present set; builds it with `make` at the first request. `None` if the key index
    /// was rebuilt during every attempt.
    pub(crate) fn get_or_build(
        &self,
        make: impl Fn() -> Result<RoaringTreemap, Error>,
    ) -> Result<Option<Arc<RoaringTreemap>>, Error> {
        if let SetState::Ready(set) = &*self.state() {
            return Ok(Some(set.clone()));
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..TRIES {
            if let SetState::Ready(set) = &*self.state() {
                return Ok(Some(set.clone()));
            }
            *self.state() = SetState::Building(LiveSetDelta::default());
            let made = make();
            let mut state = self.state();
            let mut made = made.inspect_err(|_error| *state = SetState::Unknown)?;
            // If the state is another one, the key index was rebuilt meanwhile.
            if let SetState::Building(delta) = std::mem::take(&mut *state) {
                delta.apply(&mut made);
                let made = Arc::new(made);
                *state = SetState::Ready(made.clone());
                return Ok(Some(made));
            }
        }
        Ok(None)
    }

    /// Forgets the set, because the key index is gone or was rebuilt.
    pub(crate) fn forget(&self) {
        *self.state() = SetState::Unknown;
    }
}

impl LiveSetDelta {
    /// Adds and removes the serials of this delta. Removals come last, since an added serial may
    /// have been removed later; a removed serial is never added again.
    fn apply(self, live_set: &mut RoaringTreemap) {
        for serial in self.added {
            live_set.insert(serial);
        }
        for serial in self.removed {
            live_set.remove(serial);
        }
    }
}

#[cfg(test)]
mod tests {
    use soif::Record;

    use super::*;
    use crate::change::{Batch, Change, GATHERER_ID, Oid, Stamp};
    use crate::collection::Collection;
    use crate::options::Options;

    fn update(n: u64, text: &str) -> Change {
        let mut record = Record::new("FILE", format!("http://h/{n}"));
        record.push(GATHERER_ID, "g");
        record.push("Text", text);
        Change::Update(record)
    }

    fn delete(n: u64) -> Change {
        Change::Delete(Oid::new("g", &format!("http://h/{n}")))
    }

    #[track_caller]
    fn check(collection: &Collection, expected: &[u64]) {
        let found = collection.with_live(|it| it.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_set_has_the_last_update_of_each_live_object() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        let commit = |changes: Vec<Change>| {
            collection.commit(Batch { changes, notes: Vec::new() }, Stamp(2)).unwrap();
        };
        commit((1..=4).map(|n| update(n, "a")).collect());
        commit(vec![update(2, "b"), delete(3), Change::Refresh(Oid::new("g", "http://h/1"), None)]);
        check(&collection, &[1, 4, 5]);
        commit(vec![update(1, "c"), delete(4), delete(9), update(3, "c"), update(3, "d")]);
        check(&collection, &[5, 8, 12]);
        collection.inner.drop_keys();
        collection.inner.live_set.forget();
        check(&collection, &[5, 8, 12]);
        drop(collection);
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(3)).unwrap();
        check(&collection, &[5, 8, 12]);
    }

    #[test]
    fn commits_do_not_wait_for_readers_of_the_set() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        let commit = |n: u64| {
            let batch = Batch { changes: vec![update(n, "a")], notes: Vec::new() };
            collection.commit(batch, Stamp(2)).unwrap();
        };
        commit(1);
        check(&collection, &[1]);
        let seen = collection.with_live(|it| {
            commit(2);
            it.len()
        });
        assert_eq!(seen.unwrap(), 1);
        check(&collection, &[1, 2]);
    }

    #[test]
    fn changes_during_the_building_of_the_set_are_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        let commit = |changes: Vec<Change>| {
            collection.commit(Batch { changes, notes: Vec::new() }, Stamp(2)).unwrap();
        };
        commit((1..=3).map(|n| update(n, "a")).collect());
        let live_set = &collection.inner.live_set;
        *live_set.state() = SetState::Building(LiveSetDelta::default());
        let mut made = collection.build_live_set().unwrap();
        commit(vec![update(1, "b"), delete(2)]);
        commit(vec![update(1, "c")]);
        let SetState::Building(delta) = std::mem::take(&mut *live_set.state()) else { panic!() };
        delta.apply(&mut made);
        assert_eq!(made.iter().collect::<Vec<_>>(), [3, 6]);
    }
}
