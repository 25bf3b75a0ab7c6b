//! The charter: a group's members, leader, trees and links, signed by the leader.
//!
//! Source: TR §8 (the group leader's list of members, and the topology that it floods).
//!
//! # Differences from the paper
//!
//! * It is signed, in a chain that starts at the founder's key (`mandate`), so that any member may
//!   pass it on.
//! * The access list and the deputies are in it, so that a new leader has all that the old one had.
//! * A silent member stays in it for a month, without links, with the sequence of its last row, so
//!   that no older row revives it. The sequences of the last 256 members that left are kept for the
//!   same reason.
//!
//! Sans-I/O.

mod address;
mod body;
pub(super) mod trees;

use std::sync::Arc;

use net::identity::Identity;

use super::mandate::{self, DEPUTIES_MAX, MANDATES_MAX, Mandate};
use crate::id::{GroupId, MemberId};
use crate::message::GROUP_BYTES_MAX;
use crate::version::Hash;
use crate::wire::Reader;

pub use address::{ADDRESS_BYTES_MAX, Address, ParseAddressError};
pub use body::{Body, Former, GONE_MAX, LINKS_MAX, MEMBERS_MAX, Member};
pub use trees::{Carried, GroupTree, LISTERS_MAX, Listed, Lister, TREES_MAX};

/// Length of the longest charter, in bytes: with the link's header it fits into a message.
pub const CHARTER_BYTES_MAX: usize = GROUP_BYTES_MAX - 64;

/// Version of the wire form.
const FORMAT: u8 = 4;
/// The version before [`FORMAT`], which is still read. Its invitations are for anybody and endless.
const FORMAT_3: u8 = 3;

/// A group's charter. Only signing and [`Charter::from_bytes`] make one, so every charter is signed
/// by a member that may lead the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charter {
    chain: Vec<Mandate>,
    /// The last mandate of the chain.
    mandate: Mandate,
    body: Body,
    bytes: Arc<[u8]>,
}

/// Reason why bytes are no charter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CharterError {
    /// Their form or length is wrong, or their content is invalid.
    #[error("these {0} bytes are no charter of format {FORMAT}")]
    Form(usize),
    /// The charter is of another group.
    #[error("a charter of another group, {0}")]
    Foreign(GroupId),
    /// A mandate of its chain is not signed by the member that it names: it is forged or changed.
    #[error("a charter is not signed by {0} or it may not lead the group")]
    Forged(MemberId),
}

/// Reason why a charter is not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The signer is neither a deputy nor one that has led: only these may sign.
    #[error("{0} is neither a leader nor a deputy of the group")]
    Rank(MemberId),
    /// The content is invalid or too large.
    #[error("a charter of {members} members and {trees} trees is invalid or too large")]
    Form {
        /// Count of its members.
        members: usize,
        /// Count of its trees.
        trees: usize,
    },
}

impl Charter {
    /// Signs the first charter of a group.
    pub fn found(identity: &Identity, body: Body) -> Result<Self, SignError> {
        Self::sign(identity, &[], (1, 0), &[], body)
    }

    /// Signs the next charter; `number` is its epoch (this one or a greater one) and its revision.
    pub fn amend(
        &self,
        identity: &Identity,
        number: (u64, u64),
        deputies: &[[u8; 32]],
        body: Body,
    ) -> Result<Self, SignError> {
        let key = identity.public();
        let before = mandate::before(&self.chain, &key)
            .ok_or_else(|| SignError::Rank(MemberId::of(&key)))?;
        Self::sign(identity, before, number, deputies, body)
    }

    fn sign(
        identity: &Identity,
        before: &[Mandate],
        number: (u64, u64),
        deputies: &[[u8; 32]],
        body: Body,
    ) -> Result<Self, SignError> {
        let wrong = SignError::Form { members: body.members.len(), trees: body.trees.len() };
        let founder = before.first().map_or_else(|| identity.public(), |it| it.leader);
        let after = body.to_bytes();
        let group = GroupId::of(&founder, body.name.as_str());
        let mandate = Mandate::sign(identity, group, number, deputies.to_vec(), Hash::of(&after));
        let chain = [before, std::slice::from_ref(&mandate)].concat();
        let mut bytes = vec![FORMAT];
        // A sound chain has at most MANDATES_MAX mandates.
        bytes.push(u8::try_from(chain.len()).unwrap_or(u8::MAX));
        chain.iter().for_each(|it| it.write(&mut bytes));
        bytes.extend(after);
        let is_short = bytes.len() <= CHARTER_BYTES_MAX;
        let charter = Self { chain, mandate, body, bytes: bytes.into() };
        if is_short && charter.is_sound() && charter.body.is_sound() {
            Ok(charter)
        } else {
            Err(wrong)
        }
    }

    /// Returns its bytes: format, count of mandates, mandates, name, connectivity, access lists,
    /// invitations, members, members that left, trees, links of the topology's tree and its other
    /// links (docs/groups.md).
    pub fn to_bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// Reads the output of [`Charter::to_bytes`], in this format or in format 3, and nothing else.
    /// Checks all signatures except those of mandates that `known`, another charter of the group,
    /// has as well. Takes 0.1 ms for each checked signature, and another 0.1 ms for each 100
    /// members.
    ///
    /// # Errors
    ///
    /// The bytes are no charter of that group: their sender is broken or lies.
    pub fn from_bytes(
        bytes: &[u8],
        group: GroupId,
        known: Option<&Self>,
    ) -> Result<Self, CharterError> {
        let charter = Self::parse(bytes).ok_or(CharterError::Form(bytes.len()))?;
        if charter.group() != group {
            return Err(CharterError::Foreign(charter.group()));
        }
        let is_known = |it: &Mandate| known.is_some_and(|known| known.chain.contains(it));
        match charter.chain.iter().find(|it| !is_known(it) && !it.is_signed()) {
            Some(forged) => Err(CharterError::Forged(forged.leader())),
            None => Ok(charter),
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let (format, count) = (from.u8()?, usize::from(from.u8()?));
        if !matches!(format, FORMAT | FORMAT_3)
            || CHARTER_BYTES_MAX < bytes.len()
            || MANDATES_MAX < count
        {
            return None;
        }
        let chain = (0..count).map(|_| Mandate::read(&mut from)).collect::<Option<Vec<_>>>()?;
        let (founder, mandate) = (chain.first()?, chain.last()?.clone());
        if Hash::of(from.0) != mandate.body {
            return None;
        }
        let body = Body::from_bytes(from.0, format)?;
        let is_named = GroupId::of(&founder.leader, body.name.as_str()) == founder.group;
        let charter = Self { chain, mandate, body, bytes: bytes.into() };
        (is_named && charter.is_sound()).then_some(charter)
    }

    /// Returns whether the leader and the deputies are members, and the chain of mandates is valid.
    fn is_sound(&self) -> bool {
        let is_member = |it: &[u8; 32]| {
            self.body.member(MemberId::of(it)).is_some_and(|member| member.key() == it)
        };
        let mandate = self.mandate();
        mandate::is_chain(&self.chain)
            && is_member(&mandate.leader)
            && mandate.deputies.len() <= DEPUTIES_MAX
            && mandate.deputies.iter().all(is_member)
    }

    /// Returns all mandates, the founder's first; there is at least one.
    pub(super) fn chain(&self) -> &[Mandate] {
        &self.chain
    }

    /// Returns the signer's mandate: the last one of the chain.
    pub(super) fn mandate(&self) -> &Mandate {
        &self.mandate
    }

    /// Returns the group.
    pub fn group(&self) -> GroupId {
        self.mandate().group
    }

    /// Returns the founder's public key.
    pub fn founder(&self) -> [u8; 32] {
        self.chain.first().map_or([0; 32], |it| it.leader)
    }

    /// Returns the epoch. It rises when a member takes the lead, and to answer a former deputy.
    pub fn epoch(&self) -> u64 {
        self.mandate().epoch
    }

    /// Returns the revision. It rises with each charter of an epoch, from 0.
    pub fn revision(&self) -> u64 {
        self.mandate().revision
    }

    /// Returns the leader.
    pub fn leader(&self) -> MemberId {
        self.mandate().leader()
    }

    /// Returns the keys of the deputies, in the order in which they take over.
    pub fn deputies(&self) -> &[[u8; 32]] {
        &self.mandate().deputies
    }

    /// Returns the content without the mandates.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Returns the hash of its bytes.
    pub fn hash(&self) -> Hash {
        Hash::of(&self.bytes)
    }

    /// Returns the members to which the topology links a member, those of its tree first; none for
    /// an id that is no member.
    pub fn neighbors(&self, member: MemberId) -> impl Iterator<Item = &Member> {
        let position = self.body.position(member).unwrap_or(usize::MAX);
        self.body.topology.neighbors(position).filter_map(|it| self.body.members.get(it))
    }
}

/// Returns the group that the first mandate in a charter's bytes names; `None` if there is no
/// mandate. No signature is checked.
pub(super) fn group_of(bytes: &[u8]) -> Option<GroupId> {
    let mut from = Reader(bytes);
    from.u16()?;
    Some(Mandate::read(&mut from)?.group)
}

#[cfg(test)]
mod tests;
