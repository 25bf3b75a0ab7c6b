//! Null calls that are under way: each is answered, or counts as not answered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::core::{Core, Done};
use crate::estimate::Estimate;
use crate::id::{GroupId, MemberId};
use crate::link::call::ANSWER_MAX;
use crate::link::{Command, Neighbor};

/// Calls, one after another, of which the shortest round trip counts: what is busy here or there adds to it.
const CALLS: u32 = 3;
/// Who has no link yet is connected to first; if that takes so long, it does not answer.
const CONNECT_MAX: Duration = Duration::from_secs(15);

/// A call that is under way.
#[derive(Debug)]
struct Call {
    groups: BTreeSet<GroupId>,
    is_probing: bool,
    until: Duration,
    /// How many are still to be answered.
    left: u32,
    shortest: Duration,
}

/// All calls that are under way.
#[derive(Debug, Default)]
pub(super) struct Measuring {
    calls: BTreeMap<MemberId, Call>,
}

impl Measuring {
    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        self.calls.values().map(|it| it.until).min()
    }
}

impl Core {
    /// Calls a member for a group.
    pub(super) fn measure(&mut self, group: GroupId, member: MemberId, probe: bool, now: Duration) {
        let new = || Call {
            groups: BTreeSet::new(),
            is_probing: false,
            until: now + CONNECT_MAX,
            left: CALLS,
            shortest: Duration::MAX,
        };
        let call = self.measuring.calls.entry(member).or_insert_with(new);
        call.groups.insert(group);
        call.is_probing |= probe;
        if call.is_probing && !self.links.contains_key(&member) {
            // A probe needs a link.
            self.connect(member);
        } else {
            self.call(member);
        }
    }

    fn address(&self, member: MemberId) -> Option<Neighbor> {
        let charters = self.groups.values().filter_map(|it| it.charter());
        let found = charters.filter_map(|it| it.body().member(member)).next()?;
        Some(Neighbor { address: found.address.to_string(), key: Some(*found.key()) })
    }

    fn connect(&mut self, member: MemberId) {
        let neighbor = self.address(member);
        self.to_hub.extend(neighbor.map(Command::Once));
    }

    /// Sends a call; where its name is to be looked up, that takes a while.
    fn call(&mut self, member: MemberId) {
        let Some(neighbor) = self.address(member) else { return };
        let caller = self.caller.clone();
        self.jobs.spawn(async move {
            let found = tokio::net::lookup_host(&neighbor.address).await;
            let address = found.ok().and_then(|mut it| it.next());
            let is_sent = match address {
                Some(address) => caller.call(member, address).await.unwrap_or(false),
                None => false,
            };
            Done::Called(member, is_sent)
        });
    }

    pub(super) fn handle_called(&mut self, member: MemberId, is_sent: bool, now: Duration) {
        let is_linked = self.links.contains_key(&member);
        let Some(call) = self.measuring.calls.get_mut(&member) else { return };
        if is_sent {
            call.until = now + ANSWER_MAX;
        } else if !is_linked {
            // There is no key to call it with before there was a link.
            self.connect(member);
        }
    }

    /// There is a link to somebody who may be waited for.
    pub(super) fn measure_linked(&mut self, member: MemberId, now: Duration) {
        if let Some(call) = self.measuring.calls.get_mut(&member) {
            call.until = now + CONNECT_MAX;
            self.call(member);
        }
    }

    pub(super) fn handle_round_trip(&mut self, member: MemberId, took: Duration, now: Duration) {
        let Some(call) = self.measuring.calls.get_mut(&member) else { return };
        call.shortest = call.shortest.min(took);
        call.left = call.left.saturating_sub(1);
        if call.left != 0 {
            call.until = now + ANSWER_MAX;
            return self.call(member);
        }
        let Some(call) = self.measuring.calls.remove(&member) else { return };
        let mut shortest = call.shortest;
        for group in &call.groups {
            if let Some(group) = self.groups.get_mut(group) {
                group.handle_round_trip(member, call.shortest, now);
                let known = group.estimate(member).and_then(Estimate::round_trip);
                shortest = shortest.min(known.unwrap_or(shortest));
            }
        }
        if let Some(linked) = self.links.get(&member).filter(|_| call.is_probing) {
            linked.link.probe(shortest);
        }
        self.set_window(member);
    }

    /// No link could be made.
    pub(super) fn handle_unreachable(&mut self, member: MemberId, now: Duration) {
        self.measuring.calls.remove(&member);
        self.groups.values_mut().for_each(|it| it.handle_link_down(member, now));
    }

    pub(super) fn measure_late(&mut self, now: Duration) {
        let late = self.measuring.calls.extract_if(.., |_, it| it.until <= now);
        let late: Vec<(MemberId, Call)> = late.collect();
        for (member, call) in late {
            for group in call.groups {
                if let Some(group) = self.groups.get_mut(&group) {
                    group.handle_unanswered(member, now);
                }
            }
        }
    }
}
