//! Test of expiry in a loop: brokers that pull each other keep nothing alive whose gatherer is gone.

use std::collections::{BTreeMap, BTreeSet};

use collection::{Batch, Change, GATHERER_ID, GATHERER_ROOT, Oid, Stamp};
use soif::Record;

use super::world::World;
use super::{Node, Random};

const DAY: u64 = 86_400_000;
/// Days for which an object lives unconfirmed.
const LIFE: u64 = 30;

/// Has each broker pull all its sources, and then delete what has expired; returns how many objects each has.
fn live_through(world: &mut World, day: u64, is_snapshot: bool) -> Vec<u64> {
    world.now = day * DAY;
    for edge in world.edges.clone() {
        world.pull(edge, is_snapshot);
    }
    let brokers = || world.nodes.iter().skip(1).map(Node::collection);
    for broker in brokers() {
        broker.sweep(Stamp(day * DAY), 1.0).unwrap();
    }
    brokers().map(|it| it.len()).collect()
}

#[test]
fn in_a_loop_nothing_outlives_the_last_confirmation_of_its_gatherer() {
    for (is_snapshot, is_by_root) in [(false, true), (true, true), (false, false)] {
        let mut world = World {
            random: Random(1),
            nodes: (0..4).map(|n| Node::new(format!("{n:016x}"))).collect(),
            gatherers: 1,
            // The first broker pulls the gatherer, and all three each other.
            edges: BTreeSet::from([(1, 0), (1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]),
            filters: BTreeMap::new(),
            now: 1,
            generation: 1,
            sent: 0,
        };
        let (gatherer, root) = (world.nodes[0].id.clone(), "http://h0/".to_owned());
        let mut record = Record::new("FILE", "http://h0/a");
        record.push(GATHERER_ID, gatherer.as_str());
        record.push(GATHERER_ROOT, root.as_str());
        record.push("Title", "1");
        let oid = Oid::new(&gatherer, &record.url);
        let confirm = match is_by_root {
            true => Change::Confirm { gatherer, root, at: Stamp(5 * DAY) },
            false => Change::Refresh(oid, None),
        };
        for (at, change) in [(1, Change::Update(record)), (5 * DAY, confirm)] {
            let batch = Batch { changes: vec![change], notes: Vec::new() };
            world.nodes[0].collection().commit(batch, Stamp(at)).unwrap();
            world.now = at;
            world.settle();
        }
        // From now on the gatherer does not answer.
        world.edges.remove(&(1, 0));
        for day in (6..5 + LIFE).step_by(4) {
            assert_eq!(live_through(&mut world, day, is_snapshot), [1, 1, 1], "day {day}");
        }
        // What is told on the way takes some milliseconds.
        for day in (6 + LIFE..5 + 3 * LIFE).step_by(4) {
            assert_eq!(live_through(&mut world, day, is_snapshot), [0, 0, 0], "day {day}");
        }
    }
}
