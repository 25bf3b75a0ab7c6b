//! What is known of the links between members: round trips and bandwidths, how they are measured, how old
//! they are, and how little of the wire it takes to tell the others.
//!
//! Source: TR §8 (a null UDP call, the time of a 64 KB block over TCP, often in the first hour and seldom
//! after, flooded to all).
//!
//! # Differences from the paper
//!
//! * Bandwidth is read off transfers that happen anyway; only links that carry none are probed.
//! * The probe doubles its block on a warm connection until doubling no longer makes it faster
//!   ([`Probe`]), and leaves out the round trip: 64 KB on a new one take several, while the window opens,
//!   so that at 40 ms they read 2.6 Mbit/s on a link of 50.
//! * A round trip is the shortest of the last few, since queues only ever add to it.
//! * Estimates age: who has not been measured for [`LIFE`] is no longer a neighbor to choose.
//!
//! Sans-I/O.

mod row;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

pub use row::{Entry, ParseError, Row};

use crate::topology::{Costs, UNREACHABLE, cost};

/// How long an estimate counts that nobody makes anew.
pub const LIFE: Duration = Duration::from_hours(24);
/// For so long after its start a member measures often.
pub const YOUNG: Duration = Duration::from_hours(1);
/// Pauses between two measurements of a member that is young or has yet to measure somebody, and of any other.
pub const PAUSE_YOUNG: Duration = Duration::from_secs(5);
/// See [`PAUSE_YOUNG`].
pub const PAUSE_OLD: Duration = Duration::from_mins(5);

/// Round trips that are remembered.
const ROUND_TRIPS: usize = 8;
/// Transfers of fewer bytes say nothing of a link's bandwidth.
const TRANSFER_BYTES_MIN: u64 = 256 << 10;
/// Transfers of fewer round trips say as little: the window was still opening.
const TRANSFER_ROUND_TRIPS_MIN: u32 = 8;
/// What a slower transfer weighs, in hundredths: it may have been slow for reasons of its own.
const SLOWER_PERCENT: u64 = 25;

/// What one member knows of the link to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The last of them, the newest first.
    round_trips: Vec<Duration>,
    /// Bytes a second; 0 as long as nothing has been measured.
    bandwidth: u64,
    /// When it was last measured, on the member's own clock since its start.
    measured: Option<Duration>,
}

impl Estimate {
    /// Takes in what a null call took.
    pub fn handle_round_trip(&mut self, took: Duration, now: Duration) {
        self.round_trips.insert(0, took.max(Duration::from_micros(1)));
        self.round_trips.truncate(ROUND_TRIPS);
        self.measured = Some(now);
    }

    /// Takes in a transfer that the link alone held back; too short ones are ignored.
    pub fn handle_transfer(&mut self, bytes: u64, took: Duration, now: Duration) {
        let round_trip = self.round_trip().unwrap_or_default();
        if bytes < TRANSFER_BYTES_MIN || took < round_trip * TRANSFER_ROUND_TRIPS_MIN {
            return;
        }
        let found = rate(bytes, took);
        self.bandwidth = match self.bandwidth {
            0 => found,
            known if known <= found => found,
            known => known - (known - found) / 100 * SLOWER_PERCENT,
        };
        self.measured = Some(now);
    }

    /// Takes in what a [`Probe`] has found.
    pub fn handle_probe(&mut self, bandwidth: u64, now: Duration) {
        self.bandwidth = bandwidth.max(1);
        self.measured = Some(now);
    }

    /// The shortest of the last round trips.
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trips.iter().min().copied()
    }

    /// In bytes a second.
    pub fn bandwidth(&self) -> Option<u64> {
        (self.bandwidth != 0).then_some(self.bandwidth)
    }

    /// How long ago it was measured.
    pub fn age(&self, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.measured?))
    }
}

fn rate(bytes: u64, took: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000 / took.as_micros().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX).max(1)
}

/// The first block of a probe, in bytes: the paper's.
const BLOCK_FIRST: u64 = 64 << 10;
/// The last, in bytes.
const BLOCK_LAST: u64 = 4 << 20;
/// A block that takes longer is the last.
const BLOCK_TIME: Duration = Duration::from_secs(2);
/// Doubling is worth it while it makes the block faster by as much, in hundredths.
const GROWTH_PERCENT: u64 = 15;

/// A measurement of bandwidth over a warm connection: blocks that double, as long as that makes them faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Of which each block takes one.
    round_trip: Duration,
    /// The block that is on its way, in bytes.
    block: u64,
    /// What was found so far, in bytes a second.
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
        // A window that still opens makes a block slower than the link, and nothing makes it faster.
        let found = rate(self.block, took.saturating_sub(self.round_trip).max(took / 8));
        let is_faster = self.found / 100 * (100 + GROWTH_PERCENT) < found;
        self.found = self.found.max(found);
        if !is_faster || BLOCK_LAST <= self.block || BLOCK_TIME <= took {
            return Step::Done(self.found);
        }
        self.block *= 2;
        Step::Send(self.block)
    }
}

/// What a member does about measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Call this one, and take its bandwidth too if nothing is known of it.
    Call {
        /// Its place among those asked about.
        member: usize,
        /// Whether its bandwidth is to be probed.
        probe: bool,
    },
    /// Nobody before then.
    Wait(Duration),
}

/// Says whom to measure next: whoever was not measured for longest, those never measured first. `estimates` are
/// those of all others; `last` is when a measurement last began, all on the member's own clock since its
/// start.
pub fn measure(estimates: &[Estimate], last: Option<Duration>, now: Duration) -> Measure {
    // One that has just come is measured as soon as if all were young.
    let is_young = now < YOUNG || estimates.iter().any(|it| it.measured.is_none());
    let pause = if is_young { PAUSE_YOUNG } else { PAUSE_OLD };
    // With few others, each is left alone for a while all the same.
    let due = last.map_or(Duration::ZERO, |it| it + pause);
    if now < due {
        return Measure::Wait(due);
    }
    let oldest = estimates.iter().enumerate().min_by_key(|(_, it)| it.measured);
    match oldest {
        Some((member, it)) => Measure::Call { member, probe: it.bandwidth == 0 },
        None => Measure::Wait(now + pause),
    }
}

/// Returns what links between `members` cost for updates of `bytes`, from what each of them says: of two that
/// say something of their link, the worse counts, as updates may go either way. Entries about others, rows of
/// others, and entries older than [`LIFE`] are ignored.
pub fn costs(members: &[u64], rows: &[Row], bytes: u64) -> Costs {
    let mut costs = Costs::new(members.len());
    let places: HashMap<u64, usize> =
        members.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    for row in rows {
        let Some(&from) = places.get(&row.from) else { continue };
        for entry in row.entries.iter().filter(|it| it.age() < LIFE) {
            let Some(&to) = places.get(&entry.to) else { continue };
            let (Some(round_trip), Some(bandwidth)) = (entry.round_trip(), entry.bandwidth())
            else {
                continue;
            };
            let this = cost(round_trip, bandwidth, bytes);
            let known = costs.get(from, to);
            costs.set(from, to, if known == UNREACHABLE { this } else { this.max(known) });
        }
    }
    costs
}
