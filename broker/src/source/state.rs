//! The state of a source in this process: all that the collector knows besides the source's
//! schedule.

use freshness::history::{History, Log, Settings, Status};
use net::shutdown::Shutdown;
use tokio::sync::watch;

use crate::collect::PendingChanges;
use crate::memory::{Memory, Origin, SourceVersion};
use crate::schedule::View;
use crate::source::Source;
use crate::status::{DAY_SECS, Errors, LastPull, SourceStatus, Updates};

/// Settings of a history that is learned from pulls: each second may have an update of its own.
const OF_PULLS: Settings = Settings { log: Log::Pulls, granularity_secs: 1 };

#[derive(Debug)]
pub(crate) struct SourceState {
    pub(crate) source: Source,
    /// Ends a running pull when the source is removed or its settings change.
    pub(crate) cancel: Shutdown,
    pub(crate) pulling: bool,
    /// What the harvest of the pull that began last does, in words, if its source is a repository.
    pub(crate) activity: Option<watch::Receiver<String>>,
    pub(crate) last_pull: Option<LastPull>,
    pub(crate) pulls: u64,
    pub(crate) history: History,
    /// The collection from which the history and the rate were learned.
    pub(crate) origin: Option<Origin>,
    /// The source's version after the last successful pull.
    pub(crate) reached: Option<SourceVersion>,
    /// Changes since the last successful pull, from failed pulls.
    pub(crate) pending: Option<PendingChanges>,
    /// Whether the source had changed at the last pull of this process.
    pub(crate) update: Option<Status>,
    pub(crate) errors: Errors,
    /// Reason why the source waits for an administrator; `None` if it does not.
    pub(crate) held: Option<String>,
    /// Whether an administrator has confirmed the loss.
    pub(crate) confirmed: bool,
    pub(crate) warnings: Vec<String>,
    /// Whether the source's note is older than this state.
    pub(crate) unwritten: bool,
}

impl SourceState {
    /// Returns the state of a source before its first pull in this process, from its note.
    pub(crate) fn new(source: Source, memory: Memory) -> Self {
        let Memory { last_pull, history, origin, reached, .. } = memory;
        Self {
            source,
            cancel: Shutdown::new(),
            pulling: false,
            activity: None,
            last_pull,
            pulls: 0,
            history,
            origin,
            reached,
            pending: None,
            update: None,
            errors: Errors::default(),
            held: None,
            confirmed: false,
            warnings: Vec::new(),
            unwritten: false,
        }
    }

    /// Returns all changes since the last successful pull, including `last`.
    pub(crate) fn with_pending(&self, last: PendingChanges) -> PendingChanges {
        self.pending.map_or(last, |before| before.plus(last))
    }

    /// Records the collection that a pull has read. Returns whether it is a different collection at
    /// a different URL; in that case the history is forgotten.
    pub(crate) fn handle_origin(&mut self, origin: Origin) -> bool {
        let other = self.origin.as_ref().is_some_and(|it| it.is_other(&origin));
        self.origin = Some(origin);
        if other {
            (self.history, self.pending) = (History::default(), None);
        }
        other
    }

    /// Records a successful pull and all changes since the previous successful one.
    pub(crate) fn handle_pull(&mut self, pull: LastPull, pending: &PendingChanges) {
        if pending.full {
            self.history.handle_restart();
        }
        let at_secs = i64::try_from(pull.at_ms / 1_000).unwrap_or(i64::MAX);
        self.update = Some(self.history.handle(at_secs, pending.changes, OF_PULLS));
        (self.pending, self.pulling, self.unwritten) = (None, false, true);
        self.pulls += 1;
        (self.confirmed, self.held) = (false, None);
        (self.errors.in_a_row, self.errors.back_off_seconds) = (0, 0.0);
        self.last_pull = Some(pull);
    }

    fn activity(&self) -> Option<String> {
        let activity = self.activity.as_ref()?.borrow().clone();
        (!activity.is_empty()).then_some(activity)
    }

    /// Returns the source's status, given its schedule and the number of objects that it holds.
    pub(crate) fn status(&self, view: &View, objects: u64) -> SourceStatus {
        SourceStatus {
            name: self.source.name.clone(),
            url: self.source.url.to_string(),
            kind: self.source.kind.name().to_owned(),
            part: self.source.part.as_ref().map(ToString::to_string),
            rate_per_second: view.rate,
            rate_per_day: view.rate.map(|rate| rate * DAY_SECS),
            elements: view.elements,
            interval_seconds: view.interval_secs,
            pull_cost: view.pull_cost,
            pull_seconds: view.took_secs,
            next_due_ms: view.due_ms,
            pulling: view.pulling,
            activity: view.pulling.then(|| self.activity()).flatten(),
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
