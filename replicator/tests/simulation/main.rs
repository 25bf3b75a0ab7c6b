//! Tests with simulated members, links, faults and time: the same seed gives the same world.
//!
//! `HARVEST_REPLICATION_SEEDS` sets the number of worlds, `HARVEST_REPLICATION_SEED` selects one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, reason = "it prints the seed that failed")]
#![allow(clippy::expect_used, reason = "a test may panic")]
#![allow(clippy::cast_possible_truncation, reason = "numbers of a simulation are small")]

mod cases;
mod conduct;
mod links;
mod making;
mod node;
mod world;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use conduct::Conduct;
use replicator::fetch::Fault;
use world::World;

/// End of changes and faults.
const END: Duration = Duration::from_secs(120);
/// Time for all to become equal: by the slowest clock, a stalled neighbor rests four minutes.
const PATIENCE: Duration = Duration::from_mins(8);
/// Bound on messages that arrive in a world of up to 8 members, 3 trees and 15 versions.
const MESSAGES_MAX: usize = 10_000;
/// Default number of worlds.
const SEEDS: u64 = 300;

/// Runs each world, and prints the seed of a failed one.
fn each(name: &str, run: impl Fn(u64)) {
    let number = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let seeds = match number("HARVEST_REPLICATION_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("HARVEST_REPLICATION_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            eprintln!("{name} failed with HARVEST_REPLICATION_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Returns the honest members that an update reaches over honest members of the groups that have
/// the namespace.
fn reached(world: &World, space: usize) -> BTreeSet<usize> {
    let space = &world.spaces[space];
    let mut reached = BTreeSet::from([space.origin]);
    let mut queue = vec![space.origin];
    while let Some(at) = queue.pop() {
        let neighbors = world.nodes[at].neighbors();
        for next in neighbors.iter().map(|it| world.members_of[it]) {
            let share = space
                .groups
                .iter()
                .any(|it| world.groups[*it].contains(&at) && world.groups[*it].contains(&next));
            if share && world.conduct[next] == Conduct::Honest && reached.insert(next) {
                queue.push(next);
            }
        }
    }
    reached
}

fn assert_converged(world: &World) {
    for (at, space) in world.spaces.iter().enumerate() {
        let Some(last) = &space.last else { continue };
        for member in reached(world, at) {
            let held = world.nodes[member].held(&space.namespace).map(|it| it.number);
            assert_eq!(held, Some(last.number), "member {member} holds {}", space.namespace);
        }
    }
}

#[test]
fn without_faults_each_chunk_comes_once() {
    each("without faults", |seed| {
        let mut world = World::new(seed, Conduct::Honest);
        // Members keep all versions, because requests for removed ones are in vain.
        world.nodes.iter_mut().for_each(|it| it.versions_kept = usize::MAX);
        world.plan(END, 0);
        world.run(END + Duration::from_mins(1));
        assert_converged(&world);
        // If several members carry a version across at once, three may request its root from each
        // other in a circle.
        let may = usize::from(1 < world.groups.len());
        for node in &world.nodes {
            let twice = node.came.values().filter(|it| 1 < **it).count();
            assert!(twice <= may, "{twice} of {}", node.came.len());
        }
    });
}

#[test]
fn after_cuts_and_crashes_all_are_equal() {
    each("cuts and crashes", |seed| {
        let mut world = World::new(seed, Conduct::Honest);
        world.plan(END, 12);
        world.run(END + PATIENCE);
        assert_converged(&world);
    });
}

/// Checks that one member of this conduct does not keep the others from becoming equal, with few
/// messages and without accusing an honest member.
fn others_converge(name: &str, conduct: Conduct) {
    each(name, |seed| {
        let mut world = World::new(seed, conduct);
        world.plan(END, 4);
        world.run(END + PATIENCE);
        assert_converged(&world);
        assert!(world.messages < MESSAGES_MAX, "{} messages", world.messages);
        let is_honest = |at: usize| world.conduct[at] == Conduct::Honest;
        for (at, node) in world.nodes.iter().enumerate().filter(|(at, _)| is_honest(*at)) {
            for (of, fault) in node.faults.iter().filter(|it| is_honest(world.members_of[&it.0])) {
                assert_eq!(*fault, Fault::Stalls, "member {at} accuses {of}");
            }
        }
    });
}

#[test]
fn a_silent_member_delays_nobody_for_long() {
    others_converge("a silent member", Conduct::Silent);
}

#[test]
fn a_member_that_sends_a_byte_a_second_delays_nobody_for_long() {
    others_converge("a slow member", Conduct::Slow);
}

#[test]
fn a_member_that_announces_and_never_delivers_is_passed_over() {
    others_converge("a boaster", Conduct::Boaster);
}

#[test]
fn repeated_messages_change_nothing() {
    others_converge("a parrot", Conduct::Parrot);
}

#[test]
fn a_liar_is_not_believed() {
    others_converge("a liar", Conduct::Liar);
}

#[test]
fn all_members_notice_an_origin_that_contradicts_itself() {
    each("an origin that contradicts itself", |seed| {
        let mut world = World::new(seed, Conduct::Honest);
        world.plan(END, 0);
        world.run(END);
        world.equivocate(0);
        world.run(END + Duration::from_mins(5));
        let namespace = world.spaces[0].namespace.clone();
        let reached = reached(&world, 0);
        for member in &reached {
            assert!(world.nodes[*member].contradictions.contains(&namespace), "member {member}");
        }
        world.publish_anew(0);
        world.run(END + PATIENCE);
        assert_converged(&world);
    });
}
