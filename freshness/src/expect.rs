//! Best estimation: the time of a source's next change, as learned from its changes so far.
//!
//! Source: Liu §5 (adaptive model) and §6: the harvester learns a source's average update interval
//! from its harvests and pulls it at that interval.
//!
//! # Differences from the paper
//!
//! * An interval learned from pulls can never be shorter than the time between pulls: a source that
//!   changes once between two pulls looks the same as one that changes a hundred times.
//!   Uncorrected, a too long interval would stay too long. So the rate is the bias-reduced one of
//!   Cho and Garcia-Molina: if x of n pulls brought changes, `−ln((n − x + ½) / (n + ½))` updates a
//!   pull. This is nearly x / n for small x, and more than 1 if x = n. The pulls are assumed to be
//!   about equally far apart.
//! * As in the paper, the pace is assumed to be constant, and all of the history counts alike.
//!   [`rate`](crate::rate) follows a pace that changes.
//! * A source that never changed has no interval to learn; it is pulled at the acceptable latency.
//! * The interval is capped by the acceptable latency, which is the longest interval. If it is
//!   shorter than the learned one, best estimation pulls as often as the uniform model. Only a
//!   schedule known in advance, as from [`Syndication`](crate::syndication::Syndication), allows
//!   longer pauses.
//!
//! Sans-I/O.

use crate::interval::Bounds;

/// Minimum interval, in seconds; shorter ones are treated as this one.
pub const INTERVAL_SECS_MIN: f64 = 0.001;

/// Maximum interval, latency or period, in seconds (some 30,000 years); longer ones are treated so.
pub const INTERVAL_SECS_MAX: f64 = 1e12;

/// Clamps an interval in seconds to bounds. NaN becomes the longest interval, and a longest
/// interval of NaN counts as [`INTERVAL_SECS_MAX`]. The result is finite and above 0.
pub fn within(interval: f64, bounds: Bounds) -> f64 {
    let floor = seconds(bounds.interval_min, INTERVAL_SECS_MIN);
    let longest = seconds(bounds.interval_max, INTERVAL_SECS_MAX).max(floor);
    if interval.is_nan() { longest } else { interval.clamp(floor, longest) }
}

/// Returns the mean update interval, in seconds, of a source that was watched for `watched_secs` by
/// `pulls` pulls, of which `changed` brought changes; `None` if none did, or if no time was
/// watched.
pub fn interval_of_pulls(watched_secs: f64, pulls: u64, changed: u64) -> Option<f64> {
    let (pulls, changed) = (pulls as f64, changed.min(pulls) as f64);
    let updates_a_pull = -((pulls - changed + 0.5) / (pulls + 0.5)).ln();
    let interval = watched_secs / pulls / updates_a_pull;
    (interval.is_finite() && interval > 0.0).then_some(interval)
}

/// Clamps seconds to [`INTERVAL_SECS_MIN`]`..=`[`INTERVAL_SECS_MAX`]; returns `otherwise` for NaN.
fn seconds(secs: f64, otherwise: f64) -> f64 {
    if secs.is_nan() { otherwise } else { secs.clamp(INTERVAL_SECS_MIN, INTERVAL_SECS_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pulls: u64, changed: u64, expected: Option<f64>) {
        let found = interval_of_pulls(100.0 * pulls as f64, pulls, changed);
        let close = |(found, expected): (f64, f64)| (found / expected - 1.0).abs() < 1e-6;
        assert!(found.zip(expected).is_none_or(close), "{found:?} against {expected:?}");
        assert_eq!(found.is_some(), expected.is_some());
    }

    #[test]
    fn few_changed_pulls_count_once_and_many_count_more() {
        // −ln(8.5 / 10.5) and −ln(0.5 / 10.5) updates a pull of 100 seconds.
        check(10, 2, Some(473.240_4));
        check(10, 10, Some(32.845_9));
        check(10, 11, Some(32.845_9));
    }

    #[test]
    fn a_source_that_never_changed_teaches_nothing() {
        check(10, 0, None);
        check(0, 0, None);
    }

    #[test]
    fn the_latency_caps_the_interval() {
        let bounds = Bounds { interval_min: 10.0, interval_max: 600.0 };
        assert!((within(900.0, bounds) - 600.0).abs() < 1e-12);
    }

    #[test]
    fn bounds_that_contradict_each_other_keep_the_floor() {
        for (bounds, interval, expected) in [
            ((10.0, 60.0), 30.0, 30.0),
            ((10.0, 60.0), 5.0, 10.0),
            ((10.0, 60.0), f64::INFINITY, 60.0),
            ((10.0, 60.0), f64::NAN, 60.0),
            ((60.0, 10.0), 30.0, 60.0),
            ((f64::NAN, 60.0), -1.0, INTERVAL_SECS_MIN),
            ((0.0, f64::NAN), f64::NAN, INTERVAL_SECS_MAX),
        ] {
            let (interval_min, interval_max) = bounds;
            let found = within(interval, Bounds { interval_min, interval_max });
            assert!((found - expected).abs() < 1e-12, "{bounds:?} {interval}: {found}");
        }
    }
}
