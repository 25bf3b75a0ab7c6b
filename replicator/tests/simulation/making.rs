//! Random groups and namespaces.

use std::collections::BTreeSet;

use fastrand::Rng;
use replicator::version::{Name, Namespace};

use super::conduct::Conduct;
use super::node::Node;
use super::world::SimulatedSpace;

/// Makes groups of at least two members. Every member is in a group, and every group but the first
/// shares a member with an earlier one.
pub(crate) fn groups(dice: &mut Rng, members: usize) -> Vec<BTreeSet<usize>> {
    let count = dice.usize(1..4);
    let mut groups = vec![BTreeSet::new(); count];
    for member in 0..members {
        groups[dice.usize(..count)].insert(member);
    }
    groups.retain(|it| !it.is_empty());
    for at in 1..groups.len() {
        for _ in 0..dice.usize(1..3) {
            let other = &groups[dice.usize(..at)];
            let shared = *other.iter().nth(dice.usize(..other.len())).unwrap();
            groups[at].insert(shared);
        }
    }
    if groups[0].len() < 2 {
        groups[0].extend([0, 1]);
    }
    groups
}

/// Makes namespaces of honest origins, in their groups and some to which members carry them.
pub(crate) fn spaces(
    dice: &mut Rng,
    nodes: &[Node],
    groups: &[BTreeSet<usize>],
    conduct: &[Conduct],
) -> Vec<SimulatedSpace> {
    let honest: Vec<usize> =
        (0..nodes.len()).filter(|it| conduct[*it] == Conduct::Honest).collect();
    let mut spaces = Vec::new();
    for number in 0..dice.usize(1..4) {
        let origin = honest[dice.usize(..honest.len())];
        let mut listed: Vec<usize> =
            (0..groups.len()).filter(|it| groups[*it].contains(&origin)).collect();
        for at in 0..groups.len() {
            let joins = listed.iter().any(|it| !groups[*it].is_disjoint(&groups[at]));
            if joins && !listed.contains(&at) && dice.bool() {
                listed.push(at);
            }
        }
        let name = Name::new(&format!("tree-{number}")).unwrap();
        let namespace = Namespace { origin: nodes[origin].id, name: name.clone() };
        let (chunks, to_come) = (Vec::new(), dice.usize(1..6));
        spaces.push(SimulatedSpace {
            origin,
            name,
            namespace,
            groups: listed,
            last: None,
            made: Vec::new(),
            chunks,
            to_come,
        });
    }
    spaces
}
