//! Tests of the disk with faults: durable data, possible losses, and failures.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use disk::faulty::{Fault, Faulty, Item, Target, World, restore, world};
use disk::{Disk, File};
use tempfile::TempDir;

const SEEDS: u64 = 400;

fn disk(seed: u64) -> (TempDir, Arc<Faulty>, Disk) {
    let dir = tempfile::tempdir().unwrap();
    let faulty = Faulty::new(dir.path(), seed);
    let disk = Disk::Faulty(faulty.clone());
    (dir, faulty, disk)
}

fn bytes<'a>(world: &'a World, name: &str) -> Option<&'a [u8]> {
    match world.get(Path::new(name))? {
        Item::File(content) => Some(&content.bytes),
        Item::Directory | Item::Symlink(_) => panic!("{name} is no file"),
    }
}

/// Makes a durable file, with its name.
fn durable(disk: &Disk, path: &Path, bytes: &[u8]) -> File {
    let file = disk.create(path).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_name(path).unwrap();
    file
}

/// Returns the possible contents of a durable file after `work` and a power cut.
fn left_of_file(before: &[u8], work: impl Fn(&File)) -> BTreeSet<Vec<u8>> {
    let left = (0..SEEDS).map(|seed| {
        let (dir, faulty, disk) = disk(seed);
        work(&durable(&disk, &dir.path().join("a"), before));
        bytes(&faulty.cut().1, "a").unwrap().to_vec()
    });
    left.collect()
}

#[test]
fn an_append_may_be_lost_wholly_or_partly_or_leave_sectors_or_zeros() {
    let all = [&[1; 700][..], &[2; 1000], &[3; 900]].concat();
    let left = left_of_file(&all[..700], |file| file.write_all_at(&all[700..], 700).unwrap());
    assert!(left.iter().all(|it| it.starts_with(&all[..700])), "what is durable stays");
    assert!(left.contains(&all) && left.contains(&all[..700]));
    assert!(left.iter().any(|it| it.len() < all.len() && all.starts_with(it) && 700 < it.len()));
    assert!(left.contains(&[&all[..700], &[0; 1900]].concat()), "zeros");
    assert!(left.contains(&[&all[..700], &[0; 836], &all[1536..]].concat()), "sectors");
}

#[test]
fn old_bytes_may_remain_after_an_overwrite_or_a_cut() {
    let left = left_of_file(&[1; 1000], |file| file.write_all_at(&[2; 1000], 0).unwrap());
    assert!(left.iter().all(|it| it.len() == 1000 && it.iter().all(|it| [1, 2].contains(it))));
    assert!(left.contains(&vec![1; 1000]) && left.contains(&vec![2; 1000]) && 2 < left.len());
    let left = left_of_file(&[1; 1000], |file| {
        file.set_len(10).unwrap();
        file.write_all_at(&[2; 90], 10).unwrap();
    });
    assert!(left.iter().all(|it| it[..10] == [1; 10]), "the part that was never cut");
    assert!(left.contains(&vec![1; 1000]), "nothing was done");
    assert!(left.iter().any(|it| it.len() < 100), "it was cut");
    assert!(left.contains(&[[1; 10].as_slice(), &[2; 90]].concat()), "all was done");
}

#[test]
fn data_of_a_failed_sync_is_lost_until_it_is_written_again() {
    let left = |again: bool| {
        left_of_file(&[1; 9000], |file| {
            let Disk::Faulty(faulty) = file.disk() else { unreachable!() };
            file.write_all_at(&[2; 100], 5000).unwrap();
            faulty.fail(Some(Fault::Unsynced));
            file.sync_data().unwrap_err();
            faulty.fail(None);
            if again {
                file.write_all_at(&[2; 100], 5000).unwrap();
            }
            file.sync_data().unwrap();
        })
    };
    let now = [&[1; 5000][..], &[2; 100], &[1; 3900]].concat();
    let ruined = [&[1; 4096][..], &[0; 4096], &[1; 808]].concat();
    assert_eq!(left(false), BTreeSet::from([vec![1; 9000], ruined]));
    assert_eq!(left(true), BTreeSet::from([now]));
}

/// Makes a tree with every kind of file, and removes another tree.
fn plant(disk: &Disk, top: &Path) {
    let at = |name: &str| top.join(name);
    disk.make_directories(&at("one/two"), Some(0o750)).unwrap();
    let file = disk.create_new(&at("one/two/file"), 0o600).unwrap();
    file.write_all_at(b"bytes", 3).unwrap();
    file.seal(0o640, None, UNIX_EPOCH + Duration::from_secs(1_000)).unwrap();
    disk.link(&at("one/two/file"), &at("again")).unwrap();
    disk.symlink(Path::new("one/two"), &at("link")).unwrap();
    disk.rename(&at("one"), &at("three")).unwrap();
    disk.replace(&at("three/two/new"), &at("three/two/new~"), 0o600, b"new").unwrap();
    disk.remove_tree(&at("gone")).unwrap();
}

fn check_planted(world: &World, dir: &Path) {
    let names: Vec<&str> = world.keys().map(|it| it.to_str().unwrap()).collect();
    let expected = ["again", "link", "three", "three/two", "three/two/file", "three/two/new"];
    assert_eq!(names, expected);
    restore(world, dir).unwrap();
    let found = fs::metadata(dir.join("again")).unwrap();
    assert_eq!(found.ino(), fs::metadata(dir.join("three/two/file")).unwrap().ino());
    assert_eq!(fs::read_link(dir.join("link")).unwrap(), Path::new("one/two"));
    assert_eq!((found.nlink(), found.mode() & 0o7777, found.mtime()), (2, 0o640, 1_000));
    assert_eq!(fs::read(dir.join("again")).unwrap(), b"\0\0\0bytes");
    assert_eq!(fs::read(dir.join("three/two/new")).unwrap(), b"new");
}

#[test]
fn durable_data_of_every_kind_remains() {
    for seed in 0..20 {
        let (dir, faulty, disk) = disk(seed);
        fs::create_dir_all(dir.path().join("gone/below")).unwrap();
        plant(&disk, dir.path());
        disk.sync_file_system(dir.path()).unwrap();
        let after = tempfile::tempdir().unwrap();
        let (point, left) = faulty.cut();
        assert_eq!(point, "at the end");
        check_planted(&left, after.path());
        assert!(disk.sync(dir.path()).is_err() && faulty.is_cut());
        // A direct look gives the same names.
        let looked: Vec<_> = world(dir.path()).into_keys().collect();
        assert_eq!(looked, left.into_keys().collect::<Vec<_>>());
    }
}

#[test]
fn names_in_one_directory_may_remain_without_those_in_another() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let (dir, faulty, disk) = disk(seed);
        let at = |name: &str| dir.path().join(name);
        for name in ["from", "to"] {
            disk.make_directories(&at(name), None).unwrap();
        }
        durable(&disk, &at("from/a"), b"a");
        durable(&disk, &at("to/b"), b"old");
        disk.rename(&at("from/a"), &at("to/b")).unwrap();
        let (_, left) = faulty.cut();
        seen.insert((bytes(&left, "from/a").is_some(), bytes(&left, "to/b").unwrap().to_vec()));
    }
    let both = |it: bool| [(it, b"a".to_vec()), (it, b"old".to_vec())];
    assert_eq!(seen, both(true).into_iter().chain(both(false)).collect());
}

#[test]
fn a_removed_file_may_come_back_with_its_contents() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let (dir, faulty, disk) = disk(seed);
        let path = dir.path().join("a");
        let file = durable(&disk, &path, b"old");
        file.write_all_at(b"new", 0).unwrap();
        disk.remove_file(&path).unwrap();
        seen.insert(bytes(&faulty.cut().1, "a").map(<[u8]>::to_vec));
    }
    assert!(seen.contains(&None) && seen.contains(&Some(b"old".to_vec())));
    assert!(seen.contains(&Some(b"new".to_vec())));
}

#[test]
fn files_of_others_are_noticed_and_mostly_remain() {
    let mut kept = 0;
    for seed in 0..100 {
        let (dir, faulty, disk) = disk(seed);
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::write(dir.path().join("d/other"), "others").unwrap();
        fs::write(dir.path().join("LOCK"), "1").unwrap();
        fs::write(dir.path().join("mine"), "written").unwrap();
        disk.open_to_read(&dir.path().join("mine")).unwrap().sync_all().unwrap();
        disk.sync(dir.path()).unwrap();
        let (_, left) = faulty.cut();
        assert_eq!(bytes(&left, "mine"), Some(&b"written"[..]));
        assert!(!left.contains_key(Path::new("LOCK")));
        kept += u32::from(left.contains_key(Path::new("d/other")));
    }
    assert!((60..100).contains(&kept), "{kept}");
}

#[test]
fn the_power_is_cut_at_an_act_of_a_phase_with_a_word() {
    let (dir, faulty, disk) = disk(1);
    let write = |name: &str| {
        let file = disk.create(&dir.path().join(name));
        file.and_then(|it| it.write_all_at(b"bytes", 0))
    };
    faulty.cut_at(Target { phase: "second", word: "write run", acts: 2 });
    for phase in ["first", "second"] {
        faulty.enter(phase);
        write("run-1").and_then(|()| write("other")).unwrap();
    }
    assert_eq!(faulty.acts(), 8);
    assert!(write("run-2").is_err() && faulty.is_cut());
    assert_eq!(faulty.cut().0, "second: write run-2");
    assert!(write("run-3").is_err() && !dir.path().join("run-3").exists());
}

#[test]
fn each_fault_fails_as_on_real_disks() {
    let (dir, faulty, disk) = disk(1);
    let at = |name: &str| dir.path().join(name);
    let file = durable(&disk, &at("a"), &[1; 100]);
    let written = || file.write_all_at(&[2; 40], 80).map_err(|it| it.kind());
    let synced = || file.sync_all().map_err(|it| it.kind());
    let opened = || disk.open(&at("a")).map(drop).map_err(|it| it.raw_os_error());
    let read = || disk.open_to_read(&at("a")).map(drop).map_err(|it| it.raw_os_error());

    faulty.fail_after(Fault::Full, faulty.acts() + 1);
    assert_eq!(written(), Ok(()), "there is room for one more");
    file.set_len(100).unwrap();
    assert_eq!((written(), synced()), (Err(ErrorKind::StorageFull), Ok(())));
    assert_eq!(file.length().unwrap(), 100, "the part that fits is written");
    let made: BTreeSet<bool> =
        (0..99).map(|n| disk.create(&at(&format!("n{n}"))).is_ok()).collect();
    assert_eq!(made.len(), 2, "names may fit or not");

    faulty.fail(Some(Fault::FullLate));
    assert_eq!((written(), synced()), (Ok(()), Err(ErrorKind::StorageFull)));
    faulty.fail(Some(Fault::Unsynced));
    assert!(written().is_ok() && synced().is_err() && disk.sync_file_system(dir.path()).is_err());
    faulty.fail(Some(Fault::ReadOnly));
    let read_only = Err(ErrorKind::ReadOnlyFilesystem);
    assert_eq!((written(), synced(), read()), (read_only, read_only, Ok(())));
    assert!(opened().is_err() && disk.remove_file(&at("a")).is_err());
    faulty.fail(Some(Fault::NoFiles));
    assert_eq!((opened(), read(), written()), (Err(Some(24)), Err(Some(24)), Ok(())));
    faulty.fail(None);
    assert_eq!((opened(), written(), synced()), (Ok(()), Ok(()), Ok(())));
}

#[test]
fn space_is_taken_and_given_back() {
    let (dir, faulty, disk) = disk(1);
    let path = dir.path().join("a");
    let file = disk.create(&path).unwrap();
    faulty.leave_free(Some(100));
    let free = || disk.free_bytes(&file).unwrap();
    file.write_all_at(&[1; 60], 0).unwrap();
    file.write_all_at(&[2; 70], 0).unwrap();
    assert_eq!(free(), 30);
    assert_eq!(file.write_all_at(&[3; 31], 70).unwrap_err().kind(), ErrorKind::StorageFull);
    file.set_len(50).unwrap();
    disk.link(&path, &dir.path().join("b")).unwrap();
    disk.remove_file(&path).unwrap();
    assert_eq!(free(), 65, "the file still has a name, so only the cut gave space back");
    disk.remove_file(&dir.path().join("b")).unwrap();
    assert_eq!(free(), 115);
    faulty.leave_free(None);
    assert_ne!(free(), 115);
}

#[test]
fn unreadable_ranges_end_a_read() {
    let (dir, faulty, disk) = disk(1);
    let path = dir.path().join("a");
    let file = durable(&disk, &path, &[1; 100]);
    faulty.fail_reading(&path, 40..60);
    let mut bytes = [0; 100];
    let (read, error) = file.read_up_to(&mut bytes, 0);
    assert_eq!((read, error.and_then(|it| it.raw_os_error())), (40, Some(5)));
    assert_eq!(file.read_up_to(&mut bytes, 60).0, 40);
    assert!(file.read_exact_at(&mut bytes[..10], 35).is_err());
    file.read_exact_at(&mut bytes[..10], 30).unwrap();
}
