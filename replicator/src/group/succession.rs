//! Succession: the order of a group's charters.
//!
//! All charters of a group have one order ([`Standing`]), and each member follows the greatest one
//! it has seen. So the order in which they arrive does not matter, and two parts of a group that
//! have a leader each agree on one charter as soon as they meet.
//!
//! One case is outside that order: a removed deputy may still sign charters. A member that knows of
//! the removal does not follow the former deputy ([`Refusal::Revoked`]), and the leader answers
//! with a greater epoch, which all follow.
//!
//! # Differences from the paper
//!
//! flood-d has no deputies ("Flood-d's do not elect new leaders").
//!
//! Sans-I/O.

use std::cmp::Reverse;

use super::charter::Charter;
use crate::id::MemberId;
use crate::version::Hash;

/// Largest step by which an epoch may rise at once, so that nobody can use up all epochs.
pub const EPOCHS_MAX: u64 = 1 << 32;

/// Position of a charter in the order of its group: the greatest one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    epoch: u64,
    /// The leader's rank in the mandate before; 0 for the founder.
    rank: Reverse<usize>,
    leader: Reverse<MemberId>,
    revision: u64,
    /// Decides between two charters of one number, which a leader may sign after it lost its disk.
    hash: Hash,
}

/// Reason why a charter is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is of another group.
    Foreign,
    /// The known charter is greater than this one, or is the same.
    Stale,
    /// Its signer, or one of the leaders before, is no deputy any more.
    Revoked(MemberId),
    /// Its epoch is too far ahead: there cannot have been that many changes of leaders.
    Epoch,
}

impl Charter {
    /// Returns its position in the order of the group's charters.
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
    /// Returns the reason why the member has to stay with `known`.
    pub fn succeeds(&self, known: &Self) -> Result<(), Refusal> {
        if (self.group(), self.founder()) != (known.group(), known.founder()) {
            return Err(Refusal::Foreign);
        }
        if self.standing() <= known.standing() {
            return Err(Refusal::Stale);
        }
        if EPOCHS_MAX < self.epoch() - known.epoch() {
            return Err(Refusal::Epoch);
        }
        let both = || self.chain().iter().zip(known.chain());
        let shared = both().take_while(|(new, old)| new.leader == old.leader);
        // Both chains begin with the founder, so they share at least one leader.
        let Some((new, old)) = shared.clone().last() else {
            return Err(Refusal::Foreign);
        };
        let next = self.chain().get(shared.count());
        let is_deputy = next.is_some_and(|it| old.rank(&it.leader).is_some());
        if new.number() < old.number() && !is_deputy {
            return Err(Refusal::Revoked(next.unwrap_or(new).leader()));
        }
        Ok(())
    }
}
