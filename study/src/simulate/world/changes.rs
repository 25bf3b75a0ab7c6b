//! How a simulated repository changes.
//!
//! Source: Adly §3.1 (distinct elements, one after another) for [`Process::Even`]; the Poisson model
//! of Cho and Garcia-Molina, with a rate that may depend on the time, for most others.
//!
//! All rates that depend on the time are constant over stretches, so that changes can be drawn, and
//! the expected staleness computed, without an approximation.
//!
//! # Differences from the paper
//!
//! * The paper takes rates that stay. Those that follow the day, drift or come in bursts are what its
//!   estimator is there for.
//!
//! Sans-I/O.

use std::sync::Arc;

/// Largest rate that is simulated, in changes a second (8.6 · 10¹⁰ a day).
pub const RATE_MAX: f64 = 1e6;
/// Mean size of a burst, at most, in changes.
pub const BURST_MAX: f64 = 1e6;
/// Steps of equal length and equal ratio that a drift is made of.
pub const DRIFT_STEPS: f64 = 64.0;
/// Shortest time over which a rate stays, in seconds.
const PIECE_SECS_MIN: f64 = 1e-6;
/// The latest moment, in seconds; later ones are taken for it.
pub const SECS_MAX: f64 = 1e10;
/// A day, in seconds.
const DAY_SECS: f64 = 86_400.0;

/// One change of a [`Process::Replay`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// When, in seconds of the world's clock.
    pub at: f64,
    /// Which element: numbers from 0, in the order in which elements are first seen.
    pub element: u32,
}

/// How many changes a burst has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Burst {
    /// So many, rounded.
    Fixed(f64),
    /// So many on average, one at least, geometrically distributed.
    Geometric(f64),
}

/// When a repository changes. Rates are in changes a second, times in seconds of the world's clock;
/// numbers without sense are taken for the nearest that has.
#[derive(Clone, Debug, PartialEq)]
pub enum Process {
    /// At random, each change of an element at random.
    Poisson {
        /// The rate λ.
        rate: f64,
    },
    /// Bursts at random, of changes at one moment, each of an element at random: one element may
    /// change twice in a burst.
    Bursty {
        /// The rate λ of changes, not of bursts.
        rate: f64,
        /// How many changes come at once, 1 to [`BURST_MAX`].
        burst: Burst,
    },
    /// As [`Poisson`](Self::Poisson), with most changes in some hours of the day.
    Daily {
        /// The mean rate λ.
        rate: f64,
        /// Share of the changes that fall into the busy hours, 0 to 1.
        share: f64,
        /// How many hours are busy, 0.1 to 23.9.
        hours: f64,
        /// When the busy hours begin, in seconds after a whole number of days.
        begin_secs: f64,
    },
    /// As [`Poisson`](Self::Poisson), with a rate that changes by a factor over some time, in
    /// [`DRIFT_STEPS`] steps, and stays there.
    Drifting {
        /// The rate λ before.
        rate: f64,
        /// Rate afterwards over rate before; 0 or more.
        factor: f64,
        /// When the rate begins to change.
        from: f64,
        /// Over how many seconds it does; 0 for a jump.
        over_secs: f64,
    },
    /// Evenly, one element after another: the (k+½)/λ-th second is that of change k, so that eq. 1
    /// holds exactly for pulls after every whole number of changes.
    Even {
        /// The rate λ.
        rate: f64,
    },
    /// These changes, in the order of time, and no others.
    Replay(Arc<[Change]>),
}

/// A repository to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct Repository {
    /// Elements N at the start; 0 never changes. Of a [`Process::Replay`], the elements there are
    /// even if the replay does not name them all.
    pub elements: u64,
    /// How they change.
    pub process: Process,
    /// Elements that are created (above 0) or deleted (below 0) a second, at even distances, beside
    /// the changes and counted as changes. Not used for [`Process::Even`] and [`Process::Replay`].
    pub growth: f64,
    /// From when on nothing happens; infinite for never.
    pub silent_from: f64,
}

impl Repository {
    /// A repository that keeps its size and is never silent.
    pub fn new(elements: u64, process: Process) -> Self {
        Self { elements, process, growth: 0.0, silent_from: f64::INFINITY }
    }
}

/// A time over which the rate stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    /// Epochs a second: changes, or bursts.
    pub(super) rate: f64,
    /// Where it ends; above the time asked about.
    pub(super) until: f64,
}

/// The epochs of a process at random: constant rates, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Epochs {
    process: Process,
    silent_from: f64,
}

impl Epochs {
    /// Of a process that is not at random, there are none.
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
            // There is nothing to look for from day to day.
            return Self { process: Process::Poisson { rate: 0.0 }, ..epochs };
        }
        epochs
    }

    /// Highest rate at any time, in epochs a second.
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

    /// How many changes come at once.
    pub(super) fn burst(&self) -> Burst {
        match self.process {
            Process::Bursty { burst, .. } => burst,
            _ => Burst::Fixed(1.0),
        }
    }

    /// The rate at `at`, and until when it stays.
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
        // Rounding must make no piece of no length, nor one of next to none: near 0 there are more
        // numbers than anybody can count.
        let least = (at + PIECE_SECS_MIN).max(at.next_up());
        Piece { rate: rate.min(RATE_MAX), until: until.min(self.silent_from).max(least) }
    }

    /// The moment after `at` by which `expected` more epochs are expected; infinite when that is
    /// after [`SECS_MAX`]. `piece` is that of an earlier time, and becomes that of the moment.
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

/// The nearest number from `min` to `max`; `min`, or 0 if that is between, for what is no number.
pub(super) fn held(number: f64, min: f64, max: f64) -> f64 {
    if number.is_nan() { 0.0_f64.clamp(min, max) } else { number.clamp(min, max) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_that_begins_next_to_nothing_after_midnight_goes_by() {
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
