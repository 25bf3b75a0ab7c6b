//! What came of a pull: the schedule, the log of pulls, status and metrics hear of it.

use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::Duration;

use collection::pull::{Kind, Summary};
use freshness::schedule::Firsts;
use net::clock;

use super::{Collector, WAIT};
use crate::error::{Error, retry_after};
use crate::failure::Failure;
use crate::pipeline::blocking;
use crate::pull_log::{self, Pull, PullLog};
use crate::schedule::{Due, Found};
use crate::status::LastPull;

/// A pull that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) due: Due,
    pub(super) asked_ms: u64,
    pub(super) took: Duration,
}

/// The log of pulls, as far as it can be written: a full disk keeps nobody from pulling.
#[derive(Debug)]
pub(super) struct Log {
    file: Option<PullLog>,
    /// The last line could not be written, which has been said.
    troubled: bool,
}

impl Log {
    pub(super) fn open(folder: PathBuf) -> Self {
        let file = PullLog::open(folder).inspect_err(
            |error| tracing::warn!(%error, "pulls are not logged until the next start"),
        );
        Self { file: file.ok(), troubled: false }
    }

    fn append(&mut self, pull: &Pull) {
        let Some(outcome) = self.file.as_mut().map(|it| it.append(pull)) else { return };
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

    /// Takes in what came of a pull. May take a while with thousands of sources.
    pub(super) fn end(&self, ended: &Ended, outcome: Option<Result<Summary, collection::Error>>) {
        let name = &ended.due.source;
        match outcome {
            Some(Ok(pulled)) => self.handle_pulled(ended, &pulled),
            Some(Err(error)) => {
                let (failure, after) = (Failure::of(&error), retry_after(&error));
                self.log(Pull {
                    ended_ms: clock::now_ms(),
                    source: name.clone(),
                    outcome: pull_log::Outcome::Failed,
                    changes: 0,
                    elements: None,
                    bytes: 0,
                    took_ms: millis(ended.took),
                });
                self.handle_failure(name, failure, error.to_string(), after);
            }
            None => {
                let mut state = self.state();
                state.schedule.handle_cancel(name, clock::now_ms());
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

    fn log(&self, pull: Pull) {
        self.inner.log.lock().unwrap_or_else(PoisonError::into_inner).append(&pull);
    }

    fn handle_pulled(&self, ended: &Ended, pulled: &Summary) {
        let (name, now_ms) = (&ended.due.source, clock::now_ms());
        let full = pulled.kind == Kind::Snapshot;
        let found = Found {
            full,
            changes: pulled.changes,
            age_secs: pulled.age_secs,
            firsts: Some(Firsts { objects: pulled.changed, age_secs: pulled.changed_age_secs }),
            elements: pulled.objects,
            as_of_ms: if ended.due.wait { now_ms } else { ended.asked_ms },
            early: ended.due.wait && pulled.changes == 0 && ended.took < WAIT / 2,
        };
        let kind = if full { "snapshot" } else { "delta" };
        tracing::info!(
            source = name.as_str(), kind, changes = pulled.changes, bytes = pulled.bytes,
            took_ms = ended.took.as_millis(), version = %pulled.version, "pulled"
        );
        self.log(Pull {
            ended_ms: now_ms,
            source: name.clone(),
            outcome: if full { pull_log::Outcome::Snapshot } else { pull_log::Outcome::Delta },
            changes: pulled.changes,
            elements: Some(pulled.objects),
            bytes: pulled.bytes,
            took_ms: millis(ended.took),
        });
        let mut state = self.state();
        state.schedule.handle_pull(name, found, now_ms);
        state.counters.handle_pull(pulled);
        let Some(live) = state.live.get_mut(name) else { return };
        let pull = LastPull {
            at_ms: now_ms,
            kind: kind.to_owned(),
            changes: pulled.changes,
            bytes: pulled.bytes,
            took_seconds: ended.took.as_secs_f64(),
        };
        live.handle_pull(pull, full);
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

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
