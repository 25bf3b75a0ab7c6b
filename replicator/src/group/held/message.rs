//! Messages on holdings, byte by byte.
//!
//! Sans-I/O.

use std::sync::Arc;

use net::identity::{Identity, verify_raw};

use super::super::rows::HELD;
use super::{ENTRIES_MAX, HELD_BYTES_MAX};
use crate::id::{GroupId, MemberId};
use crate::version::{Hash, Namespace, Number};
use crate::wire::Reader;

pub(super) const ENTRY_BYTES: usize = 8 + 8 + 8;
/// Prefix of the signed bytes, so that no signature serves for anything else.
const DOMAIN: &[u8] = b"harvest replicator held\0";

/// Short key of a tree: the first eight bytes of the hash of writer and name. Two trees with one
/// tag would be shown with the same version; no data depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag(pub(super) u64);

impl Tag {
    /// Returns the tag of a namespace.
    pub fn of(namespace: &Namespace) -> Self {
        let origin = namespace.origin.0.to_be_bytes();
        let hash = Hash::of(&[&origin, namespace.name.as_str().as_bytes()].concat());
        Self(u64::from_be_bytes(hash.first()))
    }
}

/// The holdings that a member reports, with its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Signed {
    pub(in super::super) from: MemberId,
    /// Sequence: greater in newer messages, and counted together with that of rows.
    pub(in super::super) sequence: u64,
    /// Trees with the versions that the member's readers see, in the order of tags.
    pub(super) entries: Vec<(Tag, Number)>,
    /// Number of the group's other trees that the member has.
    pub(super) left_out: u16,
    pub(super) bytes: Arc<[u8]>,
}

impl Signed {
    /// Signs and writes: kind, member, sequence, number of trees left out; tag, epoch and sequence
    /// of each tree; signature.
    pub(super) fn sign(
        identity: &Identity,
        group: GroupId,
        sequence: u64,
        (entries, left_out): (Vec<(Tag, Number)>, u16),
    ) -> Self {
        let from = MemberId::of(&identity.public());
        let mut bytes = vec![HELD];
        bytes.extend(from.0.to_be_bytes());
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(left_out.to_be_bytes());
        for (tag, number) in &entries {
            for it in [tag.0, number.epoch, number.sequence] {
                bytes.extend(it.to_be_bytes());
            }
        }
        let signature = identity.sign_raw(&signed(group, &bytes));
        bytes.extend(signature);
        Self { from, sequence, entries, left_out, bytes: bytes.into() }
    }

    /// Reads the output of [`Signed::sign`], and nothing else. Does not check the signature.
    pub(in super::super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if HELD_BYTES_MAX < bytes.len() {
            return None;
        }
        let (unsigned, _) = bytes.split_last_chunk::<64>()?;
        let mut from = Reader(unsigned);
        from.u8()?;
        let (member, sequence, left_out) = (MemberId(from.u64()?), from.u64()?, from.u16()?);
        let mut entries = Vec::with_capacity(from.0.len() / ENTRY_BYTES);
        while from.end().is_none() {
            entries.push((Tag(from.u64()?), from.number()?));
        }
        let is_in_order = entries.array_windows().all(|[one, next]| one.0 < next.0);
        // Only a full message may leave out trees.
        let is_full = left_out == 0 || entries.len() == ENTRIES_MAX;
        let found = Self { from: member, sequence, entries, left_out, bytes: bytes.into() };
        (is_in_order && is_full).then_some(found)
    }

    pub(in super::super) fn is_signed(&self, group: GroupId, key: &[u8; 32]) -> bool {
        self.bytes.split_last_chunk().is_some_and(|(unsigned, signature)| {
            verify_raw(key, &signed(group, unsigned), signature)
        })
    }

    pub(super) fn number(&self, tag: Tag) -> Option<Number> {
        let at = self.entries.binary_search_by_key(&tag, |it| it.0).ok()?;
        self.entries.get(at).map(|it| it.1)
    }
}

fn signed(group: GroupId, unsigned: &[u8]) -> Vec<u8> {
    [DOMAIN, &group.0.to_be_bytes(), unsigned].concat()
}
