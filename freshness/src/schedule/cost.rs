//! What a pull costs by itself, told apart from what its changes cost.
//!
//! Source: Adly §3.2, eq. 2: each update costs C_U and each pull C_P beside. All that is seen of either is
//! how long a pull takes. Over the pulls of one source that is a straight line, whose slope is the time of a
//! change and whose height is the pull's own.
//!
//! # Differences from the paper
//!
//! * The paper sets C_P, one for all. Here it is measured, each source's for itself, in pulls: a pull is a
//!   request, which costs 1, and each [`PULL_COST_SECS`] more that it keeps the source and us busy costs
//!   another. So quick sources all cost about 1, and their intervals have no noise of it.
//! * The slope is the same for all sources, their changes being handled by the same harvester; what one
//!   has above it counts as its own. It is fitted to how the pulls of each source differ from their own
//!   mean: a line through all of them would mistake a source that is slow, and is therefore pulled more
//!   seldom for more changes at once, for one whose changes take long.
//! * No more is taken off a pull than chance could not have done: the slope counts less two of its
//!   standard errors. Few pulls, and pulls that all bring the same, have none.
//!
//! Sans-I/O.

use super::narrowed;

/// Time beside that of its changes in which a pull costs as much again as the request itself, seconds.
pub const PULL_COST_SECS: f64 = 1.0;

/// Longest time that a pull is believed to take, seconds (a day).
const TOOK_SECS_MAX: f64 = 86_400.0;

/// Most changes that a pull is believed to bring: more count as so many, and what is stored above it is no
/// number of changes.
const CHANGES_MAX: f64 = 1e6;

/// About how many pulls the line remembers.
const PULLS_MAX: f64 = 1_000.0;

/// Standard errors by which the slope is held low.
const ERRORS: f64 = 2.0;

/// Changes by which a pull has to differ from the mean to say anything.
const CHANGES_OFF_MIN: f64 = 0.5;

/// The time of a change, over the pulls of all sources: decayed sums of how each pull is off the mean of
/// its source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    /// Σ changes · time.
    both: f64,
    /// Σ changes².
    changes: f64,
    /// Σ time².
    secs: f64,
    /// Σ 1.
    pulls: f64,
}

impl Line {
    /// Takes in a pull that was off the mean of its source by so many changes and so many seconds.
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

    /// Takes in what was known of a source before a restart: its means, and the overhead that was found.
    pub(super) fn handle_known(&mut self, took: Took, overhead_secs: f64) {
        let Some(changes) = took.changes() else { return };
        let secs = f64::from(took.secs) - overhead_secs;
        if 0.0 < secs && secs <= TOOK_SECS_MAX {
            self.handle(changes, secs);
        }
    }

    /// What a change takes at least, seconds; finite, not negative.
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

/// What the pulls of one source take and bring: decayed means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Took {
    secs: f32,
    /// Below 0 before the first pull that was measured.
    changes: f32,
}

impl Took {
    /// From stored numbers, which may be any: changes that no pull brings are not known.
    pub(super) fn new(secs: f64, changes: Option<f64>) -> Self {
        let changes = changes.filter(|it| (0.0..=CHANGES_MAX).contains(it)).map_or(-1.0, narrowed);
        Self { secs: narrowed(held(secs)), changes }
    }

    /// Takes in a pull.
    pub(super) fn handle(&mut self, secs: f64, changes: u64, gain: f64, line: &mut Line) {
        let (secs, changes) = (held(secs), (changes as f64).min(CHANGES_MAX));
        let Some(mean) = self.changes() else {
            *self = Self::new(secs, Some(changes));
            return;
        };
        let off = (changes - mean, secs - self.secs());
        line.handle(off.0, off.1);
        *self = Self::new(self.secs() + gain * off.1, Some(mean + gain * off.0));
    }

    /// How long a pull takes, seconds.
    pub(super) fn secs(self) -> f64 {
        f64::from(self.secs)
    }

    /// How many changes a pull brings; `None` before one was measured.
    pub(super) fn changes(self) -> Option<f64> {
        (0.0 <= self.changes).then(|| f64::from(self.changes))
    }

    /// How long a pull takes without its changes, seconds.
    pub(super) fn overhead_secs(self, line: &Line) -> f64 {
        (self.secs() - line.secs_a_change() * self.changes().unwrap_or_default()).max(0.0)
    }

    /// C_P, in requests; at least 1.
    pub(super) fn pull_cost(self, line: &Line) -> f64 {
        1.0 + self.overhead_secs(line) / PULL_COST_SECS
    }
}

/// A time that a pull may have taken, in seconds; 0 for what is no number.
fn held(secs: f64) -> f64 {
    if secs.is_nan() { 0.0 } else { secs.clamp(0.0, TOOK_SECS_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pulls of two sources with so many changes each, of which the second takes `extra` seconds more,
    /// and the overheads that are found.
    fn check(pulls: &[(u64, u64)], secs_a_change: f64, extra: f64, expected: (f64, f64)) {
        let mut line = Line::default();
        let (mut one, mut other) = (Took::new(0.0, None), Took::new(0.0, None));
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
    fn the_time_of_changes_is_no_part_of_the_overhead() {
        let pulls: Vec<(u64, u64)> = (0..200).map(|it| (it * 7 % 11, 20 + it * 5 % 23)).collect();
        check(&pulls, 0.0, 8.0, (0.5, 8.5));
        check(&pulls, 0.3, 0.0, (0.5, 0.5));
        // More changes go with more overhead, and are not taken for its cause.
        check(&pulls, 0.3, 8.0, (0.5, 8.5));
    }

    #[test]
    fn pulls_that_are_few_or_alike_leave_the_time_where_it_is() {
        check(&[(5, 50); 100], 0.1, 0.0, (1.0, 5.5));
        check(&[(5, 50), (6, 60)], 0.1, 0.0, (1.025, 5.75));
    }

    /// Of a line that was learned, nothing is lost to notes that cannot be, or that hold no changes.
    #[test]
    fn notes_that_say_nothing_leave_the_line_alone() {
        let mut line = Line::default();
        for changes in 1..100_u32 {
            line.handle_known(Took::new(0.3 * f64::from(changes), Some(changes.into())), 0.0);
        }
        let before = line.secs_a_change();
        assert!((before - 0.3).abs() < 1e-6, "{before}");
        for changes in [None, Some(-5.0), Some(1e300), Some(f64::INFINITY), Some(f64::NAN)] {
            line.handle_known(Took::new(60.0, changes), 0.5);
        }
        assert!((line.secs_a_change() - before).abs() < 1e-12, "{}", line.secs_a_change());
    }

    #[test]
    fn any_numbers_give_a_cost() {
        let mut line = Line::default();
        for secs in [f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0] {
            for changes in [0, 1, u64::MAX] {
                let mut took = Took::new(secs, Some(secs));
                line.handle_known(took, secs);
                took.handle(secs, changes, 0.25, &mut line);
                let cost = took.pull_cost(&line);
                assert!((1.0..=1.0 + TOOK_SECS_MAX).contains(&cost), "{secs} {changes}: {cost}");
            }
        }
    }
}
