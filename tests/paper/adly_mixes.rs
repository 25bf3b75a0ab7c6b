//! The workloads and costs of Adly's experiments (§5), in days.

use freshness::interval::Workload;
use freshness::metrics::Costs;

/// Table 1: (λ a day, N).
const TYPES: [(f64, u64); 4] =
    [(100.0, 1_000), (500.0, 1_000), (1_000.0, 10_000), (5_000.0, 10_000)];
/// §5: C_U and C_P.
pub(crate) const COSTS: Costs = Costs { update: 0.1, pull: 50.0 };

/// Repositories, so many of each type.
pub(crate) fn mix(counts: [usize; 4]) -> Vec<Workload> {
    let of = |(rate, elements), count| std::iter::repeat_n(Workload { rate, elements }, count);
    TYPES.into_iter().zip(counts).flat_map(|(kind, count)| of(kind, count)).collect()
}

/// So many T1 in a thousand, the rest T4.
pub(crate) fn t1_and_t4(per_mille: usize) -> Vec<Workload> {
    mix([per_mille, 0, 0, 1_000 - per_mille])
}

/// A thousand, 70 % of one type and 10 % of each other; an even mix for 0.
pub(crate) fn majority(of: usize) -> Vec<Workload> {
    let mut counts = [if of == 0 { 250 } else { 100 }; 4];
    if let Some(count) = of.checked_sub(1).and_then(|at| counts.get_mut(at)) {
        *count = 700;
    }
    mix(counts)
}

pub(crate) fn check(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{what}: {found} against {expected}");
}
