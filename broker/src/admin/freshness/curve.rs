//! The curve of freshness against cost for the present sources.
//!
//! Source: Adly §3.3; every point is the plan of eq. 3 for one θ, with the bounds, weights and
//! model of this deployment.
//!
//! Sans-I/O.

use freshness::interval::{Model, Policy, Source, plan};
use serde::Serialize;

use crate::status::forecast::HOUR_SECS;

pub(super) const POINTS: usize = 40;
/// The staleness (1 − freshness) of the freshest marked point divided by that at the curve's end.
/// Pulls are inversely proportional to staleness, so the point lies at about 1/3 of the axis.
const BEYOND: f64 = 3.0;
/// Lowest staleness that the curve shows.
const STALENESS_MIN: f64 = 1e-6;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct CurvePoint {
    pub(super) pulls_per_hour: f64,
    /// Freshness of all sources, 0 to 1.
    pub(super) freshness: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Curve {
    /// The points, in the order of rising θ.
    pub(super) points: Vec<CurvePoint>,
}

impl Curve {
    /// Returns the curve of `sources`, from the lowest freshness within the bounds to beyond
    /// `fresh`, the freshness of the freshest marked point. `None` without sources.
    pub(super) fn new(sources: &[Source], model: Model, fresh: f64) -> Option<Self> {
        if sources.is_empty() {
            return None;
        }
        let at = |theta| {
            let plan = plan(sources, Policy::Optimal { theta }, model);
            CurvePoint { pulls_per_hour: plan.pulls * HOUR_SECS, freshness: plan.freshness }
        };
        let most = (1.0 - at(0.0).freshness).max(STALENESS_MIN);
        let least = (1.0 - at(1.0).freshness).max((1.0 - fresh) / BEYOND).max(STALENESS_MIN);
        let step = (least / most).min(1.0).powf(1.0 / (POINTS - 1) as f64);
        let thetas = (0..POINTS).map(|point| 1.0 - most * step.powf(point as f64));
        let points = thetas.map(at).filter(|it| it.pulls_per_hour.is_finite()).collect();
        Some(Self { points })
    }
}

#[cfg(test)]
mod tests {
    use freshness::interval::Bounds;

    use super::*;

    const BOUNDS: Bounds = Bounds { interval_min: 10.0, interval_max: 86_400.0 };

    fn source(rate: f64, elements: u64) -> Source {
        Source::new(rate, elements, BOUNDS)
    }

    #[test]
    fn the_curve_rises_and_its_points_are_those_of_eq_3() {
        let sources = [source(0.001, 100), source(0.004, 100)];
        let curve = Curve::new(&sources, Model::Linear, 0.9).unwrap();
        assert_eq!(curve.points.len(), POINTS);
        // Eq. 3 with equal costs: pulls = (Σ √λ)² / (2 (1 − θ) ΣN).
        let roots = 0.001_f64.sqrt() + 0.004_f64.sqrt();
        for point in curve.points.iter().filter(|it| 0.8 < it.freshness) {
            let expected = roots * roots / (2.0 * (1.0 - point.freshness) * 200.0) * 3_600.0;
            assert!((point.pulls_per_hour / expected - 1.0).abs() < 1e-9, "{point:?} {expected}");
        }
        for pair in curve.points.windows(2) {
            assert!(pair[0].freshness <= pair[1].freshness + 1e-12, "{pair:?}");
            assert!(pair[0].pulls_per_hour <= pair[1].pulls_per_hour + 1e-9, "{pair:?}");
        }
        let last = curve.points[POINTS - 1];
        assert!((last.freshness - (1.0 - 0.1 / BEYOND)).abs() < 1e-9, "{last:?}");
    }

    #[test]
    fn the_curve_is_finite_for_any_sources() {
        assert_eq!(Curve::new(&[], Model::Linear, 0.9), None);
        for rate in [0.0, 1e-9, 1e9, f64::NAN, f64::INFINITY] {
            for (elements, fresh) in [(0, 1.0), (1, f64::NAN), (u64::MAX, -3.0)] {
                for model in [Model::Linear, Model::Poisson] {
                    let curve = Curve::new(&[source(rate, elements)], model, fresh).unwrap();
                    for it in &curve.points {
                        assert!(
                            it.pulls_per_hour.is_finite() && it.freshness.is_finite(),
                            "{it:?}"
                        );
                    }
                }
            }
        }
    }
}
