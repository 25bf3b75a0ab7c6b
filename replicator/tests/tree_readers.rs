//! Readers of a tree while it is switched all the time: each pass sees one version, whole.
//!
//! `HARVEST_READER_PASSES` says how many passes at least (default 60), during a tenth as many switches.

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

/// Versions that follow one another in a circle.
const VERSIONS: u64 = 4;
const READERS: usize = 3;
/// Nothing here takes nearly as long.
const PATIENCE: Duration = Duration::from_secs(20);
/// What `docs/replication.md` tells readers in the shell to do.
const SHELL: &str = r#"
while :; do
    cd -P "$1" &&
        ( flock -sn 9 && [ -e ../lease ] && find . -type f | sort | xargs cat | cksum ) 9<../lease
done 2>/dev/null
"#;

type Tree = BTreeMap<String, String>;

/// Every file says which version it is of, and how many there are differs.
fn tree(sequence: u64) -> Tree {
    let version = sequence % VERSIONS;
    let name = |n| format!("d{}/{n}", n % 3);
    (0..20 + version).map(|n| (name(n), format!("{n} of {version}\n").repeat(50))).collect()
}

fn write(dir: &Path, sequence: u64) {
    let _absent = fs::remove_dir_all(dir);
    for (name, text) in tree(sequence) {
        fs::create_dir_all(dir.join(&name).parent().unwrap()).unwrap();
        fs::write(dir.join(name), text).unwrap();
    }
}

/// One pass over all that is there.
fn read(dir: &Path) -> Tree {
    let mut tree = Tree::new();
    for above in fs::read_dir(dir).unwrap() {
        for entry in fs::read_dir(above.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            tree.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
    tree
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

/// What the shell says of each version when nothing moves.
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
    let said = env::var("HARVEST_READER_PASSES").ok();
    let passes_min: u64 = said.map_or(60, |it| it.parse().unwrap());
    let switches_min = passes_min / 10;
    let top = tempfile::tempdir().unwrap();
    let sums = sums(top.path());
    // None is kept for those who have no lease.
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
                    let is_whole = (0..VERSIONS).any(|it| tree(it) == found);
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
    // What the shell had started may hold its lease for a moment.
    let from = monotonic();
    while store.remove_old().unwrap() != 0 {
        assert!(from.elapsed() < PATIENCE, "a lease is held that nobody has");
        std::thread::yield_now();
    }
    assert_eq!(fs::read_dir(top.path().join("trees/a/generations")).unwrap().count(), 1);
}
