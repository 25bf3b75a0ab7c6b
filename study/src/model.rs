//! Cost models of an acceptable latency: the uniform and the adaptive model.
//!
//! Source: Liu §3, the formula of the update cost and its two examples. Over a period P, with n
//! data providers, the acceptable latency L and a provider's update frequency f, we read it as:
//!
//! * uniform model: every provider is asked at the same interval, the latency. Each provider gets
//!   `P / L` requests, and the harvester makes `n P / L`;
//! * adaptive model: the harvester knows when a provider changes and asks right after it, but at
//!   most once in a latency. Each provider gets `P min(f, 1 / L)` requests, and the harvester makes
//!   their sum.
//!
//! # Differences from the paper
//!
//! * The formula itself is not in our copy. Ours is the simplest that depends on latency, number of
//!   providers and update frequency and agrees with the examples: with a latency of a day, either
//!   model makes about one request a day to each provider; with a latency of a minute and hourly
//!   updates, the uniform model makes 60 times as many as the adaptive one.
//! * Every source may have a latency of its own. The uniform model's interval is then the shortest
//!   latency; [`Synchronization::Latency`] asks each source at its own.
//! * No interval is below a floor (politeness), even if the latency is shorter; the latency is then
//!   exceeded.
//!
//! Sans-I/O.

use freshness::expect::{INTERVAL_SECS_MAX, within};
use freshness::interval::Bounds;

/// Requirements of one source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Acceptable latency L, in seconds: the time for which the copy may lack an update.
    pub latency: f64,
    /// Update frequency f, in updates a second; 0 for a source that never changes.
    pub frequency: f64,
}

/// A synchronization policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronization {
    /// Every source at the least acceptable latency of all.
    Uniform,
    /// Every source at its own acceptable latency.
    Latency,
    /// Every source right after its updates, but at most once in its acceptable latency.
    Adaptive,
}

impl Synchronization {
    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Latency => "latency",
            Self::Adaptive => "adaptive",
        }
    }
}

/// Predicted cost of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The model.
    pub model: Synchronization,
    /// Requests to each data provider in the period, in the order of the demands.
    pub requests: Vec<f64>,
    /// Requests of the harvester in the period: the sum of these.
    pub total: f64,
    /// The largest share of a source's updates that reach the copy later than acceptable, if
    /// updates are evenly spread: 0 if every latency is kept; below 1.
    pub late_share_max: f64,
}

/// Predicts the requests that `model` makes in `period` seconds, with no interval below
/// `interval_min` seconds. No demands make no requests.
///
/// Every result is finite: a latency of 0 or less becomes the floor, NaN becomes
/// [`INTERVAL_SECS_MAX`]; a frequency or period that is negative or NaN becomes 0.
pub fn predict(
    demands: &[Demand],
    model: Synchronization,
    period: f64,
    interval_min: f64,
) -> Prediction {
    let period = if period > 0.0 { period.min(INTERVAL_SECS_MAX) } else { 0.0 };
    let own = |it: &Demand| within(it.latency, Bounds { interval_min, interval_max: it.latency });
    let least = demands.iter().map(own).fold(INTERVAL_SECS_MAX, f64::min);
    let interval = |it: &Demand| match model {
        Synchronization::Uniform => least,
        Synchronization::Latency | Synchronization::Adaptive => own(it),
    };
    // The adaptive model pulls right after each update, if updates are far enough apart.
    let follows =
        |it: &Demand| model == Synchronization::Adaptive && it.frequency.max(0.0) * own(it) <= 1.0;

    let mut requests = Vec::with_capacity(demands.len());
    let mut late_share_max = 0.0_f64;
    for it in demands {
        if follows(it) {
            requests.push(period * it.frequency.max(0.0));
            continue;
        }
        requests.push(period / interval(it));
        if it.frequency > 0.0 {
            late_share_max =
                late_share_max.max(1.0 - within(it.latency, Bounds::FREE) / interval(it));
        }
    }
    Prediction { model, total: requests.iter().sum(), requests, late_share_max }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: f64 = 3_600.0;

    fn demand(latency: f64, frequency: f64) -> Demand {
        Demand { latency, frequency }
    }

    /// Requests in an hour with a floor of 10 seconds, and the share that comes late.
    #[track_caller]
    fn check(demands: &[Demand], model: Synchronization, expected: &[f64], late: f64) {
        let found = predict(demands, model, HOUR, 10.0);
        assert_eq!(found.requests.len(), expected.len());
        for (found, expected) in found.requests.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{found} against {expected}");
        }
        assert!((found.total - expected.iter().sum::<f64>()).abs() < 1e-9);
        assert!((found.late_share_max - late).abs() < 1e-9, "{}", found.late_share_max);
    }

    #[test]
    fn each_model_asks_as_often_as_it_must() {
        let two = [demand(60.0, 2.0 / HOUR), demand(600.0, 1.0)];
        check(&two, Synchronization::Uniform, &[60.0, 60.0], 0.0);
        check(&two, Synchronization::Latency, &[60.0, 6.0], 0.0);
        check(&two, Synchronization::Adaptive, &[2.0, 6.0], 0.0);
    }

    #[test]
    fn the_floor_takes_precedence_over_the_latency() {
        let hasty = [demand(1.0, 1.0)];
        for model in [Synchronization::Uniform, Synchronization::Latency, Synchronization::Adaptive]
        {
            check(&hasty, model, &[360.0], 0.9);
        }
        // Updates are further apart than the floor: each is fetched at once.
        check(&[demand(1.0, 0.01)], Synchronization::Adaptive, &[36.0], 0.0);
    }

    #[test]
    fn a_still_source_costs_the_adaptive_model_nothing() {
        check(&[demand(60.0, 0.0)], Synchronization::Adaptive, &[0.0], 0.0);
        check(&[demand(60.0, f64::NAN)], Synchronization::Adaptive, &[0.0], 0.0);
        check(&[demand(60.0, 0.0)], Synchronization::Uniform, &[60.0], 0.0);
        check(&[], Synchronization::Uniform, &[], 0.0);
    }
}
