//! How the bandwidth of a link is taken where no transfer tells it.
//!
//! Source: TR §8 (the time of a 64 KB block over TCP). Differences: see [`crate::estimate`].
//!
//! Sans-I/O.

use std::time::Duration;

use super::rate;

/// The first block of a probe, in bytes: a quarter of the paper's, so that many can probe a slow link.
const BLOCK_FIRST: u64 = 16 << 10;
/// The last, in bytes.
const BLOCK_LAST: u64 = 4 << 20;
/// A block that takes longer, and as many round trips as [`BLOCK_ROUND_TRIPS`], is the last.
const BLOCK_TIME: Duration = Duration::from_millis(500);
/// See [`BLOCK_TIME`].
const BLOCK_ROUND_TRIPS: u32 = 4;
/// A shorter one, of as many round trips, is the last as well if it says the same as the one before, within so many
/// hundredths.
const SAME_TIME: Duration = Duration::from_millis(100);
/// See [`SAME_TIME`].
const SAME_PERCENT: u64 = 5;
/// A block that takes fewer round trips says nothing: some buffer may have taken it at once.
const COUNTED_ROUND_TRIPS: u32 = 2;

/// A block of so many bytes that takes no longer than [`FAST_TIME`] is the last as well: see [`FAST`](super::FAST).
const FAST_BYTES: u64 = 512 << 10;
/// See [`FAST_BYTES`].
const FAST_TIME: Duration = Duration::from_millis(10);

/// A measurement of bandwidth over a warm connection: blocks that double until one takes long enough to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Of which each block takes one.
    round_trip: Duration,
    /// The block that is on its way, in bytes.
    block: u64,
    /// The most that those before it have found, in bytes a second.
    found: u64,
}

/// What a probe does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send a block of so many bytes, and say how long it took until the other had it all.
    Send(u64),
    /// It is over: bytes a second.
    Done(u64),
}

impl Probe {
    /// Begins a probe of a link whose round trip is known.
    pub fn new(round_trip: Duration) -> (Self, Step) {
        (Self { round_trip, block: BLOCK_FIRST, found: 0 }, Step::Send(BLOCK_FIRST))
    }

    /// Takes in how long the block took that was to be sent.
    pub fn handle_sent(&mut self, took: Duration) -> Step {
        // A round trip that was taken while the link was full is too long, and makes a link look faster than it is.
        let found = rate(self.block, took - self.round_trip.min(took / BLOCK_ROUND_TRIPS));
        let is_fast = FAST_BYTES <= self.block && took <= FAST_TIME;
        let is_long = BLOCK_TIME.max(self.round_trip * BLOCK_ROUND_TRIPS) <= took;
        let is_same = SAME_TIME.max(self.round_trip * BLOCK_ROUND_TRIPS) <= took
            && found.abs_diff(self.found) <= found / 100 * SAME_PERCENT;
        if is_fast || is_long || is_same || BLOCK_LAST <= self.block {
            // The last may have lost packets on its way, or been held up at one of its ends.
            return Step::Done(found.max(self.found));
        }
        if self.round_trip * COUNTED_ROUND_TRIPS <= took {
            self.found = self.found.max(found);
        }
        self.block *= 2;
        Step::Send(self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000 / 8;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// How long a block takes over TCP: the window opens from ten segments, doubled each round trip, up to what the
    /// link holds; on a warm connection it is open already as far as the blocks before have opened it.
    struct Tcp {
        round_trip: Duration,
        bandwidth: u64,
        window: u64,
    }

    impl Tcp {
        fn new(round_trip: Duration, bandwidth: u64) -> Self {
            Self { round_trip, bandwidth, window: 10 * 1_460 }
        }

        fn send(&mut self, mut bytes: u64) -> Duration {
            // Half a round trip there, and the answer back.
            let mut took = self.round_trip;
            loop {
                let sent = bytes.min(self.window);
                let on_wire = Duration::from_micros(sent * 1_000_000 / self.bandwidth);
                bytes -= sent;
                if bytes == 0 {
                    return took + on_wire;
                }
                took += on_wire.max(self.round_trip);
                self.window = if on_wire < self.round_trip { self.window * 2 } else { self.window };
            }
        }
    }

    fn probe(mut tcp: Tcp) -> (u64, u64) {
        let (mut probe, mut step) = Probe::new(tcp.round_trip);
        let mut sent = 0;
        loop {
            match step {
                Step::Send(bytes) => {
                    sent += bytes;
                    step = probe.handle_sent(tcp.send(bytes));
                }
                Step::Done(found) => return (found, sent),
            }
        }
    }

    #[test]
    fn a_probe_finds_what_a_link_carries() {
        for round_trip in [1, 10, 40, 100] {
            for mbit in [1, 2, 10, 50, 200] {
                let bandwidth = mbit * MBIT;
                let (found, sent) = probe(Tcp::new(ms(round_trip), bandwidth));
                let off = found.abs_diff(bandwidth) * 100 / bandwidth;
                // Beyond what four megabytes can fill, the window still opens.
                let is_long = 2 << 20 < bandwidth * round_trip / 1_000 * 4;
                assert!(
                    off <= 25 || is_long,
                    "{mbit} Mbit/s at {round_trip} ms are {} Mbit/s",
                    found / MBIT
                );
                assert!(sent <= 2 * BLOCK_LAST);
                // A second of it, but for links whose window still opens.
                let least = 64 << 10;
                assert!(
                    sent <= least.max(bandwidth) || is_long,
                    "{sent} at {mbit} Mbit/s, {round_trip} ms"
                );
            }
        }
    }

    #[test]
    fn a_slow_link_is_not_filled_by_its_probe() {
        // TR §8: at home, 28 KB/s.
        let (found, sent) = probe(Tcp::new(ms(150), 28_000));
        assert!(found.abs_diff(28_000) < 2_800, "{found}");
        assert_eq!(sent, BLOCK_FIRST);
    }

    #[test]
    fn a_probe_of_a_fast_link_sends_little() {
        for mbit in [1_000, 10_000] {
            let (found, sent) = probe(Tcp::new(Duration::from_micros(200), mbit * MBIT));
            assert!(50_000_000 <= found, "{found}");
            assert!(sent < 1 << 20, "{sent} bytes were sent at {mbit} Mbit/s");
        }
    }

    #[test]
    fn a_probe_is_not_misled_by_much() {
        let block = |bytes: u64| ms(40) + Duration::from_micros(bytes * 1_000_000 / (50 * MBIT));
        let probe = |round_trip: Duration, took: &dyn Fn(u64) -> Duration| {
            let (mut probe, mut step) = Probe::new(round_trip);
            loop {
                match step {
                    Step::Send(bytes) => step = probe.handle_sent(took(bytes)),
                    Step::Done(found) => return found * 100 / (50 * MBIT),
                }
            }
        };
        // A round trip that was taken while the link was full.
        assert!((95..=125).contains(&probe(ms(900), &block)));
        // Small blocks that some buffer took at once, and a great one that was sent twice.
        let bursts = |bytes: u64| if bytes <= 256 << 10 { ms(41) } else { block(bytes) };
        assert!((95..=105).contains(&probe(ms(40), &bursts)));
        let lossy = |bytes: u64| if 2 << 20 <= bytes { block(bytes) * 2 } else { block(bytes) };
        assert!((95..=105).contains(&probe(ms(40), &lossy)));
        // An end that is late for a tenth of a second each time.
        let late = |bytes: u64| block(bytes) + ms(100);
        assert!((80..=105).contains(&probe(ms(40), &late)));
    }
}
