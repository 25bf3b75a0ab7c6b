//! Tests of holdings: the versions that each member has, as all others see them.

use super::*;
use crate::group::held::Tag;
use crate::version::{Namespace, Number};

fn tree(writer: u8) -> Namespace {
    Namespace { origin: id(writer), name: Name::new("tree").unwrap() }
}

impl TestNet {
    pub(super) fn hold(&mut self, member: u8, writer: u8, sequence: u64) {
        let number = Number { epoch: 1, sequence };
        self.held.entry(id(member)).or_default().insert(tree(writer), number);
    }

    /// Returns the version of the tree of `writer` that a member holds, as `by` knows it.
    fn seen(&self, by: u8, member: u8, writer: u8) -> Option<Option<u64>> {
        let held = self.groups[&id(by)].held_by(id(member))?;
        Some(held.number(Tag::of(&tree(writer))).map(|it| it.sequence))
    }

    /// Returns whether all running members know all holdings of all others.
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
fn all_members_know_all_holdings() {
    let mut net = TestNet::new(6);
    net.run(3 * MINUTE);
    // Some pairs are not neighbors.
    assert!(net.groups.values().any(|it| it.neighbors().count() < 5));
    assert_eq!(net.seen(1, 6, 2), Some(None));
    for member in 1..=6 {
        net.hold(member, 2, u64::from(member));
        net.hold(member, 3, 7);
    }
    net.run(MINUTE / 2);
    assert!(net.is_all_seen(6));
    net.hold(4, 2, 9);
    net.run(MINUTE / 2);
    assert!(net.is_all_seen(6) && net.seen(1, 4, 2) == Some(Some(9)));
    assert_eq!(net.alarms, []);
}

#[test]
fn old_holdings_do_not_count_after_a_restart() {
    let mut net = TestNet::new(5);
    net.run(3 * MINUTE);
    (1..=5).for_each(|it| net.hold(it, 2, 3));
    net.run(MINUTE);
    net.kill(id(4));
    // Its holdings are still known, and its silence says how old they are.
    net.run(6 * MINUTE);
    assert_eq!(net.seen(1, 4, 2), Some(Some(3)));
    assert!(5 * MINUTE <= net.groups[&id(1)].silence(id(4), net.now));
    // The member starts with its saved group, but its tree is lost.
    net.held.remove(&id(4));
    let saved = net.saved[&id(4)].clone();
    let back = Group::open(identity(4), settings(4, None), Some(&saved), None, net.now).unwrap();
    net.groups.insert(id(4), back);
    net.run(2 * MINUTE);
    assert!(net.is_all_seen(5) && net.seen(1, 4, 2) == Some(None));
}

#[test]
fn a_member_that_has_lost_its_disk_reports_its_holdings_anew() {
    let mut net = TestNet::new(4);
    net.run(2 * MINUTE);
    (1..=4).for_each(|it| net.hold(it, 2, 3));
    net.run(MINUTE);
    let invitation = net.groups[&id(1)].invitation(None);
    net.kill(id(3));
    net.held.remove(&id(3));
    let new = Group::open(identity(3), settings(3, None), None, invitation, net.now).unwrap();
    net.groups.insert(id(3), new);
    net.run(3 * MINUTE);
    assert!(net.is_all_seen(4) && net.seen(2, 3, 2) == Some(None));
}
