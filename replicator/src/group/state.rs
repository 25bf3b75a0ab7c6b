//! The saved state of a group: the charter, the incarnation, and the members' silences.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use super::charter::{CHARTER_BYTES_MAX, MEMBERS_MAX};
use crate::id::MemberId;
use crate::wire::Reader;

/// Length of the longest state, in bytes.
pub const STATE_BYTES_MAX: usize = 1 + 4 + 2 + MEMBERS_MAX * 12 + CHARTER_BYTES_MAX;

const FORMAT: u8 = 1;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SavedGroup {
    /// Number that rises at each start, before anything is signed.
    pub(super) incarnation: u32,
    /// Number of minutes for which each silent member has been silent.
    pub(super) silences: BTreeMap<MemberId, u32>,
    /// Bytes of the charter; empty if there is none.
    pub(super) charter: Vec<u8>,
}

impl SavedGroup {
    /// Writes format, incarnation, number of silent members, id and minutes of each, and charter.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.incarnation.to_be_bytes());
        // A group has at most MEMBERS_MAX members.
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
        fn saved_states_are_read_as_they_were_written(
            incarnation: u32, silences in prop::collection::btree_map(any::<u64>(), any::<u32>(), 0..9),
            charter: Vec<u8>, bytes: Vec<u8>,
        ) {
            let silences = silences.into_iter().map(|(id, it)| (MemberId(id), it)).collect();
            let state = SavedGroup { incarnation, silences, charter };
            prop_assert_eq!(SavedGroup::from_bytes(&state.to_bytes()), Some(state));
            SavedGroup::from_bytes(&bytes);
        }
    }
}
