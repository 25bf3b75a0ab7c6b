//! Tests of unreadable disk blocks: a disk error instead of bytes is damage like any other. It is
//! reported, does not affect other operations, and is healed.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use disk::Disk;
use disk::faulty::Faulty;
use soif::Record;

use crate::change::{Batch, Change, GATHERER_ID, GATHERER_ROOT, Oid, Stamp};
use crate::collection::Collection;
use crate::error::{Damage, Error};
use crate::heal::Healing;
use crate::log::served;
use crate::options::Options;
use crate::recover::Mode;

fn open(dir: &Path) -> (Collection, Arc<Faulty>) {
    let faulty = Faulty::new(dir, 1);
    let options = Options { segment_bytes_max: 1, ..Options::default() };
    let disk = Disk::Faulty(faulty.clone());
    (Collection::open_on(&disk, dir, options, Stamp(1), Mode::Write).unwrap().0, faulty)
}

fn update(n: u64) -> Batch {
    let mut record = Record::new("FILE", format!("http://h/{n}"));
    record.push(GATHERER_ID, "g");
    Batch { changes: vec![Change::Update(record)], notes: Vec::new() }
}

fn oid(n: u64) -> Oid {
    Oid::new("g", &format!("http://h/{n}"))
}

/// Makes ten objects, each in a segment of its own, except two in the fourth segment, which is
/// unreadable from some byte on. The first object has been replaced once.
fn filled(dir: &Path, from: u64) -> (Collection, Arc<Faulty>) {
    let (collection, faulty) = open(dir);
    collection.commit(update(1), Stamp(2)).unwrap();
    for n in 1..10 {
        let mut batch = update(n);
        if n == 3 {
            batch.changes.extend(update(30).changes);
        }
        collection.commit(batch, Stamp(2)).unwrap();
    }
    let segment = collection.inner.log.view().segments[3].clone();
    let length = segment.entries()[0].end();
    faulty.fail_reading(&segment.path, from.min(length - 10)..length);
    (collection, faulty)
}

#[test]
fn unreadable_members_are_found_and_healed() {
    for from in [0, 30, u64::MAX] {
        let dir = tempfile::tempdir().unwrap();
        let (collection, faulty) = filled(dir.path(), from);
        collection.scrub(u64::MAX).unwrap();
        let damaged = collection.health().damaged;
        assert_eq!(damaged.len(), 1);
        assert_eq!(damaged[0].message, Damage::Unreadable.to_string());
        assert_eq!(collection.verify().unwrap().lost, [oid(3), oid(30)], "of no root and source");
        let waiting = Healing::Waiting { lost: vec![oid(3), oid(30)], sources: Vec::new() };
        assert_eq!(collection.heal(Stamp(3)).unwrap(), Some(waiting));
        // A compaction would give space back, but not before the damage is healed.
        faulty.leave_free(Some(0));
        collection.commit(update(1), Stamp(3)).unwrap_err();
        let before = collection.stats().segments;
        assert_eq!(collection.compact_if_due(Stamp(3)).unwrap(), None);
        assert_eq!(collection.stats().segments, before);
        faulty.leave_free(None);
        for n in [3, 30] {
            collection.commit(update(n), Stamp(3)).unwrap();
        }
        assert_eq!(collection.heal(Stamp(3)).unwrap(), Some(Healing::Done { members: 1 }));
        assert_eq!((collection.health().damaged, collection.len()), (vec![], 10));
        assert_eq!(collection.verify().unwrap().problems, []);
    }
}

#[test]
fn a_feed_marks_a_member_that_it_cannot_read() {
    let dir = tempfile::tempdir().unwrap();
    let (collection, _faulty) = filled(dir.path(), 0);
    let parts = collection.inner.log.view().parts(0);
    let mut pieces = served::pieces(&parts, &Bytes::new(), 0, served::bytes_of(&parts));
    for _ in 0..3 {
        assert!(pieces().unwrap().is_some());
    }
    pieces().unwrap_err();
    assert_eq!(collection.health().damaged.len(), 1);
}

#[test]
fn an_opening_skips_unreadable_members() {
    let modes = [Mode::Write, Mode::Rebuild, Mode::Read];
    for (from, mode) in [0, u64::MAX].into_iter().flat_map(|from| modes.map(|it| (from, it))) {
        let dir = tempfile::tempdir().unwrap();
        let (collection, faulty) = filled(dir.path(), from);
        drop(collection);
        // Without a key index the opening reads the members' bodies too.
        std::fs::remove_dir_all(dir.path().join("keys")).unwrap();
        let disk = Disk::Faulty(faulty);
        let opened = Collection::open_on(&disk, dir.path(), Options::default(), Stamp(3), mode);
        let (collection, recovery) = opened.unwrap();
        assert!(recovery.lost && recovery.cut.is_empty());
        let damaged = collection.health().damaged;
        assert!(damaged[0].message.starts_with(&Damage::Unreadable.to_string()), "{damaged:?}");
        assert_eq!((damaged.len(), collection.len()), (1, 8));
        assert!(matches!(collection.get(&oid(3)), Ok(None) | Err(Error::Damaged { .. })));
        assert!(!collection.verify().unwrap().problems.is_empty());
    }
}

#[test]
fn healing_does_not_wait_for_the_confirmation_of_an_empty_root() {
    for is_left in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (collection, faulty) = open(dir.path());
        let mut batch = update(1);
        if let Change::Update(record) = &mut batch.changes[0] {
            record.push(GATHERER_ROOT, "http://h/");
        }
        collection.commit(batch, Stamp(2)).unwrap();
        let (gatherer, root) = ("g".to_owned(), "http://h/".to_owned());
        let confirm = Change::Confirm { gatherer, root, at: Stamp(2) };
        collection.commit(Batch { changes: vec![confirm], notes: vec![] }, Stamp(2)).unwrap();
        let segment = collection.inner.log.view().segments[1].clone();
        faulty.fail_reading(&segment.path, 0..segment.end());
        let change = if is_left { update(2).changes } else { vec![Change::Delete(oid(1))] };
        collection.commit(Batch { changes: change, notes: vec![] }, Stamp(2)).unwrap();
        collection.scrub(u64::MAX).unwrap();
        let healing = collection.heal(Stamp(3)).unwrap().unwrap();
        assert_eq!(matches!(healing, Healing::Waiting { .. }), is_left, "{healing:?}");
    }
}
