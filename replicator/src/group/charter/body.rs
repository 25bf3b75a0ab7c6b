//! The body of a charter: all its content except its leader.
//!
//! Sans-I/O.

use super::super::access::{Access, RULES_MAX};
use super::super::invited::{self, INVITATIONS_MAX, Invited};
use super::FORMAT_3;
use super::address::Address;
use super::trees::{self, Listed};
use crate::id::{InvitationId, MemberId};
use crate::topology::{Connectivity, Topology};
use crate::version::Name;
use crate::wire::{Reader, put_list, put_text};

/// Maximum number of members of a group. Beyond that, use groups that overlap (docs/groups.md).
pub const MEMBERS_MAX: usize = 300;
/// Maximum number of former members on record.
pub const GONE_MAX: usize = 256;
/// Maximum number of links of a group.
pub const LINKS_MAX: usize = 3_600;

/// A member in the charter of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    id: MemberId,
    key: [u8; 32],
    /// Address at which the others reach it.
    pub address: Address,
    /// Members of one site have good links between them.
    pub site: Name,
    /// Sequence of the request that set this entry: older requests change nothing.
    pub request: u64,
    /// Sequence of its last row, if it is silent: only a newer row revives it.
    pub silent: Option<u64>,
    /// Invitation by which it came; `None` if a rule admitted it, or the charter had format 3 then.
    pub invitation: Option<InvitationId>,
}

impl Member {
    /// Makes a member that is not silent and came without an invitation.
    pub fn new(key: [u8; 32], address: Address, site: Name, request: u64) -> Self {
        let (id, silent, invitation) = (MemberId::of(&key), None, None);
        Self { id, key, address, site, request, silent, invitation }
    }

    /// Returns its id.
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// Returns its public key.
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
        bytes.push(u8::from(self.invitation.is_some()));
        bytes.extend(self.invitation.into_iter().flat_map(|it| it.0.to_be_bytes()));
    }

    fn read(from: &mut Reader<'_>, format: u8) -> Option<Self> {
        let key = from.array()?;
        let address = Address::new(from.text()?).ok()?;
        let site = from.name()?;
        let mut member = Self::new(key, address, site, from.u64()?);
        member.silent = from.option(Reader::u64)?;
        if format != FORMAT_3 {
            member.invitation = from.option(Reader::u64)?.map(InvitationId);
        }
        Some(member)
    }
}

/// A former member: it was silent for too long, or is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Former {
    /// Its id.
    pub member: MemberId,
    /// Its greatest known sequence: only a newer request brings it back.
    pub sequence: u64,
}

/// The content of a charter, except its leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The group's name.
    pub name: Name,
    /// How many members the group may lose without falling apart.
    pub connectivity: Connectivity,
    /// The access list.
    pub access: Access,
    /// The invitations in the order in which they were made.
    pub invitations: Vec<Invited>,
    /// The members in the order of their ids; links name them by their positions.
    pub members: Vec<Member>,
    /// The last [`GONE_MAX`] members that left and have not come back, in the order of leaving.
    pub gone: Vec<Former>,
    /// The trees and collections in the order of writer and name.
    pub trees: Vec<Listed>,
    /// The links between neighbors.
    pub topology: Topology,
}

impl Body {
    /// Returns the position of a member.
    pub fn position(&self, member: MemberId) -> Option<usize> {
        self.members.binary_search_by_key(&member, Member::id).ok()
    }

    /// Returns a member.
    pub fn member(&self, member: MemberId) -> Option<&Member> {
        self.members.get(self.position(member)?)
    }

    /// Returns the greatest known sequence of a former member.
    pub fn gone(&self, member: MemberId) -> Option<u64> {
        self.gone.iter().find(|it| it.member == member).map(|it| it.sequence)
    }

    /// Inserts a member at its position, or replaces it. It is no former member any more.
    pub(in super::super) fn put(&mut self, member: Member) {
        self.gone.retain(|it| it.member != member.id);
        match self.members.binary_search_by_key(&member.id, Member::id) {
            Ok(position) => self.members.splice(position..=position, [member]).for_each(drop),
            Err(position) => self.members.insert(position, member),
        }
    }

    /// Records former members. Beyond [`GONE_MAX`], those that left first are forgotten.
    pub(in super::super) fn record_former(&mut self, gone: Vec<Former>) {
        self.gone.extend(gone);
        let surplus = self.gone.len().saturating_sub(GONE_MAX);
        self.gone.drain(..surplus);
    }

    fn are_gone_sound(&self) -> bool {
        let mut ids: Vec<MemberId> = self.gone.iter().map(|it| it.member).collect();
        ids.sort_unstable();
        ids.len() <= GONE_MAX
            && ids.array_windows().all(|[one, next]| one != next)
            && ids.iter().all(|it| self.position(*it).is_none())
    }

    pub(super) fn is_sound(&self) -> bool {
        (1..=MEMBERS_MAX).contains(&self.members.len())
            && self.trees.len() <= trees::TREES_MAX
            && self.access.is_bounded()
            && invited::are_sound(&self.invitations)
            && self.members.array_windows().all(|[one, next]| one.id < next.id)
            && self.are_gone_sound()
            && trees::are_in_order(self.trees.iter().map(|it| &it.tree))
            && self.trees.iter().all(|it| it.is_sound(|it| self.position(it).is_some()))
            && self.topology.members() == self.members.len()
            && self.topology.links().count() <= LINKS_MAX
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_text(&mut bytes, self.name.as_str());
        bytes.push(self.connectivity.number());
        self.access.write(&mut bytes);
        put_list(&mut bytes, &self.invitations, |bytes, it| it.write(bytes));
        put_list(&mut bytes, &self.members, |bytes, it| it.write(bytes));
        put_list(&mut bytes, &self.gone, |bytes, it| {
            bytes.extend([it.member.0, it.sequence].map(u64::to_be_bytes).as_flattened());
        });
        put_list(&mut bytes, &self.trees, |bytes, it| it.write(bytes, |it| self.position(it)));
        for links in [self.topology.tree(), self.topology.beside()] {
            put_list(&mut bytes, links, |bytes, it| {
                let position = |it: usize| u16::try_from(it).unwrap_or(u16::MAX).to_be_bytes();
                bytes.extend([position(it.a()), position(it.b())].as_flattened());
            });
        }
        bytes
    }

    /// Reads a body of this format. Invitations of format 3 are dropped: they are no longer valid.
    pub(super) fn from_bytes(bytes: &[u8], format: u8) -> Option<Self> {
        let mut from = Reader(bytes);
        let name = from.name()?;
        let connectivity = Connectivity::of_number(from.u8()?)?;
        let access = Access::read(&mut from)?;
        let invitations = if format == FORMAT_3 {
            from.list(RULES_MAX, Reader::array::<32>)?;
            Vec::new()
        } else {
            from.list(INVITATIONS_MAX, Invited::read)?
        };
        let members = from.list(MEMBERS_MAX, |from| Member::read(from, format))?;
        let gone = from.list(GONE_MAX, |from| {
            Some(Former { member: MemberId(from.u64()?), sequence: from.u64()? })
        })?;
        let id = |position: usize| members.get(position).map(Member::id);
        let trees = from.list(trees::TREES_MAX, |from| Listed::read(from, id))?;
        let mut links = || from.list(LINKS_MAX, |from| Some((from.u16()?, from.u16()?)));
        let (tree, beside) = (links()?, links()?);
        from.end()?;
        let topology = Topology::from_links(members.len(), &tree, &beside)?;
        let body = Self { name, connectivity, access, invitations, members, gone, trees, topology };
        body.is_sound().then_some(body)
    }
}
