//! The collector: it performs the pulls of the [schedule](crate::schedule).
//!
//! Each pull runs in a task of its own. A pull of a followed source needs no slot; of the others at
//! most [`PULLS_AT_ONCE`](self::running::PULLS_AT_ONCE) have one at the same time.
//! `collection::pull` commits the changes of a pull together with the source's cursor; the
//! collector starts the pulls and reports their outcomes. The state of the schedule is kept over
//! restarts in notes of the collection.
//!
//! Source: TR §4.3 (the collector); Adly §4.

mod commands;
mod harvest;
mod notes;
mod pending;
mod push;
mod report;
mod running;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use collection::Collection;
use collection::pull::{FeedClient, PullLimits, Puller, Summary};
use freshness::history::Cost;
use freshness::schedule::Expected;
use net::client::Client;
use net::clock;
use net::guard::Policy;
use net::pace::Hosts;
use net::shutdown::Shutdown;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use url::Url;

use self::running::RunningPulls;
use crate::blocking::blocking;
use crate::config::{Config, PullTimeouts};
use crate::error::Error;
use crate::failure::{FailedPull, Failure};
use crate::metrics::Counters;
use crate::pull_log;
use crate::schedule::{Due, Planned, Schedule};
use crate::source::state::SourceState;
use crate::source::{Kind, Part, Source};
use crate::status::SourceStatus;
use harvest::Remarks;
pub(crate) use pending::PendingChanges;
use report::{EndedPull, LogWriter};

/// Maximum time for which a source holds back its answer to a long poll. If no answer has come soon
/// after that, `collection::pull` ends the pull with an error.
pub(crate) const WAIT: Duration = Duration::from_secs(10);

/// Time for measuring how distant the replicas of a source are.
const MEASURING: Duration = Duration::from_secs(2);

/// Interval at which changed notes of the schedule are written.
pub(crate) const REMEMBER_EVERY: Duration = Duration::from_secs(10);

/// Maximum sleep of the collector; a jump of the wall clock is noticed after it.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Number of sources that are read under one lock of the collector's state.
const SOURCES_AT_ONCE: usize = 256;

/// The collector. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    collection: Collection,
    timeouts: PullTimeouts,
    /// The HTTP client. The settings of each source say whether it may connect to private
    /// addresses.
    client: Client,
    /// Pacing of requests to the hosts of repositories.
    hosts: Hosts,
    broker_id: String,
    log: Mutex<LogWriter>,
    /// Locked while notes are written. A reload locks it after the removal of sources: then no note
    /// of such a source can be on its way to the disk.
    notes: Mutex<()>,
    state: Mutex<CollectorState>,
    changed: Notify,
    /// The listener for hubs; empty until [`Collector::listen`] is called.
    subscribing: OnceLock<push::Subscribing>,
    /// Number of ended pulls; tasks that wait for a pull watch this number.
    ended: watch::Sender<u64>,
}

#[derive(Debug)]
struct CollectorState {
    schedule: Schedule,
    sources: BTreeMap<String, SourceState>,
    /// Totals of all pulls of this process.
    counters: Counters,
    clock: clock::JumpDetector,
    /// Sum of the wall clock's jumps since the start, in milliseconds; below 0 if it was set back.
    clock_off_ms: i64,
}

impl CollectorState {
    /// Handles a jump of the wall clock by `by_ms` to `now_ms`.
    fn handle_jump(&mut self, by_ms: i64, now_ms: u64) {
        self.clock_off_ms = self.clock_off_ms.saturating_add(by_ms);
        self.schedule.handle_jump(by_ms, now_ms);
        // The time that the clock skipped or repeated was not observed.
        self.sources.values_mut().for_each(|it| it.history.handle_restart());
    }
}

impl Collector {
    /// Returns a collector for the sources of the settings, with the state in their notes. Blocks.
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
        let (counters, clock) = (Counters::default(), clock::JumpDetector::start());
        let (sources, clock_off_ms) = (BTreeMap::new(), 0);
        let state = CollectorState { schedule, sources, counters, clock, clock_off_ms };
        let inner = Inner {
            collection,
            client,
            hosts: Hosts::default(),
            broker_id: id.to_owned(),
            log: Mutex::new(LogWriter::open(config.daemon.data.join(pull_log::FOLDER))),
            notes: Mutex::default(),
            timeouts: config.timeouts,
            state: Mutex::new(state),
            changed: Notify::new(),
            subscribing: OnceLock::new(),
            ended: watch::Sender::new(0),
        };
        let collector = Self { inner: Arc::new(inner) };
        collector.add(&config.sources, now_ms)?;
        Ok(collector)
    }

    pub(crate) async fn run(&self, shutdown: Shutdown) {
        let listen = async {
            if let Some(listener) = self.listener() {
                listener.run(shutdown.clone()).await;
            }
        };
        tokio::join!(self.run_pulls(&shutdown), self.run_memory(&shutdown), listen);
        self.remember().await;
        let collector = self.clone();
        let flush = move || {
            collector.flush_log();
            Ok::<(), Error>(())
        };
        if let Err(error) = blocking("log of pulls", flush).await {
            tracing::warn!(%error, "the log of pulls was not written to its end");
        }
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
        let mut running = RunningPulls::new(self.inner.timeouts.slot_max);
        while !shutdown.is_started() {
            let now = clock::monotonic();
            let slot = running.has_slot(now);
            let next_slot = running.next_slot(now).unwrap_or(SLEEP_MAX);
            if let Some(due) = self.state().schedule.poll_due(slot, clock::now_ms()) {
                let task = pulls.spawn(self.clone().pull(due.clone()));
                running.begin(task.id(), due, now);
                continue;
            }
            tokio::select! {
                () = shutdown.started() => {}
                () = self.inner.changed.notified() => {}
                () = sleep(self.pause(slot).min(next_slot)) => {}
                Some(ended) = pulls.join_next_with_id() => {
                    let id = ended.as_ref().map_or_else(|error| error.id(), |(id, ())| *id);
                    let due = running.end(id);
                    if let (Some(due), Err(error)) = (due, ended) {
                        let message = format!("the task of the pull failed: {error}");
                        self.handle_failure(&due.source, Failure::Ours, message, None);
                        self.notify();
                    }
                }
            }
        }
        pulls.shutdown().await;
    }

    /// Returns the time until the next pull is due, at most [`SLEEP_MAX`]. Without a free `slot`,
    /// only pulls of followed sources matter.
    fn pause(&self, slot: bool) -> Duration {
        let due_ms = self.state().schedule.poll_timeout(slot);
        let ahead = due_ms.map(|at| Duration::from_millis(at.saturating_sub(clock::now_ms())));
        ahead.unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    async fn pull(self, due: Due) {
        let Some((source, cancel, confirmed)) = self.begin(&due.source) else { return };
        let (asked_ms, began) = (clock::now_ms(), clock::monotonic());
        let wait = due.wait.then_some(WAIT);
        let (mut pulled, mut remarks) = (Summary::default(), Remarks::default());
        let asked = self.ask(&source, confirmed, wait, &mut pulled, &mut remarks);
        let outcome = tokio::select! {
            outcome = asked => Some(outcome),
            () = cancel.started() => None,
        };
        let (url, at) = (source.url.to_string(), clock::monotonic());
        let ended = EndedPull { due, url, asked_ms, began, at, pulled, remarks };
        let (source, collector) = (ended.due.source.clone(), self.clone());
        self.report(&source, move || collector.end(&ended, outcome)).await;
    }

    /// Pulls the changes of a source, in the way that its kind requires.
    async fn ask(
        &self,
        source: &Source,
        confirmed: bool,
        wait: Option<Duration>,
        pulled: &mut Summary,
        remarks: &mut Remarks,
    ) -> Result<(), FailedPull> {
        if let Some(oai) = &source.oai {
            let harvest =
                harvest::pull_into(&self.inner, (source, oai), confirmed, pulled, remarks);
            return Box::pin(harvest).await;
        }
        let is_replica = !source.replicas.is_empty();
        let puller = |url: &Url| {
            puller(&self.inner, source, url).confirmed(confirmed).one_of_several(is_replica)
        };
        // The settings turn the directory of a replica into a `file:` URL.
        if let (Kind::Replica, Ok(directory)) = (source.kind, source.url.to_file_path()) {
            let puller = puller(&source.url);
            let taken = puller.pull_in_place(&directory, wait, pulled);
            return Box::pin(taken).await.map_err(FailedPull::from);
        }
        let mut first = Ok(());
        let urls = std::iter::once(&source.url).chain(&source.replicas).cloned().collect();
        let policy = Policy::from_allow_private(source.allow_private);
        for url in self.inner.client.nearest(urls, policy, MEASURING).await {
            let outcome = puller(&url).pull_into(wait, pulled).await.map_err(FailedPull::from);
            match outcome {
                Err(failed) if is_replica && failed.failure.is_of_one_place() => {
                    tracing::info!(source = source.name, failed.message, "another is pulled");
                    // What the nearest one lacks says more than that the others are not reached.
                    first = first.and(Err(failed));
                }
                outcome => {
                    if pulled.is_elsewhere {
                        remarks.warn(format!(
                            "it says that its feed is not at {url}: it counts as a copy of the feed, as long as its own URL is not asked"
                        ));
                    }
                    return outcome;
                }
            }
        }
        first
    }

    /// Marks a source as being pulled. Returns its settings, the signal that cancels the pull, and
    /// whether its loss is confirmed; `None` if the source is gone.
    fn begin(&self, name: &str) -> Option<(Source, Shutdown, bool)> {
        let mut state = self.state();
        let entry = state.sources.get_mut(name)?;
        (entry.pulling, entry.activity) = (true, None);
        Some((entry.source.clone(), entry.cancel.clone(), entry.confirmed))
    }
}

impl Inner {
    /// Shows what the harvest of a source does, until the source's next pull.
    fn show(&self, name: &str, activity: watch::Receiver<String>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = state.sources.get_mut(name) {
            entry.activity = Some(activity);
        }
    }
}

impl Collector {
    /// Returns the status of the sources, in the order of the settings. With thousands of sources
    /// this may take a while, during which pulls begin and end.
    pub(crate) fn status(
        &self,
        config: &Config,
        held: &BTreeMap<String, u64>,
    ) -> Vec<SourceStatus> {
        let mut all = Vec::with_capacity(config.sources.len());
        for sources in config.sources.chunks(SOURCES_AT_ONCE) {
            let state = self.state();
            let one = |source: &Source| {
                let entry = state.sources.get(&source.name)?;
                let view = state.schedule.view(&source.name)?;
                let objects = held.get(&source.name).copied().unwrap_or_default();
                Some(SourceStatus {
                    push: self.pushing(&source.name),
                    ..entry.status(&view, objects)
                })
            };
            all.extend(sources.iter().filter_map(one));
        }
        all
    }

    pub(crate) fn expected(&self) -> Expected {
        self.state().schedule.expected()
    }

    /// Returns the sources with a known rate, in any order. As with [`status`](Self::status), pulls
    /// may begin and end meanwhile.
    pub(crate) fn planned(&self) -> Vec<Planned> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let (some, last) = self.state().schedule.planned(after, SOURCES_AT_ONCE);
            all.extend(some);
            match last {
                Some(_) => after = last,
                None => return all,
            }
        }
    }

    /// Returns the measured freshness of the sources together, weighted by size and `weight`;
    /// `None` before any is measured.
    pub(crate) fn freshness(&self) -> Option<f64> {
        self.state().schedule.freshness()
    }

    pub(crate) fn cost(&self) -> Cost {
        self.state().sources.values().fold(Cost::default(), |sum, it| sum.plus(it.history.cost))
    }

    pub(crate) fn has_pulled_all(&self) -> bool {
        self.state().sources.values().all(|it| 0 < it.pulls)
    }

    pub(crate) fn counters(&self) -> Counters {
        self.state().counters
    }

    fn state(&self) -> MutexGuard<'_, CollectorState> {
        // After a panic, the values may be out of date but are never half-written.
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(by_ms) = state.clock.jump_ms() {
            tracing::warn!(by_ms, "the clock was set: the schedule is shifted with it");
            state.handle_jump(by_ms, clock::now_ms());
        }
        state
    }
}

fn puller(inner: &Inner, source: &Source, url: &Url) -> Puller {
    let (records_max, bytes_max) = (source.records_max, source.bytes_max);
    let limits = PullLimits { records_max, bytes_max, time_max: inner.timeouts.pull_max };
    let (client, collection) = (inner.client.clone(), inner.collection.clone());
    let ask = FeedClient::new(client, url.clone(), source.name.as_str())
        .credentials(source.credentials())
        .allow_private(source.allow_private)
        .consumer(inner.broker_id.as_str())
        .part(source.part.as_ref().map(Part::parameter));
    Puller::new(ask, collection, limits)
}
