//! A whole harvest, part after part.

use std::time::{Duration, Instant};

use net::clock;
use net::shutdown::Shutdown;
use oai::harvest::{Action, Checkpoint, End, Failure, Harvest, Part, Report, Settings};
use oai::response::Identify;
use tokio::time::sleep;

use super::ask::Repository;

/// So many records are not held any longer.
pub const HELD_RECORDS_MAX: usize = 4_096;

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
    /// Records that are held, and since when.
    held: Option<(Box<Part>, Instant)>,
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
        Self { repository, harvest, bounds, shutdown, begun, hold, held }
    }

    /// Has parts that come within so long handed out as one, at most [`HELD_RECORDS_MAX`] and a page:
    /// storing each by itself may take longer than it takes to come. What is held when the program stops
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
                    let answer = self.repository.answer(&request).await;
                    self.harvest.handle(answer, clock::now_ms());
                }
                // Nothing is held over a pause.
                Action::Wait(pause) => match self.held.take() {
                    Some((part, _)) => return Step::Part(part),
                    None => sleep(pause.min(left)).await,
                },
                Action::Take(part) => {
                    if let Some(part) = self.hold(part, clock::monotonic()) {
                        return Step::Part(part);
                    }
                }
                Action::Done(end) => match self.held.take() {
                    Some((part, _)) => return Step::Part(part),
                    None => return Step::End(end),
                },
            }
        }
    }

    /// Puts a part to those that are held; returns them once they are to be handed out.
    fn hold(&mut self, part: Box<Part>, now: Instant) -> Option<Box<Part>> {
        let (mut all, since) = match self.held.take() {
            Some((mut held, since)) => {
                held.absorb(*part);
                (held, since)
            }
            None => (part, now),
        };
        let is_long = self.hold <= now.saturating_duration_since(since);
        if is_long || all.last || HELD_RECORDS_MAX <= all.records.len() {
            all.records.shrink_to_fit();
            return Some(all);
        }
        self.held = Some((all, since));
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
