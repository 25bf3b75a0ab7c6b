//! The group: its members, its leader, and the estimates of the links between them.
//!
//! Source: TR §8: flood-d, whose members join at the group's master, flood their measurements, and
//! get a topology that the master computes.
//!
//! The shell keeps links to [`Group::neighbors`] and passes in all messages from them. After each
//! call, and whenever the time of [`Group::poll_timeout`] has come, it carries out all actions of
//! [`Group::poll_action`] in order. All times are those of the member's own monotonic clock: no
//! other clock has to be right.
//!
//! Costs in a group of 300 members: checking a row takes 0.1 ms, checking a charter 1 ms, and the
//! leader computes the topology in 20 ms. None of this work belongs on an async thread.
//!
//! # Differences from the paper
//!
//! * Deputies take over from a silent leader (the paper: "Flood-d's do not elect new leaders").
//!   There is no election and no majority: no data depends on which member leads. Two leaders in
//!   two parts of a group do no harm, and once the parts meet, one of the two leads the whole group
//!   (`succession`).
//! * A silent member loses its links after minutes and its membership after a month. In between,
//!   the other members try to reach it, so that parts of a group find each other again.
//! * Everything is signed: the charter by the leader, in a chain from the founder's key on
//!   (`mandate`), and rows by their members (`rows`).
//! * Each member also computes the topology itself ([`Group::computed`]), to show where it differs
//!   from the leader's.
//!
//! Sans-I/O.

pub mod access;
mod action;
mod admit;
mod announce;
mod carry;
pub mod charter;
mod follow;
pub mod held;
pub mod invited;
pub mod join;
mod lead;
pub mod links;
pub mod mandate;
mod measuring;
pub mod rows;
pub mod state;
mod status;
pub mod succession;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use net::identity::Identity;

use crate::estimate::{Estimate, Line};
use crate::id::{GroupId, MemberId};
use crate::topology::{Connectivity, Topology};
use crate::version::{Hash, Name};

pub use action::{Action, Alarm, Message, OpenError, Settings};
use charter::{Body, Charter, Member, SignError};
use held::Holdings;
use join::{Invitation, Wish};
use lead::Lead;
use rows::{OwnRow, Rows};
use state::SavedGroup;

/// Interval at which a member announces that it is alive.
pub const BEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Silence after which the others search for a member.
pub const LOST_AFTER: Duration = Duration::from_secs(50);
/// Silence of the leader after which the first deputy takes over; the second waits twice as long.
pub const TAKEOVER_AFTER: Duration = Duration::from_mins(1);
/// Silence after which a member loses its links.
pub const UNLINKED_AFTER: Duration = Duration::from_mins(3);
/// Silence after which a member loses its membership.
pub const DROPPED_AFTER: Duration = Duration::from_hours(30 * 24);
/// Interval at which a member compares its rows with those of one neighbor.
pub const COMPARE_INTERVAL: Duration = Duration::from_mins(1);
/// Number of consecutive failed connections or calls after which a member reports a missing link.
pub const FAILURES_MAX: u32 = 3;
/// Maximum number of links on record; further ones that come up are ignored.
pub const LINKS_UP_MAX: usize = 1_024;

/// If a member's timer is late by more than this, the member was not running, so it cannot judge
/// how long others were silent.
const ASLEEP: Duration = Duration::from_secs(30);

/// What this member knows about another member.
#[derive(Debug)]
struct Peer {
    /// Time at which this member began to observe it.
    since: Duration,
    /// How long it had been silent before `since`.
    before: Duration,
    estimate: Estimate,
    /// The members' findings on the line between the two sites, which the link shares with others.
    line: Option<Line>,
    /// Time of the last call to it.
    called: Option<Duration>,
    /// Time since which it has been waiting for a probe.
    wanted: Option<Duration>,
    /// Whether there was probably cross traffic on the line when the last probe of the link began.
    has_cross_traffic: bool,
    /// Calls and connections that have failed since the last success.
    failures: u32,
}

/// A link that is up, and what this group has sent over it.
#[derive(Debug, Default)]
struct GroupLink {
    /// Hash of the charter that the other side has or was last sent; `None` if that is not known.
    charter_sent: Option<Hash>,
    /// Time of the last request to it for missing rows.
    asked: Option<Duration>,
}

#[derive(Debug)]
struct Deadlines {
    announce: Duration,
    measure: Duration,
    compare: Duration,
    look: Duration,
    ask: Duration,
    review: Duration,
}

/// One member in one group.
#[derive(Debug)]
pub struct Group {
    identity: Arc<Identity>,
    me: MemberId,
    group: GroupId,
    settings: Settings,
    invitation: Option<Invitation>,
    charter: Option<Arc<Charter>>,
    /// Upper half of the sequences of this member's signed messages; rises with each start.
    incarnation: u32,
    /// Lower half of the sequence of the last message that was signed.
    signed: u32,
    own: Option<OwnRow>,
    /// Time at which this member's own row was made.
    own_since: Duration,
    rows: Rows,
    held: Holdings,
    /// All other members.
    peers: BTreeMap<MemberId, Peer>,
    linked: BTreeMap<MemberId, GroupLink>,
    admission: admit::Admission,
    lead: Lead,
    clock: invited::Clock,
    due: Deadlines,
    last_measure: Option<Duration>,
    last_probe: Option<Duration>,
    last_busy: Option<Duration>,
    /// Count of lost members, time of its last rise, and a running number that selects the next
    /// member to search for.
    lost: (usize, Duration, usize),
    /// Running number that selects the next neighbor to compare rows with, or to ask.
    turn: usize,
    /// Time at which the state was last handed to the shell to be saved.
    persisted: Duration,
    queue: VecDeque<Action>,
    /// Count of messages that were forged or malformed.
    lies: u64,
}

impl Group {
    /// Founds a group and leads it. The identity's key becomes the group's key: the owner of this
    /// key can always lead the group.
    pub fn found(
        identity: Arc<Identity>,
        name: Name,
        settings: Settings,
        now: Duration,
    ) -> Result<Self, SignError> {
        let key = identity.public();
        let Wish { address, site, .. } = settings.wish(&key);
        let body = Body {
            name,
            connectivity: settings.connectivity.unwrap_or(Connectivity::Two),
            access: settings.access.clone().unwrap_or_default(),
            invitations: Vec::new(),
            members: vec![Member::new(key, address, site, 0)],
            gone: Vec::new(),
            trees: Vec::new(),
            topology: Topology::from_links(1, &[], &[]).unwrap_or_default(),
        };
        let charter = Charter::found(&identity, body)?;
        let mut group = Self::new(identity, charter.group(), settings, SavedGroup::default(), now);
        group.adopt(charter, None, now);
        Ok(group)
    }

    /// Resumes a group from its saved state, or without a saved charter joins it by invitation.
    ///
    /// # Errors
    ///
    /// The saved state is damaged or of another group, or there is neither a saved state nor an
    /// invitation. The message says what to do.
    pub fn open(
        identity: Arc<Identity>,
        settings: Settings,
        saved: Option<&[u8]>,
        invitation: Option<Invitation>,
        now: Duration,
    ) -> Result<Self, OpenError> {
        let state = match saved {
            Some(bytes) => SavedGroup::from_bytes(bytes).ok_or(OpenError::State)?,
            None => SavedGroup::default(),
        };
        let claimed = charter::group_of(&state.charter);
        let asked = invitation.as_ref().map(Invitation::group);
        let group = asked.or(claimed).ok_or(OpenError::Nothing)?;
        let read = match state.charter.as_slice() {
            [] => None,
            bytes => Some(Charter::from_bytes(bytes, group, None)),
        };
        let charter = read.transpose().map_err(OpenError::Charter)?;
        let mut this = Self::new(identity, group, settings, state, now);
        this.invitation = invitation;
        match charter {
            Some(charter) => this.adopt(charter, None, now),
            None => this.persist(now),
        }
        Ok(this)
    }

    fn new(
        identity: Arc<Identity>,
        group: GroupId,
        settings: Settings,
        state: SavedGroup,
        now: Duration,
    ) -> Self {
        let me = MemberId::of(&identity.public());
        let minutes = |it: u32| Duration::from_mins(it.into());
        let mut group = Self {
            identity,
            me,
            group,
            settings,
            invitation: None,
            charter: None,
            incarnation: state.incarnation.saturating_add(1),
            signed: 0,
            own: None,
            own_since: now,
            rows: Rows::default(),
            held: Holdings::default(),
            peers: BTreeMap::new(),
            linked: BTreeMap::new(),
            admission: admit::Admission::new(now),
            lead: Lead::new(state.silences.iter().map(|it| (*it.0, minutes(*it.1))).collect()),
            clock: invited::Clock::default(),
            due: Deadlines {
                announce: now,
                measure: now,
                compare: now + COMPARE_INTERVAL,
                look: now,
                ask: now,
                review: now,
            },
            last_measure: None,
            last_probe: None,
            last_busy: None,
            // Members begin their searches at different positions.
            lost: (0, now, usize::try_from(me.0 >> 48).unwrap_or_default()),
            turn: 0,
            persisted: now,
            queue: VecDeque::new(),
            lies: 0,
        };
        group.check_settings();
        group
    }

    fn check_settings(&mut self) {
        let unlisted = self.settings.unlisted(&self.identity.public());
        if 0 < unlisted {
            self.queue.push_back(Action::Alarm(Alarm::Unlisted(unlisted)));
        }
    }

    fn persist(&mut self, now: Duration) {
        let minutes = |it: Duration| u32::try_from(it.as_secs() / 60).unwrap_or(u32::MAX);
        let silences = self.peers.keys().map(|it| (*it, minutes(self.silence(*it, now))));
        let state = SavedGroup {
            incarnation: self.incarnation,
            silences: silences.filter(|it| it.1 != 0).collect(),
            charter: self.charter.iter().flat_map(|it| it.to_bytes().to_vec()).collect(),
        };
        self.persisted = now;
        self.queue.push_back(Action::Persist(state.to_bytes()));
    }

    /// Returns the next sequence, which is greater than all earlier ones of this member.
    fn next_sequence(&mut self, now: Duration) -> u64 {
        if self.signed == u32::MAX {
            self.jump(self.sequence(), now);
        }
        self.signed += 1;
        self.sequence()
    }

    fn sequence(&self) -> u64 {
        u64::from(self.incarnation) << 32 | u64::from(self.signed)
    }

    /// Raises this member's sequence above `over`, unless it is above it already.
    fn jump(&mut self, over: u64, now: Duration) {
        if self.sequence() <= over {
            let incarnation = u32::try_from(over >> 32).unwrap_or(u32::MAX);
            (self.incarnation, self.signed) =
                (incarnation.saturating_add(1), self.random_start(now));
            self.own = None;
            self.held.sent = None;
            self.due.announce = now;
            self.persist(now);
        }
    }

    /// Returns a random start for a count that may have been used before the disk was lost, so that
    /// no message from that time is taken for a new one.
    fn random_start(&self, now: Duration) -> u32 {
        let charter = self.charter.as_ref().map(|it| it.hash().0).unwrap_or_default();
        let hash = Hash::of(&[charter.as_slice(), &now.as_nanos().to_be_bytes()].concat());
        // Half of all numbers remain for the count.
        u32::from_be_bytes(hash.first()) >> 1
    }

    /// Reports that a link is up: to a neighbor, to the target of a `Connect`, or from a caller.
    pub fn handle_link_up(&mut self, member: MemberId, now: Duration) {
        if LINKS_UP_MAX <= self.linked.len() {
            return;
        }
        self.linked.insert(member, GroupLink::default());
        if let Some(peer) = self.peers.get_mut(&member) {
            let was_failing = FAILURES_MAX <= std::mem::take(&mut peer.failures);
            if was_failing {
                self.due.announce = self.due.announce.min(now);
            }
            self.compare(member, false);
        }
        if self.is_asking() {
            self.admission.reset();
            self.due.ask = now;
        }
    }

    /// Reports that a link is down, or could not be made.
    pub fn handle_link_down(&mut self, member: MemberId, now: Duration) {
        self.linked.remove(&member);
        self.handle_unanswered(member, now);
    }

    /// Reports that a member was called and did not answer.
    pub fn handle_unanswered(&mut self, member: MemberId, now: Duration) {
        if let Some(peer) = self.peers.get_mut(&member) {
            peer.failures = peer.failures.saturating_add(1);
            if peer.failures == FAILURES_MAX {
                self.due.announce = self.due.announce.min(now);
            }
        }
    }

    /// Takes in the duration of a null call to a member.
    pub fn handle_round_trip(&mut self, member: MemberId, took: Duration, now: Duration) {
        self.measured(member, |it| it.handle_round_trip(took, now));
    }

    /// Reports that data is being transferred from or to a member. A probe would now measure only
    /// what the transfer leaves of the line, and would slow the transfer.
    pub fn handle_busy(&mut self, now: Duration) {
        self.last_busy = Some(now);
    }

    /// Takes in a transfer from or to a member. Its rate was limited by nothing but the link.
    pub fn handle_transfer(&mut self, member: MemberId, bytes: u64, took: Duration, now: Duration) {
        self.measured(member, |it| it.handle_transfer(bytes, took, now));
    }

    /// Takes in the result of a probe of the link to a member, in bytes a second.
    pub fn handle_probe(&mut self, member: MemberId, bandwidth: u64, now: Duration) {
        let had_cross_traffic = self.peers.get(&member).is_some_and(|it| it.has_cross_traffic);
        let has_cross_traffic = had_cross_traffic || self.is_busy(member, now);
        self.measured(member, |it| it.handle_probe(bandwidth, has_cross_traffic, now));
    }

    fn measured(&mut self, member: MemberId, take: impl FnOnce(&mut Estimate)) {
        if let Some(peer) = self.peers.get_mut(&member) {
            peer.failures = 0;
            take(&mut peer.estimate);
        }
    }

    /// Takes in another invitation to the group, while this member is not in the group. Call
    /// [`Group::handle_settings`] afterwards.
    pub fn handle_invitation(&mut self, invitation: Invitation) {
        self.invitation = Some(invitation);
    }

    /// Takes over other settings. The charter changes accordingly: at once if this member leads,
    /// otherwise after a request to the leader.
    pub fn handle_settings(&mut self, settings: Settings, now: Duration) {
        self.settings = settings;
        self.check_settings();
        self.admission.reset();
        (self.due.ask, self.due.review) = (now, now);
    }

    /// Does all tasks that are due. Call it when the time of [`Group::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.due.review + ASLEEP < now {
            self.handle_awake(now);
        }
        if self.due.announce <= now {
            self.announce(now);
            self.announce_held(now);
        }
        if self.due.measure <= now {
            self.measure(now);
        }
        if self.due.compare <= now {
            self.compare_next(now);
        }
        if self.due.look <= now {
            self.look(now);
        }
        if self.due.ask <= now {
            self.ask(now);
        }
        if self.due.review <= now {
            self.review(now);
        }
    }

    /// Starts to observe the others anew: while this member did not run, it heard nobody.
    fn handle_awake(&mut self, now: Duration) {
        let until = self.due.review;
        let silences: Vec<(MemberId, Duration)> =
            self.peers.keys().map(|it| (*it, self.silence(*it, until))).collect();
        for (member, before) in silences {
            if let Some(peer) = self.peers.get_mut(&member) {
                (peer.since, peer.before) = (now, before);
            }
        }
    }

    /// Returns the time of the next task that needs no input.
    #[must_use]
    pub fn poll_timeout(&self) -> Duration {
        let Deadlines { announce, measure, compare, look, ask, review } = self.due;
        [announce, measure, compare, look, ask].into_iter().fold(review, Duration::min)
    }

    /// Returns the next action for the shell.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.queue.pop_front()
    }
}
