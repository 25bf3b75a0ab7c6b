//! A collection's hold on its key index: it is asked, and where it fails, dropped and made anew.
//!
//! The index is outside the acknowledged path. A commit that is durable stands, even if it cannot
//! be indexed. While no index can be made (the disk is full, say), look-ups fail and no further
//! commit is taken; attempts go on, with pauses as long as they take themselves, so that the
//! collection works again by itself once it can.
//!
//! Source: DESIGN.md, "Keys".

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use net::clock;

use crate::change::{Change, Note};
use crate::collection::Inner;
use crate::error::Error;
use crate::keys::Keys;
use crate::log::{Appended, Tail};
use crate::replay;

/// The key index, or why there is none.
#[derive(Debug)]
pub(crate) struct Slot {
    keys: Option<Keys>,
    /// How often it was made anew.
    made: u64,
    failure: Option<Failure>,
}

/// An attempt to make the index that failed.
#[derive(Debug)]
struct Failure {
    error: sled::Error,
    /// When to try again.
    until: Instant,
}

impl Slot {
    pub(crate) fn new(keys: Keys) -> Self {
        Self { keys: Some(keys), made: 0, failure: None }
    }
}

impl Inner {
    pub(crate) fn keys_dir(&self) -> PathBuf {
        self.dir.join(replay::KEYS)
    }

    fn slot(&self) -> RwLockReadGuard<'_, Slot> {
        self.slot.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot_mut(&self) -> RwLockWriteGuard<'_, Slot> {
        self.slot.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the key index; if it fails, makes it anew and asks again.
    pub(crate) fn read_keys<T>(
        &self,
        ask: impl Fn(&Keys) -> Result<T, sled::Error>,
    ) -> Result<T, Error> {
        let (first, made) = {
            let slot = self.slot();
            (slot.keys.as_ref().map(&ask), slot.made)
        };
        match first {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err(error)) => {
                self.rebuild_keys(made, &Error::keys(self.keys_dir(), error).to_string())?;
            }
            None => self.rebuild_keys(made, "it could not be rebuilt before")?,
        }
        let gone = || sled::Error::Unsupported("the index is gone".to_owned());
        let second = self.slot().keys.as_ref().map_or_else(|| Err(gone()), &ask);
        second.map_err(|source| Error::keys(self.keys_dir(), source))
    }

    /// Returns how often the key index was made anew.
    pub(crate) fn keys_made(&self) -> u64 {
        self.slot().made
    }

    /// Drops the key index and makes it anew from the segments, unless somebody has done so since
    /// it was made for the `made`th time.
    pub(crate) fn rebuild_keys(&self, made: u64, why: &str) -> Result<(), Error> {
        let mut slot = self.slot_mut();
        self.go_on()?;
        if slot.made != made && slot.keys.is_some() {
            return Ok(());
        }
        let began = clock::monotonic();
        if let Some(failure) = slot.failure.as_ref().filter(|it| began < it.until) {
            return Err(Error::keys(self.keys_dir(), failure.error.clone()));
        }
        tracing::warn!(dir = %self.dir.display(), why, "rebuilding the key index");
        drop(slot.keys.take());
        slot.made += 1;
        let view = self.log.view();
        match replay::fresh_keys(&self.log.disk, &self.dir, &self.options, &view, &|| self.go_on())
        {
            Ok((keys, live)) => {
                self.live.store(live, Ordering::Release);
                (slot.keys, slot.failure) = (Some(keys), None);
                Ok(())
            }
            Err(error) => {
                let now = clock::monotonic();
                slot.failure = error.of_keys().map(|error| Failure {
                    error,
                    until: now + now.saturating_duration_since(began),
                });
                Err(error)
            }
        }
    }

    /// Makes the key index durable and closes it.
    pub(crate) fn drop_keys(&self) {
        let keys = self.slot_mut().keys.take();
        // The index can be rebuilt: a failure here costs time at the next opening, nothing else.
        if let Some(Err(error)) = keys.map(|keys| keys.flush()) {
            tracing::warn!(dir = %self.dir.display(), %error, "key index not flushed");
        }
    }

    /// Lets go of a key index that failed: it is made anew when it is asked next, and whoever asks
    /// hears of it if that cannot be. What was to be put in it is in the log.
    pub(crate) fn give_up_keys(&self, error: &Error) {
        tracing::info!(dir = %self.dir.display(), %error, "the key index is given up for now");
        drop(self.slot_mut().keys.take());
    }

    /// Puts a durable commit in the key index, unless a rebuild has just done so.
    pub(crate) fn index(
        &self,
        tail: &Tail,
        appended: Appended,
        changes: &[Change],
        notes: &[Note],
    ) {
        let indexed = self.read_keys(|keys| {
            let mut writes = keys.writes();
            if appended.commit <= writes.watermark.commit {
                return Ok(writes.watermark.live);
            }
            for (serial, change) in (appended.base + 1..).zip(changes) {
                writes.change(serial, appended.stamp, change)?;
            }
            for note in notes {
                writes.note(note)?;
            }
            let live = writes.watermark.live;
            writes.commit(tail.manifest.epoch, appended.commit, tail.serial);
            Ok(live)
        });
        match indexed {
            Ok(live) => self.live.store(live, Ordering::Release),
            Err(error) => self.give_up_keys(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use soif::Record;

    use super::*;
    use crate::change::{Batch, GATHERER_ID, Oid, Stamp};
    use crate::collection::Collection;
    use crate::options::Options;

    fn update(n: u64) -> Batch {
        let mut record = Record::new("FILE", format!("http://h/{n}"));
        record.push(GATHERER_ID, "g");
        Batch { changes: vec![Change::Update(record)], notes: Vec::new() }
    }

    /// Asks until the pause after a failed attempt is over.
    fn again<T>(ask: impl Fn() -> Result<T, Error>) -> T {
        let end = clock::monotonic() + std::time::Duration::from_secs(30);
        loop {
            match ask() {
                Ok(answer) => return answer,
                Err(error) => assert!(clock::monotonic() < end, "{error}"),
            }
        }
    }

    #[test]
    fn nothing_is_taken_without_an_index_and_it_comes_back_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        let before = collection.commit(update(1), Stamp(2)).unwrap();
        collection.inner.drop_keys();
        let keys = collection.inner.keys_dir();
        fs::remove_dir_all(&keys).unwrap();
        fs::write(&keys, "in the way").unwrap();
        for _ in 0..2 {
            let error = collection.commit(update(2), Stamp(3)).unwrap_err();
            assert!(matches!(error, Error::Keys { .. }), "{error}");
            assert!(collection.get(&Oid::new("g", "http://h/1")).is_err());
            assert_eq!(collection.version(), before);
        }
        fs::remove_file(&keys).unwrap();
        let after = again(|| collection.commit(update(2), Stamp(3)));
        assert_eq!((after.serial, collection.len()), (2, 2));
        assert_eq!(collection.verify().unwrap().problems, []);
    }

    #[test]
    fn a_durable_commit_stands_without_an_index() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        collection.commit(update(1), Stamp(2)).unwrap();
        let inner = &collection.inner;
        let keys = inner.keys_dir();
        inner.drop_keys();
        fs::remove_dir_all(&keys).unwrap();
        fs::write(&keys, "in the way").unwrap();
        {
            let mut tail = inner.tail();
            let Batch { changes, notes } = update(2);
            let packed = inner.pack(&changes, &notes).unwrap();
            let bytes_max = inner.options.segment_bytes_max;
            let appended = inner.log.append(&mut tail, &packed, Stamp(3), bytes_max).unwrap();
            inner.index(&tail, appended, &changes, &notes);
            inner.publish(&tail);
        }
        assert_eq!(collection.version().serial, 2);
        fs::remove_file(&keys).unwrap();
        let found = again(|| collection.get(&Oid::new("g", "http://h/2")));
        assert_eq!((found.unwrap().serial, collection.len()), (2, 2));
        assert_eq!(collection.commit(update(3), Stamp(4)).unwrap().serial, 3);
    }

    #[test]
    fn it_is_made_anew_once_for_all_who_found_it_broken() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        let made = collection.inner.keys_made();
        for _ in 0..3 {
            collection.inner.rebuild_keys(made, "it is broken").unwrap();
        }
        assert_eq!(collection.inner.keys_made(), made + 1);
    }

    #[test]
    fn a_rebuild_ends_when_it_is_to_and_the_next_opening_goes_on_from_there() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        // As many as are written at once, and some.
        for numbers in [0..10_001, 10_001..10_002, 10_002..10_003] {
            let updates = numbers.flat_map(|n| update(n).changes);
            let batch = Batch { changes: updates.collect(), notes: Vec::new() };
            collection.commit(batch, Stamp(2)).unwrap();
        }
        let inner = &collection.inner;
        let members = collection.stats().members;
        inner.drop_keys();
        let steps = std::cell::Cell::new(0);
        let go_on = || {
            steps.set(steps.get() + 1);
            if steps.get() < members {
                return Ok(());
            }
            Err(Error::Stopped { dir: dir.path().to_owned() })
        };
        let view = inner.log.view();
        let outcome =
            replay::fresh_keys(&inner.log.disk, dir.path(), &inner.options, &view, &go_on);
        assert!(matches!(outcome, Err(Error::Stopped { .. })), "{outcome:?}");
        assert_eq!(steps.get(), members, "it is asked at every member");
        collection.close();
        drop((outcome, collection));

        let (opened, recovery) =
            Collection::open(dir.path(), Options::default(), Stamp(3)).unwrap();
        assert_eq!(recovery.keys_rebuilt, None);
        assert_eq!((recovery.replayed, opened.len()), (2, 10_003));
        assert_eq!(opened.verify().unwrap().problems, []);
    }
}
