//! Damage of sealed segments, and of collections that sources fill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use collection::member::{Decoder, MEMBER_BYTES_MAX};
use collection::{
    Applied, Batch, Change, Collection, Cursor, Epoch, Error, Healing, Oid, Options, Pulled, Stamp,
};

use crate::{SEGMENT, answers, copy, fill, open, states, update};

/// Makes ten sealed segments of one commit each; returns the third's path.
fn sealed(dir: &Path) -> PathBuf {
    let options = Options { segment_bytes_max: 1, ..Options::default() };
    let (collection, _) = Collection::open(dir, options, Stamp(5)).unwrap();
    for n in 1..=10 {
        collection.commit(Batch { changes: vec![update(n)], notes: vec![] }, Stamp(5)).unwrap();
    }
    assert_eq!(collection.stats().segments, 10);
    dir.join("segment-00000003.gz")
}

#[test]
fn damage_in_a_sealed_segment_is_named_and_stays_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let segment = sealed(dir.path());
    let mut bytes = fs::read(&segment).unwrap();
    let last = bytes.len() - 10;
    bytes[last] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    let (collection, recovery) = open(dir.path());
    assert_eq!(recovery.damaged, [], "opening does not read all bodies");
    let error = collection.get(&Oid::new("g", "http://3")).unwrap_err();
    assert!(error.to_string().contains("segment-00000003.gz: checksum does not match at byte 0"));
    assert_eq!(collection.scan(0).unwrap().filter(Result::is_ok).count(), 2);
    assert_eq!(collection.verify().unwrap().problems[0].file, segment);
    let mut out = Vec::new();
    assert_eq!(collection.export(&mut out).unwrap(), 9, "all but one");
    let before = collection.version();
    drop(collection);
    let (collection, recovery) =
        Collection::rebuild(dir.path(), Options::default(), Stamp(5)).unwrap();
    assert_eq!((recovery.damaged.len(), recovery.lost), (1, true));
    assert!(before.epoch < collection.version().epoch);
    assert_eq!((collection.len(), fs::read(&segment).unwrap()), (9, bytes));
}

#[test]
fn a_collection_that_is_opened_to_read_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let segment = sealed(dir.path());
    let collection = open(dir.path()).0;
    collection.commit(Batch { changes: vec![update(11)], notes: vec![] }, Stamp(6)).unwrap();
    drop(collection);
    let mut bytes = fs::read(&segment).unwrap();
    bytes.truncate(bytes.len() - 5);
    fs::write(&segment, &bytes).unwrap();
    for keys in ["whole", "broken", "gone"] {
        let looked_at = tempfile::tempdir().unwrap();
        copy(dir.path(), looked_at.path());
        match keys {
            "broken" => drop(fs::remove_file(looked_at.path().join("keys/run-1"))),
            "gone" => fs::remove_dir_all(looked_at.path().join("keys")).unwrap(),
            _ => {}
        }
        let before = world(looked_at.path());
        let options = Options::default();
        let opened = Collection::open_to_read(looked_at.path(), options.clone(), Stamp(7));
        let (collection, recovery) = opened.unwrap();
        let second = Collection::open_to_read(looked_at.path(), options.clone(), Stamp(7));
        assert!(second.is_ok(), "several may read");
        assert!(matches!(
            Collection::open(looked_at.path(), options, Stamp(7)),
            Err(Error::InUse { .. })
        ));
        assert_eq!(recovery.damaged.len(), 1);
        let report = collection.verify().unwrap();
        let gone = keys != "whole";
        assert_eq!((report.lost.len(), report.unknown), (usize::from(!gone), gone), "{keys}");
        assert_eq!(collection.export(&mut Vec::new()).unwrap(), 10);
        assert_eq!(collection.stats().objects, if gone { 10 } else { 11 });
        let batch = Batch { changes: vec![update(12)], notes: vec![] };
        assert!(matches!(collection.commit(batch, Stamp(8)), Err(Error::Stopped { .. })));
        assert!(collection.compact(Stamp(8)).is_err() && collection.new_epoch(Stamp(8)).is_err());
        drop((collection, second));
        assert_eq!(world(looked_at.path()), before, "{keys}");
    }
}

/// Returns all files below a folder.
fn world(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for item in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if item.file_type().unwrap().is_dir() {
            found.extend(world(&item.path()));
        } else {
            found.insert(item.path(), fs::read(item.path()).unwrap());
        }
    }
    found
}

/// Makes a collection from source `s`, with each change in a segment of its own: objects 1 and 2, a
/// delete of the first, and object 3.
fn pulled(dir: &Path) -> Collection {
    let options = Options { segment_bytes_max: 1, ..Options::default() };
    let (collection, _) = Collection::open(dir, options, Stamp(5)).unwrap();
    let delete = Change::Delete(Oid::new("g", "http://1"));
    for (serial, change) in (1..).zip([update(1), update(2), delete, update(3)]) {
        pull(&collection, vec![(serial, change)], None);
    }
    assert_eq!(collection.len(), 2);
    collection
}

fn pull(collection: &Collection, changes: Vec<(u64, Change)>, end: Option<u64>) -> Applied {
    let (source, epoch) = ("s".to_owned(), Epoch(1));
    let serial = changes.last().map_or(0, |it| it.0);
    let cursor = Cursor { epoch, serial, snapshot: None, part: None };
    let pulled = Pulled { source, id: None, epoch, changes, cursor, end_of_snapshot: end };
    collection.apply(pulled, Stamp(5)).unwrap()
}

/// Changes a byte in the header of the member with changes.
fn break_changes(segment: &Path) {
    let mut bytes = fs::read(segment).unwrap();
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    decoder.feed(&bytes);
    let mut members = std::iter::from_fn(|| decoder.next_member().unwrap());
    let member = members.find(|it| !it.header.entries.is_empty()).unwrap();
    bytes[usize::try_from(member.offset).unwrap() + 20] ^= 4;
    fs::write(segment, bytes).unwrap();
}

#[test]
fn an_object_that_was_damaged_at_a_start_is_taken_from_its_source_again() {
    let dir = tempfile::tempdir().unwrap();
    drop(pulled(dir.path()));
    break_changes(&dir.path().join("segment-00000002.gz"));
    let (collection, recovery) = open(dir.path());
    assert_eq!((recovery.lost, collection.len()), (false, 2));
    let report = collection.verify().unwrap();
    assert_eq!((report.healable, report.lost), (vec![Oid::new("g", "http://2")], vec![]));
    let (lost, sources) = (vec![Oid::new("g", "http://2")], vec!["s".to_owned()]);
    assert_eq!(collection.heal(Stamp(6)).unwrap(), Some(Healing::Waiting { lost, sources }));
    assert_eq!(
        collection.cursor("s").unwrap().unwrap().serial,
        1,
        "from before the first of it on"
    );
    let applied = pull(&collection, vec![(2, update(2)), (4, update(3))], None);
    assert_eq!((applied.updated, applied.ignored), (1, 1));
    assert_eq!(states(&collection, 3), (vec![2, 3], vec![]));
    assert_eq!(collection.heal(Stamp(6)).unwrap(), Some(Healing::Done { members: 1 }));
    assert_eq!(collection.sources().unwrap()[0].objects, 2);
    assert_eq!(collection.verify().unwrap().problems, []);
}

#[test]
fn without_keys_everything_is_taken_from_its_source_again() {
    let dir = tempfile::tempdir().unwrap();
    let before = pulled(dir.path()).version();
    fs::remove_dir_all(dir.path().join("keys")).unwrap();
    break_changes(&dir.path().join("segment-00000002.gz"));
    let (collection, recovery) = open(dir.path());
    assert!(recovery.lost);
    assert_eq!((collection.len(), collection.cursor("s").unwrap()), (1, None));
    assert_eq!(collection.aftermath().unwrap(), Some(before), "under the same epoch");
    let sources = BTreeSet::from(["s".to_owned()]);
    assert_eq!(collection.release_unheld(&sources, Stamp(6)).unwrap(), 0);
    assert!(collection.aftermath().unwrap().is_some(), "the source has not been read again");
    assert_eq!(collection.heal(Stamp(6)).unwrap(), None, "damage stays until then");
    let applied = pull(&collection, vec![(2, update(2)), (4, update(3))], Some(7));
    assert_eq!((applied.updated, applied.ignored), (1, 1));
    assert!(collection.get(&Oid::new("g", "http://2")).unwrap().is_some());
    let again = pull(&collection, vec![(2, update(2)), (4, update(3))], Some(8));
    assert_eq!((again.updated, again.ignored), (0, 2));
    assert_eq!(collection.release_unheld(&sources, Stamp(6)).unwrap(), 0);
    assert_eq!((collection.len(), collection.aftermath().unwrap()), (2, None));
    assert!(before.serial < collection.horizon(), "all get a snapshot");
    assert_eq!(collection.heal(Stamp(6)).unwrap(), Some(Healing::Done { members: 1 }));
    assert_eq!(collection.sources().unwrap()[0].objects, 2);
    assert_eq!(collection.verify().unwrap().problems, []);
}

#[test]
fn an_object_whose_delete_was_lost_goes_once_its_source_has_been_read() {
    let dir = tempfile::tempdir().unwrap();
    drop(pulled(dir.path()));
    fs::remove_dir_all(dir.path().join("keys")).unwrap();
    break_changes(&dir.path().join("segment-00000003.gz"));
    for _ in 0..2 {
        let (collection, _) = open(dir.path());
        assert!(collection.get(&Oid::new("g", "http://1")).unwrap().is_some());
        assert!(collection.aftermath().unwrap().is_some(), "after a restart too");
    }
    let (collection, _) = open(dir.path());
    let sources = BTreeSet::from(["s".to_owned()]);
    assert_eq!(collection.release_unheld(&sources, Stamp(6)).unwrap(), 0);
    pull(&collection, vec![(2, update(2)), (4, update(3))], Some(7));
    assert_eq!(collection.len(), 3);
    assert_eq!(collection.release_unheld(&sources, Stamp(6)).unwrap(), 1);
    assert_eq!(collection.get(&Oid::new("g", "http://1")).unwrap(), None);
    assert_eq!((collection.len(), collection.aftermath().unwrap()), (2, None));
    assert_eq!(collection.heal(Stamp(6)).unwrap(), Some(Healing::Done { members: 1 }));
    assert_eq!(collection.verify().unwrap().problems, []);
}

#[test]
fn a_sealed_segment_that_is_cut_at_a_members_end_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let segment = sealed(dir.path());
    fs::write(&segment, b"").unwrap();
    for _ in 0..2 {
        let (collection, recovery) = open(dir.path());
        let problem = recovery.damaged[0].to_string();
        assert!(problem.contains("the changes with the serials 3 to 3 are missing"), "{problem}");
        assert!(!recovery.lost);
        let expected = (1..=10).filter(|it| *it != 3).collect();
        assert_eq!(states(&collection, 10), (expected, vec![3]));
        let read: Vec<_> = collection.scan(0).unwrap().collect();
        assert_eq!((read.len(), read[2].is_err()), (3, true), "nobody reads past it");
    }
    let (collection, _) = open(dir.path());
    collection.commit(Batch { changes: vec![update(3)], notes: vec![] }, Stamp(6)).unwrap();
    assert_eq!(collection.heal(Stamp(6)).unwrap(), Some(Healing::Done { members: 1 }));
    assert_eq!((collection.horizon(), answers(&collection).len()), (3, 10));
}

#[test]
fn damage_that_hinders_the_key_index_is_left_out_on_opening() {
    let dir = tempfile::tempdir().unwrap();
    let segment = sealed(dir.path());
    let bytes = fs::read(&segment).unwrap();
    fs::remove_dir_all(dir.path().join("keys")).unwrap();
    fs::write(&segment, &bytes[..bytes.len() - 9]).unwrap();
    let (collection, recovery) = open(dir.path());
    assert!(recovery.lost && recovery.damaged[0].message.contains("cut short"), "{recovery:?}");
    assert_eq!(collection.len(), 9);
    drop(collection);
    fs::remove_dir_all(dir.path().join("keys")).unwrap();
    let segment = dir.path().join("segment-00000005.gz");
    let mut bytes = fs::read(&segment).unwrap();
    let last = bytes.len() - 10;
    bytes[last] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    let (collection, recovery) = open(dir.path());
    assert!(recovery.lost);
    assert_eq!((collection.len(), collection.health().damaged.len()), (8, 2));
}

#[test]
fn a_missing_segment_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 3);
    fs::remove_file(dir.path().join(SEGMENT)).unwrap();
    for _ in 0..2 {
        let (collection, recovery) = open(dir.path());
        let problem = recovery.damaged[0].to_string();
        assert!(problem.contains("the changes with the serials 1 to 9 are missing"), "{problem}");
        assert_eq!(states(&collection, 9), (vec![], (1..=9).collect()), "the names are there");
    }
    let (collection, _) = open(dir.path());
    let batch = Batch { changes: (1..=9).map(update).collect(), notes: vec![] };
    assert_eq!(collection.commit(batch, Stamp(5)).unwrap().serial, 18);
    assert_eq!(collection.heal(Stamp(6)).unwrap(), Some(Healing::Done { members: 1 }));
    assert_eq!(answers(&collection).len(), 9);
    assert_eq!(collection.note(b"n").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(collection.verify().unwrap().problems, []);
}
