//! The status of a group: its members, its links, and their versions.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::invitations::statuses;
use super::links::Links;
use super::versions::versions;
use crate::estimate::{LinkEstimate, Row};
use crate::group::Group;
use crate::group::charter::Member;
use crate::id::MemberId;
use crate::replica::Replica;
use crate::status::{GroupStatus, MemberStatus, TopologyLink};
use crate::topology::Topology;

/// Returns the status of a group with this name, as far as the member `me` knows it by its content
/// and its links.
pub(super) fn group_status(
    name: String,
    group: &Group,
    (me, replica, neighbors): (MemberId, &Replica, &Links),
    now: Duration,
) -> GroupStatus {
    let id = group.id().to_string();
    let lies = group.lies();
    let Some(charter) = group.charter() else {
        return GroupStatus { name, id, lies, ..GroupStatus::default() };
    };
    let body = charter.body();
    let ids: Vec<MemberId> = body.members.iter().map(Member::id).collect();
    let (versions, trees) = versions(group, &ids, (me, replica), now);
    let members = body.members.iter().zip(versions).map(|(it, versions)| MemberStatus {
        id: it.id().to_string(),
        address: it.address.to_string(),
        site: it.site.to_string(),
        is_silent: it.silent.is_some(),
        silence: group.silence(it.id(), now).as_secs(),
        is_linked: neighbors.is_up(it.id()),
        invitation: it.invitation.map(|it| it.to_string()),
        versions,
    });
    let entries = link_entries(&group.all_rows());
    let topology = links(&body.topology, &ids, &entries);
    let used: HashSet<(usize, usize)> =
        body.topology.links().map(|it| (it.a().min(it.b()), it.a().max(it.b()))).collect();
    let mut measured = Vec::new();
    for (at, a) in ids.iter().enumerate() {
        for (other, b) in ids.iter().enumerate().skip(at + 1) {
            let is_measured =
                entries.contains_key(&(a.0, b.0)) || entries.contains_key(&(b.0, a.0));
            if is_measured && !used.contains(&(at, other)) {
                measured.push(link(*a, *b, false, &entries));
            }
        }
    }
    GroupStatus {
        name,
        id,
        is_member: group.is_member(),
        leader: Some(charter.leader().to_string()),
        epoch: charter.epoch(),
        revision: charter.revision(),
        deputies: charter.deputies().iter().map(|it| MemberId::of(it).to_string()).collect(),
        members: members.collect(),
        invitations: statuses(group, &body.invitations, now),
        trees,
        is_as_computed: group.computed().is_some_and(|it| it == body.topology),
        topology,
        measured,
        lies,
    }
}

/// The estimates of links, by the member that reports one and the member at the other end.
type LinkEntries = HashMap<(u64, u64), LinkEstimate>;

fn link_entries(rows: &[Row]) -> LinkEntries {
    let entries = |it: &Row| {
        let from = it.from;
        it.entries.clone().into_iter().map(move |it| ((from, it.to), it))
    };
    rows.iter().flat_map(entries).collect()
}

fn links(topology: &Topology, ids: &[MemberId], entries: &LinkEntries) -> Vec<TopologyLink> {
    let tree = topology.tree().iter().map(|it| (it, true));
    let beside = topology.beside().iter().map(|it| (it, false));
    let all = tree.chain(beside).filter_map(|(it, is_tree)| {
        let (a, b) = (*ids.get(it.a())?, *ids.get(it.b())?);
        Some(link(a.min(b), a.max(b), is_tree, entries))
    });
    all.collect()
}

/// Returns the status of a link: if both ends report a value, the worse one counts, as for the
/// topology.
fn link(a: MemberId, b: MemberId, is_tree: bool, entries: &LinkEntries) -> TopologyLink {
    let both = [entries.get(&(a.0, b.0)), entries.get(&(b.0, a.0))];
    let trips = both.iter().flatten().filter_map(|it| it.round_trip());
    let rates = both.iter().flatten().filter_map(|it| it.bandwidth());
    TopologyLink {
        a: a.to_string(),
        b: b.to_string(),
        is_tree,
        round_trip_ms: trips.max().map(|it| it.as_secs_f64() * 1_000.0),
        bandwidth: rates.min(),
    }
}
