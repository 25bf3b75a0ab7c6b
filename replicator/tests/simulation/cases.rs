//! Tests of faults known from other systems, one world each.

use std::time::Duration;

use crate::conduct::Conduct;
use crate::world::World;
use crate::{PATIENCE, assert_converged};
use replicator::fetch::Fault;

const SECOND: Duration = Duration::from_secs(1);

/// Returns the sequence of the version that each member holds.
fn held(world: &World) -> Vec<Option<u64>> {
    let namespace = &world.spaces[0].namespace;
    world.nodes.iter().map(|it| it.held(namespace).map(|it| it.number.sequence)).collect()
}

/// CVMFS: a server that did not answer was treated as one that had removed the content.
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

/// Syncthing: files that were made, changed and removed before others had them got stuck.
#[test]
fn versions_overtaken_on_their_way_delay_nothing() {
    let mut world = World::of(5);
    for step in 0..40 {
        world.publish(0);
        world.run(Duration::from_millis(50) * step);
    }
    world.run(SECOND * 60);
    assert_eq!(held(&world), [Some(40); 5]);
}

/// lsyncd: changes made while a disk was full were never sent.
#[test]
fn updates_continue_after_a_disk_was_full() {
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

/// Unison and others: deleted files came back with a member that had been away.
#[test]
fn a_returning_member_brings_no_old_version_back() {
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

/// Dragonfly: the origin sent to everybody while members that had the content idled.
#[test]
fn an_origin_sends_only_to_its_neighbors_in_the_tree() {
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

/// Makes a world in which one member, between others in the tree, has this conduct.
fn with_one(conduct: Conduct) -> (World, usize) {
    let mut world = World::of(8);
    let member = (1..8).find(|it| 1 < world.tree_neighbors(*it)).unwrap();
    world.conduct[member] = conduct;
    world.run(SECOND);
    (world, member)
}

/// Returns whether another member reports this fault of a member.
fn is_named(world: &World, member: usize, fault: Fault) -> bool {
    let id = world.nodes[member].id;
    world.nodes.iter().any(|it| it.id != id && it.faults.contains(&(id, fault)))
}

/// Publishes, and waits until all but one member hold the version. Returns the time taken.
fn spread(world: &mut World, but: usize) -> Duration {
    world.publish(0);
    let (begin, last) = (world.now, world.spaces[0].last.clone().unwrap().number.sequence);
    while held(world).iter().enumerate().any(|(at, it)| at != but && *it != Some(last)) {
        assert!(world.now < begin + PATIENCE, "{last}: {:?}", held(world));
        world.run(world.now + SECOND);
    }
    world.now - begin
}

/// Checks that the next version spreads at once, past this member.
fn assert_is_passed_over(world: &mut World, member: usize) {
    let before = world.chunks_asked[member];
    assert!(spread(world, member) < SECOND * 5);
    assert_eq!(world.chunks_asked[member], before, "it was asked again");
}

#[test]
fn a_slow_member_is_named_and_passed_over() {
    for conduct in [Conduct::Silent, Conduct::Slow] {
        let (mut world, member) = with_one(conduct);
        spread(&mut world, member);
        assert!(is_named(&world, member, Fault::Stalls), "{conduct:?}");
        assert_is_passed_over(&mut world, member);
    }
}

#[test]
fn a_member_that_lacks_a_version_it_claims_is_named() {
    let (mut world, member) = with_one(Conduct::Boaster);
    spread(&mut world, member);
    assert!(is_named(&world, member, Fault::Lacks));
    assert_is_passed_over(&mut world, member);
}

#[test]
fn a_member_that_changes_chunks_is_named() {
    let (mut world, member) = with_one(Conduct::Forger);
    for _ in 0..4 {
        spread(&mut world, member);
        world.run(world.now + SECOND * 300);
    }
    assert!(is_named(&world, member, Fault::Unasked));
    spread(&mut world, member);
    assert_is_passed_over(&mut world, member);
}

/// The member that was asked may not be a neighbor any more.
#[test]
fn a_version_comes_by_other_links_when_the_links_change() {
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
