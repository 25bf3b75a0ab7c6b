//! The workloads and costs of Adly's experiments (§5), in days.

use freshness::interval::{Bounds, Model, Plan, Policy, Source, Workload, plan};
use study::simulate::Costs;

/// Table 1: (λ a day, N).
const TYPES: [(f64, u64); 4] =
    [(100.0, 1_000), (500.0, 1_000), (1_000.0, 10_000), (5_000.0, 10_000)];
/// §5: C_U and C_P.
pub(crate) const COSTS: Costs = Costs { update: 0.1, pull: 50.0 };

/// Returns workloads with these counts of each type.
pub(crate) fn mix(counts: [usize; 4]) -> Vec<Workload> {
    let of = |(rate, elements), count| std::iter::repeat_n(Workload { rate, elements }, count);
    TYPES.into_iter().zip(counts).flat_map(|(kind, count)| of(kind, count)).collect()
}

/// Returns a thousand workloads: `per_mille` of T1, the rest T4.
pub(crate) fn t1_and_t4(per_mille: usize) -> Vec<Workload> {
    mix([per_mille, 0, 0, 1_000 - per_mille])
}

/// Returns a thousand workloads: 70 % of one type and 10 % of each other; an even mix for 0.
pub(crate) fn majority(of: usize) -> Vec<Workload> {
    let mut counts = [if of == 0 { 250 } else { 100 }; 4];
    if let Some(count) = of.checked_sub(1).and_then(|at| counts.get_mut(at)) {
        *count = 700;
    }
    mix(counts)
}

pub(crate) fn check(name: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{name}: {found} against {expected}");
}

/// Returns the brokers' plan for workloads with a pull cost of C_P, by the paper's model.
pub(crate) fn planned(workloads: &[Workload], policy: Policy, bounds: Bounds) -> Plan {
    let source = |it: &Workload| Source {
        pull_cost: COSTS.pull,
        ..Source::new(it.rate, it.elements, bounds)
    };
    plan(&workloads.iter().map(source).collect::<Vec<_>>(), policy, Model::Printed)
}

/// Returns the plan for given intervals: each source is bound to its own.
fn fixed(workloads: &[Workload], intervals: &[f64]) -> Plan {
    let source = |(it, interval): (&Workload, &f64)| {
        let bounds = Bounds { interval_min: *interval, interval_max: *interval };
        Source { pull_cost: COSTS.pull, ..Source::new(it.rate, it.elements, bounds) }
    };
    let sources: Vec<Source> = workloads.iter().zip(intervals).map(source).collect();
    plan(&sources, Policy::Optimal { theta: 0.0 }, Model::Printed)
}

/// Returns the freshness of the whole under these intervals (eq. 1).
pub(crate) fn freshness(workloads: &[Workload], intervals: &[f64]) -> f64 {
    fixed(workloads, intervals).freshness
}

/// Returns the cost of a day under these intervals (eq. 2).
pub(crate) fn cost(workloads: &[Workload], intervals: &[f64]) -> f64 {
    let updates: f64 = workloads.iter().map(|it| it.rate).sum();
    updates * COSTS.update + fixed(workloads, intervals).pull_cost
}
