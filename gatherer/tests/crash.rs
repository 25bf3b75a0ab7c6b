//! kill -9 at a random moment of a pass: the next start goes on, and ends as if nothing had happened.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use gatherer::{Config, Server};
use net::shutdown::Shutdown;
use support::{Bench, Tree};

/// Says to the test binary, started again, that it is the one to be killed: the tree's folder.
const VICTIM: &str = "HARVEST_TEST_VICTIM";

/// Files of the tree.
const FILES: usize = 3_000;

/// Kills before the last start.
const KILLS: u64 = 6;

/// The child process: gathers until it is killed. Without the variable there is nothing to gather.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Ok(folder) = env::var(VICTIM) else { return };
    let folder = PathBuf::from(folder);
    let config = Config::for_paths(&[folder.join("root")], &folder.join("data"));
    let server = Server::bind(config).await.unwrap();
    let stopped = server.run(Shutdown::new()).await;
    panic!("stopped by itself: {stopped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_pass_goes_on_where_it_was() {
    let tree = Tree::new();
    for n in 0..FILES {
        tree.write(&format!("d{}/f{n}.txt", n % 50), &format!("words of file {n}"));
    }
    let mut read = Vec::new();
    for kill in 0..KILLS {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "victim"])
            .env(VICTIM, tree.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The moment itself is what the test varies: from before the first commit to after the last.
        tokio::time::sleep(Duration::from_millis(60 + kill * 90)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        read.push(kill);
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
