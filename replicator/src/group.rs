//! Who is in a group, who leads it, and what all members know of its links.
//!
//! Source: TR §8: flood-d, whose members join at the group's master, flood what they have measured, and get a
//! topology that the master computes.
//!
//! The shell keeps links to [`Group::neighbors`], hands in what comes over them, and does what
//! [`Group::poll_action`] says, in its order, after each call and whenever [`Group::poll_timeout`] has come.
//! All times are those of the member's own monotonic clock: nobody's clock has to be right.
//!
//! Of a group of 300 members a row is checked in 0.1 ms, a charter in 1 ms, and the leader computes the topology in
//! 20 ms: so none of it belongs on an async thread.
//!
//! # Differences from the paper
//!
//! * Deputies take over from a leader that is silent ("Flood-d's do not elect new leaders"). There is no
//!   election and no majority: nothing of the data depends on who leads, two leaders in two parts of a group
//!   harm nobody, and once they meet one of them counts everywhere (`succession`).
//! * Who is silent loses its links after minutes and its place after a month, and is looked for in between,
//!   so that parts of a group find each other again.
//! * All is signed: the charter by the leader, from the founder's key on (`mandate`), and rows by their
//!   members (`rows`).
//! * Each member also computes the topology itself ([`Group::computed`]), to tell where the leader's
//!   differs.
//!
//! Sans-I/O.

pub mod access;
mod action;
mod admit;
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
mod say;
pub mod state;
mod status;
pub mod succession;
mod wire;

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

pub use action::{Action, Alarm, Counts, Message, NamedKind, OpenError, Settings};
use charter::{Body, Charter, Member, SignError};
use held::Holdings;
use join::{Invitation, Wish};
use lead::Lead;
use rows::{Own, Rows};
use state::State;

/// A member says so often that it is there.
pub const BEAT: Duration = Duration::from_secs(15);
/// A member that is silent for so long is looked for.
pub const LOST: Duration = Duration::from_secs(50);
/// The first deputy takes over from a leader that is silent for so long, the second after twice as long.
pub const TAKEOVER: Duration = Duration::from_mins(1);
/// A member that is silent for so long loses its links.
pub const EXPIRE: Duration = Duration::from_mins(3);
/// A member that is silent for so long loses its place.
pub const DROP: Duration = Duration::from_hours(30 * 24);
/// So often a member compares what it knows with what one of its neighbors knows.
pub const COMPARE: Duration = Duration::from_mins(1);
/// Connections or calls that fail, one after another, before a member says that there is no link.
pub const FAILURES_MAX: u32 = 3;
/// Most links that are kept account of.
pub const LINKED_MAX: usize = 1_024;

/// A member whose timer was so late was not running, and has no say on how long others were silent.
const ASLEEP: Duration = Duration::from_secs(30);

/// What is known of another member.
#[derive(Debug)]
struct Peer {
    /// Since when it is watched.
    since: Duration,
    /// For how long it had been silent before.
    before: Duration,
    estimate: Estimate,
    /// What members have found of the line that the link shares with theirs.
    line: Option<Line>,
    /// When it was last called.
    called: Option<Duration>,
    /// Since when it is to be probed.
    wanted: Option<Duration>,
    /// Whether something else was likely to be on the line when its last probe began.
    is_beside: bool,
    /// Calls and connections that failed since one did not.
    failures: u32,
}

/// A link that is up.
#[derive(Debug, Default)]
struct Linked {
    /// The charter that the other side has, as far as is known.
    told: Option<Hash>,
    /// When it was last asked for what is lacking here.
    asked: Option<Duration>,
}

/// When something is done next.
#[derive(Debug)]
struct Due {
    say: Duration,
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
    /// What is signed has the incarnation and how much was signed in it before.
    incarnation: u32,
    signed: u32,
    own: Option<Own>,
    /// When the own row was made.
    own_since: Duration,
    rows: Rows,
    held: Holdings,
    /// All other members.
    peers: BTreeMap<MemberId, Peer>,
    linked: BTreeMap<MemberId, Linked>,
    admission: admit::Admission,
    lead: Lead,
    clock: invited::Clock,
    due: Due,
    last_measure: Option<Duration>,
    last_probe: Option<Duration>,
    last_busy: Option<Duration>,
    /// How many are looked for, since when, and whose turn it is.
    lost: (usize, Duration, usize),
    /// Whose turn it is to be compared with.
    turn: usize,
    /// When the state was last handed out.
    persisted: Duration,
    queue: VecDeque<Action>,
    counts: Counts,
}

impl Group {
    /// Founds a group, and leads it. The identity's key is that of the group from then on: who has it can always lead
    /// the group.
    ///
    /// # Errors
    ///
    /// The access list is too long.
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
        let mut group = Self::new(identity, charter.group(), settings, State::default(), now);
        group.adopt(charter, None, now);
        Ok(group)
    }

    /// Goes on with a group: with what was kept of it, or, if there is none or it has no charter, with an
    /// invitation.
    ///
    /// # Errors
    ///
    /// The message says what to do.
    pub fn open(
        identity: Arc<Identity>,
        settings: Settings,
        kept: Option<&[u8]>,
        invitation: Option<Invitation>,
        now: Duration,
    ) -> Result<Self, OpenError> {
        let state = match kept {
            Some(bytes) => State::from_bytes(bytes).ok_or(OpenError::State)?,
            None => State::default(),
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
        state: State,
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
            due: Due {
                say: now,
                measure: now,
                compare: now + COMPARE,
                look: now,
                ask: now,
                review: now,
            },
            last_measure: None,
            last_probe: None,
            last_busy: None,
            // Not all begin with the same.
            lost: (0, now, usize::try_from(me.0 >> 48).unwrap_or_default()),
            turn: 0,
            persisted: now,
            queue: VecDeque::new(),
            counts: Counts::default(),
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
        let state = State {
            incarnation: self.incarnation,
            silences: silences.filter(|it| it.1 != 0).collect(),
            charter: self.charter.iter().flat_map(|it| it.to_bytes().to_vec()).collect(),
        };
        self.persisted = now;
        self.queue.push_back(Action::Persist(state.to_bytes()));
    }

    /// The next sequence; the greatest that anything of this member has.
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

    /// Goes on above a sequence, if it is not below already.
    fn jump(&mut self, over: u64, now: Duration) {
        if self.sequence() <= over {
            let incarnation = u32::try_from(over >> 32).unwrap_or(u32::MAX);
            (self.incarnation, self.signed) = (incarnation.saturating_add(1), self.salt(now));
            self.own = None;
            self.held.forget_told();
            self.due.say = now;
            self.persist(now);
        }
    }

    /// Where a count begins that may have been begun before the disk was lost: somewhere else, so that nothing that was
    /// said then is taken for what is said now.
    fn salt(&self, now: Duration) -> u32 {
        let charter = self.charter.as_ref().map(|it| it.hash().0).unwrap_or_default();
        let hash = Hash::of(&[charter.as_slice(), &now.as_nanos().to_be_bytes()].concat());
        // Half of all numbers are left to count with.
        hash.0.first_chunk().map_or(0, |it| u32::from_be_bytes(*it) >> 1)
    }

    /// Says that a link is up: to a neighbor, to one that was to be connected to, or from whoever has called.
    pub fn handle_link_up(&mut self, member: MemberId, now: Duration) {
        if LINKED_MAX <= self.linked.len() {
            return;
        }
        self.linked.insert(member, Linked::default());
        if let Some(peer) = self.peers.get_mut(&member) {
            let was_failing = FAILURES_MAX <= std::mem::take(&mut peer.failures);
            if was_failing {
                self.due.say = self.due.say.min(now);
            }
            self.compare(member, false);
        }
        if self.is_asking() {
            self.admission.reset();
            self.due.ask = now;
        }
    }

    /// Says that a link is down, or could not be made.
    pub fn handle_link_down(&mut self, member: MemberId, now: Duration) {
        self.linked.remove(&member);
        self.handle_unanswered(member, now);
    }

    /// Says that a member was called and did not answer.
    pub fn handle_unanswered(&mut self, member: MemberId, now: Duration) {
        if let Some(peer) = self.peers.get_mut(&member) {
            peer.failures = peer.failures.saturating_add(1);
            if peer.failures == FAILURES_MAX {
                self.due.say = self.due.say.min(now);
            }
        }
    }

    /// Takes in what a null call to a member took.
    pub fn handle_round_trip(&mut self, member: MemberId, took: Duration, now: Duration) {
        self.measured(member, |it| it.handle_round_trip(took, now));
    }

    /// Says that something is being brought from or to a member: now a probe would find what is left, and be in the way.
    pub fn handle_busy(&mut self, now: Duration) {
        self.last_busy = Some(now);
    }

    /// Takes in a transfer from or to a member that the link alone held back.
    pub fn handle_transfer(&mut self, member: MemberId, bytes: u64, took: Duration, now: Duration) {
        self.measured(member, |it| it.handle_transfer(bytes, took, now));
    }

    /// Takes in what a probe of the link to a member has found, in bytes a second.
    pub fn handle_probe(&mut self, member: MemberId, bandwidth: u64, now: Duration) {
        let was_beside = self.peers.get(&member).is_some_and(|it| it.is_beside);
        let is_beside = was_beside || self.is_busy(member, now);
        self.measured(member, |it| it.handle_probe(bandwidth, is_beside, now));
    }

    fn measured(&mut self, member: MemberId, take: impl FnOnce(&mut Estimate)) {
        if let Some(peer) = self.peers.get_mut(&member) {
            peer.failures = 0;
            take(&mut peer.estimate);
        }
    }

    /// Takes another invitation to the group, for as long as one is not in it: hand in the settings after it.
    pub fn handle_invitation(&mut self, invitation: Invitation) {
        self.invitation = Some(invitation);
    }

    /// Takes other settings; the charter follows if oneself leads, or else after the leader was asked.
    pub fn handle_settings(&mut self, settings: Settings, now: Duration) {
        self.settings = settings;
        self.check_settings();
        self.admission.reset();
        (self.due.ask, self.due.review) = (now, now);
    }

    /// Does what is due. Call it when [`Group::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.due.review + ASLEEP < now {
            self.handle_awake(now);
        }
        if self.due.say <= now {
            self.say(now);
            self.say_held(now);
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

    /// Begins to watch the others anew: who was not there cannot tell.
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

    /// When there is something to do, without anything coming in.
    #[must_use]
    pub fn poll_timeout(&self) -> Duration {
        let Due { say, measure, compare, look, ask, review } = self.due;
        [say, measure, compare, look, ask].into_iter().fold(review, Duration::min)
    }

    /// What is to be done next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.queue.pop_front()
    }
}
