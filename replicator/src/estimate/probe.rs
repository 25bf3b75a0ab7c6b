//! The probe: a measurement of a link's bandwidth where no transfers show it.
//!
//! Source: TR §8 (the time of a 64 KB block over TCP). Differences: see [`crate::estimate`].
//!
//! Sans-I/O.

use std::time::Duration;

use super::rate;

/// The first block, in bytes: a quarter of the paper's, so that many members can probe a slow link.
const BLOCK_FIRST: u64 = 16 << 10;
/// The largest block of a probe, in bytes.
const BLOCK_LAST: u64 = 4 << 20;
/// A block that takes at least this time and [`BLOCK_ROUND_TRIPS`] is the last.
const BLOCK_TIME: Duration = Duration::from_millis(500);
/// See [`BLOCK_TIME`] and [`SAME_TIME`].
const BLOCK_ROUND_TRIPS: u32 = 4;
/// A block that takes at least this time and [`BLOCK_ROUND_TRIPS`] is the last if its rate differs
/// by at most [`SAME_PERCENT`] from the greatest so far.
const SAME_TIME: Duration = Duration::from_millis(100);
/// See [`SAME_TIME`].
const SAME_PERCENT: u64 = 5;
/// A block before the last that takes fewer round trips is not counted: buffers may have taken it.
const COUNTED_ROUND_TRIPS: u32 = 2;

/// A block of at least this size that takes at most [`FAST_TIME`] is the last ([`super::FAST`]).
const FAST_BYTES: u64 = 512 << 10;
/// See [`FAST_BYTES`].
const FAST_TIME: Duration = Duration::from_millis(10);

/// A measurement of bandwidth over a warm connection: blocks double until one takes long enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The link's round trip. Each block takes one in addition to its own time on the link.
    round_trip: Duration,
    /// Size of the block on its way, in bytes.
    block: u64,
    /// The greatest rate of the counted blocks before that one, in bytes a second.
    rate_max: u64,
}

/// The next step of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send a block of this many bytes, and measure the time until the other end has all of it.
    Send(u64),
    /// The probe is over: bytes a second.
    Done(u64),
}

impl Probe {
    /// Begins a probe of a link whose round trip is known.
    pub fn new(round_trip: Duration) -> (Self, Step) {
        (Self { round_trip, block: BLOCK_FIRST, rate_max: 0 }, Step::Send(BLOCK_FIRST))
    }

    /// Takes in the time that the last block took, and returns the next step.
    pub fn handle_sent(&mut self, took: Duration) -> Step {
        // A round trip measured on a full link is too long, and would make the link look too fast.
        let found = rate(self.block, took - self.round_trip.min(took / BLOCK_ROUND_TRIPS));
        let is_fast = FAST_BYTES <= self.block && took <= FAST_TIME;
        let is_long = BLOCK_TIME.max(self.round_trip * BLOCK_ROUND_TRIPS) <= took;
        let is_same = SAME_TIME.max(self.round_trip * BLOCK_ROUND_TRIPS) <= took
            && found.abs_diff(self.rate_max) <= found / 100 * SAME_PERCENT;
        if is_fast || is_long || is_same || BLOCK_LAST <= self.block {
            // The last block may be slower, because it lost packets or waited at one of the ends.
            return Step::Done(found.max(self.rate_max));
        }
        if self.round_trip * COUNTED_ROUND_TRIPS <= took {
            self.rate_max = self.rate_max.max(found);
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

    /// A model of TCP: the window begins with ten segments and doubles each round trip until the
    /// link is full. It stays open for the next block.
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
            // One round trip: the block's way and the answer's.
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
    fn a_probe_finds_a_links_bandwidth() {
        for round_trip in [1, 10, 40, 100] {
            for mbit in [1, 2, 10, 50, 200] {
                let bandwidth = mbit * MBIT;
                let (found, sent) = probe(Tcp::new(ms(round_trip), bandwidth));
                let off = found.abs_diff(bandwidth) * 100 / bandwidth;
                // Four megabytes cannot open the window of such a link.
                let is_long = 2 << 20 < bandwidth * round_trip / 1_000 * 4;
                assert!(
                    off <= 25 || is_long,
                    "{mbit} Mbit/s at {round_trip} ms are {} Mbit/s",
                    found / MBIT
                );
                assert!(sent <= 2 * BLOCK_LAST);
                // At most a second of the link, if the window is open.
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
        // Small blocks that a buffer took at once, and a great one that was sent twice.
        let bursts = |bytes: u64| if bytes <= 256 << 10 { ms(41) } else { block(bytes) };
        assert!((95..=105).contains(&probe(ms(40), &bursts)));
        let lossy = |bytes: u64| if 2 << 20 <= bytes { block(bytes) * 2 } else { block(bytes) };
        assert!((95..=105).contains(&probe(ms(40), &lossy)));
        // An end that answers a tenth of a second late.
        let late = |bytes: u64| block(bytes) + ms(100);
        assert!((80..=105).contains(&probe(ms(40), &late)));
    }
}
