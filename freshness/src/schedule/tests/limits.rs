//! Tests of limits against sources that flood, fail or always send everything.

use super::*;

/// Returns the report of a pull that started, or was answered, at `as_of_ms`.
fn found(full: bool, changes: u64, as_of_ms: u64) -> PullReport {
    PullReport {
        full,
        changes,
        age_secs: 0.0,
        first_changes: None,
        elements: 1_000,
        as_of_ms,
        early: false,
    }
}

fn followed() -> Rules {
    Rules { follow: true, ..Rules::new(BOUNDS) }
}

/// Makes all due pulls until `end_ms`, each with one change at once. Returns starts and sources.
fn flood(schedule: &mut Schedule, from_ms: u64, end_ms: u64) -> Vec<(u64, SourceId)> {
    let (mut pulls, mut now_ms) = (Vec::new(), from_ms);
    while now_ms < end_ms {
        while let Some(due) = schedule.poll_due(true, now_ms) {
            pulls.push((now_ms, due.source));
            let full = schedule.view(due.source).unwrap().elements.is_none();
            schedule.handle_pull(due.source, found(full, 1, now_ms), now_ms);
        }
        now_ms = schedule.poll_timeout(true).unwrap().max(now_ms + 1);
    }
    pulls
}

/// Every answer brings a change; in the end the changes are fetched together once a second.
#[test]
fn a_stream_of_changes_is_fetched_with_growing_pauses() {
    let mut schedule = Schedule::new(settings());
    let f = add(&mut schedule, followed(), 0);
    let pulls = flood(&mut schedule, 0, 600_000);
    let gaps: Vec<u64> = pulls.windows(2).map(|it| it[1].0 - it[0].0).collect();
    let growing: Vec<u64> = (0..5).map(|it| FOLLOW_PAUSE_MS << it).collect();
    assert_eq!(gaps[..5], growing, "from one to the next");
    assert!(gaps[5..].iter().all(|it| *it == FOLLOW_PAUSE_MAX_MS), "{gaps:?}");

    // A source that is no longer followed is polled like any other; followed again, it starts anew.
    let mut polled = Schedule::new(settings());
    let other = add(&mut polled, followed(), 0);
    flood(&mut polled, 0, 60_000);
    polled.handle_rules(other, Rules::new(BOUNDS), 60_000);
    let interval = polled.view(other).unwrap().interval_secs.unwrap();
    assert!(interval < 60.0, "as its rate has it: {interval}");
    polled.handle_rules(other, followed(), 60_000);
    let pulls = flood(&mut polled, 60_000, 62_000);
    assert!(4 <= pulls.len(), "{pulls:?}");

    // After a quiet time a long poll brings one change, and the next poll does not wait.
    let asked_ms = schedule.view(f).unwrap().due_ms.unwrap();
    assert!(schedule.poll_due(false, asked_ms).unwrap().wait);
    let now_ms = asked_ms + 20_000;
    schedule.handle_pull(f, found(false, 1, now_ms), now_ms);
    assert_eq!(schedule.view(f).unwrap().due_ms, Some(now_ms + FOLLOW_PAUSE_MS));
    // The same holds after a poll that was held to its end without a change.
    flood(&mut schedule, now_ms, now_ms + 60_000);
    let asked_ms = schedule.view(f).unwrap().due_ms.unwrap();
    assert!(schedule.poll_due(false, asked_ms).is_some());
    schedule.handle_pull(f, found(false, 0, asked_ms + 30_000), asked_ms + 30_000);
    assert_eq!(schedule.view(f).unwrap().due_ms, Some(asked_ms + 30_000 + FOLLOW_PAUSE_MS));
}

/// The cap holds for first pulls too, and neither kind starves the other.
#[test]
fn the_cap_is_one_for_all_pulls() {
    let mut schedule = Schedule::new(Settings { pulls_per_minute_max: 60, ..settings() });
    let rules = Rules::new(BOUNDS);
    let all = [(followed(), 100), (rules, 50)];
    let each = all.into_iter().flat_map(|(rules, count)| std::iter::repeat_n(rules, count));
    let ids = schedule.add(each.map(|it| (it, SourceNote::default())), 0);
    let pulls = flood(&mut schedule, 0, 300_000);
    for pair in pulls.windows(61) {
        assert!(60_000 <= pair[60].0 - pair[0].0, "{pair:?}");
    }
    assert!(270 <= pulls.len(), "and at most a tenth fewer than may be: {}", pulls.len());
    let first: Vec<SourceId> = pulls[..60].iter().map(|it| it.1).collect();
    let (some, others) = ids.split_at(100);
    for kind in [some, others] {
        assert_eq!(first.iter().filter(|it| kind.contains(it)).count(), 30, "{first:?}");
        assert!(kind.iter().all(|it| pulls.iter().any(|(_, id)| id == it)), "all had their turn");
    }
}

/// Of followed sources, the plan counts only the elements, and counts them as fresh.
#[test]
fn followed_sources_leave_their_room_to_the_others() {
    let learned = |rules| {
        let mut schedule = Schedule::new(settings());
        let id = add(&mut schedule, rules, 0);
        for minute in 0..200 {
            let now_ms = minute * 60_000;
            schedule.handle_pull(id, found(minute == 0, 60, now_ms), now_ms);
        }
        schedule.note(id).unwrap()
    };
    let known = learned(Rules::new(BOUNDS));
    let interval = |other: Option<Rules>, policy| {
        let mut schedule = Schedule::new(Settings { policy, ..settings() });
        let rules = [Some(Rules::new(BOUNDS)), other].into_iter().flatten();
        let ids = schedule.add(rules.map(|it| (it, known)), 12_000_000);
        let planned = schedule.view(ids[0]).unwrap().interval_secs.unwrap();
        let expected = schedule.expected();
        assert_eq!(expected.outcome, crate::interval::Outcome::Met, "{policy:?}");
        (planned, expected.pulls * planned, expected.freshness)
    };
    for (policy, factor) in [
        // Twice the elements, and so twice the room.
        (Policy::Optimal { theta: 0.9 }, 2.0),
        (Policy::Uniform { theta: 0.9 }, 2.0),
        (Policy::Individual { theta: 0.9 }, 1.0),
        (Policy::Fixed { interval: 100.0 }, 1.0),
        (Policy::Budget { pulls: 0.01 }, 1.0),
    ] {
        let ((alone, ..), (beside, pulls, fresh)) =
            (interval(None, policy), interval(Some(followed()), policy));
        assert!((beside / alone / factor - 1.0).abs() < 1e-6, "{policy:?} {beside} {alone}");
        assert!((pulls - 1.0).abs() < 1e-6, "of the one alone: {policy:?} {pulls}");
        let stale = beside / 2.0 / 1_000.0;
        assert!((fresh - (1.0 - stale / 2.0)).abs() < 1e-3, "{policy:?} {fresh}");
    }
}

/// Nothing else can be learned of a source that sends everything again and again.
#[test]
fn a_source_that_always_brings_everything_is_pulled_ever_more_rarely() {
    for pace in [Pace::Planned, Pace::BestEstimation] {
        let mut schedule = Schedule::new(settings());
        let id = add(&mut schedule, Rules { pace, ..Rules::new(BOUNDS) }, 0);
        let mut now_ms = 0;
        let mut pull = |full| {
            now_ms = schedule.poll_timeout(true).unwrap().max(now_ms);
            schedule.poll_due(true, now_ms).unwrap();
            schedule.handle_pull(id, found(full, 10, now_ms), now_ms);
            schedule.view(id).unwrap().interval_secs.unwrap()
        };
        let expected = (0..14).map(|it| f64::min(10.0 * f64::from(1 << it), 86_400.0));
        let intervals: Vec<f64> = (0..20).map(|_| pull(true)).collect();
        assert!(expected.eq(intervals[..14].iter().copied()), "{pace:?} {intervals:?}");
        assert!(intervals[14..].iter().all(|it| *it >= 86_399.0), "{intervals:?}");
        // Ten changes a day are learned as usual.
        let again = pull(false);
        assert!(again <= 86_400.0, "{pace:?} {again}");
        // A single pull that brings everything changes nothing.
        let before = pull(false);
        assert!(pull(true) <= before.max(10.0), "{pace:?}");
    }
}

#[test]
fn failures_do_not_make_pulls_come_sooner() {
    const HOUR_MS: u64 = 3_600_000;
    // Followed sources are tried sooner: see back_off.rs.
    let check = |interval_min, least_ms: u64| {
        let bounds = Bounds { interval_min, ..BOUNDS };
        let mut schedule = Schedule::new(settings());
        let id = add(&mut schedule, Rules::new(bounds), 0);
        let fail = |schedule: &mut Schedule, now_ms| {
            assert!(schedule.poll_due(true, now_ms).is_some());
            schedule.handle_failure(id, None, now_ms);
            schedule.view(id).unwrap().due_ms.unwrap() - now_ms
        };
        // A source that was just added.
        let first_ms = fail(&mut schedule, 0);
        assert!((1_000..=1_250).contains(&first_ms), "{first_ms}");
        assert!(schedule.poll_due(true, first_ms).is_some());
        schedule.handle_pull(id, found(true, 9, first_ms), first_ms);
        for _ in 0..3 {
            let now_ms = schedule.poll_timeout(true).unwrap();
            let wait_ms = fail(&mut schedule, now_ms);
            assert!((least_ms..=least_ms * 5 / 4).contains(&wait_ms), "{wait_ms} {interval_min}");
            assert_eq!(schedule.view(id).unwrap().back_off_ms, wait_ms);
        }
        assert!(schedule.handle_request(id, 1), "an administrator need not wait");
        assert!(schedule.view(id).unwrap().due_ms <= Some(first_ms.max(1)));
    };
    check(3_600.0, HOUR_MS);
    check(86_400.0, HOUR_MS);
    check(20.0, 20_000);
}

/// Older notes counted no pulls: their hundred days must not count for new pulls.
#[test]
fn best_estimation_counts_only_the_time_of_counted_pulls() {
    let estimated = Rules { pace: Pace::BestEstimation, ..Rules::new(BOUNDS) };
    let known = r#"{"watched_secs":8640000,"elements":100,"last_ms":0}"#;
    let mut schedule = Schedule::new(settings());
    let id = schedule.add([(estimated, serde_json::from_str(known).unwrap())], 0)[0];
    for pull in 1..=40 {
        // Each second pull brings something: −ln(½) updates in 100 seconds.
        schedule.handle_pull(id, found(false, pull % 2, pull * 100_000), pull * 100_000);
        let known = schedule.note(id).unwrap();
        assert!(serde_json::to_string(&known).unwrap().contains("counted_secs"));
    }
    let interval = schedule.view(id).unwrap().interval_secs.unwrap();
    let expected = 100.0 / -(20.5_f64 / 40.5).ln();
    assert!((interval / expected - 1.0).abs() < 1e-4, "{interval} against {expected}");
    // The same over a restart.
    let known = schedule.note(id).unwrap();
    let mut again = Schedule::new(settings());
    let id = again.add([(estimated, known)], 4_000_000)[0];
    let after = again.view(id).unwrap().interval_secs.unwrap();
    assert!((after / interval - 1.0).abs() < 1e-6, "{after} against {interval}");
}
