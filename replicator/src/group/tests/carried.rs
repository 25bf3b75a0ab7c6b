//! Trees of other groups, which members bring into this one.

use super::*;
use crate::group::charter::{Carried, TREES_MAX};
use crate::group::join::{CARRIED_MAX, MEMBER_TREES_MAX};
use crate::version::Kind;

fn tree(writer: u8, name: &str) -> Tree {
    Tree { writer: identity(writer).public(), name: Name::new(name).unwrap(), kind: Kind::Tree }
}

fn many(writer: u8, count: usize) -> Vec<Tree> {
    (0..count).map(|it| tree(writer, &format!("{it:0>4}"))).collect()
}

impl World {
    pub(super) fn settle(&mut self, seed: u8, change: impl FnOnce(&mut Settings)) {
        let now = self.now;
        let group = self.groups.get_mut(&id(seed)).unwrap();
        let mut settings = group.settings.clone();
        change(&mut settings);
        group.handle_settings(settings, now);
    }

    fn carry(&mut self, seed: u8, trees: &[Tree]) {
        let carried = |it: &Tree| Carried { tree: it.clone(), distance: 1 };
        self.settle(seed, |it| it.carried = trees.iter().map(carried).collect());
        self.run(MINUTE);
    }

    fn deny(&mut self, seed: u8) {
        let mut access = self.charter().body().access.clone();
        access.deny.push(Rule::Member(id(seed)));
        self.settle(1, |it| it.access = Some(access));
        self.run(MINUTE);
    }

    /// The trees of writers that are no members.
    fn carried(&self) -> Vec<Tree> {
        let charter = self.charter();
        let is_foreign = |it: &&Tree| charter.body().member(MemberId::of(&it.writer)).is_none();
        self.groups[&id(1)].trees().filter(is_foreign).cloned().collect()
    }
}

#[test]
fn a_tree_is_in_the_group_as_long_as_anybody_carries_it() {
    let mut world = World::new(5);
    world.run(2 * MINUTE);
    let (one, two) = (tree(50, "one"), tree(50, "two"));
    // A leader may carry as well.
    world.carry(1, std::slice::from_ref(&one));
    world.carry(2, &[two.clone(), one.clone()]);
    world.carry(3, std::slice::from_ref(&two));
    assert_eq!(world.carried(), [one.clone(), two.clone()]);
    // All that was asked for is settled: nobody asks again.
    let before = world.charter();
    world.run(20 * MINUTE);
    assert_eq!(world.charter().body().members, before.body().members);
    world.carry(1, &[]);
    assert_eq!(world.carried(), [one, two.clone()]);
    // One carrier goes, with what it alone brought; and then the other does.
    world.deny(2);
    world.groups.remove(&id(2));
    assert_eq!(world.carried(), [two]);
    world.carry(3, &[]);
    assert_eq!(world.carried(), []);
}

#[test]
fn when_one_of_many_carriers_goes_another_is_noted() {
    let mut world = World::new(6);
    world.run(2 * MINUTE);
    let tree = tree(50, "tree");
    for seed in 2..=6 {
        world.carry(seed, std::slice::from_ref(&tree));
    }
    for seed in 2..=5 {
        assert_eq!(world.carried(), std::slice::from_ref(&tree));
        world.deny(seed);
        world.groups.remove(&id(seed));
    }
    assert_eq!(world.carried(), [tree]);
    world.deny(6);
    world.groups.remove(&id(6));
    assert_eq!(world.carried(), []);
}

#[test]
fn a_writer_that_joins_later_says_itself_what_its_tree_is() {
    let mut world = World::new(5);
    let gone = world.groups.remove(&id(5)).unwrap();
    world.run(2 * MINUTE);
    let said = Tree { kind: Kind::Collection, ..tree(5, "tree") };
    world.carry(2, std::slice::from_ref(&said));
    assert_eq!(world.carried(), [said]);
    world.groups.insert(id(5), gone);
    world.run(3 * MINUTE);
    let of_writer = |world: &World| {
        let charter = world.charter();
        let is_it = |it: &&charter::Listed| it.tree.writer == identity(5).public();
        charter.body().trees.iter().filter(is_it).map(|it| it.tree.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of_writer(&world), [tree(5, "tree")]);
    // It no longer lists it, but somebody carries it still.
    world.settle(5, |it| it.trees.clear());
    world.run(MINUTE);
    assert_eq!(of_writer(&world), [tree(5, "tree")]);
    // Who is denied is so with all that it writes, whoever brings it, and nobody asks again for it.
    world.deny(5);
    world.groups.remove(&id(5));
    assert_eq!(of_writer(&world), []);
    let before = world.charter();
    world.run(20 * MINUTE);
    assert_eq!(world.charter().body().members, before.body().members);
}

#[test]
fn nobody_lists_more_than_there_is_room_for() {
    let mut world = World::new(12);
    world.run(2 * MINUTE);
    world.alarms.clear();
    world.carry(2, &many(50, CARRIED_MAX + 9));
    assert_eq!(world.carried(), many(50, CARRIED_MAX));
    assert_eq!(world.alarms, [Alarm::Unlisted(9)]);
    world.settle(2, |it| {
        let name = |it: usize| Name::new(&format!("{it:0>3}")).unwrap();
        it.trees = (0..=MEMBER_TREES_MAX).map(|it| (name(it), Kind::Tree)).collect();
    });
    world.run(MINUTE);
    assert_eq!(world.alarms, [Alarm::Unlisted(9), Alarm::Unlisted(10)]);
    assert_eq!(world.charter().body().trees.len(), 11 + CARRIED_MAX + MEMBER_TREES_MAX);
    for seed in 3..12 {
        world.carry(seed, &many(60 + seed, CARRIED_MAX));
    }
    // Those that do not fit are refused as a whole.
    let count = world.charter().body().trees.len();
    assert!((TREES_MAX - CARRIED_MAX..=TREES_MAX).contains(&count), "{count}");
}
