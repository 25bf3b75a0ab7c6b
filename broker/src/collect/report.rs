//! What came of a pull: the schedule, the log of pulls, status and metrics hear of it.
//!
//! No lock on the collector's state is held while the log is written.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use collection::pull::{Kind, Summary};
use net::clock;

use super::brought::Brought;
use super::harvest::Heard;
use super::{Collector, State, WAIT};
use crate::blocking::blocking;
use crate::error::Error;
use crate::failure::{Broke, Failure};
use crate::memory::{Origin, Reached};
use crate::pull_log::{Outcome, Pull, PullLog};
use crate::schedule::{Due, Found};
use crate::status::LastPull;

/// A pull that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) due: Due,
    /// Whom it asked.
    pub(super) url: String,
    pub(super) asked_ms: u64,
    pub(super) began: Instant,
    pub(super) at: Instant,
    /// What it brought, also if it failed or was given up.
    pub(super) pulled: Summary,
    /// What it heard besides.
    pub(super) heard: Heard,
}

impl Ended {
    fn took(&self) -> Duration {
        self.at.saturating_duration_since(self.began)
    }

    /// Its line in the log; so many changes were sent since the last one that succeeded.
    fn line(&self, outcome: Outcome, sent: u64, now_ms: u64) -> Pull {
        // How long a long poll takes says nothing of what it costs.
        let took = if self.due.wait { Duration::ZERO } else { self.took() };
        Pull {
            ended_ms: now_ms,
            source: self.due.source.clone(),
            outcome,
            changes: self.pulled.changes.saturating_add(sent),
            elements: (outcome != Outcome::Failed).then_some(self.pulled.objects),
            bytes: self.pulled.bytes,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// The log of pulls, as far as it can be written: a full disk keeps nobody from pulling.
#[derive(Debug)]
pub(super) struct Log {
    folder: PathBuf,
    /// `None` until it can be opened.
    file: Option<PullLog>,
    /// The last line could not be written, which has been said.
    troubled: bool,
    /// Of each followed source, the last long poll that brought nothing, since it brought something.
    idle: BTreeMap<String, Pull>,
    /// By how much the clock was set when the last line was written.
    clock_off_ms: i64,
}

impl Log {
    pub(super) fn open(folder: PathBuf) -> Self {
        Self { folder, file: None, troubled: false, idle: BTreeMap::new(), clock_off_ms: 0 }
    }

    /// Writes a pull down, the clock having been set by so much since the start. Of long polls that bring
    /// nothing, one in ten seconds, only the last is written, before what comes next: it says until when there
    /// was nothing.
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

    /// Writes down what was held back.
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
    /// Takes in what came of a pull, where that may take a while. A report that breaks is a failure of
    /// ours: a source that counted as being pulled for ever would never be due again, nor could it go.
    pub(super) async fn report(&self, source: &str, report: impl FnOnce() + Send + 'static) {
        let work = move || {
            report();
            Ok::<(), Error>(())
        };
        if let Err(error) = blocking("report of a pull", work).await {
            self.handle_failure(source, Failure::Ours, error.to_string(), None);
            self.tell();
        }
    }

    /// Takes in what came of a pull; `None` if it was given up. A harvest that was not at its end in time
    /// neither failed nor succeeded, and goes on. May take a while with thousands of
    /// sources.
    pub(super) fn end(&self, ended: &Ended, outcome: Option<Result<(), Broke>>) {
        let name = &ended.due.source;
        self.handle_heard(name, &ended.heard);
        let goes_on = ended.heard.goes_on;
        if goes_on || !matches!(outcome, Some(Ok(()))) {
            self.handle_part(ended);
        }
        match outcome {
            Some(Ok(())) if !goes_on => self.handle_pulled(ended),
            Some(Err(Broke { failure, message, retry_after })) => {
                self.log_pull(ended, Outcome::Failed, 0, clock::now_ms());
                self.handle_failure(name, failure, message, retry_after);
            }
            _ => {
                let mut state = self.state();
                let now_ms = clock::now_ms();
                state.schedule.handle_cancel(name, now_ms);
                if goes_on {
                    // As soon as its bounds allow.
                    state.schedule.handle_notice(name, now_ms);
                }
                if let Some(live) = state.live.get_mut(name) {
                    live.pulling = false;
                }
            }
        }
        self.tell();
    }

    /// Tells those who wait that a pull has ended.
    pub(super) fn tell(&self) {
        self.inner.ended.send_modify(|count| *count += 1);
        self.inner.changed.notify_one();
    }

    /// Writes down what the log holds back.
    pub(super) fn flush_log(&self) {
        self.log().flush();
    }

    fn log_pull(&self, ended: &Ended, outcome: Outcome, sent: u64, now_ms: u64) {
        let clock_off_ms = self.state().clock_off_ms;
        self.log().handle(ended.line(outcome, sent, now_ms), ended.due.wait, clock_off_ms);
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.inner.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what a pull has heard beside records.
    fn handle_heard(&self, name: &str, heard: &Heard) {
        for warning in &heard.warnings {
            tracing::warn!(source = name, "odd: {warning}");
        }
        let mut state = self.state();
        let State { live, schedule, .. } = &mut *state;
        let Some(live) = live.get_mut(name) else { return };
        live.warnings.clone_from(&heard.warnings);
        let wanted = live.source.announced;
        if let Some(announced) = heard.announced.filter(|_| wanted)
            && live.source.syndication.is_none()
        {
            schedule.handle_announced(name, announced, clock::now_ms());
        }
    }

    /// Counts what a pull brought that did not succeed, and keeps it in mind for the next that does.
    fn handle_part(&self, ended: &Ended) {
        let (pulled, mut state) = (&ended.pulled, self.state());
        let State { counters, live, .. } = &mut *state;
        counters.changes += pulled.changes;
        counters.bytes += pulled.bytes;
        counters.applied += pulled.applied;
        if let Some(live) = live.get_mut(&ended.due.source) {
            live.part = Some(live.brought(Brought::new(pulled, ended.at)));
        }
    }

    fn handle_pulled(&self, ended: &Ended) {
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
        let (mut full, mut sent) = (pulled.kind == Kind::Snapshot, 0);
        {
            let mut state = self.state();
            let State { counters, live, schedule, .. } = &mut *state;
            counters.handle_pull(pulled);
            if let Some(live) = live.get_mut(name) {
                let origin =
                    Origin { url: ended.url.clone(), epoch: pulled.version.epoch.to_string() };
                if live.handle_origin(origin) {
                    schedule.forget(name, now_ms);
                }
                live.reached = Some(Reached::from(pulled.version));
                let brought = live.brought(Brought::new(pulled, ended.at));
                schedule.handle_pull(name, found(ended, &brought, now_ms), now_ms);
                live.handle_pull(last_pull, &brought);
                (full, sent) = (brought.full, brought.sent);
            }
        }
        let outcome = if full { Outcome::Snapshot } else { Outcome::Delta };
        self.log_pull(ended, outcome, sent, now_ms);
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
        let Some(live) = state.live.get_mut(name) else { return };
        live.pulling = false;
        live.held = failure.is_held().then(|| message.clone());
        tracing::warn!(source = name, back_off_ms, kind = failure.name(), "pull failed: {message}");
        failure.count(&mut live.errors, message, back_off_ms, now_ms);
    }
}

/// What the schedule hears of a pull, with what others brought that failed before it.
fn found(ended: &Ended, brought: &Brought, now_ms: u64) -> Found {
    let (wait, changes) = (ended.due.wait, ended.pulled.changes);
    Found {
        full: brought.full,
        changes: brought.changes,
        age_secs: brought.age_secs,
        sent: brought.sent,
        firsts: Some(brought.firsts()),
        elements: ended.pulled.objects,
        as_of_ms: if wait { now_ms } else { ended.asked_ms },
        early: wait && changes == 0 && ended.took() < WAIT / 2,
    }
}
