//! Tests of readers during constant switches of a tree: each pass sees one whole version.
//!
//! `HARVEST_READER_PASSES` sets the minimum number of passes (default 60); that of switches is a
//! tenth of it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use net::clock::monotonic;
use net::identity::Identity;
use replicator::tree::generation::Lease;
use replicator::tree::publish::{Draft, Publishing};
use replicator::tree::store::{Options, Store};
use replicator::version::{Kind, Name, Number, Version};

/// Number of different versions, which are published in turn.
const VERSIONS: u64 = 4;
const READERS: usize = 3;
/// Much longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// The way to read in the shell, as `docs/replication.md` recommends it.
const SHELL: &str = r#"
while :; do
    cd -P "$1" &&
        ( flock -sn 9 && [ -e ../lease ] && find . -type f | sort | xargs cat | cksum ) 9<../lease
done 2>/dev/null
"#;

type Files = BTreeMap<String, String>;

/// Returns the files of a version. Each names the version, and their number depends on it.
fn files(sequence: u64) -> Files {
    let version = sequence % VERSIONS;
    let name = |n| format!("d{}/{n}", n % 3);
    (0..20 + version).map(|n| (name(n), format!("{n} of {version}\n").repeat(50))).collect()
}

fn write(dir: &Path, sequence: u64) {
    let _absent = fs::remove_dir_all(dir);
    for (name, text) in files(sequence) {
        fs::create_dir_all(dir.join(&name).parent().unwrap()).unwrap();
        fs::write(dir.join(name), text).unwrap();
    }
}

/// Reads all files, in one pass.
fn read(dir: &Path) -> Files {
    let mut files = Files::new();
    for above in fs::read_dir(dir).unwrap() {
        for entry in fs::read_dir(above.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            files.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
    files
}

fn publish(store: &Arc<Store>, directory: &Path, sequence: u64) {
    write(directory, sequence);
    let draft = Draft::make(store, directory, Publishing::default()).unwrap();
    let identity = Identity::of(&[3; 32]).unwrap();
    let (name, bytes) = (Name::new("a").unwrap(), draft.totals().bytes);
    let number = Number { epoch: 1, sequence };
    let version = Version::sign(&identity, name, Kind::Tree, number, bytes, draft.root());
    draft.commit(&version).unwrap();
    store.remove_old().unwrap();
}

fn start_shell(current: &Path) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", SHELL, "reader"]).arg(current);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// Returns the shell's checksum of each version, read without switches.
fn sums(top: &Path) -> Vec<String> {
    let sum = |version| {
        let dir = top.join("still/tree");
        write(&dir, version);
        fs::write(top.join("still/lease"), "").unwrap();
        let mut shell = start_shell(&dir);
        let sum = BufReader::new(shell.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        shell.kill().unwrap();
        shell.wait().unwrap();
        sum
    };
    (0..VERSIONS).map(sum).collect()
}

#[test]
fn no_pass_sees_a_mixed_tree() {
    let passes = env::var("HARVEST_READER_PASSES").ok();
    let passes_min: u64 = passes.map_or(60, |it| it.parse().unwrap());
    let switches_min = passes_min / 10;
    let top = tempfile::tempdir().unwrap();
    let sums = sums(top.path());
    // No generation is kept for readers without a lease.
    let options = Options { generations_kept: 0, ..Options::default() };
    let store = Arc::new(Store::open(&top.path().join("trees/a"), options).unwrap());
    let directory = top.path().join("published");
    publish(&store, &directory, 1);
    let current = store.current_link();
    let is_over = AtomicBool::new(false);
    let (passes, in_shell) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut shell = start_shell(&current);
    let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    let mut switches = 0;
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let lease = Lease::take(&current).unwrap();
                    let found = read(lease.tree());
                    let is_whole = (0..VERSIONS).any(|it| files(it) == found);
                    assert!(is_whole, "a mixed tree: {:?}", found.keys());
                    passes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            for line in lines.map_while(Result::ok) {
                assert!(sums.contains(&line), "the shell saw a mixed tree");
                in_shell.fetch_add(1, Ordering::Relaxed);
            }
        });
        while passes.load(Ordering::Relaxed) < passes_min
            || in_shell.load(Ordering::Relaxed) < switches_min
            || switches < switches_min
        {
            switches += 1;
            publish(&store, &directory, switches + 1);
        }
        is_over.store(true, Ordering::Relaxed);
        shell.kill().unwrap();
        shell.wait().unwrap();
    });
    let (passes, in_shell) = (passes.into_inner(), in_shell.into_inner());
    println!("{passes} passes and {in_shell} of the shell during {switches} switches");
    // A process of the shell may hold its lease for a moment.
    let from = monotonic();
    while store.remove_old().unwrap() != 0 {
        assert!(from.elapsed() < PATIENCE, "a lease without a reader is held");
        std::thread::yield_now();
    }
    assert_eq!(fs::read_dir(top.path().join("trees/a/generations")).unwrap().count(), 1);
}
