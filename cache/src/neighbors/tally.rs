//! Tallies: what each neighbor was asked, and what it said.
//!
//! Sans-I/O.

use std::time::Duration;

use crate::icp::Opcode;

/// What a neighbor was asked, and what it said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Number of questions.
    pub(crate) asked: u64,
    /// Numbers of answers that it has the object, and that it has it not.
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Number of objects that were requested from it.
    pub(crate) chosen: u64,
    /// Smoothed time from a question to its answer; `None`: no answer has come yet.
    pub(crate) round_trip: Option<Duration>,
}

impl Tally {
    /// Takes an answer.
    pub(super) fn answered(&mut self, opcode: Opcode, took: Duration) {
        match opcode {
            Opcode::Hit => self.hits += 1,
            Opcode::Miss | Opcode::MissNoFetch => self.misses += 1,
            _ => {}
        }
        // As TCP smooths its own (RFC 6298 §2).
        self.round_trip = Some(self.round_trip.map_or(took, |it| (it * 7 + took) / 8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_has_the_answers_and_their_smoothed_time() {
        let mut tally = Tally::default();
        let ms = Duration::from_millis;
        tally.answered(Opcode::Hit, ms(8));
        assert_eq!(tally.round_trip, Some(ms(8)));
        tally.answered(Opcode::Miss, ms(16));
        tally.answered(Opcode::Denied, ms(9));
        assert_eq!((tally.hits, tally.misses, tally.round_trip), (1, 1, Some(ms(9))));
    }
}
