//! Leading: the tasks of a leader, and of a deputy whose leader is silent.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::access::Caller;
use super::charter::{Body, Charter, Former, GroupTree, MEMBERS_MAX, Member, SignError, trees};
use super::join::{Forwarded, Reason, Request};
use super::mandate::{self, DEPUTIES_MAX};
use super::rows::GAP_MAX;
use super::succession::EPOCHS_MAX;
use super::{Action, Alarm, DROPPED_AFTER, Group, Message, TAKEOVER_AFTER, UNLINKED_AFTER, links};
use crate::id::{InvitationId, MemberId};

/// Interval at which a leader checks for changes, and a deputy checks whether its leader is silent.
const REVIEW: Duration = Duration::from_secs(5);
/// Shortest pause between two charters. All members that join during a pause enter one charter.
const CHARTER_PAUSE: Duration = Duration::from_secs(2);
/// Shortest pause between two computations of the topology while the members do not change.
const TOPOLOGY_PAUSE: Duration = Duration::from_secs(15);
/// Shortest pause between two answers to a former deputy, or two reports of it to the leader.
const ANSWER_PAUSE: Duration = Duration::from_secs(30);
/// Interval at which the members' silences are saved.
const PERSIST_PAUSE: Duration = Duration::from_hours(1);
/// Minimum number of deputies that are not silent, unless the administrator has listed deputies.
const DEPUTIES: usize = 2;

/// State of leading: granted requests and pauses.
#[derive(Debug)]
pub(super) struct Lead {
    /// How long members had been silent before the start.
    pub(super) silences: BTreeMap<MemberId, Duration>,
    /// Epoch of the charter, and the time since which this member knows it. Before that, the
    /// silence of its leader does not count.
    epoch: (u64, Duration),
    /// Granted requests, until they are in the charter or are dropped.
    requests: BTreeMap<MemberId, Granted>,
    /// Greatest epoch in which a former deputy claims to lead.
    usurped: u64,
    /// Time of the last answer to a former deputy's claim, or of the last report of it.
    answered: Option<Duration>,
    /// Whether the administrator wants this member to lead.
    is_wanted: bool,
    /// Whether any row is new since the last computation of the topology.
    is_changed: bool,
    last_topology: Option<Duration>,
    last_charter: Option<Duration>,
    /// Reason why the last charter could not be signed, so that it is reported only once.
    failed: Option<SignError>,
}

#[derive(Debug)]
struct Granted {
    request: Request,
    /// The requester with its addresses at the time of the request.
    caller: Caller,
    /// Invitation with which a new member joins.
    by: Option<InvitationId>,
}

impl Granted {
    /// Enters the requester in a charter. Returns whether this is still allowed: settings may have
    /// changed since the request.
    fn enter(&self, body: &mut Body) -> bool {
        let Request { key, sequence, wish, .. } = &self.request;
        let id = self.request.member();
        let known = body.member(id).cloned();
        let is_new = known.is_none();
        let may_come = |body: &mut Body| match self.by {
            Some(it) => body.use_up(it, id),
            None => body.access.allows(&self.caller),
        };
        let is_full = is_new && MEMBERS_MAX <= body.members.len();
        if is_full || body.access.denies(&self.caller) || (is_new && !may_come(body)) {
            return false;
        }
        let mut member = Member::new(*key, wish.address.clone(), wish.site.clone(), *sequence);
        member.silent = known.as_ref().and_then(|it| it.silent);
        member.invitation = known.map_or(self.by, |it| it.invitation);
        body.put(member);
        trees::list(&mut body.trees, id, wish.listed(*key));
        true
    }
}

impl Lead {
    pub(super) fn new(silences: BTreeMap<MemberId, Duration>) -> Self {
        Self {
            silences,
            epoch: (0, Duration::ZERO),
            requests: BTreeMap::new(),
            usurped: 0,
            answered: None,
            is_wanted: false,
            is_changed: true,
            last_topology: None,
            last_charter: None,
            failed: None,
        }
    }

    /// Returns whether a request with this invitation was granted to a member other than `but`.
    pub(super) fn has_granted(&self, id: InvitationId, but: MemberId) -> bool {
        self.requests.iter().any(|(member, it)| *member != but && it.by == Some(id))
    }

    pub(super) fn handle_row(&mut self) {
        self.is_changed = true;
    }

    /// Drops the requests that a new charter has settled.
    pub(super) fn handle_charter(&mut self, charter: &Charter, now: Duration) {
        if self.epoch.0 != charter.epoch() {
            self.epoch = (charter.epoch(), now);
        }
        let body = charter.body();
        self.requests.retain(|id, it| {
            let known = body.member(*id).map(|it| it.request).or_else(|| body.gone(*id));
            known.is_none_or(|known| known < it.request.sequence)
        });
        self.is_changed = true;
    }
}

/// Returns a member as a caller, with its data from the charter.
pub(super) fn caller(member: &Member) -> Caller {
    Caller {
        member: member.id(),
        claimed: member.address.ip(),
        seen: None,
        is_direct: false,
        invitation: None,
    }
}

impl Group {
    /// Leads the group from now on, in a greater epoch. The founder, former leaders and deputies
    /// may do so.
    ///
    /// # Errors
    ///
    /// This member is none of these, or is not in the group.
    pub fn lead(&mut self, now: Duration) -> Result<(), SignError> {
        let key = self.identity.public();
        let charter = self.charter.as_ref().filter(|_| self.is_member());
        let may = charter.is_some_and(|it| mandate::before(it.chain(), &key).is_some());
        if !may {
            return Err(SignError::Rank(self.me));
        }
        (self.lead.is_wanted, self.due.review) = (true, now);
        Ok(())
    }

    /// Grants a request, or returns why it is refused. Old and repeated requests are ignored.
    pub(super) fn decide(
        &mut self,
        request: &Request,
        passed: &Forwarded<'_>,
        now: Duration,
    ) -> Result<(), Reason> {
        let Some(charter) = self.charter.clone() else { return Err(Reason::Group) };
        let (body, id) = (charter.body(), request.member());
        // New settings of the administrator apply at once.
        let access = self.settings.access.as_ref().unwrap_or(&body.access);
        let caller = request.caller(passed);
        let known = body.member(id);
        if known.is_some_and(|it| request.sequence <= it.request) || id == self.me {
            return Ok(());
        }
        // A request signed before the requester left is a repeated copy: it brings nobody back.
        if body.gone(id).is_some_and(|it| request.sequence <= it) {
            return Ok(());
        }
        let by = match known {
            Some(_) if access.denies(&caller) => return Err(Reason::Access),
            Some(it) => it.invitation,
            None => self.admission(body, access, &caller, now)?,
        };
        let others = self.lead.requests.iter().filter(|it| *it.0 != id);
        let new = others.clone().filter(|it| body.member(*it.0).is_none()).count();
        let mut trees = body.trees.clone();
        for (member, Granted { request: it, .. }) in others {
            trees::list(&mut trees, *member, it.wish.listed(it.key));
        }
        let is_full = known.is_none() && MEMBERS_MAX <= body.members.len() + new;
        if is_full || !trees::list(&mut trees, id, request.wish.listed(request.key)) {
            return Err(Reason::Full);
        }
        self.lead.requests.insert(id, Granted { request: request.clone(), caller, by });
        self.due.review = self.due.review.min(now);
        Ok(())
    }

    /// Takes in a former deputy's charter: the leader answers it, others report it to the leader.
    pub(super) fn handle_revoked(&mut self, by: MemberId, charter: &Charter, now: Duration) {
        let epoch = charter.epoch();
        let may_say = self.lead.answered.is_none_or(|it| it + ANSWER_PAUSE <= now);
        if self.lead.usurped < epoch {
            self.lead.usurped = epoch;
            self.queue.push_back(Action::Alarm(Alarm::Revoked(by)));
        }
        if self.is_leader() {
            self.due.review = self.due.review.min(now);
        } else if may_say && let Some(way) = self.next_hop() {
            self.lead.answered = Some(now);
            self.send(way, Message::Charter(charter.to_bytes()));
        }
    }

    /// Checks whether there is anything to do as leader or deputy.
    pub(super) fn review(&mut self, now: Duration) {
        self.due.review = now + REVIEW;
        let Some(charter) = self.charter.clone() else { return };
        if self.persisted + PERSIST_PAUSE <= now {
            self.persist(now);
        }
        self.watch_invitations(now);
        let next = self.lead.last_charter.map_or(now, |it| it + CHARTER_PAUSE);
        if now < next {
            self.due.review = next;
            return;
        }
        let usurped = self.lead.usurped.min(charter.epoch().saturating_add(EPOCHS_MAX - 1));
        let above = (usurped.max(charter.epoch()).saturating_add(1), 0);
        let is_leader = self.is_leader();
        let may_answer = self.lead.answered.is_none_or(|it| it + ANSWER_PAUSE <= now);
        if is_leader && charter.epoch() <= usurped && may_answer {
            self.lead.answered = Some(now);
            self.sign(&charter, above, now);
        } else if self.lead.is_wanted || (!is_leader && self.is_heir(&charter, now)) {
            self.sign(&charter, above, now);
        } else if is_leader {
            self.sign(&charter, (charter.epoch(), charter.revision().saturating_add(1)), now);
        }
    }

    /// Returns whether this member is a deputy for which the leader has been silent long enough.
    fn is_heir(&self, charter: &Charter, now: Duration) -> bool {
        let key = self.identity.public();
        let rank = charter.deputies().iter().position(|it| *it == key);
        let rank = rank.and_then(|it| u32::try_from(it).ok());
        // A deputy without links has nobody to lead.
        let has_link = self.linked.keys().any(|it| self.peers.contains_key(it));
        let silence =
            self.unheard(charter.leader(), now).min(now.saturating_sub(self.lead.epoch.1));
        has_link && rank.is_some_and(|it| TAKEOVER_AFTER * (it + 1) <= silence)
    }

    /// Signs and adopts the next charter, unless it is equal to this one and in the same epoch.
    fn sign(&mut self, charter: &Arc<Charter>, number: (u64, u64), now: Duration) {
        let mut body = charter.body().clone();
        self.settle(&mut body);
        // A requester that is not entered has to ask again: the reason may be temporary.
        self.lead.requests.retain(|_, it| it.enter(&mut body));
        self.expire(&mut body, now);
        self.record_former(charter.body(), &mut body);
        Self::prune(&mut body);
        self.connect(charter, &mut body, now);
        let deputies = self.deputies(charter, &body);
        let is_same = body == *charter.body() && deputies == charter.deputies();
        if is_same && number.0 == charter.epoch() {
            return;
        }
        self.lead.last_charter = Some(now);
        self.lead.is_wanted = false;
        match charter.amend(&self.identity, number, &deputies, body) {
            Ok(charter) => {
                self.lead.failed = None;
                self.adopt(charter, None, now);
            }
            Err(error) if self.lead.failed != Some(error) => {
                self.lead.failed = Some(error);
                self.queue.push_back(Action::Alarm(Alarm::Sign(error)));
            }
            Err(_) => {}
        }
    }

    /// Applies the administrator's settings, and removes the members that they deny.
    fn settle(&self, body: &mut Body) {
        if let Some(access) = &self.settings.access {
            body.access = access.clone();
        }
        if let Some(connectivity) = self.settings.connectivity {
            body.connectivity = connectivity;
        }
        let (wish, key) = (self.wish(&body.access), self.identity.public());
        let known = body.member(self.me);
        let (request, invitation) = known.map_or((0, None), |it| (it.request, it.invitation));
        trees::list(&mut body.trees, self.me, wish.listed(key));
        let mut member = Member::new(key, wish.address, wish.site, request);
        member.invitation = invitation;
        body.put(member);
        let is_denied = |it: &Member| it.id() != self.me && body.access.denies(&caller(it));
        let denied = body.members.iter().filter(|it| is_denied(it)).map(Member::id);
        let denied: Vec<MemberId> = denied.collect();
        let access = body.access.clone();
        body.withdraw_denied(|it| denied.contains(&it) || access.denies_member(it));
        body.members.retain(|it| !denied.contains(&it.id()));
    }

    /// Marks members that have become silent or are back; removes those silent for a month.
    fn expire(&self, body: &mut Body, now: Duration) {
        let is_gone = |it: &Member| {
            it.id() != self.me && it.silent.is_some() && DROPPED_AFTER <= self.silence(it.id(), now)
        };
        body.members.retain(|it| !is_gone(it));
        for member in body.members.iter_mut().filter(|it| it.id() != self.me) {
            let sequence = self.row_mark(member.id()).map_or(0, |it| it.0);
            let last = self.rows.advanced(member.id());
            let is_there = last.is_some_and(|it| now.saturating_sub(it) <= GAP_MAX);
            member.silent = match member.silent {
                Some(last) if last < sequence && is_there => None,
                None if UNLINKED_AFTER <= self.unheard(member.id(), now) => Some(sequence),
                as_before => as_before,
            };
        }
    }

    /// Records the last known sequences of the members of `before` that are not in `body`.
    fn record_former(&self, before: &Body, body: &mut Body) {
        let is_gone = |it: &&Member| body.member(it.id()).is_none();
        let gone = before.members.iter().filter(is_gone).map(|it| {
            let known = self.row_mark(it.id()).map_or(0, |it| it.0);
            let known = known.max(self.held.sequence(it.id()));
            let sequence = known.max(it.request).max(it.silent.unwrap_or_default());
            Former { member: it.id(), sequence }
        });
        let gone = gone.collect();
        body.record_former(gone);
    }

    /// Removes trees that no member lists any more, and those of denied writers.
    fn prune(body: &mut Body) {
        let Body { access, members, trees, .. } = body;
        let is_member = |it: MemberId| members.binary_search_by_key(&it, Member::id).is_ok();
        let is_denied = |it: &GroupTree| access.denies_member(MemberId::of(&it.writer));
        trees::keep(trees, |member, tree| is_member(member) && !is_denied(tree));
    }

    /// Computes the topology if the members have changed, or, after a pause, if rows have.
    fn connect(&mut self, charter: &Charter, body: &mut Body, now: Duration) {
        let old = charter.body();
        let same = |(one, other): (&Member, &Member)| {
            (one.id(), one.silent.is_some(), &one.site)
                == (other.id(), other.silent.is_some(), &other.site)
        };
        let is_same = old.members.len() == body.members.len()
            && old.members.iter().zip(&body.members).all(same)
            && old.connectivity == body.connectivity;
        let is_due = self.lead.last_topology.is_none_or(|it| it + TOPOLOGY_PAUSE <= now);
        if is_same && !(is_due && self.lead.is_changed) {
            return;
        }
        (self.lead.last_topology, self.lead.is_changed) = (Some(now), false);
        body.topology = links::carried(&old.topology, &old.members, &body.members);
        body.topology = links::next(body, &self.all_rows());
    }

    /// Returns the next deputies: those that the administrator has listed; without any, the last
    /// leader and the present deputies, completed by the members with the most links.
    fn deputies(&self, charter: &Charter, body: &Body) -> Vec<[u8; 32]> {
        let member = |it: MemberId| body.member(it).filter(|it| it.id() != self.me);
        let listed = self.settings.deputies.iter();
        let mut all: Vec<&Member> = listed.filter_map(|it| member(*it)).collect();
        if all.is_empty() {
            // The last leader may lead again.
            let before = [charter.mandate().leader()].into_iter();
            let before = before.chain(charter.deputies().iter().map(MemberId::of));
            let (there, silent): (Vec<_>, Vec<_>) =
                before.filter_map(member).partition(|it| it.silent.is_none());
            let lacking = DEPUTIES.saturating_sub(there.len());
            let is_new = |it: &&Member| {
                it.id() != self.me
                    && it.silent.is_none()
                    && there.iter().all(|old| old.id() != it.id())
            };
            let links = |it: &Member| {
                body.position(it.id()).map_or(0, |it| body.topology.neighbors(it).count())
            };
            let mut new: Vec<&Member> = body.members.iter().filter(is_new).collect();
            new.sort_by_key(|it| (usize::MAX - links(it), it.id()));
            new.truncate(lacking);
            all = [there, new, silent].concat();
        }
        let mut keys: Vec<[u8; 32]> = Vec::new();
        for it in all {
            if !keys.contains(it.key()) && keys.len() < DEPUTIES_MAX {
                keys.push(*it.key());
            }
        }
        keys
    }
}
