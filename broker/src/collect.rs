//! The collector: performs the pulls that the [schedule](crate::schedule) asks for.
//!
//! Many sources at once, each in a task of its own, at most [`PULLS_AT_ONCE`] besides the long
//! polls of followed sources. What a pull brings is committed to the collection together with the
//! source's cursor by `collection::pull`; here is only who, when, and what came of it. The
//! schedule's memory is kept in notes of the collection, so that a restart goes on.
//!
//! Source: TR §4.3 (the collector); Adly §4.

mod brought;
mod commands;
mod harvest;
mod notes;
mod parts;
mod push;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use collection::Collection;
use collection::pull::{Asking, PullLimits, Puller, Summary};
use freshness::history::Cost;
use freshness::schedule::Expected;
use net::client::Client;
use net::clock;
use net::pace::Hosts;
use net::shutdown::Shutdown;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::blocking::blocking;
use crate::config::{Config, Patience};
use crate::error::Error;
use crate::failure::{Broke, Failure};
use crate::live::Live;
use crate::metrics::Counters;
use crate::pull_log;
use crate::schedule::{Due, Planned, Schedule};
use crate::source::{Kind, Source};
use crate::status::SourceStatus;
use crate::under_way::UnderWay;
pub(crate) use brought::Brought;
use harvest::Heard;
pub(crate) use parts::PartCounters;
use parts::Parts;
use report::{Ended, Log};

/// How long a long poll asks the source to hold its answer. That a source is gone which has told nobody is seen
/// soon after that (`collection::pull`).
pub(crate) const WAIT: Duration = Duration::from_secs(10);

/// How often the schedule's memory is written down, if it has changed.
pub(crate) const REMEMBER_EVERY: Duration = Duration::from_secs(10);

/// Longest sleep of the collector: bounds what a jump of the wall clock can do.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Parts that sources have sent and that are taken in at once: their work is the disk's.
const TAKES_AT_ONCE: usize = 4;

/// Sources that are looked at while others wait for the collector's state.
const SOURCES_AT_ONCE: usize = 256;

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
    /// When the hosts of repositories may be asked.
    hosts: Hosts,
    broker_id: String,
    log: Mutex<Log>,
    /// One writes notes at a time: whoever has waited for it finds none under way of a source that went.
    notes: Mutex<()>,
    state: Mutex<State>,
    /// The schedule has changed: look at it again.
    changed: Notify,
    /// Set once the broker listens to hubs.
    subscribing: OnceLock<push::Subscribing>,
    /// Counts the pulls that ended, for those who wait for one.
    ended: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    schedule: Schedule,
    live: BTreeMap<String, Live>,
    /// What sources have sent and is not taken in yet.
    parts: Parts,
    /// What all pulls of this process came to.
    counters: Counters,
    clock: clock::Watch,
    /// By how much the wall clock was set since the start, in milliseconds.
    clock_off_ms: i64,
}

impl State {
    /// Takes in that the wall clock was set by `by_ms` and shows `now_ms` now.
    fn handle_jump(&mut self, by_ms: i64, now_ms: u64) {
        self.clock_off_ms = self.clock_off_ms.saturating_add(by_ms);
        self.schedule.handle_jump(by_ms, now_ms);
        // Nothing was observed in the time that was left out, or came twice.
        self.live.values_mut().for_each(|it| it.history.handle_restart());
    }
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
        let (live, parts, clock_off_ms) = (BTreeMap::new(), Parts::default(), 0);
        let state = State { schedule, live, parts, counters, clock, clock_off_ms };
        let inner = Inner {
            collection,
            client,
            hosts: Hosts::default(),
            broker_id: id.to_owned(),
            log: Mutex::new(Log::open(config.daemon.data.join(pull_log::FOLDER))),
            notes: Mutex::default(),
            patience: config.patience,
            state: Mutex::new(state),
            changed: Notify::new(),
            subscribing: OnceLock::new(),
            ended: watch::Sender::new(0),
        };
        let collector = Self { inner: Arc::new(inner) };
        collector.add(&config.sources, now_ms)?;
        Ok(collector)
    }

    /// Pulls whatever is due until the shutdown starts.
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
        let (mut pulls, mut takes) = (JoinSet::new(), JoinSet::new());
        let mut under_way = UnderWay::new(self.inner.patience.slot_max);
        while !shutdown.is_started() {
            let room = takes.len() < TAKES_AT_ONCE;
            if let Some((source, part)) = room.then(|| self.next_part()).flatten() {
                takes.spawn(self.clone().take(source, part));
            }
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
                Some(_) = takes.join_next() => {}
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
        takes.shutdown().await;
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
        // One at a time writes what a source has.
        self.until(|state| state.live.get(&due.source).is_none_or(|it| !it.taking)).await;
        let (asked_ms, began) = (clock::now_ms(), clock::monotonic());
        let wait = due.wait.then_some(WAIT);
        let (mut pulled, mut heard) = (Summary::default(), Heard::default());
        let asked = self.ask(&source, confirmed, wait, &mut pulled, &mut heard);
        let outcome = tokio::select! {
            outcome = asked => Some(outcome),
            () = cancel.started() => None,
        };
        let (url, at) = (source.url.to_string(), clock::monotonic());
        let ended = Ended { due, url, asked_ms, began, at, pulled, heard };
        let (source, collector) = (ended.due.source.clone(), self.clone());
        self.report(&source, move || collector.end(&ended, outcome)).await;
    }

    /// Has a source say what is new, in the way of its kind.
    async fn ask(
        &self,
        source: &Source,
        confirmed: bool,
        wait: Option<Duration>,
        pulled: &mut Summary,
        heard: &mut Heard,
    ) -> Result<(), Broke> {
        if let Some(oai) = &source.oai {
            let harvest = harvest::pull_into(&self.inner, (source, oai), confirmed, pulled, heard);
            return Box::pin(harvest).await;
        }
        let puller = puller(&self.inner, source).confirmed(confirmed);
        // A replica's URL is made of a path.
        if let (Kind::Replica, Ok(directory)) = (source.kind, source.url.to_file_path()) {
            let taken = puller.pull_in_place(&directory, wait, pulled);
            return Box::pin(taken).await.map_err(Broke::from);
        }
        puller.pull_into(wait, pulled).await.map_err(Broke::from)
    }

    /// Marks a source as being pulled, so that nothing that it sends is begun; `None` if it is gone.
    fn begin(&self, name: &str) -> Option<(Source, Shutdown, bool)> {
        let mut state = self.state();
        let live = state.live.get_mut(name)?;
        live.pulling = true;
        Some((live.source.clone(), live.cancel.clone(), live.confirmed))
    }
}

impl Collector {
    /// Returns what status says of the sources, in the order of the settings. May take a while with
    /// thousands of sources, in which pulls begin and end.
    pub(crate) fn status(
        &self,
        config: &Config,
        held: &BTreeMap<String, u64>,
    ) -> Vec<SourceStatus> {
        let mut all = Vec::with_capacity(config.sources.len());
        for sources in config.sources.chunks(SOURCES_AT_ONCE) {
            let state = self.state();
            let one = |source: &Source| {
                let live = state.live.get(&source.name)?;
                let view = state.schedule.view(&source.name)?;
                let objects = held.get(&source.name).copied().unwrap_or_default();
                Some(SourceStatus {
                    push: self.pushing(&source.name),
                    ..live.status(&view, objects)
                })
            };
            all.extend(sources.iter().filter_map(one));
        }
        all
    }

    /// Returns what is expected of the plan.
    pub(crate) fn expected(&self) -> Expected {
        self.state().schedule.expected()
    }

    /// Returns the sources whose rate is known. May take a while, as [`status`](Self::status).
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

    /// Returns measured freshness over all sources.
    pub(crate) fn freshness(&self) -> Option<f64> {
        self.state().schedule.freshness()
    }

    /// Returns what all sources together were asked for, and brought.
    pub(crate) fn cost(&self) -> Cost {
        self.state().live.values().fold(Cost::default(), |sum, it| sum.plus(it.history.cost))
    }

    /// Whether each source was pulled to its end in this process.
    pub(crate) fn has_pulled_all(&self) -> bool {
        self.state().live.values().all(|it| 0 < it.pulls)
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
            state.handle_jump(by_ms, clock::now_ms());
        }
        state
    }
}

/// Returns the client of a source's feed.
fn puller(inner: &Inner, source: &Source) -> Puller {
    let (records_max, bytes_max) = (source.records_max, source.bytes_max);
    let limits = PullLimits { records_max, bytes_max, time_max: inner.patience.pull_max };
    let (client, collection) = (inner.client.clone(), inner.collection.clone());
    let ask = Asking::new(client, source.url.clone(), source.name.as_str())
        .credentials(source.credentials())
        .allow_private(source.allow_private)
        .consumer(inner.broker_id.as_str());
    Puller::new(ask, collection, limits)
}
