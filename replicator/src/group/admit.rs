//! Admission: a member's requests for its charter entry, and the forwarding of others' requests to
//! the leader.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::access::{Access, Caller};
use super::charter::{Charter, trees};
use super::join::{Forwarded, HOPS_MAX, Reason, Refused, Request, Wish};
use super::{Action, Group, Message};
use crate::id::MemberId;

/// Pause after the first own request. It doubles after each further one, up to [`ASK_PAUSE_MAX`].
const ASK_PAUSE_MIN: Duration = Duration::from_secs(5);
/// See [`ASK_PAUSE_MIN`].
const ASK_PAUSE_MAX: Duration = Duration::from_mins(5);
/// Maximum number of requests that are handled in one burst. After these, at most
/// [`REQUESTS_A_SECOND`] are handled.
const REQUESTS_MAX: u32 = 64;
/// See [`REQUESTS_MAX`].
const REQUESTS_A_SECOND: u32 = 8;
/// Maximum number of forwarded requests that wait for an answer.
const PASSED_MAX: usize = 64;

/// State of this member's own requests and of those of others.
#[derive(Debug)]
pub(super) struct Admission {
    /// Pause before the next own request.
    pause: Duration,
    /// The forwarded requests by requester: the member that the request came from, and the time.
    passed: BTreeMap<MemberId, (MemberId, Duration)>,
    /// How many more requests may be handled, and the time at which this number was last raised.
    budget: (u32, Duration),
}

impl Admission {
    pub(super) fn new(now: Duration) -> Self {
        let budget = (REQUESTS_MAX, now);
        Self { pause: ASK_PAUSE_MIN, passed: BTreeMap::new(), budget }
    }

    pub(super) fn reset(&mut self) {
        self.pause = ASK_PAUSE_MIN;
    }

    fn has_budget(&mut self, now: Duration) -> bool {
        let (left, since) = self.budget;
        let earned = now.saturating_sub(since).as_secs();
        let earned = u32::try_from(earned).unwrap_or(u32::MAX).saturating_mul(REQUESTS_A_SECOND);
        let since = if earned == 0 { since } else { now };
        let left = left.saturating_add(earned).min(REQUESTS_MAX);
        self.budget = (left.saturating_sub(1), since);
        left != 0
    }

    fn remember(&mut self, member: MemberId, from: MemberId, now: Duration) {
        if PASSED_MAX <= self.passed.len() && !self.passed.contains_key(&member) {
            let oldest = self.passed.iter().min_by_key(|it| it.1.1).map(|it| *it.0);
            oldest.map(|it| self.passed.remove(&it));
        }
        self.passed.insert(member, (from, now));
    }
}

impl Group {
    /// Returns whether this member has to ask the leader: it has no charter, or it wants its
    /// charter entry changed and another member leads.
    pub(super) fn is_asking(&self) -> bool {
        self.charter.as_ref().is_none_or(|it| !self.is_leader() && !self.is_as_wished(it))
    }

    /// Returns the charter entry that this member wants, without carried trees of denied writers.
    pub(super) fn wish(&self, access: &Access) -> Wish {
        let mut wish = self.settings.wish(&self.identity.public());
        wish.carried.retain(|it| !access.denies_member(MemberId::of(&it.tree.writer)));
        wish
    }

    fn is_as_wished(&self, charter: &Charter) -> bool {
        let body = charter.body();
        let wish = self.wish(&body.access);
        let Some(member) = body.member(self.me) else { return false };
        member.address == wish.address
            && member.site == wish.site
            && trees::are_settled(&body.trees, self.me, wish.listed(*member.key()))
    }

    pub(super) fn ask(&mut self, now: Duration) {
        if !self.is_asking() {
            self.due.ask = now + ASK_PAUSE_MAX;
            return;
        }
        self.due.ask = now + self.admission.pause;
        self.admission.pause = (self.admission.pause * 2).min(ASK_PAUSE_MAX);
        let to = self.next_to_ask();
        let is_lacking = to.is_none() || self.charter.is_none();
        // The invitation may name this member itself as the one to ask.
        let invitation = self.invitation.as_ref().filter(|it| MemberId::of(&it.key) != self.me);
        if let Some(it) = invitation.filter(|_| is_lacking) {
            let (key, address) = (it.key, it.address.clone());
            self.queue.push_back(Action::Connect { key, address });
        }
        let Some(to) = to else { return };
        self.turn = self.turn.wrapping_add(1);
        let sequence = self.next_sequence(now);
        let wish = match &self.charter {
            Some(charter) => self.wish(&charter.body().access),
            None => self.settings.wish(&self.identity.public()),
        };
        let invitation = self.invitation.as_ref();
        let request = Request::sign(&self.identity, self.group, sequence, wish, invitation);
        let request = request.to_bytes();
        let bytes = Forwarded { hops: 0, seen: None, request: &request }.to_bytes();
        self.send(to, Message::Join(bytes.into()));
    }

    /// Returns the member to ask: the neighbor toward the leader, else each linked member in turn,
    /// else the member that the invitation names, else, without a charter, anyone that is linked:
    /// after the loss of its disk, this member may not be able to reach others itself. `None` if
    /// none of these is linked.
    fn next_to_ask(&self) -> Option<MemberId> {
        let in_turn = |all: Vec<MemberId>| all.get(self.turn % all.len().max(1)).copied();
        let is_peer = |it: &&MemberId| self.peers.contains_key(it);
        let peer = || in_turn(self.linked.keys().filter(is_peer).copied().collect());
        let is_lost = self.charter.is_none();
        let any = || in_turn(self.linked.keys().filter(|_| is_lost).copied().collect());
        let entry = self.invitation.as_ref().map(|it| MemberId::of(&it.key));
        let entry = entry.filter(|it| self.linked.contains_key(it));
        self.next_hop().or_else(peer).or(entry).or_else(any)
    }

    /// Returns the neighbor toward the leader, or the leader itself if it is linked. `None` if the
    /// link is down or this member leads.
    pub(super) fn next_hop(&self) -> Option<MemberId> {
        let charter = self.charter.as_ref()?;
        let leader = charter.leader();
        if self.linked.contains_key(&leader) {
            return Some(leader);
        }
        let body = charter.body();
        let next = *body.topology.toward(body.position(leader)?).get(body.position(self.me)?)?;
        let next = body.members.get(next?)?.id();
        self.linked.contains_key(&next).then_some(next)
    }

    /// Takes in a request to join that came over the link to `from`; `seen` is the address of that
    /// member's end of the link.
    pub fn handle_join(
        &mut self,
        from: MemberId,
        seen: Option<IpAddr>,
        bytes: &[u8],
        now: Duration,
    ) {
        let Some(mut passed) = Forwarded::from_bytes(bytes) else { return self.lied(from) };
        let is_first = passed.hops == 0;
        if is_first {
            passed.seen = seen;
        }
        let is_due = (is_first || self.peers.contains_key(&from)) && self.admission.has_budget(now);
        if !is_due {
            return;
        }
        let request = Request::from_bytes(passed.request);
        let Some(request) = request.filter(|it| !is_first || it.member() == from) else {
            return self.lied(from);
        };
        let charter = self.charter.clone().filter(|_| self.is_member());
        let Some(charter) = charter.filter(|_| request.group == self.group) else {
            return self.refuse(from, request.member(), Reason::Group);
        };
        if is_first {
            // The requester may have lost its copy of the charter.
            self.offer_charter(from);
            let body = charter.body();
            let is_old = body.gone(from).is_some_and(|it| request.sequence <= it);
            let may = |it: &Caller| self.admission(body, &body.access, it, now).is_ok();
            if is_old && may(&request.caller(&passed)) {
                // The charter tells the requester which sequence it has to exceed.
                return self.send_charter(&charter, from);
            }
        }
        if charter.leader() == self.me {
            if let Err(reason) = self.decide(&request, &passed, now) {
                self.refuse(from, request.member(), reason);
            }
            return;
        }
        let way = self.next_hop().filter(|it| *it != from && passed.hops < HOPS_MAX);
        let Some(to) = way else {
            return self.refuse(from, request.member(), Reason::Leader);
        };
        self.admission.remember(request.member(), from, now);
        let bytes = Forwarded { hops: passed.hops + 1, ..passed }.to_bytes();
        self.send(to, Message::Join(bytes.into()));
    }

    pub(super) fn refuse(&mut self, from: MemberId, member: MemberId, reason: Reason) {
        let bytes = Refused { member, reason }.to_bytes();
        self.send(from, Message::Refused(bytes.into()));
    }

    /// Takes in the refusal of a request: one of this member, or one that it forwarded.
    pub fn handle_refused(&mut self, from: MemberId, bytes: &[u8], _now: Duration) {
        let Some(refused) = Refused::from_bytes(bytes) else { return self.lied(from) };
        if refused.member == self.me {
            if self.is_asking() || refused.reason == Reason::Denied {
                self.queue.push_back(Action::Refused(refused.reason));
            }
        } else if let Some((to, _)) = self.admission.passed.remove(&refused.member) {
            self.send(to, Message::Refused(bytes.into()));
        }
    }
}
