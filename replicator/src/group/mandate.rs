//! Mandates: signed statements by which each leader, from the founder on, declares its lead and its
//! deputies.
//!
//! A charter begins with the mandates of its leaders, each of whom was a deputy of the leader
//! before. The first mandate is the founder's, whose key determines the group's id; the last one is
//! that of the charter's signer. So a member that knows the id can tell a genuine charter from a
//! forged one, whatever charters it has missed.
//!
//! No member is twice in a chain: when a former leader leads again, its new mandate takes the place
//! of its old one, and the mandates after the old one are left out. So a chain has at most as many
//! mandates as members ever led.
//!
//! Sans-I/O.

use net::identity::{Identity, verify_raw};

use crate::id::{GroupId, MemberId};
use crate::version::Hash;
use crate::wire::Reader;

/// Maximum number of deputies of a leader.
pub const DEPUTIES_MAX: usize = 7;
/// Maximum number of mandates in a chain.
pub const MANDATES_MAX: usize = 64;

const SIGNATURE_BYTES: usize = 64;
/// Prefix of the signed bytes, so that a signature is valid for nothing else.
const DOMAIN: &[u8] = b"harvest replicator charter\0";

/// The statement that a member leads a group and which members may lead after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mandate {
    pub(super) group: GroupId,
    pub(super) epoch: u64,
    pub(super) revision: u64,
    pub(super) leader: [u8; 32],
    pub(super) deputies: Vec<[u8; 32]>,
    /// Hash of the charter's other bytes.
    pub(super) body: Hash,
    signature: [u8; SIGNATURE_BYTES],
}

impl Mandate {
    pub(super) fn sign(
        identity: &Identity,
        group: GroupId,
        (epoch, revision): (u64, u64),
        deputies: Vec<[u8; 32]>,
        body: Hash,
    ) -> Self {
        let (leader, signature) = (identity.public(), [0; SIGNATURE_BYTES]);
        let mut mandate = Self { group, epoch, revision, leader, deputies, body, signature };
        mandate.signature = identity.sign_raw(&mandate.signed());
        mandate
    }

    /// Returns the leader.
    pub fn leader(&self) -> MemberId {
        MemberId::of(&self.leader)
    }

    /// Returns a member's rank: 0 for the leader, then 1, 2 and so on for its deputies in their
    /// order; `None` for others.
    pub(super) fn rank(&self, key: &[u8; 32]) -> Option<usize> {
        if *key == self.leader {
            return Some(0);
        }
        self.deputies.iter().position(|it| it == key).map(|it| it + 1)
    }

    /// Returns the number of this mandate, which is greater in newer mandates of one leader.
    pub(super) fn number(&self) -> (u64, u64) {
        (self.epoch, self.revision)
    }

    pub(super) fn is_signed(&self) -> bool {
        verify_raw(&self.leader, &self.signed(), &self.signature)
    }

    fn signed(&self) -> Vec<u8> {
        let mut bytes = DOMAIN.to_vec();
        self.write_unsigned(&mut bytes);
        bytes
    }

    /// Writes group, epoch, revision, leader, count of deputies, deputies, hash of the body.
    fn write_unsigned(&self, bytes: &mut Vec<u8>) {
        for number in [self.group.0, self.epoch, self.revision] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(self.leader);
        // A sound mandate has at most DEPUTIES_MAX deputies.
        bytes.push(u8::try_from(self.deputies.len()).unwrap_or(u8::MAX));
        bytes.extend(self.deputies.as_flattened());
        bytes.extend(self.body.0);
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        self.write_unsigned(bytes);
        bytes.extend(self.signature);
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let group = GroupId(from.u64()?);
        let (epoch, revision) = (from.u64()?, from.u64()?);
        let leader = from.array()?;
        let count = usize::from(from.u8()?);
        if DEPUTIES_MAX < count {
            return None;
        }
        let deputies = (0..count).map(|_| from.array()).collect::<Option<_>>()?;
        let body = Hash(from.array()?);
        let signature = from.array()?;
        Some(Self { group, epoch, revision, leader, deputies, body, signature })
    }
}

/// Returns the mandates that precede a new mandate of the member with this key; `None` if it may
/// not lead.
pub(super) fn before<'a>(chain: &'a [Mandate], key: &[u8; 32]) -> Option<&'a [Mandate]> {
    if let Some(at) = chain.iter().position(|it| it.leader == *key) {
        return chain.get(..at);
    }
    let is_deputy = chain.last().is_some_and(|it| it.rank(key).is_some());
    (is_deputy && chain.len() < MANDATES_MAX).then_some(chain)
}

/// Returns whether each leader is a deputy of the one before it, has a greater epoch, and is in the
/// chain only once, and no mandate names a member twice.
pub(super) fn is_chain(chain: &[Mandate]) -> bool {
    let follows = |[one, next]: &[Mandate; 2]| {
        one.epoch < next.epoch && one.deputies.contains(&next.leader) && one.group == next.group
    };
    let is_first = |(at, it): (usize, &Mandate)| {
        !chain.iter().take(at).any(|before| before.leader == it.leader)
    };
    let are_distinct = |it: &Mandate| {
        let mut all: Vec<&[u8; 32]> = it.deputies.iter().chain([&it.leader]).collect();
        all.sort_unstable();
        all.array_windows().all(|[one, next]| one != next)
    };
    chain.array_windows().all(follows)
        && chain.iter().enumerate().all(is_first)
        && chain.iter().all(are_distinct)
}
