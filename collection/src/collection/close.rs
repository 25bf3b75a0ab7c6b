//! Closing: the directory is free again although clones are still about.
//!
//! A daemon that stops cannot wait for every page, pull and handle that holds a clone. So it closes
//! the collection: in two steps, that what takes long may end while the rest drains.
//!
//! Source: ours.

use std::fs::File;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::{Collection, Inner};
use crate::log::Halt;
use crate::log::manifest::{Manifest, Unwritten};

impl Collection {
    /// Tells what may take long (compaction, sweep, release of a source, verification) to end with
    /// [`Error::Stopped`](crate::Error::Stopped) at its next step, well under a second. Commits and reads go on.
    pub fn begin_close(&self) {
        self.inner.closing.store(true, Ordering::Release);
    }

    /// Frees the directory, for all clones: waits for the commit under way, then makes the key
    /// index durable and gives the lock back. From then on commits and look-ups end with
    /// [`Error::Stopped`](crate::Error::Stopped); files that are being read stay readable. Closing again does nothing.
    pub fn close(&self) {
        self.begin_close();
        let inner = &self.inner;
        let _uncompacted = inner.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        inner.end();
        if let Some(Err(error)) = inner.lock.as_ref().map(File::unlock) {
            tracing::warn!(dir = %inner.dir.display(), %error, "collection not unlocked");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end();
    }
}

impl Inner {
    /// Makes the key index durable, and notes that the log ends where it does.
    pub(crate) fn end(&self) {
        let mut tail = self.tail();
        let is_sure = tail.halt.is_none();
        tail.halt = Some(Halt::Closed);
        self.drop_keys();
        if is_sure {
            let manifest = Manifest { closed: true, ..tail.manifest_now() };
            // Without it some serials are skipped at the next opening, nothing else.
            if let Err(Unwritten { error, .. }) = manifest.write(&self.log.disk, &self.dir) {
                tracing::warn!(dir = %self.dir.display(), %error, "not noted that it is closed");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use soif::Record;

    use super::*;
    use crate::change::{Batch, Change, GATHERER_ID, Oid, Stamp};
    use crate::error::Error;
    use crate::options::Options;

    const GATHERER: &str = "00000000000000aa";

    fn open(dir: &Path) -> Collection {
        Collection::open(dir, Options::default(), Stamp(1)).unwrap().0
    }

    fn update(n: u64) -> Batch {
        let mut record = Record::new("FILE", format!("http://h/{n}"));
        record.push(GATHERER_ID, GATHERER);
        Batch { changes: vec![Change::Update(record)], notes: Vec::new() }
    }

    #[test]
    fn a_closed_collection_can_be_opened_and_does_nothing_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let closed = open(dir.path());
        closed.commit(update(1), Stamp(2)).unwrap();
        closed.close();
        let opened = open(dir.path());
        opened.commit(update(2), Stamp(3)).unwrap();

        let oid = Oid::new(GATHERER, "http://h/1");
        let stopped = |outcome: Result<(), Error>| {
            assert!(matches!(outcome, Err(Error::Stopped { .. })), "{outcome:?}");
        };
        stopped(closed.commit(update(3), Stamp(4)).map(drop));
        stopped(closed.get(&oid).map(drop));
        stopped(closed.compact(Stamp(5)).map(drop));
        stopped(closed.sweep(Stamp(5), 1.0).map(drop));
        stopped(closed.verify().map(drop));
        stopped(closed.new_epoch(Stamp(5)).map(drop));
        stopped(closed.remove_source("a", Stamp(5)).map(drop));
        closed.close();
        drop(closed);
        assert_eq!(opened.len(), 2);
        assert!(opened.get(&oid).unwrap().is_some());
        assert!(Collection::open(dir.path(), Options::default(), Stamp(6)).is_err(), "in use");
    }

    #[test]
    fn what_takes_long_ends_first() {
        let dir = tempfile::tempdir().unwrap();
        let collection = open(dir.path());
        collection.commit(update(1), Stamp(2)).unwrap();
        collection.begin_close();
        let outcome = collection.compact(Stamp(3));
        assert!(matches!(outcome, Err(Error::Stopped { .. })), "{outcome:?}");
        collection.commit(update(2), Stamp(3)).unwrap();
        assert_eq!(collection.len(), 2);
    }
}
