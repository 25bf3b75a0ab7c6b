//! Tests of a world with senseless numbers.

use super::*;
use proptest::prelude::*;

fn foreign(max: f64) -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => 1e-9..max,
        1 => prop::sample::select(vec![
            0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, f64::MAX, 1e-300,
        ]),
    ]
}

fn foreign_process() -> impl Strategy<Value = Process> {
    let list = prop::collection::vec((foreign(1e5), any::<u32>()), 0..20);
    let changes = |list: Vec<(f64, u32)>| {
        Process::Replay(list.into_iter().map(|(at, element)| Change { at, element }).collect())
    };
    prop_oneof![
        foreign(1e9).prop_map(|rate| Process::Poisson { rate }),
        foreign(1e9).prop_map(|rate| Process::Even { rate }),
        (foreign(1e-2), foreign(1e3))
            .prop_map(|(rate, burst)| Process::Bursty { rate: rate.min(1.0), burst }),
        (foreign(1e6), foreign(1.0), foreign(24.0), foreign(1e5)).prop_map(
            |(rate, share, hours, begin_secs)| Process::Daily { rate, share, hours, begin_secs }
        ),
        (foreign(1e6), foreign(10.0), foreign(1e5), foreign(1e5)).prop_map(
            |(rate, factor, from, over_secs)| Process::Drifting { rate, factor, from, over_secs }
        ),
        list.prop_map(changes),
    ]
}

proptest! {
    #[test]
    fn all_results_are_finite(
        process in foreign_process(),
        elements in prop_oneof![Just(0), Just(1), Just(u64::MAX), 1..100_000_u64],
        start in foreign(1e5),
        times in prop::collection::vec(foreign(1e5).prop_map(|it| if it < 1e6 { it } else { -it }), 1..8),
    ) {
        // The start is not earlier: drawing three hundred years of changes one by one would
        // only take long.
        let start = if start.is_nan() { 0.0 } else { start.clamp(-1e5, 1e5) };
        let mut world = World::new(1, start);
        prop_assert_eq!(world.add(&Repository::new(elements, process)), Some(0));
        let mut before = start;
        for at in &times {
            let found = world.pull(0, *at).unwrap();
            prop_assert!(found.updates <= found.changes, "{found:?}");
            let now = before.max(at.clamp(-SECS_MAX, SECS_MAX));
            let most = found.updates as f64 * (now - before) * (1.0 + 1e-9) + 1e-6;
            before = now;
            prop_assert!((0.0..=most).contains(&found.ages_secs), "{found:?}");
            let totals = world.measure(0, *at).unwrap();
            prop_assert!((0.0..=1.0).contains(&totals.freshness()), "{totals:?}");
            prop_assert!(totals.stale_secs <= totals.element_secs * (1.0 + 1e-9) + 1e-6, "{totals:?}");
            prop_assert!(totals.freshness_printed().is_finite(), "{totals:?}");
        }
    }
}
