//! Lists that bring fewer records than the repository says they have, and lists that bring nothing.
//!
//! Some repositories end a list at their third page, or at 10,000 records: shorter windows bring the rest.
//! Others count wrongly, and shorter windows bring no more. Which it is shows once the dates of the first
//! such list have been harvested in shorter windows; for the latter that is remembered, until everything
//! is harvested again.

use super::checkpoint::Run;
use super::list::RESTARTS_MAX;
use super::pause::TRIES_MAX;
use super::{Failure, Harvest, Remedy, Warning};
use crate::response::{Page, Record};

/// Of so many records one may be missing from a list, without more than a warning: repositories change as
/// they are read, and the standard lets them tell an estimate.
const MISSING_SHARE: u64 = 100;

/// So many lists are begun again before one that was short has to prove to have been: records of one day
/// in a window of years are come upon by halves.
const SHORT_RESTARTS_MAX: u64 = 12;

/// A window whose list was short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short {
    /// Its last datestamp, in Unix seconds, if it has an end.
    pub(super) until: Option<i64>,
    /// Distinct records that its list brought.
    pub(super) found: u64,
    /// What shorter windows have brought since.
    pub(super) since: u64,
    /// How often a list was begun again for it.
    pub(super) restarts: u64,
}

impl Run {
    /// Distinct records of the list, whether or not they could be read.
    pub(super) fn found(&self) -> u64 {
        self.distinct.saturating_add(self.unread)
    }

    /// Whether more records are missing from the list than may be.
    pub(super) fn lacks_many(&self) -> bool {
        let told = self.told.unwrap_or(0);
        told / MISSING_SHARE < told.saturating_sub(self.found())
    }

    /// Notes that the present window's list is short, as it is begun again.
    fn begin_short(&mut self) {
        let found = self.found();
        let begins = Short { until: self.window.1, found, since: 0, restarts: 0 };
        self.short.get_or_insert(begins).restarts += 1;
    }

    /// Counts a list that is done; returns whether the window that was short is done with it, and all of
    /// the shorter ones have brought no more.
    fn end_short(&mut self) -> bool {
        let found = self.found();
        let Some(short) = &mut self.short else { return false };
        short.since = short.since.saturating_add(found);
        let is_more = short.found < short.since;
        let is_over = is_more || self.window.1.is_none() || self.window.1 == short.until;
        if is_over {
            self.short = None;
        }
        is_over && !is_more
    }
}

impl Harvest {
    /// Whether the list that has ended lacks records that shorter windows may bring.
    pub(super) fn is_short(&self, run: &Run) -> bool {
        if !run.lacks_many() || RESTARTS_MAX <= run.restarts {
            return false;
        }
        if run.short.is_some_and(|it| SHORT_RESTARTS_MAX <= it.restarts) {
            return false;
        }
        // What is told of a list that forgot its set is of another one.
        if self.checkpoint.miscounts || run.set_lost || run.retries != 0 {
            return false;
        }
        let mut shorter = run.clone();
        shorter.shrink(self.settings.overlap_secs);
        shorter.window != run.window
    }

    /// Begins the present window again, shorter, since its list was short.
    pub(super) fn restart_short(&mut self) {
        let Some(mut run) = self.checkpoint.run.take() else { return };
        let why = Warning::ListSize { told: run.told.unwrap_or(0), found: run.found() };
        run.begin_short();
        self.begin_shorter(run, why.to_string());
    }

    /// Learns from a list that is done whether those that were short lacked anything.
    pub(super) fn learn_of_sizes(&mut self, run: &mut Run) {
        if run.end_short() {
            self.checkpoint.miscounts = true;
            // The windows were no better for being short.
            run.careful = false;
        }
    }

    /// Whether a part is an empty list: the standard has noRecordsMatch for that, so it may come of a
    /// database that does not answer.
    fn is_hollow(&self, page: &Page<Record>) -> bool {
        let is_first = self.checkpoint.run.as_ref().is_some_and(|it| it.token.is_none());
        let is_empty = page.items.is_empty() && page.quarantined.is_empty();
        is_first && is_empty && page.token.is_none() && self.list_told != Some(0)
    }

    /// Takes a part of the list. An empty list is asked for again; in the end it is taken, and nothing
    /// follows from it: what did not come is not taken to be gone, and the next harvest asks for the same
    /// dates, unless later ones bring something.
    pub(super) fn records(&mut self, page: Page<Record>, date: Option<i64>, now_ms: u64) {
        if !self.is_hollow(&page) {
            return self.page(page, date);
        }
        if self.tries + 1 < TRIES_MAX || self.is_at_gap() {
            let failure = Failure::Unreadable("an empty list, which says nothing".to_owned());
            return self.again(failure, Remedy::AgainOrLess, None, now_ms);
        }
        self.report.warn(Warning::EmptyList);
        if let Some(run) = &mut self.checkpoint.run {
            run.doubtful = true;
            let from = run.window.0.unwrap_or(i64::MIN);
            run.hollow = run.hollow.or(Some(from));
        }
        self.page(page, date);
    }

    /// Up to where a set has been seen that was harvested to its end, by the repository's clock, in Unix
    /// seconds; not behind a list that was empty, if nothing came after it.
    pub(super) fn reached_of_set(&self, run: &mut Run) -> Option<i64> {
        let from = run.hollow.take();
        let date = run.window_reached?;
        let Some(from) = from else { return Some(date) };
        let before = self.checkpoint.reached;
        if from == i64::MIN {
            return before;
        }
        let from = from.saturating_add(self.settings.overlap_secs).min(date);
        Some(before.filter(|_| !run.full).map_or(from, |it| it.min(from)))
    }
}
