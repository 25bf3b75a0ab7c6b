//! Which links a group gets: from what its members say of them, and from what nobody has measured yet.
//!
//! Sans-I/O.

use crate::estimate::{self, Entry, Row};
use crate::topology::{self, Bounds, Costs, Topology, UNREACHABLE};

use super::charter::{Body, Member};
use crate::id::MemberId;

/// For updates of so many bytes links are chosen.
pub const UPDATE_BYTES: u64 = 1 << 20;

/// What is assumed to cost, in microseconds, a link that nobody has measured: one that the group has already, one
/// within a site, and any other. Whatever was measured is better than the last two.
const HELD: u32 = 100_000;
const NEAR: u32 = 60_000_000;
const FAR: u32 = 1_800_000_000;

/// Whether an entry says that its member was called and did not answer.
pub(super) fn is_unanswered(entry: Entry) -> bool {
    entry.round_trip().is_none() && entry.bandwidth().is_none()
}

/// Returns what is left of a topology among members that are others, or stand elsewhere: `before` are those that it
/// is of.
pub(super) fn carried(topology: &Topology, before: &[Member], members: &[Member]) -> Topology {
    let place = |it: usize| {
        let id = before.get(it)?.id();
        let place = members.binary_search_by_key(&id, Member::id).ok()?;
        members.get(place).filter(|it| it.silent.is_none())?;
        u16::try_from(place).ok()
    };
    let links = |list: &[topology::Link]| {
        let ends = |it: &topology::Link| Some((place(it.a())?, place(it.b())?));
        // Both are in the order of ids, so that the first of a link stays the first.
        let mut all: Vec<(u16, u16)> = list.iter().filter_map(ends).collect();
        all.sort_unstable();
        all
    };
    let (tree, beside) = (links(topology.tree()), links(topology.beside()));
    // Links that were a topology are one without some of them.
    Topology::from_links(members.len(), &tree, &beside).unwrap_or_default()
}

/// Returns what the links of a group cost. Of two that say something of their link the worse counts, and so does a
/// call that was not answered; nobody has a link to a member that is silent.
pub(super) fn costs(body: &Body, rows: &[Row]) -> Costs {
    let ids: Vec<u64> = body.members.iter().map(|it| it.id().0).collect();
    let mut costs = estimate::costs(&ids, rows, UPDATE_BYTES);
    let mut fill = |a: usize, b: usize, cost: u32| {
        if costs.get(a, b) == UNREACHABLE {
            costs.set(a, b, cost);
        }
    };
    for link in body.topology.links() {
        fill(link.a(), link.b(), HELD);
    }
    for (a, one) in body.members.iter().enumerate() {
        for (b, other) in body.members.iter().enumerate().take(a) {
            fill(a, b, if one.site == other.site { NEAR } else { FAR });
        }
    }
    for row in rows {
        let Some(from) = body.place(MemberId(row.from)) else { continue };
        for entry in row.entries.iter().filter(|it| is_unanswered(**it)) {
            if let Some(to) = body.place(MemberId(entry.to)) {
                costs.set(from, to, UNREACHABLE);
            }
        }
    }
    for (a, _) in body.members.iter().enumerate().filter(|it| it.1.silent.is_some()) {
        (0..body.members.len()).for_each(|b| costs.set(a, b, UNREACHABLE));
    }
    costs
}

/// Returns the topology that a group gets: the one that it has, in `body`, unless another is clearly better.
pub(super) fn next(body: &Body, rows: &[Row]) -> Topology {
    topology::next(&body.topology, &costs(body, rows), body.connectivity, Bounds::DEFAULT)
}
