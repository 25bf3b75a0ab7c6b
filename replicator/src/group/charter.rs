//! What all members of a group know of it: who is in it, who leads it, whose trees it carries and along which links
//! they go; signed by the leader.
//!
//! Source: TR §8 (the group leader's list of members, and the topology that it floods).
//!
//! # Differences from the paper
//!
//! * It is signed, from the founder's key on (`mandate`), so that it may come from anybody.
//! * The access list and the deputies are in it: who takes over has all that the leader had.
//! * A member that is silent stays in it, without links, for a month, with the sequence of the last that
//!   was heard of it: so nothing older revives it; and so has one that has gone, as one of the last 256.
//!
//! Sans-I/O.

mod address;
mod body;
pub(super) mod trees;

use std::sync::Arc;

use net::identity::Identity;

use super::mandate::{self, DEPUTIES_MAX, MANDATES_MAX, Mandate, Terms};
use super::wire::Reader;
use crate::id::{GroupId, MemberId};
use crate::message::GROUP_BYTES_MAX;
use crate::version::Hash;

pub use address::{ADDRESS_BYTES_MAX, Address, ParseAddressError};
pub use body::{Body, GONE_MAX, Gone, LINKS_MAX, MEMBERS_MAX, Member};
pub use trees::{Carried, LISTERS_MAX, Listed, Lister, TREES_MAX, Tree};

/// Longest charter, in bytes: with what a link puts in front of it, it is a message.
pub const CHARTER_BYTES_MAX: usize = GROUP_BYTES_MAX - 64;

/// Of the wire form.
const FORMAT: u8 = 4;
/// Of that of before, without invitations that are for one member and end.
const FORMAT_3: u8 = 3;

/// A group's charter. Made by signing and by [`Charter::from_bytes`] alone, so that what there is has been signed by
/// somebody who may lead the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charter {
    chain: Vec<Mandate>,
    /// The last of the chain.
    mandate: Mandate,
    body: Body,
    bytes: Arc<[u8]>,
}

/// Why bytes are no charter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// They have another form or length, or say what cannot be.
    #[error("these {bytes} bytes are no charter of format {FORMAT}")]
    Form {
        /// How many there are.
        bytes: usize,
    },
    /// Of another group than was asked for.
    #[error("a charter of another group, {0}")]
    Foreign(GroupId),
    /// Somebody made it up, or changed it on its way, or signed it without being a deputy.
    #[error("a charter is not signed by {0} or it may not lead the group")]
    Forged(MemberId),
}

/// Why a charter is not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// Only who has led the group and deputies may.
    #[error("{0} is neither a leader nor a deputy of the group")]
    Rank(MemberId),
    /// What it says cannot be, or is too much.
    #[error("a charter of {members} members and {trees} trees cannot be")]
    Form {
        /// How many members it has.
        members: usize,
        /// How many trees it has.
        trees: usize,
    },
}

impl Charter {
    /// Signs the first charter of a group.
    ///
    /// # Errors
    ///
    /// The body cannot be, or lacks its founder.
    pub fn found(identity: &Identity, body: Body) -> Result<Self, SignError> {
        Self::sign(identity, &[], (1, 0), &[], body)
    }

    /// Signs the charter that comes after this one, in this epoch or a greater one.
    ///
    /// # Errors
    ///
    /// The identity may not lead the group, or the body cannot be.
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
        (epoch, revision): (u64, u64),
        deputies: &[[u8; 32]],
        body: Body,
    ) -> Result<Self, SignError> {
        let wrong = SignError::Form { members: body.members.len(), trees: body.trees.len() };
        let founder = before.first().map_or_else(|| identity.public(), |it| it.leader);
        let after = body.to_bytes();
        let terms = Terms {
            group: GroupId::of(&founder, body.name.as_str()),
            epoch,
            revision,
            deputies: deputies.to_vec(),
            body: Hash::of(&after),
        };
        let mandate = Mandate::sign(identity, terms);
        let chain = [before, std::slice::from_ref(&mandate)].concat();
        let mut bytes = vec![FORMAT];
        // At most MANDATES_MAX.
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

    /// Writes it: format, count of mandates, mandates, then name, connectivity, access lists, invitations, members, those that
    /// have gone, trees, links of the tree and links beside it (docs/groups.md).
    #[must_use]
    pub fn to_bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// Reads what [`Charter::to_bytes`] writes, or wrote in format 3, and nothing else, and checks all signatures but those that `known`,
    /// an earlier charter of the group, has as well. Takes 0.1 ms for each that is checked, and as
    /// long for 100 members.
    ///
    /// # Errors
    ///
    /// The bytes are no charter of that group: whoever sent them is broken, or lies.
    pub fn from_bytes(
        bytes: &[u8],
        group: GroupId,
        known: Option<&Self>,
    ) -> Result<Self, ParseError> {
        let charter = Self::parse(bytes).ok_or(ParseError::Form { bytes: bytes.len() })?;
        if charter.group() != group {
            return Err(ParseError::Foreign(charter.group()));
        }
        let is_known = |it: &Mandate| known.is_some_and(|known| known.chain.contains(it));
        match charter.chain.iter().find(|it| !is_known(it) && !it.is_signed()) {
            Some(forged) => Err(ParseError::Forged(forged.leader())),
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

    /// Whether who leads it is a member, deputies too, and each in the chain may be.
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

    /// The mandates from the founder's on, at least one.
    pub(super) fn chain(&self) -> &[Mandate] {
        &self.chain
    }

    /// That of who signed it: the last of the chain.
    pub(super) fn mandate(&self) -> &Mandate {
        &self.mandate
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> GroupId {
        self.mandate().group
    }

    /// The public key of who founded the group.
    #[must_use]
    pub fn founder(&self) -> [u8; 32] {
        self.chain.first().map_or([0; 32], |it| it.leader)
    }

    /// Rises when another takes the lead.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.mandate().epoch
    }

    /// Rises with each charter of an epoch.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.mandate().revision
    }

    /// Who leads the group.
    #[must_use]
    pub fn leader(&self) -> MemberId {
        self.mandate().leader()
    }

    /// The keys of those who take over, one after another.
    #[must_use]
    pub fn deputies(&self) -> &[[u8; 32]] {
        &self.mandate().deputies
    }

    /// All else that it says.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The hash of its bytes.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::of(&self.bytes)
    }

    /// The members to which a member has links, those of the tree first. None of a member that is not in it.
    pub fn neighbors(&self, member: MemberId) -> impl Iterator<Item = &Member> {
        let place = self.body.place(member).unwrap_or(usize::MAX);
        self.body.topology.neighbors(place).filter_map(|it| self.body.members.get(it))
    }
}

/// Of which group these bytes claim to have a charter.
pub(super) fn group_of(bytes: &[u8]) -> Option<GroupId> {
    let mut from = Reader(bytes);
    from.u16()?;
    Some(Mandate::read(&mut from)?.group)
}

#[cfg(test)]
mod tests;
