//! Tests of kill -9 at a random moment of a pass: the next start goes on, with the same result.
//!
//! `HARVEST_CRASH_ROUNDS` is the number of kills (default 6); `HARVEST_CRASH_SEED` repeats a run.

#![allow(clippy::print_stdout, reason = "it says what it did")]

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Bench, Tree};
use gatherer::{Config, Server};
use net::clock;
use net::shutdown::Shutdown;

/// Variable with the tree's folder for the test binary that is started again and killed.
const VICTIM: &str = "HARVEST_TEST_VICTIM";

const FILES: usize = 3_000;

/// Kills before the last start on one tree.
const KILLS: u64 = 6;
/// Approximate time of a pass over the tree, in milliseconds: kills happen within it.
const PASS_MS: u64 = 600;

/// Is the child process, which gathers until it is killed. Does nothing without the variable.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Ok(folder) = env::var(VICTIM) else { return };
    let folder = PathBuf::from(folder);
    let config = Config::for_paths(&[folder.join("root")], &folder.join("data"));
    let server = Server::bind(config).await.unwrap();
    let stopped = server.run(Shutdown::new()).await;
    panic!("stopped by itself: {stopped:?}");
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|it| it.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_pass_goes_on_where_it_was() {
    let kills = number("HARVEST_CRASH_ROUNDS").unwrap_or(KILLS);
    let seed = number("HARVEST_CRASH_SEED").unwrap_or_else(clock::now_ms).max(1);
    println!("HARVEST_CRASH_SEED={seed} HARVEST_CRASH_ROUNDS={kills}");
    let mut random = seed;
    for first in (0..kills).step_by(usize::try_from(KILLS).unwrap()) {
        let delays = (first..kills.min(first + KILLS)).map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            30 + random % PASS_MS
        });
        kill_and_go_on(delays.collect()).await;
    }
}

/// Kills a gatherer of a new tree after each of these delays (in milliseconds), then lets it
/// finish.
async fn kill_and_go_on(delays: Vec<u64>) {
    println!("killed after {delays:?} ms");
    let tree = Tree::new();
    for n in 0..FILES {
        tree.write(&format!("d{}/f{n}.txt", n % 50), &format!("words of file {n}"));
    }
    for delay in delays {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "crash::victim"])
            .env(VICTIM, tree.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The test varies the moment: from before the first commit to after the last.
        tokio::time::sleep(Duration::from_millis(delay)).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let bench = Bench::start(tree).await;
    assert_eq!(bench.handle.status().objects, FILES as u64);
    assert_eq!(bench.root().files, FILES as u64);
    let before = bench.read();
    bench.gather().await;
    assert_eq!(bench.read(), before, "everything is known after a finished pass");
    for n in [0, FILES / 2, FILES - 1] {
        bench.until_text(&format!("d{}/f{n}.txt", n % 50), &format!("file {n}")).await;
    }
    bench.assert_conserved();
}
