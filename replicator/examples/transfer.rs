//! What it costs a member to have a tree from another, in CPU time, both of them together and TLS included:
//!
//!     cargo run --release -p replicator --example transfer [-- MEGABYTES [MEMBERS]]
//!
//! One member publishes files of random bytes, and then so many others (1 if nothing is said) join and get them,
//! all in this process, over links of this machine. It prints seconds in programs and in the system, and what they
//! are for a gigabyte delivered.

#![allow(clippy::print_stdout, reason = "it is there to print")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails may panic")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes are small")]

#[path = "../tests/world/mod.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod world;

use std::fs;
use std::time::Instant;

use fastrand::Rng;
use world::World;

/// As in `harvest`: it decides over time and memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Clock ticks a second in `/proc`.
const TICKS: f64 = 100.0;

/// Seconds of this process in programs and in the system.
fn cpu() -> [f64; 2] {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    // Behind the name, which may have anything in it.
    let fields: Vec<&str> = text[text.rfind(')').unwrap()..].split(' ').collect();
    [12, 13].map(|it| fields[it].parse::<f64>().unwrap() / TICKS)
}

/// Files of 1 kB to 10 MB, in all so many megabytes.
fn make(world: &World, megabytes: usize) {
    let (mut dice, mut left) = (Rng::with_seed(9), megabytes * 1_000_000);
    for number in 0.. {
        let bytes = left.min(10_f64.powf(3.0 + 4.0 * dice.f64()) as usize);
        let mut content = vec![0; bytes];
        dice.fill(&mut content);
        fs::write(world.source(&format!("f{number}")), content).unwrap();
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
    let mut world = World::found().await;
    make(&world, megabytes);
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
    let version = world.publish().await.version;
    let gigabytes = megabytes as f64 / 1e3;
    print("publish", before, since, gigabytes);
    let (before, since) = (cpu(), Instant::now());
    for _ in 0..members {
        world.join().await;
    }
    // By the link that readers follow: to ask for the status has its own cost.
    let holds = |member: usize| {
        let current = fs::read_link(world.replica(member));
        current.is_ok_and(|it| it.to_string_lossy().contains(&format!("-{version}/")))
    };
    world.until(|_| (0..=members).all(holds)).await;
    print("deliver", before, since, gigabytes * members as f64);
    world.stop().await;
}
