//! Free disk space: commits stop while a compaction can still run.
//!
//! A compaction writes new segments before it removes old ones. So that it can always run and free
//! space, commits are refused when less space is free than the sum of [`RESERVE_SHARE`] of the
//! largest segment, the commit itself, and the unwritten bytes of the key index. The collection is
//! still served, and commits are accepted again as soon as there is enough space.

use super::Inner;
use crate::error::Error;
use crate::keys::Keys;
use crate::log::Tail;
use crate::member::pack::Packed;

/// Space that must stay free, in percent of the largest segment's size.
pub(crate) const RESERVE_SHARE: u64 = 120;

/// Approximate size of a member's header, with the file system's overhead for it, in bytes.
const MEMBER_OVERHEAD: u64 = 512;

impl Inner {
    /// Returns the free bytes, and the bytes that a compaction may need after `more` bytes are
    /// committed; `None` if the system does not report the free space.
    pub(crate) fn room(&self, tail: &Tail, more: u64) -> Option<(u64, u64)> {
        let free = self.log.disk.free_bytes(&tail.active.file).ok()?;
        let largest = self.log.view().segments.iter().map(|it| it.end()).max().unwrap_or(0);
        let largest = largest.max(tail.end.saturating_add(more));
        Some((free, largest.saturating_mul(RESERVE_SHARE) / 100))
    }
}

/// Checks that there is space for a commit and for the compaction that may follow it.
///
/// # Errors
///
/// [`Error::NoRoom`] if there is not.
pub(crate) fn check(inner: &Inner, tail: &Tail, packed: &[Packed]) -> Result<(), Error> {
    let bytes: u64 = packed.iter().map(|it| it.bytes.len() as u64 + MEMBER_OVERHEAD).sum();
    let Some((free, reserve)) = inner.room(tail, bytes) else { return Ok(()) };
    let keys = inner.read_keys(|keys: &Keys| Ok(keys.unwritten_bytes()))?;
    let needed = reserve + bytes + keys;
    if free < needed {
        return Err(Error::NoRoom { dir: inner.dir.clone(), free, needed });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use disk::Disk;
    use disk::faulty::{Fault, Faulty, restore, world};
    use soif::Record;

    use super::*;
    use crate::change::{Batch, Change, GATHERER_ID, Note, Oid, Stamp};
    use crate::collection::Collection;
    use crate::heal::Healing;
    use crate::options::Options;
    use crate::recover::Mode;

    fn open(dir: &Path) -> (Collection, Arc<Faulty>) {
        open_by_lot(dir, 1)
    }

    fn open_by_lot(dir: &Path, seed: u64) -> (Collection, Arc<Faulty>) {
        let faulty = Faulty::new(dir, seed);
        let options = Options {
            segment_bytes_max: 8 << 10,
            member_bytes_max: 1 << 10,
            keys_table_bytes_max: 16 << 10,
            ..Options::default()
        };
        let disk = Disk::Faulty(faulty.clone());
        let opened = Collection::open_on(&disk, dir, options, Stamp(1), Mode::Write);
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

    /// Checks that a refused commit leaves nothing behind, that everything else is served, and that
    /// commits are accepted again after the fault.
    fn check(fault: Fault) {
        let dir = tempfile::tempdir().unwrap();
        let (collection, faulty) = open(dir.path());
        for n in 0..40 {
            collection.commit(update(n), Stamp(2)).unwrap();
        }
        // So the fault occurs at many positions in a segment, and at the end of a full one.
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
        // A refused commit is not there after a power cut either.
        let (_after, collection) = after_a_power_cut(collection, &faulty);
        verified(&collection);
    }

    /// Cuts the power, and opens the remaining state, which has all acknowledged commits.
    fn after_a_power_cut(
        collection: Collection,
        faulty: &Faulty,
    ) -> (tempfile::TempDir, Collection) {
        let (_, left) = faulty.cut();
        drop(collection);
        let after = tempfile::tempdir().unwrap();
        restore(&left, after.path()).unwrap();
        let (collection, recovery) =
            Collection::open(after.path(), Options::default(), Stamp(3)).unwrap();
        assert!(!recovery.lost, "{recovery:?}");
        (after, collection)
    }

    #[test]
    fn a_full_disk_refuses_and_recovers() {
        check(Fault::Full);
    }

    #[test]
    fn a_full_disk_that_says_so_late_refuses_and_recovers() {
        check(Fault::FullLate);
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
    fn a_failed_sync_refuses_and_recovers() {
        check(Fault::Unsynced);
    }

    #[test]
    fn acknowledged_commits_are_written_again_after_a_failed_sync() {
        for seed in 1..=10 {
            let dir = tempfile::tempdir().unwrap();
            let (collection, faulty) = open_by_lot(dir.path(), seed << 32);
            collection.commit(update(seed), Stamp(2)).unwrap();
            faulty.fail(Some(Fault::Unsynced));
            collection.commit(update(100), Stamp(2)).unwrap_err();
            faulty.fail(None);
            // The first write after the fault is not a commit.
            collection.new_epoch(Stamp(3)).unwrap();
            let (_after, collection) = after_a_power_cut(collection, &faulty);
            assert!(collection.get(&oid(seed)).unwrap().is_some());
            assert_eq!(collection.len(), 1);
        }
    }

    #[test]
    fn a_commit_leaves_room_to_compact_the_segment_that_it_enlarges() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, faulty) = open(dir.path());
        let mut batch = Batch::default();
        (0..100).for_each(|n| batch.changes.extend(update(n).changes));
        // The batch takes at most about 130 KiB, and its compaction the same amount again.
        faulty.leave_free(Some(160 << 10));
        let error = collection.commit(&batch, Stamp(2)).unwrap_err();
        assert!(matches!(error, Error::NoRoom { .. }), "{error}");
        faulty.leave_free(Some(320 << 10));
        collection.commit(&batch, Stamp(2)).unwrap();
        collection.compact(Stamp(2)).unwrap();
        assert_eq!(collection.verify().unwrap().problems, []);
    }

    /// Copies a collection without its key index, and opens the copy.
    fn anew(dir: &Path, lost: bool) -> (tempfile::TempDir, Collection) {
        let mut world = world(dir);
        world.retain(|path, _| !path.starts_with("keys"));
        let copy = tempfile::tempdir().unwrap();
        restore(&world, copy.path()).unwrap();
        let (collection, recovery) =
            Collection::open(copy.path(), Options::default(), Stamp(3)).unwrap();
        assert_eq!(recovery.lost, lost, "{recovery:?}");
        (copy, collection)
    }

    #[test]
    fn a_compaction_in_parts_ends_for_want_of_space_and_loses_no_note() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, faulty) = open(dir.path());
        for n in 0..40_u8 {
            let mut batch = update(u64::from(n % 10));
            batch.notes.push(Note { key: vec![n], value: Some(vec![1]) });
            collection.commit(batch, Stamp(2)).unwrap();
        }
        let epoch = collection.version().epoch;
        for at in [0, 2] {
            let segment = collection.inner.log.view().segments[at].clone();
            let damaged = segment.entries().iter().find(|it| !it.local).copied().unwrap();
            let mut bytes = fs::read(&segment.path).unwrap();
            bytes[usize::try_from(damaged.end()).unwrap() - 20] ^= 1;
            fs::write(&segment.path, bytes).unwrap();
        }
        collection.scrub(u64::MAX).unwrap();
        assert_eq!(collection.health().damaged.len(), 2);
        // A reader holds the old files, so the space of the first part is not given back.
        let pinned = collection.inner.log.view();
        collection.inner.read_keys(Keys::flush).unwrap();
        let before = collection.stats();
        faulty.leave_free(Some(8 << 10));
        assert_eq!(collection.heal(Stamp(2)).unwrap(), Some(Healing::Done { members: 1 }));
        let after = collection.stats();
        assert!(before.bytes / 2 < after.bytes, "{before:?} {after:?}");
        assert_eq!(collection.health().damaged.len(), 1);
        assert_eq!(collection.heal(Stamp(2)).unwrap(), None, "no space for more");
        let (_copy, opened) = anew(dir.path(), true);
        assert_eq!(opened.notes(&[]).count(), 40);
        drop(opened);
        drop(pinned);
        faulty.leave_free(None);
        assert_eq!(collection.heal(Stamp(2)).unwrap(), Some(Healing::Done { members: 1 }));
        assert_eq!((collection.health().damaged, collection.version().epoch), (vec![], epoch));
        assert!(collection.stats().bytes < after.bytes);
        let (_copy, opened) = anew(dir.path(), false);
        assert_eq!((opened.len(), opened.notes(&[]).count()), (10, 40));
        assert_eq!(collection.verify().unwrap().problems, []);
    }

    #[test]
    fn commits_stop_while_a_compaction_can_still_run() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, faulty) = open(dir.path());
        for n in 0..40 {
            collection.commit(update(n % 10), Stamp(2)).unwrap();
        }
        let (_, reserve) = collection.inner.room(&collection.inner.tail(), 0).unwrap();
        let largest = collection.inner.log.view().segments.iter().map(|it| it.end()).max();
        assert_eq!(reserve, largest.unwrap() * 6 / 5);
        assert!((8 << 10) < reserve && reserve < (12 << 10), "{reserve}");
        assert_eq!(collection.compact_if_due(Stamp(2)).unwrap(), None);
        let unwritten = collection.inner.read_keys(|keys| Ok(keys.unwritten_bytes())).unwrap();
        let free = reserve + unwritten;
        faulty.leave_free(Some(free));
        let error = collection.commit(update(1), Stamp(2)).unwrap_err();
        let expected = format!("not accepting changes: free {free} of ");
        assert!(error.may_pass() && error.to_string().starts_with(&expected), "{error}");
        assert!(collection.get(&oid(1)).unwrap().is_some());
        // The log is compacted in parts, because there is no space for a second copy of all of it.
        assert!(reserve < collection.stats().bytes / 2);
        let done = collection.compact_if_due(Stamp(2)).unwrap().unwrap();
        assert!(1 < done.segments.0 && done.kept == 10, "{done:?}");
        assert_eq!(collection.verify().unwrap().problems, []);
        assert_eq!(collection.compact_if_due(Stamp(2)).unwrap(), None, "no more to be had");
        faulty.leave_free(None);
        collection.commit(update(1), Stamp(2)).unwrap();
        assert_eq!(collection.len(), 10);
    }
}
