//! The readers of logs into a study: the broker's log of pulls, or a log of changes.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use broker::pull_log::{self, Outcome, Pull};
use freshness::date::date_time;
use freshness::history::{Log, Settings};
use indicatif::{ProgressBar, ProgressStyle};
use study::log::{Refusal, SOURCE_MONTHS_MAX, Study, Traffic};
use study::simulate::world::Process;

use super::super::stage::read_trace;
use crate::output;

/// Size from which a log is read with a progress bar, in bytes.
const BAR_BYTES_MIN: u64 = 32 << 20;

/// Number of pulls between two moves of the bar.
const BAR_PULLS: u64 = 10_000;

/// Options for reading a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadOptions {
    /// Time before which entries are left out, in Unix seconds.
    pub(super) since_secs: Option<i64>,
    /// Length of a granule, in seconds: changes within one granule are one update.
    pub(super) granularity_secs: u32,
}

impl ReadOptions {
    fn study(self, log: Log) -> Study<String> {
        Study::new(Settings { log, granularity_secs: self.granularity_secs }, SOURCE_MONTHS_MAX)
    }

    fn includes(self, at_secs: i64) -> bool {
        self.since_secs.is_none_or(|since| since <= at_secs)
    }

    /// Returns ` since DATE` for messages; empty without a date.
    fn since_text(self) -> String {
        self.since_secs.map(|it| format!(" since {}", date_time(it))).unwrap_or_default()
    }
}

/// A log that was read into a study.
#[derive(Debug)]
pub(super) struct StudiedLog {
    pub(super) study: Study<String>,
    /// Times of the first and the last entry, in Unix seconds; (MAX, MIN) without an entry.
    pub(super) span_secs: (i64, i64),
    /// End of the study, in Unix seconds: the last entry.
    pub(super) until_secs: i64,
    /// Changes that failed pulls brought, by source; they count with its next successful pull.
    partial: BTreeMap<String, u64>,
    /// Number of lines that could not be read, and the message for the first.
    wrong: (u64, Option<String>),
}

impl StudiedLog {
    fn new(study: Study<String>) -> Self {
        let (span_secs, wrong) = ((i64::MAX, i64::MIN), (0, None));
        Self { study, span_secs, until_secs: 0, partial: BTreeMap::new(), wrong }
    }

    /// Returns a message about the lines that could not be read; `None` if there are none.
    pub(super) fn left_out(&self) -> Option<String> {
        let (count, first) = &self.wrong;
        let first = first.as_ref()?;
        Some(format!("{} left out; the first: {first}", output::counted(*count, "line")))
    }

    fn handle_wrong(&mut self, message: impl FnOnce() -> String) {
        self.wrong.0 += 1;
        self.wrong.1.get_or_insert_with(message);
    }

    fn handle_time(&mut self, at_secs: i64) {
        let (first, last) = self.span_secs;
        self.span_secs = (first.min(at_secs), last.max(at_secs));
        self.until_secs = self.span_secs.1;
    }

    /// Restarts all histories: the time since the previous pulls is unknown.
    fn handle_clock_set(&mut self) {
        let all: Vec<String> = self.study.histories().map(|(source, _)| source.clone()).collect();
        all.iter().for_each(|source| self.study.handle_restart(source));
    }

    fn handle_pull(&mut self, pull: &Pull, options: ReadOptions) -> Result<(), Refusal> {
        let at_secs = i64::try_from(pull.ended_ms / 1_000).unwrap_or(i64::MAX);
        if !options.includes(at_secs) {
            return Ok(());
        }
        let Pull { ref source, outcome, changes, bytes, took_ms, .. } = *pull;
        let requests_failed = u64::from(outcome == Outcome::Failed);
        // The clock was set back while the broker was down, so the log has no mark for it.
        let is_back = self.study.history(source).is_some_and(|it| at_secs < it.last_secs);
        if outcome == Outcome::Snapshot || is_back {
            self.study.handle_restart(source);
        }
        if outcome != Outcome::Failed {
            let partial = self.partial.remove(source).unwrap_or_default();
            self.study.handle(source.clone(), at_secs, changes.saturating_add(partial))?;
        }
        self.study.handle_traffic(source.clone(), Traffic { requests_failed, bytes, took_ms })?;
        if outcome == Outcome::Failed && changes != 0 {
            let partial = self.partial.entry(source.clone()).or_default();
            *partial = partial.saturating_add(changes);
        }
        self.handle_time(at_secs);
        Ok(())
    }
}

/// Reads the log of pulls in `folder`. Fails if it cannot be read, or the options leave no pull.
pub(super) fn pulls(folder: &Path, options: ReadOptions) -> anyhow::Result<StudiedLog> {
    let shown = folder.display();
    let mut reader = match pull_log::read(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            anyhow::bail!("{shown}: no log of pulls yet; the broker writes it with its first pull")
        }
        other => other.context("the log of pulls cannot be read")?,
    };
    let bar = (BAR_BYTES_MIN <= reader.bytes()).then(|| ProgressBar::new(reader.bytes()));
    if let Some(bar) = &bar {
        bar.set_style(ProgressStyle::with_template("reading {wide_bar} {bytes}/{total_bytes}")?);
    }
    let mut log = StudiedLog::new(options.study(Log::Pulls));
    let (mut count, mut clock_sets) = (0_u64, 0);
    while let Some(item) = reader.next() {
        count += 1;
        if clock_sets != reader.clock_sets() {
            clock_sets = reader.clock_sets();
            log.handle_clock_set();
        }
        match item {
            Err(malformed) => log.handle_wrong(|| malformed.to_string()),
            Ok(pull) => {
                if let Err(refused) = log.handle_pull(&pull, options) {
                    log.handle_wrong(|| format!("{refused}: {pull}"));
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
    if log.span_secs.1 < log.span_secs.0 {
        let note = log.left_out().map(|it| format!(" ({it})")).unwrap_or_default();
        anyhow::bail!("{shown}: no pull in the log{}{note}", options.since_text());
    }
    Ok(log)
}

/// Reads the log of changes in `file`. Each change is one updated record; a source without an entry
/// did not change. The study ends at the last change of all. Fails if it cannot be read, a line is
/// no change, or no change is within the options.
pub(super) fn changes(file: &Path, options: ReadOptions) -> anyhow::Result<StudiedLog> {
    let shown = file.display();
    let trace = read_trace(file)?;
    let mut log = StudiedLog::new(options.study(Log::Changes));
    let first = trace.span().map(|(first, _)| seconds(first));
    let first = first.with_context(|| format!("{shown}: no change in the log"))?;
    for (source, repository) in trace.repositories() {
        let Process::Replay(changes) = repository.process else { continue };
        let times = || changes.iter().map(|it| seconds(it.at));
        if times().next().is_none_or(|it| !options.includes(it)) {
            // The source is observed from the start, without a change.
            let start = options.since_secs.map_or(first, |since| since.max(first));
            log.study.handle(source.to_owned(), start, 0)?;
        }
        for at_secs in times().filter(|it| options.includes(*it)) {
            log.study.handle(source.to_owned(), at_secs, 1)?;
            log.handle_time(at_secs);
        }
    }
    if log.span_secs.1 < log.span_secs.0 {
        anyhow::bail!("{shown}: no change in the log{}", options.since_text());
    }
    Ok(log)
}

/// Returns a trace's time in whole seconds.
#[expect(clippy::cast_possible_truncation, reason = "whole and at most trace::SECS_MAX")]
fn seconds(at: f64) -> i64 {
    at as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_failed_pulls_count_with_the_next_and_time_does_not_go_back() {
        let mut log = StudiedLog::new(Study::new(Settings::default(), 0));
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
                log.handle_clock_set();
            }
            let (ended_ms, source) = (at_secs * 1_000, "a".to_owned());
            let (elements, bytes, took_ms) = (None, 10, 1);
            let pull = Pull { ended_ms, source, outcome, changes, elements, bytes, took_ms };
            let all = ReadOptions { since_secs: None, granularity_secs: 1 };
            log.handle_pull(&pull, all).unwrap();
        }
        let history = log.study.history(&"a".to_owned()).unwrap();
        assert_eq!((history.samples, history.records, history.cost.records), (2, 16, 75));
        assert_eq!(history.observed_secs, 400);
    }
}
