//! The harvester: a state machine from each answer to the next request.
//!
//! Source: OAI-PMH §2.7 (selective harvesting), §3.5 (flow control), §4 (verbs); the OAI
//! implementation guidelines for harvesters (dates by the repository's clock, overlap, errors).
//!
//! The caller has the sockets and the clock. It calls [`Harvest::poll`], performs the action, and
//! passes the outcome to [`Harvest::handle`]:
//!
//! 1. Identify. A full harvest then asks for the sets, if the settings name some, and for the
//!    formats. An incremental one asks for some of the records that earlier ones could not read.
//! 2. ListRecords for each set, in windows of dates. The first window has no beginning (because
//!    repositories state wrong earliest datestamps), and the last one has no end. The length of a
//!    window depends on the number of records in the one before.
//! 3. The further parts of each list, by their tokens. Each batch of records comes with a
//!    [`Checkpoint`], to be stored together with the records. After any stop the harvest continues
//!    from there.
//!
//! The next harvest begins at the repository's time of the first request for the last window, less
//! an overlap. Unchanged records of the overlap are dropped. If our clock was behind the
//! repository's, our time is used, because an earlier time is always safe.
//!
//! A failed request is tried again with growing pauses. If that fails, the window is begun again
//! with an eighth of its length, a few times. If that fails, too, the window is skipped as a gap,
//! which is tried again at the end of this harvest and of the next. A harvest that ends or cannot
//! continue has a checkpoint, and on failure a [`Failure`] with the reason.
//!
//! # Differences from the standard
//!
//! * Two records with one identifier and one datestamp are duplicates only if their contents are
//!   equal: if datestamps are days, an item may change twice on one day.
//! * A time by the repository's clock is used only up to the time of our clock, because some
//!   repositories send local time as UTC.
//! * A list whose next part is answered with noRecordsMatch has ended, unless records are missing.

mod action;
mod activity;
mod checkpoint;
mod list;
mod opening;
mod pause;
mod report;
mod seen;
mod settings;
mod short;
mod unread;
mod window;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::datestamp::{Datestamp, Granularity};
use crate::error::Code;
use crate::request::{Listed, Request, Scope, Selection};
use crate::response::{Body, Identify, Page, Record, Response};

pub use action::{Action, Answer, Batch, End, Outcome, Remedy};
pub use checkpoint::{CHECKPOINT_BYTES_MAX, Checkpoint};
pub use pause::{TRIES_MAX, retry_after_secs};
pub use report::{Failure, QUARANTINED_MAX, Report, Warning, status_advice};
pub use settings::{
    FULL_EVERY_SECS, OAI_DC, OVERLAP_SECS, PAUSE_SECS_MAX, RECORDS_MAX, REQUESTS_MAX, Settings,
    WINDOW_DAYS,
};

use checkpoint::Run;
use seen::Seen;

/// Offset of a repository's clock from which a warning is given, in seconds.
const CLOCK_OFF_SECS: i64 = 300;

/// The phase of a harvest: the kind of its present request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Identify,
    /// ListSets, until all sets of the settings have been listed.
    Sets {
        token: Option<String>,
        pages: u32,
        missing: BTreeSet<String>,
    },
    Formats,
    /// GetRecord, for so many records that earlier harvests could not read.
    Unread {
        left: usize,
    },
    List,
    Over(Result<(), Failure>),
}

/// A harvest.
#[derive(Clone, Debug)]
pub struct Harvest {
    settings: Settings,
    checkpoint: Checkpoint,
    phase: Phase,
    identify: Option<Identify>,
    /// Failed attempts at the present request.
    tries: u32,
    /// Earliest time of the next request, by our clock, in milliseconds since 1970.
    next_ms: u64,
    batch: Option<Box<Batch>>,
    seen: Seen,
    /// Numbers of consecutive parts without new records: parts with old records only, and empty
    /// parts.
    stale: (u64, u64),
    /// Size of the list according to the headers of the last response.
    list_announced: Option<u64>,
    /// Complete records of a truncated response.
    whole: Vec<Record>,
    /// The reason for the last gap.
    gap_failure: Option<Failure>,
    /// Why the present request is made again.
    why_again: Option<String>,
    report: Report,
}

impl Harvest {
    /// Continues from a checkpoint, or begins with the default one. A checkpoint of other settings
    /// is treated as the default one, except that its generation is continued.
    pub fn new(settings: Settings, checkpoint: Checkpoint) -> Self {
        let mut checkpoint = checkpoint;
        let selection = settings.selection();
        if checkpoint.selection != selection {
            let generation = checkpoint.generation;
            checkpoint = Checkpoint { selection, generation, ..Checkpoint::default() };
        }
        let sets = u64::try_from(settings.sets.len().max(1)).unwrap_or(1);
        let is_chosen = !checkpoint.prefix.is_empty();
        checkpoint.run = checkpoint.run.filter(|it| it.set < sets && is_chosen);
        let mut report = Report {
            quarantined: u64::try_from(checkpoint.unread.len()).unwrap_or(u64::MAX),
            quarantine: checkpoint.unread.clone(),
            ..Report::default()
        };
        let mut seen = Seen::default();
        let phase = match &mut checkpoint.run {
            Some(run) => {
                run.until = settings.until.map(Datestamp::last_secs);
                report.full = run.full;
                seen.begin(run.token.as_deref());
                Phase::List
            }
            None => Phase::Identify,
        };
        Self {
            settings,
            checkpoint,
            phase,
            identify: None,
            tries: 0,
            next_ms: 0,
            batch: None,
            seen,
            stale: (0, 0),
            list_announced: None,
            whole: Vec::new(),
            gap_failure: None,
            why_again: None,
            report,
        }
    }

    /// Returns the repository's description; `None` before it has come, or if the harvest was
    /// continued within a list.
    pub fn identify(&self) -> Option<&Identify> {
        self.identify.as_ref()
    }

    /// Returns the prefix of the harvested format; empty before it is chosen.
    pub fn prefix(&self) -> &str {
        &self.checkpoint.prefix
    }

    /// Returns the report so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Ends the harvest with the caller's reason; the next harvest continues from the checkpoint.
    pub fn stop(&mut self, failure: Failure) {
        if !matches!(self.phase, Phase::Over(_)) {
            self.fail(failure);
        }
    }

    /// Returns the next action at `now_ms` by our clock, in milliseconds since 1970.
    pub fn poll(&mut self, now_ms: u64) -> Action {
        if let Some(batch) = self.batch.take() {
            return Action::Take(batch);
        }
        let (requests_max, records_max) = (self.settings.requests_max, self.settings.records_max);
        if requests_max <= self.report.requests {
            let (what, setting) = ("requests", "requests_max");
            self.stop(Failure::OverLimit { what, max: requests_max, setting });
        } else if records_max <= self.report.records.max(self.records_of_list()) {
            let (what, setting) = ("records", "records_max");
            self.stop(Failure::OverLimit { what, max: records_max, setting });
        }
        let wait_ms = self.next_ms.saturating_sub(now_ms);
        if !matches!(self.phase, Phase::Over(_)) && wait_ms != 0 {
            // If our clock was set back, wait no longer than the longest pause.
            let most = self.settings.pause_secs_max.saturating_mul(1_000);
            let wait_ms = wait_ms.min(most.max(self.settings.delay_ms).max(60_000));
            self.next_ms = now_ms.saturating_add(wait_ms);
            return Action::Wait(Duration::from_millis(wait_ms));
        }
        match self.request() {
            Ok(request) => Action::Ask(request),
            Err(outcome) => Action::Done(Box::new(End {
                outcome,
                report: self.report.clone(),
                checkpoint: self.checkpoint.clone(),
            })),
        }
    }

    /// Counts the records of the present list over all harvests that have read it, so that an
    /// endless list does not get a new allowance with each harvest.
    fn records_of_list(&self) -> u64 {
        self.checkpoint.run.as_ref().map_or(0, |it| it.distinct)
    }

    /// Returns whether this harvest has brought records, perhaps before it was continued.
    fn has_records(&self) -> bool {
        let run = self.checkpoint.run.as_ref();
        0 < self.report.records || run.is_some_and(|it| 0 < it.live || 0 < it.record_count())
    }

    /// Returns the present request, or the end of the harvest.
    fn request(&self) -> Result<Request, Result<(), Failure>> {
        Ok(match &self.phase {
            Phase::Identify => Request::Identify,
            Phase::Sets { token, .. } => Request::Sets { token: token.clone() },
            Phase::Formats => Request::Formats { identifier: None },
            // This phase always has a record to ask for.
            Phase::Unread { .. } => self.request_unread().ok_or(Ok(()))?,
            Phase::List => {
                // This phase always has a run.
                let run = self.checkpoint.run.as_ref().ok_or(Ok(()))?;
                let scope = match &run.token {
                    Some(token) => Scope::Token(token.clone()),
                    None => Scope::Selection(self.selection(run)),
                };
                Request::List { listed: Listed::Records, scope }
            }
            Phase::Over(outcome) => return Err(outcome.clone()),
        })
    }

    fn selection(&self, run: &Run) -> Selection {
        let at = |secs: Option<i64>| secs.map(|it| Datestamp::at(it, run.granularity));
        let (from, until) = run.window;
        let set = self.set_of(run).cloned();
        Selection { prefix: self.checkpoint.prefix.clone(), from: at(from), until: at(until), set }
    }

    fn set_of(&self, run: &Run) -> Option<&String> {
        usize::try_from(run.set).ok().and_then(|it| self.settings.sets.get(it))
    }

    /// Handles the outcome of the request from [`poll`](Self::poll), at `now_ms` by our clock.
    pub fn handle(&mut self, answer: Answer, now_ms: u64) {
        self.report.requests += 1;
        self.report.bytes = self.report.bytes.saturating_add(answer.bytes);
        if answer.elements.is_some() {
            self.report.elements = answer.elements;
        }
        self.list_announced = answer.list;
        self.next_ms = now_ms.saturating_add(self.settings.delay_ms);
        self.whole = Vec::new();
        self.why_again = None;
        match answer.outcome {
            Outcome::Response { response, repaired } => {
                self.report.repaired += u64::from(repaired);
                self.response(response, now_ms);
            }
            // It is as unreadable as before.
            Outcome::Unreadable { .. } if self.is_at_unread() => self.next_unread(),
            Outcome::Unreadable { problem, remedy, whole } => {
                self.whole = whole;
                let failure = Failure::Unreadable(problem);
                // What the first list has, every list has, of whatever dates.
                let is_hopeless = remedy == Remedy::Less && !self.has_records();
                let remedy = if is_hopeless { Remedy::None } else { remedy };
                self.again(failure, remedy, None, now_ms);
            }
            Outcome::Status { status, retry_after_secs } => {
                self.status(status, retry_after_secs, now_ms);
            }
            Outcome::Failed { problem, remedy } => {
                self.again(Failure::Transfer { problem, remedy }, remedy, None, now_ms);
            }
        }
    }

    fn response(&mut self, response: Response, now_ms: u64) {
        let now_secs = i64::try_from(now_ms / 1_000).unwrap_or(i64::MAX);
        if let Some(date) = response.response_date {
            let off = date.secs().saturating_sub(now_secs);
            if date.granularity() == Granularity::Second && CLOCK_OFF_SECS < off.abs() {
                self.report.warn(Warning::ClockOff { secs: off });
            }
        }
        let date = response.response_date.map(|it| it.secs().min(now_secs));
        if let (Some(run), Some(date)) = (&mut self.checkpoint.run, date) {
            run.server_secs = Some(date);
        }
        match (&mut self.phase, response.body) {
            (Phase::Identify, Body::Identify(found)) => self.identified(*found, date, now_ms),
            (Phase::Sets { .. }, Body::Sets(page)) => self.sets(page),
            (Phase::Formats, Body::Formats(formats)) => self.formats(&formats),
            (Phase::List, Body::Records(page)) => self.records(page, date, now_ms),
            (Phase::List, Body::Faults(faults)) => self.faults(faults, date),
            (Phase::Unread { .. }, Body::Record(record)) => self.record_of_unread(*record),
            (Phase::Unread { .. }, Body::Faults(faults)) => self.faults_of_unread(&faults),
            (Phase::Sets { .. }, Body::Faults(faults))
                if self.settings.strict
                    && faults.iter().any(|it| it.code == Code::NoSetHierarchy) =>
            {
                self.sets(Page::of(Vec::new()));
            }
            (Phase::Sets { .. } | Phase::Formats, Body::Faults(_)) => self.skip(),
            (Phase::Identify, Body::Faults(faults)) => {
                let fault = faults.into_iter().next();
                self.fail(fault.map_or_else(no_reason, Failure::Refused));
            }
            (Phase::Over(_), _) => {}
            _ => {
                let failure = Failure::Unreadable("it answers another verb".to_owned());
                self.again(failure, Remedy::AgainOrLess, None, now_ms);
            }
        }
    }

    fn status(&mut self, status: u16, retry_after_secs: Option<u64>, now_ms: u64) {
        let failure = Failure::Status { status };
        let has_token = self.checkpoint.run.as_ref().is_some_and(|it| it.token.is_some());
        match status {
            429 | 503 => self.again(failure, Remedy::Again, retry_after_secs, now_ms),
            408 | 425 | 500..=599 => {
                self.again(failure, Remedy::AgainOrLess, retry_after_secs, now_ms);
            }
            400 | 404 | 410 | 422 if has_token => {
                self.restart(Failure::TokenRefused(format!("status {status}")));
            }
            _ => self.give_up(failure, Remedy::None),
        }
    }

    /// Schedules another attempt after a pause, unless the request has been tried often enough.
    fn again(
        &mut self,
        failure: Failure,
        remedy: Remedy,
        retry_after_secs: Option<u64>,
        now_ms: u64,
    ) {
        self.tries += 1;
        let is_worth_it = matches!(remedy, Remedy::Again | Remedy::AgainOrLess);
        if !is_worth_it || TRIES_MAX <= self.tries {
            return self.give_up(failure, remedy);
        }
        let asked = retry_after_secs.unwrap_or(0);
        if self.settings.pause_secs_max < asked {
            return self.fail(Failure::Busy { secs: asked });
        }
        // The pause is never less than our own, because some repositories ask for a pause of zero.
        let pause_ms = pause::backoff_ms(self.tries).max(asked.saturating_mul(1_000));
        self.next_ms = now_ms.saturating_add(pause_ms.max(self.settings.delay_ms));
        let why = failure.to_string();
        self.why_again = Some(why.clone());
        self.report.warn(Warning::Retried(why));
    }

    fn is_at_unread(&self) -> bool {
        matches!(self.phase, Phase::Unread { .. })
    }

    /// Returns whether the present window is a gap, which is tried again after all other windows.
    fn is_at_gap(&self) -> bool {
        self.checkpoint.run.as_ref().is_some_and(|it| it.retries != 0)
    }

    /// Gives up a request: skips the request, begins its window again, or ends the harvest.
    fn give_up(&mut self, failure: Failure, remedy: Remedy) {
        let is_less = matches!(remedy, Remedy::Less | Remedy::AgainOrLess)
            || self.is_at_gap() && !matches!(failure, Failure::Transfer { .. });
        match self.phase {
            Phase::Sets { .. } | Phase::Formats => self.skip(),
            Phase::List if is_less => self.restart(failure),
            Phase::Unread { .. } => self.next_unread(),
            _ => self.fail(failure),
        }
    }

    /// Continues without the answer to a request that is not essential.
    fn skip(&mut self) {
        self.tries = 0;
        match std::mem::replace(&mut self.phase, Phase::Formats) {
            Phase::Sets { .. } => {}
            _ => self.chosen(self.settings.prefixes.first().cloned()),
        }
    }

    /// Ends the harvest early, with a failure.
    fn fail(&mut self, failure: Failure) {
        let is_of_transfer = matches!(
            failure,
            Failure::Transfer { .. }
                | Failure::Status { .. }
                | Failure::Busy { .. }
                | Failure::OverLimit { .. }
                | Failure::TimeUp { .. }
        );
        // Before the first list there is nothing to continue.
        self.checkpoint.run = self.checkpoint.run.take().filter(|_| self.phase == Phase::List);
        if let Some(run) = &mut self.checkpoint.run {
            (run.restarts, run.skips) = (0, 0);
            if !is_of_transfer {
                run.begin_list();
            }
        }
        let records = std::mem::take(&mut self.whole);
        if matches!(self.phase, Phase::List) && !records.is_empty() {
            records.iter().for_each(|it| self.count(it));
            self.hand_out(records, false);
        }
        self.phase = Phase::Over(Err(failure));
    }
}

/// Returns the failure for an error response that contains no error.
fn no_reason() -> Failure {
    Failure::Unreadable("an error response names no error".to_owned())
}

#[cfg(test)]
mod tests;
