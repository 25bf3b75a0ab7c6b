//! Tests of trees with many files: the cost of a change of one file, and of a look without changes.
//!
//! `HARVEST_TREE_FILES` sets the number of files of the larger of two trees (default 4000); the
//! smaller has a tenth of them.

use std::env;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use super::super::error::Error;
use super::super::publish::{Draft, Publishing, TRUSTED_AFTER_SECONDS};
use super::super::store::Options;
use super::{Origin, TRUSTED_AT_ONCE, TestEntry, Tree, current, fetch, file, hasty, sample, write};

const FILES_IN_DIRECTORY: usize = 100;
/// A tree with ten times the files may take ten times the work; a further factor of five allows for
/// variation.
const TIMES_MAX: u32 = 50;
/// Maximum number of chunks for a changed file: its own, and at most two leaves of the manifest and
/// two nodes of each list above.
const CHUNKS_MAX: usize = 1 + 2 * 4;

/// Returns the processor time of this thread.
fn worked() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

/// Changes one file of a tree of `files` files. Returns the processor time of publisher and replica
/// together, and the number of chunks transferred.
fn change(files: usize) -> (Duration, usize) {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let path = |n: usize| {
        let directory = origin.directory.join(format!("{:05}", n / FILES_IN_DIRECTORY));
        directory.join(format!("file-{n}"))
    };
    for n in 0..files {
        if n % FILES_IN_DIRECTORY == 0 {
            fs::create_dir(path(n).parent().unwrap()).unwrap();
        }
        fs::write(path(n), format!("what file {n} has")).unwrap();
    }
    let replica = Arc::new(hasty(&top.path().join("replica"), Options::default()).unwrap());
    let publish = |sequence| {
        let publishing = Publishing::default();
        let draft = Draft::make_with(&origin.store, &origin.directory, publishing, TRUSTED_AT_ONCE)
            .unwrap();
        let version = origin.sign(&draft, sequence);
        draft.commit(&version).unwrap();
        fetch(&origin.store, &replica, &version).unwrap()
    };
    assert!(files < publish(1).len());
    fs::write(path(files / 2), "something else").unwrap();
    let before = worked();
    let asked = publish(2).len();
    let took = worked().saturating_sub(before);
    let changed = path(files / 2);
    let changed = changed.strip_prefix(&origin.directory).unwrap();
    assert_eq!(fs::read(replica.current_link().join(changed)).unwrap(), b"something else");
    assert_eq!(
        replica.current().unwrap().meta().totals.entries,
        (files + files.div_ceil(FILES_IN_DIRECTORY)) as u64
    );
    (took, asked)
}

#[test]
fn a_change_of_one_file_takes_a_few_chunks_and_only_a_look_at_each_other_file() {
    let files = env::var("HARVEST_TREE_FILES").map_or(4_000, |it| it.parse().unwrap());
    let (few, few_asked) = change(files / 10);
    let (many, asked) = change(files);
    println!("{files} files: {many:?} and {asked} chunks; a tenth: {few:?} and {few_asked} chunks");
    assert!(asked.max(few_asked) <= CHUNKS_MAX, "{few_asked} and {asked} chunks were asked for");
    assert!(many < few * TIMES_MAX, "{few:?} for a tenth, {many:?} for {files} files");
}

#[test]
fn a_look_at_an_unchanged_directory_builds_nothing() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let tree = sample(1);
    write(&origin.directory, &tree);
    let make = |trusted_after| {
        let publishing = Publishing { accepts_loss: true, ..Publishing::default() };
        Draft::make_with(&origin.store, &origin.directory, publishing, trusted_after).unwrap()
    };
    let is_made = || {
        let all = fs::read_dir(top.path().join("origin/trees/a/generations")).unwrap();
        all.map(|it| it.unwrap().file_name()).any(|it| it.to_string_lossy().starts_with('.'))
    };
    // The stamps of files written just now are not trusted, so the files are read again.
    let first = make(TRUSTED_AFTER_SECONDS);
    let version = origin.sign(&first, 1);
    first.commit(&version).unwrap();
    let again = make(TRUSTED_AT_ONCE);
    assert!(!again.is_changed() && is_made());
    again.discard();
    assert!(!is_made());
    // From then on their stamps are trusted.
    let again = make(TRUSTED_AT_ONCE);
    let same = (again.root(), again.totals(), again.is_changed());
    assert_eq!(same, (version.root, origin.store.current().unwrap().meta().totals, false));
    assert!(!is_made());
    again.discard();
    // An unchanged draft can be committed, unless the directory has changed meanwhile.
    let again = make(TRUSTED_AT_ONCE);
    again.commit(&origin.sign(&make(TRUSTED_AT_ONCE), 2)).unwrap();
    assert_eq!(current(&origin.store), tree);
    assert_eq!(origin.store.current().unwrap().meta().number.sequence, 2);
    let again = make(TRUSTED_AT_ONCE);
    let version = origin.sign(&again, 3);
    fs::write(origin.directory.join("large"), "small").unwrap();
    assert!(matches!(again.commit(&version), Err(Error::OtherVersion(_))));
    assert!(!is_made());
    assert_eq!(current(&origin.store), tree);

    // Every change is noticed.
    let changes: [&dyn Fn(&mut Tree); 6] = [
        &|it| drop(it.remove("large")),
        &|it| drop(it.insert("d0/new".to_owned(), file(0, 1))),
        &|it| drop(it.insert("empty1".to_owned(), TestEntry::Link("d0".to_owned()))),
        &|it| drop(it.insert("link".to_owned(), TestEntry::Link("d2".to_owned()))),
        &|it| drop(it.insert("new".to_owned(), TestEntry::Directory)),
        &|it| {
            it.remove("empty1");
            it.insert("empty1/x".to_owned(), file(1, 1));
        },
    ];
    for (change, sequence) in changes.iter().zip(3..) {
        let mut other = tree.clone();
        change(&mut other);
        origin.publish(&tree, sequence * 2);
        assert!(!make(TRUSTED_AT_ONCE).is_changed(), "{sequence}");
        write(&origin.directory, &other);
        assert!(make(TRUSTED_AT_ONCE).is_changed(), "{sequence}");
    }
}
