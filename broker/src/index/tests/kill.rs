//! Tests of a process that is killed during an apply: they check the index on disk, and that the
//! next process goes on with it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::model::contents;
use super::*;

/// Returns a log in which objects appear, change their content, share it, and disappear.
fn long_log() -> Vec<Change> {
    let mut changes = Vec::new();
    for n in 0..210_u64 {
        let url = format!("http://x/{}", n * 7 % 40);
        if n % 11 == 3 {
            changes.push(Change::Delete(Oid { gatherer: GATHERER.to_owned(), url }));
        } else {
            let md5 = format!("content{}", n % 5);
            let text = format!("version{n}");
            changes.push(Change::Update(record(
                GATHERER,
                &url,
                &[("MD5", md5.as_str()), ("File-Size", "9"), ("Partial-Text", text.as_str())],
            )));
        }
    }
    changes
}

#[test]
fn a_killed_apply_leaves_the_payload_s_version() {
    const DIR: &str = "HARVEST_INDEX_KILL_TEST_DIR";
    let options = IndexOptions { threads: 1, heap_bytes: 16 << 20, commit_changes_max: 7 };
    let log = long_log();
    if let Ok(dir) = env::var(DIR) {
        // The child process applies until it is killed, and prints a line after every commit.
        let index = Index::open(Path::new(&dir), options).unwrap();
        let last = Cell::new(None);
        apply_to(&index, Epoch(1), &log, &|| {
            let covered = index.covered();
            if last.replace(covered) != covered {
                println!("\ncommitted");
            }
            false
        });
        return;
    }
    let fresh = Site::new();
    apply_to(fresh.index(), Epoch(1), &log, &|| false);
    for commits in [1, 5, 12] {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["index::tests::kill::a_killed_apply_leaves_the_payload_s_version", "--exact"])
            .arg("--nocapture")
            .env(DIR, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let seen = lines.map_while(Result::ok).filter(|line| line == "committed").take(commits);
        assert_eq!(seen.count(), commits);
        child.kill().unwrap();
        child.wait().unwrap();

        let index = Index::open(dir.path(), options).unwrap();
        let covered = usize::try_from(index.covered().unwrap().serial).unwrap();
        let reached = log.get(..covered).unwrap();
        let live: BTreeSet<String> = reached.iter().fold(BTreeSet::new(), |mut live, change| {
            match change {
                Change::Update(record) => live.insert(record.url.clone()),
                Change::Delete(oid) | Change::Withdraw(oid, _) | Change::Suppress(oid, _) => {
                    live.remove(&oid.url)
                }
                Change::Refresh(..) | Change::Confirm { .. } => false,
            };
            live
        });
        let seen: BTreeSet<String> = contents(&index).into_iter().map(|(url, ..)| url).collect();
        assert_eq!(seen, live, "killed after {covered} changes");
        assert_eq!(apply_to(&index, Epoch(1), &log, &|| false).serial, log.len() as u64);
        assert_eq!(contents(&index), contents(fresh.index()), "killed after {covered} changes");
    }
}
