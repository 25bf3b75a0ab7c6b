//! Which changes are the last word on an object that lives, as a set of serials.
//!
//! Who lists the log by date must leave out what is superseded, and asks that of every change of a page. The
//! set is made of the key index once somebody asks for it, and kept current by the commits from then
//! on; a collection that nobody lists keeps none. A million objects take some 100 kB.
//!
//! Source: ours.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use roaring::RoaringTreemap;

use crate::error::Error;

/// How often the set is made anew since the key index was, while it was made.
const TRIES: usize = 3;

/// The set, if somebody has asked for it.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    state: Mutex<State>,
    /// Held while it is made.
    making: Mutex<()>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Unknown,
    /// It is being made; this has changed meanwhile.
    Making(Moves),
    /// A commit copies it if somebody looks at it meanwhile.
    Known(Arc<RoaringTreemap>),
}

/// What commits change of the set.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// Serials of updates.
    pub(crate) came: Vec<u64>,
    /// Serials of updates that have been superseded.
    pub(crate) went: Vec<u64>,
}

impl Lives {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a commit that is in the key index.
    pub(crate) fn take(&self, moves: Moves) {
        match &mut *self.state() {
            State::Unknown => {}
            State::Making(before) => {
                before.came.extend(moves.came);
                before.went.extend(moves.went);
            }
            State::Known(lives) => moves.apply(Arc::make_mut(lives)),
        }
    }

    /// Returns the set as it is now; if nobody has asked for it before, that of `make`. `None`: the key index
    /// was made anew again and again meanwhile.
    ///
    /// # Errors
    ///
    /// That of `make`.
    pub(crate) fn now(
        &self,
        make: impl Fn() -> Result<RoaringTreemap, Error>,
    ) -> Result<Option<Arc<RoaringTreemap>>, Error> {
        if let State::Known(known) = &*self.state() {
            return Ok(Some(known.clone()));
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..TRIES {
            if let State::Known(known) = &*self.state() {
                return Ok(Some(known.clone()));
            }
            *self.state() = State::Making(Moves::default());
            let made = make();
            let mut state = self.state();
            let mut made = made.inspect_err(|_error| *state = State::Unknown)?;
            // Otherwise the key index was made anew meanwhile.
            if let State::Making(moves) = std::mem::take(&mut *state) {
                moves.apply(&mut made);
                let made = Arc::new(made);
                *state = State::Known(made.clone());
                return Ok(Some(made));
            }
        }
        Ok(None)
    }

    /// The key index is gone, or another one: what was known is not known any more.
    pub(crate) fn forget(&self) {
        *self.state() = State::Unknown;
    }
}

impl Moves {
    /// What has come may have gone since; serials never come back.
    fn apply(self, lives: &mut RoaringTreemap) {
        for serial in self.came {
            lives.insert(serial);
        }
        for serial in self.went {
            lives.remove(serial);
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
    fn the_last_word_on_each_live_object_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        let commit = |changes: Vec<Change>| {
            collection.commit(Batch { changes, notes: Vec::new() }, Stamp(2)).unwrap();
        };
        commit((1..=4).map(|n| update(n, "a")).collect());
        commit(vec![update(2, "b"), delete(3), Change::Refresh(Oid::new("g", "http://h/1"))]);
        check(&collection, &[1, 4, 5]);
        commit(vec![update(1, "c"), delete(4), delete(9), update(3, "c"), update(3, "d")]);
        check(&collection, &[5, 8, 12]);
        collection.inner.drop_keys();
        collection.inner.lives.forget();
        check(&collection, &[5, 8, 12]);
        drop(collection);
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(3)).unwrap();
        check(&collection, &[5, 8, 12]);
    }

    #[test]
    fn commits_do_not_wait_for_who_looks() {
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
    fn what_changes_while_the_set_is_made_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        let commit = |changes: Vec<Change>| {
            collection.commit(Batch { changes, notes: Vec::new() }, Stamp(2)).unwrap();
        };
        commit((1..=3).map(|n| update(n, "a")).collect());
        let lives = &collection.inner.lives;
        *lives.state() = State::Making(Moves::default());
        let mut made = collection.make_lives().unwrap();
        commit(vec![update(1, "b"), delete(2)]);
        commit(vec![update(1, "c")]);
        let State::Making(moves) = std::mem::take(&mut *lives.state()) else { panic!() };
        moves.apply(&mut made);
        assert_eq!(made.iter().collect::<Vec<_>>(), [3, 6]);
    }
}
