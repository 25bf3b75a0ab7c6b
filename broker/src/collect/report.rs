//! The report of a pull: its outcome goes to the schedule, the log of pulls, status and metrics.
//!
//! The collector's state is not locked while the log is written.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use collection::pull::{Kind, Summary};
use net::clock;

use super::harvest::Remarks;
use super::pending::PendingChanges;
use super::{Collector, CollectorState, WAIT};
use crate::blocking::blocking;
use crate::error::Error;
use crate::failure::{FailedPull, Failure};
use crate::memory::{Origin, SourceVersion};
use crate::pull_log::{Outcome, Pull, PullLog};
use crate::schedule::{Due, PullReport};
use crate::status::LastPull;

#[derive(Debug)]
pub(super) struct EndedPull {
    pub(super) due: Due,
    pub(super) url: String,
    pub(super) asked_ms: u64,
    pub(super) began: Instant,
    pub(super) at: Instant,
    /// Changes of the pull, even if it failed or was given up.
    pub(super) pulled: Summary,
    pub(super) remarks: Remarks,
}

impl EndedPull {
    fn took(&self) -> Duration {
        self.at.saturating_duration_since(self.began)
    }

    fn line(&self, outcome: Outcome, now_ms: u64) -> Pull {
        // The duration of a long poll says nothing about its cost.
        let took = if self.due.wait { Duration::ZERO } else { self.took() };
        Pull {
            ended_ms: now_ms,
            source: self.due.source.clone(),
            outcome,
            changes: self.pulled.changes,
            elements: (outcome != Outcome::Failed).then_some(self.pulled.objects),
            bytes: self.pulled.bytes,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// The log of pulls. Pulls go on even if it cannot be written, as on a full disk.
#[derive(Debug)]
pub(super) struct LogWriter {
    folder: PathBuf,
    /// `None` until it can be opened.
    file: Option<PullLog>,
    /// Whether the last line could not be written, so that a warning has been logged already.
    troubled: bool,
    /// For each followed source, the last empty long poll since the last logged pull.
    idle: BTreeMap<String, Pull>,
    /// Offset of the clock when the last line was written.
    clock_off_ms: i64,
}

impl LogWriter {
    pub(super) fn open(folder: PathBuf) -> Self {
        Self { folder, file: None, troubled: false, idle: BTreeMap::new(), clock_off_ms: 0 }
    }

    /// Logs a pull; `clock_off_ms` is the clock's offset since the start. Of consecutive empty long
    /// polls of a source, which end every ten seconds, only the last is written, just before the
    /// source's next other pull. It shows until when there was no change.
    fn handle(&mut self, pull: Pull, wait: bool, clock_off_ms: i64) {
        let by_ms = clock_off_ms.saturating_sub(self.clock_off_ms);
        if by_ms != 0 {
            self.flush();
            self.clock_off_ms = clock_off_ms;
            self.write(|file| file.append_clock_set(by_ms));
        }
        let idle = wait && pull.changes == 0 && pull.outcome == Outcome::Delta;
        if idle {
            self.idle.insert(pull.source.clone(), pull);
            return;
        }
        if let Some(before) = self.idle.remove(&pull.source) {
            self.write(|file| file.append(&before));
        }
        self.write(|file| file.append(&pull));
    }

    fn flush(&mut self) {
        for pull in std::mem::take(&mut self.idle).into_values() {
            self.write(|file| file.append(&pull));
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut PullLog) -> io::Result<()>) {
        let file = match self.file.take() {
            Some(file) => Ok(file),
            None => PullLog::open(&self.folder),
        };
        let outcome = file.and_then(|file| write(self.file.insert(file)));
        let troubled = std::mem::replace(&mut self.troubled, outcome.is_err());
        if let (Err(error), false) = (outcome, troubled) {
            tracing::warn!(%error, "pulls are not logged for now");
        }
    }
}

impl Collector {
    /// Runs the report of a pull on a thread that may block. If the report panics, the pull counts
    /// as an internal failure: otherwise the source would count as being pulled for ever, and could
    /// neither be due nor be removed.
    pub(super) async fn report(&self, source: &str, report: impl FnOnce() + Send + 'static) {
        let work = move || {
            report();
            Ok::<(), Error>(())
        };
        if let Err(error) = blocking("report of a pull", work).await {
            self.handle_failure(source, Failure::Ours, error.to_string(), None);
            self.notify();
        }
    }

    /// Handles the outcome of a pull; `None` if the pull was given up. A harvest that ran out of
    /// time has neither failed nor succeeded; the next pull continues it. May take a while with
    /// thousands of sources.
    pub(super) fn end(&self, ended: &EndedPull, outcome: Option<Result<(), FailedPull>>) {
        let name = &ended.due.source;
        self.handle_remarks(name, &ended.remarks);
        let goes_on = ended.remarks.goes_on;
        if goes_on || !matches!(outcome, Some(Ok(()))) {
            self.handle_incomplete(ended);
        }
        match outcome {
            Some(Ok(())) if !goes_on => self.handle_pulled(ended),
            Some(Err(FailedPull { failure, message, retry_after })) => {
                self.log_pull(ended, Outcome::Failed, clock::now_ms());
                self.handle_failure(name, failure, message, retry_after);
            }
            _ => {
                let mut state = self.state();
                let now_ms = clock::now_ms();
                state.schedule.handle_cancel(name, now_ms);
                if goes_on {
                    // The source is due as soon as its bounds allow.
                    state.schedule.handle_notice(name, now_ms);
                }
                if let Some(entry) = state.sources.get_mut(name) {
                    entry.pulling = false;
                }
            }
        }
        self.notify();
    }

    /// Notifies waiters that a pull has ended.
    pub(super) fn notify(&self) {
        self.inner.ended.send_modify(|count| *count += 1);
        self.inner.changed.notify_one();
    }

    /// Writes the lines that the log holds back.
    pub(super) fn flush_log(&self) {
        self.log().flush();
    }

    fn log_pull(&self, ended: &EndedPull, outcome: Outcome, now_ms: u64) {
        let clock_off_ms = self.state().clock_off_ms;
        self.log().handle(ended.line(outcome, now_ms), ended.due.wait, clock_off_ms);
    }

    fn log(&self) -> MutexGuard<'_, LogWriter> {
        self.inner.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle_remarks(&self, name: &str, remarks: &Remarks) {
        for warning in &remarks.warnings {
            tracing::warn!(source = name, "odd: {warning}");
        }
        let mut state = self.state();
        let CollectorState { sources, schedule, .. } = &mut *state;
        let Some(entry) = sources.get_mut(name) else { return };
        entry.warnings.clone_from(&remarks.warnings);
        let wanted = entry.source.announced;
        if let Some(announced) = remarks.announced.filter(|_| wanted)
            && entry.source.syndication.is_none()
        {
            schedule.handle_announced(name, announced, clock::now_ms());
        }
    }

    /// Counts the changes of a pull that did not succeed, and adds them to the pending ones.
    fn handle_incomplete(&self, ended: &EndedPull) {
        let (pulled, mut state) = (&ended.pulled, self.state());
        let CollectorState { counters, sources, .. } = &mut *state;
        counters.changes += pulled.changes;
        counters.bytes += pulled.bytes;
        counters.applied += pulled.applied;
        if let Some(entry) = sources.get_mut(&ended.due.source) {
            entry.pending = Some(entry.with_pending(PendingChanges::new(pulled, ended.at)));
        }
    }

    fn handle_pulled(&self, ended: &EndedPull) {
        let (name, pulled, now_ms) = (&ended.due.source, &ended.pulled, clock::now_ms());
        let kind = if pulled.kind == Kind::Snapshot { "snapshot" } else { "delta" };
        let took = ended.took();
        tracing::info!(
            source = name.as_str(), kind, changes = pulled.changes, bytes = pulled.bytes,
            took_ms = took.as_millis(), version = %pulled.version, "pulled"
        );
        let last_pull = LastPull {
            at_ms: now_ms,
            kind: kind.to_owned(),
            changes: pulled.changes,
            bytes: pulled.bytes,
            took_seconds: took.as_secs_f64(),
        };
        let mut full = pulled.kind == Kind::Snapshot;
        {
            let mut state = self.state();
            let CollectorState { counters, sources, schedule, .. } = &mut *state;
            counters.handle_pull(pulled);
            if let Some(entry) = sources.get_mut(name) {
                let origin =
                    Origin { url: ended.url.clone(), epoch: pulled.version.epoch.to_string() };
                if entry.handle_origin(origin) {
                    schedule.forget(name, now_ms);
                }
                entry.reached = Some(SourceVersion::from(pulled.version));
                let pending = entry.with_pending(PendingChanges::new(pulled, ended.at));
                schedule.handle_pull(name, schedule_report(ended, &pending, now_ms), now_ms);
                entry.handle_pull(last_pull, &pending);
                full = pending.full;
            }
        }
        let outcome = if full { Outcome::Snapshot } else { Outcome::Delta };
        self.log_pull(ended, outcome, now_ms);
    }

    pub(super) fn handle_failure(
        &self,
        name: &str,
        failure: Failure,
        message: String,
        retry_after: Option<Duration>,
    ) {
        let now_ms = clock::now_ms();
        let mut state = self.state();
        state.schedule.handle_failure(name, retry_after, now_ms);
        state.counters.failures += 1;
        let back_off_ms = state.schedule.view(name).map_or(0, |view| view.back_off_ms);
        let Some(entry) = state.sources.get_mut(name) else { return };
        entry.pulling = false;
        entry.held = failure.is_held().then(|| message.clone());
        tracing::warn!(source = name, back_off_ms, kind = failure.name(), "pull failed: {message}");
        failure.count(&mut entry.errors, message, back_off_ms, now_ms);
    }
}

/// Returns the report of a pull for the schedule, including the changes that were pending before
/// it.
fn schedule_report(ended: &EndedPull, pending: &PendingChanges, now_ms: u64) -> PullReport {
    let (wait, changes) = (ended.due.wait, ended.pulled.changes);
    PullReport {
        full: pending.full,
        changes: pending.changes,
        age_secs: pending.age_secs,
        first_changes: Some(pending.first_changes),
        elements: ended.pulled.objects,
        as_of_ms: if wait { now_ms } else { ended.asked_ms },
        early: wait && changes == 0 && ended.took() < WAIT / 2,
    }
}
