//! A collection's access to its key index: reads and writes, and a rebuild after a failure.
//!
//! The acknowledgment of a commit does not depend on the index: a durable commit is valid even if
//! it cannot be indexed. While no index can be built (for example, on a full disk), look-ups fail
//! and commits are refused. After a failed rebuild the next one is tried after a pause as long as
//! the failed attempt, so the collection recovers by itself.
//!
//! Source: docs/collection.md, "The key index".

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use net::clock;

use super::Inner;
use crate::change::{Change, Note};
use crate::error::Error;
use crate::keys::Keys;
use crate::keys::live_set::LiveSetDelta;
use crate::log::{Appended, Tail};
use crate::recover::replay::{self, OnDamage};

/// The key index, or the reason that there is none.
#[derive(Debug)]
pub(crate) struct Slot {
    keys: Option<Keys>,
    /// Number of rebuilds so far, failed ones included.
    made: u64,
    failure: Option<Failure>,
}

/// A failed attempt to build the index.
#[derive(Debug)]
struct Failure {
    error: sled::Error,
    /// Whether a damaged member was the cause.
    is_damage: bool,
    /// No other attempt is made before this time.
    until: Instant,
}

impl Slot {
    pub(crate) fn new(keys: Keys) -> Self {
        Self { keys: Some(keys), made: 0, failure: None }
    }
}

impl Inner {
    /// Returns the folder with the key index: a temporary one in a collection opened to read.
    pub(crate) fn keys_home(&self) -> &Path {
        self.overlay.as_ref().map_or(&self.dir, |it| it.path())
    }

    pub(crate) fn keys_dir(&self) -> PathBuf {
        self.keys_home().join(replay::KEYS)
    }

    fn slot(&self) -> RwLockReadGuard<'_, Slot> {
        self.slot.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot_mut(&self) -> RwLockWriteGuard<'_, Slot> {
        self.slot.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from the key index; if it fails, rebuilds it and reads again.
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

    pub(crate) fn keys_made(&self) -> u64 {
        self.slot().made
    }

    /// Drops the key index and rebuilds it from the segments, unless another thread has done so
    /// since the rebuild number `made`. Fails at once in the pause after a failed attempt.
    pub(crate) fn rebuild_keys(&self, made: u64, why: &str) -> Result<(), Error> {
        let mut slot = self.slot_mut();
        self.check_open()?;
        if slot.made != made && slot.keys.is_some() {
            return Ok(());
        }
        let now = clock::monotonic();
        if let Some(failure) = slot.failure.as_ref().filter(|it| now < it.until) {
            return Err(Error::keys(self.keys_dir(), failure.error.clone()));
        }
        tracing::warn!(dir = %self.dir.display(), why, "rebuilding the key index");
        self.make_keys(&mut slot, &replay::fail)
    }

    /// Rebuilds the key index from all members that are not damaged.
    pub(crate) fn rebuild_keys_without_damaged(&self) -> Result<(), Error> {
        let mut slot = self.slot_mut();
        self.check_open()?;
        self.make_keys(&mut slot, &|_damage| Ok(()))
    }

    /// Returns whether there is no key index because of a damaged member.
    pub(crate) fn is_damage_in_the_way(&self) -> bool {
        let slot = self.slot();
        slot.keys.is_none() && slot.failure.as_ref().is_some_and(|it| it.is_damage)
    }

    fn make_keys(&self, slot: &mut Slot, on_damage: OnDamage<'_>) -> Result<(), Error> {
        let began = clock::monotonic();
        drop(slot.keys.take());
        slot.made += 1;
        self.live_set.forget();
        let (log, view) = (&self.log, self.log.view());
        let check_open = || self.check_open();
        let place = (self.keys_home(), replay::KEYS);
        match replay::fresh_keys(&log.disk, place, &self.options, &view, on_damage, &check_open) {
            Ok((keys, live)) => {
                self.live.store(live, Ordering::Release);
                (slot.keys, slot.failure) = (Some(keys), None);
                Ok(())
            }
            Err(stopped @ Error::Stopped { .. }) => Err(stopped),
            Err(error) => {
                let now = clock::monotonic();
                let until = now + now.saturating_duration_since(began);
                let is_damage = matches!(error, Error::Damaged { .. });
                let why = || sled::Error::Io(io::Error::other(error.to_string()));
                let error = error.keys_error().unwrap_or_else(why);
                slot.failure = Some(Failure { error: error.clone(), is_damage, until });
                Err(Error::keys(self.keys_dir(), error))
            }
        }
    }

    /// Makes the key index durable and closes it.
    pub(crate) fn drop_keys(&self) {
        let Some(keys) = self.slot_mut().keys.take() else { return };
        // The index can be rebuilt: a failure here only costs time at the next opening.
        if let Err(error) = keys.flush() {
            tracing::warn!(dir = %self.dir.display(), %error, "key index not flushed");
        }
        if keys.is_incomplete() {
            drop(keys);
            // After a power cut the remaining files could be taken for a whole index.
            let _ = Keys::remove(&self.keys_dir());
        }
    }

    /// Drops a key index that failed. The next read rebuilds it, or gets an error if the rebuild
    /// fails. Nothing is lost, since the log has everything.
    pub(crate) fn give_up_keys(&self, error: &Error) {
        tracing::info!(dir = %self.dir.display(), %error, "the key index is given up for now");
        drop(self.slot_mut().keys.take());
        self.live_set.forget();
    }

    /// Adds a durable commit to the key index, unless a rebuild has already added it.
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
                return Ok((writes.watermark.live, LiveSetDelta::default()));
            }
            writes.delta = Some(LiveSetDelta::default());
            for (serial, change) in (appended.base + 1..).zip(changes) {
                writes.change(serial, appended.stamp, change)?;
            }
            for note in notes {
                writes.note(note)?;
            }
            let live = writes.watermark.live;
            let delta = writes.delta.take().unwrap_or_default();
            writes.commit(tail.manifest.epoch, appended.commit, tail.serial);
            Ok((live, delta))
        });
        match indexed {
            Ok((live, delta)) => {
                self.live.store(live, Ordering::Release);
                self.live_set.take(delta);
            }
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
    use crate::heal::Healing;
    use crate::options::Options;

    fn update(n: u64) -> Batch {
        let mut record = Record::new("FILE", format!("http://h/{n}"));
        record.push(GATHERER_ID, "g");
        Batch { changes: vec![Change::Update(record)], notes: Vec::new() }
    }

    /// Repeats `ask` for at most 30 s: a failed rebuild is followed by a pause.
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
    fn commits_are_refused_without_an_index_and_it_recovers_by_itself() {
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
    fn threads_that_find_it_broken_together_rebuild_it_once() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        let made = collection.inner.keys_made();
        for _ in 0..3 {
            collection.inner.rebuild_keys(made, "it is broken").unwrap();
        }
        assert_eq!(collection.inner.keys_made(), made + 1);
    }

    #[test]
    fn a_damaged_member_that_prevents_an_index_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { segment_bytes_max: 1, ..Options::default() };
        let (collection, _) = Collection::open(dir.path(), options, Stamp(1)).unwrap();
        for n in 1..4 {
            collection.commit(update(n), Stamp(2)).unwrap();
        }
        let before = collection.version();
        let path = dir.path().join("segment-00000002.gz");
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() - 10;
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
        collection.inner.drop_keys();
        let get = |n: u64| collection.get(&Oid::new("g", &format!("http://h/{n}")));
        for _ in 0..2 {
            assert!(matches!(get(1), Err(Error::Keys { .. })));
            assert!(collection.commit(update(4), Stamp(3)).unwrap_err().may_pass());
            let health = collection.health();
            assert!(health.refusing.is_some_and(|it| it.contains("segment-00000002.gz")));
        }
        assert_eq!(collection.heal(Stamp(4)).unwrap(), None);
        assert_eq!(collection.version(), before, "the epoch is the same");
        assert_eq!(collection.aftermath().unwrap(), Some(before));
        assert!(get(1).unwrap().is_some() && get(2).unwrap().is_none());
        collection.commit(update(4), Stamp(5)).unwrap();
        let health = collection.health();
        assert_eq!((health.refusing, health.damaged.len()), (None, 1));
        // The damaged member stays until its objects have been fetched or gathered again.
        assert_eq!(collection.heal(Stamp(5)).unwrap(), None);
        drop(collection);
        let (collection, recovery) =
            Collection::open(dir.path(), Options::default(), Stamp(6)).unwrap();
        assert_eq!((recovery.lost, collection.len()), (false, 3));
        assert_eq!(collection.health().damaged.len(), 1, "it is remembered");
        collection.end_aftermath(|| Ok(|_: &Oid| Ok(true)), Stamp(7)).unwrap();
        assert_eq!(collection.heal(Stamp(7)).unwrap(), Some(Healing::Done { members: 1 }));
        assert!(before.serial < collection.horizon(), "all get a snapshot");
        assert_eq!(collection.health().damaged, []);
        assert_eq!(collection.verify().unwrap().problems, []);
    }

    #[test]
    fn a_stopped_rebuild_is_continued_by_the_next_opening() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap();
        // More keys than are written at once.
        for numbers in [0..10_001, 10_001..10_002, 10_002..10_003] {
            let updates = numbers.flat_map(|n| update(n).changes);
            let batch = Batch { changes: updates.collect(), notes: Vec::new() };
            collection.commit(batch, Stamp(2)).unwrap();
        }
        let inner = &collection.inner;
        let members = collection.stats().members;
        inner.drop_keys();
        let steps = std::cell::Cell::new(0);
        let check_open = || {
            steps.set(steps.get() + 1);
            if steps.get() < members {
                return Ok(());
            }
            Err(Error::Stopped { dir: dir.path().to_owned() })
        };
        let view = inner.log.view();
        let outcome = replay::fresh_keys(
            &inner.log.disk,
            (dir.path(), replay::KEYS),
            &inner.options,
            &view,
            &replay::fail,
            &check_open,
        );
        assert!(matches!(outcome, Err(Error::Stopped { .. })), "{outcome:?}");
        assert_eq!(steps.get(), members, "the check runs at every member");
        collection.close();
        drop((outcome, collection));

        let (opened, recovery) =
            Collection::open(dir.path(), Options::default(), Stamp(3)).unwrap();
        assert_eq!(recovery.keys_rebuilt, None);
        assert_eq!((recovery.replayed, opened.len()), (2, 10_003));
        assert_eq!(opened.verify().unwrap().problems, []);
    }
}
