//! What a member keeps on disk of a group: the charter, and how often it has started.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use super::charter::{CHARTER_BYTES_MAX, MEMBERS_MAX};
use super::wire::Reader;
use crate::id::MemberId;

/// Longest state, in bytes.
pub const STATE_BYTES_MAX: usize = 1 + 4 + 2 + MEMBERS_MAX * 12 + CHARTER_BYTES_MAX;

const FORMAT: u8 = 1;

/// What is kept of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Rises with each start, before anything is signed.
    pub(super) incarnation: u32,
    /// For how many minutes members have been silent.
    pub(super) silences: BTreeMap<MemberId, u32>,
    /// The charter's bytes; none of them before there is one.
    pub(super) charter: Vec<u8>,
}

impl State {
    /// Writes format, incarnation, count of silent members, of each id and minutes, and the charter.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.incarnation.to_be_bytes());
        // At most MEMBERS_MAX.
        bytes.extend(u16::try_from(self.silences.len()).unwrap_or(u16::MAX).to_be_bytes());
        for (member, minutes) in &self.silences {
            bytes.extend(member.0.to_be_bytes());
            bytes.extend(minutes.to_be_bytes());
        }
        bytes.extend(&self.charter);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        (from.u8()? == FORMAT && bytes.len() <= STATE_BYTES_MAX).then_some(())?;
        let incarnation = from.u32()?;
        let one = |from: &mut Reader<'_>| Some((MemberId(from.u64()?), from.u32()?));
        let silences = from.list(MEMBERS_MAX, one)?.into_iter().collect();
        Some(Self { incarnation, silences, charter: from.0.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn states_are_read_as_they_were_written(
            incarnation: u32, silences in prop::collection::btree_map(any::<u64>(), any::<u32>(), 0..9),
            charter: Vec<u8>, bytes: Vec<u8>,
        ) {
            let silences = silences.into_iter().map(|(id, it)| (MemberId(id), it)).collect();
            let state = State { incarnation, silences, charter };
            prop_assert_eq!(State::from_bytes(&state.to_bytes()), Some(state));
            State::from_bytes(&bytes);
        }
    }
}
