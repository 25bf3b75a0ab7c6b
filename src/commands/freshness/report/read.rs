//! Reads a log into a study: the broker's log of pulls, or a log of changes.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use broker::pull_log::{self, Outcome, Pull};
use freshness::date::date_time;
use freshness::history::{Log, Settings};
use indicatif::{ProgressBar, ProgressStyle};
use study::log::{Refused, SOURCE_MONTHS_MAX, Study, Traffic};
use study::simulate::world::Process;

use super::super::stage::read_trace;
use crate::output;

/// Shortest log for which there is a progress bar, in bytes.
const BAR_BYTES_MIN: u64 = 32 << 20;

/// The bar moves after so many pulls.
const BAR_PULLS: u64 = 10_000;

/// How a log is taken in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taking {
    /// What was before is left out, in Unix seconds.
    pub(super) since_secs: Option<i64>,
    /// Changes within one granule are one update, in seconds.
    pub(super) granularity_secs: u32,
}

impl Taking {
    fn study(self, log: Log) -> Study<String> {
        Study::new(Settings { log, granularity_secs: self.granularity_secs }, SOURCE_MONTHS_MAX)
    }

    fn takes(self, at_secs: i64) -> bool {
        self.since_secs.is_none_or(|since| since <= at_secs)
    }

    /// ` since DATE`, if it is since a date.
    fn said(self) -> String {
        self.since_secs.map(|it| format!(" since {}", date_time(it))).unwrap_or_default()
    }
}

/// A log, as it was taken in.
#[derive(Debug)]
pub(super) struct Logged {
    pub(super) study: Study<String>,
    /// First and last entry taken in, in Unix seconds.
    pub(super) span_secs: (i64, i64),
    /// Until when the study reaches, in Unix seconds: the last entry.
    pub(super) until_secs: i64,
    /// What pulls brought that failed, by source: the next one that succeeds has gone on after it.
    part: BTreeMap<String, u64>,
    /// Lines that could not be taken in, and the first of them.
    wrong: (u64, Option<String>),
}

impl Logged {
    fn new(study: Study<String>) -> Self {
        let (span_secs, wrong) = ((i64::MAX, i64::MIN), (0, None));
        Self { study, span_secs, until_secs: 0, part: BTreeMap::new(), wrong }
    }

    /// What to say of the lines that could not be taken in.
    pub(super) fn left_out(&self) -> Option<String> {
        let (count, first) = &self.wrong;
        let first = first.as_ref()?;
        Some(format!("{} left out; the first: {first}", output::counted(*count, "line")))
    }

    fn handle_wrong(&mut self, said: impl FnOnce() -> String) {
        self.wrong.0 += 1;
        self.wrong.1.get_or_insert_with(said);
    }

    fn handle_time(&mut self, at_secs: i64) {
        let (first, last) = self.span_secs;
        self.span_secs = (first.min(at_secs), last.max(at_secs));
        self.until_secs = self.span_secs.1;
    }

    /// What passed since the pulls before is not known.
    fn handle_clock_set(&mut self) {
        let all: Vec<String> = self.study.histories().map(|(source, _)| source.clone()).collect();
        all.iter().for_each(|source| self.study.handle_restart(source));
    }

    fn handle_pull(&mut self, pull: &Pull, taking: Taking) -> Result<(), Refused> {
        let at_secs = i64::try_from(pull.ended_ms / 1_000).unwrap_or(i64::MAX);
        if !taking.takes(at_secs) {
            return Ok(());
        }
        let Pull { ref source, outcome, changes, bytes, took_ms, .. } = *pull;
        let requests_failed = u64::from(outcome == Outcome::Failed);
        // Set back while the broker was down: it has not told.
        let is_back = self.study.history(source).is_some_and(|it| at_secs < it.last_secs);
        if outcome == Outcome::Snapshot || is_back {
            self.study.handle_restart(source);
        }
        if outcome != Outcome::Failed {
            let part = self.part.remove(source).unwrap_or_default();
            self.study.handle(source.clone(), at_secs, changes.saturating_add(part))?;
        }
        self.study.handle_traffic(source.clone(), Traffic { requests_failed, bytes, took_ms })?;
        if outcome == Outcome::Failed && changes != 0 {
            let part = self.part.entry(source.clone()).or_default();
            *part = part.saturating_add(changes);
        }
        self.handle_time(at_secs);
        Ok(())
    }
}

/// The log of pulls in `folder`.
///
/// # Errors
///
/// It cannot be read, or has no pull in it that is to be taken in.
pub(super) fn pulls(folder: &Path, taking: Taking) -> anyhow::Result<Logged> {
    let said = folder.display();
    let mut reader = match pull_log::read(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            anyhow::bail!("{said}: no log of pulls yet; the broker writes it with its first pull")
        }
        other => other.context("the log of pulls cannot be read")?,
    };
    let bar = (BAR_BYTES_MIN <= reader.bytes()).then(|| ProgressBar::new(reader.bytes()));
    if let Some(bar) = &bar {
        bar.set_style(ProgressStyle::with_template("reading {wide_bar} {bytes}/{total_bytes}")?);
    }
    let mut logged = Logged::new(taking.study(Log::Pulls));
    let (mut count, mut clock_sets) = (0_u64, 0);
    while let Some(item) = reader.next() {
        count += 1;
        if clock_sets != reader.clock_sets() {
            clock_sets = reader.clock_sets();
            logged.handle_clock_set();
        }
        match item {
            Err(malformed) => logged.handle_wrong(|| malformed.to_string()),
            Ok(pull) => {
                if let Err(refused) = logged.handle_pull(&pull, taking) {
                    logged.handle_wrong(|| format!("{refused}: {pull}"));
                }
            }
        }
        if let Some(bar) = bar.as_ref().filter(|_| count.is_multiple_of(BAR_PULLS)) {
            bar.set_position(reader.bytes_read());
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    if logged.span_secs.1 < logged.span_secs.0 {
        let note = logged.left_out().map(|it| format!(" ({it})")).unwrap_or_default();
        anyhow::bail!("{said}: no pull in the log{}{note}", taking.said());
    }
    Ok(logged)
}

/// The log of changes in `file`. Each change is a record that was updated; what has no entry did not
/// change. The study reaches to the last change of all.
///
/// # Errors
///
/// It cannot be read, a line is no change, or none is to be taken in.
pub(super) fn changes(file: &Path, taking: Taking) -> anyhow::Result<Logged> {
    let said = file.display();
    let trace = read_trace(file)?;
    let mut logged = Logged::new(taking.study(Log::Changes));
    let first = trace.span().map(|(first, _)| seconds(first));
    let first = first.with_context(|| format!("{said}: no change in the log"))?;
    for (source, repository) in trace.repositories() {
        let Process::Replay(changes) = repository.process else { continue };
        let times = || changes.iter().map(|it| seconds(it.at));
        if times().next().is_none_or(|it| !taking.takes(it)) {
            // It is known from the start, without a change of its own.
            let start = taking.since_secs.map_or(first, |since| since.max(first));
            logged.study.handle(source.to_owned(), start, 0)?;
        }
        for at_secs in times().filter(|it| taking.takes(*it)) {
            logged.study.handle(source.to_owned(), at_secs, 1)?;
            logged.handle_time(at_secs);
        }
    }
    if logged.span_secs.1 < logged.span_secs.0 {
        anyhow::bail!("{said}: no change in the log{}", taking.said());
    }
    Ok(logged)
}

/// Whole seconds of a trace's time.
#[expect(clippy::cast_possible_truncation, reason = "whole and at most trace::SECS_MAX")]
fn seconds(at: f64) -> i64 {
    at as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_pulls_brought_counts_with_the_next_and_time_does_not_go_back() {
        let mut logged = Logged::new(Study::new(Settings::default(), 0));
        for (at_secs, outcome, changes) in [
            (1_000, Outcome::Snapshot, 50),
            (1_100, Outcome::Failed, 9),
            (1_200, Outcome::Failed, 4),
            (1_300, Outcome::Delta, 1),
            // The clock was set, and set back.
            (31_000_000, Outcome::Delta, 3),
            (700, Outcome::Delta, 6),
            (800, Outcome::Delta, 2),
        ] {
            if at_secs == 31_000_000 {
                logged.handle_clock_set();
            }
            let (ended_ms, source) = (at_secs * 1_000, "a".to_owned());
            let (elements, bytes, took_ms) = (None, 10, 1);
            let pull = Pull { ended_ms, source, outcome, changes, elements, bytes, took_ms };
            let all = Taking { since_secs: None, granularity_secs: 1 };
            logged.handle_pull(&pull, all).unwrap();
        }
        let history = logged.study.history(&"a".to_owned()).unwrap();
        assert_eq!((history.samples, history.records, history.cost.records), (2, 16, 75));
        assert_eq!(history.observed_secs, 400);
    }
}
