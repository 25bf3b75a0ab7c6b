//! Joining: the invitation, the request that is forwarded to the leader, and the refusal that comes
//! back.
//!
//! A member of the group sends the same request when its address, site or trees differ from the
//! charter, and when it is missing from the charter.
//!
//! Sans-I/O.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use net::identity::{Identity, verify_raw};

use super::access::{Caller, hex, unhex};
use super::charter::trees::are_in_order;
use super::charter::{Address, Carried, GroupTree};
use crate::id::{GroupId, MemberId};
use crate::version::{Kind, Name};
use crate::wire::{Reader, put_list, put_text};

/// Maximum number of trees that one member writes.
pub const MEMBER_TREES_MAX: usize = 64;
/// Maximum number of trees of other groups that one member brings in.
pub const CARRIED_MAX: usize = 128;
/// Length of the longest forwarded request, in bytes.
pub const REQUEST_BYTES_MAX: usize = 14 << 10;
/// Maximum number of times that a request is forwarded.
pub const HOPS_MAX: u8 = 16;

const FORMAT: u8 = 3;
/// First field of an invitation's line.
const PREFIX: &str = "harvest-group-1";
/// Prefix of a request's signed bytes, so that the signature is valid for nothing else.
const DOMAIN: &[u8] = b"harvest replicator join\0";
/// Prefix of the bytes that an invitation's key signs.
const DOMAIN_INVITED: &[u8] = b"harvest replicator invited\0";

/// An invitation: the line that `init` and `invite` print. If it has a secret, the first member
/// that uses it may join, until it ends or is withdrawn ([`super::invited`]).
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The name of the group.
    pub name: Name,
    /// The founder's key: only charters of its group are accepted.
    pub founder: [u8; 32],
    /// Address of the member to ask: the leader, or another one.
    pub address: Address,
    /// Key of the member to ask.
    pub key: [u8; 32],
    /// Secret half of the invitation's key; members on the access list need none.
    pub secret: Option<[u8; 32]>,
}

/// Text that is no [`Invitation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no invitation: copy the whole line that begins with `{PREFIX},`")]
pub struct ParseInvitationError;

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invitation({} at {})", self.name, self.address)
    }
}

impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (founder, key) = (hex(&self.founder), hex(&self.key));
        write!(f, "{PREFIX},{},{founder},{},{key}", self.name, self.address)?;
        self.secret.iter().try_for_each(|it| write!(f, ",{}", hex(it)))
    }
}

impl FromStr for Invitation {
    type Err = ParseInvitationError;

    fn from_str(text: &str) -> Result<Self, ParseInvitationError> {
        let mut parts = text.trim().split(',');
        let invitation = (|| {
            (parts.next()? == PREFIX).then_some(())?;
            let (name, founder) = (Name::new(parts.next()?).ok()?, unhex(parts.next()?)?);
            let (address, key) = (Address::new(parts.next()?).ok()?, unhex(parts.next()?)?);
            let secret = match parts.next() {
                Some(secret) => Some(unhex(secret)?),
                None => None,
            };
            parts.next().is_none().then_some(Self { name, founder, address, key, secret })
        })();
        invitation.ok_or(ParseInvitationError)
    }
}

impl Invitation {
    /// Returns the group to which it invites.
    pub fn group(&self) -> GroupId {
        GroupId::of(&self.founder, self.name.as_str())
    }

    /// Returns the public key that must be in the charter for the invitation to be valid; `None`
    /// without a secret.
    pub fn public(&self) -> Option<[u8; 32]> {
        Some(Identity::of(&self.secret?)?.public())
    }

    /// Returns the proof that the member with this key was invited, for its request; `None` without
    /// a secret.
    fn proof(&self, group: GroupId, key: &[u8; 32]) -> Option<Proof> {
        let identity = Identity::of(&self.secret?)?;
        let signature = identity.sign_raw(&invited(group, key));
        Some(Proof { invitation: identity.public(), signature })
    }
}

fn invited(group: GroupId, key: &[u8; 32]) -> Vec<u8> {
    [DOMAIN_INVITED, &group.0.to_be_bytes(), key].concat()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Proof {
    invitation: [u8; 32],
    signature: [u8; 64],
}

/// The charter entry that a member asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) address: Address,
    pub(super) site: Name,
    /// The member's own trees and collections, in the order of names.
    pub(super) trees: Vec<(Name, Kind)>,
    /// Trees of others that it brings in, in the order of writer and name.
    pub(super) carried: Vec<Carried>,
}

impl Wish {
    /// Returns all trees to list for a member with this key, with their distances.
    pub(super) fn listed(&self, key: [u8; 32]) -> impl Iterator<Item = (GroupTree, u8)> {
        let own = move |(name, kind): &(Name, Kind)| {
            (GroupTree { writer: key, name: name.clone(), kind: *kind }, 0)
        };
        let carried = self.carried.iter().map(|it| (it.tree.clone(), it.distance));
        self.trees.iter().map(own).chain(carried)
    }
}

/// A member's signed request for its charter entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) group: GroupId,
    pub(super) key: [u8; 32],
    pub(super) sequence: u64,
    pub(super) wish: Wish,
    proof: Option<Proof>,
    signature: [u8; 64],
}

impl Request {
    pub(super) fn sign(
        identity: &Identity,
        group: GroupId,
        sequence: u64,
        wish: Wish,
        invitation: Option<&Invitation>,
    ) -> Self {
        let key = identity.public();
        let proof = invitation.and_then(|it| it.proof(group, &key));
        let mut request = Self { group, key, sequence, wish, proof, signature: [0; 64] };
        request.signature = identity.sign_raw(&[DOMAIN, &request.unsigned()].concat());
        request
    }

    pub(super) fn member(&self) -> MemberId {
        MemberId::of(&self.key)
    }

    pub(super) fn caller(&self, passed: &Forwarded<'_>) -> Caller {
        Caller {
            member: self.member(),
            claimed: self.wish.address.ip(),
            seen: passed.seen,
            is_direct: passed.hops == 0,
            invitation: self.proof.map(|it| it.invitation),
        }
    }

    /// Writes format, group, key, sequence, address, site, trees, carried trees, whether there is a
    /// proof, the invitation's key and its signature.
    fn unsigned(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.group.0.to_be_bytes());
        bytes.extend(self.key);
        bytes.extend(self.sequence.to_be_bytes());
        put_text(&mut bytes, self.wish.address.as_str());
        put_text(&mut bytes, self.wish.site.as_str());
        put_list(&mut bytes, &self.wish.trees, |bytes, (name, kind)| {
            put_text(bytes, name.as_str());
            bytes.push(kind.number());
        });
        put_list(&mut bytes, &self.wish.carried, |bytes, it| it.write(bytes));
        bytes.push(u8::from(self.proof.is_some()));
        if let Some(Proof { invitation, signature }) = self.proof {
            bytes.extend(invitation);
            bytes.extend(signature);
        }
        bytes
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.unsigned();
        bytes.extend(self.signature);
        bytes
    }

    /// Reads the output of [`Request::to_bytes`], and nothing else, and checks its signatures.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        (from.u8()? == FORMAT).then_some(())?;
        let (group, key, sequence) = (GroupId(from.u64()?), from.array()?, from.u64()?);
        let (address, site) = (Address::new(from.text()?).ok()?, from.name()?);
        let tree = |from: &mut Reader<'_>| Some((from.name()?, Kind::of_number(from.u8()?)?));
        let trees = from.list(MEMBER_TREES_MAX, tree)?;
        let carried = from.list(CARRIED_MAX, Carried::read)?;
        let proof = from
            .option(|from| Some(Proof { invitation: from.array()?, signature: from.array()? }))?;
        let signature = from.array()?;
        from.end()?;
        let in_order = trees.array_windows().all(|[one, next]| one.0 < next.0)
            && are_in_order(carried.iter().map(|it| &it.tree))
            && carried.iter().all(|it| it.tree.writer != key);
        let wish = Wish { address, site, trees, carried };
        let request = Self { group, key, sequence, wish, proof, signature };
        let is_signed =
            || verify_raw(&key, &[DOMAIN, &request.unsigned()].concat(), &request.signature);
        let is_invited =
            |it: &Proof| verify_raw(&it.invitation, &invited(group, &key), &it.signature);
        (in_order && is_signed() && request.proof.iter().all(is_invited)).then_some(request)
    }
}

/// A request on its way to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forwarded<'a> {
    /// Number of members that have forwarded it.
    pub(super) hops: u8,
    /// Address from which the requester called the first member.
    pub(super) seen: Option<IpAddr>,
    pub(super) request: &'a [u8],
}

impl<'a> Forwarded<'a> {
    /// Writes the number of hops, the kind of address (0 for none, 4, 6), the address, the request.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = vec![self.hops];
        match self.seen {
            None => bytes.push(0),
            Some(IpAddr::V4(it)) => {
                bytes.push(4);
                bytes.extend(it.octets());
            }
            Some(IpAddr::V6(it)) => {
                bytes.push(6);
                bytes.extend(it.octets());
            }
        }
        bytes.extend(self.request);
        bytes
    }

    pub(super) fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        if REQUEST_BYTES_MAX < bytes.len() {
            return None;
        }
        let mut from = Reader(bytes);
        let hops = from.u8()?;
        let seen = match from.u8()? {
            0 => None,
            4 => Some(IpAddr::from(from.array::<4>()?)),
            6 => Some(IpAddr::from(from.array::<16>()?)),
            _ => return None,
        };
        Some(Self { hops, seen, request: from.0 })
    }
}

/// Reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The leader's access list does not admit the member. The leader's administrator may add its
    /// id to `allow`, or invite it.
    #[error("the leader's access list does not let this member in: add its id to `allow` there")]
    Access,
    /// The group has as many members or trees as it may have.
    #[error("the group is full: found another that shares a member with it")]
    Full,
    /// The leader cannot be reached from the member that was asked. The request is repeated.
    #[error("the leader cannot be reached now")]
    Leader,
    /// The member that was asked is not in this group. Ask another member, or copy the invitation's
    /// line again.
    #[error(
        "the member that was asked is not in it: check that the invitation is the whole line as it was printed"
    )]
    Group,
    /// The leader's access list denies the member now. The member's administrator has to ask the
    /// leader's for admission.
    #[error(
        "its access list denies this member now, and the group is shown here as it was before that"
    )]
    Denied,
    /// Another member has used its invitation. The member's administrator has to ask for a new one.
    #[error(
        "its invitation was used by another member, and each is for one: ask for a new one at the group's leader (`invite`)"
    )]
    Used,
    /// Its invitation has ended. The member's administrator has to ask for a new one.
    #[error(
        "its invitation has ended by the leader's clock: ask for a new one at the group's leader (`invite`)"
    )]
    Ended,
    /// Its invitation was withdrawn, or is unknown to the leader. Ask for a new one.
    #[error(
        "its invitation was withdrawn, or the leader does not know it: ask for a new one at the group's leader (`invite`)"
    )]
    Withdrawn,
}

impl Reason {
    /// All reasons, at their numbers on the wire.
    const ALL: [Self; 8] = [
        Self::Access,
        Self::Full,
        Self::Leader,
        Self::Group,
        Self::Denied,
        Self::Used,
        Self::Ended,
        Self::Withdrawn,
    ];
}

/// Returns the refusal for a member that asks to join a group to which this member does not belong.
pub(crate) fn not_here(member: MemberId) -> super::Message {
    super::Message::Refused(Refused { member, reason: Reason::Group }.to_bytes().into())
}

/// The refusal of a member's request, on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) member: MemberId,
    pub(super) reason: Reason,
}

impl Refused {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.member.0.to_be_bytes().to_vec();
        bytes.push(self.reason as u8);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let member = MemberId(from.u64()?);
        let reason = *Reason::ALL.get(usize::from(from.u8()?))?;
        from.end()?;
        Some(Self { member, reason })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn invitation(secret: Option<[u8; 32]>) -> Invitation {
        Invitation {
            name: Name::new("debian").unwrap(),
            founder: [1; 32],
            address: Address::new("[2001:db8::1]:4000").unwrap(),
            key: [2; 32],
            secret,
        }
    }

    #[test]
    fn invitations_are_read_as_they_are_printed() {
        for it in [invitation(None), invitation(Some([3; 32]))] {
            assert_eq!(format!(" {it}\n").parse(), Ok(it.clone()));
            for wrong in [format!("{it},"), format!("x{it}"), it.to_string().replace('d', "D")] {
                assert_eq!(wrong.parse::<Invitation>(), Err(ParseInvitationError), "{wrong}");
            }
            assert!(!format!("{it:?}").contains("0303"), "secrets are not shown");
        }
    }

    #[test]
    fn a_request_with_an_invitation_cannot_be_signed_for_another_member() {
        let (one, two) = (Identity::of(&[1; 32]).unwrap(), Identity::of(&[2; 32]).unwrap());
        let invitation = invitation(Some([9; 32]));
        let group = invitation.group();
        let wish = Wish {
            address: invitation.address.clone(),
            site: Name::new("here").unwrap(),
            trees: Vec::new(),
            carried: Vec::new(),
        };
        let request = Request::sign(&one, group, 1, wish, Some(&invitation));
        assert_eq!(Request::from_bytes(&request.to_bytes()), Some(request.clone()));
        // A member that has seen the request does not have the secret.
        let mut stolen = Request { key: two.public(), ..request };
        stolen.signature = two.sign_raw(&[DOMAIN, &stolen.unsigned()].concat());
        assert_eq!(Request::from_bytes(&stolen.to_bytes()), None);
    }

    #[test]
    fn requests_with_own_or_repeated_carried_trees_are_rejected() {
        let identity = Identity::of(&[4; 32]).unwrap();
        let tree = |writer: [u8; 32], name: &str| Carried {
            tree: GroupTree { writer, name: Name::new(name).unwrap(), kind: Kind::Tree },
            distance: 2,
        };
        let is_read = |carried: &[Carried]| {
            let wish = Wish {
                address: Address::new("host:1").unwrap(),
                site: Name::new("here").unwrap(),
                trees: Vec::new(),
                carried: carried.to_vec(),
            };
            let request = Request::sign(&identity, GroupId(1), 1, wish, None);
            Request::from_bytes(&request.to_bytes()).is_some()
        };
        let [a, b] = ["a", "b"].map(|it| tree([7; 32], it));
        assert!(is_read(&[a.clone(), b.clone()]));
        assert!(!is_read(&[b.clone(), a.clone()]));
        let other = GroupTree { kind: Kind::Collection, ..a.tree.clone() };
        assert!(!is_read(&[a.clone(), Carried { tree: other, distance: 1 }]));
        for distance in [0, 17] {
            assert!(!is_read(&[Carried { distance, ..a.clone() }]));
        }
        assert!(!is_read(&[tree(identity.public(), "a")]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn requests_are_read_as_they_were_signed(
            sequence: u64, trees in prop::collection::btree_map("[a-z][a-z0-9.]{0,20}", any::<bool>(), 0..9),
            carried in prop::collection::btree_map(
                (any::<[u8; 32]>(), "[a-z][a-z0-9.]{0,20}"), any::<bool>(), 0..9
            ),
            is_invited: bool, at: prop::sample::Index, flip in 1..=255_u8,
            hops in 0..20_u8, seen in prop::option::of(any::<IpAddr>()),
        ) {
            let kind = |is_tree: bool| if is_tree { Kind::Tree } else { Kind::Collection };
            let tree = |(name, is_tree): (String, bool)| (Name::new(&name).unwrap(), kind(is_tree));
            let carried_tree = |((writer, name), is_tree): (([u8; 32], String), bool)| {
                let name = Name::new(&name).unwrap();
                Carried { tree: GroupTree { writer, name, kind: kind(is_tree) }, distance: hops % 16 + 1 }
            };
            let invitation = invitation(is_invited.then_some([9; 32]));
            let wish = Wish {
                address: invitation.address.clone(),
                site: invitation.name.clone(),
                trees: trees.into_iter().map(tree).collect(),
                carried: carried.into_iter().map(carried_tree).collect(),
            };
            let identity = Identity::of(&[4; 32]).unwrap();
            let request =
                Request::sign(&identity, invitation.group(), sequence, wish, Some(&invitation));
            let mut bytes = request.to_bytes();
            let passed = Forwarded { hops, seen, request: &bytes };
            let wire = passed.to_bytes();
            prop_assert_eq!(Forwarded::from_bytes(&wire), Some(passed));
            prop_assert_eq!(Request::from_bytes(&bytes), Some(request));
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert_eq!(Request::from_bytes(&bytes), None);
        }

        #[test]
        fn refusals_are_written_as_they_were_read(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            if let Some(refused) = Refused::from_bytes(&bytes) {
                prop_assert_eq!(refused.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn the_longest_request_is_within_its_bound() {
        let name = |it: usize| Name::new(&format!("{it:0>40}")).unwrap();
        let carried = |it: usize| {
            let tree = GroupTree { writer: [1; 32], name: name(it), kind: Kind::Tree };
            Carried { tree, distance: 16 }
        };
        let invitation = invitation(Some([9; 32]));
        let wish = Wish {
            address: Address::new(&format!("{}:65535", "a".repeat(249))).unwrap(),
            site: name(0),
            trees: (0..MEMBER_TREES_MAX).map(|it| (name(it), Kind::Tree)).collect(),
            carried: (0..CARRIED_MAX).map(carried).collect(),
        };
        let identity = Identity::of(&[4; 32]).unwrap();
        let request =
            Request::sign(&identity, invitation.group(), 1, wish, Some(&invitation)).to_bytes();
        let seen = Some("::1".parse().unwrap());
        let all = Forwarded { hops: 1, seen, request: &request }.to_bytes();
        assert!(all.len() <= REQUEST_BYTES_MAX, "{}", all.len());
    }
}
