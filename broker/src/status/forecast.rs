//! Forecast of freshness and traffic at the present intervals.
//!
//! The plan may differ from the forecast: a source with a short history is pulled more often.
//! Source: Adly §3.1.
//!
//! Sans-I/O.

use freshness::interval::Model;

use crate::schedule::Planned;

pub(crate) const HOUR_SECS: f64 = 3_600.0;

/// Freshness and traffic at the present intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Forecast {
    /// Weighted freshness of all sources, 0 to 1; 1 without sources.
    pub(crate) freshness: f64,
    /// Pulls an hour, of all sources together.
    pub(crate) pulls_per_hour: f64,
}

impl Forecast {
    /// Returns the forecast for the sources with a known rate.
    pub(crate) fn new(planned: &[Planned], model: Model) -> Self {
        let (mut fresh, mut all, mut pulls_per_hour) = (0.0, 0.0, 0.0);
        for it in planned {
            let mass = it.source.weight * it.source.workload.elements.max(1) as f64;
            fresh += mass * it.source.freshness_at(it.interval_secs, model);
            all += mass;
            pulls_per_hour += hourly(it.interval_secs);
        }
        Self { freshness: if 0.0 < all { fresh / all } else { 1.0 }, pulls_per_hour }
    }
}

/// Returns the names of the sources that stay below `theta` even at their shortest interval, the
/// largest source first; all other sources are pulled more often to compensate.
pub(crate) fn held_back(planned: &[Planned], model: Model, theta: f64) -> Vec<&str> {
    let shortest = |it: &Planned| it.source.bounds.settled().interval_min;
    let stale = |it: &&Planned| it.source.freshness_at(shortest(it), model) < theta;
    let mut found: Vec<&Planned> = planned.iter().filter(stale).collect();
    let mass = |it: &Planned| it.source.weight * it.source.workload.elements as f64;
    found.sort_by(|a, b| mass(b).total_cmp(&mass(a)));
    found.into_iter().map(|it| it.name.as_str()).collect()
}

/// Returns the number of pulls an hour at the given interval; 0 if the interval is not above 0.
pub(crate) fn hourly(interval_secs: f64) -> f64 {
    if 0.0 < interval_secs { HOUR_SECS / interval_secs } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use freshness::interval::{Bounds, Source};

    use super::*;

    fn planned(rate: f64, elements: u64, weight: f64, interval_secs: f64) -> Planned {
        let source = Source { weight, ..Source::new(rate, elements, Bounds::FREE) };
        Planned { name: String::new(), source, estimated: source, interval_secs }
    }

    #[test]
    fn the_forecast_uses_the_present_intervals() {
        // Eq. 1: of 100 objects, 0.1 · 200 / (2 · 100) = 0.1 are stale; of 300 objects, 0.05.
        let all = [planned(0.1, 100, 1.0, 200.0), planned(0.1, 300, 1.0, 300.0)];
        let found = Forecast::new(&all, Model::Linear);
        assert!((found.freshness - (0.9 * 100.0 + 0.95 * 300.0) / 400.0).abs() < 1e-12);
        assert!((found.pulls_per_hour - (18.0 + 12.0)).abs() < 1e-12);
        let weighed = [planned(0.1, 100, 3.0, 200.0), planned(0.1, 300, 1.0, 300.0)];
        assert!((Forecast::new(&weighed, Model::Linear).freshness - 0.925).abs() < 1e-12);
    }

    #[test]
    fn sources_below_theta_at_their_shortest_interval_are_listed() {
        let bounded = |name: &str, elements, interval_min| {
            let bounds = Bounds { interval_min, interval_max: 86_400.0 };
            let source = Source::new(0.1, elements, bounds);
            Planned { name: name.to_owned(), source, estimated: source, interval_secs: 600.0 }
        };
        // Eq. 1: the best possible freshness is 0.5, 0.95 and 0.25.
        let all =
            [bounded("a", 100, 1_000.0), bounded("b", 100, 100.0), bounded("c", 200, 3_000.0)];
        assert_eq!(held_back(&all, Model::Printed, 0.9), ["c", "a"]);
        assert_eq!(held_back(&all, Model::Printed, 0.99), ["c", "a", "b"]);
        assert!(held_back(&all, Model::Printed, 0.2).is_empty());
    }

    #[test]
    fn no_sources_are_fresh() {
        let found = Forecast::new(&[], Model::Poisson);
        assert_eq!(found, Forecast { freshness: 1.0, pulls_per_hour: 0.0 });
        assert!(hourly(f64::INFINITY).abs() < 1e-12 && hourly(0.0).abs() < 1e-12);
    }
}
