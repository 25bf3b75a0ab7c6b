//! Real crashes and a full disk. This binary starts itself as a child, which commits, applies and
//! compacts, while the parent kills it with SIGKILL, or the system limits the size of its files.
//! Every acknowledged change must be there, and none twice.
//!
//! `HARVEST_CRASH_ROUNDS` is the number of kills (default 6); `HARVEST_CRASH_SEED` repeats a run.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use collection::{
    Batch, Change, Collection, Cursor, Epoch, Error, Note, Oid, Options, Pulled, Recovery, Stamp,
};
use net::clock;
use soif::Record;

/// Environment variable of the child: the directory of its collection.
const CHILD: &str = "HARVEST_CRASH_DIRECTORY";
/// Environment variable of a child that also compacts.
const COMPACTS: &str = "HARVEST_CRASH_COMPACTS";
/// Number of objects that are changed again and again.
const OBJECTS: u64 = 20;

fn options() -> Options {
    Options {
        segment_bytes_max: 16 << 10,
        member_bytes_max: 4 << 10,
        // Small enough that runs are written and merged again and again.
        keys_table_bytes_max: 64 << 10,
        ..Options::default()
    }
}

fn open(dir: &Path) -> (Collection, Recovery) {
    Collection::open(dir, options(), Stamp(1)).unwrap()
}

/// Makes an update with its step; its size varies with the step.
fn update(url: &str, step: u64) -> Change {
    let mut record = Record::new("FILE", url);
    record.push("Gatherer-Id", "g");
    record.push("Step", step.to_string());
    let noise = (0..step * 37 % 900).map(|n| (n * n * step % 251) as u8);
    record.push("Body", noise.collect::<Vec<u8>>());
    Change::Update(record)
}

/// Returns whether the step deletes its object instead of changing it.
fn deletes(step: u64) -> bool {
    step.is_multiple_of(7)
}

/// Commits one step: an event that never changes again, and an object that does.
fn act(collection: &Collection, step: u64) {
    let event = update(&format!("http://event/{step}"), step);
    let url = format!("http://object/{}", step % OBJECTS);
    let object =
        if deletes(step) { Change::Delete(Oid::new("g", &url)) } else { update(&url, step) };
    let now = Stamp(step * 10);
    if step.is_multiple_of(3) {
        let (epoch, serial) = (Epoch(1), step);
        let cursor = Cursor { epoch, serial, snapshot: None, part: None };
        let changes = vec![(step, event)];
        let source = "s".to_owned();
        let pulled = Pulled { source, id: None, epoch, changes, cursor, end_of_snapshot: None };
        collection.apply(pulled, now).unwrap();
    } else {
        let value = Some(step.to_string().into_bytes());
        let notes = vec![Note { key: b"step".to_vec(), value }];
        collection.commit(Batch { changes: vec![event, object], notes }, now).unwrap();
    }
}

/// Returns the last step that is complete in the collection.
fn last_step(collection: &Collection) -> u64 {
    let pulled = collection.cursor("s").unwrap().map_or(0, |it| it.serial);
    let note = collection.note(b"step").unwrap();
    let noted = note.map_or(0, |it| String::from_utf8(it).unwrap().parse().unwrap());
    pulled.max(noted)
}

/// Runs as the child: continues the steps, and reports each one once it is durable.
#[test]
fn child() {
    let Ok(dir) = env::var(CHILD) else { return };
    let (collection, recovery) = open(Path::new(&dir));
    assert!(!recovery.lost, "{recovery:?}");
    let compacting = collection.clone();
    let compacts = env::var(COMPACTS).is_ok();
    thread::scope(|scope| {
        scope.spawn(move || {
            for round in (0_u64..).take_while(|_| compacts) {
                report("compacting");
                // At so early a time no delete is older than the horizon: all stay.
                if round.is_multiple_of(2) {
                    compacting.compact_tail(Stamp(1)).unwrap();
                } else {
                    compacting.compact(Stamp(1)).unwrap();
                }
                report("compacted");
            }
        });
        for step in last_step(&collection) + 1.. {
            act(&collection, step);
            report(&format!("ack {step}"));
        }
    });
}

/// Reports a line to the parent, in one write.
fn report(what: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{what}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn start_child(dir: &Path, compacts: bool) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    if compacts {
        command.env(COMPACTS, "1");
    }
    command
        .args(["child", "--exact", "--nocapture"])
        .env(CHILD, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets the child acknowledge `steps` steps and, with `compacts`, begin a compaction; spins `spin`
/// times and kills it. Returns the last step that it reported, and its activity.
fn run_and_kill(dir: &Path, steps: u64, spin: u64, compacts: bool) -> (u64, &'static str) {
    let mut child = start_child(dir, compacts);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut acknowledged, mut read) = (0, 0);
    let mut doing = "opening";
    let mut parse_line = |line: &str| {
        // The first report may follow the harness's output on the same line.
        if let Some((_, step)) = line.split_once("ack ") {
            acknowledged = step.parse().unwrap();
            read += 1;
            doing = if doing == "opening" { "appending" } else { doing };
        } else if line.ends_with("compacting") {
            doing = "compacting";
        } else if line.ends_with("compacted") {
            doing = "appending";
        }
        (acknowledged, read, doing)
    };
    // With no steps the kill comes during the opening.
    if steps != 0 {
        for line in lines.by_ref() {
            let (_, read, doing) = parse_line(&line.unwrap());
            if steps <= read && (!compacts || doing == "compacting") {
                break;
            }
        }
    }
    (0..spin).for_each(|_| std::hint::spin_loop());
    child.kill().unwrap();
    child.wait().unwrap();
    // Its last reports count too, except an unfinished line.
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    for line in rest.iter().take(rest.len().saturating_sub(1)) {
        parse_line(line);
    }
    let (acknowledged, _, doing) = parse_line("");
    (acknowledged, doing)
}

fn check(collection: &Collection, acknowledged: u64) {
    let last = last_step(collection);
    assert!(acknowledged <= last, "step {acknowledged} was acknowledged, {last} is there");
    let mut events = BTreeMap::new();
    let mut serial = 0;
    for scanned in collection.scan(0).unwrap().map(Result::unwrap) {
        assert!(serial < scanned.serial);
        serial = scanned.serial;
        if let Change::Update(record) = scanned.change
            && let Some(step) = record.url.strip_prefix("http://event/")
        {
            *events.entry(step.parse::<u64>().unwrap()).or_insert(0) += 1;
        }
    }
    assert_eq!(events, (1..=last).map(|step| (step, 1)).collect(), "each step once");
    for object in 0..OBJECTS {
        let newest = (1..=last).rev().find(|it| it % OBJECTS == object && it % 3 != 0);
        let stored = collection.get(&Oid::new("g", &format!("http://object/{object}"))).unwrap();
        let step = newest.filter(|it| !deletes(*it));
        assert_eq!(stored.and_then(|it| it.record.number("Step")), step, "object {object}");
    }
    assert_eq!(collection.verify().unwrap().problems, []);
}

/// A small generator, so that a printed seed repeats the run.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn a_kill_at_any_moment_loses_nothing_acknowledged() {
    let number = |name: &str| env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let rounds = number("HARVEST_CRASH_ROUNDS").unwrap_or(6);
    let seed = number("HARVEST_CRASH_SEED").unwrap_or_else(|| getrandom::u64().unwrap()).max(1);
    let mut state = seed;
    let dir = tempfile::tempdir().unwrap();
    let mut killed = BTreeMap::from([("appending", 0), ("compacting", 0)]);
    let least = rounds / 4;
    let is_lacking = |killed: &BTreeMap<&str, u64>| {
        ["appending", "compacting"].iter().any(|it| killed[it] < least)
    };
    let mut round = 0;
    // There are more rounds if too few kills have hit an important activity.
    while round < rounds || (is_lacking(&killed) && round < rounds * 10) {
        let steps = random(&mut state) % 70;
        let steps = steps.saturating_sub(10);
        let spin = random(&mut state) % if steps == 0 { 20_000_000 } else { 2_000_000 };
        let compacts = round % 2 == 1;
        let spin = if compacts { spin / 20 } else { spin };
        let (acknowledged, doing) = run_and_kill(dir.path(), steps, spin, compacts);
        println!(
            "seed {seed}, round {round}: killed while {doing}, {spin} spins after {steps} steps"
        );
        *killed.entry(doing).or_insert(0) += 1;
        let (collection, recovery) = open(dir.path());
        assert!(!recovery.lost, "{recovery:?}");
        check(&collection, acknowledged);
        round += 1;
    }
    println!("{killed:?}");
    assert!(!is_lacking(&killed), "{killed:?}");
}

/// Runs as the child under a limit on the size of files: commits until there is no room, and checks
/// that nothing of the failed commit is visible.
#[test]
fn child_on_a_full_disk() {
    let Ok(dir) = env::var("HARVEST_FULL_DIRECTORY") else { return };
    let (collection, _) = Collection::open(Path::new(&dir), Options::default(), Stamp(1)).unwrap();
    let mut state = 1;
    for step in 1.. {
        let mut record = Record::new("FILE", format!("http://{step}"));
        record.push("Gatherer-Id", "g");
        let noise = std::iter::repeat_with(|| random(&mut state).to_le_bytes());
        record.push("Body", noise.take(60_000).flatten().collect::<Vec<u8>>());
        let changes = vec![Change::Update(record)];
        match collection.commit(Batch { changes, notes: vec![] }, Stamp(1)) {
            Ok(version) => assert_eq!(version.serial, step),
            Err(error) => {
                assert!(matches!(error, Error::Full { .. }), "{error}");
                assert!(error.to_string().contains("no space left"), "{error}");
                assert_eq!(collection.version().serial, step - 1);
                assert_eq!(
                    collection.scan(0).unwrap().filter(Result::is_ok).count() as u64,
                    step - 1
                );
                let oid = Oid::new("g", &format!("http://{step}"));
                assert_eq!(collection.get(&oid).unwrap(), None);
                // A small commit still fits: the written part of the large one is gone.
                let delete = Change::Delete(Oid::new("g", "http://1"));
                let batch = Batch { changes: vec![delete], notes: vec![] };
                assert_eq!(collection.commit(batch, Stamp(1)).unwrap().serial, step);
                println!("full at {step}");
                return;
            }
        }
    }
}

#[test]
fn a_full_disk_stops_commits_and_shows_no_partial_one() {
    let dir = tempfile::tempdir().unwrap();
    // Files of at most 4 MiB (in blocks of 512 bytes), and no signal at the limit.
    let script =
        "trap '' XFSZ; ulimit -f 8192; exec \"$0\" child_on_a_full_disk --exact --nocapture";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(env::current_exe().unwrap())
        .env("HARVEST_FULL_DIRECTORY", dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let (_, step) = said.split_once("full at ").unwrap();
    let step: u64 = step.lines().next().unwrap().parse().unwrap();
    assert!(5 < step);
    let (collection, recovery) = open(dir.path());
    assert_eq!((recovery.cut, recovery.lost), (vec![], false));
    assert_eq!(collection.version().serial, step);
    assert_eq!(collection.len(), step - 2);
    assert_eq!(collection.verify().unwrap().problems, []);
}

/// Makes a long URL that does not compress well: a few of them make a large key index.
fn long_url(n: u64) -> String {
    let mut state = n + 1;
    (0..30)
        .fold(format!("http://host/{n}/"), |url, _| url + &format!("{:016x}", random(&mut state)))
}

/// Runs as the child under a limit on the size of files that the key index reaches first. Further
/// commits are refused, and go on once there is room again.
#[test]
fn child_on_a_disk_too_full_for_the_keys() {
    let Ok(dir) = env::var("HARVEST_CRAMPED_DIRECTORY") else { return };
    // A write of the key index exceeds the limit of a file; a segment does not.
    let options = Options {
        keys_table_bytes_max: 4 << 20,
        segment_bytes_max: 512 << 10,
        ..Options::default()
    };
    let (collection, _) = Collection::open(Path::new(&dir), options, Stamp(1)).unwrap();
    let commit = |round: u64| {
        let updates = (500 * round..500 * round + 500).map(|n| update(&long_url(n), round));
        let batch = Batch { changes: updates.collect(), notes: vec![] };
        collection.commit(batch, Stamp(round * 10_000)).map(drop)
    };
    let mut rounds = 0;
    let error = loop {
        match commit(rounds) {
            Ok(()) => rounds += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(error.to_string().contains("keys: free some, then try again"), "{error}");
    assert!(matches!(commit(rounds), Err(Error::Full { .. })));
    let first = Oid::new("g", &long_url(1));
    assert!(matches!(collection.get(&first), Err(Error::Full { .. })));
    assert_eq!(collection.version().serial, 500 * rounds, "the acknowledged commits and no more");

    let pid = std::process::id().to_string();
    let raised = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited"]).status();
    assert!(raised.unwrap().success());
    // The next attempt at the keys comes after a pause.
    let end = clock::monotonic() + Duration::from_secs(300);
    while let Err(error) = commit(rounds) {
        assert!(clock::monotonic() < end, "{error}");
    }
    assert!(collection.get(&first).unwrap().is_some());
    println!("went on at {rounds}");
}

#[test]
fn commits_go_on_after_a_disk_too_full_for_the_keys() {
    let dir = tempfile::tempdir().unwrap();
    let child = "child_on_a_disk_too_full_for_the_keys --exact --nocapture";
    let output = Command::new("sh")
        .args(["-c", &format!("trap '' XFSZ; ulimit -S -f 4096; exec \"$0\" {child}")])
        .arg(env::current_exe().unwrap())
        .env("HARVEST_CRAMPED_DIRECTORY", dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let (_, rounds) = said.split_once("went on at ").unwrap();
    let rounds: u64 = rounds.lines().next().unwrap().parse().unwrap();
    assert!(2 < rounds);
    let (collection, recovery) = open(dir.path());
    assert_eq!((recovery.cut, recovery.lost), (vec![], false));
    assert_eq!(collection.len(), 500 * (rounds + 1));
    assert_eq!(collection.verify().unwrap().problems, []);
}

/// Runs as the child: with one free file descriptor left, begins an epoch.
#[test]
fn child_short_of_files() {
    let Ok(dir) = env::var("HARVEST_SHORT_DIRECTORY") else { return };
    let (collection, _) = open(Path::new(&dir));
    let before = collection.version();
    let open_one = || std::fs::File::open(&dir);
    let mut open_all: Vec<_> = std::iter::from_fn(|| open_one().ok()).collect();
    open_all.pop();
    let error = collection.new_epoch(Stamp(2)).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert_eq!(collection.version(), before);
    // Without any free descriptor commits and look-ups go on, and the keys are made durable.
    open_all.extend(open_one());
    let changes = vec![update("http://h/1", 1)];
    collection.commit(Batch { changes, notes: vec![] }, Stamp(10_000)).unwrap();
    assert!(collection.get(&Oid::new("g", "http://h/1")).unwrap().is_some());
    drop(open_all);
    assert_eq!(collection.version().epoch, before.epoch);
    println!("epoch {}", before.epoch);
}

/// If it were, a failed compaction could remove segments that the manifest on the disk names.
#[test]
fn a_manifest_that_was_not_written_is_not_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$0\" child_short_of_files --exact --nocapture"])
        .arg(env::current_exe().unwrap())
        .env("HARVEST_SHORT_DIRECTORY", dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let (collection, _) = open(dir.path());
    assert!(said.contains(&format!("epoch {}", collection.version().epoch)), "{said}");
}
