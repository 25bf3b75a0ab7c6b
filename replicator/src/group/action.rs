//! What a group is told by its admin, and what it has its shell do.
//!
//! Sans-I/O.

use std::sync::Arc;

use super::access::Access;
use super::charter::{self, Address, Carried, SignError};
use super::join::{CARRIED_MAX, MEMBER_TREES_MAX, Reason, Wish};
use crate::id::MemberId;
use crate::topology::Connectivity;
use crate::version::{Kind, Name};

/// A tree or a collection of a member.
pub type NamedKind = (Name, Kind);

/// What a member's admin has settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where it is reached by the others.
    pub address: Address,
    /// Members of one site have good links between them.
    pub site: Name,
    /// The trees and collections to which it writes.
    pub trees: Vec<NamedKind>,
    /// The trees and collections of other groups that it brings into this one. Those of a writer that the group
    /// denies stay out. Of more than [`CARRIED_MAX`] the first count, in the order of writer and name, and of
    /// `trees` more than [`MEMBER_TREES_MAX`].
    pub carried: Vec<Carried>,
    /// While it leads: how many members the group may lose without falling apart; none to leave it.
    pub connectivity: Option<Connectivity>,
    /// While it leads: who takes over, one after another; empty to have two chosen.
    pub deputies: Vec<MemberId>,
    /// While it leads: who may join; none to leave it.
    pub access: Option<Access>,
}

impl Settings {
    /// What a member of this key wants the charter to say of it.
    pub(super) fn wish(&self, key: &[u8; 32]) -> Wish {
        let mut wish = self.all(key);
        wish.trees.truncate(MEMBER_TREES_MAX);
        wish.carried.truncate(CARRIED_MAX);
        wish
    }

    /// How many trees are in no wish, since they are too many.
    pub(super) fn unlisted(&self, key: &[u8; 32]) -> usize {
        let Wish { trees, carried, .. } = self.all(key);
        trees.len().saturating_sub(MEMBER_TREES_MAX) + carried.len().saturating_sub(CARRIED_MAX)
    }

    fn all(&self, key: &[u8; 32]) -> Wish {
        let mut trees = self.trees.clone();
        trees.sort();
        trees.dedup_by(|next, one| one.0 == next.0);
        let mut carried = self.carried.clone();
        carried.retain(|it| it.tree.writer != *key && it.is_sound());
        carried.sort_by(|a, b| (a.tree.id(), a.distance).cmp(&(b.tree.id(), b.distance)));
        // It has come on the shortest way.
        carried.dedup_by(|next, one| one.tree.id() == next.tree.id());
        Wish { address: self.address.clone(), site: self.site.clone(), trees, carried }
    }
}

/// What members send each other; the bytes are those of a message of `message.rs` each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// For [`super::Group::handle_charter`].
    Charter(Arc<[u8]>),
    /// For [`super::Group::handle_row`].
    Row(Arc<[u8]>),
    /// For [`super::Group::handle_join`].
    Join(Arc<[u8]>),
    /// For [`super::Group::handle_refused`].
    Refused(Arc<[u8]>),
}

/// What the shell does for the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Put this in the place of what was kept of the group, and sync it, before any later action.
    Persist(Vec<u8>),
    /// Send this over the links to these members, as far as they are up.
    Send {
        /// To whom.
        to: Vec<MemberId>,
        /// What.
        message: Message,
    },
    /// Try once to make a link, if there is none, and keep it for a minute at least, also if it is to no neighbor.
    Connect {
        /// Whose key it has to be.
        key: [u8; 32],
        /// Where.
        address: Address,
    },
    /// Call a member, and say what came of it by [`super::Group::handle_round_trip`] or [`super::Group::handle_unanswered`].
    Measure {
        /// Whom.
        member: MemberId,
        /// Whether to take the bandwidth, for [`super::Group::handle_probe`].
        probe: bool,
    },
    /// There is a new charter: members, trees and neighbors may be others.
    NewCharter,
    /// Close the link to a member at once, unless another group needs it: it is denied now.
    Part(MemberId),
    /// One is in the group, for the first time or again.
    Admitted,
    /// One's request to join was refused. It is made again after a while.
    Refused(Reason),
    /// For status, and for the admin's eyes.
    Alarm(Alarm),
}

/// What an admin should know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Alarm {
    /// A neighbor sent what no honest one sends. Drop its link.
    #[error("{0} sends what is forged or malformed")]
    Lied(MemberId),
    /// Another leads the group now.
    #[error(
        "{by} leads the group now, in epoch {epoch}; what was settled here has to be settled there"
    )]
    Deposed {
        /// Who.
        by: MemberId,
        /// Since which epoch.
        epoch: u64,
    },
    /// Oneself leads the group now.
    #[error(
        "this member leads the group now, in epoch {0}: the leader before was silent, or it was told to"
    )]
    TookOver(u64),
    /// One is not in the charter any more, and asks to join again.
    #[error("this member is not in its group any more, and asks to join again")]
    Missing,
    /// Others know more of oneself than was on disk.
    #[error("what was kept of the group was lost or is old: others had heard more of this member")]
    Forgotten,
    /// A deputy that is none any more tries to lead.
    #[error("{0} was a deputy once and claims to lead the group")]
    Revoked(MemberId),
    /// So many trees in this member's settings are more than it may list, and are left out.
    #[error(
        "{0} trees are left out: a member lists at most {MEMBER_TREES_MAX} to which it writes \
         and {CARRIED_MAX} of other groups"
    )]
    Unlisted(usize),
    /// The leader cannot sign what it would: too many mandates, trees or members.
    #[error("no new charter can be signed: {0}")]
    Sign(SignError),
}

/// What was done with what came, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows and beats that were new.
    pub rows_new: u64,
    /// Rows and beats that were known, or old.
    pub rows_old: u64,
    /// Rows of members that say too much.
    pub rows_too_often: u64,
    /// Charters that were followed.
    pub charters_new: u64,
    /// Charters that were old, or by one that is no deputy any more.
    pub charters_refused: u64,
    /// Messages that were forged or malformed.
    pub lies: u64,
}

/// Why a group cannot be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// What was kept is damaged.
    #[error("what is kept of the group is damaged: delete it, and join the group again")]
    State,
    /// It is of another group, or of no group.
    #[error("what is kept is not of this group: {0}")]
    Charter(charter::ParseError),
    /// There is neither a charter nor an invitation.
    #[error("there is no group yet: found one, or join one with an invitation")]
    Nothing,
}
