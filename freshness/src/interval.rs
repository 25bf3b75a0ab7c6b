//! Optimal harvest intervals: OAP(θ) and the rivals it is compared with.
//!
//! Source: Adly §3.3 (eq. 3) and §5. Of all intervals whose freshness is θ, those of eq. 3 cost
//! least: a source's interval goes with the inverse square root of its update rate.
//!
//! # Differences from the paper
//!
//! * Eq. 3 divides by the root of the rate: a source that has not changed would never be pulled
//!   again. Rates below [`Limits::rate_min`] count as `rate_min`, and whatever the formula says,
//!   an interval stays within [`Limits::interval_min`] and [`Limits::interval_max`].
//! * The bounds are part of the problem, not a cut after it: what a source at a bound leaves of the
//!   staleness budget `2 (1 − θ) ΣN` goes to the others, so that the freshness reached is still θ
//!   whenever the bounds allow it (the Karush–Kuhn–Tucker conditions, solved exactly). When every
//!   source is at its longest interval the freshness is above θ; when every one is at its shortest
//!   it is below. [`metrics::freshness`](crate::metrics::freshness) tells.
//!
//! Sans-I/O.

/// What a harvester knows of one source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Update rate λ, in updates a second; finite, not negative.
    pub rate: f64,
    /// Number of elements N at the source.
    pub elements: u64,
}

/// Bounds on what the formula may see and ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Lowest rate that the formula sees, in updates a second; at 0, a source that never changes
    /// gets `interval_max`.
    pub rate_min: f64,
    /// Shortest interval, in seconds; not negative.
    pub interval_min: f64,
    /// Longest interval, in seconds; not below `interval_min`, may be infinite.
    pub interval_max: f64,
}

impl Default for Limits {
    /// No rate is too low; from 10 seconds to 7 days (the TR's refresh rate).
    fn default() -> Self {
        Self { rate_min: 0.0, interval_min: 10.0, interval_max: 7.0 * 86_400.0 }
    }
}

/// Returns the interval at which to pull each source, in seconds, in the order of `workloads`.
///
/// `theta` lies in `0.0..1.0`. No workloads give no intervals. Sources that have no elements at all
/// between them leave no room for staleness: they are pulled at the shortest interval if they change.
pub fn oap(workloads: &[Workload], theta: f64, limits: Limits) -> Vec<f64> {
    debug_assert!((0.0..1.0).contains(&theta), "theta {theta} is not in 0..1");
    debug_assert!(limits.interval_min <= limits.interval_max, "{limits:?}");

    let roots: Vec<f64> =
        workloads.iter().map(|it| it.rate.max(limits.rate_min).max(0.0).sqrt()).collect();
    let scale = scale(&roots, budget(workloads, theta), limits);
    roots.iter().map(|root| at_scale(*root, scale, limits)).collect()
}

/// Returns the one interval that reaches `theta` for all sources together, in seconds (UAP, Adly
/// §5.1); infinite when nothing changes.
pub fn uniform(workloads: &[Workload], theta: f64) -> f64 {
    let rates: f64 = workloads.iter().map(|it| it.rate).sum();
    if rates > 0.0 { budget(workloads, theta) / rates } else { f64::INFINITY }
}

/// Returns the intervals at which each source by itself reaches `theta`, in seconds (IOAP, Adly
/// §5.3); infinite for a source that does not change.
pub fn individual(workloads: &[Workload], theta: f64) -> Vec<f64> {
    workloads.iter().map(|it| uniform(std::slice::from_ref(it), theta)).collect()
}

/// The staleness that `theta` leaves room for: `Σ λ I` of eq. 1.
fn budget(workloads: &[Workload], theta: f64) -> f64 {
    2.0 * (1.0 - theta) * workloads.iter().map(|it| it.elements as f64).sum::<f64>()
}

/// The interval of a source whose rate has that root, when the multiplier of the constraint has made
/// `scale` of it: `scale / √λ` within the bounds.
fn at_scale(root: f64, scale: f64, limits: Limits) -> f64 {
    if root > 0.0 {
        (scale / root).clamp(limits.interval_min, limits.interval_max)
    } else {
        limits.interval_max
    }
}

/// Solves `Σ λ I(scale) = budget` for the scale.
///
/// The left side is continuous, grows with the scale and is linear between the points where a source
/// enters or leaves its bounds. Those points are walked in ascending order.
fn scale(roots: &[f64], budget: f64, limits: Limits) -> f64 {
    /// At this scale, the sum's constant part and its slope change by this much.
    struct Bend {
        scale: f64,
        constant: f64,
        slope: f64,
    }
    let mut bends = Vec::with_capacity(2 * roots.len());
    let mut constant = 0.0;
    for &root in roots.iter().filter(|root| **root > 0.0) {
        let (at_min, at_max) =
            (root * root * limits.interval_min, root * root * limits.interval_max);
        constant += at_min;
        bends.push(Bend { scale: root * limits.interval_min, constant: -at_min, slope: root });
        if limits.interval_max.is_finite() {
            bends.push(Bend { scale: root * limits.interval_max, constant: at_max, slope: -root });
        }
    }
    bends.sort_by(|a, b| a.scale.total_cmp(&b.scale));

    let mut slope = 0.0;
    let mut reached = 0.0;
    for bend in bends {
        if budget <= constant + slope * bend.scale {
            break;
        }
        constant += bend.constant;
        slope += bend.slope;
        reached = bend.scale;
    }
    if slope > 0.0 { ((budget - constant) / slope).max(reached) } else { reached }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::freshness;

    const FREE: Limits = Limits { rate_min: 0.0, interval_min: 0.0, interval_max: f64::INFINITY };

    fn check(workloads: &[Workload], theta: f64, limits: Limits, expected: &[f64]) {
        let found = oap(workloads, theta, limits);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            let equal = found.total_cmp(expected).is_eq();
            let close = equal || (found - expected).abs() <= 1e-9 * expected.abs();
            assert!(close, "{found} against {expected}");
        }
    }

    fn source(rate: f64, elements: u64) -> Workload {
        Workload { rate, elements }
    }

    #[test]
    fn no_sources_no_intervals() {
        check(&[], 0.95, FREE, &[]);
    }

    #[test]
    fn intervals_go_with_the_inverse_root_of_the_rate() {
        let found = oap(&[source(1.0, 100), source(4.0, 100)], 0.9, FREE);
        assert!((found[0] / found[1] - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_source_that_never_changes_gets_the_longest_interval() {
        let limits = Limits { interval_max: 30.0, ..FREE };
        check(&[source(0.0, 10)], 0.95, limits, &[30.0]);
        check(&[source(0.0, 10)], 0.95, FREE, &[f64::INFINITY]);
        check(&[source(0.0, 10)], 0.95, Limits { rate_min: 0.1, ..FREE }, &[10.0]);
    }

    #[test]
    fn what_a_bound_leaves_goes_to_the_others() {
        // Alone, both would get 20 and 2; the first may have only 5 and leaves 15 of 40.
        let both = [source(1.0, 100), source(100.0, 100)];
        let free = oap(&both, 0.9, FREE);
        let limits = Limits { interval_max: free[0] / 2.0, ..FREE };
        let bound = oap(&both, 0.9, limits);
        assert!(free[1] < bound[1]);
        assert!((freshness(&both, &bound) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn empty_sources_that_change_are_pulled_as_often_as_allowed() {
        let limits = Limits { interval_min: 2.0, interval_max: 9.0, ..FREE };
        check(&[source(1.0, 0), source(0.0, 0)], 0.9, limits, &[2.0, 9.0]);
    }
}
