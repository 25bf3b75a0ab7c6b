//! Properties of every published schedule and every expected interval.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use freshness::date::{AT_SECS_MAX, AT_SECS_MIN, date_time};
use freshness::expect::within;
use freshness::interval::Bounds;
use freshness::syndication::{Period, Syndication};
use proptest::prelude::*;

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

/// Period, frequency and base of a schedule.
fn schedules() -> impl Strategy<Value = (Period, u32, i64)> {
    let period = prop::sample::select(Period::ALL.to_vec());
    let frequency = prop_oneof![1..50_u32, 1..=u32::MAX];
    let base = prop_oneof![AT_SECS_MIN..=AT_SECS_MAX, 0..2_000_000_000_i64];
    (period, frequency, base)
}

proptest! {
    /// The next update is later, and no other lies in between.
    #[test]
    fn the_next_update_is_the_first_one_after(
        (period, frequency, base) in schedules(), after in times(), per_mille in 0..1_000_i64,
    ) {
        let schedule = Syndication::new(period, frequency, base).unwrap();
        let next = schedule.next_update(after);
        prop_assert!(next > after || next == i64::MAX);
        if next < i64::MAX {
            let between = after + (next - 1 - after) * per_mille / 1_000;
            prop_assert_eq!(schedule.next_update(between), next);
            prop_assert_eq!(schedule.next_update(next - 1), next);
            // From one update to the next, never more than the longest period.
            let longest = f64::from(period.secs()) * 1.05 / f64::from(frequency);
            prop_assert!((next - after) as f64 <= longest + 1.0);
        }
    }

    /// After all updates of a period, the next period begins.
    #[test]
    fn a_period_has_its_updates(
        period in prop::sample::select(Period::ALL.to_vec()), frequency in 1..200_u32,
        base in 0..2_000_000_000_i64,
    ) {
        // A day of the month that every month has.
        let base = base - base % 86_400;
        let schedule = Syndication::new(period, frequency, base).unwrap();
        let mut at = base;
        for _ in 0..frequency {
            at = schedule.next_update(at);
        }
        let whole = Syndication::new(period, 1, base).unwrap();
        prop_assert_eq!(at, whole.next_update(base));
        prop_assert_eq!(schedule.next_update(base - 1), base);
    }

    #[test]
    fn a_schedule_survives_its_text((period, frequency, base) in schedules()) {
        let (times, since) = (frequency.to_string(), date_time(base));
        let read = Syndication::parse(Some(period.name()), Some(&times), Some(&since));
        prop_assert_eq!(read, Syndication::new(period, frequency, base));
    }

    #[test]
    fn no_text_is_too_much(period in ".{0,20}", frequency in ".{0,20}", base in "[0-9TZ:+.é-]{0,30}") {
        let _ = Syndication::parse(None, None, Some(&base));
        let _ = Syndication::parse(Some(&period), Some(&frequency), None);
    }

    /// No expected interval is shorter than the shortest, or longer than acceptable.
    #[test]
    fn intervals_stay_within_their_bounds(
        interval in numbers(), interval_min in numbers(), latency in numbers(),
    ) {
        let found = within(interval, Bounds { interval_min, interval_max: latency });
        prop_assert!(found.is_finite() && found > 0.0);
        prop_assert!(!(1e-3..=1e12).contains(&interval_min) || found >= interval_min);
        let capped = latency >= interval_min && (1e-3..=1e12).contains(&latency);
        prop_assert!(!capped || found <= latency);
    }
}
