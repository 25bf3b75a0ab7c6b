//! Tests of replicators at distant sites: the setup of TR §8, in network namespaces.
//!
//! The world is that of `benches/replication groups`. Processes of the binary under test form three overlapping groups,
//! one of them behind 28 KB/s. A relay delays and paces the lines; the kernel counts the traffic between sites.
//! The test needs root, sudo without a password, or namespaces and TUN devices for all users; without them it fails
//! with a message. All that it makes ends with it: see `benches/sites.py`.
//!
//! `HARVEST_SITES_MEMBERS` is the number of members (the paper: 30), `HARVEST_SITES_KILOBYTES` the size of the first
//! version's collection (the paper: 60 MB). Each of the nine versions after it adds a hundredth.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const MEMBERS: u64 = 9;
const KILOBYTES: u64 = 300;
/// Maximum traffic to the slow site over the published bytes: each byte once with headers is 1.06.
const HOME_SHARE_MAX: f64 = 1.15;
/// Maximum traffic for measurement and control on top, in bytes; more data do not add to it.
const HOME_STEERING_BYTES_MAX: f64 = 2e6;

fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |text| text.parse().unwrap())
}

#[test]
fn three_groups_stay_equal_over_slow_lines_and_without_a_leader() {
    let members = number("HARVEST_SITES_MEMBERS", MEMBERS);
    let megabytes = number("HARVEST_SITES_KILOBYTES", KILOBYTES) as f64 / 1_000.0;
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/replication"))
        .args(["groups", "--near", "60", "--binary", env!("CARGO_BIN_EXE_harvest")])
        .args(["--members", &members.to_string(), "--megabytes", &megabytes.to_string()])
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{output_text}");
    assert!(output.status.success(), "{}\n{output_text}\n{errors}", output.status);
    let last = output_text.lines().last().unwrap();
    let figures: Value =
        serde_json::from_str(last).unwrap_or_else(|it| panic!("{it}: {output_text}"));
    let count = |name: &str| figures[name].as_u64().unwrap();
    assert_eq!((count("members"), count("versions_equal")), (members, 10), "{last}");
    // A leader was killed: all other members have the next version.
    assert_eq!(count("left_equal"), members - 1, "{last}");
    // Most estimates are within 25 % of the lines: each link is measured at random times.
    assert!(count("estimates_off") * 4 <= count("estimates"), "{last}");
    let bytes = |name: &str| figures[name].as_f64().unwrap();
    let (published, home) = (bytes("bytes_published"), bytes("bytes_home"));
    assert!((megabytes * 1e6..).contains(&published), "{last}");
    let home_max = published * HOME_SHARE_MAX + HOME_STEERING_BYTES_MAX;
    assert!((published..home_max).contains(&home), "{last}");
    // Nothing is left behind in the folder.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{folder:?}");
}
