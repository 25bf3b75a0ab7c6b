//! How fresh a schedule keeps a collection, and what it costs.
//!
//! Source: Adly §3.1 to §3.3, eq. 1, 2 and 4.
//!
//! # Differences from the paper
//!
//! * Eq. 1 falls below 0 when a source changes more than twice over in an interval. It is returned as
//!   the paper has it; [`Measured`] is what a broker shows of pulls that really took place, and that
//!   cannot fall below 0.
//!
//! Sans-I/O.

mod measure;

use crate::interval::Workload;

pub use measure::{Measured, Span, overall};

/// What harvesting costs, in any unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Cost C_U of extracting and processing one update.
    pub update: f64,
    /// Cost C_P of initiation, negotiation and communication of one pull.
    pub pull: f64,
}

/// Freshness of the whole collection (eq. 1): 1 when nothing is stale, and without any elements.
///
/// `intervals` are in seconds, in the order of `workloads`.
pub fn freshness(workloads: &[Workload], intervals: &[f64]) -> f64 {
    let elements: f64 = workloads.iter().map(|it| it.elements as f64).sum();
    let stale: f64 = workloads.iter().zip(intervals).map(|(it, secs)| stale(*it, *secs)).sum();
    if elements > 0.0 { 1.0 - stale / elements } else { 1.0 }
}

/// Freshness of one source that is pulled every `interval` seconds (eq. 1 for one source).
pub fn freshness_of(workload: Workload, interval: f64) -> f64 {
    freshness(&[workload], &[interval])
}

/// Cost over `period` seconds (eq. 2), in the unit of `costs`.
pub fn cost(workloads: &[Workload], intervals: &[f64], costs: Costs, period: f64) -> f64 {
    let pulls: f64 = intervals.iter().map(|interval| period / interval).sum();
    updates(workloads, period) * costs.update + pulls * costs.pull
}

/// Cost over `period` seconds of the intervals that OAP(`theta`) gives without bounds (eq. 4), in the
/// unit of `costs`.
pub fn cost_minimal(workloads: &[Workload], theta: f64, costs: Costs, period: f64) -> f64 {
    let elements: f64 = workloads.iter().map(|it| it.elements as f64).sum();
    let roots: f64 = workloads.iter().map(|it| it.rate.sqrt()).sum();
    let pulls = period * roots * roots / (2.0 * (1.0 - theta) * elements);
    updates(workloads, period) * costs.update + pulls * costs.pull
}

/// Average number of stale items of one source.
fn stale(workload: Workload, interval: f64) -> f64 {
    if workload.rate > 0.0 { workload.rate * interval / 2.0 } else { 0.0 }
}

fn updates(workloads: &[Workload], period: f64) -> f64 {
    period * workloads.iter().map(|it| it.rate).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_still_source_is_fresh_whatever_its_interval() {
        let still = Workload { rate: 0.0, elements: 10 };
        assert!((freshness_of(still, f64::INFINITY) - 1.0).abs() < 1e-12);
        assert!((freshness(&[], &[]) - 1.0).abs() < 1e-12);
    }
}
