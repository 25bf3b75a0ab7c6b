//! Tests of fetching: interrupted, too large and false versions, readers, and removal of old
//! generations.

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;

use net::identity::Identity;

use super::super::chunk::Extent;
use super::super::error::Error;
use super::super::fetch::Fetch;
use super::super::generation::Lease;
use super::super::levels::Builder;
use super::super::manifest::{Encoder, Entry, EntryKind};
use super::super::mode::Mode;
use super::super::path::EntryPath;
use super::super::publish::{Draft, Publishing};
use super::super::store::{Options, Store};
use super::{Origin, TestEntry, Tree, current, fetch, file, hasty, read, sample};
use crate::replica::Failure;
use crate::version::{Hash, Kind, Name, Number, Version};

fn store(top: &tempfile::TempDir, options: Options) -> Arc<Store> {
    Arc::new(hasty(&top.path().join("replica"), options).unwrap())
}

fn large(seed: u64) -> Tree {
    [("large".to_owned(), file(1_000_000, seed))].into()
}

#[test]
fn chunks_of_an_unfinished_version_serve_the_next_one_and_survive_a_restart() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let replica = store(&top, Options::default());
    let first = origin.publish(&large(1), 1);
    let mut half = Fetch::begin(&replica, &first).unwrap();
    let mut put = 0;
    let mut before = u64::MAX;
    while put < 30 {
        for wanted in half.wanted(4).unwrap() {
            replica.put(&wanted.hash, &origin.store.read(&wanted.hash).unwrap().unwrap()).unwrap();
            put += 1;
        }
        let missing = half.missing_bytes().unwrap_or(u64::MAX);
        assert!(missing <= before);
        before = missing;
    }
    assert!((1..1_000_000).contains(&before), "{before} bytes are missing");
    assert!(half.switch().unwrap().is_none() && replica.current().is_none());
    drop(half);
    let all = |version: &Version| {
        let other = tempfile::tempdir().unwrap();
        fetch(&origin.store, &store(&other, Options::default()), version).unwrap().len()
    };
    let mut tree = large(1);
    tree.insert("small".to_owned(), file(10, 2));
    let second = origin.publish(&tree, 2);
    let whole = all(&second);
    drop(replica);
    let replica = store(&top, Options::default());
    let asked = fetch(&origin.store, &replica, &second).unwrap().len();
    // The chunks of the manifest differ.
    assert!(
        whole - put <= asked && asked <= whole - put + 3,
        "{asked} of {whole}, {put} were there"
    );
    assert_eq!(replica.staging().bytes(), 0);
    assert_eq!(current(&replica), tree);
}

#[test]
fn versions_beyond_the_limits_are_refused() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let mut tree = large(1);
    tree.insert("a".to_owned(), TestEntry::Directory);
    let version = origin.publish(&tree, 1);
    for (bytes_max, entries_max, is_taken) in
        [(1_000_000, 1, false), (999_999, 2, false), (1_000_000, 2, true)]
    {
        let options = Options { bytes_max, entries_max, ..Options::default() };
        let replica = store(&top, options);
        let fetched = fetch(&origin.store, &replica, &version);
        assert_eq!(fetched.is_ok(), is_taken);
        if let Err(error) = fetched {
            assert!(matches!(error, Error::Bounds { bytes_max: b, .. } if b == bytes_max));
            assert_eq!(error.failure(), Failure::Content);
        }
        drop(replica);
        let publisher = hasty(&top.path().join("publisher"), options).unwrap();
        let publishing = Publishing::default();
        let draft = Draft::make(&Arc::new(publisher), &origin.directory, publishing);
        assert_eq!(draft.is_ok(), is_taken);
    }
}

/// Makes a false version, with `claimed` bytes, and checks that nobody switches to it.
fn check_lie(bytes: u64, entries: &[Entry], chunks: &[(Vec<u8>, u32)], claimed: u64) {
    let (mut encoder, mut stream) = (Encoder::default(), Vec::new());
    for entry in entries {
        encoder.entry(entry, &mut stream).unwrap();
        let EntryKind::File { .. } = entry.kind else { continue };
        for (chunk, length) in chunks {
            encoder.extent(Extent { hash: Hash::of(chunk), bytes: *length }, &mut stream).unwrap();
        }
    }
    assert_eq!(encoder.finish(&mut stream).unwrap().bytes, bytes);
    let mut levels = Builder::new(Kind::Tree);
    levels.feed(&stream);
    let (root, pieces) = levels.finish().unwrap();
    let identity = Identity::of(&[7; 32]).unwrap();
    let number = Number { epoch: 1, sequence: 1 };
    let name = Name::new("a").unwrap();
    let version = Version::sign(&identity, name, Kind::Tree, number, claimed, root);
    let top = tempfile::tempdir().unwrap();
    let replica = store(&top, Options::default());
    let mut fetch = Fetch::begin(&replica, &version).unwrap();
    pieces.iter().for_each(|it| replica.put(&it.hash, &it.bytes).unwrap());
    chunks.iter().for_each(|(it, _)| replica.put(&Hash::of(it), it).unwrap());
    let error = fetch.switch().unwrap_err();
    assert_eq!(error.failure(), Failure::Content, "{error}");
    assert!(replica.current().is_none() && !replica.current_link().exists());
}

#[test]
fn a_version_that_lies_about_itself_is_never_switched_to() {
    let path = EntryPath::new("a").unwrap();
    let kind = |bytes| EntryKind::File { mode: Mode::PLAIN, bytes, modified: 0 };
    let entry = |bytes| Entry { path: path.clone(), kind: kind(bytes) };
    // Another length of all files.
    check_lie(5, &[entry(5)], &[(b"hello".to_vec(), 5)], 6);
    // Another length of a chunk.
    check_lie(4, &[entry(4)], &[(b"hello".to_vec(), 4)], 4);
    check_lie(6, &[entry(6)], &[(b"hello".to_vec(), 6)], 6);
    // An invalid manifest.
    let mut levels = Builder::new(Kind::Tree);
    levels.feed(b"\x03");
    let (root, pieces) = levels.finish().unwrap();
    let identity = Identity::of(&[7; 32]).unwrap();
    let number = Number { epoch: 1, sequence: 1 };
    let name = Name::new("a").unwrap();
    let version = Version::sign(&identity, name, Kind::Tree, number, 0, root);
    let top = tempfile::tempdir().unwrap();
    let replica = store(&top, Options::default());
    replica.put(&root, &pieces[0].bytes).unwrap();
    let error = Fetch::begin(&replica, &version).unwrap().wanted(9).unwrap_err();
    assert!(matches!(&error, Error::Manifest(_)) && error.failure() == Failure::Content);
    let other = replica.put(&root, b"other").unwrap_err();
    assert!(matches!(other, Error::WrongHash(hash) if hash == root));
}

#[test]
fn old_generations_are_removed_unless_they_are_kept_or_leased() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let replica = store(&top, Options { generations_kept: 1, ..Options::default() });
    let there = || fs::read_dir(top.path().join("replica/generations")).unwrap().count();
    assert!(matches!(Lease::take(&replica.current_link()), Err(Error::NoTree(_))));
    let (mut leases, mut second) = (Vec::new(), Vec::new());
    for sequence in 1..=5 {
        let version = origin.publish(&large(sequence), sequence);
        let asked = fetch(&origin.store, &replica, &version).unwrap();
        let left = replica.remove_old().unwrap();
        assert_eq!(left, usize::from(4 <= sequence), "{sequence}");
        if sequence == 2 {
            leases.push(Lease::take(&replica.current_link()).unwrap());
            second = asked;
        }
    }
    // The present one, the one before, and the one with a lease.
    assert_eq!(there(), 3);
    assert_eq!(read(leases[0].tree()), large(2));
    // The chunks of an old generation can be read until it is removed.
    let is_there = |hash: &Hash| replica.read(hash).unwrap().is_some();
    assert!(second.iter().all(is_there));
    leases.clear();
    assert_eq!(replica.remove_old().unwrap(), 0);
    assert_eq!((there(), current(&replica)), (2, large(5)));
    assert!(!second.is_empty() && !second.iter().any(is_there));
}

/// Checks that the chunks of kept versions are found while versions come and go.
#[test]
fn chunks_are_read_while_generations_come_and_go() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let replica = store(&top, Options { generations_kept: 1, ..Options::default() });
    let trees = [sample(1), sample(2)];
    let hashes: Vec<Hash> = trees
        .iter()
        .flat_map(Tree::values)
        .filter_map(|it| match it {
            TestEntry::File { bytes, .. } if (1..4_000).contains(&bytes.len()) => {
                Some(Hash::of(bytes))
            }
            _ => None,
        })
        .collect();
    assert!(3 < hashes.len());
    for (tree, sequence) in trees.iter().zip(1..) {
        fetch(&origin.store, &replica, &origin.publish(tree, sequence)).unwrap();
    }
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    for hash in &hashes {
                        assert!(
                            replica.read(hash).unwrap().is_some_and(|it| Hash::of(&it) == *hash)
                        );
                    }
                }
            });
        }
        for sequence in 3..40 {
            let tree = &trees[usize::try_from(sequence - 1).unwrap() % 2];
            fetch(&origin.store, &replica, &origin.publish(tree, sequence)).unwrap();
            replica.remove_old().unwrap();
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(replica.damaged(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_store_has_one_process_and_one_draft() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let dir = top.path().join("origin/trees/a");
    assert!(matches!(Store::open(&dir, Options::default()), Err(Error::InUse(it, _)) if it == dir));
    super::write(&origin.directory, &large(1));
    let make = || Draft::make(&origin.store, &origin.directory, Publishing::default()).unwrap();
    let lost = make();
    let other = make();
    let version = origin.sign(&lost, 1);
    assert!(lost.commit(&version).is_err());
    assert!(origin.store.current().is_none());
    other.commit(&version).unwrap();
    assert_eq!(current(&origin.store), large(1));
    // A version with other content is refused, too.
    super::write(&origin.directory, &large(2));
    let error = make().commit(&version).unwrap_err();
    assert!(matches!(error, Error::OtherVersion(_)), "{error}");
    assert_eq!(current(&origin.store), large(1));
}

#[test]
fn operations_stop_when_the_daemon_ends() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let replica = store(&top, Options::default());
    let version = origin.publish(&large(1), 1);
    fetch(&origin.store, &replica, &version).unwrap();
    let next = origin.publish(&large(2), 2);
    let mut fetch = Fetch::begin(&replica, &next).unwrap();
    let wanted = fetch.wanted(1).unwrap();
    replica.put(&wanted[0].hash, &origin.store.read(&wanted[0].hash).unwrap().unwrap()).unwrap();
    replica.stop();
    origin.store.stop();
    let draft = Draft::make(&origin.store, &origin.directory, Publishing::default());
    assert!(matches!(draft, Err(Error::Stopped)));
    assert!(matches!(replica.verify(), Err(Error::Stopped)));
    assert!(matches!(fetch.wanted(9), Err(Error::Stopped)));
    // Chunks can still be read.
    assert!(replica.read(&version.root).unwrap().is_some());
    assert_eq!(current(&replica), large(1));
}

#[test]
fn holes_in_files_take_no_room() {
    const FILE_BYTES: u64 = 40 << 20;
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    fs::create_dir_all(&origin.directory).unwrap();
    let source = fs::File::create(origin.directory.join("disk.img")).unwrap();
    source.set_len(FILE_BYTES).unwrap();
    source.write_all_at(b"something", 10_000_001).unwrap();
    source.write_all_at(&[1; 100_000], 20_000_000).unwrap();
    drop(source);
    let draft = Draft::make(&origin.store, &origin.directory, Publishing::default()).unwrap();
    let version = origin.sign(&draft, 1);
    draft.commit(&version).unwrap();
    let replica = store(&top, Options::default());
    let asked = fetch(&origin.store, &replica, &version).unwrap().len();
    assert!(asked < 50, "{asked} chunks were asked for");
    let mut stored = 0;
    for store in [&origin.store, &replica] {
        let path = store.current().unwrap().tree().join("disk.img");
        let found = fs::metadata(&path).unwrap();
        assert_eq!(found.len(), FILE_BYTES);
        stored += found.blocks() * 512;
        assert_eq!(fs::read(&path).unwrap(), fs::read(origin.directory.join("disk.img")).unwrap());
        assert_eq!(store.verify().unwrap().damaged_count, 0);
    }
    assert!(stored < 4 << 20, "{stored} bytes are taken");
}
