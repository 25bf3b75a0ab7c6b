//! Cost of a pull itself, separated from the cost of its changes.
//!
//! Source: Adly §3.2, eq. 2: each update costs C_U, and each pull C_P in addition. The only
//! measurement is the duration of a pull. Plotted against the number of changes, the durations of
//! one source's pulls form a straight line: its slope is the time of a change, and its value at 0
//! changes is the pull's own time.
//!
//! # Differences from the paper
//!
//! * The paper sets one C_P for all sources. Here it is measured for each source, in pulls: a pull
//!   is a request, which costs 1, and each further [`PULL_COST_SECS`] that it keeps the source and
//!   us busy costs 1 more. So fast sources all cost about 1, and the measurement adds no noise to
//!   their intervals.
//! * The slope is the same for all sources, since one harvester handles their changes; time above
//!   it counts as the source's own. It is fitted to the deviations of each source's pulls from
//!   their own mean. A line through all pulls would confuse two things: a slow source is pulled
//!   more rarely and so brings more changes at once, which would look as if its changes took long.
//! * Only the time that is certain is subtracted from a pull: the slope less two of its standard
//!   errors. Few pulls, or pulls that all bring the same, have no certain slope.
//!
//! Sans-I/O.

use super::narrowed;

/// Time of a pull, without the time of its changes, that costs as much as one request, seconds.
pub const PULL_COST_SECS: f64 = 1.0;

/// Maximum duration of a pull, seconds (a day); longer ones are treated as this one.
const TOOK_SECS_MAX: f64 = 86_400.0;

/// Maximum number of changes of a pull; larger ones are treated as this one, and larger stored
/// numbers are invalid.
const CHANGES_MAX: f64 = 1e6;

/// Approximate number of pulls that the line remembers.
const PULLS_MAX: f64 = 1_000.0;

/// Number of standard errors by which the slope is reduced.
const ERRORS: f64 = 2.0;

/// Minimum difference from the mean, in changes, of a pull from which the line learns.
const CHANGES_OFF_MIN: f64 = 0.5;

/// The time of a change, over the pulls of all sources: decayed sums of the pulls' deviations from
/// the mean of their source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CostLine {
    /// Σ changes · time.
    both: f64,
    /// Σ changes².
    changes: f64,
    /// Σ time².
    secs: f64,
    /// Σ 1.
    pulls: f64,
}

impl CostLine {
    /// Learns from a pull's deviation from the mean of its source, in changes and seconds.
    fn handle(&mut self, changes: f64, secs: f64) {
        if changes.abs() < CHANGES_OFF_MIN {
            return;
        }
        let keep = 1.0 - PULLS_MAX.recip();
        self.both = keep * self.both + changes * secs;
        self.changes = keep * self.changes + changes * changes;
        self.secs = keep * self.secs + secs * secs;
        self.pulls = keep * self.pulls + 1.0;
    }

    /// Learns from a source's means and overhead before a restart.
    pub(super) fn handle_note(&mut self, took: PullMeans, overhead_secs: f64) {
        let Some(changes) = took.changes() else { return };
        let secs = f64::from(took.secs) - overhead_secs;
        if 0.0 < secs && secs <= TOOK_SECS_MAX {
            self.handle(changes, secs);
        }
    }

    /// Returns the time that a change certainly takes, seconds; finite, not negative.
    fn secs_a_change(&self) -> f64 {
        if self.pulls <= 2.0 {
            return 0.0;
        }
        let slope = self.both / self.changes;
        let scattered = (self.secs / self.changes - slope * slope).max(0.0);
        let error = (scattered / (self.pulls - 2.0)).sqrt();
        (slope - ERRORS * error).max(0.0)
    }
}

/// Duration and changes of one source's pulls: decayed means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PullMeans {
    secs: f32,
    /// Below 0 before the first pull that was measured.
    changes: f32,
}

impl PullMeans {
    /// Makes means from stored numbers, which may be any; impossible changes count as unknown.
    pub(super) fn new(secs: f64, changes: Option<f64>) -> Self {
        let changes = changes.filter(|it| (0.0..=CHANGES_MAX).contains(it)).map_or(-1.0, narrowed);
        Self { secs: narrowed(held(secs)), changes }
    }

    pub(super) fn handle(&mut self, secs: f64, changes: u64, gain: f64, line: &mut CostLine) {
        let (secs, changes) = (held(secs), (changes as f64).min(CHANGES_MAX));
        let Some(mean) = self.changes() else {
            *self = Self::new(secs, Some(changes));
            return;
        };
        let off = (changes - mean, secs - self.secs());
        line.handle(off.0, off.1);
        *self = Self::new(self.secs() + gain * off.1, Some(mean + gain * off.0));
    }

    pub(super) fn secs(self) -> f64 {
        f64::from(self.secs)
    }

    /// Returns the changes of a pull; `None` before one was measured.
    pub(super) fn changes(self) -> Option<f64> {
        (0.0 <= self.changes).then(|| f64::from(self.changes))
    }

    /// Returns the duration of a pull without its changes, seconds.
    pub(super) fn overhead_secs(self, line: &CostLine) -> f64 {
        (self.secs() - line.secs_a_change() * self.changes().unwrap_or_default()).max(0.0)
    }

    /// Returns C_P, in requests; at least 1.
    pub(super) fn pull_cost(self, line: &CostLine) -> f64 {
        1.0 + self.overhead_secs(line) / PULL_COST_SECS
    }
}

/// Clamps the duration of a pull, in seconds; 0 for NaN.
fn held(secs: f64) -> f64 {
    if secs.is_nan() { 0.0 } else { secs.clamp(0.0, TOOK_SECS_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pulls two sources with these numbers of changes, of which the second takes `extra` seconds
    /// more, and checks their overheads.
    fn check(pulls: &[(u64, u64)], secs_a_change: f64, extra: f64, expected: (f64, f64)) {
        let mut line = CostLine::default();
        let (mut one, mut other) = (PullMeans::new(0.0, None), PullMeans::new(0.0, None));
        for (few, many) in pulls {
            let took = |changes: u64, own: f64| own + secs_a_change * changes as f64;
            one.handle(took(*few, 0.5), *few, 0.25, &mut line);
            other.handle(took(*many, 0.5 + extra), *many, 0.25, &mut line);
        }
        let found = (one.overhead_secs(&line), other.overhead_secs(&line));
        let close = |found: f64, expected: f64| (found - expected).abs() < 1e-3 * (1.0 + expected);
        assert!(close(found.0, expected.0) && close(found.1, expected.1), "{found:?}");
    }

    #[test]
    fn the_time_of_changes_is_not_overhead() {
        let pulls: Vec<(u64, u64)> = (0..200).map(|it| (it * 7 % 11, 20 + it * 5 % 23)).collect();
        check(&pulls, 0.0, 8.0, (0.5, 8.5));
        check(&pulls, 0.3, 0.0, (0.5, 0.5));
        // The source with more changes has more overhead; its changes do not count as the cause.
        check(&pulls, 0.3, 8.0, (0.5, 8.5));
    }

    #[test]
    fn few_or_equal_pulls_subtract_no_time_of_changes() {
        check(&[(5, 50); 100], 0.1, 0.0, (1.0, 5.5));
        check(&[(5, 50), (6, 60)], 0.1, 0.0, (1.025, 5.75));
    }

    /// A learned line is not changed by impossible notes, or by notes without changes.
    #[test]
    fn useless_notes_leave_the_line_alone() {
        let mut line = CostLine::default();
        for changes in 1..100_u32 {
            line.handle_note(PullMeans::new(0.3 * f64::from(changes), Some(changes.into())), 0.0);
        }
        let before = line.secs_a_change();
        assert!((before - 0.3).abs() < 1e-6, "{before}");
        for changes in [None, Some(-5.0), Some(1e300), Some(f64::INFINITY), Some(f64::NAN)] {
            line.handle_note(PullMeans::new(60.0, changes), 0.5);
        }
        assert!((line.secs_a_change() - before).abs() < 1e-12, "{}", line.secs_a_change());
    }

    #[test]
    fn any_numbers_give_a_cost() {
        let mut line = CostLine::default();
        for secs in [f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0] {
            for changes in [0, 1, u64::MAX] {
                let mut took = PullMeans::new(secs, Some(secs));
                line.handle_note(took, secs);
                took.handle(secs, changes, 0.25, &mut line);
                let cost = took.pull_cost(&line);
                assert!((1.0..=1.0 + TOOK_SECS_MAX).contains(&cost), "{secs} {changes}: {cost}");
            }
        }
    }
}
