//! Tests of publishing: published and refused entries and directories.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use collection::replica::Chain;
use net::identity::Identity;

use super::super::error::Error;
use super::super::problems::Problem;
use super::super::publish::{Draft, Publishing};
use super::super::store::{Options, Store};
use super::{Origin, TestEntry, Tree, current, file, hasty, read, write};
use crate::replica::Failure;
use crate::version::{Kind, Name, Number, Version};

fn inode(store: &Store, path: &str) -> u64 {
    fs::metadata(store.current_link().join(path)).unwrap().ino()
}

#[test]
fn entries_that_cannot_be_replicated_are_listed_and_prevent_publishing() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let dir = &origin.directory;
    let tree: Tree =
        [("a/b".to_owned(), file(9, 1)), ("d".to_owned(), TestEntry::Directory)].into();
    write(dir, &tree);
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("a/pipe"), 0o644.into()).unwrap();
    symlink("../../etc/passwd", dir.join("a/out")).unwrap();
    symlink("/etc", dir.join("etc")).unwrap();
    fs::write(dir.join(OsStr::from_bytes(b"\xff")), "").unwrap();
    fs::write(dir.join("con"), "").unwrap();
    fs::write(dir.join("A"), "").unwrap();
    fs::create_dir(dir.join("D")).unwrap();
    fs::write(dir.join("D/x"), "").unwrap();
    let make = |leaves_out| {
        let publishing = Publishing { leaves_out, ..Publishing::default() };
        Draft::make(&origin.store, dir, publishing)
    };
    let refused = make(false).unwrap_err();
    let Error::Problems(problems) = &refused else { panic!("{refused}") };
    // A clash is found only if the name with which it clashes is listed.
    let paths: Vec<&Path> = problems.listed.iter().map(|it| &*it.path).collect();
    let alone = ["a/out", "a/pipe", "con", "etc"].map(Path::new);
    assert!(alone.iter().all(|it| paths.contains(it)), "{paths:?}");
    assert!(
        refused.to_string().contains("things cannot be replicated, the first is a"),
        "{refused}"
    );
    assert!(origin.store.current().is_none());

    let draft = make(true).unwrap();
    let expected = [
        ("a", "differs from another"),
        ("a/out", "a symbolic link leads to"),
        ("a/pipe", "a pipe cannot be replicated"),
        ("con", "device"),
        ("d", "differs from another"),
        ("etc", "a symbolic link leads to"),
        ("\u{fffd}", "not UTF-8"),
    ];
    let listed = &draft.left_out().listed;
    for Problem { path, reason } in listed {
        let shown = path.to_string_lossy();
        let is_expected =
            expected.iter().any(|(at, why)| shown.starts_with(at) && reason.contains(why));
        assert!(is_expected, "{shown}: {reason}");
    }
    assert_eq!(draft.left_out().count, listed.len() as u64);
    let version = origin.sign(&draft, 1);
    draft.commit(&version).unwrap();
    let published = current(&origin.store);
    let names: Vec<&str> = published.keys().map(String::as_str).collect();
    assert_eq!(names, ["A", "D/x"], "`a` and `d` come after the names that they clash with");
    assert_eq!(origin.store.verify().unwrap().damaged_count, 0);
}

#[test]
fn an_unchanged_file_is_not_read_again() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let mut tree: Tree = (0..20).map(|n| (format!("d/{n}"), file(3_000, n))).collect();
    origin.publish(&tree, 1);
    let before: Vec<u64> = (0..20).map(|n| inode(&origin.store, &format!("d/{n}"))).collect();
    tree.insert("d/5".to_owned(), file(3_000, 77));
    tree.insert("c".to_owned(), file(30, 78));
    tree.remove("d/7");
    // The same content, at another time.
    let TestEntry::File { bytes, executable, .. } = tree["d/9"].clone() else { unreachable!() };
    tree.insert("d/9".to_owned(), TestEntry::File { bytes, executable, modified: 1_100_000_000 });
    origin.publish(&tree, 2);
    assert_eq!(current(&origin.store), tree);
    for (n, before) in before.iter().enumerate().filter(|(n, _)| *n != 7) {
        let is_linked = inode(&origin.store, &format!("d/{n}")) == *before;
        assert_eq!(is_linked, n != 5 && n != 9, "d/{n}");
    }
    // According to the clock all files were written just now, so their stamps are not trusted.
    let again = inode(&origin.store, "d/1");
    let draft = Draft::make(&origin.store, &origin.directory, Publishing::default()).unwrap();
    let version = origin.sign(&draft, 3);
    assert!(!draft.is_changed());
    draft.commit(&version).unwrap();
    assert_eq!(
        inode(&origin.store, "d/1"),
        again,
        "the stamps of the generation before were trusted"
    );
    let draft = Draft::make(&origin.store, &origin.directory, Publishing::default()).unwrap();
    let version = origin.sign(&draft, 4);
    draft.commit(&version).unwrap();
    assert_eq!(current(&origin.store), tree);
}

#[test]
fn a_directory_that_has_lost_much_is_held() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let tree = |count| -> Tree { (0..count).map(|n| (format!("{n}"), file(3, n))).collect() };
    origin.publish(&tree(100), 1);
    let make = |count, accepts_loss| {
        write(&origin.directory, &tree(count));
        let publishing = Publishing { accepts_loss, ..Publishing::default() };
        Draft::make(&origin.store, &origin.directory, publishing)
    };
    make(70, false).unwrap().discard();
    let lost = make(69, false).unwrap_err();
    assert!(matches!(&lost, Error::Loss { before: 100, now: 69, .. }), "{lost}");
    assert!(make(0, false).is_err());
    assert_eq!(current(&origin.store), tree(100));
    let draft = make(69, true).unwrap();
    let version = origin.sign(&draft, 2);
    draft.commit(&version).unwrap();
    // A tree of fewer than a hundred entries may lose any number of them.
    make(0, false).unwrap().discard();
    let gone = Draft::make(&origin.store, &top.path().join("gone"), Publishing::default());
    assert!(matches!(gone, Err(Error::Io { .. })));
}

#[test]
fn the_replicators_own_data_is_never_published() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    origin.publish(&[("a".to_owned(), file(3, 1))].into(), 1);
    for inside in ["", "origin", "origin/trees/a", "origin/trees/a/generations", "link"] {
        if inside == "link" {
            symlink(top.path().join("origin"), top.path().join("link")).unwrap();
        }
        let draft = Draft::make(&origin.store, &top.path().join(inside), Publishing::default());
        assert!(matches!(draft, Err(Error::Own(_))), "{inside}");
    }
}

/// Checks that a file that is written all the time is published as it was at one moment, or not at
/// all.
#[test]
fn a_file_that_changes_while_it_is_read_is_never_mixed() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let path = origin.directory.join("busy");
    fs::write(&path, vec![0; 1 << 20]).unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let mut refused = 0;
    std::thread::scope(|scope| {
        let (is_over, path) = (is_done.clone(), path.clone());
        let writer = scope.spawn(move || {
            let file = fs::File::options().write(true).open(&path).unwrap();
            for n in (1..=255_u8).cycle() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                file.write_all_at(&vec![n; 1 << 20], 0).unwrap();
            }
        });
        let mut sequence = 0;
        while (refused < 3 || sequence < 3) && sequence < 200 && !writer.is_finished() {
            sequence += 1;
            match Draft::make(&origin.store, &origin.directory, Publishing::default()) {
                Err(Error::Problems(problems)) => {
                    assert!(problems.listed[0].reason.contains("changes"), "{problems:?}");
                    refused += 1;
                }
                Err(error) => panic!("{error}"),
                Ok(draft) => {
                    let version = origin.sign(&draft, sequence);
                    draft.commit(&version).unwrap();
                    let TestEntry::File { bytes, .. } = &current(&origin.store)["busy"] else {
                        unreachable!()
                    };
                    assert!(bytes.iter().all(|it| *it == bytes[0]), "a mixed file was published");
                }
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(refused != 0, "the writer never met a reader");
    let draft = Draft::make(&origin.store, &origin.directory, Publishing::default()).unwrap();
    let version = origin.sign(&draft, 1_000);
    draft.commit(&version).unwrap();
    assert_eq!(current(&origin.store), read(&origin.directory));
}

#[test]
fn many_names_and_deep_paths_are_published_in_order() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let mut tree: Tree = (0..3_000).map(|n| (format!("many/{n}"), file(n % 3, n as u64))).collect();
    tree.insert("d/".repeat(127) + "f", file(10, 1));
    // Names whose order as bytes differs from their order as paths.
    for name in ["a", "a!", "a b", "ab", "a0"] {
        tree.insert(format!("sort/{name}/x"), file(5, 3));
    }
    origin.publish(&tree, 1);
    assert_eq!(current(&origin.store), tree);
    let options = Options { entries_max: 3_000, ..Options::default() };
    let store = hasty(&top.path().join("bounded"), options).unwrap();
    let draft = Draft::make(&Arc::new(store), &origin.directory, Publishing::default());
    assert!(matches!(draft, Err(Error::Bounds { entries: 3_001, .. })));
}

#[test]
fn a_collection_has_to_be_a_valid_log() {
    let top = tempfile::tempdir().unwrap();
    let options = Options { kind: Kind::Collection, ..Options::default() };
    let store = Arc::new(hasty(&top.path().join("c"), options).unwrap());
    let directory = top.path().join("log");
    fs::create_dir(&directory).unwrap();
    let base_link = "00".repeat(32).parse().unwrap();
    let version = collection::Version { epoch: collection::Epoch(7), serial: 0 };
    let (life, objects, owner, base, files) = (7, 0, None, 0, Vec::new());
    let empty =
        Chain { life, version, objects, owner, base, base_link, purged: 0, clean: 0, files }
            .to_string();
    let identity = Identity::of(&[7; 32]).unwrap();
    let publish = |kind, sequence| {
        let draft = Draft::make(&store, &directory, Publishing::default()).unwrap();
        let (name, number) = (Name::new("c").unwrap(), Number { epoch: 1, sequence });
        let (bytes, root) = (draft.totals().bytes, draft.root());
        draft.commit(&Version::sign(&identity, name, kind, number, bytes, root))
    };
    for (chain, other, named) in [
        ("harvest log 2\n", None, "CHAIN"),
        (empty.as_str(), Some("notes.txt"), "notes.txt"),
        ("", Some("log-00000001.gz"), "CHAIN"),
    ] {
        fs::write(directory.join("CHAIN"), chain).unwrap();
        other.iter().for_each(|it| fs::write(directory.join(it), "x").unwrap());
        let refused = publish(Kind::Collection, 1).unwrap_err();
        assert!(matches!(refused, Error::Log(_)), "{refused}");
        assert_eq!(refused.failure(), Failure::Content);
        assert!(refused.to_string().contains(named), "{refused}");
        other.iter().for_each(|it| fs::remove_file(directory.join(it)).unwrap());
    }
    assert!(store.current().is_none());
    fs::write(directory.join("CHAIN"), &empty).unwrap();
    assert!(matches!(publish(Kind::Tree, 1), Err(Error::OtherVersion(_))));
    publish(Kind::Collection, 1).unwrap();
    // A damaged present log does not prevent its repair.
    let present = store.current().unwrap().tree().join("CHAIN");
    fs::set_permissions(&present, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&present, "harvest").unwrap();
    publish(Kind::Collection, 2).unwrap();
    assert_eq!(fs::read_to_string(store.current_link().join("CHAIN")).unwrap(), empty);
}
