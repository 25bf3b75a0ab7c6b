//! A member's own row and its beats.
//!
//! Sans-I/O.

use std::sync::Arc;

use net::identity::Identity;

use super::message::{Beat, ROW, Signed, ahead};
use super::{BEATS_MAX, Mark};
use crate::estimate::{LinkEstimate, Row};
use crate::id::{GroupId, MemberId};
use crate::version::Hash;

const DOMAIN_SEED: &[u8] = b"harvest replicator beats\0";

#[derive(Debug)]
pub(in super::super) struct OwnRow {
    pub(in super::super) row: Row,
    bytes: Arc<[u8]>,
    seed: [u8; 32],
    beats: u16,
}

impl OwnRow {
    pub(in super::super) fn sign(
        identity: &Identity,
        group: GroupId,
        sequence: u64,
        entries: Vec<LinkEstimate>,
    ) -> Self {
        let row = Row { from: MemberId::of(&identity.public()).0, sequence, entries };
        // Nobody else can make this signature, and it is never sent.
        let text =
            [DOMAIN_SEED, &group.0.to_be_bytes(), sequence.to_be_bytes().as_slice()].concat();
        let seed = Hash::of(&identity.sign_raw(&text)).0;
        let mut bytes = vec![ROW];
        bytes.extend(ahead(seed, BEATS_MAX));
        bytes.extend(row.to_bytes());
        let signature = identity.sign_raw(&Signed::signed(group, &bytes));
        bytes.extend(signature);
        Self { row, bytes: bytes.into(), seed, beats: 0 }
    }

    pub(in super::super) fn mark(&self) -> Mark {
        (self.row.sequence, self.beats)
    }

    pub(in super::super) fn bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// Returns the next beat; `None` if the row has no more, so that a new row is due.
    pub(in super::super) fn beat(&mut self) -> Option<Arc<[u8]>> {
        if self.beats == BEATS_MAX {
            return None;
        }
        self.beats += 1;
        Some(self.last())
    }

    fn last(&self) -> Arc<[u8]> {
        let (number, sequence) = (self.beats, self.row.sequence);
        let value = ahead(self.seed, BEATS_MAX - number);
        Beat { from: MemberId(self.row.from), sequence, number, value }.to_bytes()
    }

    /// Returns the messages that a member with this mark lacks.
    pub(in super::super) fn after(&self, mark: Mark) -> impl Iterator<Item = Arc<[u8]>> {
        let row = (mark.0 < self.row.sequence).then(|| self.bytes());
        let beat = (self.beats != 0 && mark < self.mark()).then(|| self.last());
        row.into_iter().chain(beat)
    }
}
