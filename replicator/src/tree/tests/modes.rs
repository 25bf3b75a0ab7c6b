//! Tests of permissions: replicated modes, format 1, and the private files of a store.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use super::super::access::Access;
use super::super::chunk::Extent;
use super::super::error::Error;
use super::super::levels::Builder;
use super::super::manifest::{Encoder, Entry, EntryKind, Format};
use super::super::mode::Mode;
use super::super::path::EntryPath;
use super::super::publish::{Draft, Publishing};
use super::super::store::{Options, Store};
use super::{Origin, TRUSTED_AT_ONCE, current, fetch, hasty};
use crate::version::{Hash, Version};

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// Writes these files and folders with these modes; folders end in a slash.
fn write(dir: &Path, entries: &[(&str, u32)]) {
    for (path, _) in entries {
        let at = dir.join(path);
        if path.ends_with('/') {
            fs::create_dir_all(at).unwrap();
        } else {
            fs::write(at, path).unwrap();
        }
    }
    entries.iter().rev().for_each(|(path, mode)| chmod(&dir.join(path), *mode));
}

/// Returns the modes of all entries that readers see; `.` is the tree's own folder.
fn modes(store: &Store) -> BTreeMap<String, u32> {
    let top = fs::canonicalize(store.current_link()).unwrap();
    let mut found = BTreeMap::from([(".".to_owned(), mode(&top))]);
    let mut open = vec![top.clone()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path.clone());
            }
            let name = path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned();
            found.insert(name, mode(&path));
        }
    }
    found
}

fn publish(origin: &Origin, sequence: u64) -> Version {
    let draft =
        Draft::make_with(&origin.store, &origin.directory, Publishing::default(), TRUSTED_AT_ONCE)
            .unwrap();
    assert!(draft.is_changed());
    let version = origin.sign(&draft, sequence);
    draft.commit(&version).unwrap();
    version
}

fn set_access(store: &Store, access: Access) -> Result<(), Error> {
    store.want_access(access);
    store.open_gate()
}

fn replica(top: &Path) -> Arc<Store> {
    Arc::new(hasty(&top.join("replica"), Options::default()).unwrap())
}

fn expected(all: &[(&str, u32)]) -> BTreeMap<String, u32> {
    all.iter().map(|(path, mode)| ((*path).to_owned(), *mode)).collect()
}

#[test]
fn only_the_read_and_run_bits_are_replicated() {
    let top = tempfile::tempdir().unwrap();
    let (origin, replica) = (Origin::new(top.path()), replica(top.path()));
    // A file that the publisher cannot read is a problem; root can read all files.
    let least = if rustix::process::geteuid().is_root() { 0o000 } else { 0o400 };
    let entries = [
        ("a/", 0o700),
        ("a/key", 0o600),
        ("a/none", least),
        ("b/", 0o2775),
        ("b/c/", 0o1711),
        ("b/run", 0o4755),
        ("b/team", 0o664),
    ];
    write(&origin.directory, &entries);
    chmod(&origin.directory, 0o750);
    let version = publish(&origin, 1);
    fetch(&origin.store, &replica, &version).unwrap();
    // The replicator, as the owner, has to read files, and to make and remove names.
    let all = expected(&[
        (".", 0o750),
        ("a", 0o700),
        ("a/key", 0o400),
        ("a/none", 0o400),
        ("b", 0o755),
        ("b/c", 0o711),
        ("b/run", 0o555),
        ("b/team", 0o444),
    ]);
    assert_eq!(modes(&origin.store), all);
    assert_eq!(modes(&replica), all);
    let unchanged = Draft::make(&origin.store, &origin.directory, Publishing::default()).unwrap();
    assert!(!unchanged.is_changed());
    assert_eq!(replica.verify().unwrap().damaged_count, 0);
}

#[test]
fn a_changed_mode_makes_a_version_and_does_not_change_the_one_before() {
    let top = tempfile::tempdir().unwrap();
    let (origin, replica) = (Origin::new(top.path()), replica(top.path()));
    write(&origin.directory, &[("d/", 0o755), ("d/file", 0o644), ("d/other", 0o644)]);
    let version = publish(&origin, 1);
    fetch(&origin.store, &replica, &version).unwrap();
    let before = modes(&replica);
    let old = replica.current().unwrap().tree();
    let inode = |tree: &Path, name: &str| fs::metadata(tree.join("d").join(name)).unwrap().ino();
    let changes: [(&str, u32, &str, u32); 4] = [
        ("d/file", 0o600, "d/file", 0o400),
        ("d", 0o700, "d", 0o700),
        ("", 0o700, ".", 0o700),
        ("d/file", 0o755, "d/file", 0o555),
    ];
    let mut now = before.clone();
    for ((path, changed, shown, on_disk), sequence) in changes.into_iter().zip(2..) {
        chmod(&origin.directory.join(path), changed);
        now.insert(shown.to_owned(), on_disk);
        let version = publish(&origin, sequence);
        // Only the manifest changes, and it is so small that it is in the root.
        assert_eq!(fetch(&origin.store, &replica, &version).unwrap(), [version.root], "{path}");
        assert_eq!((modes(&origin.store), modes(&replica)), (now.clone(), now.clone()), "{path}");
    }
    // The version before is unchanged; only files with the same mode are shared with it.
    assert_eq!(
        (mode(&old.join("d/file")), mode(&old.join("d")), mode(&old)),
        (0o444, 0o755, 0o755)
    );
    let new = replica.current().unwrap().tree();
    assert_ne!(inode(&old, "file"), inode(&new, "file"));
    assert_eq!(inode(&old, "other"), inode(&new, "other"));
}

#[test]
fn files_with_equal_content_keep_their_own_modes() {
    let top = tempfile::tempdir().unwrap();
    let (origin, replica) = (Origin::new(top.path()), replica(top.path()));
    fs::write(origin.directory.join("a"), "same").unwrap();
    fs::write(origin.directory.join("b"), "same").unwrap();
    chmod(&origin.directory.join("a"), 0o600);
    chmod(&origin.directory.join("b"), 0o644);
    let version = publish(&origin, 1);
    fetch(&origin.store, &replica, &version).unwrap();
    let all = expected(&[(".", 0o755), ("a", 0o400), ("b", 0o444)]);
    assert_eq!((modes(&origin.store), modes(&replica)), (all.clone(), all));
}

/// Puts a version with one file in format 1, without modes, into a store as its present version.
fn in_format_1(origin: &Origin, store: &Arc<Store>, is_executable: bool) -> Version {
    let path = |text: &str| EntryPath::new(text).unwrap();
    let mode = if is_executable { Mode::EXECUTABLE } else { Mode::PLAIN };
    let modified = fs::metadata(origin.directory.join("d/key")).unwrap().mtime();
    let bytes = b"d/key";
    let kind = EntryKind::File { mode, bytes: bytes.len() as u64, modified };
    let (mut encoder, mut stream) = (Encoder::new(Format::One), Vec::new());
    encoder.entry(&Entry { path: path("d/key"), kind }, &mut stream).unwrap();
    let extent = Extent { hash: Hash::of(bytes), bytes: 5 };
    encoder.extent(extent, &mut stream).unwrap();
    encoder.finish(&mut stream).unwrap();
    let mut levels = Builder::new(store.kind());
    levels.feed(&stream);
    let (root, pieces) = levels.finish().unwrap();
    let draft = Draft::make(&origin.store, &origin.directory, Publishing::default()).unwrap();
    let signed = origin.sign_root(&draft, 1, root);
    store.put(&extent.hash, bytes).unwrap();
    pieces.iter().for_each(|it| store.put(&it.hash, &it.bytes).unwrap());
    let mut fetch = super::Fetch::begin(store, &signed).unwrap();
    assert!(fetch.switch().unwrap().is_some());
    signed
}

#[test]
fn a_version_of_format_1_gets_modes_when_it_is_published_anew() {
    let top = tempfile::tempdir().unwrap();
    let (origin, replica) = (Origin::new(top.path()), replica(top.path()));
    write(&origin.directory, &[("d/", 0o700), ("d/key", 0o600)]);
    for store in [&origin.store, &replica] {
        in_format_1(&origin, store, false);
        assert_eq!(modes(store), expected(&[(".", 0o755), ("d", 0o755), ("d/key", 0o444)]));
        assert_eq!(store.verify().unwrap().damaged_count, 0);
    }
    let version = publish(&origin, 2);
    fetch(&origin.store, &replica, &version).unwrap();
    let all = expected(&[(".", 0o755), ("d", 0o700), ("d/key", 0o400)]);
    assert_eq!((modes(&origin.store), modes(&replica)), (all.clone(), all));
    // A file that everybody may read is linked.
    chmod(&origin.directory.join("d"), 0o755);
    chmod(&origin.directory.join("d/key"), 0o755);
    let other = Arc::new(hasty(&top.path().join("other"), Options::default()).unwrap());
    in_format_1(&origin, &other, true);
    let inode = || fs::metadata(other.current_link().join("d/key")).unwrap().ino();
    let before = inode();
    let version = publish(&origin, 3);
    fetch(&origin.store, &other, &version).unwrap();
    assert_eq!((inode(), mode(&other.current_link().join("d/key"))), (before, 0o555));
}

/// Returns the modes of all entries below a folder, except the trees that readers see.
fn beside_readers(dir: &Path) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::from([(".".to_owned(), mode(dir))]);
    let mut open = vec![dir.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            if path.is_symlink() || name.ends_with("/tree") {
                continue;
            }
            if path.is_dir() {
                open.push(path.clone());
            }
            found.insert(name, mode(&path));
        }
    }
    found
}

#[test]
fn a_store_with_open_modes_is_closed_to_others_at_its_opening() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    write(&origin.directory, &[("a", 0o600)]);
    let replica = replica(top.path());
    let version = publish(&origin, 1);
    fetch(&origin.store, &replica, &version).unwrap();
    let dir = top.path().join("replica");
    let made = beside_readers(&dir);
    let name = dir_name(&replica);
    let private = ["manifest", "nodes", "index", "sources", "meta"];
    assert!(private.iter().all(|it| made[&format!("generations/{name}/{it}")] == 0o600));
    // Readers lock this file.
    assert_eq!(made[&format!("generations/{name}/lease")], 0o444);
    assert_eq!((made["."], made["staged"], made["LOCK"]), (0o700, 0o600, 0o600));
    assert_eq!((made["generations"], made[&format!("generations/{name}")]), (0o755, 0o755));
    drop(replica);
    for (path, mode) in &made {
        chmod(&dir.join(path), if mode & 0o100 == 0 { 0o644 } else { 0o755 });
    }
    let replica = Arc::new(hasty(&dir, Options::default()).unwrap());
    assert_eq!(beside_readers(&dir), made);
    assert_eq!(current(&replica).len(), 1);
}

fn dir_name(store: &Store) -> String {
    let tree = store.current().unwrap().tree();
    tree.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_tree_with_its_content_is_opened_to_a_group_and_closed_again() {
    let top = tempfile::tempdir().unwrap();
    let (origin, replica) = (Origin::new(top.path()), replica(top.path()));
    write(&origin.directory, &[("d/", 0o750), ("d/a", 0o640)]);
    let version = publish(&origin, 1);
    fetch(&origin.store, &replica, &version).unwrap();
    let dir = top.path().join("replica");
    let group = |path: &Path| fs::symlink_metadata(path).unwrap().gid();
    let own = group(&dir);
    // Only root may give a file to any group; for other users only their own group is certain.
    let given = if rustix::process::geteuid().is_root() { 65_534 } else { own };
    set_access(&replica, Access { mode: 0o750, group: Some(given) }).unwrap();
    let seen = |names: &[&str]| {
        let current = fs::canonicalize(replica.current_link()).unwrap();
        names
            .iter()
            .map(|it| (group(&current.join(it)), mode(&current.join(it))))
            .collect::<Vec<_>>()
    };
    assert_eq!((group(&dir), mode(&dir)), (given, 0o750));
    assert_eq!(seen(&["d", "d/a"]), [(given, 0o750), (given, 0o440)]);
    // Later entries get the group too.
    write(&origin.directory, &[("d/b", 0o640), ("e/", 0o710)]);
    let version = publish(&origin, 2);
    fetch(&origin.store, &replica, &version).unwrap();
    let names = ["", "d", "d/a", "d/b", "e"];
    assert!(seen(&names).iter().all(|it| it.0 == given), "{:?}", seen(&names));
    set_access(&replica, Access::default()).unwrap();
    assert_eq!((group(&dir), mode(&dir)), (own, 0o700));
    assert!(seen(&names).iter().all(|it| it.0 == own), "{:?}", seen(&names));
    // The last wanted access counts.
    replica.want_access(Access { mode: 0o755, group: None });
    replica.want_access(Access::default());
    for _ in 0..2 {
        replica.open_gate().unwrap();
        assert_eq!((mode(&dir), replica.access()), (0o700, Access::default()));
    }
    // If opening the access fails, the tree stays closed, and fetching continues.
    let open = Access { mode: 0o755, group: None };
    set_access(&replica, open).unwrap();
    assert_eq!((mode(&dir), replica.access()), (0o755, open));
    fs::rename(&dir, top.path().join("away")).unwrap();
    set_access(&replica, Access { mode: 0o750, group: Some(given) }).unwrap_err();
    assert_eq!(replica.access(), Access::default());
    fs::rename(top.path().join("away"), &dir).unwrap();
    write(&origin.directory, &[("d/c", 0o644)]);
    let version = publish(&origin, 3);
    fetch(&origin.store, &replica, &version).unwrap();
}

#[test]
fn a_tree_on_another_disk_is_closed_and_opened_there() {
    let top = tempfile::tempdir().unwrap();
    let (disk, link) = (top.path().join("disk"), top.path().join("replica"));
    fs::create_dir(&disk).unwrap();
    chmod(&disk, 0o755);
    std::os::unix::fs::symlink(&disk, &link).unwrap();
    let origin = Origin::new(top.path());
    write(&origin.directory, &[("a", 0o640)]);
    let replica = replica(top.path());
    assert_eq!(mode(&disk), 0o700);
    let version = publish(&origin, 1);
    fetch(&origin.store, &replica, &version).unwrap();
    let own = fs::metadata(&disk).unwrap().gid();
    let given = if rustix::process::geteuid().is_root() { 65_534 } else { own };
    set_access(&replica, Access { mode: 0o750, group: Some(given) }).unwrap();
    let file = fs::metadata(link.join("current/a")).unwrap();
    assert_eq!((mode(&disk), fs::metadata(&disk).unwrap().gid()), (0o750, given));
    assert_eq!((file.mode() & 0o777, file.gid()), (0o440, given));
}
