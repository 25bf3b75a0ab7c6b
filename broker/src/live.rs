//! A source as it fares in this process: what the collector knows of it beside its schedule.

use net::shutdown::Shutdown;

use crate::schedule::View;
use crate::source::Source;
use crate::status::{Errors, LastPull, SourceStatus};

/// Seconds of a day.
const DAY_SECS: f64 = 86_400.0;

/// A source as it fares in this process.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) source: Source,
    /// Ends a pull under way when the source goes or changes.
    pub(crate) cancel: Shutdown,
    pub(crate) pulling: bool,
    pub(crate) last_pull: Option<LastPull>,
    pub(crate) pulls: u64,
    pub(crate) errors: Errors,
    /// Why it waits for an administrator.
    pub(crate) held: Option<String>,
    /// Whether one has confirmed that.
    pub(crate) confirmed: bool,
    /// What the notes say is no longer what the schedule says.
    pub(crate) unwritten: bool,
}

impl Live {
    /// Returns a source that has not been pulled yet by this process.
    pub(crate) fn new(source: Source, last_pull: Option<LastPull>) -> Self {
        Self {
            source,
            cancel: Shutdown::new(),
            pulling: false,
            last_pull,
            pulls: 0,
            errors: Errors::default(),
            held: None,
            confirmed: false,
            unwritten: false,
        }
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
            next_due_ms: view.due_ms,
            pulling: view.pulling,
            last_pull: self.last_pull.clone(),
            pulls: self.pulls,
            freshness: view.freshness,
            follow: self.source.follow,
            errors: self.errors.clone(),
            held: self.held.clone(),
            objects,
        }
    }
}
