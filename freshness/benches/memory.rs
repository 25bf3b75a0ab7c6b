//! Benchmark of a schedule's memory for each source.
//!
//! ```text
//! cargo bench -p freshness --bench memory      100,000 sources
//! HARVEST_BENCH_SOURCES=1000000 cargo bench …
//! ```
//!
//! Sources with a known rate are added all at once, then each is pulled, then everything is
//! recomputed. The figures are the process's own pages as Linux shows them: the present ones (with
//! the spare capacity of vectors), and the peak. Other runs add the sources piece by piece, or
//! follow them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]
#![allow(missing_docs, reason = "a program")]
#![allow(clippy::disallowed_methods, reason = "a bench reads what the process takes")]

use std::process::Command;
use std::{env, fs, iter};

use freshness::interval::{Bounds, Model, Policy};
use freshness::rate::Method;
use freshness::schedule::{PullReport, Rules, Schedule, Settings, SourceNote};

/// Maximum memory of a source, in bytes.
const BYTES_MAX: f64 = 200.0;

const SETTINGS: Settings = Settings {
    policy: Policy::Optimal { theta: 0.95 },
    model: Model::Poisson,
    method: Method::Datestamps,
    gain: 0.25,
    pulls_per_minute_max: 600,
};

fn main() {
    let count: usize = env::var("HARVEST_BENCH_SOURCES").map_or(100_000, |it| it.parse().unwrap());
    let rules = Rules::new(Bounds { interval_min: 60.0, interval_max: 30.0 * 86_400.0 });
    let followed = Rules { follow: true, ..rules };
    let runs =
        [("all at once", rules, 1), ("followed", followed, 1), ("in 100 pieces", rules, 100)];
    let asked = env::var("HARVEST_BENCH_RUN").ok();
    for (what, rules, pieces) in runs {
        match asked.as_deref() {
            Some(asked) if asked == what => measure(what, count, rules, pieces),
            Some(_) => {}
            // Each run has its own process, so that none reuses the memory of another.
            None => {
                let this = env::current_exe().unwrap();
                Command::new(this).env("HARVEST_BENCH_RUN", what).status().unwrap();
            }
        }
    }
}

fn measure(what: &str, count: usize, rules: Rules, pieces: usize) {
    let known = learned(rules);
    let (before, touched) = (status("VmData:"), status("VmRSS:"));
    let each = |bytes: f64| bytes / count as f64;
    let mut schedule = Schedule::new(SETTINGS);
    let mut now_ms = 200_000;
    for piece in 0..pieces {
        let more = count * (piece + 1) / pieces - count * piece / pieces;
        schedule.add(iter::repeat_n((rules, known), more), now_ms);
    }
    let added = status("VmData:") - before;
    for _ in 0..count {
        now_ms += 100;
        if let Some(due) = schedule.poll_due(true, now_ms) {
            let found = found(false, now_ms);
            schedule.handle_pull(due.source, found, now_ms + 50);
        }
    }
    schedule.handle_all_rules([], SETTINGS, now_ms);
    let steady = status("VmData:") - before;
    let peak = status("VmHWM:") - touched;
    println!(
        "{count} sources, {what}: {:.0} bytes each when added, {:.0} when pulled (at most {BYTES_MAX}), \
         {:.0} at the most",
        each(added),
        each(steady),
        each(peak),
    );
}

/// Returns the note of a source that was pulled often enough to have a rate.
fn learned(rules: Rules) -> SourceNote {
    let mut schedule = Schedule::new(SETTINGS);
    let id = schedule.add([(rules, SourceNote::default())], 0)[0];
    for pull in 0..3 {
        let now_ms = pull * 60_000;
        schedule.handle_pull(id, found(pull == 0, now_ms), now_ms + 50);
    }
    schedule.note(id).unwrap()
}

fn found(full: bool, as_of_ms: u64) -> PullReport {
    PullReport {
        full,
        changes: 20,
        age_secs: 30.0,
        first_changes: None,
        elements: 10_000,
        as_of_ms,
        early: false,
    }
}

/// Returns a line of the process's status, in bytes.
fn status(name: &str) -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|it| it.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1_024.0
}
