//! Tests of the examples in the paper of Liu, Maly, Zubair and Nelson: costs, intervals, RSS.
//!
//! Expected values: the paper's text where it gives a frequency, and otherwise a count, second by
//! second, in the test.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use freshness::history::Settings;
use freshness::syndication::{Period, Syndication};
use study::log::Study;
use study::model::{Demand, Synchronization, predict};
use study::report::Class;

const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

fn check(what: &str, found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{what}: {found} for {expected}");
}

/// Returns providers with the same number of updates a day.
fn providers(count: usize, latency: i64, updates_a_day: f64) -> Vec<Demand> {
    let one = Demand { latency: latency as f64, frequency: updates_a_day / DAY as f64 };
    vec![one; count]
}

/// Returns the requests of a model in a day: on one provider's side, and on the harvester's.
fn costs(providers: &[Demand], model: Synchronization) -> (f64, f64) {
    let prediction = predict(providers, model, DAY as f64, 1.0);
    check("nothing is late", prediction.late_share_max, 0.0);
    (prediction.requests[0], prediction.total)
}

/// §3, first example: scholarly publications, with an acceptable latency of a day.
#[test]
fn a_digital_library_pulls_each_repository_once_a_day() {
    let busy = providers(100, DAY, 3.0);
    for model in [Synchronization::Uniform, Synchronization::Latency, Synchronization::Adaptive] {
        let (provider, harvester) = costs(&busy, model);
        check("provider", provider, 1.0);
        check("harvester", harvester, 100.0);
    }
    // A source that changes once a month is pulled once a month, if the harvester knows the rate.
    check(
        "steady",
        costs(&providers(100, DAY, 1.0 / 30.0), Synchronization::Adaptive).1,
        100.0 / 30.0,
    );
}

/// §3, second example: a latency of a minute, and about one update an hour at each agency.
#[test]
fn a_news_aggregator_pulls_sixty_times_too_often() {
    for agencies in [1, 10, 1_000] {
        let news = providers(agencies, MINUTE, 24.0);
        let (provider, harvester) = costs(&news, Synchronization::Uniform);
        check("uniform, provider", provider, 1_440.0);
        check("uniform, harvester", harvester, 1_440.0 * agencies as f64);
        let (provider, harvester) = costs(&news, Synchronization::Adaptive);
        check("adaptive, provider", provider, 24.0);
        check("adaptive, harvester", harvester, 24.0 * agencies as f64);
    }
}

/// Simulates one day of an agency, second by second. It is updated every hour at 15 min 20 s, and
/// harvested when `pulls` returns true for (second, whether the copy is stale). Returns the
/// requests, the empty ones, the longest wait of an update in seconds, and the freshness.
fn one_day(pulls: impl Fn(i64, bool) -> bool) -> (f64, u64, i64, f64) {
    let mut study = Study::new(Settings::default(), 0);
    study.handle("agency", 0, 500).unwrap();
    let (mut requests, mut waiting, mut longest, mut fresh) = (0.0, None, 0, 0);
    for at in 1..=DAY {
        fresh += i64::from(waiting.is_none());
        if pulls(at, waiting.is_some()) {
            requests += 1.0;
            study.handle("agency", at, u64::from(waiting.is_some())).unwrap();
            longest = longest.max(waiting.take().map_or(0, |since| at - since));
        }
        if at % HOUR == 15 * MINUTE + 20 {
            waiting = Some(at);
        }
    }
    let cost = study.history(&"agency").unwrap().cost;
    assert!((cost.requests as f64 - requests - 1.0).abs() < 1e-12, "{cost:?}");
    (requests, cost.requests_empty, longest, fresh as f64 / DAY as f64)
}

#[test]
fn predictions_agree_with_a_day_second_by_second() {
    let news = providers(1, MINUTE, 24.0);
    let (requests, empty, longest, freshness) = one_day(|at, _| at % MINUTE == 0);
    check("uniform", requests, costs(&news, Synchronization::Uniform).0);
    assert_eq!((empty, longest), (1_440 - 24, 40));
    check("uniform, freshness", freshness, 1.0 - 40.0 / HOUR as f64);

    let (requests, empty, longest, freshness) = one_day(|_, stale| stale);
    check("adaptive", requests, costs(&news, Synchronization::Adaptive).0);
    assert_eq!((empty, longest), (0, 1));
    check("adaptive, freshness", freshness, 1.0 - 1.0 / HOUR as f64);
}

/// §4: the average update interval is the observed months over the number of updates. Archives are
/// harvested daily with a granularity of a day; each has its own steady pace.
#[test]
fn steady_archives_differ_from_each_other() {
    let paces = [
        ("daily", 1, Class::Daily),
        ("weekly", 7, Class::Weekly),
        ("monthly", 30, Class::Monthly),
        ("quarterly", 90, Class::Quarterly),
        ("yearly", 360, Class::Yearly),
    ];
    let mut study = Study::new(Settings::default(), 0);
    let days = 1_260_i64;
    for day in 0..=days {
        for (archive, pace, _) in paces {
            // The harvester pulls at another hour each day.
            let at = day * DAY + (day * 7 % 24) * HOUR;
            let changed = day % pace == 0;
            study.handle(archive, at, if changed { 2 } else { 0 }).unwrap();
        }
        study.handle("closed", day * DAY, if day == 0 { 10_000 } else { 0 }).unwrap();
    }
    let report = study.report(days * DAY);
    for (row, (archive, pace, class)) in report.sources.iter().zip(paces) {
        assert_eq!((row.source, row.class), (archive, class));
        check(archive, row.intervals.mean().unwrap(), (pace * DAY) as f64);
        check(archive, row.intervals.variation().unwrap(), 0.0);
        assert_eq!(row.updates, u64::try_from(days / pace).unwrap());
        assert_eq!(row.records, 2 * row.updates);
    }
    assert_eq!(report.sources.last().map(|row| row.class), Some(Class::Never));
    let shares: Vec<u64> = report.classes.iter().map(|row| row.sources).collect();
    assert_eq!(shares, [1, 1, 1, 1, 1, 0, 1]);
    // Each archive is steady; all together are not.
    assert!(report.overall.intervals.variation() > Some(1.0));

    // Table 1: rates hardly differ from one whole month to another.
    let (first, last) = (report.months[0], report.months[report.months.len() - 1]);
    assert_eq!(
        (first.month.to_string(), last.month.to_string()),
        ("1970-01".into(), "1973-06".into())
    );
    for month in &report.months[..report.months.len() - 1] {
        let a_day = month.record_rate * DAY as f64;
        assert!((2.2..2.6).contains(&a_day), "{}: {a_day}", month.month);
    }
}

/// §6, with the example of the RSS module: a file that is updated twice an hour.
#[test]
fn a_source_that_announces_twice_an_hour_is_due_twice_an_hour() {
    let published =
        Syndication::parse(Some("hourly"), Some("2"), Some("2000-01-01T12:00+00:00")).unwrap();
    assert_eq!(Ok(published), Syndication::new(Period::Hourly, 2, 946_728_000));
    check("interval", published.interval_secs(), 1_800.0);
    let noon = 946_728_000;
    let mut at = noon - 1;
    let mut day = 0;
    while at < noon + DAY - 1_800 {
        at = published.next_update(at);
        assert_eq!((at - noon) % 1_800, 0);
        day += 1;
    }
    assert_eq!(day, 48);
}
