//! Succession: the order of a group's charters.
//!
//! All charters of a group have one order ([`Standing`]), and each member follows the greatest one it has seen. So the
//! order of their arrival does not matter, and two parts of a group with a leader each agree as soon as they meet.
//!
//! One fact is outside that order: a deputy may have been removed. A member that knows of the removal
//! ([`Refusal::Revoked`]) does not follow the former deputy, and the leader answers with a greater epoch,
//! which all follow.
//!
//! # Differences from the paper
//!
//! flood-d has no deputies ("Flood-d's do not elect new leaders").
//!
//! Sans-I/O.

use std::cmp::Reverse;

use super::charter::{Charter, CharterError};
use crate::id::{GroupId, MemberId};
use crate::version::Hash;

/// Most by which an epoch may rise at once, so that nobody can use up all epochs.
pub const EPOCHS_MAX: u64 = 1 << 32;

/// Position of a charter in the order of its group: the greatest one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    epoch: u64,
    /// Its leader's rank among the deputies of the one before it; the founder has 0.
    rank: Reverse<usize>,
    leader: Reverse<MemberId>,
    revision: u64,
    /// A leader that has lost its disk may sign two charters of one number.
    hash: Hash,
}

/// Reason why a charter is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It has a wrong form, or a forged signature.
    #[error(transparent)]
    Parse(#[from] CharterError),
    /// It is of another group.
    #[error("a charter of another group, {0}")]
    Foreign(GroupId),
    /// A greater one is known.
    #[error("an old charter: epoch {epoch}, revision {revision}")]
    Stale {
        /// Its epoch.
        epoch: u64,
        /// Its revision.
        revision: u64,
    },
    /// Its signer, or a leader before it, is a former deputy.
    #[error("a charter of {0}, which is no deputy any more")]
    Revoked(MemberId),
    /// There cannot have been so many changes of leaders.
    #[error("a charter of epoch {0}, which is too far ahead")]
    Epoch(u64),
}

impl Charter {
    /// Returns its position in that order.
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

    /// Checks whether a member that follows `known` follows this charter next.
    ///
    /// # Errors
    ///
    /// The reason why not: stay with `known`.
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
        // At least the founder is in both.
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
