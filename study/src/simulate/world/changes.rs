//! Change processes of simulated repositories.
//!
//! Source: Adly §3.1 (distinct elements in turn) for [`Process::Even`]; the Poisson model of Cho
//! and Garcia-Molina, with a rate that may depend on the time, for most others.
//!
//! All rates that depend on time are piecewise constant, so changes are drawn, and the expected staleness is
//! computed, without an approximation.
//!
//! # Differences from the paper
//!
//! * The paper assumes constant rates, although its estimator is meant for rates that follow the
//!   day, drift or come in bursts. Those can be simulated here.
//!
//! Sans-I/O.

use std::sync::Arc;

/// Largest rate that is simulated, in changes a second (8.6 · 10¹⁰ a day).
pub const RATE_MAX: f64 = 1e6;
/// Largest mean size of a burst, in changes.
pub const BURST_MAX: f64 = 1e6;
/// Number of steps of a drift, of equal length and equal ratio.
pub const DRIFT_STEPS: f64 = 64.0;
/// Shortest time for which a rate is constant, in seconds.
const PIECE_SECS_MIN: f64 = 1e-6;
/// The latest moment, in seconds; later ones count as this.
pub const SECS_MAX: f64 = 1e10;
/// A day, in seconds.
const DAY_SECS: f64 = 86_400.0;

/// One change of a [`Process::Replay`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The time, in seconds of the world's clock.
    pub at: f64,
    /// The element: a number from 0, in order of first changes.
    pub element: u32,
}

/// Number of changes in a burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Burst {
    /// This number, rounded.
    Fixed(f64),
    /// This number on average, at least one, geometrically distributed.
    Geometric(f64),
}

/// Process of a repository's changes. Rates are in changes a second, times in seconds of the world's clock;
/// senseless numbers count as the nearest sensible one.
#[derive(Clone, Debug, PartialEq)]
pub enum Process {
    /// Random changes, each of a random element.
    Poisson {
        /// The rate λ.
        rate: f64,
    },
    /// Random bursts of changes at one moment, each of a random element: one element may change twice in a burst.
    Bursty {
        /// The rate λ of changes, not of bursts.
        rate: f64,
        /// The number of changes in a burst, 1 to [`BURST_MAX`].
        burst: Burst,
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
        /// The rate λ before.
        rate: f64,
        /// Rate afterwards over rate before; 0 or more.
        factor: f64,
        /// Begin of the drift.
        from: f64,
        /// Duration of the drift, in seconds; 0 for a jump.
        over_secs: f64,
    },
    /// Even changes, of each element in turn. Change k is at second (k+½)/λ, so eq. 1 holds exactly
    /// for pulls after every whole number of changes.
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
    /// Elements N at the start; a repository with 0 elements never changes. For a
    /// [`Process::Replay`], the number of elements, even if the replay does not name them all.
    pub elements: u64,
    /// The process of their changes.
    pub process: Process,
    /// Elements created (above 0) or deleted (below 0) a second, at even distances, in addition to the process and
    /// counted as changes. Not used for [`Process::Even`] and [`Process::Replay`].
    pub growth: f64,
    /// Time from which nothing changes; infinite for never.
    pub silent_from: f64,
}

impl Repository {
    /// Returns a repository that keeps its size and is never silent.
    pub fn new(elements: u64, process: Process) -> Self {
        Self { elements, process, growth: 0.0, silent_from: f64::INFINITY }
    }
}

/// A stretch of time with a constant rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    /// Epochs a second: changes, or bursts.
    pub(super) rate: f64,
    /// The end of the stretch, later than the time for which the piece was requested.
    pub(super) until: f64,
}

/// Epochs (changes or bursts) of a random process: stretches of time with constant rates.
#[derive(Clone, Debug)]
pub(super) struct Epochs {
    process: Process,
    silent_from: f64,
}

impl Epochs {
    /// Returns the epochs of a repository; none if its process is not random.
    pub(super) fn new(repository: &Repository) -> Self {
        let process = match repository.process.clone() {
            Process::Even { .. } | Process::Replay(_) => Process::Poisson { rate: 0.0 },
            Process::Poisson { rate } => Process::Poisson { rate: held(rate, 0.0, RATE_MAX) },
            Process::Bursty { rate, burst } => {
                let (rate, burst) = (held(rate, 0.0, RATE_MAX), burst.held());
                Process::Bursty { rate: rate / burst.mean(), burst }
            }
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
        };
        let silent_from = repository.silent_from;
        let silent_from = if silent_from.is_nan() { f64::INFINITY } else { silent_from };
        let epochs = Self { process, silent_from };
        if epochs.rate_max() <= 0.0 {
            // Nothing ever changes, so no days have to be searched.
            return Self { process: Process::Poisson { rate: 0.0 }, ..epochs };
        }
        epochs
    }

    /// Returns the highest rate at any time, in epochs a second.
    pub(super) fn rate_max(&self) -> f64 {
        match self.process {
            Process::Poisson { rate } | Process::Bursty { rate, .. } => rate,
            Process::Daily { rate, share, hours, .. } => {
                24.0 * rate * (share / hours).max((1.0 - share) / (24.0 - hours))
            }
            Process::Drifting { rate, factor, .. } => (rate * factor.max(1.0)).min(RATE_MAX),
            Process::Even { .. } | Process::Replay(_) => 0.0,
        }
    }

    /// Returns the number of changes that come at once.
    pub(super) fn burst(&self) -> Burst {
        match self.process {
            Process::Bursty { burst, .. } => burst,
            _ => Burst::Fixed(1.0),
        }
    }

    /// Returns the rate at `at`, and its end.
    pub(super) fn piece(&self, at: f64) -> Piece {
        if self.silent_from <= at {
            return Piece { rate: 0.0, until: f64::INFINITY };
        }
        let Piece { rate, until } = match self.process {
            Process::Poisson { rate } | Process::Bursty { rate, .. } => {
                Piece { rate, until: f64::INFINITY }
            }
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
            Process::Even { .. } | Process::Replay(_) => Piece { rate: 0.0, until: f64::INFINITY },
        };
        // Rounding must not make a piece of no length, or almost none: near 0, where floating-point
        // numbers are dense, there would be too many such pieces.
        let least = (at + PIECE_SECS_MIN).max(at.next_up());
        Piece { rate: rate.min(RATE_MAX), until: until.min(self.silent_from).max(least) }
    }

    /// Returns the moment after `at` by which `expected` more epochs are expected; infinite if that
    /// is after [`SECS_MAX`]. `piece` is the piece of an earlier time, and becomes the piece of the
    /// returned moment.
    pub(super) fn after(&self, at: f64, expected: f64, piece: &mut Piece) -> f64 {
        let (mut at, mut left) = (at, expected);
        while at <= SECS_MAX {
            if piece.until <= at {
                *piece = self.piece(at);
            }
            if 0.0 < piece.rate {
                let here = piece.rate * (piece.until - at);
                if left <= here {
                    return at + left / piece.rate;
                }
                left -= here;
            }
            at = piece.until;
        }
        f64::INFINITY
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

impl Burst {
    fn mean(self) -> f64 {
        let (Self::Fixed(mean) | Self::Geometric(mean)) = self;
        mean
    }

    fn held(self) -> Self {
        match self {
            Self::Fixed(size) => Self::Fixed(held(size, 1.0, BURST_MAX).round()),
            Self::Geometric(mean) => Self::Geometric(held(mean, 1.0, BURST_MAX)),
        }
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
        let (epochs, mut at, mut pieces) = (epochs(process), 0.0, 0);
        while at < DAY_SECS {
            at = epochs.piece(at).until;
            pieces += 1;
        }
        assert!(pieces < 10, "{pieces}");
    }

    fn epochs(process: Process) -> Epochs {
        Epochs::new(&Repository::new(10, process))
    }

    fn check(process: Process, at: f64, rate: f64, until: f64) {
        let found = epochs(process).piece(at);
        assert!((found.rate - rate).abs() < 1e-12 * rate, "{found:?}, not {rate}");
        let off = if until.is_finite() { found.until - until } else { 1.0 / found.until };
        assert!(off.abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_day_has_two_rates() {
        let daily = || Process::Daily { rate: 1.0, share: 0.9, hours: 10.0, begin_secs: 28_800.0 };
        check(daily(), 28_800.0, 2.16, 64_800.0);
        check(daily(), 64_800.0, 2.4 / 14.0, 115_200.0);
        check(daily(), 0.0, 2.4 / 14.0, 28_800.0);
        check(daily(), 86_400.0 * 20_000.0 + 30_000.0, 2.16, 86_400.0 * 20_000.0 + 64_800.0);
    }

    #[test]
    fn a_drift_ends_at_its_factor() {
        let drift = || Process::Drifting { rate: 2.0, factor: 4.0, from: 100.0, over_secs: 64.0 };
        check(drift(), 0.0, 2.0, 100.0);
        check(drift(), 132.5, 2.0 * 4.0_f64.powf(32.5 / 64.0), 133.0);
        check(drift(), 164.0, 8.0, f64::INFINITY);
        let jump = Process::Drifting { rate: 2.0, factor: 0.0, from: 100.0, over_secs: 0.0 };
        assert_eq!(epochs(jump).piece(100.0), Piece { rate: 0.0, until: f64::INFINITY });
    }

    #[test]
    fn the_cumulative_rate_is_inverted_across_pieces() {
        let drift = Process::Drifting { rate: 2.0, factor: 0.5, from: 10.0, over_secs: 0.0 };
        let silent = Repository { silent_from: 12.0, ..Repository::new(1, drift) };
        let epochs = Epochs::new(&silent);
        let mut piece = epochs.piece(5.0);
        assert!((epochs.after(5.0, 9.0, &mut piece) - 9.5).abs() < 1e-12);
        assert!((epochs.after(9.5, 3.0, &mut piece) - 12.0).abs() < 1e-12);
        assert!(epochs.after(11.0, 1.1, &mut piece).is_infinite());
    }
}
