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
//!   was heard of it: so nothing older revives it.
//!
//! Sans-I/O.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use net::identity::Identity;

use super::access::Access;
use super::mandate::{self, DEPUTIES_MAX, MANDATES_MAX, Mandate, Terms};
use super::wire::{Reader, put_list, put_text};
use crate::id::{GroupId, MemberId};
use crate::topology::{Connectivity, Topology};
use crate::version::{Hash, Kind, Name};

/// Most members of a group: above it, groups that overlap (docs/groups.md).
pub const MEMBERS_MAX: usize = 300;
/// Most trees and collections of a group.
pub const TREES_MAX: usize = 1_024;
/// Most links of a group.
pub const LINKS_MAX: usize = 4_800;
/// Longest address, in bytes.
pub const ADDRESS_BYTES_MAX: usize = 255;
/// Longest charter, in bytes.
pub const CHARTER_BYTES_MAX: usize = 256 << 10;

/// Of the wire form.
const FORMAT: u8 = 1;

/// Where a member is reached: a host's name or address, and a port, as in `example.org:4000` and `[2001:db8::1]:4000`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(Box<str>);

/// Text that is no [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address: it has to be host:port, of at most {ADDRESS_BYTES_MAX} bytes")]
pub struct ParseAddressError(String);

impl Address {
    /// Takes the text if it is an address.
    ///
    /// # Errors
    ///
    /// It is none: ask for another.
    pub fn new(text: &str) -> Result<Self, ParseAddressError> {
        let error = || ParseAddressError(text.chars().take(ADDRESS_BYTES_MAX).collect());
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let is_host = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.' | b'_');
        let is_bracketed = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let is_known = match is_bracketed {
            Some(ip) => ip.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(is_host),
        };
        let is_port = !port.starts_with(['0', '+']) && port.parse::<u16>().is_ok();
        let is_address = is_known && is_port && text.len() <= ADDRESS_BYTES_MAX;
        if is_address { Ok(Self(text.into())) } else { Err(error()) }
    }

    /// The address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host, if it is no name.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        let (host, _) = self.0.rsplit_once(':')?;
        host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A member, as its group knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    id: MemberId,
    key: [u8; 32],
    /// Where it is reached.
    pub address: Address,
    /// Members of one site have good links between them.
    pub site: Name,
    /// The sequence of the request by which it is here as it is: older ones change nothing.
    pub request: u64,
    /// The sequence of the last that was heard of it, if it is silent: only what is newer revives it.
    pub silent: Option<u64>,
}

impl Member {
    /// A member that is not silent.
    #[must_use]
    pub fn new(key: [u8; 32], address: Address, site: Name, request: u64) -> Self {
        Self { id: MemberId::of(&key), key, address, site, request, silent: None }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// Its public key.
    #[must_use]
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.key);
        put_text(bytes, self.address.as_str());
        put_text(bytes, self.site.as_str());
        bytes.extend(self.request.to_be_bytes());
        bytes.push(u8::from(self.silent.is_some()));
        bytes.extend(self.silent.into_iter().flat_map(u64::to_be_bytes));
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let key = from.array()?;
        let address = Address::new(from.text()?).ok()?;
        let site = from.name()?;
        let mut member = Self::new(key, address, site, from.u64()?);
        member.silent = match from.u8()? {
            0 => None,
            1 => Some(from.u64()?),
            _ => return None,
        };
        Some(member)
    }
}

/// A tree or a collection that the group carries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tree {
    /// The key of who alone writes to it.
    pub writer: [u8; 32],
    /// Its name among those of its writer.
    pub name: Name,
    /// What it is.
    pub kind: Kind,
}

pub(super) fn put_kind(bytes: &mut Vec<u8>, kind: Kind) {
    bytes.push(match kind {
        Kind::Tree => 0,
        Kind::Collection => 1,
    });
}

pub(super) fn read_kind(from: &mut Reader<'_>) -> Option<Kind> {
    match from.u8()? {
        0 => Some(Kind::Tree),
        1 => Some(Kind::Collection),
        _ => None,
    }
}

/// What a charter says of its group, apart from who leads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The group's name.
    pub name: Name,
    /// How many members the group may lose without falling apart.
    pub connectivity: Connectivity,
    /// Who may join.
    pub access: Access,
    /// In the order of their ids; links name them by their place.
    pub members: Vec<Member>,
    /// In the order of writer and name.
    pub trees: Vec<Tree>,
    /// The links between neighbors.
    pub topology: Topology,
}

impl Body {
    /// The place of a member.
    #[must_use]
    pub fn place(&self, member: MemberId) -> Option<usize> {
        self.members.binary_search_by_key(&member, Member::id).ok()
    }

    /// A member.
    #[must_use]
    pub fn member(&self, member: MemberId) -> Option<&Member> {
        self.members.get(self.place(member)?)
    }

    fn is_sound(&self) -> bool {
        let same = |one: &Tree, next: &Tree| (one.writer, &one.name) < (next.writer, &next.name);
        (1..=MEMBERS_MAX).contains(&self.members.len())
            && self.trees.len() <= TREES_MAX
            && self.access.is_bounded()
            && self.members.array_windows().all(|[one, next]| one.id < next.id)
            && self.trees.array_windows().all(|[one, next]| same(one, next))
            && self.topology.members() == self.members.len()
            && self.topology.links().count() <= LINKS_MAX
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_text(&mut bytes, self.name.as_str());
        bytes.push(match self.connectivity {
            Connectivity::Tree => 1,
            Connectivity::Two => 2,
            Connectivity::Three => 3,
        });
        self.access.write(&mut bytes);
        put_list(&mut bytes, &self.members, |bytes, it| it.write(bytes));
        put_list(&mut bytes, &self.trees, |bytes, it| {
            bytes.extend(it.writer);
            put_text(bytes, it.name.as_str());
            put_kind(bytes, it.kind);
        });
        for links in [self.topology.tree(), self.topology.beside()] {
            put_list(&mut bytes, links, |bytes, it| {
                let place = |it: usize| u16::try_from(it).unwrap_or(u16::MAX).to_be_bytes();
                bytes.extend([place(it.a()), place(it.b())].as_flattened());
            });
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let name = from.name()?;
        let connectivity = match from.u8()? {
            1 => Connectivity::Tree,
            2 => Connectivity::Two,
            3 => Connectivity::Three,
            _ => return None,
        };
        let access = Access::read(&mut from)?;
        let members = from.list(MEMBERS_MAX, Member::read)?;
        let trees = from.list(TREES_MAX, |from| {
            let (writer, name) = (from.array()?, from.name()?);
            Some(Tree { writer, name, kind: read_kind(from)? })
        })?;
        let mut links = || from.list(LINKS_MAX, |from| Some((from.u16()?, from.u16()?)));
        let (tree, beside) = (links()?, links()?);
        from.end()?;
        let topology = Topology::from_links(members.len(), &tree, &beside).ok()?;
        let body = Self { name, connectivity, access, members, trees, topology };
        body.is_sound().then_some(body)
    }
}

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

    /// Writes it: format, count of mandates, mandates, then name, connectivity, access lists, members, trees, links
    /// of the tree and links beside it (docs/groups.md).
    #[must_use]
    pub fn to_bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// Reads what [`Charter::to_bytes`] writes, and nothing else, and checks all signatures but those that `known`,
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
        if format != FORMAT || CHARTER_BYTES_MAX < bytes.len() || MANDATES_MAX < count {
            return None;
        }
        let chain = (0..count).map(|_| Mandate::read(&mut from)).collect::<Option<Vec<_>>>()?;
        let (founder, mandate) = (chain.first()?, chain.last()?.clone());
        if Hash::of(from.0) != mandate.body {
            return None;
        }
        let body = Body::from_bytes(from.0)?;
        let is_named = GroupId::of(&founder.leader, body.name.as_str()) == founder.group;
        let charter = Self { chain, mandate, body, bytes: bytes.into() };
        (is_named && charter.is_sound()).then_some(charter)
    }

    /// Whether who leads it is a member, deputies too, and each in the chain may be.
    fn is_sound(&self) -> bool {
        let is_member = |it: &[u8; 32]| {
            self.body.member(MemberId::of(it)).is_some_and(|member| member.key == *it)
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
