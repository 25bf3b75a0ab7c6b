//! Tests of carried trees: those of other groups, which members bring into this one.

use super::*;
use crate::group::charter::{Carried, TREES_MAX};
use crate::group::join::{CARRIED_MAX, MEMBER_TREES_MAX};
use crate::version::Kind;

fn tree(writer: u8, name: &str) -> GroupTree {
    let (writer, name) = (identity(writer).public(), Name::new(name).unwrap());
    GroupTree { writer, name, kind: Kind::Tree }
}

fn many(writer: u8, count: usize) -> Vec<GroupTree> {
    (0..count).map(|it| tree(writer, &format!("{it:0>4}"))).collect()
}

impl TestNet {
    pub(super) fn settle(&mut self, seed: u8, change: impl FnOnce(&mut Settings)) {
        let now = self.now;
        let group = self.groups.get_mut(&id(seed)).unwrap();
        let mut settings = group.settings.clone();
        change(&mut settings);
        group.handle_settings(settings, now);
    }

    fn carry(&mut self, seed: u8, trees: &[GroupTree]) {
        let carried = |it: &GroupTree| Carried { tree: it.clone(), distance: 1 };
        self.settle(seed, |it| it.carried = trees.iter().map(carried).collect());
        self.run(MINUTE);
    }

    fn deny(&mut self, seed: u8) {
        let mut access = self.charter().body().access.clone();
        access.deny.push(Rule::Member(id(seed)));
        self.settle(1, |it| it.access = Some(access));
        self.run(MINUTE);
    }

    /// Returns the trees of writers that are no members.
    fn carried(&self) -> Vec<GroupTree> {
        let charter = self.charter();
        let is_foreign =
            |it: &&GroupTree| charter.body().member(MemberId::of(&it.writer)).is_none();
        self.groups[&id(1)].trees().filter(is_foreign).cloned().collect()
    }
}

#[test]
fn a_tree_is_in_the_group_as_long_as_a_member_carries_it() {
    let mut net = TestNet::new(5);
    net.run(2 * MINUTE);
    let (one, two) = (tree(50, "one"), tree(50, "two"));
    // A leader may carry as well.
    net.carry(1, std::slice::from_ref(&one));
    net.carry(2, &[two.clone(), one.clone()]);
    net.carry(3, std::slice::from_ref(&two));
    assert_eq!(net.carried(), [one.clone(), two.clone()]);
    // All requests are settled: no member asks again.
    let before = net.charter();
    net.run(20 * MINUTE);
    assert_eq!(net.charter().body().members, before.body().members);
    net.carry(1, &[]);
    assert_eq!(net.carried(), [one, two.clone()]);
    // One carrier leaves, with the tree that it alone brought, and then the other.
    net.deny(2);
    net.groups.remove(&id(2));
    assert_eq!(net.carried(), [two]);
    net.carry(3, &[]);
    assert_eq!(net.carried(), []);
}

#[test]
fn when_one_of_many_carriers_leaves_another_takes_its_place() {
    let mut net = TestNet::new(6);
    net.run(2 * MINUTE);
    let tree = tree(50, "tree");
    for seed in 2..=6 {
        net.carry(seed, std::slice::from_ref(&tree));
    }
    for seed in 2..=5 {
        assert_eq!(net.carried(), std::slice::from_ref(&tree));
        net.deny(seed);
        net.groups.remove(&id(seed));
    }
    assert_eq!(net.carried(), [tree]);
    net.deny(6);
    net.groups.remove(&id(6));
    assert_eq!(net.carried(), []);
}

#[test]
fn a_writer_that_joins_later_sets_the_kind_of_its_tree() {
    let mut net = TestNet::new(5);
    let gone = net.groups.remove(&id(5)).unwrap();
    net.run(2 * MINUTE);
    let claimed = GroupTree { kind: Kind::Collection, ..tree(5, "tree") };
    net.carry(2, std::slice::from_ref(&claimed));
    assert_eq!(net.carried(), [claimed]);
    net.groups.insert(id(5), gone);
    net.run(3 * MINUTE);
    let of_writer = |net: &TestNet| {
        let charter = net.charter();
        let is_it = |it: &&charter::Listed| it.tree.writer == identity(5).public();
        charter.body().trees.iter().filter(is_it).map(|it| it.tree.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of_writer(&net), [tree(5, "tree")]);
    // The writer no longer lists it, but another member still carries it.
    net.settle(5, |it| it.trees.clear());
    net.run(MINUTE);
    assert_eq!(of_writer(&net), [tree(5, "tree")]);
    // A denied writer's trees are denied too, whoever brings them. No member asks for them again.
    net.deny(5);
    net.groups.remove(&id(5));
    assert_eq!(of_writer(&net), []);
    let before = net.charter();
    net.run(20 * MINUTE);
    assert_eq!(net.charter().body().members, before.body().members);
}

#[test]
fn trees_above_the_bounds_are_not_listed() {
    let mut net = TestNet::new(12);
    net.run(2 * MINUTE);
    net.alarms.clear();
    net.carry(2, &many(50, CARRIED_MAX + 9));
    assert_eq!(net.carried(), many(50, CARRIED_MAX));
    assert_eq!(net.alarms, [Alarm::Unlisted(9)]);
    net.settle(2, |it| {
        let name = |it: usize| Name::new(&format!("{it:0>3}")).unwrap();
        it.trees = (0..=MEMBER_TREES_MAX).map(|it| (name(it), Kind::Tree)).collect();
    });
    net.run(MINUTE);
    assert_eq!(net.alarms, [Alarm::Unlisted(9), Alarm::Unlisted(10)]);
    assert_eq!(net.charter().body().trees.len(), 11 + CARRIED_MAX + MEMBER_TREES_MAX);
    for seed in 3..12 {
        net.carry(seed, &many(60 + seed, CARRIED_MAX));
    }
    // A member's trees that do not all fit are refused together.
    let count = net.charter().body().trees.len();
    assert!((TREES_MAX - CARRIED_MAX..=TREES_MAX).contains(&count), "{count}");
}
