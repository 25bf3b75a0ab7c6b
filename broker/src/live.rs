//! A source as it fares in this process: what the collector knows of it beside its schedule.

use freshness::history::{History, Log, Settings, Status};
use net::shutdown::Shutdown;

use crate::collect::Brought;
use crate::memory::{Memory, Origin, Reached};
use crate::schedule::View;
use crate::source::Source;
use crate::status::{Errors, LastPull, SourceStatus, Updates};

/// Seconds of a day.
const DAY_SECS: f64 = 86_400.0;

/// How a history takes a source's pulls: each second may have an update of its own.
const OF_PULLS: Settings = Settings { log: Log::Pulls, granularity_secs: 1 };

/// A source as it fares in this process.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) source: Source,
    /// Ends a pull under way when the source goes or changes.
    pub(crate) cancel: Shutdown,
    pub(crate) pulling: bool,
    /// Something that it has sent is being taken in; a pull that begins waits for that.
    pub(crate) taking: bool,
    pub(crate) last_pull: Option<LastPull>,
    pub(crate) pulls: u64,
    /// How it changes.
    pub(crate) history: History,
    /// Which collection has taught us that, and its rate.
    pub(crate) origin: Option<Origin>,
    /// Up to where, by the last pull that succeeded.
    pub(crate) reached: Option<Reached>,
    /// What has come since the last pull that succeeded: of pulls that did not, and of what was sent.
    pub(crate) part: Option<Brought>,
    /// Whether it had changed at the last pull of this process.
    pub(crate) update: Option<Status>,
    pub(crate) errors: Errors,
    /// Why it waits for an administrator.
    pub(crate) held: Option<String>,
    /// Whether one has confirmed that.
    pub(crate) confirmed: bool,
    /// How many bytes it has sent that were taken in since the last pull that succeeded.
    pub(crate) sent_bytes: u64,
    /// What was odd at the last pull.
    pub(crate) warnings: Vec<String>,
    /// What the notes say is no longer what the schedule says.
    pub(crate) unwritten: bool,
}

impl Live {
    /// Returns a source that has not been pulled yet by this process, with what is remembered of it.
    pub(crate) fn new(source: Source, memory: Memory) -> Self {
        let Memory { last_pull, history, origin, reached, .. } = memory;
        Self {
            source,
            cancel: Shutdown::new(),
            pulling: false,
            taking: false,
            last_pull,
            pulls: 0,
            history,
            origin,
            reached,
            part: None,
            update: None,
            errors: Errors::default(),
            held: None,
            confirmed: false,
            sent_bytes: 0,
            warnings: Vec::new(),
            unwritten: false,
        }
    }

    /// Whether something that it has sent may be taken in now.
    pub(crate) fn may_take(&self) -> bool {
        !self.pulling && !self.taking && !self.cancel.is_started()
    }

    /// What came of it since the last pull that succeeded, `last` included.
    pub(crate) fn brought(&self, last: Brought) -> Brought {
        self.part.map_or(last, |before| before.plus(last))
    }

    /// Takes in whom a pull has read; true if that is another collection at another address: what was
    /// learned is not its, and is forgotten.
    pub(crate) fn handle_origin(&mut self, origin: Origin) -> bool {
        let other = self.origin.as_ref().is_some_and(|it| it.is_other(&origin));
        self.origin = Some(origin);
        if other {
            (self.history, self.part) = (History::default(), None);
        }
        other
    }

    /// Takes in a pull that succeeded, and all that came since the one before that did.
    pub(crate) fn handle_pull(&mut self, pull: LastPull, brought: &Brought) {
        if brought.full {
            self.history.handle_restart();
        }
        let at_secs = i64::try_from(pull.at_ms / 1_000).unwrap_or(i64::MAX);
        self.update = Some(self.history.handle(at_secs, brought.changes, OF_PULLS));
        (self.part, self.sent_bytes) = (None, 0);
        (self.pulling, self.unwritten) = (false, true);
        self.pulls += 1;
        (self.confirmed, self.held) = (false, None);
        (self.errors.in_a_row, self.errors.back_off_seconds) = (0, 0.0);
        self.last_pull = Some(pull);
    }

    /// Returns what status says of it, with its schedule and the number of objects that it holds.
    pub(crate) fn status(&self, view: &View, objects: u64) -> SourceStatus {
        SourceStatus {
            name: self.source.name.clone(),
            url: self.source.url.to_string(),
            kind: self.source.kind.name().to_owned(),
            rate_per_second: view.rate,
            rate_per_day: view.rate.map(|rate| rate * DAY_SECS),
            elements: view.elements,
            interval_seconds: view.interval_secs,
            pull_cost: view.pull_cost,
            pull_seconds: view.took_secs,
            next_due_ms: view.due_ms,
            pulling: view.pulling,
            last_pull: self.last_pull.clone(),
            pulls: self.pulls,
            freshness: view.freshness,
            updates: Updates::new(&self.history, self.update),
            follow: self.source.follow,
            push: None,
            errors: self.errors.clone(),
            held: self.held.clone(),
            objects,
            warnings: self.warnings.clone(),
        }
    }
}
