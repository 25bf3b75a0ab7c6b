//! Change processes of simulated repositories.
//!
//! Source: Adly §3.1 (distinct elements in turn) for [`Process::Even`]; the Poisson model of Cho
//! and Garcia-Molina, with a rate that may depend on the time, for most others.
//!
//! All rates that depend on time are piecewise constant, so changes are drawn, and the expected
//! staleness is computed, without an approximation.
//!
//! # Differences from the paper
//!
//! * The paper assumes constant rates, although its estimator is meant for rates that follow the
//!   day, drift or come in bursts. Those can be simulated here.
//!
//! Sans-I/O.

use std::sync::Arc;

/// Maximum rate, in changes a second (8.6 · 10¹⁰ a day).
pub const RATE_MAX: f64 = 1e6;
/// Maximum mean size of a burst, in changes.
pub const BURST_MAX: f64 = 1e6;
/// Number of steps of a drift, of equal length and equal ratio.
pub const DRIFT_STEPS: f64 = 64.0;
/// Shortest time for which a rate is constant, in seconds.
const PIECE_SECS_MIN: f64 = 1e-6;
/// The latest time, in seconds; later times are treated as this one.
pub const SECS_MAX: f64 = 1e10;
const DAY_SECS: f64 = 86_400.0;

/// One change of a [`Process::Replay`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The time, in seconds of the world's clock.
    pub at: f64,
    /// The element: a number from 0, in order of first changes.
    pub element: u32,
}

/// Process of a repository's changes. Rates are in changes a second, times in seconds of the
/// world's clock; senseless numbers become the nearest sensible one.
#[derive(Clone, Debug, PartialEq)]
pub enum Process {
    /// Random changes, each of a random element.
    Poisson {
        /// The rate λ.
        rate: f64,
    },
    /// Bursts of simultaneous changes of random elements: one element may change twice in a burst.
    Bursty {
        /// The rate λ of changes, not of bursts.
        rate: f64,
        /// Mean number of changes in a burst (geometric distribution), 1 to [`BURST_MAX`].
        burst: f64,
    },
    /// As [`Poisson`](Self::Poisson), with most changes in some hours of the day.
    Daily {
        /// The mean rate λ.
        rate: f64,
        /// Share of the changes that fall into the busy hours, 0 to 1.
        share: f64,
        /// Number of busy hours, 0.1 to 23.9.
        hours: f64,
        /// Begin of the busy hours, in seconds after midnight.
        begin_secs: f64,
    },
    /// As [`Poisson`](Self::Poisson), with a rate that changes by a factor over some time, in
    /// [`DRIFT_STEPS`] steps, and stays there.
    Drifting {
        /// The rate λ before the drift.
        rate: f64,
        /// Rate afterwards divided by rate before; 0 or more.
        factor: f64,
        /// Begin of the drift.
        from: f64,
        /// Duration of the drift, in seconds; 0 for a jump.
        over_secs: f64,
    },
    /// Even changes, of each element in turn; change k is at second (k+½)/λ.
    Even {
        /// The rate λ.
        rate: f64,
    },
    /// Exactly these changes, in order of time.
    Replay(Arc<[Change]>),
}

/// A repository to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct Repository {
    /// Elements N; a repository with 0 elements never changes. For a [`Process::Replay`], the
    /// number at the start, even if the replay does not name them all.
    pub elements: u64,
    /// The process of their changes.
    pub process: Process,
}

impl Repository {
    /// Returns a repository of `elements` elements that change by `process`.
    pub fn new(elements: u64, process: Process) -> Self {
        Self { elements, process }
    }
}

/// A stretch of time with a constant rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    /// Changes a second.
    pub(super) rate: f64,
    /// The end of the stretch, later than the time for which the piece was requested.
    pub(super) until: f64,
}

/// The rate of single random changes over time.
#[derive(Clone, Debug)]
pub(super) struct ChangeRate(Process);

impl ChangeRate {
    /// Returns the rate of a process; 0 if its changes are not random, or come in bursts.
    pub(super) fn new(process: &Process) -> Self {
        Self(match *process {
            Process::Poisson { rate } => Process::Poisson { rate: held(rate, 0.0, RATE_MAX) },
            Process::Daily { rate, share, hours, begin_secs } => Process::Daily {
                rate: held(rate, 0.0, RATE_MAX),
                share: held(share, 0.0, 1.0),
                hours: held(hours, 0.1, 23.9),
                begin_secs: held(begin_secs.rem_euclid(DAY_SECS), 0.0, DAY_SECS),
            },
            Process::Drifting { rate, factor, from, over_secs } => Process::Drifting {
                rate: held(rate, 0.0, RATE_MAX),
                factor: held(factor, 0.0, 1e12),
                from: held(from, -SECS_MAX, SECS_MAX),
                over_secs: held(over_secs, 0.0, SECS_MAX),
            },
            Process::Bursty { .. } | Process::Even { .. } | Process::Replay(_) => {
                Process::Poisson { rate: 0.0 }
            }
        })
    }

    /// Returns the rate at `at`, and the time until which it is constant.
    pub(super) fn piece(&self, at: f64) -> Piece {
        let Piece { rate, until } = match self.0 {
            Process::Daily { rate, share, hours, begin_secs } => {
                let begin = begin_secs + DAY_SECS * ((at - begin_secs) / DAY_SECS).floor();
                let end = begin + hours * 3_600.0;
                if at < end {
                    Piece { rate: 24.0 * rate * share / hours, until: end }
                } else {
                    let rate = 24.0 * rate * (1.0 - share) / (24.0 - hours);
                    Piece { rate, until: begin + DAY_SECS }
                }
            }
            Process::Drifting { rate, factor, from, over_secs } => {
                drifting(rate, factor, (from, over_secs), at)
            }
            Process::Poisson { rate } => Piece { rate, until: f64::INFINITY },
            Process::Bursty { .. } | Process::Even { .. } | Process::Replay(_) => {
                Piece { rate: 0.0, until: f64::INFINITY }
            }
        };
        // Rounding must not make a piece of no length, or almost none: near 0, where floating-point
        // numbers are dense, there would be too many such pieces.
        let least = (at + PIECE_SECS_MIN).max(at.next_up());
        Piece { rate: rate.min(RATE_MAX), until: until.max(least) }
    }
}

fn drifting(rate: f64, factor: f64, (from, over_secs): (f64, f64), at: f64) -> Piece {
    if at < from {
        return Piece { rate, until: from };
    }
    let step_secs = over_secs / DRIFT_STEPS;
    let step = ((at - from) / step_secs).floor();
    if step < DRIFT_STEPS {
        let until = from + (step + 1.0) * step_secs;
        Piece { rate: rate * factor.powf((step + 0.5) / DRIFT_STEPS), until }
    } else {
        Piece { rate: rate * factor, until: f64::INFINITY }
    }
}

/// Clamps a number to `min` and `max`; NaN becomes 0, clamped.
pub(super) fn held(number: f64, min: f64, max: f64) -> f64 {
    if number.is_nan() { 0.0_f64.clamp(min, max) } else { number.clamp(min, max) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_that_begins_almost_at_midnight_passes() {
        let process = Process::Daily { rate: 1.0, share: 0.9, hours: 10.0, begin_secs: 1e-310 };
        let (rate, mut at, mut pieces) = (ChangeRate::new(&process), 0.0, 0);
        while at < DAY_SECS {
            at = rate.piece(at).until;
            pieces += 1;
        }
        assert!(pieces < 10, "{pieces}");
    }

    fn check(process: &Process, at: f64, rate: f64, until: f64) {
        let found = ChangeRate::new(process).piece(at);
        assert!((found.rate - rate).abs() < 1e-12 * rate, "{found:?}, not {rate}");
        let off = if until.is_finite() { found.until - until } else { 1.0 / found.until };
        assert!(off.abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_day_has_two_rates() {
        let daily = Process::Daily { rate: 1.0, share: 0.9, hours: 10.0, begin_secs: 28_800.0 };
        check(&daily, 28_800.0, 2.16, 64_800.0);
        check(&daily, 64_800.0, 2.4 / 14.0, 115_200.0);
        check(&daily, 0.0, 2.4 / 14.0, 28_800.0);
        check(&daily, 86_400.0 * 20_000.0 + 30_000.0, 2.16, 86_400.0 * 20_000.0 + 64_800.0);
    }

    #[test]
    fn a_drift_ends_at_its_factor() {
        let drift = Process::Drifting { rate: 2.0, factor: 4.0, from: 100.0, over_secs: 64.0 };
        check(&drift, 0.0, 2.0, 100.0);
        check(&drift, 132.5, 2.0 * 4.0_f64.powf(32.5 / 64.0), 133.0);
        check(&drift, 164.0, 8.0, f64::INFINITY);
        let jump = Process::Drifting { rate: 2.0, factor: 0.0, from: 100.0, over_secs: 0.0 };
        assert_eq!(ChangeRate::new(&jump).piece(100.0), Piece { rate: 0.0, until: f64::INFINITY });
    }
}
