//! The links of a group, chosen by its members' estimates; unmeasured links have assumed costs.
//!
//! Sans-I/O.

use crate::estimate::{self, LinkEstimate, Row};
use crate::topology::{self, Bounds, Costs, Topology, UNREACHABLE};

use super::charter::{Body, Member};
use crate::id::MemberId;

/// Size of an update for which the costs of links are computed, in bytes.
pub const UPDATE_BYTES: u64 = 1 << 20;

/// Assumed cost of an unmeasured link that the topology already has, in microseconds.
const HELD: u32 = 100_000;
/// Assumed cost of any other unmeasured link within a site, in microseconds: above most measured.
const NEAR: u32 = 60_000_000;
/// Assumed cost of any other unmeasured link between sites, in microseconds.
const FAR: u32 = 1_800_000_000;

/// Returns whether an entry reports that the member it is about was called and did not answer.
pub(super) fn is_unanswered(entry: LinkEstimate) -> bool {
    entry.round_trip().is_none() && entry.bandwidth().is_none()
}

/// Carries a topology of the members `before` over to `members`, where members may be new, gone or
/// at other positions. Links of members that are gone or silent are left out.
pub(super) fn carried(topology: &Topology, before: &[Member], members: &[Member]) -> Topology {
    let position = |it: usize| {
        let id = before.get(it)?.id();
        let position = members.binary_search_by_key(&id, Member::id).ok()?;
        members.get(position).filter(|it| it.silent.is_none())?;
        u16::try_from(position).ok()
    };
    let links = |list: &[topology::Link]| {
        let ends = |it: &topology::Link| Some((position(it.a())?, position(it.b())?));
        // Both lists are in the order of ids, so that the first end of a link stays first.
        let mut all: Vec<(u16, u16)> = list.iter().filter_map(ends).collect();
        all.sort_unstable();
        all
    };
    let (tree, beside) = (links(topology.tree()), links(topology.beside()));
    // Without some of its links, a topology is still valid.
    Topology::from_links(members.len(), &tree, &beside).unwrap_or_default()
}

/// Returns the costs of a group's links. If both ends report a cost, the higher one counts. If
/// either end reports an unanswered call, the link cannot be used. A silent member has no links.
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
        let Some(from) = body.position(MemberId(row.from)) else { continue };
        for entry in row.entries.iter().filter(|it| is_unanswered(**it)) {
            if let Some(to) = body.position(MemberId(entry.to)) {
                costs.set(from, to, UNREACHABLE);
            }
        }
    }
    for (a, _) in body.members.iter().enumerate().filter(|it| it.1.silent.is_some()) {
        (0..body.members.len()).for_each(|b| costs.set(a, b, UNREACHABLE));
    }
    costs
}

/// Returns a group's next topology: the present one in `body`, unless another is clearly better.
pub(super) fn next(body: &Body, rows: &[Row]) -> Topology {
    topology::next(&body.topology, &costs(body, rows), body.connectivity, Bounds::DEFAULT)
}
