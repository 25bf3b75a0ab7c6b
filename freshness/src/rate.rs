//! How fast a source changes, from what its pulls bring.
//!
//! Source: Adly §4, after Jacobson: `λ = (1 − g) λ_before + g λ_sample`, where the sample is the
//! updates that a pull brought over the time in which they gathered.
//!
//! # Differences from the paper
//!
//! * The pseudo-code keeps the last *sample* as λ_before, the text the last *estimate*. We follow the
//!   text: the pseudo-code's rule forgets all but two samples (variance 0.625 of a sample's instead
//!   of g/(2−g) = 0.143), and two pulls without updates would end all pulls.
//! * A sample is divided by the time that really went by since the pull before, not by the interval
//!   that was planned.
//! * The first pull brings everything there is, not updates: it starts the clock and gives no sample.
//! * The first sample is the first estimate, there being none to move from.
//! * Pulls that follow each other within a fraction of a second (a followed source) are put together
//!   until they make a sample of [`SAMPLE_SECS_MIN`].
//!
//! Sans-I/O.

use crate::interval::Workload;

/// Gain that Jacobson and the paper suggest.
pub const GAIN_DEFAULT: f64 = 0.25;

/// Shortest time that makes a sample, in seconds.
pub const SAMPLE_SECS_MIN: f64 = 0.5;

/// Updates a second and element that a source is taken to have when nothing is known of any source:
/// a tenth of its elements a day, as the slower types of Adly's table 1.
pub const PRIOR_PER_ELEMENT: f64 = 0.1 / 86_400.0;

/// The state of an [`Estimator`], as plain numbers to store.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// The estimate, in updates a second.
    pub rate: Option<f64>,
    /// Pulls so far, the first one included.
    pub pulls: u64,
    /// Updates of pulls that do not yet make a sample.
    pub pending_updates: u64,
    /// Time over which those gathered, in seconds.
    pub pending_secs: f64,
}

/// Estimates one source's update rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimator {
    gain: f64,
    state: State,
}

impl Default for Estimator {
    fn default() -> Self {
        Self::new(GAIN_DEFAULT)
    }
}

impl Estimator {
    /// An estimator that has seen no pull. `gain` lies above 0 and at most at 1.
    pub fn new(gain: f64) -> Self {
        Self::with_state(gain, State::default())
    }

    /// An estimator that goes on from a stored state.
    pub fn with_state(gain: f64, state: State) -> Self {
        debug_assert!(gain > 0.0 && gain <= 1.0, "gain {gain} is not in 0..=1");
        Self { gain, state }
    }

    /// What to store.
    pub fn state(&self) -> State {
        self.state
    }

    /// Takes in a pull that brought `updates` and came `elapsed_secs` after the one before.
    ///
    /// Of the first pull, both numbers are ignored. A pull that failed is not handed in: its updates
    /// come with the next one that succeeds, and so does its time.
    pub fn handle_pull(&mut self, updates: u64, elapsed_secs: f64) {
        let state = &mut self.state;
        state.pulls += 1;
        if state.pulls == 1 {
            return;
        }
        state.pending_updates += updates;
        state.pending_secs += elapsed_secs.max(0.0);
        if state.pending_secs < SAMPLE_SECS_MIN {
            return;
        }
        let sample = state.pending_updates as f64 / state.pending_secs;
        state.rate = Some(match state.rate {
            None => sample,
            Some(before) => (1.0 - self.gain) * before + self.gain * sample,
        });
        (state.pending_updates, state.pending_secs) = (0, 0.0);
    }

    /// Forgets that there was a pull before: the next one brings everything there is (the source
    /// answered with a snapshot). The estimate stays.
    pub fn handle_restart(&mut self) {
        self.state.pulls = 0;
        (self.state.pending_updates, self.state.pending_secs) = (0, 0.0);
    }

    /// The rate, in updates a second; `None` before the first sample.
    pub fn rate(&self) -> Option<f64> {
        self.state.rate
    }
}

/// The rate to assume of a source with `elements` of which there is no sample yet, in updates a
/// second: what the known sources have per element, or [`PRIOR_PER_ELEMENT`] without any.
pub fn prior(known: &[Workload], elements: u64) -> f64 {
    let rates: f64 = known.iter().map(|it| it.rate).sum();
    let all: f64 = known.iter().map(|it| it.elements as f64).sum();
    let each = if rates > 0.0 && all > 0.0 { rates / all } else { PRIOR_PER_ELEMENT };
    each * elements.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands in pulls and compares the estimates, `-` for none.
    fn check(gain: f64, pulls: &[(u64, f64)], expected: &str) {
        let mut estimator = Estimator::new(gain);
        let seen: Vec<String> = pulls
            .iter()
            .map(|(updates, secs)| {
                estimator.handle_pull(*updates, *secs);
                estimator.rate().map_or_else(|| "-".to_owned(), |rate| format!("{rate}"))
            })
            .collect();
        assert_eq!(seen.join(" "), expected);
    }

    #[test]
    fn the_first_full_harvest_is_no_sample() {
        check(0.25, &[(1_000_000, 1.0), (8, 4.0)], "- 2");
    }

    #[test]
    fn the_estimate_moves_by_the_gain() {
        check(0.25, &[(9, 0.0), (4, 1.0), (8, 1.0), (0, 1.0)], "- 4 5 3.75");
    }

    #[test]
    fn the_time_that_went_by_counts() {
        check(0.5, &[(0, 0.0), (10, 10.0), (30, 10.0)], "- 1 2");
    }

    #[test]
    fn empty_pulls_never_reach_0() {
        let mut estimator = Estimator::default();
        estimator.handle_pull(0, 0.0);
        estimator.handle_pull(100, 1.0);
        for _ in 0..20 {
            estimator.handle_pull(0, 1.0);
        }
        assert!(estimator.rate() > Some(0.0));
    }

    #[test]
    fn pulls_close_together_make_one_sample() {
        check(0.25, &[(0, 0.0), (1, 0.25), (1, 0.25), (1, 0.25)], "- - 4 4");
        check(0.25, &[(0, 0.0), (1, -5.0), (1, 1.0)], "- - 2");
    }

    #[test]
    fn a_restart_keeps_the_estimate() {
        let mut estimator = Estimator::default();
        estimator.handle_pull(7, 1.0);
        estimator.handle_pull(7, 1.0);
        estimator.handle_restart();
        estimator.handle_pull(1_000, 1.0);
        assert_eq!(estimator.rate(), Some(7.0));
        assert_eq!(Estimator::with_state(0.25, estimator.state()), estimator);
    }

    #[test]
    fn a_new_source_is_taken_to_be_like_the_others() {
        let known = [Workload { rate: 1.0, elements: 50 }, Workload { rate: 3.0, elements: 50 }];
        assert!((prior(&known, 200) - 8.0).abs() < 1e-12);
        assert!((prior(&[], 864_000) - 1.0).abs() < 1e-12);
        assert!(prior(&[], 0) > 0.0);
    }
}
