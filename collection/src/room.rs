//! Room on the disk: commits stop while there is still enough of it to tidy up.
//!
//! A compaction writes before it removes. So that it can always run, and with it give space back,
//! nothing is taken once less is free than [`RESERVE_SHARE`] of the largest segment and what the key
//! index has still to write. All that is there is served, and commits are taken again as soon as
//! there is room.
//!
//! Source: ours.

use crate::collection::Inner;
use crate::error::Error;
use crate::keys::Keys;
use crate::log::Tail;
use crate::pack::Packed;

/// What stays free, in hundredths of the largest segment's size.
pub(crate) const RESERVE_SHARE: u64 = 120;

/// A member's header and what the file system adds to a member, about, in bytes.
const MEMBER_OVERHEAD: u64 = 512;

impl Inner {
    /// Returns how much is free, and how much a compaction may need, in bytes; `None` where the
    /// system does not say.
    pub(crate) fn room(&self, tail: &Tail) -> Option<(u64, u64)> {
        let free = self.log.disk.free_bytes(&tail.active.file).ok()?;
        let largest = self.log.view().segments.iter().map(|it| it.end()).max().unwrap_or(0);
        Some((free, largest.saturating_mul(RESERVE_SHARE) / 100))
    }
}

/// Makes sure that there is room for a commit and what may have to follow it.
///
/// # Errors
///
/// [`Error::NoRoom`].
pub(crate) fn check(inner: &Inner, tail: &Tail, packed: &[Packed]) -> Result<(), Error> {
    let Some((free, reserve)) = inner.room(tail) else { return Ok(()) };
    let bytes: u64 = packed.iter().map(|it| it.bytes.len() as u64 + MEMBER_OVERHEAD).sum();
    let keys = inner.read_keys(|keys: &Keys| Ok(keys.unwritten_bytes()))?;
    let needed = reserve + bytes + keys;
    if free < needed {
        return Err(Error::NoRoom { dir: inner.dir.clone(), free, needed });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use soif::Record;

    use crate::change::{Batch, Change, GATHERER_ID, Oid, Stamp};
    use crate::collection::Collection;
    use crate::disk::Disk;
    use crate::disk::faulty::{Fault, Faulty};
    use crate::options::Options;

    fn open(dir: &Path) -> (Collection, Arc<Faulty>) {
        let faulty = Faulty::new(dir, 1);
        let options =
            Options { segment_bytes_max: 8 << 10, member_bytes_max: 1 << 10, ..Options::default() };
        let disk = Disk::Faulty(faulty.clone());
        let opened = Collection::open_on(&disk, dir, options, Stamp(1), false);
        (opened.unwrap().0, faulty)
    }

    fn update(n: u64) -> Batch {
        let mut record = Record::new("FILE", format!("http://h/{n}"));
        record.push(GATHERER_ID, "g");
        let mut state = n + 1;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_le_bytes()[7]
        });
        record.push("Body", noise.take(700).collect::<Vec<u8>>());
        Batch { changes: vec![Change::Update(record)], notes: Vec::new() }
    }

    fn oid(n: u64) -> Oid {
        Oid::new("g", &format!("http://h/{n}"))
    }

    /// Whatever fails: nothing of a refused commit is there, all else is served, and once the fault
    /// is gone commits are taken again.
    fn check(fault: Fault) {
        let dir = tempfile::tempdir().unwrap();
        let (collection, faulty) = open(dir.path());
        for n in 0..40 {
            collection.commit(update(n), Stamp(2)).unwrap();
        }
        // At any place in a segment, and where one is full.
        for n in 40..80 {
            let before = collection.version();
            faulty.fail(Some(fault));
            let refused = collection.commit(update(n), Stamp(2));
            let compacted = collection.compact(Stamp(2));
            if let Err(error) = &refused {
                assert!(error.may_pass() || fault == Fault::Unsynced, "{error}");
                assert_eq!(collection.version(), before, "{fault:?}");
                assert_eq!(collection.get(&oid(n)).unwrap(), None);
            }
            assert!(refused.is_err() || fault == Fault::NoFiles, "{fault:?}");
            assert!(compacted.is_err(), "{fault:?}");
            assert!(collection.get(&oid(n - 1)).unwrap().is_some());
            assert_eq!(
                collection.scan(0).unwrap().filter(Result::is_ok).count() as u64,
                collection.len()
            );
            faulty.fail(None);
            if refused.is_err() {
                collection.commit(update(n), Stamp(2)).unwrap();
            }
            if n % 10 == 0 {
                collection.compact(Stamp(2)).unwrap();
            }
        }
        let verified = |collection: &Collection| {
            assert_eq!(collection.len(), 80);
            assert_eq!(collection.verify().unwrap().problems, []);
        };
        verified(&collection);
        // What was refused is not there after a power cut either.
        faulty.cut();
        drop(collection);
        let after = tempfile::tempdir().unwrap();
        crate::disk::faulty::restore(&faulty.left().1, after.path());
        let (collection, recovery) =
            Collection::open(after.path(), Options::default(), Stamp(3)).unwrap();
        assert!(!recovery.lost, "{recovery:?}");
        verified(&collection);
    }

    #[test]
    fn a_full_disk_refuses_and_recovers() {
        check(Fault::Full);
    }

    #[test]
    fn a_read_only_disk_refuses_and_recovers() {
        check(Fault::ReadOnly);
    }

    #[test]
    fn too_many_open_files_refuse_and_recover() {
        check(Fault::NoFiles);
    }

    #[test]
    fn what_cannot_be_synced_is_refused_and_recovers() {
        check(Fault::Unsynced);
    }

    #[test]
    fn commits_stop_while_a_compaction_can_still_run() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, faulty) = open(dir.path());
        for n in 0..40 {
            collection.commit(update(n % 10), Stamp(2)).unwrap();
        }
        let (_, reserve) = collection.inner.room(&collection.inner.tail()).unwrap();
        let largest = collection.inner.log.view().segments.iter().map(|it| it.end()).max();
        assert_eq!(reserve, largest.unwrap() * 6 / 5);
        assert!((8 << 10) < reserve && reserve < (12 << 10), "{reserve}");
        faulty.leave_free(Some(reserve));
        let error = collection.commit(update(1), Stamp(2)).unwrap_err();
        let expected = format!("not accepting changes: free {reserve} of ");
        assert!(error.may_pass() && error.to_string().starts_with(&expected), "{error}");
        assert!(collection.get(&oid(1)).unwrap().is_some());
        // A part at a time: there is no room for the whole log twice.
        assert!(reserve < collection.stats().bytes / 2);
        let done = collection.compact(Stamp(2)).unwrap();
        assert!(1 < done.segments.0 && done.kept == 10, "{done:?}");
        assert_eq!(collection.verify().unwrap().problems, []);
        faulty.leave_free(None);
        collection.commit(update(1), Stamp(2)).unwrap();
        assert_eq!(collection.len(), 10);
    }
}
