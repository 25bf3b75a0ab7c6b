//! Replicators at sites that are far from each other: TR §8's own set-up, in network namespaces.
//!
//! The world is that of `benches/replication groups`: processes of the binary under test, in three groups that overlap, one
//! of them behind 28 KB/s; lines that a relay delays and paces; what goes between sites as the kernel counts it.
//! It needs root, sudo without a password, or namespaces and TUN devices for everybody; without them the test fails
//! and says so. All that it makes ends with it: see `benches/sites.py`.
//!
//! `HARVEST_SITES_MEMBERS` says how many members there are (the paper: 30), `HARVEST_SITES_KILOBYTES` how large the
//! collection is that the first version has (the paper: 60 MB); each of the nine after it adds a hundredth.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const MEMBERS: u64 = 9;
const KILOBYTES: u64 = 300;
/// What may go to the slow site, over what is published: each byte once, packets around them (1.06), and what
/// measures and steers, which does not grow with what is published.
const HOME_SHARE_MAX: f64 = 1.15;
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
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "{}\n{said}\n{errors}", output.status);
    let last = said.lines().last().unwrap();
    let figures: Value = serde_json::from_str(last).unwrap_or_else(|it| panic!("{it}: {said}"));
    let count = |name: &str| figures[name].as_u64().unwrap();
    assert_eq!((count("members"), count("versions_equal")), (members, 10), "{last}");
    // A leader was killed: all others have the version after that.
    assert_eq!(count("left_equal"), members - 1, "{last}");
    // Within 25 % of the lines: each link is read by chance, and again later.
    assert!(count("estimates_off") * 4 <= count("estimates"), "{last}");
    let bytes = |name: &str| figures[name].as_f64().unwrap();
    let (published, home) = (bytes("bytes_published"), bytes("bytes_home"));
    assert!((megabytes * 1e6..).contains(&published), "{last}");
    let home_max = published * HOME_SHARE_MAX + HOME_STEERING_BYTES_MAX;
    assert!((published..home_max).contains(&home), "{last}");
    // What is left there is what the kernel was to remove.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{folder:?}");
}
