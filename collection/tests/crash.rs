//! Crashes and a full disk, for real: this binary starts itself as a child, which commits, applies
//! and compacts while the parent kills it with SIGKILL, or while the system lets its files grow no
//! further. Every acknowledged change must be there, and none doubled.
//!
//! `HARVEST_CRASH_ROUNDS` says how many kills (default 6); `HARVEST_CRASH_SEED` repeats a run.

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

/// Set for the child: the directory of its collection.
const CHILD: &str = "HARVEST_CRASH_DIRECTORY";
/// Set for a child that compacts all the time.
const COMPACTS: &str = "HARVEST_CRASH_COMPACTS";
/// How many objects are changed over and over.
const OBJECTS: u64 = 20;

fn options() -> Options {
    Options {
        segment_bytes_max: 16 << 10,
        member_bytes_max: 4 << 10,
        // Small enough that runs are written, and merged, all the time.
        keys_table_bytes_max: 64 << 10,
        ..Options::default()
    }
}

fn open(dir: &Path) -> (Collection, Recovery) {
    Collection::open(dir, options(), Stamp(1)).unwrap()
}

/// An update that says which step made it; its size varies with the step.
fn update(url: &str, step: u64) -> Change {
    let mut record = Record::new("FILE", url);
    record.push("Gatherer-Id", "g");
    record.push("Step", step.to_string());
    let noise = (0..step * 37 % 900).map(|n| (n * n * step % 251) as u8);
    record.push("Body", noise.collect::<Vec<u8>>());
    Change::Update(record)
}

/// Whether the step deletes its object rather than changing it.
fn deletes(step: u64) -> bool {
    step.is_multiple_of(7)
}

/// Does one step as one commit: an event that is never touched again, and an object that is.
fn act(collection: &Collection, step: u64) {
    let event = update(&format!("http://event/{step}"), step);
    let url = format!("http://object/{}", step % OBJECTS);
    let object =
        if deletes(step) { Change::Delete(Oid::new("g", &url)) } else { update(&url, step) };
    let now = Stamp(step * 10);
    if step.is_multiple_of(3) {
        let (epoch, serial) = (Epoch(1), step);
        let cursor = Cursor { epoch, serial, snapshot: None };
        let changes = vec![(step, event)];
        let source = "s".to_owned();
        let pulled = Pulled { source, epoch, changes, cursor, end_of_snapshot: None };
        collection.apply(pulled, now).unwrap();
    } else {
        let value = Some(step.to_string().into_bytes());
        let notes = vec![Note { key: b"step".to_vec(), value }];
        collection.commit(Batch { changes: vec![event, object], notes }, now).unwrap();
    }
}

/// The last step that is whole in the collection.
fn last_step(collection: &Collection) -> u64 {
    let pulled = collection.cursor("s").unwrap().map_or(0, |it| it.serial);
    let note = collection.note(b"step").unwrap();
    let noted = note.map_or(0, |it| String::from_utf8(it).unwrap().parse().unwrap());
    pulled.max(noted)
}

/// Runs as the child: steps on from where the collection is, telling each one once it is durable.
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
                say("compacting");
                // Far below the horizon: every delete stays.
                if round.is_multiple_of(2) {
                    compacting.compact_tail(Stamp(1)).unwrap();
                } else {
                    compacting.compact(Stamp(1)).unwrap();
                }
                say("compacted");
            }
        });
        for step in last_step(&collection) + 1.. {
            act(&collection, step);
            say(&format!("ack {step}"));
        }
    });
}

/// Tells the parent something, in one write.
fn say(what: &str) {
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

/// Lets the child acknowledge `steps`, and begin a compaction if it is to be killed in one; spins
/// `spin` times and kills it. Returns the last step that it told, and what it did.
fn run_and_kill(dir: &Path, steps: u64, spin: u64, compacts: bool) -> (u64, &'static str) {
    let mut child = start_child(dir, compacts);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut told, mut read) = (0, 0);
    let mut doing = "opening";
    let mut hear = |line: &str| {
        // The harness prints before the first one on the same line.
        if let Some((_, step)) = line.split_once("ack ") {
            told = step.parse().unwrap();
            read += 1;
            doing = if doing == "opening" { "appending" } else { doing };
        } else if line.ends_with("compacting") {
            doing = "compacting";
        } else if line.ends_with("compacted") {
            doing = "appending";
        }
        (told, read, doing)
    };
    // With no steps the kill comes while it opens the collection.
    if steps != 0 {
        for line in lines.by_ref() {
            let (_, read, doing) = hear(&line.unwrap());
            if steps <= read && (!compacts || doing == "compacting") {
                break;
            }
        }
    }
    (0..spin).for_each(|_| std::hint::spin_loop());
    child.kill().unwrap();
    child.wait().unwrap();
    // What it told before it died counts too, but for a line that it did not finish.
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    for line in rest.iter().take(rest.len().saturating_sub(1)) {
        hear(line);
    }
    let (told, _, doing) = hear("");
    (told, doing)
}

fn check(collection: &Collection, told: u64) {
    let last = last_step(collection);
    assert!(told <= last, "step {told} was acknowledged, {last} is there");
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
    // By chance, or on a busy machine, few are killed where it matters: then there are more rounds.
    while round < rounds || (is_lacking(&killed) && round < rounds * 10) {
        let steps = random(&mut state) % 70;
        let steps = steps.saturating_sub(10);
        let spin = random(&mut state) % if steps == 0 { 20_000_000 } else { 2_000_000 };
        let compacts = round % 2 == 1;
        let spin = if compacts { spin / 20 } else { spin };
        let (told, doing) = run_and_kill(dir.path(), steps, spin, compacts);
        println!(
            "seed {seed}, round {round}: killed while {doing}, {spin} spins after {steps} steps"
        );
        *killed.entry(doing).or_insert(0) += 1;
        let (collection, recovery) = open(dir.path());
        assert!(!recovery.lost, "{recovery:?}");
        check(&collection, told);
        round += 1;
    }
    println!("{killed:?}");
    assert!(!is_lacking(&killed), "{killed:?}");
}

/// Runs as the child under a limit on the size of files: commits until there is no room, and shows
/// that nothing of the failed commit is to be seen.
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
                // A small one still fits: what was written of the large one is gone.
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
fn a_full_disk_stops_writing_and_shows_nothing_by_halves() {
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

/// A long URL that does not compress well: the key index gets large with few of them.
fn long_url(n: u64) -> String {
    let mut state = n + 1;
    (0..30)
        .fold(format!("http://host/{n}/"), |url, _| url + &format!("{:016x}", random(&mut state)))
}

/// Runs as the child under a limit on the size of files that the key index reaches first: nothing
/// more is taken, and once there is room again, all goes on.
#[test]
fn child_on_a_disk_too_full_for_the_keys() {
    let Ok(dir) = env::var("HARVEST_CRAMPED_DIRECTORY") else { return };
    // What is written of it at once is more than a file may have; a segment is less.
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
    assert_eq!(collection.version().serial, 500 * rounds, "what was acknowledged and no more");

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
fn a_disk_too_full_for_the_keys_stops_nothing_for_good() {
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

/// Runs as the child: leaves itself one more file to open, and begins an epoch.
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
    // With none left at all, commits and look-ups go on, and the keys are made durable.
    open_all.extend(open_one());
    let changes = vec![update("http://h/1", 1)];
    collection.commit(Batch { changes, notes: vec![] }, Stamp(10_000)).unwrap();
    assert!(collection.get(&Oid::new("g", "http://h/1")).unwrap().is_some());
    drop(open_all);
    assert_eq!(collection.version().epoch, before.epoch);
    println!("epoch {}", before.epoch);
}

/// Otherwise a compaction that fails so would remove what the list names.
#[test]
fn a_list_of_segments_that_was_not_written_is_not_in_force() {
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
