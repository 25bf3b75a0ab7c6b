//! Damage: every flipped byte is noticed, every cut ends at a commit, and a missing, old or broken
//! key index gives the same answers as a good one.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod sealed;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use collection::member::{Decoder, MEMBER_BYTES_MAX};
use collection::{
    Batch, Change, Collection, Cursor, Epoch, Error, Healing, Note, Oid, Options, Pulled, Recovery,
    Stamp, Version,
};
use soif::Record;

const SEGMENT: &str = "segment-00000001.gz";

fn update(n: u64) -> Change {
    let mut record = Record::new("FILE", format!("http://{n}"));
    record.push("Gatherer-Id", "g");
    record.push("Number", n.to_string());
    Change::Update(record)
}

/// Returns where the first served member after a serial begins in a segment.
fn offset_after(segment: &[u8], serial: u64) -> u64 {
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    decoder.feed(segment);
    let members = std::iter::from_fn(|| decoder.next_member().unwrap());
    let mut served = members.filter(|it| !it.header.local && serial < it.header.last());
    served.next().unwrap().offset
}

fn open(dir: &Path) -> (Collection, Recovery) {
    // Members of one record each, so that a commit has several.
    let options = Options { member_bytes_max: 1, ..Options::default() };
    Collection::open(dir, options, Stamp(5)).unwrap()
}

/// Commits objects 1 to 3, 4 to 6 …, each time with a note; returns the live objects.
fn fill(dir: &Path, commits: u64) -> BTreeMap<String, u64> {
    let (collection, _) = open(dir);
    for n in 0..commits {
        let changes = (3 * n + 1..=3 * n + 3).map(update).collect();
        let note = Note { key: b"n".to_vec(), value: Some(n.to_string().into_bytes()) };
        collection.commit(Batch { changes, notes: vec![note] }, Stamp(5)).unwrap();
    }
    answers(&collection)
}

/// Returns all live objects with their serials, by look-up and by scan.
fn answers(collection: &Collection) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for scanned in collection.scan(0).unwrap().map(Result::unwrap) {
        let oid = scanned.change.oid().unwrap();
        if let Some(stored) = collection.get(&oid).unwrap() {
            assert_eq!(stored.serial, scanned.serial);
            found.insert(oid.url, stored.serial);
        }
    }
    assert_eq!(found.len() as u64, collection.len());
    found
}

/// Returns the objects from 1 to `last` that can be read, and those whose records are damaged.
fn states(collection: &Collection, last: u64) -> (Vec<u64>, Vec<u64>) {
    let (mut whole, mut damaged) = (Vec::new(), Vec::new());
    for n in 1..=last {
        match collection.get(&Oid::new("g", &format!("http://{n}"))) {
            Ok(None) => {}
            Ok(Some(_)) => whole.push(n),
            Err(Error::Damaged { .. }) => damaged.push(n),
            Err(error) => panic!("{error}"),
        }
    }
    (whole, damaged)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for item in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(item.file_name());
        if item.file_type().unwrap().is_dir() {
            copy(&item.path(), &target);
        } else {
            fs::copy(item.path(), target).unwrap();
        }
    }
}

/// Makes a directory with a log of three commits and no key index.
fn small() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 3);
    fs::remove_dir_all(dir.path().join("keys")).unwrap();
    let segment = dir.path().join(SEGMENT);
    let bytes = fs::read(&segment).unwrap();
    (dir, segment, bytes)
}

#[test]
fn every_flipped_byte_is_noticed_and_named() {
    let (dir, segment, bytes) = small();
    let (collection, _) = open(dir.path());
    assert_eq!(collection.verify().unwrap().problems, []);
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(&segment, &bad).unwrap();
        let problems = collection.verify().unwrap().problems;
        assert_eq!(problems[0].file, segment, "byte {at}");
        assert!(problems[0].offset <= at as u64, "byte {at}: {problems:?}");
        let read: Result<Vec<_>, Error> = collection.scan(0).unwrap().collect();
        match read {
            // A scan passes over a flip in a local member or in a header …
            Ok(all) => assert_eq!(all.len(), 9, "byte {at}"),
            // … and otherwise it stops there.
            Err(error) => assert!(matches!(error, Error::Damaged { .. }), "byte {at}: {error}"),
        }
    }
}

/// Recovery's own tests cut at every byte; this one tests the answers after a cut.
#[test]
fn the_keys_know_exactly_the_objects_that_a_cut_has_lost() {
    for has_keys in [true, false] {
        let (dir, segment, bytes) = small();
        drop(open(dir.path()));
        let version = Collection::open_to_read(dir.path(), Options::default(), Stamp(5)).unwrap();
        let version = version.0.version();
        for length in [bytes.len() - 1, bytes.len() / 2, 50, 0] {
            let broken = tempfile::tempdir().unwrap();
            copy(dir.path(), broken.path());
            fs::write(broken.path().join(SEGMENT), &bytes[..length]).unwrap();
            if !has_keys {
                fs::remove_dir_all(broken.path().join("keys")).unwrap();
            }
            let (collection, recovery) = open(broken.path());
            assert!(recovery.cut.is_empty(), "nothing of it was unfinished");
            assert!(!recovery.damaged.is_empty() && recovery.lost != has_keys, "{recovery:?}");
            assert_eq!(collection.version(), version, "no serial is used again");
            let (whole, damaged) = states(&collection, 9);
            assert!(whole.len() < 9);
            assert_eq!(damaged.len(), if has_keys { 9 - whole.len() } else { 0 }, "{length}");
            assert_eq!(collection.aftermath().unwrap().is_some(), !has_keys);
        }
        drop((segment, dir));
    }
}

#[test]
fn zeros_after_the_last_commit_are_cut_and_nothing_is_lost() {
    let (dir, segment, bytes) = small();
    fs::write(&segment, [&bytes[..], &[0; 5000]].concat()).unwrap();
    let (collection, recovery) = open(dir.path());
    assert_eq!(recovery.cut[0].bytes, 5000);
    assert!(!recovery.lost);
    assert_eq!(answers(&collection).len(), 9);
}

#[test]
fn damage_found_at_a_start_costs_one_member_until_its_objects_return() {
    for (what, at) in [("header", 20), ("body", 100)] {
        let dir = tempfile::tempdir().unwrap();
        fill(dir.path(), 5);
        let (collection, _) = open(dir.path());
        let cursor = Cursor { epoch: Epoch(1), serial: 4, snapshot: None, part: None };
        let pulled = Pulled {
            source: "s".to_owned(),
            id: None,
            epoch: Epoch(1),
            changes: vec![(4, update(99))],
            cursor: cursor.clone(),
            end_of_snapshot: None,
        };
        collection.apply(pulled, Stamp(5)).unwrap();
        let before = collection.version();
        // The second member of the third commit: object 8.
        drop(collection);
        let segment = dir.path().join(SEGMENT);
        let mut bytes = fs::read(&segment).unwrap();
        let offset = offset_after(&bytes, 7);
        bytes[usize::try_from(offset).unwrap() + at] ^= 4;
        fs::write(&segment, &bytes).unwrap();
        for _ in 0..2 {
            let (collection, recovery) = open(dir.path());
            assert_eq!((recovery.lost, recovery.keys_rebuilt, recovery.cut), (false, None, vec![]));
            assert_eq!((&recovery.damaged[0].file, recovery.damaged[0].offset), (&segment, offset));
            let expected: Vec<u64> = (1..=15).filter(|n| *n != 8).collect();
            assert_eq!(states(&collection, 15), (expected, vec![8]), "{what}");
            assert_eq!((collection.version(), collection.len()), (before, 16));
            assert_eq!(collection.cursor("s").unwrap(), Some(cursor.clone()));
            assert_eq!(collection.lost().unwrap(), [Oid::new("g", "http://8")]);
            let report = collection.verify().unwrap();
            assert_eq!(report.lost, [Oid::new("g", "http://8")], "its origin is unknown");
            assert_eq!(report.healable, []);
        }
        let (collection, _) = open(dir.path());
        collection.commit(Batch { changes: vec![update(8)], notes: vec![] }, Stamp(6)).unwrap();
        assert_eq!(collection.heal(Stamp(6)).unwrap(), Some(Healing::Done { members: 1 }));
        assert_eq!(states(&collection, 15), ((1..=15).collect(), vec![]));
        assert_eq!(collection.version().epoch, before.epoch);
        assert_eq!(collection.horizon(), 8, "consumers before it get a snapshot");
        assert_eq!(collection.verify().unwrap().problems, []);
        assert_eq!(collection.note(b"n").unwrap().as_deref(), Some(&b"4"[..]));
        drop(collection);
        let (collection, recovery) = open(dir.path());
        assert_eq!((recovery.damaged, collection.len()), (vec![], 16));
    }
}

#[test]
fn a_missing_manifest_is_rebuilt_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let all = fill(dir.path(), 3);
    let manifest = dir.path().join("MANIFEST");
    fs::write(&manifest, "nonsense\n").unwrap();
    assert_eq!(answers(&open(dir.path()).0), all, "there is a copy");
    fs::write(&manifest, "nonsense\n").unwrap();
    fs::remove_file(dir.path().join("MANIFEST.copy")).unwrap();
    for gone in [false, true] {
        if gone {
            fs::remove_file(&manifest).unwrap();
        }
        let error = Collection::open(dir.path(), Options::default(), Stamp(5)).unwrap_err();
        assert!(error.to_string().contains("harvest collection repair"), "{error}");
    }
    let (collection, recovery) =
        Collection::rebuild(dir.path(), Options::default(), Stamp(5)).unwrap();
    assert!(recovery.lost);
    assert_eq!(states(&collection, 9), ((1..=9).collect(), vec![]));
    collection.end_aftermath(|| Ok(|_: &Oid| Ok(true)), Stamp(6)).unwrap();
    assert_eq!(answers(&collection), all);
    drop(collection);
    assert_eq!(answers(&open(dir.path()).0), all);
}

#[test]
fn a_restored_backup_gets_a_new_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let all = fill(dir.path(), 2);
    let backup = tempfile::tempdir().unwrap();
    copy(dir.path(), backup.path());
    let before = open(dir.path()).0.version();
    let (collection, recovery) =
        Collection::rebuild(backup.path(), Options::default(), Stamp(5)).unwrap();
    assert_eq!((recovery.cut, recovery.lost), (vec![], false));
    assert!(before.epoch < collection.version().epoch);
    assert_eq!(collection.version().serial, before.serial);
    assert_eq!(answers(&collection), all);
}

#[test]
fn any_state_of_the_keys_gives_the_same_answers() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 2);
    let old = tempfile::tempdir().unwrap();
    copy(&dir.path().join("keys"), &old.path().join("keys"));
    let all = {
        let (collection, _) = open(dir.path());
        let changes = vec![update(20), Change::Delete(Oid::new("g", "http://1"))];
        let note = Note { key: b"n".to_vec(), value: None };
        collection.commit(Batch { changes, notes: vec![note] }, Stamp(6)).unwrap();
        answers(&collection)
    };
    type Break = fn(&Path, &Path);
    let break_keys: [(&str, Break); 7] = [
        ("deleted", |keys, _| fs::remove_dir_all(keys).unwrap()),
        ("older", |keys, old| {
            fs::remove_dir_all(keys).unwrap();
            copy(&old.join("keys"), keys);
        }),
        ("of another collection", |keys, _| {
            let other = tempfile::tempdir().unwrap();
            fill(other.path(), 2);
            fs::remove_dir_all(keys).unwrap();
            copy(&other.path().join("keys"), keys);
        }),
        ("truncated", |keys, _| {
            let db = keys.join("db");
            let half = fs::metadata(&db).unwrap().len() / 2;
            fs::OpenOptions::new().write(true).open(db).unwrap().set_len(half).unwrap();
        }),
        ("cut short", |keys, _| {
            fs::OpenOptions::new()
                .write(true)
                .open(keys.join("db"))
                .unwrap()
                .set_len(3000)
                .unwrap();
        }),
        ("overwritten", |keys, _| {
            let db = keys.join("db");
            let bytes = fs::metadata(&db).unwrap().len();
            fs::write(db, vec![0x5a; usize::try_from(bytes).unwrap()]).unwrap();
        }),
        ("without settings", |keys, _| fs::write(keys.join("conf"), b"x").unwrap()),
    ];
    for (how, break_keys) in break_keys {
        let broken = tempfile::tempdir().unwrap();
        copy(dir.path(), broken.path());
        break_keys(&broken.path().join("keys"), old.path());
        let (collection, recovery) = open(broken.path());
        assert_eq!(answers(&collection), all, "{how}");
        assert_eq!(collection.note(b"n").unwrap(), None, "{how}");
        assert_eq!(collection.verify().unwrap().problems, [], "{how}");
        assert!(!recovery.lost, "{how}");
        if how == "older" {
            assert_eq!((recovery.replayed, recovery.keys_rebuilt), (2, None));
        } else if matches!(how, "deleted" | "overwritten" | "of another collection") {
            assert!(recovery.keys_rebuilt.is_some(), "{how}");
        }
    }
}

#[test]
fn keys_from_before_a_compaction_are_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 2);
    let old = tempfile::tempdir().unwrap();
    copy(&dir.path().join("keys"), &old.path().join("keys"));
    let (collection, _) = open(dir.path());
    let changes = vec![Change::Delete(Oid::new("g", "http://1"))];
    collection.commit(Batch { changes, notes: vec![] }, Stamp(6)).unwrap();
    // So late that the tombstone goes: a replay would miss the delete.
    collection.compact(Stamp(u64::MAX / 2)).unwrap();
    assert_eq!(collection.stats().changes, 5);
    let version = collection.version();
    drop(collection);
    fs::remove_dir_all(dir.path().join("keys")).unwrap();
    copy(&old.path().join("keys"), &dir.path().join("keys"));
    let (collection, recovery) = open(dir.path());
    assert!(recovery.keys_rebuilt.is_some());
    assert_eq!(collection.len(), 5);
    assert_eq!(collection.version(), version, "a serial is never used again");
    let is_delta = |serial| collection.continues_from(Version { serial, ..version });
    assert!(!is_delta(6), "consumers without the delete need a snapshot");
    assert!(is_delta(7));
}

#[test]
fn the_files_of_a_killed_verification_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let left = dir.path().join("keys.verify");
    copy(&dir.path().join("keys"), &left);
    let (collection, _) = open(dir.path());
    assert!(!left.exists());
    assert_eq!(collection.verify().unwrap().problems, []);
    assert!(!left.exists());
}
