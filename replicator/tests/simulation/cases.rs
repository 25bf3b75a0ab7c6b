//! What went wrong with others, one world each.

use std::time::Duration;

use crate::conduct::Conduct;
use crate::world::World;
use crate::{PATIENCE, assert_converged};
use replicator::fetch::Fault;

const SECOND: Duration = Duration::from_secs(1);

/// The versions that the members hold, by their sequence.
fn held(world: &World) -> Vec<Option<u64>> {
    let namespace = &world.spaces[0].namespace;
    world.nodes.iter().map(|it| it.held(namespace).map(|it| it.number.sequence)).collect()
}

/// CVMFS: a server that does not answer was taken for one that has removed it.
#[test]
fn a_time_out_removes_nothing() {
    let mut world = World::of(2);
    world.publish(0);
    world.run(SECOND * 10);
    assert_eq!(held(&world), [Some(1), Some(1)]);
    world.conduct[0] = Conduct::Silent;
    world.publish(0);
    world.run(PATIENCE);
    assert_eq!(held(&world), [Some(2), Some(1)]);
    world.conduct[0] = Conduct::Honest;
    world.run(PATIENCE * 2);
    assert_converged(&world);
}

/// Syncthing: what was made, changed and removed before others had it stayed stuck.
#[test]
fn what_is_overtaken_on_its_way_holds_up_nothing() {
    let mut world = World::of(5);
    for step in 0..40 {
        world.publish(0);
        world.run(Duration::from_millis(50) * step);
    }
    world.run(SECOND * 60);
    assert_eq!(held(&world), [Some(40); 5]);
}

/// lsyncd: what changed while a disk was full was never sent.
#[test]
fn a_full_disk_is_waited_for() {
    let mut world = World::of(3);
    world.run(SECOND);
    world.nodes[2].is_full = true;
    world.publish(0);
    world.run(SECOND * 60);
    assert_eq!(held(&world), [Some(1), Some(1), None]);
    world.publish(0);
    world.run(SECOND * 120);
    assert_eq!(held(&world), [Some(2), Some(2), None]);
    world.nodes[2].is_full = false;
    world.run(PATIENCE);
    assert_converged(&world);
}

/// Unison and others: what had been deleted came back with a member that was away.
#[test]
fn who_was_away_brings_nothing_back() {
    let mut world = World::of(4);
    world.publish(0);
    world.run(SECOND * 20);
    world.crash(3);
    world.publish(0);
    world.run(SECOND * 40);
    assert_eq!(held(&world), [Some(2), Some(2), Some(2), Some(1)]);
    world.restart(3);
    for at in 41..80 {
        world.run(SECOND * at);
        assert!(held(&world).iter().take(3).all(|it| *it == Some(2)));
    }
    assert_converged(&world);
}

/// Dragonfly: the origin sent to everybody while those that had it idled.
#[test]
fn an_origin_sends_to_its_neighbors_in_the_tree_alone() {
    let mut world = World::of(8);
    world.run(SECOND);
    world.publish(0);
    world.run(SECOND * 60);
    assert_converged(&world);
    let chunks = world.nodes[1].came.len();
    let sent = world.chunks_sent[0];
    let neighbors = world.tree_neighbors(0);
    assert_eq!(sent, chunks * neighbors, "{chunks} chunks, {neighbors} neighbors");
    assert_eq!(world.chunks_sent.iter().sum::<usize>(), chunks * 7);
}

/// A world in which a member through which others pull is like that.
fn with_one(conduct: Conduct) -> (World, usize) {
    let mut world = World::of(8);
    let member = (1..8).find(|it| 1 < world.tree_neighbors(*it)).unwrap();
    world.conduct[member] = conduct;
    world.run(SECOND);
    (world, member)
}

/// Whether any other says that of a member.
fn is_named(world: &World, member: usize, fault: Fault) -> bool {
    let id = world.nodes[member].id;
    world.nodes.iter().any(|it| it.id != id && it.faults.contains(&(id, fault)))
}

/// Publishes, and waits until all but one hold it; returns how long that took.
fn spread(world: &mut World, but: usize) -> Duration {
    world.publish(0);
    let (begin, last) = (world.now, world.spaces[0].last.clone().unwrap().number.sequence);
    while held(world).iter().enumerate().any(|(at, it)| at != but && *it != Some(last)) {
        assert!(world.now < begin + PATIENCE, "{last}: {:?}", held(world));
        world.run(world.now + SECOND);
    }
    world.now - begin
}

/// What is published next goes by others, and at once.
fn assert_is_passed_over(world: &mut World, member: usize) {
    let before = world.chunks_asked[member];
    assert!(spread(world, member) < SECOND * 5);
    assert_eq!(world.chunks_asked[member], before, "it was asked again");
}

#[test]
fn who_is_slow_is_named_and_passed_over() {
    for conduct in [Conduct::Silent, Conduct::Slow] {
        let (mut world, member) = with_one(conduct);
        spread(&mut world, member);
        assert!(is_named(&world, member, Fault::Stalls), "{conduct:?}");
        assert_is_passed_over(&mut world, member);
    }
}

#[test]
fn who_lacks_what_it_says_it_holds_is_named() {
    let (mut world, member) = with_one(Conduct::Boaster);
    spread(&mut world, member);
    assert!(is_named(&world, member, Fault::Lacks));
    assert_is_passed_over(&mut world, member);
}

#[test]
fn who_changes_chunks_is_named() {
    let (mut world, member) = with_one(Conduct::Forger);
    for _ in 0..4 {
        spread(&mut world, member);
        world.run(world.now + SECOND * 300);
    }
    assert!(is_named(&world, member, Fault::Unasked));
    spread(&mut world, member);
    assert_is_passed_over(&mut world, member);
}

/// Whoever is asked may be no neighbor any more.
#[test]
fn a_version_comes_by_another_way_when_the_links_change() {
    let mut world = World::of(6);
    for step in 0..20 {
        world.run(SECOND * 3 * step);
        world.publish(0);
        world.form_groups();
        world.form_links();
    }
    world.run(SECOND * 120);
    assert_eq!(held(&world), [Some(20); 6]);
}
