//! The collector: performs the pulls that the [schedule](crate::schedule) asks for.
//!
//! Many sources at once, each in a task of its own, at most [`PULLS_AT_ONCE`] besides the long
//! polls of followed sources. What a pull brings is committed to the collection together with the
//! source's cursor by `collection::pull`; here is only who, when, and what came of it. The
//! schedule's memory is kept in notes of the collection, so that a restart goes on.
//!
//! Source: TR §4.3 (the collector); Adly §4.

mod commands;
mod notes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collection::Collection;
use collection::pull::{Kind, PullLimits, Puller, Summary};
use freshness::schedule::Firsts;
use freshness::study::Cost;
use net::client::Client;
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::config::{Config, Patience};
use crate::error::{Error, retry_after};
use crate::failure::Failure;
use crate::live::Live;
use crate::metrics::Counters;
use crate::pipeline::blocking;
use crate::pull_log::{self, Pull, PullLog};
use crate::schedule::{Due, Found, Schedule};
use crate::source::Source;
use crate::status::{LastPull, SourceStatus};
use crate::under_way::UnderWay;

/// How long a long poll asks the source to hold its answer.
pub(crate) const WAIT: Duration = Duration::from_secs(55);

/// How often the schedule's memory is written down, if it has changed.
pub(crate) const REMEMBER_EVERY: Duration = Duration::from_secs(10);

/// Longest sleep of the collector: bounds what a jump of the wall clock can do.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Performs pulls. Clones are the same collector.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    collection: Collection,
    patience: Patience,
    /// Guards against private addresses or not: a source's settings say which.
    client: Client,
    broker_id: String,
    log: Mutex<Log>,
    state: Mutex<State>,
    /// The schedule has changed: look at it again.
    changed: Notify,
    /// Counts the pulls that ended, for those who wait for one.
    ended: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    schedule: Schedule,
    live: BTreeMap<String, Live>,
    /// What all pulls of this process came to.
    counters: Counters,
    clock: clock::Watch,
}

impl Collector {
    /// Takes up the sources of the settings, with what the notes remember of them. Blocks.
    ///
    /// # Errors
    ///
    /// The notes cannot be read.
    pub(crate) fn open(
        collection: Collection,
        client: Client,
        id: &str,
        config: &Config,
        now_ms: u64,
    ) -> Result<Self, Error> {
        let schedule = Schedule::new(config.freshness);
        let (counters, clock) = (Counters::default(), clock::Watch::start());
        let state = State { schedule, live: BTreeMap::new(), counters, clock };
        let inner = Inner {
            collection,
            client,
            broker_id: id.to_owned(),
            log: Mutex::new(Log::open(config.data.join(pull_log::FOLDER))),
            patience: config.patience,
            state: Mutex::new(state),
            changed: Notify::new(),
            ended: watch::Sender::new(0),
        };
        let collector = Self { inner: Arc::new(inner) };
        collector.add(&config.sources, now_ms)?;
        Ok(collector)
    }

    /// Pulls whatever is due until the shutdown starts.
    pub(crate) async fn run(&self, shutdown: Shutdown) {
        tokio::join!(self.run_pulls(&shutdown), self.run_memory(&shutdown));
        self.remember().await;
    }

    async fn run_memory(&self, shutdown: &Shutdown) {
        let mut ticks = tokio::time::interval(REMEMBER_EVERY);
        loop {
            tokio::select! {
                () = shutdown.started() => return,
                _ = ticks.tick() => self.remember().await,
            }
        }
    }

    async fn run_pulls(&self, shutdown: &Shutdown) {
        let mut pulls = JoinSet::new();
        let mut under_way = UnderWay::new(self.inner.patience.slot_max);
        while !shutdown.is_started() {
            let now = clock::monotonic();
            let slot = under_way.has_slot(now);
            let next_slot = under_way.next_slot(now).unwrap_or(SLEEP_MAX);
            if let Some(due) = self.state().schedule.poll_due(slot, clock::now_ms()) {
                let task = pulls.spawn(self.clone().pull(due.clone()));
                under_way.begin(task.id(), due, now);
                continue;
            }
            tokio::select! {
                () = shutdown.started() => {}
                () = self.inner.changed.notified() => {}
                () = sleep(self.pause(slot).min(next_slot)) => {}
                Some(ended) = pulls.join_next_with_id() => {
                    let id = ended.as_ref().map_or_else(|error| error.id(), |(id, ())| *id);
                    let due = under_way.end(id);
                    if let (Some(due), Err(error)) = (due, ended) {
                        let message = format!("the pull broke: {error}");
                        self.handle_failure(&due.source, Failure::Ours, message, None);
                        self.tell();
                    }
                }
            }
        }
        pulls.shutdown().await;
    }

    /// Returns how long nothing is due.
    fn pause(&self, slot: bool) -> Duration {
        let due_ms = self.state().schedule.poll_timeout(slot);
        let ahead = due_ms.map(|at| Duration::from_millis(at.saturating_sub(clock::now_ms())));
        ahead.unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    /// Performs one pull and reports it.
    async fn pull(self, due: Due) {
        let Some((source, cancel, confirmed)) = self.begin(&due.source) else { return };
        let (asked_ms, began) = (clock::now_ms(), clock::monotonic());
        let puller = puller(&self.inner, &source).confirmed(confirmed);
        let wait = due.wait.then_some(WAIT);
        let outcome = tokio::select! {
            outcome = puller.pull(wait) => Some(outcome),
            () = cancel.started() => None,
        };
        let ended = Ended { due, asked_ms, took: clock::monotonic() - began };
        let work = move || {
            self.end(&ended, outcome);
            Ok::<(), Error>(())
        };
        if let Err(error) = blocking("report of a pull", work).await {
            tracing::debug!(%error, "the report of a pull was given up");
        }
    }
}

/// A pull that has ended.
#[derive(Debug)]
struct Ended {
    due: Due,
    asked_ms: u64,
    took: Duration,
}

/// The log of pulls, as far as it can be written: a full disk keeps nobody from pulling.
#[derive(Debug)]
struct Log {
    file: Option<PullLog>,
    /// The last line could not be written, which has been said.
    troubled: bool,
}

impl Log {
    fn open(folder: PathBuf) -> Self {
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
    /// Marks a source as being pulled; `None` if it is gone.
    fn begin(&self, name: &str) -> Option<(Source, Shutdown, bool)> {
        let mut state = self.state();
        let live = state.live.get_mut(name)?;
        live.pulling = true;
        Some((live.source.clone(), live.cancel.clone(), live.confirmed))
    }

    /// Takes in what came of a pull. May take a while with thousands of sources.
    fn end(&self, ended: &Ended, outcome: Option<Result<Summary, collection::Error>>) {
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
    fn tell(&self) {
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

    fn handle_failure(
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

    /// Returns what status says of the sources, in the order of the settings.
    pub(crate) fn status(
        &self,
        config: &Config,
        held: &BTreeMap<String, u64>,
    ) -> Vec<SourceStatus> {
        let state = self.state();
        let one = |source: &Source| {
            let (live, view) = (state.live.get(&source.name)?, state.schedule.view(&source.name)?);
            Some(live.status(&view, held.get(&source.name).copied().unwrap_or_default()))
        };
        config.sources.iter().filter_map(one).collect()
    }

    pub(crate) fn with_schedule<T>(&self, read: impl FnOnce(&Schedule) -> T) -> T {
        read(&self.state().schedule)
    }
    /// Returns measured freshness over all sources.
    pub(crate) fn freshness(&self) -> Option<f64> {
        self.state().schedule.freshness()
    }

    /// Returns what all sources together were asked for, and brought.
    pub(crate) fn cost(&self) -> Cost {
        self.state().live.values().fold(Cost::default(), |sum, it| sum.plus(it.history.cost))
    }

    /// Returns what all pulls of this process came to.
    pub(crate) fn counters(&self) -> Counters {
        self.state().counters
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in here leaves numbers that are stale, never half-written.
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(by_ms) = state.clock.jump_ms() {
            tracing::warn!(by_ms, "the clock was set: the schedule goes with it");
            state.schedule.handle_jump(by_ms, clock::now_ms());
        }
        state
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the client of a source's feed.
fn puller(inner: &Inner, source: &Source) -> Puller {
    let (records_max, bytes_max) = (source.records_max, source.bytes_max);
    let limits = PullLimits { records_max, bytes_max, time_max: inner.patience.pull_max };
    let (client, collection) = (inner.client.clone(), inner.collection.clone());
    let token = source.token.as_ref().map(|it| it.secret().to_owned());
    Puller::new(client, source.url.clone(), source.name.clone(), collection, limits)
        .token(token)
        .allow_private(source.allow_private)
        .consumer(&inner.broker_id)
}
