//! A whole harvest, part after part.

use std::future::ready;
use std::time::{Duration, Instant};

use net::clock;
use net::shutdown::Shutdown;
use oai::harvest::{Action, Answer, Checkpoint, End, Failure, Harvest, Part, Report, Settings};
use oai::request::Request;
use oai::response::{Identify, Record};
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

use super::ask::Repository;

/// So many records are not held any longer.
pub const HELD_RECORDS_MAX: usize = 4_096;

/// Records are not held any longer whose metadata come to so many bytes (8 MiB).
pub const HELD_BYTES_MAX: usize = 8 << 20;

/// How much a harvest may bring, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Most bytes, as they come.
    pub bytes_max: u64,
    /// Longest time; the next harvest goes on from where it came to.
    pub time_max: Duration,
}

impl Default for Bounds {
    /// 16 GiB, a day.
    fn default() -> Self {
        Self { bytes_max: 16 << 30, time_max: Duration::from_secs(86_400) }
    }
}

/// What a harvest hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Store this, the checkpoint with the records, then go on.
    Part(Box<Part>),
    /// It is over. Store the checkpoint, unless records were stored that it is behind of.
    End(Box<End>),
    /// The program stops; the last checkpoint that was stored is where to go on.
    Stopped,
}

/// Records that are held before they are handed out.
#[derive(Debug)]
struct Held {
    part: Box<Part>,
    since: Instant,
    /// Of their metadata.
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
    /// How long records are held before they are handed out.
    hold: Duration,
    held: Option<Held>,
    /// The request that is not answered yet, if there is one; it ends when the harvest is dropped.
    asking: JoinSet<Answer>,
}

impl Running {
    /// Goes on from a checkpoint, or begins with the default one. The base URL of `settings` is that of
    /// the repository.
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
        Self { repository, harvest, bounds, shutdown, begun, hold, held, asking }
    }

    /// Has parts that come within so long handed out as one, at most [`HELD_RECORDS_MAX`] or
    /// [`HELD_BYTES_MAX`] and a page: storing each by itself may take longer than it takes to come. Nothing
    /// is held over a pause, or any longer while an answer does not come. What is held when the program stops
    /// comes again.
    #[must_use]
    pub fn holding(mut self, hold: Duration) -> Self {
        self.hold = hold;
        self
    }

    /// What there is next. May be dropped at any point, and called again.
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
                    Err(part) => return Step::Part(part),
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
            match self.harvest.poll(clock::now_ms()) {
                Action::Ask(request) => {
                    if let Some(part) = self.ask(request, left).await {
                        return Step::Part(part);
                    }
                }
                Action::Wait(pause) => match self.held.take() {
                    Some(held) => return Step::Part(held.part),
                    None => sleep(pause.min(left)).await,
                },
                Action::Take(part) => {
                    if let Some(part) = self.hold(part, clock::monotonic()) {
                        return Step::Part(part);
                    }
                }
                Action::Done(end) => match self.held.take() {
                    Some(held) => return Step::Part(held.part),
                    None => return Step::End(end),
                },
            }
        }
    }

    /// Begins a request once it is its turn, unless that takes longer than is `left`. If it is not yet,
    /// and records are held, these are returned instead.
    async fn ask(&mut self, request: Request, left: Duration) -> Option<Box<Part>> {
        let turn = tokio::select! {
            biased;
            turn = self.repository.turn() => turn,
            () = ready(()), if self.held.is_some() => return self.held.take().map(|it| it.part),
            () = sleep(left) => return None,
        };
        let repository = self.repository.clone();
        self.asking.spawn(async move {
            // Until there is an answer.
            let _turn = turn;
            repository.answer(&request).await
        });
        None
    }

    /// Waits for the answer, or until what is held is to be handed out.
    async fn answered(&mut self) -> Result<Answer, Box<Part>> {
        let rest = self.held.as_ref().map(|it| {
            self.hold.saturating_sub(clock::monotonic().saturating_duration_since(it.since))
        });
        tokio::select! {
            biased;
            Some(answer) = self.asking.join_next() => Ok(answer.unwrap_or_else(resume)),
            () = sleep(rest.unwrap_or_default()), if rest.is_some() => match self.held.take() {
                Some(held) => Err(held.part),
                None => std::future::pending().await,
            },
        }
    }

    /// Puts a part to those that are held; returns them once they are to be handed out.
    fn hold(&mut self, part: Box<Part>, now: Instant) -> Option<Box<Part>> {
        let more = part.records.iter().map(bytes_of).sum::<usize>();
        let mut all = match self.held.take() {
            Some(mut held) => {
                held.part.absorb(*part);
                held.bytes = held.bytes.saturating_add(more);
                held
            }
            None => Held { part, since: now, bytes: more },
        };
        let is_long = self.hold <= now.saturating_duration_since(all.since);
        let is_much = HELD_RECORDS_MAX <= all.part.records.len() || HELD_BYTES_MAX <= all.bytes;
        if is_long || is_much || all.part.last {
            all.part.records.shrink_to_fit();
            return Some(all.part);
        }
        self.held = Some(all);
        None
    }

    /// What has been done so far.
    pub fn report(&self) -> &Report {
        self.harvest.report()
    }

    /// Who the repository is; `None` before it has said so, or if the harvest went on from the middle.
    pub fn identify(&self) -> Option<&Identify> {
        self.harvest.identify()
    }

    /// The metadata format that is harvested; empty before it is chosen.
    pub fn prefix(&self) -> &str {
        self.harvest.prefix()
    }
}

/// What a record takes, above all.
fn bytes_of(record: &Record) -> usize {
    let xml = record.metadata.iter().chain(&record.about);
    xml.map(|it| it.0.len()).sum()
}

/// A request that panicked does so here.
fn resume(fault: JoinError) -> Answer {
    std::panic::resume_unwind(fault.into_panic())
}
