//! Who holds which version, as all others see it.

use super::*;
use crate::group::held::Tag;
use crate::version::{Namespace, Number};

fn tree(writer: u8) -> Namespace {
    Namespace { origin: id(writer), name: Name::new("tree").unwrap() }
}

impl World {
    pub(super) fn hold(&mut self, member: u8, writer: u8, sequence: u64) {
        let number = Number { epoch: 1, sequence };
        self.held.entry(id(member)).or_default().insert(tree(writer), number);
    }

    /// Which version of the tree of `writer` a member holds, as another has heard.
    fn seen(&self, by: u8, member: u8, writer: u8) -> Option<Option<u64>> {
        let held = self.groups[&id(by)].held_by(id(member))?;
        Some(held.number(Tag::of(&tree(writer))).map(|it| it.sequence))
    }

    /// Whether all that run have heard of all others what they hold.
    fn is_all_seen(&self, count: u8) -> bool {
        let pairs = (1..=count).flat_map(|by| (1..=count).map(move |it| (by, it)));
        let there = |it: &u8| self.groups.contains_key(&id(*it));
        pairs.filter(|(by, it)| by != it && there(by) && there(it)).all(|(by, member)| {
            (1..=count).all(|writer| {
                let held = self.held.get(&id(member)).and_then(|it| it.get(&tree(writer)));
                self.seen(by, member, writer) == Some(held.map(|it| it.sequence))
            })
        })
    }
}

#[test]
fn all_know_which_versions_all_hold() {
    let mut world = World::new(6);
    world.run(3 * MINUTE);
    // Not all are neighbors.
    assert!(world.groups.values().any(|it| it.neighbors().count() < 5));
    assert_eq!(world.seen(1, 6, 2), Some(None));
    for member in 1..=6 {
        world.hold(member, 2, u64::from(member));
        world.hold(member, 3, 7);
    }
    world.run(MINUTE / 2);
    assert!(world.is_all_seen(6));
    world.hold(4, 2, 9);
    world.run(MINUTE / 2);
    assert!(world.is_all_seen(6) && world.seen(1, 4, 2) == Some(Some(9)));
    assert_eq!(world.alarms, []);
}

#[test]
fn who_comes_back_is_not_taken_for_what_it_was() {
    let mut world = World::new(5);
    world.run(3 * MINUTE);
    (1..=5).for_each(|it| world.hold(it, 2, 3));
    world.run(MINUTE);
    world.kill(id(4));
    // What it held is known, and how long it is silent says how old that is.
    world.run(6 * MINUTE);
    assert_eq!(world.seen(1, 4, 2), Some(Some(3)));
    assert!(5 * MINUTE <= world.groups[&id(1)].silence(id(4), world.now));
    // Its disk is that of before, but the tree on it is lost.
    world.held.remove(&id(4));
    let kept = world.kept[&id(4)].clone();
    let back = Group::open(identity(4), settings(4, None), Some(&kept), None, world.now).unwrap();
    world.groups.insert(id(4), back);
    world.run(2 * MINUTE);
    assert!(world.is_all_seen(5) && world.seen(1, 4, 2) == Some(None));
}

#[test]
fn who_has_lost_its_disk_says_anew_what_it_holds() {
    let mut world = World::new(4);
    world.run(2 * MINUTE);
    (1..=4).for_each(|it| world.hold(it, 2, 3));
    world.run(MINUTE);
    let invitation = world.groups[&id(1)].invitation(None);
    world.kill(id(3));
    world.held.remove(&id(3));
    let new = Group::open(identity(3), settings(3, None), None, invitation, world.now).unwrap();
    world.groups.insert(id(3), new);
    world.run(3 * MINUTE);
    assert!(world.is_all_seen(4) && world.seen(2, 3, 2) == Some(None));
}
