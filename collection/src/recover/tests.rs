//! Tests of recovery: logs that were cut, and logs with wrong bytes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use disk::faulty::{Fault, Faulty};
use tempfile::TempDir;

use super::*;
use crate::change::Version;
use crate::log::holes::Holes;
use crate::log::scan::Scan;
use crate::log::segment::Entry;
use crate::{Batch, Change, Collection, Note, Oid, Options};

const NOW: Stamp = Stamp(5);

/// Makes three commits, each of a local member and two members of one change each.
fn sample(is_closed: bool) -> TempDir {
    let (made, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options = Options { member_bytes_max: 1, ..Options::default() };
    let (collection, _) = Collection::open(made.path(), options, NOW).unwrap();
    for n in 0..3 {
        let delete = |n: u8| Change::Delete(Oid::new("g", &n.to_string()));
        let notes = vec![Note { key: vec![1], value: Some(vec![n]) }];
        let batch = Batch { changes: vec![delete(2 * n), delete(2 * n + 1)], notes };
        collection.commit(batch, NOW).unwrap();
    }
    if is_closed {
        collection.close();
    }
    for path in [Manifest::path_in, |dir: &Path| Segment::path_in(dir, 1)] {
        fs::copy(path(made.path()), path(dir.path())).unwrap();
    }
    dir
}

fn again(dir: &Path) -> Opened {
    open(&Disk::System, dir, NOW, Mode::Write, None).unwrap()
}

fn look(dir: &Path) -> Opened {
    open(&Disk::System, dir, NOW, Mode::Read, None).unwrap()
}

fn entries(opened: &Opened) -> Vec<Entry> {
    opened.tail.active.entries().clone()
}

#[test]
fn an_unacknowledged_end_is_cut_at_any_byte() {
    let dir = sample(false);
    let path = Segment::path_in(dir.path(), 1);
    let (bytes, manifest) =
        (fs::read(&path).unwrap(), Manifest::read(dir.path()).unwrap().unwrap());
    let all = entries(&again(dir.path()));
    let mut ends = vec![0];
    ends.extend(all.iter().filter(|it| it.end_of_commit).map(Entry::end));
    assert_eq!((all.len(), ends.len()), (9, 4));
    for length in 0..=bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        manifest.write(&Disk::System, dir.path()).unwrap();
        let opened = again(dir.path());
        let commits = ends.iter().filter(|it| **it <= length as u64).count() - 1;
        let end = ends[commits];
        let last = entries(&opened).last().map_or(0, |it| it.last);
        assert_eq!((last, opened.tail.end), (2 * commits as u64, end));
        let (version, skips) = (opened.tail.version(), &opened.tail.manifest.skips);
        assert_eq!(version.epoch, manifest.epoch);
        assert_eq!(version.serial, manifest.reserved, "a consumer may know the cut changes");
        assert_eq!(skips.as_slice(), [(last, manifest.reserved)]);
        let cut: Vec<_> = opened.cut.iter().map(|it| (it.offset, it.bytes)).collect();
        let rest = length as u64 - end;
        assert_eq!(cut, if rest == 0 { vec![] } else { vec![(end, rest)] }, "at byte {length}");
        assert!(opened.damaged.is_empty() && opened.tail.manifest.missing.is_empty());
        assert_eq!(fs::metadata(&path).unwrap().len(), end);
    }
}

#[test]
fn a_lost_acknowledged_end_is_a_hole_at_any_byte() {
    let dir = sample(true);
    let path = Segment::path_in(dir.path(), 1);
    let (bytes, manifest) =
        (fs::read(&path).unwrap(), Manifest::read(dir.path()).unwrap().unwrap());
    let all = entries(&look(dir.path()));
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let opened = look(dir.path());
        let there = all.iter().filter(|it| it.end() <= length as u64);
        let last = there.clone().map(|it| it.last).max().unwrap_or(0);
        let holes = opened.log.view().holes();
        assert_eq!(holes, Holes::of([(last, 6)]), "at byte {length}");
        assert_eq!((opened.tail.serial, opened.tail.commit), (6, 3), "never used again");
        assert_eq!(opened.tail.version().epoch, manifest.epoch);
        let sound = entries(&opened);
        assert!(there.eq(sound.iter().filter(|it| it.end() <= length as u64 && all.contains(it))));
        assert!(opened.cut.is_empty() && !opened.damaged.is_empty());
        // For some lengths the log is also opened to write, twice.
        for _ in 0..if length % 10 == 0 { 2 } else { 0 } {
            let opened = again(dir.path());
            assert_eq!(opened.log.view().holes(), holes, "at byte {length}");
            assert_eq!(opened.tail.version().epoch, manifest.epoch);
        }
        manifest.write(&Disk::System, dir.path()).unwrap();
    }
}

/// The first bytes of an unacknowledged commit stand at the end of a sector that was not written any
/// more, and the rest in sectors that were.
#[test]
fn a_commit_that_lacks_its_first_bytes_is_cut() {
    let (made, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (collection, _) = Collection::open(made.path(), Options::default(), NOW).unwrap();
    let (path, mut lacking) = (Segment::path_in(dir.path(), 1), BTreeSet::new());
    for n in 0..4_000 {
        let change = Change::Delete(Oid::new("g", &n.to_string()));
        collection.commit(Batch { changes: vec![change], notes: vec![] }, NOW).unwrap();
        let last = *collection.inner.log.view().segments[0].entries().last().unwrap();
        let zeros = usize::try_from(512 - last.offset % 512).unwrap();
        if last.end() % 512 < 8 || 8 < zeros || !lacking.insert(zeros) {
            continue;
        }
        Manifest::read(made.path()).unwrap().unwrap().write(&Disk::System, dir.path()).unwrap();
        let mut bytes = fs::read(Segment::path_in(made.path(), 1)).unwrap();
        let start = usize::try_from(last.offset).unwrap();
        bytes[start..start + zeros].fill(0);
        fs::write(&path, bytes).unwrap();
        let opened = again(dir.path());
        assert!(opened.damaged.is_empty(), "{zeros} zeros: {:?}", opened.damaged);
        assert_eq!(opened.cut.len(), 1, "{zeros} zeros");
        if lacking.len() == 8 {
            return;
        }
    }
    panic!("only {lacking:?} bytes were lacking");
}

/// An opening leaves damage at the end in place, and later commits survive the next opening.
#[test]
fn commits_after_a_torn_end_stay() {
    let dir = sample(true);
    let path = Segment::path_in(dir.path(), 1);
    let (bytes, manifest) =
        (fs::read(&path).unwrap(), Manifest::read(dir.path()).unwrap().unwrap());
    let from = entries(&look(dir.path()))[6].offset;
    for length in usize::try_from(from).unwrap()..bytes.len() {
        let (made, number) = (tempfile::tempdir().unwrap(), length.to_string());
        fs::write(Segment::path_in(made.path(), 1), &bytes[..length]).unwrap();
        manifest.write(&Disk::System, made.path()).unwrap();
        let (collection, _) = Collection::open(made.path(), Options::default(), NOW).unwrap();
        let mut record = soif::Record::new("FILE", number.clone());
        record.push(crate::GATHERER_ID, "g");
        // The record is longer than the missing bytes.
        record.push("Noise", "~".repeat(bytes.len()));
        let batch = Batch { changes: vec![Change::Update(record)], notes: vec![] };
        collection.commit(batch, NOW).unwrap();
        let before = collection.inner.log.view().damaged_members();
        drop(collection);
        let (collection, _) = Collection::open(made.path(), Options::default(), NOW).unwrap();
        assert_eq!(collection.inner.log.view().damaged_members(), before, "at byte {length}");
        assert!(collection.get(&Oid::new("g", &number)).unwrap().is_some(), "at byte {length}");
    }
}

/// Members are in the place of others, or cut out: the key index knows the lost objects.
#[test]
fn misplaced_members_cost_only_the_members_that_they_overwrote() {
    let sample = || {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), NOW).unwrap();
        for n in 100..120 {
            let mut record = soif::Record::new("FILE", n.to_string());
            record.push(crate::GATHERER_ID, "g");
            let batch = Batch { changes: vec![Change::Update(record)], notes: vec![] };
            collection.commit(batch, NOW).unwrap();
        }
        collection.close();
        dir
    };
    // For each position, `places` has the number of the member that is there after the damage.
    for (places, lost) in [
        (vec![8, 1, 2, 3, 4, 5, 6, 7], vec![0]),
        (vec![0, 1, 5, 6, 4, 5, 6, 7], vec![2, 3]),
        (vec![0, 1, 2, 3, 4, 4, 6, 7], vec![5]),
        (vec![0, 1, 2, 3, 4, 1, 6, 7], vec![5]),
        (vec![0, 1, 2, 4, 5, 6, 7], vec![3]),
    ] {
        let dir = sample();
        let path = Segment::path_in(dir.path(), 1);
        let (bytes, all) = (fs::read(&path).unwrap(), entries(&look(dir.path())));
        let place = |it: u64| usize::try_from(it).unwrap();
        let part = |n: usize| bytes[place(all[n].offset)..place(all[n].end())].to_vec();
        let mut made: Vec<u8> = places.iter().copied().flat_map(part).collect();
        made.extend((8..all.len()).flat_map(part));
        fs::write(&path, made).unwrap();
        let (collection, _) = Collection::open(dir.path(), Options::default(), NOW).unwrap();
        let expected: Vec<Oid> =
            lost.iter().map(|n| Oid::new("g", &(100 + n).to_string())).collect();
        let found = collection.lost().unwrap();
        assert!(expected.iter().all(|it| found.contains(it)), "{places:?}: {found:?}");
        // If no bytes are left for the lost members, the members after them are fetched again too.
        assert!(places.len() < 8 || found == expected, "{places:?}: {found:?}");
        let holes = collection.inner.log.view().holes();
        assert!(lost.iter().all(|n| holes.has(n + 1)), "{places:?}: {holes}");
    }
}

#[test]
fn the_last_segment_may_be_gone() {
    for is_closed in [true, false] {
        let dir = sample(is_closed);
        let manifest = Manifest::read(dir.path()).unwrap().unwrap();
        fs::remove_file(Segment::path_in(dir.path(), 1)).unwrap();
        let opened = again(dir.path());
        let last = if is_closed { 6 } else { manifest.reserved };
        assert_eq!(opened.log.view().holes(), Holes::of([(0, last)]));
        assert_eq!(opened.tail.version(), Version { epoch: manifest.epoch, serial: last });
        assert!(!opened.damaged.is_empty());
    }
}

#[test]
fn the_copy_of_the_manifest_alone_reveals_missing_segments() {
    let dir = sample(true);
    let manifest = Manifest::read(dir.path()).unwrap().unwrap();
    fs::remove_file(Segment::path_in(dir.path(), 1)).unwrap();
    fs::rename(Manifest::path_in(dir.path()), dir.path().join("MANIFEST.copy")).unwrap();
    let opened = again(dir.path());
    assert_eq!(opened.log.view().holes(), Holes::of([(0, 6)]));
    assert_eq!(opened.tail.version(), Version { epoch: manifest.epoch, serial: 6 });
    // A damaged copy is not a sign of a new folder.
    fs::remove_file(Manifest::path_in(dir.path())).unwrap();
    fs::write(dir.path().join("MANIFEST.copy"), "what was that?").unwrap();
    for number in 1..9 {
        // The file may not exist.
        let _ = fs::remove_file(Segment::path_in(dir.path(), number));
    }
    let error = open(&Disk::System, dir.path(), NOW, Mode::Write, None).unwrap_err();
    assert!(matches!(error, Error::Manifest { .. }), "{error}");
}

#[test]
fn a_log_on_a_full_disk_is_served() {
    for is_closed in [true, false] {
        let dir = sample(is_closed);
        let manifest = Manifest::read(dir.path()).unwrap().unwrap();
        let faulty = Faulty::new(dir.path(), 1);
        faulty.fail(Some(Fault::Full));
        let mut opened =
            open(&Disk::Faulty(faulty.clone()), dir.path(), NOW, Mode::Write, None).unwrap();
        assert_eq!(Manifest::read(dir.path()).unwrap().unwrap(), manifest);
        let view = opened.log.view();
        assert_eq!(Scan::new(view, 0).filter(Result::is_ok).count(), 6);
        assert!(opened.tail.ensure_writable(&opened.log).is_err());
        faulty.fail(None);
        opened.tail.ensure_writable(&opened.log).unwrap();
        let written = Manifest::read(dir.path()).unwrap().unwrap();
        assert!(opened.tail.serial <= written.serial && written.serial < written.reserved);
    }
}

#[test]
fn commits_go_on_after_a_damaged_end_and_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let faulty = Faulty::new(dir.path(), 1);
    let disk = Disk::Faulty(faulty.clone());
    let opened = Collection::open_on(&disk, dir.path(), Options::default(), NOW, Mode::Write);
    let (collection, _) = opened.unwrap();
    let commit = |n: u8| {
        let changes = vec![Change::Delete(Oid::new("g", &n.to_string()))];
        collection.commit(Batch { changes, notes: vec![] }, NOW)
    };
    commit(1).unwrap();
    let path = Segment::path_in(dir.path(), 1);
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    collection.scrub(u64::MAX).unwrap();
    assert_eq!(collection.health().damaged.len(), 1);
    faulty.fail(Some(Fault::FullLate));
    assert!(commit(2).is_err());
    faulty.fail(None);
    assert!(matches!(collection.purge(None, NOW), Err(Error::Damaged { .. })));
    commit(3).unwrap();
    collection.heal(NOW).unwrap();
    collection.purge(None, NOW).unwrap();
    assert_eq!(collection.verify().unwrap().problems, []);
}

#[test]
fn a_flip_at_any_byte_costs_one_member() {
    for is_closed in [true, false] {
        let dir = sample(is_closed);
        let path = Segment::path_in(dir.path(), 1);
        let bytes = fs::read(&path).unwrap();
        let manifest = Manifest::read(dir.path()).unwrap().unwrap();
        let all = entries(&look(dir.path()));
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            fs::write(&path, &bad).unwrap();
            let opened = look(dir.path());
            let hit = all.iter().find(|it| (at as u64) < it.end()).unwrap();
            let found = entries(&opened);
            assert_eq!(found.len(), all.len(), "byte {at}");
            assert!(found.iter().zip(&all).all(|(a, b)| a == b || a.offset == hit.offset));
            let damaged = opened.tail.active.damaged();
            assert_eq!(damaged.iter().map(|it| it.0.offset).collect::<Vec<_>>(), [hit.offset]);
            let is_last = hit.end() == bytes.len() as u64 && !is_closed;
            // Only a sound header tells where the last member's serials end.
            let last = if is_last { manifest.reserved } else { hit.last };
            let holes = opened.log.view().holes();
            let either = [Holes::of([(hit.base, hit.last)]), Holes::of([(hit.base, last)])];
            assert!(either.contains(&holes), "byte {at}: {holes}");
            assert_eq!(opened.tail.version().epoch, manifest.epoch);
            assert!(6 <= opened.tail.serial && 3 <= opened.tail.commit && opened.cut.is_empty());
            assert_eq!(opened.tail.end, bytes.len() as u64);
        }
    }
}

#[test]
fn a_damaged_manifest_is_replaced_by_its_copy() {
    let dir = sample(true);
    let before = again(dir.path()).tail.manifest;
    fs::write(Manifest::path_in(dir.path()), "what was that?").unwrap();
    let opened = again(dir.path());
    assert_eq!((before.serial <= opened.tail.serial, entries(&opened).len()), (true, 9));
    let named = &opened.damaged[0];
    assert!(opened.damaged.len() == 1 && named.file.ends_with("MANIFEST"), "{named}");
    drop(opened);
    let after = Manifest::read(dir.path()).unwrap().unwrap();
    assert_eq!((after.epoch, after.horizon), (before.epoch, before.horizon));
    // The copy is useless if its segments are missing.
    fs::write(Manifest::path_in(dir.path()), "what was that?").unwrap();
    fs::rename(Segment::path_in(dir.path(), 1), Segment::path_in(dir.path(), 7)).unwrap();
    let error = open(&Disk::System, dir.path(), NOW, Mode::Write, None).unwrap_err();
    assert!(error.to_string().contains("harvest collection repair"), "{error}");
    let later = Stamp(NOW.0 + 1);
    let rebuilt = open(&Disk::System, dir.path(), later, Mode::Rebuild, None).unwrap();
    assert!(rebuilt.tail.manifest.lost && after.epoch < rebuilt.tail.manifest.epoch);
}
