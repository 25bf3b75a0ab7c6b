//! Properties of every log and prediction.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use freshness::date::{AT_SECS_MAX, AT_SECS_MIN};
use freshness::history::{Log, Settings};
use proptest::prelude::*;
use study::csv;
use study::log::{Study, Traffic};
use study::model::{Demand, Synchronization, predict};

/// Times of every size, the ends included.
fn times() -> impl Strategy<Value = i64> {
    prop_oneof![
        AT_SECS_MIN..=AT_SECS_MAX,
        -1_000_000..1_000_000_i64,
        any::<i64>(),
        Just(i64::MIN),
        Just(i64::MAX)
    ]
}

fn numbers() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        0.0..1e6_f64,
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(f64::MAX),
        Just(f64::MIN_POSITIVE)
    ]
}

proptest! {
    /// Every log gives finite numbers, and the parts add up to the whole.
    #[test]
    fn every_log_gives_a_report(
        log in prop::collection::vec((0..4_u8, times(), prop_oneof![0..9_u64, any::<u64>()]), 0..60),
        changes in any::<bool>(), granularity_secs in prop_oneof![Just(0), Just(86_400), any::<u32>()],
        until in times(),
    ) {
        let kind = if changes { Log::Changes } else { Log::Pulls };
        let mut study = Study::new(Settings { log: kind, granularity_secs }, 3);
        let mut taken = BTreeSet::new();
        for (source, at, records) in log {
            let inside = (AT_SECS_MIN..=AT_SECS_MAX).contains(&at);
            prop_assert_eq!(study.handle(source, at, records).is_ok(), inside);
            if inside {
                taken.insert(source);
                let traffic = Traffic { requests_failed: 1, bytes: records, took_ms: records };
                prop_assert_eq!(study.handle_traffic(source, traffic), Ok(()));
            }
        }
        let report = study.report(until);
        prop_assert_eq!(report.sources.len(), taken.len());
        prop_assert_eq!(report.classes.iter().map(|it| it.sources).sum::<u64>(), report.overall.sources);
        let updates: u64 = report.months.iter().map(|it| it.updates).sum();
        prop_assert_eq!(updates, report.overall.updates);
        prop_assert!(report.months.iter().all(|it| it.record_rate.is_finite()));
        for row in &report.sources {
            let numbers = [
                row.interval_secs, row.frequency, row.record_rate, row.freshness,
                row.intervals.mean(), row.intervals.deviation(), row.intervals.variation(),
            ];
            prop_assert!(numbers.into_iter().flatten().all(|it| it.is_finite() && it >= 0.0), "{row:?}");
            prop_assert!(row.freshness.is_none_or(|it| it <= 1.0));
        }
        let text = csv::report(&report, &[]);
        let columns = text.lines().next().unwrap().split(',').count();
        prop_assert!(text.lines().all(|line| line.split(',').count() == columns));
        let rows = 1 + report.months.len() + report.classes.len() + report.sources.len()
            + report.source_months.len();
        prop_assert_eq!(text.lines().count(), 1 + rows);
    }

    #[test]
    fn a_steady_source_has_its_interval(every in 1..1_000_000_u32, count in 2..40_u32, start in 0..10_i64) {
        let mut study = Study::new(Settings { granularity_secs: 1, ..Settings::default() }, 0);
        for nth in 0..=count {
            study.handle((), start + i64::from(nth * every), 1).unwrap();
        }
        let report = study.report(0);
        let row = &report.sources[0];
        let close = |found: Option<f64>, expected: f64| {
            found.is_some_and(|found| (found - expected).abs() <= 1e-6 * f64::from(every))
        };
        prop_assert!(close(row.interval_secs, f64::from(every)));
        prop_assert!(close(row.intervals.mean(), f64::from(every)));
        prop_assert!(count == 2 || close(row.intervals.deviation(), 0.0));
    }

    /// Predictions are finite, and the adaptive model needs the fewest requests.
    #[test]
    fn predictions_are_finite(
        demands in prop::collection::vec((numbers(), numbers()), 0..20),
        period in numbers(), floor in numbers(),
    ) {
        let demands: Vec<Demand> = demands
            .into_iter()
            .map(|(latency, frequency)| Demand { latency, frequency })
            .collect();
        let total = |model| {
            let found = predict(&demands, model, period, floor);
            assert!(found.requests.iter().all(|it| it.is_finite() && *it >= 0.0), "{found:?}");
            assert!((0.0..=1.0).contains(&found.late_share_max), "{found:?}");
            found.total
        };
        let (uniform, latency, adaptive) =
            (total(Synchronization::Uniform), total(Synchronization::Latency), total(Synchronization::Adaptive));
        prop_assert!(adaptive <= latency * (1.0 + 1e-9) && latency <= uniform * (1.0 + 1e-9));
    }
}
