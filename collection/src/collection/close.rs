//! Closing: frees the directory although clones still exist.
//!
//! A daemon that stops cannot wait for every page, pull and handle that holds a clone. So it closes
//! the collection in two steps: first long operations end, while other requests are still
//! completed; then the directory is freed.
//!
//! Source: ours.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use disk::lock::Lock;

use super::{Collection, Inner};
use crate::log::Halt;
use crate::log::manifest::{Manifest, Unwritten};

impl Collection {
    /// Ends long operations (compaction, sweep, release of a source, verification) with
    /// [`Error::Stopped`](crate::Error::Stopped) at their next step, in well under a second.
    /// Commits and reads are still possible.
    pub fn begin_close(&self) {
        self.inner.closing.store(true, Ordering::Release);
    }

    /// Frees the directory, for all clones: waits for the commit in progress, makes the key index
    /// durable and releases the lock. From then on commits and look-ups end with
    /// [`Error::Stopped`](crate::Error::Stopped); files that are open by then stay readable. A
    /// second close does nothing.
    pub fn close(&self) {
        self.begin_close();
        let inner = &self.inner;
        let _uncompacted = inner.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        inner.end();
        if let Some(Err(error)) = inner.lock.as_ref().map(Lock::release) {
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
    /// Ends all writes, and makes the key index durable. If the contents of the log's files are
    /// certain, notes in the manifest where the log ends and that it was closed in order.
    pub(crate) fn end(&self) {
        let mut tail = self.tail();
        let is_sure = tail.halt.is_none();
        tail.halt = Some(Halt::Closed);
        self.drop_keys();
        if is_sure {
            let manifest = Manifest { closed: true, ..tail.manifest_now() };
            // If this fails, the next opening skips some serials, and nothing else happens.
            if let Err(Unwritten { error, .. }) = manifest.write(&self.log.disk, &self.dir) {
                tracing::warn!(dir = %self.dir.display(), %error, "cannot write to the manifest that the collection is closed");
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
    fn a_closed_collection_can_be_opened_again_and_refuses_operations() {
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
    fn long_work_ends_at_the_first_step_of_closing() {
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
