//! Tests of notifications that a source has changed.

use super::*;

fn found(full: bool, as_of_ms: u64) -> PullReport {
    PullReport {
        full,
        changes: 1,
        age_secs: 0.0,
        first_changes: None,
        elements: 1_000,
        as_of_ms,
        early: false,
    }
}

/// Returns a schedule with a source that was pulled once, at 0.
fn pulled(rules: Rules) -> (Schedule, SourceId) {
    let mut schedule = Schedule::new(settings());
    let id = add(&mut schedule, rules, 0);
    assert!(schedule.poll_due(true, 0).is_some());
    schedule.handle_pull(id, found(true, 0), 0);
    (schedule, id)
}

fn hourly() -> Rules {
    let announced = crate::syndication::Syndication::parse(Some("hourly"), None, None).unwrap();
    let bounds = Bounds { interval_min: 10.0, interval_max: 86_400.0 };
    Rules { pace: Pace::Syndication(announced), ..Rules::new(bounds) }
}

fn due(schedule: &Schedule, id: SourceId) -> Option<u64> {
    schedule.view(id).unwrap().due_ms
}

#[test]
fn a_notified_source_is_due_after_its_shortest_interval_once() {
    let (mut schedule, id) = pulled(hourly());
    let planned = due(&schedule, id).unwrap();
    assert_eq!(planned, 3_601_000);
    assert!(schedule.handle_notice(id, 2_000));
    assert_eq!((due(&schedule, id), schedule.poll_due(true, 9_999)), (Some(10_000), None));
    for now_ms in 3_000..3_100 {
        schedule.handle_notice(id, now_ms);
    }
    assert!(!schedule.poll_due(true, 10_000).unwrap().wait);
    schedule.handle_pull(id, found(false, 10_000), 10_050);
    assert_eq!(due(&schedule, id), Some(planned), "once, however many notifications came");
    // Long after the last pull: at once.
    schedule.handle_notice(id, 60_000);
    assert!(schedule.poll_due(true, 60_000).is_some());
    // A notification during a pull may be too late for that pull.
    schedule.handle_notice(id, 60_010);
    schedule.handle_pull(id, found(false, 60_000), 60_020);
    assert_eq!(due(&schedule, id), Some(70_000));
    assert!(!schedule.handle_notice(SourceId(7), 60_020));
}

#[test]
fn notifications_respect_back_off_hours_and_cap() {
    // After a failure the back-off holds.
    let (mut schedule, id) = pulled(hourly());
    assert!(schedule.handle_request(id, 20_000) && schedule.poll_due(true, 20_000).is_some());
    schedule.handle_failure(id, Some(Duration::from_secs(600)), 20_000);
    schedule.handle_notice(id, 20_000);
    assert_eq!(due(&schedule, id), Some(620_000));
    // Outside its hours a source is left alone: it is 00:00, and the hours begin at 06:00.
    let (mut schedule, id) = pulled(hourly());
    schedule.handle_rules(id, Rules { window: Window::parse("6-7"), ..hourly() }, 1);
    schedule.handle_notice(id, 60_000);
    assert_eq!(due(&schedule, id), Some(6 * 3_600_000));
    // The cap holds for all pulls.
    let mut schedule = Schedule::new(Settings { pulls_per_minute_max: 10, ..settings() });
    let ids = schedule.add(std::iter::repeat_n((hourly(), SourceNote::default()), 50), 0);
    let mut times = Vec::new();
    for now_ms in (0..600_000).step_by(500) {
        for id in &ids {
            schedule.handle_notice(*id, now_ms);
        }
        while let Some(due) = schedule.poll_due(true, now_ms) {
            times.push(now_ms);
            schedule.handle_pull(due.source, found(false, now_ms), now_ms);
        }
    }
    assert!(times.windows(11).all(|it| 60_000 <= it[10] - it[0]), "{times:?}");
    assert!(90 <= times.len(), "{}", times.len());
}

#[test]
fn a_followed_source_needs_no_notification() {
    let (mut schedule, id) = pulled(Rules { follow: true, ..hourly() });
    let before = due(&schedule, id);
    schedule.handle_notice(id, 5);
    assert_eq!(due(&schedule, id), before);
}
