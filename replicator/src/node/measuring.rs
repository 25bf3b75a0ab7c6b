//! Null calls under way: each ends with answers, or counts as unanswered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::id::{GroupId, MemberId};
use crate::link::call::ANSWER_MAX;
use crate::link::{Caller, Link};

/// Number of calls in one measurement. The shortest round trip counts, since load at either end
/// lengthens the others.
const CALLS: u32 = 3;
/// Longest time to connect to a member without a link; after it, the member counts as not
/// answering.
const CONNECT_MAX: Duration = Duration::from_secs(15);

#[derive(Debug)]
struct Call {
    groups: BTreeSet<GroupId>,
    is_probing: bool,
    until: Duration,
    /// Number of answers that are still missing.
    left: u32,
    shortest: Duration,
}

#[derive(Debug)]
pub(super) struct Measuring {
    caller: Arc<Caller>,
    calls: BTreeMap<MemberId, Call>,
}

#[derive(Debug)]
pub(super) enum Next {
    /// Make a link: it is needed for a probe, and for a call for which there is no key yet.
    Connect,
    /// Call the member: see [`Measuring::calling`].
    Call,
    Take(Measured),
}

/// Result of a measurement, after the last answer.
#[derive(Debug)]
pub(super) struct Measured {
    /// The groups that measure the member.
    pub(super) groups: BTreeSet<GroupId>,
    pub(super) is_probing: bool,
    pub(super) shortest: Duration,
}

/// Job: make a call.
#[derive(Debug)]
pub(super) struct Calling {
    caller: Arc<Caller>,
    member: MemberId,
    address: String,
}

impl Calling {
    /// Makes the call; returns the member and whether the call was sent. Looking up a name takes a
    /// while.
    pub(super) async fn run(self) -> (MemberId, bool) {
        let found = tokio::net::lookup_host(&self.address).await;
        let address = found.ok().and_then(|mut it| it.next());
        let is_sent = match address {
            Some(address) => self.caller.call(self.member, address).await.unwrap_or(false),
            None => false,
        };
        (self.member, is_sent)
    }
}

impl Measuring {
    pub(super) fn new(caller: Arc<Caller>) -> Self {
        Self { caller, calls: BTreeMap::new() }
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        self.calls.values().map(|it| it.until).min()
    }

    /// Begins to measure a member for a group; returns the next step.
    pub(super) fn begin(
        &mut self,
        group: GroupId,
        member: MemberId,
        probe: bool,
        is_linked: bool,
        now: Duration,
    ) -> Next {
        let new = || Call {
            groups: BTreeSet::new(),
            is_probing: false,
            until: now + CONNECT_MAX,
            left: CALLS,
            shortest: Duration::MAX,
        };
        let call = self.calls.entry(member).or_insert_with(new);
        call.groups.insert(group);
        call.is_probing |= probe;
        if call.is_probing && !is_linked { Next::Connect } else { Next::Call }
    }

    /// Returns the job that calls a member at this address.
    pub(super) fn calling(&self, member: MemberId, address: String) -> Calling {
        Calling { caller: self.caller.clone(), member, address }
    }

    /// Takes in whether a call was sent; returns the next step, if there is one now.
    pub(super) fn handle_called(
        &mut self,
        member: MemberId,
        is_sent: bool,
        is_linked: bool,
        now: Duration,
    ) -> Option<Next> {
        let call = self.calls.get_mut(&member)?;
        if is_sent {
            call.until = now + ANSWER_MAX;
        }
        // Before the first link to a member, there is no key to call it with.
        (!is_sent && !is_linked).then_some(Next::Connect)
    }

    /// Takes in a new link to a member; returns the next step if the member is being measured.
    pub(super) fn handle_linked(&mut self, link: &Link, now: Duration) -> Option<Next> {
        self.caller.handle_up(link);
        let call = self.calls.get_mut(&link.member())?;
        call.until = now + CONNECT_MAX;
        Some(Next::Call)
    }

    pub(super) fn handle_round_trip(
        &mut self,
        member: MemberId,
        took: Duration,
        now: Duration,
    ) -> Option<Next> {
        let call = self.calls.get_mut(&member)?;
        call.shortest = call.shortest.min(took);
        call.left = call.left.saturating_sub(1);
        if call.left != 0 {
            call.until = now + ANSWER_MAX;
            return Some(Next::Call);
        }
        let Call { groups, is_probing, shortest, .. } = self.calls.remove(&member)?;
        Some(Next::Take(Measured { groups, is_probing, shortest }))
    }

    /// Takes in that no link to a member could be made: its call is dropped.
    pub(super) fn handle_unreachable(&mut self, member: MemberId) {
        self.calls.remove(&member);
    }

    /// Drops the calls that are late; returns their members, each with the groups that measure it.
    pub(super) fn poll_late(&mut self, now: Duration) -> Vec<(MemberId, BTreeSet<GroupId>)> {
        let late = self.calls.extract_if(.., |_, it| it.until <= now);
        late.map(|(member, call)| (member, call.groups)).collect()
    }
}
