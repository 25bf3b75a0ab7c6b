//! Tests of `harvest freshness report`: the study of a log, from the shell.

use std::fs;
use std::path::Path;

use crate::harness::{run, run_ok, texts, write};

/// 2026-01-01T00:00:00Z, in Unix milliseconds, by `date -u -d 2026-01-01 +%s`.
const START_MS: u64 = 1_767_225_600_000;
const HOUR_MS: u64 = 3_600_000;
const HEADER: &str = "#harvest-pulls-1 ended_ms\tsource\tkind\tchanges\telements\tbytes\ttook_ms\n";

/// Writes a log of two files: `news, hourly` changed before each hourly pull; `"still"` is pulled
/// daily and never changed. The second file ends with a bad line, a comment and an unfinished line.
fn log(folder: &Path) {
    let line = |hour: u64| {
        let (ms, kind) = (START_MS + hour * HOUR_MS, if hour == 0 { "snapshot" } else { "delta" });
        let changes = if hour == 0 { 100 } else { 2 };
        let news = format!("{ms}\tnews, hourly\t{kind}\t{changes}\t100\t512\t20\n");
        let still = format!("{ms}\t\"still\"\t{kind}\t0\t\t64\t10\n");
        if hour.is_multiple_of(24) { news + &still } else { news }
    };
    let (first, second) = ((0..=20).map(line), (21..=48).map(line));
    write(folder, "pulls-0000000001.tsv", HEADER.to_owned() + &first.collect::<String>());
    let rest = format!("{}oops\n{}17672", second.collect::<String>(), "# looked at by hand\n");
    write(folder, "pulls-0000000002.tsv", HEADER.to_owned() + &rest);
}

/// Returns the fields of a line of CSV.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => {
                fields.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

/// Returns the field in `column` of the first line that has all `cells`.
fn field(csv: &str, cells: &[&str], column: &str) -> String {
    let mut lines = csv.split_terminator("\r\n").map(fields);
    let header = lines.next().unwrap();
    let lines: Vec<Vec<String>> = lines.collect();
    assert!(lines.iter().all(|it| it.len() == header.len()), "{csv}");
    let line = lines.iter().find(|it| cells.iter().all(|part| it.iter().any(|it| it == part)));
    let at = header.iter().position(|it| it == column).unwrap();
    line.unwrap_or_else(|| panic!("no {cells:?} in\n{csv}"))[at].clone()
}

fn number(csv: &str, cells: &[&str], column: &str) -> f64 {
    field(csv, cells, column).parse().unwrap()
}

#[test]
fn a_log_is_shown_as_tables_as_csv_and_as_a_figure() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path());
    let folder = dir.path().to_str().unwrap();
    let output = run(["freshness", "report", "--pulls", folder, "--latency", "60"]);
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
    assert!(err.contains("1 line left out") && err.contains("0000000002.tsv:32: "), "{err}");
    for part in ["Totals", "2026-01", "news, hourly", "\"still\"", "Record update rate by month"] {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }

    let (csv, svg) = (dir.path().join("report.csv"), dir.path().join("report.svg"));
    let files = ["--csv", csv.to_str().unwrap(), "--svg", svg.to_str().unwrap()];
    let args =
        ["freshness", "report", "--pulls", folder, "--latency", "60"].into_iter().chain(files);
    assert_eq!(run_ok(args), "", "nothing but the files");
    let csv = fs::read_to_string(csv).unwrap();
    // The paper's example (a latency of a minute, hourly updates) with a second source, which never
    // changes.
    let within = |found: f64, expected: f64| (found - expected).abs() < 1e-6 * expected;
    assert!(within(number(&csv, &["model", "uniform"], "requests_predicted"), 2_880.0), "{csv}");
    assert!(within(number(&csv, &["model", "adaptive"], "requests_predicted"), 24.0), "{csv}");
    let news = ["source", "news, hourly"];
    assert!(within(number(&csv, &news, "interval_mean_secs"), 3_600.0));
    assert!(within(number(&csv, &news, "records_a_day"), 48.0));
    assert_eq!(field(&csv, &news, "requests"), "49");
    assert_eq!(field(&csv, &news, "bytes"), (49 * 512).to_string());
    assert_eq!(field(&csv, &["source", "\"still\""], "interval_mean_secs"), "");
    assert!(within(number(&csv, &["month", "2026-01"], "records"), 96.0));
    assert!(within(number(&csv, &["class", "daily"], "share"), 0.5));
    let svg = fs::read_to_string(svg).unwrap();
    for (part, count) in [("<svg", 1), ("</svg>", 1), ("<title ", 1), ("</title>", 1)] {
        assert!(svg.matches(part).count() >= count, "{part} is not in\n{svg}");
    }
    assert_eq!(svg.matches('<').count(), svg.matches('>').count());

    // Only the last pull of each source is at or after this date.
    let args = ["freshness", "report", "--pulls", folder, "--since", "2026-01-03", "--csv"];
    let csv = run_ok(args);
    assert_eq!(field(&csv, &["total"], "requests"), "2");
}

#[test]
fn the_settings_lead_to_the_log_and_a_trace_needs_no_settings() {
    let dir = tempfile::tempdir().unwrap();
    let settings = "name = \"n\"\ndata = \"d\"\n[[source]]\nname = \"news, hourly\"\n\
                    url = \"http://127.0.0.1:1/\"\nlatency_seconds = 60\n";
    let settings = write(dir.path(), "broker.toml", settings);
    let settings = settings.to_str().unwrap();
    let output = run(["freshness", "report", "-c", settings]);
    let (_, err) = texts(&output);
    assert!(!output.status.success());
    assert!(err.contains("d/pulls") && err.contains("writes it with its first pull"), "{err}");

    log(&dir.path().join("d/pulls"));
    let csv = run_ok(["freshness", "report", "-c", settings, "--csv"]);
    // One source has a latency of a minute, the lesser of the two, which the uniform model uses;
    // the other has the default, a day.
    assert!((number(&csv, &["model", "uniform"], "requests_predicted") - 2_880.0).abs() < 1e-6);
    assert!((number(&csv, &["model", "latency"], "requests_predicted") - 1_441.0).abs() < 1e-6);

    let trace = write(dir.path(), "releases", "2026-01-01,a,1.0\n2026-01-03,a,1.1\n2026-01-09,b\n");
    let csv = run_ok(["freshness", "report", "--trace", trace.to_str().unwrap(), "--csv"]);
    assert_eq!(field(&csv, &["source", "a"], "interval_mean_secs"), "172800");
    let (_, err) = texts(&run(["freshness", "report"]));
    assert!(
        err.contains("--config") && err.contains("--pulls") && err.contains("--trace"),
        "{err}"
    );
}
