//! Damage: every flipped byte is noticed, every cut ends at a commit, and a key index that is gone,
//! old or broken gives the same answers as a good one.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use collection::member::{Decoder, MEMBER_BYTES_MAX};
use collection::{
    Applied, Batch, Change, Collection, Cursor, Damage, Epoch, Error, Note, Oid, Options, Pulled,
    Recovery, Stamp,
};
use soif::Record;

const SEGMENT: &str = "segment-00000001.gz";

fn update(n: u64) -> Change {
    let mut record = Record::new("FILE", format!("http://{n}"));
    record.push("Gatherer-Id", "g");
    record.push("Number", n.to_string());
    Change::Update(record)
}

fn open(dir: &Path) -> (Collection, Recovery) {
    // Members of one record each, so that a commit has several.
    let options = Options { member_bytes_max: 1, ..Options::default() };
    Collection::open(dir, options, Stamp(5)).unwrap()
}

/// Commits objects 1 to 3, 4 to 6 … with a note and, in the last commit, a cursor.
fn fill(dir: &Path, commits: u64) -> BTreeMap<String, u64> {
    let (collection, _) = open(dir);
    for n in 0..commits {
        let changes = (3 * n + 1..=3 * n + 3).map(update).collect();
        let note = Note { key: b"n".to_vec(), value: Some(n.to_string().into_bytes()) };
        collection.commit(Batch { changes, notes: vec![note] }, Stamp(5)).unwrap();
    }
    answers(&collection)
}

/// Everything that lives, with its serial, by look-up and by scan.
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

/// A directory with a log of three commits and no key index.
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
            // A flip in a local member or in a header does not hinder a scan from going by it …
            Ok(all) => assert_eq!(all.len(), 9, "byte {at}"),
            // … and otherwise it stops there.
            Err(error) => assert!(matches!(error, Error::Damaged { .. }), "byte {at}: {error}"),
        }
    }
}

/// The cut at every byte is tested beside the code; here what it means for the answers.
#[test]
fn after_a_cut_the_answers_are_those_of_a_commit() {
    let (dir, segment, bytes) = small();
    for (length, commits) in [(bytes.len() - 1, 2), (bytes.len() / 2, 1), (50, 0), (0, 0)] {
        fs::write(&segment, &bytes[..length]).unwrap();
        let (collection, recovery) = open(dir.path());
        assert_eq!(recovery.cut.len(), usize::from(length != 0), "{length}");
        assert_eq!(collection.version().serial, 3 * commits);
        assert_eq!(answers(&collection).len() as u64, 3 * commits);
        drop(collection);
        fs::remove_dir_all(dir.path().join("keys")).unwrap();
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
fn damage_in_the_middle_costs_only_its_commit_and_begins_an_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let all = fill(dir.path(), 5);
    let (collection, _) = open(dir.path());
    let cursor = Cursor { epoch: Epoch(1), serial: 4, snapshot: None };
    let pulled = Pulled {
        source: "s".to_owned(),
        epoch: Epoch(1),
        changes: vec![(4, update(99))],
        cursor,
        end_of_snapshot: None,
    };
    collection.apply(pulled, Stamp(5)).unwrap();
    let before = collection.version();
    // The second member of the third commit: object 8.
    let (_, offset, _) = collection.extents(7).unwrap().unwrap().files[0];
    drop(collection);
    let segment = dir.path().join(SEGMENT);
    let mut bytes = fs::read(&segment).unwrap();
    bytes[usize::try_from(offset).unwrap() + 100] ^= 4;
    fs::write(&segment, &bytes).unwrap();

    let (collection, recovery) = open(dir.path());
    assert!(recovery.lost && recovery.keys_rebuilt.is_some());
    let cut = &recovery.cut[0];
    assert_eq!((&cut.file, cut.offset, cut.lost), (&segment, offset, true));
    let mut expected = all;
    for n in [7, 8, 9] {
        expected.remove(&format!("http://{n}"));
    }
    expected.insert("http://99".to_owned(), 16);
    assert_eq!(answers(&collection), expected);
    assert!(before.epoch < collection.version().epoch);
    assert_eq!(collection.cursor("s").unwrap(), None, "the source is fetched again");
    assert_eq!(collection.verify().unwrap().problems, []);
    assert_eq!(fs::read(segment.with_extension("gz.damaged")).unwrap(), bytes);
    let after = collection.version();
    drop(collection);
    let (collection, recovery) = open(dir.path());
    assert_eq!((recovery.cut, recovery.lost), (vec![], false), "it is told once");
    assert_eq!(collection.version(), after);
}

/// Ten sealed segments of one commit each; returns the third's path.
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
fn damage_in_a_sealed_segment_is_named_and_a_rebuild_keeps_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let segment = sealed(dir.path());
    let mut bytes = fs::read(&segment).unwrap();
    let last = bytes.len() - 10;
    bytes[last] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    let (collection, recovery) = open(dir.path());
    assert_eq!(recovery.cut, [], "opening does not read all bodies");
    let error = collection.get(&Oid::new("g", "http://3")).unwrap_err();
    assert!(error.to_string().contains("segment-00000003.gz: checksum does not match at byte 0"));
    assert_eq!(collection.scan(0).unwrap().filter(Result::is_ok).count(), 2);
    assert_eq!(collection.verify().unwrap().problems[0].file, segment);
    let before = collection.version();
    drop(collection);
    let (collection, recovery) =
        Collection::rebuild(dir.path(), Options::default(), Stamp(5)).unwrap();
    assert_eq!((recovery.cut.len(), recovery.lost), (1, true));
    assert!(before.epoch < collection.version().epoch);
    assert_eq!(collection.len(), 9);
    assert_eq!(collection.verify().unwrap().problems, []);
}

/// A collection filled by the source `s`, with each change in a segment of its own: objects 1 and 2,
/// a delete of the first, and object 3.
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
    let cursor = Cursor { epoch, serial, snapshot: None };
    let pulled = Pulled { source, epoch, changes, cursor, end_of_snapshot: end };
    collection.apply(pulled, Stamp(5)).unwrap()
}

/// Changes a byte in the header of the member that has changes.
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
fn an_object_that_an_opening_gave_up_is_taken_from_its_source_again() {
    let dir = tempfile::tempdir().unwrap();
    drop(pulled(dir.path()));
    break_changes(&dir.path().join("segment-00000002.gz"));
    let (collection, recovery) = open(dir.path());
    assert!(recovery.lost);
    assert_eq!((collection.len(), collection.cursor("s").unwrap()), (1, None));
    assert_eq!(collection.aftermath().unwrap(), Some(collection.version().epoch));
    let sources = BTreeSet::from(["s".to_owned()]);
    assert_eq!(collection.release_unheld(&sources, Stamp(6)).unwrap(), 0);
    assert!(collection.aftermath().unwrap().is_some(), "the source has not been read again");
    let applied = pull(&collection, vec![(2, update(2)), (4, update(3))], Some(7));
    assert_eq!((applied.updated, applied.ignored), (1, 1));
    assert!(collection.get(&Oid::new("g", "http://2")).unwrap().is_some());
    let again = pull(&collection, vec![(2, update(2)), (4, update(3))], Some(8));
    assert_eq!((again.updated, again.ignored), (0, 2));
    assert_eq!(collection.release_unheld(&sources, Stamp(6)).unwrap(), 0);
    assert_eq!((collection.len(), collection.aftermath().unwrap()), (2, None));
    assert_eq!(collection.sources().unwrap()[0].objects, 2);
    assert_eq!(collection.verify().unwrap().problems, []);
}

#[test]
fn what_lives_again_since_its_delete_was_lost_goes_once_its_source_has_been_read() {
    let dir = tempfile::tempdir().unwrap();
    drop(pulled(dir.path()));
    break_changes(&dir.path().join("segment-00000003.gz"));
    for _ in 0..2 {
        let (collection, _) = open(dir.path());
        assert!(collection.get(&Oid::new("g", "http://1")).unwrap().is_some());
        assert!(collection.aftermath().unwrap().is_some(), "over a restart too");
    }
    let (collection, _) = open(dir.path());
    let sources = BTreeSet::from(["s".to_owned()]);
    assert_eq!(collection.release_unheld(&sources, Stamp(6)).unwrap(), 0);
    pull(&collection, vec![(2, update(2)), (4, update(3))], Some(7));
    assert_eq!(collection.len(), 3);
    assert_eq!(collection.release_unheld(&sources, Stamp(6)).unwrap(), 1);
    assert_eq!(collection.get(&Oid::new("g", "http://1")).unwrap(), None);
    assert_eq!((collection.len(), collection.aftermath().unwrap()), (2, None));
    assert_eq!(collection.verify().unwrap().problems, []);
}

#[test]
fn a_sealed_segment_that_is_cut_at_a_members_end_shows_too() {
    let dir = tempfile::tempdir().unwrap();
    let segment = sealed(dir.path());
    fs::write(&segment, b"").unwrap();
    let (collection, recovery) = open(dir.path());
    assert_eq!((recovery.cut[0].why, recovery.cut[0].offset), (Damage::Truncated, 0));
    assert!(recovery.lost);
    assert_eq!(answers(&collection).len(), 9);
    drop(collection);
    assert!(!open(dir.path()).1.lost);
}

#[test]
fn damage_that_hinders_the_key_index_is_repaired_on_opening() {
    let dir = tempfile::tempdir().unwrap();
    let segment = sealed(dir.path());
    let bytes = fs::read(&segment).unwrap();
    fs::remove_dir_all(dir.path().join("keys")).unwrap();
    fs::write(&segment, &bytes[..bytes.len() - 9]).unwrap();
    let (collection, recovery) = open(dir.path());
    assert_eq!((recovery.cut[0].why, recovery.lost), (Damage::Truncated, true));
    assert_eq!(answers(&collection).len(), 9);
    drop(collection);
    fs::remove_dir_all(dir.path().join("keys")).unwrap();
    let segment = dir.path().join("segment-00000005.gz");
    let mut bytes = fs::read(&segment).unwrap();
    let last = bytes.len() - 10;
    bytes[last] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    let (collection, recovery) = open(dir.path());
    assert_eq!((recovery.cut[0].why, recovery.lost), (Damage::Checksum, true));
    assert_eq!(answers(&collection).len(), 8);
}

#[test]
fn a_log_that_has_lost_what_the_keys_know_begins_an_epoch() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 3);
    let segment = dir.path().join(SEGMENT);
    let bytes = fs::read(&segment).unwrap();
    fs::write(&segment, &bytes[..bytes.len() - 1]).unwrap();
    let (collection, recovery) = open(dir.path());
    assert!(recovery.lost, "the commit was acknowledged: the keys have it");
    assert_eq!(collection.version().serial, 6);
    assert_eq!(answers(&collection).len(), 6);
}

#[test]
fn a_missing_segment_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 3);
    fs::remove_file(dir.path().join(SEGMENT)).unwrap();
    let (collection, recovery) = open(dir.path());
    assert_eq!(recovery.cut[0].why, Damage::Missing);
    assert!(recovery.lost);
    assert_eq!(collection.len(), 0);
    collection.commit(Batch { changes: vec![update(1)], notes: vec![] }, Stamp(5)).unwrap();
}

#[test]
fn a_manifest_that_is_gone_is_made_anew_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let all = fill(dir.path(), 3);
    let manifest = dir.path().join("MANIFEST");
    fs::write(&manifest, "nonsense\n").unwrap();
    for gone in [false, true] {
        if gone {
            fs::remove_file(&manifest).unwrap();
        }
        let error = Collection::open(dir.path(), Options::default(), Stamp(5)).unwrap_err();
        assert!(error.to_string().contains("rebuild"), "{error}");
    }
    let (collection, recovery) =
        Collection::rebuild(dir.path(), Options::default(), Stamp(5)).unwrap();
    assert!(recovery.lost);
    assert_eq!(answers(&collection), all);
    drop(collection);
    assert_eq!(answers(&open(dir.path()).0), all);
}

#[test]
fn a_restored_backup_is_not_taken_for_what_it_was() {
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
fn keys_from_before_a_compaction_are_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 2);
    let old = tempfile::tempdir().unwrap();
    copy(&dir.path().join("keys"), &old.path().join("keys"));
    let (collection, _) = open(dir.path());
    let changes = vec![Change::Delete(Oid::new("g", "http://1"))];
    collection.commit(Batch { changes, notes: vec![] }, Stamp(6)).unwrap();
    // Long enough after for the tombstone to go: a replay could not know of it.
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
    assert!(collection.extents(6).unwrap().is_none(), "who missed the delete needs a snapshot");
    assert!(collection.extents(7).unwrap().is_some());
}

#[test]
fn what_a_killed_verification_left_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1);
    let left = dir.path().join("keys.verify");
    copy(&dir.path().join("keys"), &left);
    let (collection, _) = open(dir.path());
    assert!(!left.exists());
    assert_eq!(collection.verify().unwrap().problems, []);
    assert!(!left.exists());
}
