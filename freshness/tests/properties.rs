//! Properties of every plan.

use freshness::interval::{Bounds, Model, Outcome, Plan, Planner, Policy, Source, plan};
use proptest::prelude::*;

/// From 10 seconds to 7 days.
const BOUNDS: Bounds = Bounds { interval_min: 10.0, interval_max: 604_800.0 };
const MODELS: [Model; 2] = [Model::Linear, Model::Poisson];

/// Numbers that a source or a settings file may contain.
fn foreign() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => 1e-9..1e9_f64,
        1 => prop::sample::select(vec![
            0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, f64::MAX,
            1e-300, 1e300, f64::EPSILON,
        ]),
    ]
}

fn foreign_source() -> impl Strategy<Value = Source> {
    let elements = prop_oneof![Just(0), Just(1), Just(u64::MAX), 1..1_000_000_u64];
    let bounds = (foreign(), foreign())
        .prop_map(|(interval_min, interval_max)| Bounds { interval_min, interval_max });
    (foreign(), elements, foreign(), foreign(), foreign(), bounds).prop_map(
        |(rate, elements, pull_cost, pull_secs, weight, bounds)| Source {
            pull_cost,
            pull_secs,
            weight,
            ..Source::new(rate, elements, bounds)
        },
    )
}

fn policy(number: impl Strategy<Value = f64>) -> impl Strategy<Value = Policy> {
    (0..6_u8, number).prop_map(|(kind, number)| match kind {
        0 => Policy::Optimal { theta: number },
        1 => Policy::Uniform { theta: number },
        2 => Policy::Individual { theta: number },
        3 => Policy::Fixed { interval: number },
        4 => Policy::CombinedCost { price: number },
        _ => Policy::Budget { pulls: number },
    })
}

/// Realistic sources, in days.
fn source(rate: impl Strategy<Value = f64>, bounds: Bounds) -> impl Strategy<Value = Source> {
    (rate, 1..100_000_u64, 0.1..10.0_f64, 0.1..10.0_f64).prop_map(
        move |(rate, elements, pull_cost, weight)| Source {
            pull_cost,
            weight,
            ..Source::new(rate, elements, bounds)
        },
    )
}

/// Returns a plan's freshness by its definition, of pulls that take no time.
fn freshness(sources: &[Source], intervals: &[f64], model: Model) -> f64 {
    let (mut stale, mut mass) = (0.0, 0.0);
    for (source, interval) in sources.iter().zip(intervals) {
        let (elements, rate) = (source.workload.elements as f64, source.workload.rate);
        if 0.0 < rate {
            stale += source.weight * elements * model.staleness(rate * interval / elements);
        }
        mass += source.weight * elements;
    }
    1.0 - stale / mass
}

fn pull_cost(sources: &[Source], intervals: &[f64]) -> f64 {
    sources.iter().zip(intervals).map(|(it, interval)| it.pull_cost / interval).sum()
}

fn within(bounds: Bounds, interval: f64) -> bool {
    let Bounds { interval_min, interval_max } = bounds.settled();
    interval_min <= interval && (interval <= interval_max || interval <= 1e-9)
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 1 << 20, ..ProptestConfig::default() })]

    #[test]
    fn every_input_gives_a_schedule(
        sources in prop::collection::vec(foreign_source(), 0..20), policy in policy(foreign()),
    ) {
        for model in MODELS {
            let Plan { intervals, freshness, pulls, pull_cost, .. } = plan(&sources, policy, model);
            prop_assert_eq!(intervals.len(), sources.len());
            for (source, interval) in sources.iter().zip(&intervals) {
                prop_assert!(within(source.bounds, *interval), "{interval} of {source:?}");
            }
            prop_assert!((-1e-9..=1.0 + 1e-9).contains(&freshness), "freshness {freshness}");
            for (source, interval) in sources.iter().zip(&intervals) {
                let alone = source.freshness_at(*interval, model);
                prop_assert!((0.0..=1.0).contains(&alone), "{alone} of {source:?}");
            }
            prop_assert!(0.0 <= pulls && 0.0 <= pull_cost, "{pulls} pulls, {pull_cost}");
        }
    }

    /// θ is reached, unless bounds keep all changing sources from it.
    #[test]
    fn theta_is_reached_within_the_bounds(
        sources in prop::collection::vec(
            (prop_oneof![Just(0.0), 1e-6..1e4_f64], 1..100_000_u64, 0.0..10.0_f64, 0.0..1e6_f64),
            1..20,
        ),
        theta in 0.0..1.0_f64,
    ) {
        let sources: Vec<Source> = sources.iter().map(|(rate, elements, low, span)| {
            let bounds = Bounds { interval_min: *low, interval_max: low + span };
            Source::new(*rate, *elements, bounds)
        }).collect();
        for model in MODELS {
            let found = plan(&sources, Policy::Optimal { theta }, model);
            let reached = freshness(&sources, &found.intervals, model);
            prop_assert!((reached - found.freshness).abs() < 1e-9);
            match found.outcome {
                Outcome::Met => prop_assert!((reached - theta).abs() < 1e-9, "{reached} for {theta}"),
                Outcome::AllLongest => prop_assert!(theta <= reached),
                Outcome::AllShortest => prop_assert!(reached <= theta),
                Outcome::Partly => prop_assert!(false, "one aim for all"),
            }
        }
    }

    /// A plan is as fresh as its sources; θ is met although pulls take time, or is out of reach.
    #[test]
    fn the_time_that_pulls_take_is_in_the_plan(
        sources in prop::collection::vec(
            (source(1e-2..1e3_f64, BOUNDS), prop_oneof![Just(0.0), 0.0..1e3_f64]), 1..20,
        ),
        policy in policy(0.5..0.99_f64),
    ) {
        let sources: Vec<Source> =
            sources.into_iter().map(|(it, pull_secs)| Source { pull_secs, ..it }).collect();
        for model in MODELS {
            let found = plan(&sources, policy, model);
            let mass = |it: &Source| it.weight * it.workload.elements as f64;
            let all: f64 = sources.iter().map(mass).sum();
            let fresh = |it: (&Source, &f64)| mass(it.0) * it.0.freshness_at(*it.1, model);
            let summed = sources.iter().zip(&found.intervals).map(fresh).sum::<f64>() / all;
            prop_assert!((summed - found.freshness).abs() < 1e-9, "{summed} {}", found.freshness);
            let mut planner = Planner::new(policy, model);
            planner.extend(sources.iter().copied());
            prop_assert_eq!(planner.outcome(), found.outcome);
            let (Policy::Optimal { theta } | Policy::Uniform { theta }) = policy else { continue };
            match found.outcome {
                Outcome::Met => prop_assert!((summed - theta).abs() < 1e-9, "{summed} for {theta}"),
                Outcome::AllLongest => prop_assert!(theta <= summed),
                Outcome::AllShortest => prop_assert!(summed <= theta),
                Outcome::Partly => prop_assert!(false, "one aim for all"),
            }
        }
    }

    /// No shift of staleness between sources within the bounds lowers the cost.
    #[test]
    fn no_other_schedule_of_that_freshness_costs_less(
        sources in prop::collection::vec(
            source(1e-2..1e3_f64, Bounds { interval_min: 0.01, interval_max: 1e6 }), 2..20,
        ),
        theta in 0.5..0.99_f64,
        from in 0..20_usize, step in 1..20_usize, share in 0.01..0.9_f64,
    ) {
        let from = from % sources.len();
        let to = (from + 1 + step % (sources.len() - 1)) % sources.len();
        for model in MODELS {
            let best = plan(&sources, Policy::Optimal { theta }, model);
            prop_assume!(best.outcome == Outcome::Met);
            let mut other = best.intervals.clone();
            other[from] *= 1.0 - share;
            // Find by bisection the interval of the other source that restores the freshness.
            let (mut low, mut high) = (other[to], 1e6_f64);
            for _ in 0..200 {
                other[to] = low.midpoint(high);
                if freshness(&sources, &other, model) < theta { high = other[to] } else { low = other[to] }
            }
            other[to] = high;
            let longest = model.x_max() * sources[to].workload.elements as f64 / sources[to].workload.rate;
            prop_assume!(0.01 <= other[from] && other[to] < longest.min(0.99e6));
            let (least, found) = (best.pull_cost, pull_cost(&sources, &other));
            prop_assert!(least * (1.0 - 1e-9) <= found, "{model:?}: {found} is less than {least}");
        }
    }

    /// After any changes of sources, each interval is close to that of a new plan.
    #[test]
    fn intervals_kept_up_are_those_of_a_new_plan(
        first in prop::collection::vec(source(0.0..1e3_f64, BOUNDS), 0..10),
        steps in prop::collection::vec(
            (0..3_u8, 0..64_usize, source(0.0..1e3_f64, BOUNDS)), 0..60,
        ),
        policy in policy(0.5..0.99_f64),
    ) {
        let model = Model::Poisson;
        let mut planner = Planner::new(policy, model);
        let slots = planner.extend(first.iter().copied());
        let mut there: Vec<_> = slots.into_iter().zip(first).collect();
        for (kind, which, source) in steps {
            match kind {
                0 => there.push((planner.insert(&source).0, source)),
                _ if there.is_empty() => {}
                1 => {
                    let at = which % there.len();
                    there[at].1 = source;
                    let _ = planner.update(there[at].0, &source);
                }
                _ => {
                    let (slot, _) = there.swap_remove(which % there.len());
                    let _ = planner.remove(slot);
                }
            }
        }
        let sources: Vec<Source> = there.iter().map(|(_, source)| *source).collect();
        let exact = plan(&sources, policy, model);
        prop_assert!((planner.freshness() - exact.freshness).abs() < 0.011, "{}", planner.freshness());
        planner.replan();
        for ((slot, _), exact) in there.iter().zip(&exact.intervals) {
            let found = planner.interval(*slot);
            prop_assert!((found - exact).abs() <= 1e-6 * exact, "{found} against {exact}");
        }
        prop_assert!((planner.freshness() - exact.freshness).abs() < 1e-9);
    }
}

#[test]
fn a_plan_costs_what_eq_2_says() {
    let sources = [Source::new(3.0, 40, Bounds::FREE), Source::new(0.5, 1_000, Bounds::FREE)]
        .map(|it| Source { pull_cost: 50.0, ..it });
    let found = plan(&sources, Policy::Optimal { theta: 0.9 }, Model::Poisson);
    let cost: f64 = found.intervals.iter().map(|interval| 50.0 / interval).sum();
    assert!((cost / found.pull_cost - 1.0).abs() < 1e-12);
}
