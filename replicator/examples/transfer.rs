//! Cost of a transfer of a tree from one member to another, in CPU time of both together, with TLS:
//!
//!     cargo run --release -p replicator --example transfer [-- MEGABYTES [MEMBERS]]
//!
//! One member publishes files of random bytes. Then the others (by default 1) join and get them,
//! all in this process, over local links. It prints user and system time, and their sum for a GB.

#![allow(clippy::print_stdout, reason = "the example prints its results")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails may panic")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes are small")]

#[path = "../tests/cluster/mod.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod cluster;

use std::fs;
use std::time::Instant;

use cluster::Cluster;
use fastrand::Rng;

/// The allocator of `harvest`, because it determines time and memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Clock ticks a second in `/proc`.
const TICKS: f64 = 100.0;

/// Returns the user and system time of this process, in seconds.
fn cpu() -> [f64; 2] {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    // The fields after the name, which may contain any character.
    let fields: Vec<&str> = text[text.rfind(')').unwrap()..].split(' ').collect();
    [12, 13].map(|it| fields[it].parse::<f64>().unwrap() / TICKS)
}

/// Makes files of 1 kB to 10 MB, `megabytes` in all.
fn make(cluster: &Cluster, megabytes: usize) {
    let (mut dice, mut left) = (Rng::with_seed(9), megabytes * 1_000_000);
    for number in 0.. {
        let bytes = left.min(10_f64.powf(3.0 + 4.0 * dice.f64()) as usize);
        let mut content = vec![0; bytes];
        dice.fill(&mut content);
        fs::write(cluster.source(&format!("f{number}")), content).unwrap();
        left -= bytes;
        if left == 0 {
            break;
        }
    }
}

#[tokio::main]
async fn main() {
    let mut numbers = std::env::args().skip(1).map(|it| it.parse::<usize>().unwrap());
    let (megabytes, members) = (numbers.next().unwrap_or(200), numbers.next().unwrap_or(1));
    let mut cluster = Cluster::found().await;
    make(&cluster, megabytes);
    let print = |what: &str, before: [f64; 2], since: Instant, gigabytes: f64| {
        let after = cpu();
        let [user, system] = [after[0] - before[0], after[1] - before[1]];
        println!(
            "{what:<8} {user:6.2} s user {system:6.2} s system {:6.2} s by the clock {:6.2} CPU-s/GB",
            since.elapsed().as_secs_f64(),
            (user + system) / gigabytes,
        );
    };
    let (before, since) = (cpu(), Instant::now());
    let version = cluster.publish().await.version;
    let gigabytes = megabytes as f64 / 1e3;
    print("publish", before, since, gigabytes);
    let (before, since) = (cpu(), Instant::now());
    for _ in 0..members {
        cluster.join().await;
    }
    // The link that readers follow shows the version. A status request would take CPU time itself.
    let holds = |member: usize| {
        let current = fs::read_link(cluster.replica(member));
        current.is_ok_and(|it| it.to_string_lossy().contains(&format!("-{version}/")))
    };
    cluster.until(|_| (0..=members).all(holds)).await;
    print("deliver", before, since, gigabytes * members as f64);
    cluster.stop().await;
}
