//! A probe of a link's bandwidth: pieces of blocks, sent while nothing else waits.
//!
//! [`Probe`] decides when blocks double and end. A block gives no result if much other data was
//! sent during it.
//!
//! Sans-I/O.

use std::time::Duration;

use super::frame::{Frame, PIECE_BYTES_MAX};
use crate::estimate::{Probe, Step};

/// Time after which a block that is not acknowledged gives no result.
pub const BLOCK_MAX: Duration = Duration::from_secs(30);
/// Bytes that a block must have for each byte of other data sent during it, to give a result.
const OTHERS: u64 = 16;

/// A probe under way.
#[derive(Clone, Debug)]
pub struct Probing {
    probe: Probe,
    block: u64,
    /// Bytes of the block that remain to be sent.
    left: u64,
    began: Option<Duration>,
    /// Bytes of other data sent since the block began.
    others: u64,
}

/// Progress of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The probe continues.
    Goes,
    /// The probe has ended: bytes a second, or no result.
    Done(Option<u64>),
}

impl Probing {
    /// Begins a probe of a link with this round trip.
    pub fn new(round_trip: Duration) -> Self {
        let (probe, step) = Probe::new(round_trip);
        let block = match step {
            Step::Send(bytes) => bytes,
            Step::Done(_) => 0,
        };
        Self { probe, block, left: block, began: None, others: 0 }
    }

    /// Returns the next piece to send now; `None` if there is none.
    pub fn next_piece(&mut self, now: Duration) -> Option<Frame> {
        if self.left == 0 {
            return None;
        }
        if self.began.is_none() {
            self.began = Some(now);
            self.others = 0;
        }
        let bytes = self.left.min(PIECE_BYTES_MAX as u64);
        self.left -= bytes;
        let narrow = |it: u64| u32::try_from(it).unwrap_or(u32::MAX);
        Some(Frame::Piece { left: narrow(self.left), bytes: narrow(bytes) })
    }

    /// Records the number of bytes of other data that were sent.
    pub fn handle_others(&mut self, bytes: usize) {
        self.others = self.others.saturating_add(bytes as u64);
    }

    /// Records that the other end has received the block.
    pub fn handle_taken(&mut self, now: Duration) -> Progress {
        let Some(began) = self.began.filter(|_| self.left == 0) else {
            // The other end acknowledges a block that was not sent.
            return Progress::Done(None);
        };
        if self.block < self.others * OTHERS {
            return Progress::Done(None);
        }
        match self.probe.handle_sent(now.saturating_sub(began)) {
            Step::Done(bandwidth) => Progress::Done(Some(bandwidth)),
            Step::Send(block) => {
                (self.block, self.left, self.began) = (block, block, None);
                Progress::Goes
            }
        }
    }

    /// Returns whether the block has taken too long to give a result.
    pub fn is_late(&self, now: Duration) -> bool {
        self.began.is_some_and(|it| it + BLOCK_MAX <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(40);
    const RATE: u64 = 6_250_000;

    /// Probes a link of this rate with `others` bytes of other data during each block.
    fn probe(others: usize) -> Option<u64> {
        let mut probing = Probing::new(ROUND_TRIP);
        let mut now = Duration::from_secs(9);
        loop {
            let (mut bytes, mut last) = (0, 1);
            while let Some(frame) = probing.next_piece(now) {
                let Frame::Piece { left, bytes: piece } = frame else { panic!("{frame:?}") };
                bytes += u64::from(piece);
                last = left;
            }
            assert_eq!(last, 0);
            probing.handle_others(others);
            now += ROUND_TRIP + Duration::from_micros(bytes * 1_000_000 / RATE);
            match probing.handle_taken(now) {
                Progress::Goes => {}
                Progress::Done(found) => return found,
            }
        }
    }

    #[test]
    fn the_rate_of_a_link_is_found() {
        let found = probe(0).unwrap();
        assert!((RATE - RATE / 20..=RATE + RATE / 20).contains(&found), "{found}");
        assert_eq!(probe(1 << 10), Some(found));
        assert_eq!(probe(2 << 10), None);
    }

    #[test]
    fn an_acknowledgment_of_an_unsent_block_ends_the_probe() {
        let mut probing = Probing::new(ROUND_TRIP);
        assert_eq!(probing.handle_taken(ROUND_TRIP), Progress::Done(None));
        probing.next_piece(ROUND_TRIP);
        assert_eq!(probing.handle_taken(ROUND_TRIP * 2), Progress::Goes);
        // The second block consists of two pieces.
        probing.next_piece(ROUND_TRIP);
        assert_eq!(probing.handle_taken(ROUND_TRIP * 2), Progress::Done(None));
        assert!(!probing.is_late(BLOCK_MAX));
        assert!(probing.is_late(BLOCK_MAX + ROUND_TRIP));
    }
}
