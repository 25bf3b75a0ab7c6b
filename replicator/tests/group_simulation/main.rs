//! Groups of members, links, faults and time, simulated: the same seed gives the same world.
//!
//! `HARVEST_REPLICATION_SEEDS` says how many worlds, `HARVEST_REPLICATION_SEED` which one alone; with
//! `HARVEST_REPLICATION_TRACE` what the members' admins are told is printed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, reason = "it says which seed failed")]
#![allow(clippy::expect_used, reason = "a test may panic")]
#![allow(clippy::cast_possible_truncation, reason = "numbers of a simulation are small")]

mod liar;
mod member;
mod plan;
mod properties;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use fastrand::Rng;
use world::World;

const MINUTE: Duration = Duration::from_mins(1);
/// All members but the founder come before this.
const JOINED: Duration = Duration::from_mins(3);
/// Faults end then.
const END: Duration = Duration::from_mins(12);
/// By then all agree.
const PATIENCE: Duration = Duration::from_mins(15);
/// How many worlds there are when nobody says.
const SEEDS: u64 = 300;

/// Most messages that a member of a group of so many sends in a minute, whatever happens.
fn burst_max(members: usize) -> usize {
    (members - 1) * (16 * members + 60)
}

/// Runs one of `share` worlds, and says which seed it was that failed.
fn each(name: &str, share: u64, run: impl Fn(u64)) {
    let number = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let seeds = match number("HARVEST_REPLICATION_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("HARVEST_REPLICATION_SEEDS").unwrap_or(SEEDS).div_ceil(share),
    };
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            eprintln!("{name} failed with HARVEST_REPLICATION_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Small worlds are more likely.
fn size(dice: &mut Rng) -> usize {
    3 + dice.usize(..10).min(dice.usize(..10))
}

#[test]
fn whatever_has_failed_all_agree_in_the_end() {
    each("whatever has failed", 1, |seed| {
        let mut dice = Rng::with_seed(seed);
        let count = size(&mut dice);
        let mut world = World::new(dice, count);
        if world.dice.u8(..3) == 0 {
            world.block_some();
        }
        world.loss = world.dice.u8(..20);
        world.join_before(JOINED);
        let faults = world.dice.usize(..9);
        world.plan(Duration::ZERO, END, faults);
        world.run(END);
        world.heal();
        world.settle_down(PATIENCE);
        world.stay_sound(MINUTE);
        assert!(
            world.members.iter().all(|it| it.accused.is_empty()),
            "an honest member is accused"
        );
    });
}
