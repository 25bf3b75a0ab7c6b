//! Tests of a shortage of descriptors: connections that are kept make room for others, and the crawl comes to its end.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use gatherer::Config;
use gatherer::config::Watch;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::relay::Relay;
use crate::servers::{Pyftpdlib, Vsftpd};
use crate::support::Tree;
use crate::support::site::{again, start_with};

/// Variable with the list of the test binary that is started again with few descriptors.
const VICTIM: &str = "HARVEST_TEST_FEW_DESCRIPTORS";

/// Number of servers, to each of which a control connection is kept; fewer than a client keeps.
const SERVERS: usize = 60;

/// Number of descriptors that the gatherer may open beside those of its first thread.
const ROOM: u64 = 50;

/// Is the child process, which gathers what is listed with few descriptors. Does nothing without the variable.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Ok(list) = env::var(VICTIM) else { return };
    let text = format!(
        "name = \"a\"\ndata = \"/d\"\n[[leaf]]\nname = \"few\"\ndelay = \"0 s\"\nfile = {list:?}\n"
    );
    let tree = Tree::new();
    let parsed = Config::parse(&text).unwrap();
    let config = Config { watch: Watch::Off, roots: parsed.roots, ..tree.config() };
    let used = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let limit = Rlimit { current: Some(used + ROOM), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    let bench = start_with(tree, config).await;
    for _ in 0..2 {
        let problems = bench.handle.problems();
        assert_eq!(bench.handle.status().objects, SERVERS as u64, "{problems:#?}");
        assert!(problems.is_empty(), "{problems:#?}");
        again(&bench).await;
    }
    bench.assert_conserved();
    bench.stop().await;
}

/// Gathers one file from each of the servers, which are one under many ports.
async fn check(server: SocketAddr) {
    let mut urls = String::new();
    for it in 0..SERVERS {
        let relay = Relay::start(server).await;
        urls.push_str(&format!("ftp://{}/{it}.txt\n", relay.address));
    }
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("urls.txt");
    fs::write(&list, urls).unwrap();
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "shortage::victim"]).env(VICTIM, list);
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn files() -> Vec<(String, Vec<u8>)> {
    (0..SERVERS).map(|it| (format!("{it}.txt"), format!("text {it}\n").into_bytes())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn control_connections_make_room_for_those_to_other_servers() {
    let files = files();
    let files: Vec<_> = files.iter().map(|it| (it.0.as_str(), it.1.clone())).collect();
    let server = Vsftpd::start(false, &files);
    check(server.running.address).await;
    let server = Pyftpdlib::start(false, &files);
    check(server.running.address).await;
}
