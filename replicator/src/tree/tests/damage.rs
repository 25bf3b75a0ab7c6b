//! Tests of damaged generations, changed by somebody or by the disk.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use super::super::publish::{Draft, Publishing};
use super::super::store::{Options, Store};
use super::{Origin, TestEntry, Tree, current, entries, fetch, file, hasty, read};
use crate::version::Version;

fn write_over(path: &Path, at: usize) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    fs::write(path, bytes).unwrap();
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_times(fs::FileTimes::new().set_modified(modified))
        .unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o444)).unwrap();
}

struct Fixture {
    origin: Origin,
    replica: Arc<Store>,
    tree: Tree,
    version: Version,
    _top: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let replica = hasty(&top.path().join("replica"), Options::default()).unwrap();
    let replica = Arc::new(replica);
    let mut tree: Tree = (0..40).map(|n| (format!("d{}/{n}", n % 4), file(3_000, n))).collect();
    tree.insert("large".to_owned(), file(2_000_000, 99));
    tree.insert("link".to_owned(), TestEntry::Link("large".to_owned()));
    tree.insert("none".to_owned(), TestEntry::Directory);
    for sequence in 1..=2 {
        let version = origin.publish(&tree, sequence);
        fetch(&origin.store, &replica, &version).unwrap();
        tree.insert(format!("new{sequence}"), file(70_000, sequence));
    }
    let version = origin.publish(&tree, 3);
    fetch(&origin.store, &replica, &version).unwrap();
    Fixture { origin, replica, tree, version, _top: top }
}

/// Damages a file of the replica's present generation, which older ones may share. Checks that the
/// damage is found, that damaged bytes are not returned, and that fetching the version once more
/// brings only the lost chunks.
fn check(damage: impl Fn(&Path), damaged: &str, asked: std::ops::RangeInclusive<usize>) {
    let Fixture { origin, replica, tree, version, _top } = fixture();
    assert_eq!(replica.verify().unwrap().damaged_count, 0);
    let dir = fs::canonicalize(replica.current_link()).unwrap();
    damage(dir.parent().unwrap());
    let verified = replica.verify().unwrap();
    assert_eq!(verified.damaged_count, 1, "{verified:?}");
    assert_eq!(verified.damaged, replica.damaged());
    assert!(verified.damaged[0].ends_with(damaged), "{verified:?}");
    let count = fetch(&origin.store, &replica, &version).unwrap().len();
    assert!(asked.contains(&count), "{damaged}: {count} were asked for");
    assert_eq!(current(&replica), tree);
    let verified = replica.verify().unwrap();
    assert_eq!((verified.entries, verified.damaged_count), (entries(&tree), 0));
    assert_eq!(replica.damaged(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn damaged_files_are_named_and_fetched_again() {
    check(|it| write_over(&it.join("tree/large"), 1_000_000), "tree/large", 1..=1);
    check(|it| write_over(&it.join("tree/d1/1"), 5), "tree/d1/1", 1..=1);
    check(|it| fs::remove_file(it.join("tree/d1/1")).unwrap(), "tree/d1/1", 0..=0);
    check(|it| fs::remove_file(it.join("tree/new2")).unwrap(), "tree/new2", 1..=20);
    check(|it| fs::remove_file(it.join("tree/link")).unwrap(), "tree/link", 0..=0);
    check(|it| fs::remove_dir(it.join("tree/none")).unwrap(), "tree/none", 0..=0);
    for extra in ["tree/extra", "tree/d1/extra", "tree/none/extra"] {
        check(|it| fs::write(it.join(extra), "").unwrap(), extra, 0..=0);
    }
    check(|it| fs::create_dir(it.join("tree/d3/extra")).unwrap(), "tree/d3/extra", 0..=0);
    check(|it| write_over(&it.join("manifest"), 5), "manifest", 1..=1);
    check(|it| write_over(&it.join("nodes"), 5), "nodes", 1..=1);
    let executable = Permissions::from_mode(0o555);
    check(
        |it| fs::set_permissions(it.join("tree/d1/1"), executable.clone()).unwrap(),
        "d1/1",
        0..=0,
    );
    for folder in ["tree/d1", "tree/none", "tree"] {
        let open = Permissions::from_mode(0o777);
        check(|it| fs::set_permissions(it.join(folder), open.clone()).unwrap(), folder, 0..=0);
    }
}

#[test]
fn a_damaged_chunk_counts_as_missing_before_anybody_verifies() {
    let Fixture { origin, replica, tree, version, _top } = fixture();
    let dir = fs::canonicalize(replica.current_link()).unwrap();
    write_over(&dir.join("d1/1"), 5);
    let TestEntry::File { bytes, .. } = &tree["d1/1"] else { unreachable!() };
    let hash = crate::version::Hash::of(bytes);
    assert!(replica.has(&hash).unwrap());
    assert_eq!(replica.read(&hash).unwrap(), None);
    assert!(!replica.has(&hash).unwrap());
    // Each generation that shares the file lists it as damaged.
    assert!(!replica.damaged().is_empty() && replica.damaged()[0].ends_with("d1/1"));
    assert_eq!(fetch(&origin.store, &replica, &version).unwrap(), [hash]);
    assert_eq!(replica.read(&hash).unwrap().as_ref(), Some(bytes));
}

#[test]
fn an_origin_repairs_its_store_from_its_directory() {
    let Fixture { origin, tree, _top, .. } = fixture();
    let dir = fs::canonicalize(origin.store.current_link()).unwrap();
    let draft = |origin: &Origin| {
        Draft::make(&origin.store, &origin.directory, Publishing::default()).unwrap()
    };
    assert!(!draft(&origin).is_changed());
    write_over(&dir.join("large"), 5);
    assert_eq!(origin.store.verify().unwrap().damaged_count, 1);
    let mended = draft(&origin);
    assert!(mended.is_changed());
    let version = origin.sign(&mended, 4);
    mended.commit(&version).unwrap();
    assert_eq!(current(&origin.store), tree);
    assert_eq!(read(&origin.directory), tree);
    assert_eq!(origin.store.verify().unwrap().damaged_count, 0);
}

#[test]
fn a_generation_that_cannot_be_opened_is_removed_and_named() {
    for lost in ["meta", "lease", "index"] {
        let Fixture { origin, replica, tree, version, _top } = fixture();
        let dir = fs::canonicalize(replica.current_link()).unwrap().parent().unwrap().to_owned();
        let before = current(&replica).len() - 1;
        drop(replica);
        fs::remove_file(dir.join(lost)).unwrap();
        let replica = Arc::new(hasty(&_top.path().join("replica"), Options::default()).unwrap());
        assert_eq!((current(&replica).len(), replica.damaged()), (before, vec![dir]), "{lost}");
        fetch(&origin.store, &replica, &version).unwrap();
        assert_eq!(current(&replica), tree);
    }
}
