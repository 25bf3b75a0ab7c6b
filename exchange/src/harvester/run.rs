//! A running harvest, which hands out batches.

use std::future::ready;
use std::time::{Duration, Instant};

use net::clock;
use net::shutdown::Shutdown;
use oai::harvest::{Action, Answer, Batch, Checkpoint, End, Failure, Harvest, Report, Settings};
use oai::request::Request;
use oai::response::{Identify, Record};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

use super::client::Repository;

/// Maximum number of records that wait to be handed out, without the page that exceeds it.
pub const HELD_RECORDS_MAX: usize = 4_096;

/// Maximum size of the metadata of these records, in bytes (8 MiB), without that page.
pub const HELD_BYTES_MAX: usize = 8 << 20;

/// Time after which the log is told again what a harvest does.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Limits on the bytes and the time of a harvest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of bytes as received.
    pub bytes_max: u64,
    /// Time limit of one harvest; the next harvest continues where this one ended.
    pub time_max: Duration,
}

impl Default for Bounds {
    /// Returns bounds of 16 GiB and a day.
    fn default() -> Self {
        Self { bytes_max: 16 << 30, time_max: Duration::from_secs(86_400) }
    }
}

/// One step of a harvest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Store the records together with the checkpoint, then continue.
    Batch(Box<Batch>),
    /// The harvest is over. Store its checkpoint, unless records that the checkpoint does not cover
    /// have been stored.
    End(Box<End>),
    /// The program stops; continue from the last stored checkpoint.
    Stopped,
}

/// Held records: they wait for more before they are handed out.
#[derive(Debug)]
struct Held {
    batch: Box<Batch>,
    since: Instant,
    /// Bytes of their metadata.
    bytes: usize,
}

/// A harvest in progress.
#[derive(Debug)]
pub struct Running {
    repository: Repository,
    harvest: Harvest,
    bounds: Bounds,
    shutdown: Shutdown,
    begun: Instant,
    /// Time for which records may wait for more.
    hold: Duration,
    held: Option<Held>,
    /// The unanswered request, if any; it ends when the harvest is dropped.
    asking: JoinSet<Answer>,
    /// What the harvest does, in words.
    activity: watch::Sender<String>,
    /// Time at which the log was last told.
    logged: Instant,
}

impl Running {
    /// Continues from a checkpoint, or begins with the default one. `settings` must have the base
    /// URL of the repository.
    pub fn new(
        repository: Repository,
        settings: Settings,
        checkpoint: Checkpoint,
        bounds: Bounds,
        shutdown: Shutdown,
    ) -> Self {
        let harvest = Harvest::new(settings, checkpoint);
        let (begun, hold, held) = (clock::monotonic(), Duration::ZERO, None);
        let asking = JoinSet::new();
        let (activity, logged) = (watch::Sender::default(), begun);
        Self { repository, harvest, bounds, shutdown, begun, hold, held, asking, activity, logged }
    }

    /// Merges batches that come within `hold`, up to [`HELD_RECORDS_MAX`] or [`HELD_BYTES_MAX`] and
    /// one more page, because storing each batch alone may take longer than fetching it. Records do
    /// not wait during a pause, or for longer than `hold` while an answer is missing. If the
    /// program stops, the next harvest fetches the waiting records again.
    #[must_use]
    pub fn holding(mut self, hold: Duration) -> Self {
        self.hold = hold;
        self
    }

    /// Returns the next step. The future may be dropped at any point, and the method called again.
    pub async fn next(&mut self) -> Step {
        let shutdown = self.shutdown.clone();
        tokio::select! {
            biased;
            () = shutdown.started() => Step::Stopped,
            step = self.step() => step,
        }
    }

    async fn step(&mut self) -> Step {
        loop {
            if !self.asking.is_empty() {
                match self.answered().await {
                    Ok(answer) => self.harvest.handle(answer, clock::now_ms()),
                    Err(batch) => return Step::Batch(batch),
                }
            }
            let (bytes_max, time_max) = (self.bounds.bytes_max, self.bounds.time_max);
            let left = time_max.saturating_sub(clock::monotonic().duration_since(self.begun));
            if bytes_max <= self.harvest.report().bytes {
                let (what, setting) = ("bytes", "bytes_max");
                self.harvest.stop(Failure::OverLimit { what, max: bytes_max, setting });
            } else if left.is_zero() {
                self.harvest.stop(Failure::TimeUp { secs: time_max.as_secs() });
            }
            let action = self.harvest.poll(clock::now_ms());
            self.tell();
            match action {
                Action::Ask(request) => {
                    if let Some(batch) = self.ask(request, left).await {
                        return Step::Batch(batch);
                    }
                }
                Action::Wait(pause) => match self.held.take() {
                    Some(held) => return Step::Batch(held.batch),
                    None => sleep(pause.min(left)).await,
                },
                Action::Take(batch) => {
                    if let Some(batch) = self.hold(batch, clock::monotonic()) {
                        return Step::Batch(batch);
                    }
                }
                Action::Done(end) => match self.held.take() {
                    Some(held) => return Step::Batch(held.batch),
                    None => return Step::End(end),
                },
            }
        }
    }

    /// Publishes what the harvest does, and tells it to the log from time to time.
    fn tell(&mut self) {
        let activity = self.harvest.activity(clock::now_ms());
        let now = clock::monotonic();
        if LOG_EVERY <= now.saturating_duration_since(self.logged) {
            self.logged = now;
            tracing::info!(repository = %self.repository.base_url(), "the harvest {activity}");
        }
        self.activity.send_replace(activity);
    }

    /// Begins a request in its turn, unless the wait takes longer than `left`. If it has to wait
    /// while records are held, it returns the held records instead.
    async fn ask(&mut self, request: Request, left: Duration) -> Option<Box<Batch>> {
        let turn = tokio::select! {
            biased;
            turn = self.repository.turn() => turn,
            () = ready(()), if self.held.is_some() => return self.held.take().map(|it| it.batch),
            () = sleep(left) => return None,
        };
        let repository = self.repository.clone();
        self.asking.spawn(async move {
            // The turn lasts until the answer has come.
            let _turn = turn;
            repository.answer(&request).await
        });
        None
    }

    /// Waits for the answer, or until held records must be handed out.
    async fn answered(&mut self) -> Result<Answer, Box<Batch>> {
        let rest = self.held.as_ref().map(|it| {
            self.hold.saturating_sub(clock::monotonic().saturating_duration_since(it.since))
        });
        tokio::select! {
            biased;
            Some(answer) = self.asking.join_next() => Ok(answer.unwrap_or_else(resume)),
            () = sleep(rest.unwrap_or_default()), if rest.is_some() => match self.held.take() {
                Some(held) => Err(held.batch),
                None => std::future::pending().await,
            },
        }
    }

    /// Adds a batch to the held ones; returns all of them if they must be handed out now, or else
    /// `None`.
    fn hold(&mut self, batch: Box<Batch>, now: Instant) -> Option<Box<Batch>> {
        let more = batch.records.iter().map(bytes_of).sum::<usize>();
        let mut all = match self.held.take() {
            Some(mut held) => {
                held.batch.absorb(*batch);
                held.bytes = held.bytes.saturating_add(more);
                held
            }
            None => Held { batch, since: now, bytes: more },
        };
        let is_long = self.hold <= now.saturating_duration_since(all.since);
        let is_much = HELD_RECORDS_MAX <= all.batch.records.len() || HELD_BYTES_MAX <= all.bytes;
        if is_long || is_much || all.batch.last {
            all.batch.records.shrink_to_fit();
            return Some(all.batch);
        }
        self.held = Some(all);
        None
    }

    /// Returns a view of what the harvest does, in words.
    pub fn activity(&self) -> watch::Receiver<String> {
        self.activity.subscribe()
    }

    /// Returns the report so far.
    pub fn report(&self) -> &Report {
        self.harvest.report()
    }

    /// Returns the repository's description; `None` before it came, or if the harvest continued in
    /// a list.
    pub fn identify(&self) -> Option<&Identify> {
        self.harvest.identify()
    }

    /// Returns the prefix of the harvested format; empty before it is chosen.
    pub fn prefix(&self) -> &str {
        self.harvest.prefix()
    }
}

fn bytes_of(record: &Record) -> usize {
    let xml = record.metadata.iter().chain(&record.about);
    xml.map(|it| it.0.len()).sum()
}

fn resume(fault: JoinError) -> Answer {
    std::panic::resume_unwind(fault.into_panic())
}
