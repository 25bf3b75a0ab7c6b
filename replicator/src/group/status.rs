//! The status of a group: silences, charter, neighbors, trees.
//!
//! Sans-I/O.

use std::sync::Arc;
use std::time::Duration;

use super::charter::{Charter, GroupTree, Member};
use super::join::Invitation;
use super::{Group, links};
use crate::id::{GroupId, MemberId};
use crate::topology::Topology;

impl Group {
    /// Returns how long no sign of life has come from a member, counted only while this member was
    /// running.
    pub(super) fn unheard(&self, member: MemberId, now: Duration) -> Duration {
        let since = self.peers.get(&member).map_or(now, |it| it.since);
        let last = self.rows.advanced(member).unwrap_or_default();
        now.saturating_sub(since.max(last))
    }

    /// Returns how long a member has been silent, this member's earlier runs included; zero for
    /// this member.
    pub fn silence(&self, member: MemberId, now: Duration) -> Duration {
        let Some(peer) = self.peers.get(&member) else { return Duration::ZERO };
        let is_heard = self.rows.advanced(member).is_some_and(|it| peer.since <= it);
        let before = if is_heard { Duration::ZERO } else { peer.before };
        before + self.unheard(member, now)
    }

    /// Returns this member's id.
    pub fn me(&self) -> MemberId {
        self.me
    }

    /// Returns the group's id.
    pub fn id(&self) -> GroupId {
        self.group
    }

    /// Returns the charter in force; `None` before this member has been admitted.
    pub fn charter(&self) -> Option<&Arc<Charter>> {
        self.charter.as_ref()
    }

    /// Returns whether this member leads the group.
    pub fn is_leader(&self) -> bool {
        self.charter.as_ref().is_some_and(|it| it.leader() == self.me)
    }

    /// Returns whether this member is in the group.
    pub fn is_member(&self) -> bool {
        self.charter.as_ref().is_some_and(|it| it.body().member(self.me).is_some())
    }

    /// Returns the members to which the shell keeps links up, those of the topology's tree first.
    pub fn neighbors(&self) -> impl Iterator<Item = &Member> {
        self.charter.iter().flat_map(|it| it.neighbors(self.me))
    }

    /// Returns the topology that this member would choose; `None` before it has been admitted.
    /// Where it differs from the charter's, the leader has other rows, or has not recomputed yet.
    pub fn computed(&self) -> Option<Topology> {
        let charter = self.charter.as_ref()?;
        Some(links::next(charter.body(), &self.all_rows()))
    }

    /// Returns how many messages were forged or malformed.
    pub fn lies(&self) -> u64 {
        self.lies
    }

    /// Returns the invitation to print for a new member: with the secret half of an invitation's
    /// key, or without a secret for a member on the access list. `None` without a charter.
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

    /// Returns the trees of the group, with their writers.
    pub fn trees(&self) -> impl Iterator<Item = &GroupTree> {
        self.charter.iter().flat_map(|it| &it.body().trees).map(|it| &it.tree)
    }
}
