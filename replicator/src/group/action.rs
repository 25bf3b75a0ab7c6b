//! Values between a group and its shell: settings, messages, actions, alarms.
//!
//! Sans-I/O.

use std::sync::Arc;

use super::access::Access;
use super::charter::{self, Address, Carried, SignError};
use super::join::{CARRIED_MAX, MEMBER_TREES_MAX, Reason, Wish};
use crate::id::MemberId;
use crate::topology::Connectivity;
use crate::version::{Kind, Name};

/// The administrator's settings of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Address at which the others reach it.
    pub address: Address,
    /// Site of the member. Members of one site have good links between them.
    pub site: Name,
    /// The trees and collections that it writes.
    pub trees: Vec<(Name, Kind)>,
    /// The trees and collections of other groups that it brings into this one. Those of a writer
    /// that the group denies stay out. If there are more than [`CARRIED_MAX`], only the first ones
    /// in the order of writer and name count. In the same way, at most [`MEMBER_TREES_MAX`] of
    /// `trees` count, in the order of names.
    pub carried: Vec<Carried>,
    /// Used while this member leads: how many members have to fail before the group can fall apart;
    /// `None` keeps the charter's.
    pub connectivity: Option<Connectivity>,
    /// Used while this member leads: the deputies, in the order in which they take over; if empty,
    /// two are chosen.
    pub deputies: Vec<MemberId>,
    /// Used while this member leads: the access list; `None` keeps the charter's.
    pub access: Option<Access>,
}

impl Settings {
    /// Returns the charter entry that a member with this key asks for.
    pub(super) fn wish(&self, key: &[u8; 32]) -> Wish {
        let mut wish = self.all(key);
        wish.trees.truncate(MEMBER_TREES_MAX);
        wish.carried.truncate(CARRIED_MAX);
        wish
    }

    /// Returns how many trees [`Self::wish`] leaves out because there are too many.
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
        // The first of several equal trees has the smallest distance.
        carried.dedup_by(|next, one| one.tree.id() == next.tree.id());
        Wish { address: self.address.clone(), site: self.site.clone(), trees, carried }
    }
}

/// Messages between members. The bytes of each are those of a message in `message.rs`.
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

/// Tasks for the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Replace the group's saved state with these bytes, and sync them, before any later action.
    Persist(Vec<u8>),
    /// Send a message to those of the receivers whose links are up.
    Send {
        /// Receivers.
        to: Vec<MemberId>,
        /// The message.
        message: Message,
    },
    /// Try once to make a link, if there is none. Keep the link for at least a minute, even if it
    /// is not to a neighbor.
    Connect {
        /// Key that the other side must have.
        key: [u8; 32],
        /// Its address.
        address: Address,
    },
    /// Call a member, and report the result with [`super::Group::handle_round_trip`] or
    /// [`super::Group::handle_unanswered`].
    Measure {
        /// The member.
        member: MemberId,
        /// Whether to measure the bandwidth, for [`super::Group::handle_probe`].
        probe: bool,
    },
    /// There is a new charter: members, trees and neighbors may have changed.
    NewCharter,
    /// Close the link to a denied member at once, unless another group needs it.
    CloseLink(MemberId),
    /// This member is in the group, for the first time or again.
    Admitted,
    /// The request to join was refused. The group repeats the request after a while.
    Refused(Reason),
    /// Show this in the status and log it for the administrator.
    Alarm(Alarm),
}

/// Events that an administrator should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Alarm {
    /// A neighbor sent a message that no honest member sends. Drop its link.
    #[error("{0} sends forged or malformed messages")]
    Lied(MemberId),
    /// Another member leads the group now.
    #[error("{by} leads the group now, in epoch {epoch}; change the settings of the group there")]
    Deposed {
        /// The new leader.
        by: MemberId,
        /// Its first epoch.
        epoch: u64,
    },
    /// This member leads the group now.
    #[error(
        "this member leads the group now, in epoch {0}: the leader before was silent, or its administrator ordered it"
    )]
    TookOver(u64),
    /// This member is no longer in the charter, and asks to join again.
    #[error("this member is not in its group any more, and asks to join again")]
    Missing,
    /// Others have newer messages of this member than it had on disk.
    #[error(
        "the saved state of the group was lost or is old: other members have newer messages of this one"
    )]
    Forgotten,
    /// A member that is no deputy any more tries to lead.
    #[error("{0} was a deputy once and claims to lead the group")]
    Revoked(MemberId),
    /// The settings name more trees than a member may list; this number of trees is left out.
    #[error(
        "{0} trees are left out: a member lists at most {MEMBER_TREES_MAX} to which it writes \
         and {CARRIED_MAX} of other groups"
    )]
    Unlisted(usize),
    /// The leader cannot sign its new charter: too many mandates, trees or members.
    #[error("no new charter can be signed: {0}")]
    Sign(SignError),
}

/// Reason why a group cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The saved state is damaged.
    #[error("the saved state of the group is damaged: delete it, and join the group again")]
    State,
    /// The saved charter is of another group, or its bytes are no charter.
    #[error("the saved state is not of this group: {0}")]
    Charter(charter::CharterError),
    /// There is neither a charter nor an invitation.
    #[error("there is no group yet: found one, or join one with an invitation")]
    Nothing,
}
