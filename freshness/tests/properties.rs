//! What holds of every schedule.

use freshness::interval::{Limits, Workload, oap};
use freshness::metrics::{Costs, cost, freshness};
use proptest::prelude::*;

const COSTS: Costs = Costs { update: 0.1, pull: 50.0 };

fn workloads(
    rate: impl Strategy<Value = f64>,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = Vec<Workload>> {
    let one = (rate, 0..100_000_u64).prop_map(|(rate, elements)| Workload { rate, elements });
    prop::collection::vec(one, count)
}

proptest! {
    /// Theta is reached, unless a bound keeps every changing source from it; nobody is out of bounds.
    #[test]
    fn theta_is_reached_within_the_bounds(
        workloads in workloads(prop_oneof![Just(0.0), 1e-6..1e4_f64], 1..20),
        theta in 0.0..0.999_f64, low in 0.0..10.0_f64, span in 0.0..1e6_f64,
    ) {
        let limits = Limits { rate_min: 0.0, interval_min: low, interval_max: low + span };
        let intervals = oap(&workloads, theta, limits);
        prop_assert!(intervals.iter().all(|it| (low..=low + span).contains(it)));
        let reached = freshness(&workloads, &intervals);
        let slack = 1e-6 * (1.0 + reached.abs());
        let changing = || workloads.iter().zip(&intervals).filter(|(it, _)| it.rate > 0.0);
        if reached > theta + slack {
            prop_assert!(changing().all(|(_, secs)| *secs >= (low + span) * (1.0 - 1e-9)));
        } else if reached < theta - slack {
            prop_assert!(changing().all(|(_, secs)| *secs <= low * (1.0 + 1e-9) + 1e-12));
        }
    }

    /// No shift of staleness from one source to another, within the bounds, costs less.
    #[test]
    fn no_other_schedule_of_that_freshness_costs_less(
        workloads in workloads(1e-2..1e3_f64, 2..20), theta in 0.5..0.99_f64,
        from in 0..20_usize, step in 1..20_usize, share in 0.01..0.9_f64,
    ) {
        let limits = Limits { rate_min: 0.0, interval_min: 0.01, interval_max: 1e6 };
        let best = oap(&workloads, theta, limits);
        let from = from % workloads.len();
        let to = (from + 1 + step % (workloads.len() - 1)) % workloads.len();
        let mut other = best.clone();
        other[from] *= 1.0 - share;
        other[to] += best[from] * share * workloads[from].rate / workloads[to].rate;
        prop_assume!(other[from] >= 0.01 && other[to] <= 1e6);
        let (least, found) = (cost(&workloads, &best, COSTS, 1.0), cost(&workloads, &other, COSTS, 1.0));
        prop_assert!(found >= least * (1.0 - 1e-9), "{found} is less than {least}");
    }
}
