//! Tests of the report: small logs, with results computed by hand from the paper's definitions.

use std::fs;
use std::path::{Path, PathBuf};

use broker::pull_log::{Outcome, Pull, PullLog};
use clap::Parser;

use super::show::{ReportView, chart, duration};
use super::*;

const DAY: i64 = 86_400;
/// 2026-01-10T00:00:00Z, by `date -u -d 2026-01-10 +%s`.
const START: i64 = 1_768_003_200;
const ALL: ReadOptions = ReadOptions { since_secs: None, granularity_secs: 1 };

/// The command line alone.
#[derive(Debug, Parser)]
struct TestCli {
    #[command(flatten)]
    report: Report,
}

/// Writes a log of pulls: (source, half days after the start, outcome, changes).
fn write_log(folder: &Path, pulls: &[(&str, u64, Outcome, u64)]) {
    let mut log = PullLog::open(folder).unwrap();
    for (source, half_days, outcome, changes) in pulls {
        let pull = Pull {
            ended_ms: (START.unsigned_abs() + half_days * 43_200) * 1_000,
            source: (*source).to_owned(),
            outcome: *outcome,
            changes: *changes,
            elements: None,
            bytes: 1_024,
            took_ms: 500,
        };
        log.append(&pull).unwrap();
    }
}

/// Three sources over eight days: one that changes after 1, 1, 2 and 3 days, one that does not, and
/// one that never answers.
const SMALL: [(&str, u64, Outcome, u64); 11] = [
    ("busy", 0, Outcome::Snapshot, 50),
    ("still", 0, Outcome::Snapshot, 7),
    ("busy", 2, Outcome::Delta, 3),
    ("busy", 4, Outcome::Delta, 1),
    ("busy", 6, Outcome::Delta, 0),
    ("busy", 7, Outcome::Failed, 0),
    ("gone", 7, Outcome::Failed, 0),
    ("busy", 8, Outcome::Delta, 5),
    ("busy", 14, Outcome::Delta, 7),
    ("busy", 16, Outcome::Delta, 0),
    ("still", 16, Outcome::Delta, 0),
];

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} against {expected}");
}

/// Returns the lines for a person, with runs of spaces as one space.
fn text(log: &StudiedLog, predictions: &[Prediction]) -> Vec<String> {
    let report = log.study.report(log.until_secs);
    let text = ReportView { log, report: &report, predictions }.text(false);
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_log_of_pulls_is_measured_as_the_paper_does() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path(), &SMALL);
    let log = read::pulls(dir.path(), ALL).unwrap();
    let report = log.study.report(log.until_secs);
    let busy = &report.sources[0];
    assert_eq!((busy.source.as_str(), busy.updates, busy.records), ("busy", 4, 16));
    // Intervals of 1, 2 and 3 days; fresh on 2 days of 8 and half of the others.
    close(busy.intervals.mean().unwrap(), 2.0 * DAY as f64);
    close(busy.intervals.deviation().unwrap(), DAY as f64);
    close(busy.intervals.variation().unwrap(), 0.5);
    close(busy.freshness.unwrap(), 0.625);
    close(busy.record_rate.unwrap() * DAY as f64, 2.0);

    let predictions = predictions(&demands(&log, None, LATENCY_SECS), None);
    let totals: Vec<f64> = predictions.iter().map(|it| it.total).collect();
    // Three sources once a day; one every other day.
    assert_eq!(totals.len(), 3);
    close(totals[0], 3.0);
    close(totals[2], 0.5);

    let lines = text(&log, &predictions);
    for expected in [
        "sources 3, 1 of them changed",
        "observed 2026-01-10T00:00:00Z to 2026-01-18T00:00:00Z, 8.0 days",
        "updates 4; 0.250 a day and source",
        "records updated 16; 1.0 a day and source",
        "update interval mean 2.0 days, deviation 1.0 days, variation 0.50",
        // (0.625 + 1) / 2
        "fresh as a whole 0.812",
        "requests 11, 3 empty, 2 failed",
        "brought 73 records, 11.00 KiB compressed, in 5.5 s",
        "2026-01 4 16 2.0",
        "daily up to 3.0 days 1 33.3 % 33.3 %",
        "longer over 540.0 days 0 0.0 % 33.3 %",
        "never – 2 66.7 % 100.0 %",
        "uniform 3.0 1.0 0.0 %",
        "adaptive 0.500 0.167 0.0 %",
        "as logged 1.4 0.458 –",
        "Sources, the most active first",
        "busy daily 4 16 2.0 2.0 days 1.0 days 0.50 0.625 8 2 1 8.00 KiB",
        "gone never 0 0 – – – – – 1 0 1 1.00 KiB",
    ] {
        assert!(lines.iter().any(|it| it == expected), "{expected:?} is not in\n{lines:#?}");
    }
}

#[test]
fn a_snapshot_starts_the_clock_anew() {
    let dir = tempfile::tempdir().unwrap();
    let again = [
        ("a", 0, Outcome::Snapshot, 9),
        ("a", 2, Outcome::Delta, 1),
        ("a", 100, Outcome::Snapshot, 900),
        ("a", 104, Outcome::Delta, 5),
    ];
    write_log(dir.path(), &again);
    let log = read::pulls(dir.path(), ALL).unwrap();
    let row = &log.study.report(0).sources[0];
    // A day and two days; the time between them was not observed.
    assert_eq!((row.updates, row.records, row.known_secs), (2, 6, 3 * DAY.unsigned_abs()));
}

#[test]
fn earlier_entries_are_left_out_and_a_granule_has_one_update() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path(), &SMALL);
    let options = ReadOptions { since_secs: Some(START + 4 * DAY), granularity_secs: 1 };
    let log = read::pulls(dir.path(), options).unwrap();
    let report = log.study.report(0);
    // The source's log starts on day 4, and day 7 has the only update.
    assert_eq!((report.overall.sources, report.overall.updates), (2, 1));
    assert_eq!(log.span_secs.0, START + 4 * DAY);

    let week = ReadOptions { since_secs: None, granularity_secs: 7 * 86_400 };
    let log = read::pulls(dir.path(), week).unwrap();
    // Weeks begin on Thursdays: 15 January is one, between day 4 and day 7.
    assert_eq!(log.study.report(0).overall.updates, 2);

    let options = ReadOptions { since_secs: Some(START + 99 * DAY), granularity_secs: 1 };
    let error = read::pulls(dir.path(), options).unwrap_err().to_string();
    assert!(error.ends_with("no pull in the log since 2026-04-19T00:00:00Z"), "{error}");
}

/// The paper's second example: a latency of a minute, and updates once an hour.
#[test]
fn a_uniform_harvester_pulls_sixty_times_too_often() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hourly.tsv");
    let changes = |source| (0..=240).map(move |nth| format!("{}\t{source}\n", START + nth * 3_600));
    fs::write(&file, changes("one").chain(changes("two")).collect::<String>()).unwrap();
    let log = read::changes(&file, ALL).unwrap();
    let of = |latency| {
        let found = predictions(&demands(&log, None, latency), None);
        (found[0].total, found[2].total)
    };
    let (uniform, adaptive) = of(60.0);
    close(uniform, 2.0 * 1_440.0);
    close(adaptive, 2.0 * 24.0);
    // The first example: with a latency of a day, every harvester pulls once a day.
    let (uniform, adaptive) = of(86_400.0);
    close(uniform, 2.0);
    close(adaptive, 2.0);
    assert!(
        text(&log, &[]).iter().all(|it| !it.contains("requests 0") && !it.contains("as a whole"))
    );
}

#[test]
fn a_source_of_a_trace_without_a_change_never_changed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.tsv");
    let text = format!(
        "#elements still 3\n{START}\told\n{}\tnew\n{}\tnew\n",
        START + DAY,
        START + 4 * DAY
    );
    fs::write(&file, text).unwrap();
    let rows = |options| {
        let log = read::changes(&file, options).unwrap();
        let report = log.study.report(log.until_secs);
        report
            .sources
            .into_iter()
            .map(|it| (it.source, it.updates, it.known_secs))
            .collect::<Vec<_>>()
    };
    let (day, none) = (DAY.unsigned_abs(), String::from);
    let expected =
        [(none("new"), 1, 3 * day), (none("old"), 0, 4 * day), (none("still"), 0, 4 * day)];
    assert_eq!(rows(ALL), expected);
    let since = ReadOptions { since_secs: Some(START + 2 * DAY), granularity_secs: 1 };
    let expected =
        [(none("new"), 1, 2 * day), (none("old"), 0, 2 * day), (none("still"), 0, 2 * day)];
    assert_eq!(rows(since), expected);
}

#[test]
fn the_settings_give_the_acceptable_latency() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path(), &SMALL);
    let settings = "name = 'n'\ndata = 'd'\n[[source]]\nurl = 'http://b/'\nname = 'busy'\n\
                    latency_seconds = 3600\n[[source]]\nurl = 'http://s/'\nname = 'still'\n";
    let config = Config::parse(settings).unwrap();
    let log = read::pulls(dir.path(), ALL).unwrap();
    let demands = demands(&log, Some(&config), 7_200.0);
    let latencies: Vec<f64> = demands.iter().map(|it| it.latency).collect();
    // In order of names: busy, gone, still.
    for (found, expected) in latencies.iter().zip([3_600.0, 7_200.0, 7_200.0]) {
        close(*found, expected);
    }
    let found: Vec<f64> = predictions(&demands, Some(&config)).iter().map(|it| it.total).collect();
    for (found, expected) in found.iter().zip([72.0, 48.0, 0.5]) {
        close(*found, expected);
    }
}

#[test]
fn the_figure_has_a_bar_for_each_class() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path(), &SMALL);
    let log = read::pulls(dir.path(), ALL).unwrap();
    let drawn = chart(&log.study.report(0).classes);
    let web::chart::Marks::Bars(bars) = &drawn.series[0].marks else { panic!("{drawn:?}") };
    assert_eq!(bars.len(), 7);
    close(bars[0].1, 1.0 / 3.0);
    close(bars[6].1, 2.0 / 3.0);
    let svg = drawn.standalone();
    for name in ["day", "week", "month", "¼ year", "year", "longer", "never"] {
        assert!(svg.contains(&format!(">{name}</text>")), "{name} is not in\n{svg}");
    }
}

#[track_caller]
fn check_error(found: anyhow::Result<StudiedLog>, parts: &[&str]) {
    let error = format!("{:#}", found.unwrap_err());
    assert!(parts.iter().all(|it| error.contains(it)), "{error}");
}

#[test]
fn errors_name_the_file_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("pulls");
    let name = missing.to_str().unwrap();
    check_error(read::pulls(&missing, ALL), &[name, "writes it with its first pull"]);
    check_error(read::pulls(dir.path(), ALL), &["no pull in the log"]);
    fs::write(dir.path().join("pulls-0000000001.tsv"), "x\n").unwrap();
    check_error(read::pulls(dir.path(), ALL), &["no pull", "1 line left out", "1.tsv:1: "]);
    check_error(read::changes(&missing, ALL), &[name, "cannot be read"]);
    let file = dir.path().join("t.tsv");
    fs::write(&file, "1\ta\nyesterday\tb\n").unwrap();
    check_error(read::changes(&file, ALL), &["t.tsv, line 2: \"yesterday\" is no time"]);
    fs::write(&file, "# nothing\n").unwrap();
    check_error(read::changes(&file, ALL), &["t.tsv: no change in the log"]);
}

#[test]
fn bad_lines_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    write_log(dir.path(), &SMALL);
    let file = dir.path().join("pulls-0000000001.tsv");
    let text = fs::read_to_string(&file).unwrap();
    let far = u64::MAX;
    fs::write(&file, format!("{text}x\n{far}\ta\tdelta\t1\t\t1\t1\n")).unwrap();
    let log = read::pulls(dir.path(), ALL).unwrap();
    assert_eq!(log.study.report(0).overall.sources, 3);
    let message = log.left_out().unwrap();
    assert!(message.starts_with("2 lines left out; the first: "), "{message}");
    assert!(message.contains("pulls-0000000001.tsv:13: not seven fields"), "{message}");
}

#[test]
fn the_command_line_names_one_log() {
    let parse = |line: &str| TestCli::try_parse_from(line.split(' '));
    let report = parse("report --pulls d --since 2026-01-10 --csv --latency 60").unwrap().report;
    assert_eq!(report.since, Some(START));
    assert_eq!(report.csv, Some(PathBuf::from("-")));
    for line in [
        "report",
        "report --pulls d --trace f",
        "report --pulls d --since tomorrow",
        "report --pulls d --latency 0",
        "report --pulls d --latency inf",
        "report --pulls d --granularity 0",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn durations_have_fitting_units() {
    for (secs, expected) in [
        (0.0, "0.0 s"),
        (90.0, "90.0 s"),
        (600.0, "10.0 min"),
        (9_000.0, "2.5 hours"),
        (276_480.0, "3.2 days"),
        (94_672_800.0, "3.0 years"),
    ] {
        assert_eq!(duration(secs), expected);
    }
}
