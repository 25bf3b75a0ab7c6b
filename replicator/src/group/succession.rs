//! Which of two charters counts.
//!
//! All charters of a group stand in one order ([`Standing`]), and everybody goes by the greatest that they have seen:
//! so it does not matter in which order they come, and two parts of a group that each had a leader of
//! their own agree as soon as they meet.
//!
//! One thing is not in that order: who was a deputy once may be none any more. Whoever knows that it is none
//! ([`Refusal::Revoked`]) does not follow it, and the leader answers with a greater epoch, which all follow.
//!
//! # Differences from the paper
//!
//! flood-d has no deputies ("Flood-d's do not elect new leaders").
//!
//! Sans-I/O.

use std::cmp::Reverse;

use super::charter::{Charter, ParseError};
use crate::id::{GroupId, MemberId};
use crate::version::Hash;

/// By how much an epoch may rise at once: so nobody can use up all that there are.
pub const EPOCHS_MAX: u64 = 1 << 32;

/// Where a charter stands among all of its group: the greater counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    epoch: u64,
    /// Its leader's place among the deputies of the one before it; the founder has 0.
    rank: Reverse<usize>,
    leader: Reverse<MemberId>,
    revision: u64,
    /// Of a leader that has lost its disk there may be two of one number.
    hash: Hash,
}

/// Why a charter is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It has a wrong form, or a forged signature.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// Of another group.
    #[error("a charter of another group, {0}")]
    Foreign(GroupId),
    /// One that counts more is known.
    #[error("an old charter: epoch {epoch}, revision {revision}")]
    Stale {
        /// Its epoch.
        epoch: u64,
        /// Its revision.
        revision: u64,
    },
    /// Its signer, or somebody before it, was a deputy once and is none any more.
    #[error("a charter of {0}, which is no deputy any more")]
    Revoked(MemberId),
    /// So many changes of leaders cannot have been.
    #[error("a charter of epoch {0}, which is too far ahead")]
    Epoch(u64),
}

impl Charter {
    /// Where it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let mandate = self.mandate();
        let rank = match self.chain() {
            [.., before, last] => before.rank(&last.leader).unwrap_or(usize::MAX),
            _ => 0,
        };
        Standing {
            epoch: mandate.epoch,
            rank: Reverse(rank),
            leader: Reverse(mandate.leader()),
            revision: mandate.revision,
            hash: self.hash(),
        }
    }

    /// Whether this one is followed by who knows `known`.
    ///
    /// # Errors
    ///
    /// It is not, and why: stay with what is known.
    pub fn succeeds(&self, known: &Self) -> Result<(), Refusal> {
        let (epoch, revision) = (self.epoch(), self.revision());
        if (self.group(), self.founder()) != (known.group(), known.founder()) {
            return Err(Refusal::Foreign(self.group()));
        }
        if self.standing() <= known.standing() {
            return Err(Refusal::Stale { epoch, revision });
        }
        if EPOCHS_MAX < epoch - known.epoch() {
            return Err(Refusal::Epoch(epoch));
        }
        let both = || self.chain().iter().zip(known.chain());
        let shared = both().take_while(|(new, old)| new.leader == old.leader);
        // The founder at least is in both.
        let Some((new, old)) = shared.clone().last() else {
            return Err(Refusal::Foreign(self.group()));
        };
        let next = self.chain().get(shared.count());
        let is_deputy = next.is_some_and(|it| old.rank(&it.leader).is_some());
        if new.number() < old.number() && !is_deputy {
            return Err(Refusal::Revoked(next.unwrap_or(new).leader()));
        }
        Ok(())
    }
}
