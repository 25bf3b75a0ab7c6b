//! Tests with simulated groups, links, faults and time: the same seed gives the same world.
//!
//! `HARVEST_REPLICATION_SEEDS` sets the number of worlds, `HARVEST_REPLICATION_SEED` selects one;
//! `HARVEST_REPLICATION_TRACE` is a member's number, and prints its actions and the alarms of all
//! members.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, reason = "it prints the seed that failed")]
#![allow(clippy::expect_used, reason = "a test may panic")]
#![allow(clippy::cast_possible_truncation, reason = "numbers of a simulation are small")]

mod cases;
mod liar;
mod links;
mod member;
mod plan;
mod properties;
mod traffic;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use fastrand::Rng;
use member::Conduct;
use replicator::id::MemberId;
use replicator::topology::Connectivity;
use world::World;

const MINUTE: Duration = Duration::from_mins(1);
/// Time before which all members have started.
const JOINED: Duration = Duration::from_mins(2);
/// End of the faults.
const END: Duration = Duration::from_mins(9);
/// Time after which all have to agree.
const PATIENCE: Duration = Duration::from_mins(15);
/// Default number of worlds.
const SEEDS: u64 = 300;

/// Maximum number of messages of a member in a minute at rest: over each link five beats of each
/// member, by the fastest clock, two digests with their answers, and a few late beats.
fn rest_max(members: usize, links: usize) -> usize {
    links * (5 * members + 8)
}

/// Runs one in `share` of the worlds, and prints the seed of a failed one.
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

/// Returns a random size; small ones are more likely.
fn size(dice: &mut Rng) -> usize {
    3 + dice.usize(..10).min(dice.usize(..10)).min(dice.usize(..10))
}

/// Makes a world of `count` members with faults before [`END`].
fn troubled(mut dice: Rng, count: usize) -> World {
    let faults = dice.usize(..9);
    let mut world = World::new(dice, count);
    if world.dice.u8(..3) == 0 {
        world.block_some();
    }
    world.loss = world.dice.u8(..20);
    world.join_before(JOINED);
    world.plan(Duration::ZERO, END, faults);
    world
}

fn assert_nobody_is_accused(world: &World) {
    for member in &world.members {
        let mut accused = member.accused.keys().map(|it| world.members[world.places[it]].conduct);
        assert!(accused.all(|it| it == Conduct::Liar), "{} accuses an honest member", member.id);
    }
}

#[test]
fn all_members_agree_after_any_faults() {
    each("whatever has failed", 1, |seed| {
        let mut dice = Rng::with_seed(seed);
        let count = size(&mut dice);
        let mut world = troubled(dice, count);
        world.run(END);
        world.heal();
        world.settle_down(PATIENCE);
        world.stay_sound(MINUTE);
        assert_nobody_is_accused(&world);
    });
}

#[test]
fn a_group_of_thirty_agrees_after_faults() {
    each("thirty", 300, |seed| {
        let mut world = troubled(Rng::with_seed(seed), 30);
        world.run(END);
        world.heal();
        world.settle_down(PATIENCE);
        assert_nobody_is_accused(&world);
    });
}

#[test]
fn a_neighbor_that_lies_harms_nobody_else() {
    each("a liar", 5, |seed| {
        let mut dice = Rng::with_seed(seed);
        let count = size(&mut dice).max(4);
        let mut world = World::new(dice, count);
        // A lying leader could do worse: the administrator has to trust the deputies.
        let liar = count - 1;
        let honest = world.members[1..liar].iter().map(|it| it.id);
        let trusted: Vec<MemberId> = honest.take(5).collect();
        for it in &mut world.members {
            it.settings.deputies = trusted.clone();
        }
        // A topology that is only a tree would fall apart at the liar.
        world.members[0].settings.connectivity = Some(Connectivity::Two);
        world.reopen_founder();
        world.members[liar].conduct = Conduct::Liar;
        world.join_before(JOINED);
        let faults = world.dice.usize(..5);
        world.plan(JOINED * 2, END, faults);
        world.run(END);
        world.heal();
        world.settle_down(PATIENCE);
        assert_nobody_is_accused(&world);
    });
}

#[test]
fn members_that_restart_at_once_form_the_same_group() {
    each("all restart", 6, |seed| {
        let mut dice = Rng::with_seed(seed);
        let count = size(&mut dice);
        let mut world = World::new(dice, count);
        world.join_before(JOINED);
        world.run(JOINED);
        world.settle_down(PATIENCE);
        let ids = |it: &World| {
            let charter = it.charter(0).unwrap();
            charter.body().members.iter().map(|it| it.id()).collect::<Vec<_>>()
        };
        let (before, epoch) = (ids(&world), world.charter(0).unwrap().epoch());
        world.restart_all();
        world.run(world.now + MINUTE);
        world.heal();
        world.settle_down(PATIENCE);
        world.stay_sound(MINUTE);
        // Another member may lead if the leader came back late.
        assert_eq!(ids(&world), before);
        assert!(world.charter(0).unwrap().epoch() <= epoch + 2);
    });
}

#[test]
fn a_group_at_rest_sends_few_messages() {
    each("at rest", 30, |seed| {
        let mut dice = Rng::with_seed(seed);
        let count = size(&mut dice);
        let mut world = World::new(dice, count);
        // Measurements vary too little to change the topology.
        world.queues = 0.1;
        world.join_before(JOINED);
        world.run(JOINED);
        world.settle_down(PATIENCE);
        world.run(world.now + Duration::from_mins(10));
        world.members.iter_mut().for_each(|it| it.sent_max = 0);
        let before = world.charter(0).unwrap().hash();
        world.run(world.now + Duration::from_mins(10));
        assert_eq!(world.charter(0).unwrap().hash(), before, "without a reason");
        for it in &world.members {
            assert!(it.sent_max <= rest_max(count, it.links.len()), "{} of {count}", it.sent_max);
        }
    });
}
