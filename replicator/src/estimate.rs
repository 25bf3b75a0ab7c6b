//! What is known of the links between members: round trips and bandwidths, how they are measured, how old
//! they are, and how little of the wire it takes to tell the others.
//!
//! Source: TR §8 (a null UDP call, the time of a 64 KB block over TCP, often in the first hour and seldom
//! after, flooded to all).
//!
//! # Differences from the paper
//!
//! * Bandwidth is read off transfers that happen anyway; links are probed that carry none, or of which no two
//!   readings agree, those of the other end included.
//! * The probe doubles its block on a warm connection until it takes long enough to tell ([`Probe`]), and leaves
//!   out the round trip: 64 KB on a new one take several, while the window opens, so that at 40 ms they read
//!   2.6 Mbit/s on a link of 50 (`tests/paper/tr_probe.rs`).
//! * A round trip is the shortest of the last few, since queues only ever add to it, and a bandwidth the greatest of
//!   the last few readings, since what else is on the way only ever takes from it: so a transfer that something
//!   else held back never lowers it.
//! * Members of two sites share the line between them: they take turns to probe it ([`Sites::turn`]), and once three
//!   agree on what it carries, that is what it carries for all ([`Lines`]): a line costs three probes or four, however
//!   many members it has.
//! * Estimates age: who has not been measured for [`LIFE`] is no longer a neighbor to choose.
//!
//! Sans-I/O.

mod lines;
mod probe;
mod row;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

pub use lines::{Line, Lines, Sites};
pub use probe::{Probe, Step};
pub use row::{Entry, ParseError, Row};

use crate::topology::{Costs, UNREACHABLE, cost};

/// How long an estimate counts that nobody makes anew.
pub const LIFE: Duration = Duration::from_hours(24);
/// For so long after its start a member measures often.
pub const YOUNG: Duration = Duration::from_hours(1);
/// Pauses between two measurements of a member that has yet to call somebody, of one that is young or has yet to probe
/// somebody, and of any other.
pub const PAUSE_NEW: Duration = Duration::from_secs(1);
/// See [`PAUSE_NEW`]. Probes of one member lie at least as far apart.
pub const PAUSE_YOUNG: Duration = Duration::from_secs(5);
/// See [`PAUSE_NEW`].
pub const PAUSE_OLD: Duration = Duration::from_mins(4);

/// Round trips that are remembered.
const ROUND_TRIPS: usize = 8;
/// Readings of bandwidth that are remembered: after so many lower ones a link is believed to have become slower.
const READINGS: usize = 4;
/// Transfers within so long of a reading add to it, and make none of their own: whatever holds them back lasts.
const READING: Duration = Duration::from_mins(1);
/// Two readings agree if they differ by no more than so many hundredths of the greater.
const AGREE_PERCENT: u64 = 10;
/// What agrees is probed again after so long without a reading,
const PROBE_AGAIN: Duration = Duration::from_hours(12);
/// and once after so long: what was found when a group had just met may all have been held back in the same way. What
/// was found beside something else does not count as that.
const PROBE_ONCE_MORE: Duration = Duration::from_mins(3);
/// The pause after the first probe of a link, so long that the other end has told what it has found; it doubles with
/// each one that settles nothing, so many times.
const PROBE_PAUSE: Duration = Duration::from_secs(40);
/// See [`PROBE_PAUSE`].
const PROBE_DOUBLINGS_MAX: u32 = 4;
/// Transfers of fewer bytes say nothing of a link's bandwidth.
const TRANSFER_BYTES_MIN: u64 = 128 << 10;
/// Shorter transfers say as little: what had waited somewhere comes faster than the link carries it.
const TRANSFER_MIN: Duration = Duration::from_secs(1);
/// And so do those of fewer round trips: the window was still opening.
const TRANSFER_ROUND_TRIPS_MIN: u32 = 8;

/// What one member knows of the link to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The last of them, the newest first.
    round_trips: Vec<Duration>,
    /// The last readings of the bandwidth, the newest first.
    readings: Vec<Reading>,
    /// When it was last to be probed, and how often since two readings agreed.
    probed: Option<Duration>,
    probes: u32,
    /// When it was last measured, on the member's own clock since its start.
    measured: Option<Duration>,
}

/// What a link carried once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    /// Bytes a second, never 0.
    rate: u64,
    at: Duration,
    by: By,
}

/// How a reading was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Transfer,
    Probe,
    /// A probe beside which something was brought: so much was left of the line.
    ProbeBeside,
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
        let least = TRANSFER_MIN.max(round_trip * TRANSFER_ROUND_TRIPS_MIN);
        if bytes < TRANSFER_BYTES_MIN || took < least {
            return;
        }
        let found = rate(bytes, took);
        match self.readings.first_mut() {
            Some(it) if it.by == By::Transfer && now < it.at + READING => {
                it.rate = it.rate.max(found);
            }
            _ => self.readings.insert(0, Reading { rate: found, at: now, by: By::Transfer }),
        }
        self.handle_reading(now);
    }

    /// Takes in what a [`Probe`] has found; `is_beside` says whether anything was brought over the line meanwhile.
    pub fn handle_probe(&mut self, bandwidth: u64, is_beside: bool, now: Duration) {
        let by = if is_beside { By::ProbeBeside } else { By::Probe };
        self.readings.insert(0, Reading { rate: bandwidth.max(1), at: now, by });
        self.handle_reading(now);
    }

    fn handle_reading(&mut self, now: Duration) {
        self.readings.truncate(READINGS);
        self.measured = Some(now);
        if self.is_agreed(None) {
            self.probes = 0;
        }
    }

    /// Takes note that a probe is to be made now.
    pub fn handle_probing(&mut self, now: Duration) {
        self.probed = Some(now);
        self.probes = self.probes.saturating_add(1).min(PROBE_DOUBLINGS_MAX + 1);
    }

    /// Whether a probe would tell something, and is not too soon after the last. `theirs` is the bandwidth that the
    /// other end says, `line` what members have found of the line that the link shares with theirs.
    pub fn wants_probe(&self, theirs: Option<u64>, line: Option<u64>, now: Duration) -> bool {
        let doublings = self.probes.saturating_sub(1);
        if self.probed.is_some_and(|it| now < it + PROBE_PAUSE * (1 << doublings)) {
            return false;
        }
        let Some(last) = self.readings.first() else { return line.is_none() };
        let is_settled = self.bandwidth().zip(line).is_some_and(|(own, line)| agree(own, line))
            || self.is_agreed(theirs.max(line));
        let again = if self.is_lasting() { PROBE_AGAIN } else { PROBE_ONCE_MORE };
        last.at + again <= now || !is_settled
    }

    /// Whether the link has carried as much at two times. A probe beside which something was brought does not count,
    /// nor do transfers that agree with it, which may be what was brought.
    fn is_lasting(&self) -> bool {
        let Some(first) = self.bandwidth() else { return false };
        let agreeing = || self.readings.iter().filter(|it| agree(first, it.rate));
        let has = |by: By| agreeing().any(|it| it.by == by);
        if has(By::ProbeBeside) && !has(By::Probe) {
            return false;
        }
        let mut at = agreeing().filter(|it| it.by != By::ProbeBeside).map(|it| it.at);
        at.next().zip(at.next_back()).is_some_and(|(last, first)| first + READING <= last)
    }

    /// Whether so many readings agree with the greatest that it is believed: one if others say the same, two in any
    /// case, and all of them if others say that the link is faster. One has to be a probe's: what a transfer has read
    /// both ends know, and while it lasts it may be held back in the same way.
    fn is_agreed(&self, others: Option<u64>) -> bool {
        let Some(first) = self.bandwidth() else { return false };
        let agrees = |it: u64| agree(first, it);
        let needed = match others {
            Some(it) if agrees(it) => 1,
            Some(it) if first < it => READINGS,
            _ => 2,
        };
        let agreeing = || self.readings.iter().filter(|it| agrees(it.rate));
        needed <= agreeing().count() && agreeing().any(|it| it.by != By::Transfer)
    }

    /// The shortest of the last round trips.
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trips.iter().min().copied()
    }

    /// In bytes a second: the greatest of the last readings.
    pub fn bandwidth(&self) -> Option<u64> {
        self.readings.iter().map(|it| it.rate).max()
    }

    /// How long ago it was measured.
    pub fn age(&self, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.measured?))
    }
}

/// What is faster costs an update little, however much faster it is: in bytes a second.
const FAST: u64 = 50_000_000;

/// Whether two readings, in bytes a second, are as good as the same.
fn agree(one: u64, other: u64) -> bool {
    let (one, other) = (one.min(FAST), other.min(FAST));
    one.abs_diff(other) <= one.max(other) / 100 * AGREE_PERCENT
}

fn rate(bytes: u64, took: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000 / took.as_micros().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX).max(1)
}

/// What a member does about measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Call this one, and take its bandwidth too if that is not known well.
    Call {
        /// Its place among those asked about.
        member: usize,
        /// Whether its bandwidth is to be probed.
        probe: bool,
    },
    /// Nobody before then.
    Wait(Duration),
}

/// Somebody who may be measured.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// What is known of the link.
    pub estimate: &'a Estimate,
    /// The bandwidth that the other end says, in bytes a second.
    pub theirs: Option<u64>,
    /// What members have found of the line that the link shares with theirs.
    pub line: Option<u64>,
    /// Not to be probed before then: until then it is another's turn.
    pub probe_from: Duration,
}

impl Candidate<'_> {
    fn wants_probe(self, now: Duration) -> bool {
        self.probe_from <= now && self.estimate.wants_probe(self.theirs, self.line, now)
    }
}

/// Says whom to measure next: those to be probed first, then those never measured, in their order, then whoever was not
/// measured for longest. `all` are all others; `last` is when a measurement last began, all on the member's own clock
/// since its start.
pub fn measure(all: &[Candidate<'_>], last: Option<Duration>, now: Duration) -> Measure {
    let pause = if all.iter().any(|it| it.estimate.measured.is_none()) {
        PAUSE_NEW
    } else if now < YOUNG || all.iter().any(|it| it.wants_probe(now)) {
        PAUSE_YOUNG
    } else {
        PAUSE_OLD
    };
    // With few others, each is left alone for a while all the same.
    let due = last.map_or(Duration::ZERO, |it| it + pause);
    if now < due {
        return Measure::Wait(due);
    }
    let next = all.iter().enumerate().min_by_key(|(_, it)| {
        let measured = it.estimate.measured;
        (!it.wants_probe(now), measured.is_some(), measured)
    });
    match next {
        Some((member, it)) => Measure::Call { member, probe: it.wants_probe(now) },
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
