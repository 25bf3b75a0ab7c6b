//! The invitations of a group: each is for one member and has an end.
//!
//! They are in the charter, so that a new leader knows which ones are open and which member joined
//! with which. The charter has only the public half of each invitation's key. The leader makes and
//! withdraws them.
//!
//! Their ends are in seconds since 1970, by the leader's clock. While that clock is ahead,
//! invitations end too early; they are valid again once it is right. A clock that goes back
//! prolongs no invitation: the leader notes the remaining time when it first sees an invitation,
//! and measures it with its monotonic clock. An invitation is not valid before it was made.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::Group;
use super::access::{Access, Caller};
use super::charter::{Body, SignError};
use super::join::Reason;
use crate::id::{InvitationId, MemberId};
use crate::wire::Reader;

/// Maximum number of invitations on record. When it is reached, a new invitation replaces the
/// oldest one that is no longer open.
pub const INVITATIONS_MAX: usize = 256;
/// Default validity of an invitation.
pub const VALID: Duration = Duration::from_hours(24);
/// Allowed validity of an invitation.
pub const VALID_RANGE: RangeInclusive<Duration> =
    Duration::from_mins(1)..=Duration::from_hours(24 * 30);

/// Maximum number of seconds by which a new leader's clock may be behind that of the member that
/// made an invitation.
const BEHIND_MAX: u64 = 600;
const USED: u8 = 1;
const WITHDRAWN: u8 = 2;

/// An invitation in the charter of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invited {
    /// Public half of its key; the owner of the secret half may join.
    pub key: [u8; 32],
    /// Time at which it was made, in seconds since 1970 (UTC).
    pub made: u64,
    /// Its end, in the same unit.
    pub ends: u64,
    /// The member that joined with it: no other may use it.
    pub used_by: Option<MemberId>,
    /// Whether it was withdrawn, by an administrator or because the member that used it was denied.
    pub is_withdrawn: bool,
}

/// Reason why an invitation is not made or not withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InviteError {
    /// Another member leads the group.
    #[error("{0} leads the group, which alone makes and withdraws invitations: ask there")]
    Elsewhere(MemberId),
    /// This member is not in the group.
    #[error("this member is not in the group yet")]
    Nowhere,
    /// Too many invitations are open.
    #[error(
        "{INVITATIONS_MAX} invitations are open, as many as there may be: withdraw some (`invite --revoke ID`)"
    )]
    Full,
    /// There is no such invitation.
    #[error("the group knows no invitation {0}: `status` lists them")]
    Unknown(InvitationId),
    /// The charter with the change cannot be signed.
    #[error("no charter can be signed: {0}")]
    Sign(#[from] SignError),
}

impl Invited {
    /// Returns its id.
    pub fn id(&self) -> InvitationId {
        InvitationId::of(&self.key)
    }

    /// Returns the reason why it does not admit this member; `None` if it does. `is_over` says
    /// whether its time is over.
    fn refusal(&self, member: MemberId, is_over: bool) -> Option<Reason> {
        match self {
            Self { used_by: Some(by), .. } if *by != member => Some(Reason::Used),
            Self { is_withdrawn: true, .. } => Some(Reason::Withdrawn),
            _ => is_over.then_some(Reason::Ended),
        }
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.key);
        bytes.extend([self.made, self.ends].map(u64::to_be_bytes).as_flattened());
        let used = if self.used_by.is_some() { USED } else { 0 };
        bytes.push(used | if self.is_withdrawn { WITHDRAWN } else { 0 });
        bytes.extend(self.used_by.into_iter().flat_map(|it| it.0.to_be_bytes()));
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let (key, made, ends, flags) = (from.array()?, from.u64()?, from.u64()?, from.u8()?);
        let used_by = match flags & USED {
            0 => None,
            _ => Some(MemberId(from.u64()?)),
        };
        let is_withdrawn = flags & WITHDRAWN != 0;
        let is_it = flags <= USED | WITHDRAWN && made < ends;
        is_it.then_some(Self { key, made, ends, used_by, is_withdrawn })
    }
}

/// Returns whether there are at most [`INVITATIONS_MAX`] invitations, and none of them twice.
pub(super) fn are_sound(all: &[Invited]) -> bool {
    let mut ids: Vec<InvitationId> = all.iter().map(Invited::id).collect();
    ids.sort_unstable();
    ids.len() <= INVITATIONS_MAX && ids.array_windows().all(|[one, next]| one != next)
}

/// The time of day when it was last passed in, and the latest ends of invitations by the monotonic
/// clock.
#[derive(Debug, Default)]
pub(super) struct Clock {
    unix: u64,
    at: Duration,
    ends: BTreeMap<InvitationId, Duration>,
}

impl Clock {
    /// Returns the seconds since 1970.
    fn unix(&self, now: Duration) -> u64 {
        self.unix.saturating_add(now.saturating_sub(self.at).as_secs())
    }

    /// Notes the remaining time of invitations seen for the first time; forgets those not in `all`.
    pub(super) fn watch(&mut self, all: &[Invited], now: Duration) {
        self.ends.retain(|id, _| all.iter().any(|it| it.id() == *id));
        let unix = self.unix(now);
        for it in all.iter().filter(|it| unix < it.ends) {
            let left = Duration::from_secs((it.ends - unix).min(it.ends - it.made));
            self.ends.entry(it.id()).or_insert(now + left);
        }
    }

    pub(super) fn is_over(&self, it: &Invited, now: Duration) -> bool {
        let unix = self.unix(now);
        let is_passed = self.ends.get(&it.id()).is_some_and(|ends| *ends <= now);
        it.ends <= unix || unix.saturating_add(BEHIND_MAX) < it.made || is_passed
    }
}

impl Group {
    /// Takes in the time of day, in seconds since 1970 (UTC). Call it again before other input: the
    /// clock may have been set meanwhile. Without a first call, the time of day is that of 1970.
    pub fn handle_clock(&mut self, unix: u64, now: Duration) {
        (self.clock.unix, self.clock.at) = (unix, now);
    }

    /// Returns whether an invitation's time is over, by this member's clock.
    pub fn is_over(&self, invited: &Invited, now: Duration) -> bool {
        self.clock.is_over(invited, now)
    }

    /// Makes an invitation for one member; `key` is the invitation's public key. It is valid for
    /// `valid`, brought into [`VALID_RANGE`], and is in the charter at once.
    ///
    /// # Errors
    ///
    /// This member does not lead the group or is not in it, too many invitations are open, or the
    /// charter cannot be signed. The message says what to do.
    pub fn invite(
        &mut self,
        key: [u8; 32],
        valid: Duration,
        now: Duration,
    ) -> Result<Invited, InviteError> {
        let made = self.clock.unix(now);
        let valid = valid.clamp(*VALID_RANGE.start(), *VALID_RANGE.end());
        let ends = made.saturating_add(valid.as_secs());
        let invited = Invited { key, made, ends, used_by: None, is_withdrawn: false };
        self.add_invited(invited.clone(), now)?;
        Ok(invited)
    }

    /// Adds an invitation to the charter, such as the one that was made before the group existed.
    /// Nothing changes if the charter has it already.
    pub fn add_invited(&mut self, invited: Invited, now: Duration) -> Result<(), InviteError> {
        let all = self.charter.iter().flat_map(|it| &it.body().invitations);
        let is_open = |it: &&Invited| {
            it.used_by.is_none() && !it.is_withdrawn && !self.clock.is_over(it, now)
        };
        let closed = all.clone().find(|it| !is_open(it)).map(Invited::id);
        if all.clone().any(|it| it.key == invited.key) {
            return Ok(());
        }
        self.change_invitations(now, |all| {
            if INVITATIONS_MAX <= all.len() {
                let closed = closed.ok_or(InviteError::Full)?;
                all.retain(|it| it.id() != closed);
            }
            all.push(invited);
            Ok(())
        })
    }

    /// Withdraws an invitation. The member that joined with it stays.
    ///
    /// # Errors
    ///
    /// There is no such invitation, this member does not lead the group or is not in it, or the
    /// charter cannot be signed. The message says what to do.
    pub fn revoke(&mut self, id: InvitationId, now: Duration) -> Result<(), InviteError> {
        self.change_invitations(now, |all| {
            let found = all.iter_mut().find(|it| it.id() == id);
            found.ok_or(InviteError::Unknown(id))?.is_withdrawn = true;
            Ok(())
        })
    }

    /// Changes the invitations, and signs a charter with them if they differ.
    fn change_invitations(
        &mut self,
        now: Duration,
        change: impl FnOnce(&mut Vec<Invited>) -> Result<(), InviteError>,
    ) -> Result<(), InviteError> {
        let charter = self.charter.clone().filter(|_| self.is_member());
        let charter = charter.ok_or(InviteError::Nowhere)?;
        if !self.is_leader() {
            return Err(InviteError::Elsewhere(charter.leader()));
        }
        let mut body = charter.body().clone();
        change(&mut body.invitations)?;
        if body.invitations != charter.body().invitations {
            let number = (charter.epoch(), charter.revision().saturating_add(1));
            let next = charter.amend(&self.identity, number, charter.deputies(), body)?;
            self.adopt(next, None, now);
        }
        Ok(())
    }

    pub(super) fn watch_invitations(&mut self, now: Duration) {
        if let Some(charter) = &self.charter {
            self.clock.watch(&charter.body().invitations, now);
        }
    }

    /// Decides whether a caller may become a member. Returns the invitation by which it may, or
    /// `None` if the access list admits it.
    pub(super) fn admission(
        &self,
        body: &Body,
        access: &Access,
        who: &Caller,
        now: Duration,
    ) -> Result<Option<InvitationId>, Reason> {
        if access.denies(who) {
            return Err(Reason::Access);
        }
        let is_allowed = access.allows(who);
        let Some(key) = who.invitation else {
            return if is_allowed { Ok(None) } else { Err(Reason::Access) };
        };
        let id = InvitationId::of(&key);
        let refusal = match body.invitations.iter().find(|it| it.key == key) {
            None => Some(Reason::Withdrawn),
            // Of two simultaneous requests the first is granted, and will be in the charter soon.
            Some(_) if self.lead.has_granted(id, who.member) => Some(Reason::Used),
            Some(it) => it.refusal(who.member, self.clock.is_over(it, now)),
        };
        match refusal {
            None => Ok(Some(id)),
            Some(_) if is_allowed => Ok(None),
            Some(reason) => Err(reason),
        }
    }
}

impl Body {
    /// Records that a member joins with an invitation. Returns whether the invitation admits it;
    /// its end is not checked again.
    pub(super) fn use_up(&mut self, id: InvitationId, by: MemberId) -> bool {
        let found = self.invitations.iter_mut().find(|it| it.id() == id);
        let Some(it) = found.filter(|it| it.refusal(by, false).is_none()) else { return false };
        it.used_by = Some(by);
        true
    }

    /// Withdraws the invitations of members that are denied now.
    pub(super) fn withdraw_denied(&mut self, is_denied: impl Fn(MemberId) -> bool) {
        let Self { members, invitations, .. } = self;
        let denied = members.iter().filter(|it| is_denied(it.id()));
        let ids: Vec<InvitationId> = denied.filter_map(|it| it.invitation).collect();
        for it in invitations {
            it.is_withdrawn |= ids.contains(&it.id()) || it.used_by.is_some_and(&is_denied);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn invited(made: u64) -> Invited {
        let (used_by, is_withdrawn) = (None, false);
        Invited { key: [3; 32], made, ends: made + DAY, used_by, is_withdrawn }
    }

    fn clock(unix: u64, now: Duration) -> Clock {
        Clock { unix, at: now, ends: BTreeMap::new() }
    }

    #[test]
    fn an_invitation_ends_by_the_clock() {
        let (it, clock) = (invited(1_000_000), clock(1_000_000, at(5)));
        assert!(!clock.is_over(&it, at(5)) && !clock.is_over(&it, at(4 + DAY)));
        assert!(clock.is_over(&it, at(5 + DAY)));
    }

    #[test]
    fn a_clock_that_goes_back_prolongs_nothing() {
        let (it, mut clock) = (invited(1_000_000), clock(1_000_000, at(0)));
        clock.watch(std::slice::from_ref(&it), at(0));
        // The clock goes back repeatedly, each time to the start.
        for hours in [12, 18, 23] {
            (clock.unix, clock.at) = (1_000_000, at(hours * 3_600));
            clock.watch(std::slice::from_ref(&it), at(hours * 3_600));
            assert!(!clock.is_over(&it, at(hours * 3_600)));
        }
        assert!(clock.is_over(&it, at(DAY)));
        // It is not valid before it was made, but two members' clocks may differ a little.
        clock.ends.clear();
        (clock.unix, clock.at) = (1_000_000 - BEHIND_MAX, at(0));
        assert!(!clock.is_over(&it, at(0)));
        clock.unix -= 1;
        assert!(clock.is_over(&it, at(0)));
    }

    #[test]
    fn a_clock_that_jumps_ahead_ends_invitations_until_it_is_right_again() {
        let (it, mut clock) = (invited(1_000_000), clock(1_000_000, at(0)));
        (clock.unix, clock.at) = (1_000_000 + 400 * DAY, at(60));
        clock.watch(std::slice::from_ref(&it), at(60));
        assert!(clock.is_over(&it, at(60)));
        (clock.unix, clock.at) = (1_000_120, at(120));
        clock.watch(std::slice::from_ref(&it), at(120));
        assert!(!clock.is_over(&it, at(120)));
    }

    #[test]
    fn invitations_are_read_as_they_were_written() {
        for (used_by, is_withdrawn) in [None, Some(MemberId(7))].into_iter().zip([true, false]) {
            let it = Invited { used_by, is_withdrawn, ..invited(9) };
            let mut bytes = Vec::new();
            it.write(&mut bytes);
            let mut from = Reader(&bytes);
            assert_eq!(Invited::read(&mut from), Some(it));
            assert!(from.end().is_some());
            bytes[48] |= 4;
            assert_eq!(Invited::read(&mut Reader(&bytes)), None);
        }
        let mut bytes = Vec::new();
        Invited { ends: 9, ..invited(9) }.write(&mut bytes);
        assert_eq!(Invited::read(&mut Reader(&bytes)), None);
    }
}
