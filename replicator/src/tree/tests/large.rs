//! Trees of many files: what a change of one of them costs.
//!
//! `HARVEST_TREE_FILES` says how many the larger of two trees has (default 4000), the smaller a tenth of that.

use std::env;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use super::super::publish::{Draft, Publishing};
use super::super::store::Options;
use super::{Origin, fetch, hasty};

const FILES_IN_DIRECTORY: usize = 100;
/// A tree of ten times the files may take so many times as long: ten, and five for machines that do other things.
const TIMES_MAX: u32 = 50;
/// Chunks of a file that is changed: its own, at most two leaves of the manifest, and of each list above as many nodes.
const CHUNKS_MAX: usize = 1 + 2 * 4;

/// What a change of one of so many files costs: the time of its publisher and of a replica, and the chunks that go over.
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
        let draft = Draft::make_with(&origin.store, &origin.directory, publishing, -10).unwrap();
        let version = origin.sign(&draft, sequence);
        draft.commit(&version).unwrap();
        fetch(&origin.store, &replica, &version).unwrap()
    };
    assert!(files < publish(1).len());
    fs::write(path(files / 2), "something else").unwrap();
    let began = net::clock::monotonic();
    let asked = publish(2).len();
    let took = began.elapsed();
    let changed = path(files / 2);
    let changed = changed.strip_prefix(&origin.directory).unwrap();
    assert_eq!(fs::read(replica.current_link().join(changed)).unwrap(), b"something else");
    assert_eq!(replica.current().unwrap().meta().totals.entries, files as u64);
    (took, asked)
}

#[test]
fn a_change_of_one_file_takes_a_few_chunks_and_no_more_than_a_look_at_each_of_the_others() {
    let files = env::var("HARVEST_TREE_FILES").map_or(4_000, |it| it.parse().unwrap());
    let (few, few_asked) = change(files / 10);
    let (many, asked) = change(files);
    println!("{files} files: {many:?} and {asked} chunks; a tenth: {few:?} and {few_asked} chunks");
    assert!(asked.max(few_asked) <= CHUNKS_MAX, "{few_asked} and {asked} chunks were asked for");
    assert!(many < few * TIMES_MAX, "{few:?} for a tenth, {many:?} for {files} files");
}
