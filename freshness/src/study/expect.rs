//! When a source will change next, as learned from how it changed so far ("best estimation").
//!
//! Source: Liu §5 (adaptive model) and §6: the harvester learns a source's average update interval
//! from its harvests and pulls it at that interval.
//!
//! # Differences from the paper
//!
//! * An interval that is learned from pulls can never be shorter than the pulls are apart: a source
//!   that changes in every interval, once or a hundred times, looks the same. Left so, an interval
//!   once too long would stay so. We count with the bias-reduced rate of Cho and Garcia-Molina,
//!   `−ln((n − x + ½) / (n + ½))` updates a pull when x of n pulls brought something: nearly x / n
//!   when few did, and more than one when all did.
//!   The pulls are taken to be about equally far apart.
//! * As in the paper, the pace is taken to be constant and all of the history counts alike. A pace
//!   that changes is followed by [`rate`](crate::rate).
//! * A source that never changed has no interval to learn; it is pulled at the acceptable latency.
//! * An expected time that went by without an update moves on by whole intervals.
//! * The interval is capped by the acceptable latency, which is the longest interval. Where that is shorter than the interval
//!   learned, best estimation asks as often as the uniform model does: only who knows the updates in
//!   advance, as from [`Syndication`](super::Syndication), may stay away longer.
//!
//! Sans-I/O.

use super::history::{History, Log};
pub use super::model::within;
use super::model::{INTERVAL_SECS_MAX, INTERVAL_SECS_MIN};
use crate::interval::Bounds;

/// What was learned of one source's update interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean update interval, in seconds; finite, above 0.
    pub interval: f64,
    /// Its standard deviation, in seconds; `None` before two intervals were seen.
    pub deviation: Option<f64>,
    /// Newest update, or when the source became known without one, in Unix seconds.
    pub updated_secs: i64,
}

impl Estimate {
    /// What `history` teaches at `until_secs`, in Unix seconds; `None` without an update.
    pub fn new(history: &History, log: Log, until_secs: i64) -> Option<Self> {
        let counted = history.interval_secs(log, until_secs)?;
        let interval = match log {
            Log::Changes => counted,
            Log::Pulls => {
                let watched_secs = history.observed_secs as f64;
                interval_of_pulls(watched_secs, history.samples, history.samples_changed)
                    .unwrap_or(counted)
            }
        };
        Some(Self {
            interval: interval.clamp(INTERVAL_SECS_MIN, INTERVAL_SECS_MAX),
            deviation: history.intervals.deviation(),
            updated_secs: history.updated_secs.unwrap_or(history.last_secs),
        })
    }

    /// When the next update is expected, in Unix seconds: the first time after `now_secs` that is
    /// whole intervals after the newest update. At least `now_secs` + 1, short of the end of time.
    pub fn next_update(&self, now_secs: i64) -> i64 {
        let since = (now_secs as f64 - self.updated_secs as f64).max(0.0);
        let steps = (since / self.interval).floor() + 1.0;
        let wait = (steps * self.interval - since).clamp(1.0, INTERVAL_SECS_MAX);
        // At most 10¹², so that nothing is cut but the fraction; what is no number becomes 0.
        #[expect(clippy::cast_possible_truncation, reason = "bounded in the line above")]
        let wait = (wait.ceil() as i64).max(1);
        now_secs.max(self.updated_secs).saturating_add(wait)
    }

    /// The interval to pull at, in seconds: the one learned, within the bounds.
    pub fn interval(&self, bounds: Bounds) -> f64 {
        within(self.interval, bounds)
    }
}

/// The interval from `now_secs` to a pull right after `next_secs`, when the next update is expected
/// (both in Unix seconds), within the bounds, in seconds.
pub fn interval_until(next_secs: i64, now_secs: i64, bounds: Bounds) -> f64 {
    within(next_secs as f64 - now_secs as f64, bounds)
}

/// The mean update interval in seconds of a source that was watched for so many seconds by `pulls`, of
/// which `changed` brought something; `None` while there is none.
pub fn interval_of_pulls(watched_secs: f64, pulls: u64, changed: u64) -> Option<f64> {
    let (pulls, changed) = (pulls as f64, changed.min(pulls) as f64);
    let updates_a_pull = -((pulls - changed + 0.5) / (pulls + 0.5)).ln();
    let interval = watched_secs / pulls / updates_a_pull;
    (interval.is_finite() && interval > 0.0).then_some(interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Settings;

    fn pulls(every: i64, records: &[u64]) -> History {
        let settings = Settings { granularity_secs: 1, ..Settings::default() };
        let mut history = History::default();
        history.handle(0, 1_000, settings);
        for (records, nth) in records.iter().zip(1..) {
            history.handle(nth * every, *records, settings);
        }
        history
    }

    #[track_caller]
    fn check(history: &History, log: Log, expected: f64) {
        let found = Estimate::new(history, log, history.last_secs).unwrap().interval;
        assert!((found / expected - 1.0).abs() < 1e-6, "{found} against {expected}");
    }

    #[test]
    fn few_updates_are_counted_and_many_are_suspected() {
        // −ln(8.5 / 10.5) and −ln(0.5 / 10.5) updates a pull of 100 seconds.
        check(&pulls(100, &[0, 0, 1, 0, 0, 0, 0, 3, 0, 0]), Log::Pulls, 473.240_4);
        check(&pulls(100, &[1; 10]), Log::Pulls, 32.845_9);
        // A log of changes hides nothing.
        check(&pulls(100, &[1; 10]), Log::Changes, 100.0);
    }

    #[test]
    fn a_source_that_never_changed_teaches_nothing() {
        assert_eq!(Estimate::new(&pulls(100, &[0; 10]), Log::Pulls, 1_000), None);
        assert_eq!(Estimate::new(&History::default(), Log::Pulls, 0), None);
    }

    #[test]
    fn an_expected_time_that_went_by_moves_on() {
        let estimate = Estimate { interval: 100.0, deviation: None, updated_secs: 1_000 };
        for (now, expected) in
            [(1_000, 1_100), (1_099, 1_100), (1_100, 1_200), (1_450, 1_500), (900, 1_100)]
        {
            assert_eq!(estimate.next_update(now), expected, "{now}");
        }
    }

    #[test]
    fn the_latency_caps_the_interval() {
        let estimate = Estimate { interval: 900.0, deviation: None, updated_secs: 0 };
        let bounds = Bounds { interval_min: 10.0, interval_max: 600.0 };
        assert!((estimate.interval(bounds) - 600.0).abs() < 1e-12);
        assert!((interval_until(1_300, 1_000, bounds) - 300.0).abs() < 1e-12);
        assert!((interval_until(1_000, 1_300, bounds) - 10.0).abs() < 1e-12);
    }
}
