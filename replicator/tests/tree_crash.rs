//! Tests of a member that is killed while it publishes, fetches and switches: acknowledged versions
//! are there afterwards, and readers see one version.
//!
//! `HARVEST_CRASH_ROUNDS` sets the number of kills (default 6), `HARVEST_CRASH_SEED` their times.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use net::clock::monotonic;
use net::identity::Identity;
use replicator::tree::fetch::{Fetch, WANTED_MAX};
use replicator::tree::publish::{Draft, Publishing};
use replicator::tree::store::{Options, Store};
use replicator::version::{Kind, Name, Number, Version};

/// Environment of the child: its role and its directory.
const ROLE: &str = "HARVEST_TREE_ROLE";
const DIRECTORY: &str = "HARVEST_TREE_DIRECTORY";
/// Number of different versions, which are published in turn.
const VERSIONS: u64 = 5;
/// Much longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(120);

type Files = BTreeMap<String, Vec<u8>>;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|it| it.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

fn identity() -> Identity {
    Identity::of(&[3; 32]).unwrap()
}

fn open(dir: &Path) -> Arc<Store> {
    // The origin keeps more than the `VERSIONS` that replicas fetch in turn.
    let options = Options { generations_kept: 8, ..Options::default() };
    Arc::new(Store::open(dir, options).unwrap())
}

/// Returns the files of a version; some are equal in all versions.
fn files(sequence: u64) -> Files {
    let mut random = fastrand::Rng::with_seed(sequence % VERSIONS);
    let mut files = Files::new();
    for n in 0..25_u8 {
        let label = if n % 3 == 0 { 0 } else { sequence % VERSIONS };
        let mut content = fastrand::Rng::with_seed(label * 100 + u64::from(n));
        let bytes = (0..content.usize(0..30_000)).map(|_| content.u8(..)).collect();
        files.insert(format!("d{}/{n}", n % 4), bytes);
    }
    files.insert(format!("only{}", sequence % VERSIONS), vec![random.u8(..); 300_000]);
    files
}

fn read(dir: &Path) -> Files {
    let mut files = Files::new();
    let mut open = vec![dir.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

fn publish(top: &Path, store: &Arc<Store>, sequence: u64) {
    let directory = top.join("published");
    let wanted = files(sequence);
    for name in read(&directory).keys().filter(|it| !wanted.contains_key(*it)) {
        fs::remove_file(directory.join(name)).unwrap();
    }
    for (name, bytes) in wanted {
        fs::create_dir_all(directory.join(&name).parent().unwrap()).unwrap();
        fs::write(directory.join(name), bytes).unwrap();
    }
    let draft = Draft::make(store, &directory, Publishing::default()).unwrap();
    let number = Number { epoch: 1, sequence };
    let (name, bytes) = (Name::new("a").unwrap(), draft.totals().bytes);
    let version = Version::sign(&identity(), name, Kind::Tree, number, bytes, draft.root());
    draft.commit(&version).unwrap();
    fs::write(top.join(format!("version{}", sequence % VERSIONS)), version.to_bytes()).unwrap();
}

fn fetch(top: &Path, origin: &Store, store: &Arc<Store>, sequence: u64) {
    let bytes = fs::read(top.join(format!("version{}", sequence % VERSIONS))).unwrap();
    let version = Version::from_bytes(&bytes, &identity().public()).unwrap();
    let mut fetch = Fetch::begin(store, &version).unwrap();
    loop {
        let wanted = fetch.wanted(WANTED_MAX).unwrap();
        if wanted.is_empty() && fetch.switch().unwrap().is_some() {
            return;
        }
        for it in wanted {
            store.put(&it.hash, &origin.read(&it.hash).unwrap().unwrap()).unwrap();
        }
    }
}

fn held(store: &Store) -> u64 {
    store.current().map_or(0, |it| it.meta().number.sequence)
}

/// Runs as the child until it is killed. Prints each version that it begins and completes.
#[test]
fn child() {
    let (Ok(role), Ok(top)) = (env::var(ROLE), env::var(DIRECTORY)) else { return };
    let top = Path::new(&top);
    let is_origin = role == "origin";
    let origin = open(&top.join("origin"));
    let store = if is_origin { Arc::clone(&origin) } else { open(&top.join("replica")) };
    let mut out = std::io::stdout();
    loop {
        let sequence = if is_origin { held(&store) + 1 } else { held(&store) % VERSIONS + 1 };
        writeln!(out, "\nbegun {sequence}").unwrap();
        out.flush().unwrap();
        if is_origin {
            publish(top, &store, sequence);
        } else {
            fetch(top, &origin, &store, sequence);
        }
        writeln!(out, "\ndone {sequence}").unwrap();
        out.flush().unwrap();
        store.remove_old().unwrap();
    }
}

fn start_child(role: &str, top: &Path) -> (Child, Receiver<String>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(ROLE, role)
        .env(DIRECTORY, top)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (sender, lines) = mpsc::channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            sender.send(line).unwrap_or_default();
        }
    });
    (child, lines)
}

/// Lets the child work for this time, then kills it. Returns the version that it acknowledged last.
fn kill_after(role: &str, top: &Path, busy: Duration) -> Option<u64> {
    let (mut child, lines) = start_child(role, top);
    let mut done = None;
    let mut note = |line: String| {
        if let Some(sequence) = line.strip_prefix("done ") {
            done = Some(sequence.parse().unwrap());
        }
        line.starts_with("begun ")
    };
    while !note(lines.recv_timeout(PATIENCE).unwrap()) {}
    let from = monotonic();
    loop {
        match lines.recv_timeout((from + busy).saturating_duration_since(monotonic())) {
            Ok(line) => drop(note(line)),
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => panic!("the child failed by itself"),
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The child may have printed more lines before the kill.
    while let Ok(line) = lines.recv_timeout(PATIENCE) {
        note(line);
    }
    done
}

#[test]
fn a_kill_at_any_point_loses_nothing_acknowledged() {
    let rounds = number("HARVEST_CRASH_ROUNDS").unwrap_or(6);
    let seed = number("HARVEST_CRASH_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("HARVEST_CRASH_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let top = tempfile::tempdir().unwrap();
    fs::create_dir(top.path().join("published")).unwrap();
    let started = monotonic();
    for sequence in 1..=VERSIONS {
        publish(top.path(), &open(&top.path().join("origin")), sequence);
    }
    // About the time of two versions.
    let busy_max = (monotonic() - started) * 2 / u32::try_from(VERSIONS).unwrap();
    let mut last = [VERSIONS, 0];
    let mut acknowledged = 0;
    let mut round = 0;
    // On a busy machine a child is slower; more rounds are run until something was acknowledged.
    while round < rounds || (acknowledged == 0 && round < rounds * 10) {
        let at = usize::try_from(round % 2).unwrap();
        let role = ["origin", "replica"][at];
        let busy = busy_max.mul_f64(random.f64());
        let done = kill_after(role, top.path(), busy);
        acknowledged += u64::from(done.is_some());
        let store = open(&top.path().join(role));
        let (found, before) = (held(&store), done.unwrap_or(last[at]));
        let context = format!("seed {seed}, round {round}, {role} after {busy:?}");
        // The origin's numbers rise; a replica fetches the same numbers in turn.
        let steps = if role == "origin" {
            found - before
        } else {
            (found + VERSIONS - before % VERSIONS) % VERSIONS
        };
        assert!(steps <= 1, "{context}: {before} was acknowledged, {found} is held");
        last[at] = found;
        if found != 0 {
            let current = fs::canonicalize(store.current_link()).unwrap();
            assert!(read(&current) == files(found), "{context}: {found} is not whole");
            assert_eq!(store.verify().unwrap().damaged_count, 0, "{context}");
        }
        // This removes unfinished builds.
        store.remove_old().unwrap();
        let left = fs::read_dir(top.path().join(role).join("generations")).unwrap();
        let names = left.map(|it| it.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|it| it.starts_with('.')).count(), 0, "{context}");
        // The child may have been killed before it wrote the version for replicas.
        if role == "origin" {
            let version = store.current().unwrap().meta().version.clone();
            fs::write(top.path().join(format!("version{}", found % VERSIONS)), version).unwrap();
        }
        round += 1;
    }
    assert!(rounds < 6 || acknowledged != 0, "no child came as far as a version");
}
