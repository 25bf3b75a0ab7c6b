//! Update rate of a source, estimated from its pulls.
//!
//! Source: Adly §4, after Jacobson: `λ = (1 − g) λ_before + g λ_sample`, where the sample is the
//! updates that a pull brought, divided by the time since the pull before. Cho and Garcia-Molina,
//! "Estimating frequency of change", for the two better samples of [`Method`].
//!
//! # Differences from the paper
//!
//! * The pseudo-code keeps the last *sample* as λ_before, the text the last *estimate*. We follow
//!   the text: the pseudo-code's rule forgets all but two samples (variance 0.625 of a sample's
//!   instead of g/(2−g) = 0.143), and two pulls without updates would end all pulls.
//! * A sample is divided by the real time since the pull before, not by the planned interval.
//! * The first pull brings everything instead of updates: it starts the clock and gives no sample.
//! * The first sample is the first estimate.
//! * Pulls that follow each other within a fraction of a second (a followed source) are pooled
//!   until they make a sample of [`SAMPLE_SECS_MIN`]. [`Gain::Settling`] also pools pulls of few
//!   changes, each of which alone would make the rate jump.
//! * A record that changed twice between two pulls is one update. The paper's sample misses the
//!   first change and is low by the factor (1 − e^−x)/x when the average record changes x times;
//!   the other methods make up for it.
//! * The estimate has an uncertainty. With a rate alone, a source that was quiet for one lucky day
//!   would wait as long as one that was quiet for a year.
//!
//! Every method divides the updates of a pull by a time, its exposure: the elapsed time, less the
//! part that could not be observed. Pooling, gain and uncertainty are the same for each method.
//!
//! Numbers from outside may be anything. NaN, negative and infinite numbers count as the nearest
//! sensible number, and every result is finite.
//!
//! Sans-I/O.

mod exposure;

pub use exposure::CHANGES_PER_RECORD_MAX;

use serde::{Deserialize, Serialize};

/// Gain that Jacobson and the paper suggest.
pub const GAIN_DEFAULT: f64 = 0.25;

/// Least gain: the estimate then remembers some thousand samples.
pub const GAIN_MIN: f64 = 0.001;

/// Shortest time that makes a sample, in seconds.
pub const SAMPLE_SECS_MIN: f64 = 0.5;

/// Changes, found or expected, that make a sample of [`Gain::Settling`].
pub const SAMPLE_CHANGES_MIN: f64 = 8.0;

/// Longest time between two pulls that is believed, in seconds (30 years); a clock that jumps must
/// not make a rate vanish.
pub const ELAPSED_SECS_MAX: f64 = 1e9;

/// Largest number of changes that are assumed to come at once.
const DISPERSION_MAX: f32 = 1e18;

/// Method by which the updates of a pull become a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The paper's: updates divided by time. Right for sources that report every change, too low
    /// for sources that list a record once however often it changed.
    #[default]
    Ewma,
    /// From the number of records that did *not* change: `−N ln((N − U + 0.5) / (N + 0.5)) / I`,
    /// finite even if all changed. The gain moves the estimate as with [`Ewma`](Self::Ewma). Needs
    /// N.
    BiasReduced,
    /// From the times of the last change of each changed record, the maximum likelihood: `N U / (Σ
    /// ages + (N − U) I)`. It divides decayed sums of the changes and of these times, so a longer
    /// pull has more weight. Needs N and ages; a pull without ages is treated as
    /// [`BiasReduced`](Self::BiasReduced).
    Datestamps,
}

/// Gain of a sample, and the size of a sample. The gain is above 0 and at most 1; other numbers are
/// clamped, and NaN becomes [`GAIN_DEFAULT`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gain {
    /// As in the paper: each pull is a sample; each but the first moves the estimate by this gain.
    Fixed(f64),
    /// Pulls are pooled until they hold [`SAMPLE_CHANGES_MIN`] changes, found or expected. A sample
    /// moves the estimate by its share of the remembered time, and at least by this gain. So at
    /// first the estimate is about the plain mean, later it forgets old samples. Before the first
    /// sample, the pulls so far are the estimate.
    Settling(f64),
}

impl Default for Gain {
    fn default() -> Self {
        Self::Fixed(GAIN_DEFAULT)
    }
}

impl Gain {
    /// Returns the number, clamped to its range.
    pub(crate) fn value(self) -> f64 {
        let (Self::Fixed(gain) | Self::Settling(gain)) = self;
        if gain.is_nan() { GAIN_DEFAULT } else { gain.clamp(GAIN_MIN, 1.0) }
    }
}

/// Rules of an [`Estimator`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The method.
    pub method: Method,
    /// The gain of a sample.
    pub gain: Gain,
    /// Shortest time that makes a sample, in seconds; [`SAMPLE_SECS_MIN`] if that is longer.
    pub sample_secs_min: f64,
}

impl Default for Rules {
    /// Returns the paper's method and gain.
    fn default() -> Self {
        Self { method: Method::default(), gain: Gain::default(), sample_secs_min: SAMPLE_SECS_MIN }
    }
}

/// The result of one pull for the time since the pull before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pull {
    /// Number of changes, U; of changed records, if the source lists each once.
    pub updates: u64,
    /// Number of records at the source now, N, if the source states it.
    pub elements: Option<u64>,
    /// Time since the pull before, in seconds: I.
    pub elapsed_secs: f64,
    /// Sum of the ages of the changed records at the moment of the pull, in seconds, if the source
    /// gives datestamps. An age lies between 0 and I, and the sum is clamped to that.
    pub ages_secs: Option<f64>,
}

/// The state of an [`Estimator`], as plain numbers to store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The estimate, in updates a second; `None` before the first sample. 0 is a rate.
    pub rate: Option<f64>,
    /// Time in which a plain count would be equally certain, if changes came one by one, in
    /// seconds; 0 if unknown.
    pub sure_secs: f64,
    /// Decayed sum of the times by which the samples were divided, in seconds.
    pub memory_secs: f64,
    /// Updates of pending pulls, which do not yet make a sample.
    pub pending_updates: u64,
    /// Time over which the pending updates gathered, in seconds.
    pub pending_secs: f64,
    /// Time by which the pending updates are divided, in seconds; at most `pending_secs`.
    pub pending_exposure_secs: f64,
    /// Number of pulls since the last restart, the first one included.
    pub pulls: u32,
    /// Number of changes that come at once: decayed mean of the squared error of a sample, relative
    /// to changes that come one by one.
    pub dispersion: f32,
}

/// A rate and its certainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The rate λ, in updates a second; finite, not negative.
    pub rate: f64,
    /// The rate is as certain as that of a source whose changes come one by one and were counted
    /// for this time, in seconds; 0 if the origin of the rate is unknown. With more than two
    /// changes of each record between pulls, [`Method::BiasReduced`] overstates it (thirtyfold at N
    /// = U = 1,000).
    pub secs: f64,
}

impl Estimate {
    /// Returns the rate to plan with, in updates a second: the rate with half a change more than
    /// were found. It is above 0 if the origin of the rate is known: a source without a change in T
    /// seconds counts as changing at 1 / 2T.
    pub fn careful(&self) -> f64 {
        if self.secs > 0.0 { self.rate + 0.5 / self.secs } else { self.rate }
    }
}

/// Estimator of one source's update rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimator {
    rules: Rules,
    state: State,
}

impl Estimator {
    /// Returns an estimator that goes on from a stored state; the rules may have changed.
    pub fn with_rules(rules: Rules, state: State) -> Self {
        Self { rules, state: state.checked() }
    }

    /// Returns the state to store.
    pub fn state(&self) -> State {
        self.state
    }

    /// Handles a pull.
    ///
    /// All numbers of the first pull are ignored. Leave out failed pulls: the next successful pull
    /// has their updates and their time.
    pub fn handle(&mut self, pull: Pull) {
        self.state.pulls = self.state.pulls.saturating_add(1);
        if self.state.pulls == 1 {
            return;
        }
        let secs = seconds(pull.elapsed_secs);
        let exposure = exposure::secs(self.rules.method, Pull { elapsed_secs: secs, ..pull });
        let state = &mut self.state;
        state.pending_updates = state.pending_updates.saturating_add(pull.updates);
        state.pending_secs += secs;
        state.pending_exposure_secs += exposure;
        if self.is_sample() {
            self.take_sample();
        }
    }

    /// Forgets the last pull, since the next one brings everything (a snapshot). The estimate
    /// stays.
    pub fn handle_restart(&mut self) {
        self.state.pulls = 0;
        self.state.clear_pending();
    }

    /// Returns the rate with its certainty; `None` before the first sample. A rate of 0 means that
    /// the source was watched and did not change.
    pub fn estimate(&self) -> Option<Estimate> {
        let state = &self.state;
        match state.rate {
            Some(rate) => Some(Estimate {
                rate,
                secs: state.sure_secs / f64::from(state.dispersion).max(1.0),
            }),
            None if self.is_long_enough() => {
                Some(Estimate { rate: state.pending_rate(), secs: state.pending_exposure_secs })
            }
            None => None,
        }
    }

    /// Returns whether the pending pulls cover the time of a sample.
    fn is_long_enough(&self) -> bool {
        seconds(self.rules.sample_secs_min).max(SAMPLE_SECS_MIN) <= self.state.pending_secs
    }

    fn is_sample(&self) -> bool {
        let state = &self.state;
        let expected = state.rate.unwrap_or_default() * state.pending_exposure_secs;
        let changes = expected.max(state.pending_updates as f64);
        let has_few = matches!(self.rules.gain, Gain::Settling(_)) && changes < SAMPLE_CHANGES_MIN;
        self.is_long_enough() && !has_few
    }

    /// Moves the estimate by the pending pulls.
    fn take_sample(&mut self) {
        let gain = self.rules.gain.value();
        let state = &mut self.state;
        let (sample, exposure) = (state.pending_rate(), state.pending_exposure_secs);
        let decayed = state.rate.map_or(0.0, |_| (1.0 - gain) * state.memory_secs);
        let share = exposure / (decayed + exposure);
        let weight = match (self.rules.method, self.rules.gain) {
            _ if state.rate.is_none() => 1.0,
            (Method::Datestamps, _) => share,
            (Method::Ewma | Method::BiasReduced, Gain::Fixed(_)) => gain,
            (Method::Ewma | Method::BiasReduced, Gain::Settling(_)) => share.max(gain),
        };
        state.disperse(weight);
        state.memory_secs = decayed + exposure;
        // Variance of weighted independent samples, each with the variance λ over its time.
        let doubt = weight * weight / exposure;
        state.sure_secs = if state.sure_secs > 0.0 {
            ((1.0 - weight) * (1.0 - weight) / state.sure_secs + doubt).recip()
        } else {
            exposure
        };
        let before = state.rate.unwrap_or_default();
        state.rate = Some((1.0 - weight) * before + weight * sample);
        state.clear_pending();
    }
}

impl State {
    /// Returns the nearest sensible state; stored numbers may be any.
    pub(crate) fn checked(self) -> Self {
        /// Above any possible sum of times.
        const SUM_SECS_MAX: f64 = 1e18;
        /// Above any possible rate.
        const RATE_MAX: f64 = 1e24;
        let sum = |secs| held(secs, SUM_SECS_MAX);
        let pending_secs = sum(self.pending_secs);
        let exposure_min = pending_secs / CHANGES_PER_RECORD_MAX;
        Self {
            rate: self.rate.filter(|it| !it.is_nan()).map(|it| it.clamp(0.0, RATE_MAX)),
            // A tiny time counts as no certainty.
            sure_secs: Some(sum(self.sure_secs)).filter(|it| *it > 1e-9).unwrap_or_default(),
            memory_secs: sum(self.memory_secs),
            pending_secs,
            pending_exposure_secs: self.pending_exposure_secs.max(exposure_min).min(pending_secs),
            dispersion: Some(self.dispersion)
                .filter(|it| !it.is_nan())
                .map_or(0.0, |it| it.clamp(0.0, DISPERSION_MAX)),
            ..self
        }
    }

    /// Returns the sample of the pending pulls, in updates a second.
    fn pending_rate(&self) -> f64 {
        self.pending_updates as f64 / self.pending_exposure_secs
    }

    fn clear_pending(&mut self) {
        (self.pending_updates, self.pending_secs, self.pending_exposure_secs) = (0, 0.0, 0.0);
    }

    /// Compares the pending pulls with the estimate's expectation. Changes that come one by one
    /// miss it by the root of their number, changes that come B at once by √B times as much.
    fn disperse(&mut self, weight: f64) {
        let (Some(rate), true) = (self.rate, self.sure_secs > 0.0) else {
            self.dispersion = 1.0;
            return;
        };
        let (found, secs) = (self.pending_updates as f64, self.pending_exposure_secs);
        let expected = rate * secs;
        // Half a change more, as in `Estimate::careful`; the error of the estimate itself is added.
        let variance = (rate + 0.5 / self.sure_secs) * secs * (1.0 + secs / self.sure_secs);
        let error = found - expected;
        // All changes at once are the largest possible burst.
        let squared = (error * error / variance).min(found.max(expected).max(1.0));
        let mean = (1.0 - weight) * f64::from(self.dispersion) + weight * squared;
        #[expect(clippy::cast_possible_truncation, reason = "a rough number, held to its bound")]
        let mean = mean.min(f64::from(DISPERSION_MAX)) as f32;
        self.dispersion = mean;
    }
}

/// Clamps the time before a pull, in seconds; 0 for NaN.
fn seconds(secs: f64) -> f64 {
    held(secs, ELAPSED_SECS_MAX)
}

/// Clamps a number to 0 and `max`; 0 for NaN.
fn held(number: f64, max: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number.clamp(0.0, max) }
}

#[cfg(test)]
mod tests;
