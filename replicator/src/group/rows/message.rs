//! Messages on rows, byte by byte.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use net::identity::verify_raw;

use super::super::charter::MEMBERS_MAX;
use super::super::held;
use super::{BEATS_MAX, Mark, ROW_BYTES_MAX};
use crate::estimate::Row;
use crate::id::{GroupId, MemberId};
use crate::version::Hash;
use crate::wire::Reader;

pub(super) const ROW: u8 = 1;
pub(super) const BEAT: u8 = 2;
const DIGEST: u8 = 3;
pub(in super::super) const HELD: u8 = 4;
/// Length of a beat: kind, member, sequence, number, value.
const BEAT_BYTES: usize = 1 + 8 + 8 + 2 + 32;
/// Prefix of the signed bytes, so that no signature serves for anything else.
const DOMAIN: &[u8] = b"harvest replicator row\0";

/// Hashes a value this many times.
pub(in super::super) fn ahead(value: [u8; 32], times: u16) -> [u8; 32] {
    (0..times).fold(value, |value, _| Hash::of(&value).0)
}

#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum RowMessage<'a> {
    /// A row, still to be checked.
    Row(Signed),
    /// A beat, still to be checked.
    Beat(Beat),
    /// The sender's charter and its marks, for comparison.
    Digest(Digest<'a>),
    /// Holdings of a member, still to be checked.
    Held(held::Signed),
}

/// Reads a message; `None` if it is malformed.
pub(in super::super) fn read(bytes: &[u8]) -> Option<RowMessage<'_>> {
    match *bytes.first()? {
        ROW => Signed::from_bytes(bytes).map(RowMessage::Row),
        BEAT => Beat::from_bytes(bytes).map(RowMessage::Beat),
        DIGEST => Digest::from_bytes(bytes).map(RowMessage::Digest),
        HELD => held::Signed::from_bytes(bytes).map(RowMessage::Held),
        _ => None,
    }
}

/// A row, its chain's end, and the signature over both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Signed {
    pub(in super::super) row: Row,
    pub(super) anchor: [u8; 32],
    pub(super) bytes: Arc<[u8]>,
}

impl Signed {
    pub(super) fn signed(group: GroupId, unsigned: &[u8]) -> Vec<u8> {
        [DOMAIN, &group.0.to_be_bytes(), unsigned].concat()
    }

    /// Reads kind, chain's end, row, signature.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if ROW_BYTES_MAX < bytes.len() {
            return None;
        }
        let (unsigned, _) = bytes.split_last_chunk::<64>()?;
        let mut from = Reader(unsigned);
        from.u8()?;
        let anchor = from.array()?;
        let row = Row::from_bytes(from.0)?;
        Some(Self { row, anchor, bytes: bytes.into() })
    }

    pub(in super::super) fn is_signed(&self, group: GroupId, key: &[u8; 32]) -> bool {
        self.bytes.split_last_chunk().is_some_and(|(unsigned, signature)| {
            verify_raw(key, &Self::signed(group, unsigned), signature)
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Beat {
    pub(in super::super) from: MemberId,
    /// Sequence of its row.
    pub(in super::super) sequence: u64,
    /// Its position in the row's chain, from 1 on.
    pub(in super::super) number: u16,
    pub(super) value: [u8; 32],
}

impl Beat {
    pub(super) fn to_bytes(self) -> Arc<[u8]> {
        let mut bytes = Vec::with_capacity(BEAT_BYTES);
        bytes.push(BEAT);
        bytes.extend(self.from.0.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.value);
        bytes.into()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        from.u8()?;
        let member = MemberId(from.u64()?);
        let (sequence, number, value) = (from.u64()?, from.u16()?, from.array()?);
        from.end()?;
        let is_one = (1..=BEATS_MAX).contains(&number);
        is_one.then_some(Self { from: member, sequence, number, value })
    }
}

/// The sender's charter, and its marks of all members.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Digest<'a> {
    /// Whether it answers another digest; an answer is not answered.
    pub(in super::super) is_answer: bool,
    pub(in super::super) epoch: u64,
    pub(in super::super) revision: u64,
    pub(in super::super) charter: Hash,
    /// Entries of 26 bytes, one for each member whose row the sender has.
    marks: &'a [u8],
}

const MARK_BYTES: usize = 8 + 8 + 2 + 8;

impl<'a> Digest<'a> {
    /// Writes kind, whether it is an answer, epoch, revision, charter's hash, and for each member
    /// id, sequence of its row, number of its last beat and sequence of its holdings.
    pub(in super::super) fn write(
        is_answer: bool,
        (epoch, revision, charter): (u64, u64, Hash),
        marks: impl Iterator<Item = (MemberId, Mark, u64)>,
    ) -> Arc<[u8]> {
        let mut bytes = vec![DIGEST, u8::from(is_answer)];
        bytes.extend(epoch.to_be_bytes());
        bytes.extend(revision.to_be_bytes());
        bytes.extend(charter.0);
        for (member, (sequence, beat), held) in marks {
            bytes.extend(member.0.to_be_bytes());
            bytes.extend(sequence.to_be_bytes());
            bytes.extend(beat.to_be_bytes());
            bytes.extend(held.to_be_bytes());
        }
        bytes.into()
    }

    fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        from.u8()?;
        let is_answer = from.flag()?;
        let (epoch, revision) = (from.u64()?, from.u64()?);
        let charter = Hash(from.array()?);
        let marks = from.0;
        let is_whole =
            marks.len().is_multiple_of(MARK_BYTES) && marks.len() <= MEMBERS_MAX * MARK_BYTES;
        is_whole.then_some(Self { is_answer, epoch, revision, charter, marks })
    }

    pub(in super::super) fn marks(&self) -> BTreeMap<MemberId, Mark> {
        self.all().map(|(member, mark, _)| (member, mark)).collect()
    }

    pub(in super::super) fn held(&self) -> BTreeMap<MemberId, u64> {
        self.all().map(|(member, _, held)| (member, held)).collect()
    }

    fn all(&self) -> impl Iterator<Item = (MemberId, Mark, u64)> {
        let read = |it: &[u8]| {
            let mut from = Reader(it);
            Some((MemberId(from.u64()?), (from.u64()?, from.u16()?), from.u64()?))
        };
        self.marks.chunks_exact(MARK_BYTES).filter_map(read)
    }
}
