//! Estimates of the links between members: round trips and bandwidths, measured, aged and encoded.
//!
//! Source: TR §8 (null UDP calls and 64 KB blocks over TCP, frequent in the first hour, flooded).
//!
//! # Differences from the paper
//!
//! * Bandwidth is read off the usual transfers. Only links without transfers are probed, and links
//!   whose readings at both ends do not agree.
//! * The probe doubles its block on a warm connection until a block takes long enough to measure
//!   ([`Probe`]), and subtracts the round trip. The paper's 64 KB on a new connection take several
//!   round trips while the window opens: with a round trip of 40 ms they show 2.6 Mbit/s on a link
//!   of 50 Mbit/s (`tests/paper/tr_probe.rs`).
//! * The round trip is the shortest of the last few, because queues only add to it. The bandwidth
//!   is the greatest of the last few readings, because other traffic only takes from it. So a
//!   single transfer that something else held back does not lower it.
//! * Members of two sites share the line between the sites. They probe it in turns
//!   ([`Sites::turn`]); once three agree on its bandwidth, all use it ([`Lines`]). A line costs
//!   three or four probes, however many members use it.
//! * Estimates age: a link that was not measured for [`LIFE`] is not used in the topology.
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
pub use row::{LinkEstimate, Row};

use crate::topology::{Costs, UNREACHABLE, cost};

/// Lifetime of an estimate that is not renewed.
pub const LIFE: Duration = Duration::from_hours(24);
/// Time after its start in which a member measures often.
pub const YOUNG: Duration = Duration::from_hours(1);
/// Pause between two measurements while some member was never called.
pub const PAUSE_NEW: Duration = Duration::from_secs(1);
/// The pause while the member is young or wants to probe a link. Probes keep at least this pause.
pub const PAUSE_YOUNG: Duration = Duration::from_secs(5);
/// The pause in all other cases.
pub const PAUSE_OLD: Duration = Duration::from_mins(4);

/// Number of round trips remembered.
const ROUND_TRIPS: usize = 8;
/// Number of bandwidth readings remembered. After this many lower ones the link counts as slower.
const READINGS: usize = 4;
/// A transfer within this time after a transfer's reading only raises that reading, and makes no
/// new one: the same obstacle may slow down both.
const READING: Duration = Duration::from_mins(1);
/// Two readings agree if they differ by at most this share of the greater, in hundredths.
const AGREE_PERCENT: u64 = 10;
/// A link whose readings agree is probed again after this time without a reading.
const PROBE_AGAIN: Duration = Duration::from_hours(12);
/// A link whose readings agree is probed once more this time after the last: when a group has just
/// met, the same traffic may have lowered all readings. A probe amid cross traffic is not enough.
const PROBE_ONCE_MORE: Duration = Duration::from_mins(3);
/// Pause after the first probe of a link. By its end the link's other end has flooded its result.
/// The pause doubles with each probe after which no readings agree.
const PROBE_PAUSE: Duration = Duration::from_secs(40);
/// Maximum number of times that [`PROBE_PAUSE`] doubles.
const PROBE_DOUBLINGS_MAX: u32 = 4;
/// Transfers of fewer bytes give no reading.
const TRANSFER_BYTES_MIN: u64 = 128 << 10;
/// Shorter transfers give no reading: bytes from a buffer come faster than the link carries them.
const TRANSFER_MIN: Duration = Duration::from_secs(1);
/// Transfers of fewer round trips give no reading: the window was still opening.
const TRANSFER_ROUND_TRIPS_MIN: u32 = 8;

/// One member's measurements of its link to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The last round trips, the newest first.
    round_trips: Vec<Duration>,
    /// The last readings of the bandwidth, the newest first.
    readings: Vec<Reading>,
    /// When the last probe was begun.
    probed: Option<Duration>,
    /// Number of probes since the readings last agreed, at most [`PROBE_DOUBLINGS_MAX`] and one.
    probes: u32,
    /// When the link was last measured, on the member's own clock since its start.
    measured: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    /// Bytes a second, never 0.
    rate: u64,
    at: Duration,
    by: Method,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Transfer,
    Probe,
    /// A probe amid cross traffic, which measured what that traffic left of the line.
    ProbeAmidTraffic,
}

impl Estimate {
    /// Takes in the round trip of a null call.
    pub fn handle_round_trip(&mut self, took: Duration, now: Duration) {
        self.round_trips.insert(0, took.max(Duration::from_micros(1)));
        self.round_trips.truncate(ROUND_TRIPS);
        self.measured = Some(now);
    }

    /// Takes in a transfer that only the link slowed down. Too small or too short ones are ignored.
    pub fn handle_transfer(&mut self, bytes: u64, took: Duration, now: Duration) {
        let round_trip = self.round_trip().unwrap_or_default();
        let least = TRANSFER_MIN.max(round_trip * TRANSFER_ROUND_TRIPS_MIN);
        if bytes < TRANSFER_BYTES_MIN || took < least {
            return;
        }
        let found = rate(bytes, took);
        match self.readings.first_mut() {
            Some(it) if it.by == Method::Transfer && now < it.at + READING => {
                it.rate = it.rate.max(found);
            }
            _ => self.readings.insert(0, Reading { rate: found, at: now, by: Method::Transfer }),
        }
        self.handle_reading(now);
    }

    /// Takes in the bandwidth that a [`Probe`] measured, in bytes a second. `has_cross_traffic`:
    /// the line carried other traffic meanwhile.
    pub fn handle_probe(&mut self, bandwidth: u64, has_cross_traffic: bool, now: Duration) {
        let by = if has_cross_traffic { Method::ProbeAmidTraffic } else { Method::Probe };
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

    /// Notes that a probe begins now.
    pub fn handle_probing(&mut self, now: Duration) {
        self.probed = Some(now);
        self.probes = self.probes.saturating_add(1).min(PROBE_DOUBLINGS_MAX + 1);
    }

    /// Returns whether a probe is useful and not too soon after the last. `theirs` is the bandwidth
    /// that the other end reports, `line` the one that members agree on for the two sites' line.
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

    /// Returns whether the link has carried the same bandwidth at two times, [`READING`] apart. A
    /// probe amid cross traffic does not count. Transfers that agree with such a probe count only
    /// if another probe agrees too: they may be that traffic.
    fn is_lasting(&self) -> bool {
        let Some(first) = self.bandwidth() else { return false };
        let agreeing = || self.readings.iter().filter(|it| agree(first, it.rate));
        let has = |by: Method| agreeing().any(|it| it.by == by);
        if has(Method::ProbeAmidTraffic) && !has(Method::Probe) {
            return false;
        }
        let mut at = agreeing().filter(|it| it.by != Method::ProbeAmidTraffic).map(|it| it.at);
        at.next().zip(at.next_back()).is_some_and(|(last, first)| first + READING <= last)
    }

    /// Returns whether enough readings agree with the greatest, itself included: one if others
    /// report the same, all [`READINGS`] if others report a faster link, else two. One has to be a
    /// probe's, because both ends read the same transfers, and one obstacle may slow all of them.
    fn is_agreed(&self, others: Option<u64>) -> bool {
        let Some(first) = self.bandwidth() else { return false };
        let agrees = |it: u64| agree(first, it);
        let needed = match others {
            Some(it) if agrees(it) => 1,
            Some(it) if first < it => READINGS,
            _ => 2,
        };
        let agreeing = || self.readings.iter().filter(|it| agrees(it.rate));
        needed <= agreeing().count() && agreeing().any(|it| it.by != Method::Transfer)
    }

    /// Returns the shortest of the last round trips.
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trips.iter().min().copied()
    }

    /// Returns the greatest of the last readings, in bytes a second.
    pub fn bandwidth(&self) -> Option<u64> {
        self.readings.iter().map(|it| it.rate).max()
    }

    /// Returns the time since the last measurement.
    pub fn age(&self, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.measured?))
    }
}

/// Greater bandwidths count as this one, in bytes a second: updates cost little on such links.
const FAST: u64 = 50_000_000;

/// Returns whether two readings, in bytes a second, differ by at most [`AGREE_PERCENT`].
fn agree(one: u64, other: u64) -> bool {
    let (one, other) = (one.min(FAST), other.min(FAST));
    one.abs_diff(other) <= one.max(other) / 100 * AGREE_PERCENT
}

fn rate(bytes: u64, took: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000 / took.as_micros().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX).max(1)
}

/// A member's next step in measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Call this member.
    Call {
        /// Its index among the candidates.
        member: usize,
        /// Whether to probe the bandwidth too.
        probe: bool,
    },
    /// Call nobody before this time.
    Wait(Duration),
}

/// A member that may be measured.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The estimate of the link to it.
    pub estimate: &'a Estimate,
    /// The bandwidth that the other end reports, in bytes a second.
    pub theirs: Option<u64>,
    /// The bandwidth that members found for the line between the two sites, in bytes a second.
    pub line: Option<u64>,
    /// The earliest time for a probe: before it, other members have their turn.
    pub probe_from: Duration,
}

impl Candidate<'_> {
    fn wants_probe(self, now: Duration) -> bool {
        self.probe_from <= now && self.estimate.wants_probe(self.theirs, self.line, now)
    }
}

/// Returns whom to measure next: first a member to probe, then one that was never measured, then
/// the one whose measurement is oldest. `all` are all other members; `last` is when a measurement
/// last began. All times are on the member's own clock since its start.
pub fn measure(all: &[Candidate<'_>], last: Option<Duration>, now: Duration) -> Measure {
    let pause = if all.iter().any(|it| it.estimate.measured.is_none()) {
        PAUSE_NEW
    } else if now < YOUNG || all.iter().any(|it| it.wants_probe(now)) {
        PAUSE_YOUNG
    } else {
        PAUSE_OLD
    };
    // The pause also holds in small groups.
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

/// Returns the costs of links between `members` for updates of `bytes`, from the members' rows. If
/// both ends report their link, the worse report counts, because updates may go either way. Ignored
/// are rows and entries of others, and entries that are too old ([`LIFE`]) or lack a number.
pub fn costs(members: &[u64], rows: &[Row], bytes: u64) -> Costs {
    let mut costs = Costs::new(members.len());
    let positions: HashMap<u64, usize> =
        members.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    for row in rows {
        let Some(&from) = positions.get(&row.from) else { continue };
        for entry in row.entries.iter().filter(|it| it.age() < LIFE) {
            let Some(&to) = positions.get(&entry.to) else { continue };
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
