//! Members, links, faults and time, simulated: the same seed gives the same world.
//!
//! `HARVEST_REPLICATION_SEEDS` says how many worlds, `HARVEST_REPLICATION_SEED` which one alone.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, reason = "it says which seed failed")]
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

/// Changes and faults end then.
const END: Duration = Duration::from_secs(120);
/// By then all is to be equal: by the slowest clock a neighbor that stalls may rest for four minutes.
const PATIENCE: Duration = Duration::from_mins(8);
/// Most messages that arrive in a world of up to eight members, three trees and fifteen versions.
const MESSAGES_MAX: usize = 10_000;
/// How many worlds there are when nobody says.
const SEEDS: u64 = 300;

/// Runs each world, and says which seed it was that failed.
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

/// The honest members that an update reaches whatever the others do: over links of honest members, in groups that
/// have the namespace.
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
        // What its origin has removed is asked for in vain.
        world.nodes.iter_mut().for_each(|it| it.kept = usize::MAX);
        world.plan(END, 0);
        world.run(END + Duration::from_mins(1));
        assert_converged(&world);
        // While several members carry a version across at once, three may ask each other in a circle for its root.
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

/// One member is like that; all others become equal nevertheless, without much ado, and accuse no honest one.
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
                assert_eq!(*fault, Fault::Stalls, "member {at} says that of {of}");
            }
        }
    });
}

#[test]
fn who_sends_nothing_holds_up_nobody_for_long() {
    others_converge("a silent member", Conduct::Silent);
}

#[test]
fn who_sends_a_byte_a_second_holds_up_nobody_for_long() {
    others_converge("a slow member", Conduct::Slow);
}

#[test]
fn who_announces_and_never_delivers_is_passed_over() {
    others_converge("a boaster", Conduct::Boaster);
}

#[test]
fn what_is_said_again_changes_nothing() {
    others_converge("a parrot", Conduct::Parrot);
}

#[test]
fn who_lies_is_not_believed() {
    others_converge("a liar", Conduct::Liar);
}

#[test]
fn an_origin_that_contradicts_itself_is_found_out_by_all() {
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
