//! What a member can say of its group.
//!
//! Sans-I/O.

use std::sync::Arc;
use std::time::Duration;

use super::charter::{Charter, Member, Tree};
use super::join::Invitation;
use super::{Counts, Group, links};
use crate::id::{GroupId, MemberId};
use crate::topology::Topology;

impl Group {
    /// For how long nothing was heard of a member, as far as this one was there.
    pub(super) fn unheard(&self, member: MemberId, now: Duration) -> Duration {
        let since = self.peers.get(&member).map_or(now, |it| it.since);
        let heard = self.rows.advanced(member).unwrap_or_default();
        now.saturating_sub(since.max(heard))
    }

    /// For how long a member has been silent, earlier runs and watches included; none for oneself.
    #[must_use]
    pub fn silence(&self, member: MemberId, now: Duration) -> Duration {
        let Some(peer) = self.peers.get(&member) else { return Duration::ZERO };
        let is_heard = self.rows.advanced(member).is_some_and(|it| peer.since <= it);
        let before = if is_heard { Duration::ZERO } else { peer.before };
        before + self.unheard(member, now)
    }

    /// One's own id.
    #[must_use]
    pub fn me(&self) -> MemberId {
        self.me
    }

    /// The group.
    #[must_use]
    pub fn id(&self) -> GroupId {
        self.group
    }

    /// The charter to go by; none before one has been admitted.
    #[must_use]
    pub fn charter(&self) -> Option<&Arc<Charter>> {
        self.charter.as_ref()
    }

    /// Whether one leads the group.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.charter.as_ref().is_some_and(|it| it.leader() == self.me)
    }

    /// Whether one is in the group.
    #[must_use]
    pub fn is_member(&self) -> bool {
        self.charter.as_ref().is_some_and(|it| it.body().member(self.me).is_some())
    }

    /// To whom the shell keeps links up, those of the tree first.
    pub fn neighbors(&self) -> impl Iterator<Item = &Member> {
        self.charter.iter().flat_map(|it| it.neighbors(self.me))
    }

    /// The topology that this member would choose, from what it has heard. Where it differs from the charter's, the
    /// leader has heard something else, or waits.
    #[must_use]
    pub fn computed(&self) -> Option<Topology> {
        let charter = self.charter.as_ref()?;
        Some(links::next(charter.body(), &self.all_rows()))
    }

    /// What was done with what came.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The invitation to print, for who is to join: with the secret of a key that is on the access list, or none for
    /// who is on that list itself.
    #[must_use]
    pub fn invitation(&self, secret: Option<[u8; 32]>) -> Option<Invitation> {
        let charter = self.charter.as_ref()?;
        let leader = charter.body().member(charter.leader())?;
        Some(Invitation {
            name: charter.body().name.clone(),
            founder: charter.founder(),
            address: leader.address.clone(),
            key: *leader.key(),
            secret,
        })
    }

    /// The trees of the group, with their writers.
    pub fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.charter.iter().flat_map(|it| &it.body().trees).map(|it| &it.tree)
    }
}
