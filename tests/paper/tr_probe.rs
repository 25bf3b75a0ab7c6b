//! Tests of TR §8: the time of a 64 KB block over TCP, by which flood-d computes the bandwidth.
//!
//! This "bandwidth" is mostly round trips: of the connection, and of the opening window. Measured between two
//! network namespaces with a line of 50 Mbit/s and 40 ms, the block shows 2.6 Mbit/s, and a block of 4 MB over a
//! warm connection 45; on a line of 200 Mbit/s the paper's probe shows 2.8. Here a model of the connection gives
//! the same: it sends segments over a line that paces and delays, ten at first (RFC 6928), and two more for each
//! acknowledged one.
//!
//! # Differences from the paper
//!
//! * Our probe ([`replicator::estimate::Probe`]) uses the open connection, doubles its block until one takes long
//!   enough to measure, and subtracts the round trip: over the same model it shows the rate of the line.

use std::collections::VecDeque;
use std::time::Duration;

use replicator::estimate::{Probe, Step};

/// Payload of a segment.
const SEGMENT_BYTES: u64 = 1_448;
/// Size of the packet of a segment.
const PACKET_BYTES: u64 = 1_500;
const WINDOW_FIRST: u64 = 10;
/// Largest window of a socket by Linux's default settings.
const WINDOW_BYTES_MAX: u64 = 4 << 20;
const BLOCK_PAPER: u64 = 64 << 10;
const BLOCK_WARM: u64 = 4 << 20;

/// A connection over a line: times in microseconds.
struct Connection {
    round_trip: u64,
    bits_per_us: u64,
    /// In segments.
    window: u64,
}

impl Connection {
    fn new(mbit: u64, round_trip_ms: u64) -> Self {
        Self { round_trip: round_trip_ms * 1_000, bits_per_us: mbit, window: WINDOW_FIRST }
    }

    /// Sends a block; returns the time until its answer arrives.
    fn send(&mut self, bytes: u64) -> u64 {
        let (mut now, mut line_free) = (0, 0);
        let mut acknowledged = VecDeque::new();
        for _ in 0..bytes.div_ceil(SEGMENT_BYTES) {
            if self.window <= acknowledged.len() as u64 {
                now = acknowledged.front().copied().unwrap_or(now);
            }
            while acknowledged.front().is_some_and(|it| *it <= now) {
                acknowledged.pop_front();
                self.window = (self.window + 1).min(WINDOW_BYTES_MAX / SEGMENT_BYTES);
            }
            line_free = now.max(line_free) + PACKET_BYTES * 8 / self.bits_per_us;
            acknowledged.push_back(line_free + self.round_trip);
        }
        acknowledged.back().copied().unwrap_or_default()
    }

    /// Measures as flood-d does: from the call to the answer, on a new connection.
    fn papers_probe(&mut self) -> f64 {
        let took = self.round_trip + self.send(BLOCK_PAPER);
        mbit(BLOCK_PAPER, took)
    }
}

fn mbit(bytes: u64, micros: u64) -> f64 {
    (bytes * 8) as f64 / micros as f64
}

fn our_probe(mut connection: Connection) -> f64 {
    let (mut probe, mut step) = Probe::new(Duration::from_micros(connection.round_trip));
    loop {
        match step {
            Step::Send(bytes) => {
                step = probe.handle_sent(Duration::from_micros(connection.send(bytes)));
            }
            Step::Done(found) => return found as f64 * 8e-6,
        }
    }
}

/// Checks the model against a measurement within a quarter: the relay and both ends take time.
fn check(found: f64, measured: f64) {
    let off = (found - measured).abs() / measured;
    assert!(off <= 0.25, "{found:.2} Mbit/s here, {measured} measured");
}

#[test]
fn a_block_of_64_kb_measures_round_trips_and_a_warm_one_the_line() {
    check(Connection::new(50, 40).papers_probe(), 2.6);
    check(Connection::new(200, 40).papers_probe(), 2.8);
    let mut warm = Connection::new(50, 40);
    warm.send(BLOCK_WARM);
    let took = warm.send(BLOCK_WARM);
    check(mbit(BLOCK_WARM, took), 45.0);
}

#[test]
fn our_probe_measures_the_line_where_the_papers_does_not() {
    for (line, round_trip_ms) in [(50, 40), (200, 40), (10, 100), (100, 10)] {
        let papers = Connection::new(line, round_trip_ms).papers_probe();
        assert!(papers < line as f64 / 3.0, "{papers:.2} of {line} Mbit/s");
        let ours = our_probe(Connection::new(line, round_trip_ms));
        let share = ours / line as f64;
        assert!((0.75..=1.25).contains(&share), "{ours:.2} of {line} Mbit/s at {round_trip_ms} ms");
    }
    // On a home line, which is slower than the window opens, both show the line's rate.
    let home = |probe: fn(Connection) -> f64| probe(Connection::new(1, 150));
    assert!((0.75..=1.25).contains(&home(our_probe)));
    assert!((0.5..=1.25).contains(&home(|mut it| it.papers_probe())));
}
