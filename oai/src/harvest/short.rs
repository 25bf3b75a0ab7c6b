//! Short lists: lists with fewer records than announced, and empty lists.
//!
//! Some repositories end a list at its third page, or at 10,000 records: shorter windows bring the
//! rest. Others count wrongly, and shorter windows bring no more. To find out, the dates of the
//! first such list are harvested in shorter windows. A wrong count is remembered until the next
//! full harvest.

use super::checkpoint::Run;
use super::list::RESTARTS_MAX;
use super::pause::TRIES_MAX;
use super::{Failure, Harvest, Remedy, Warning};
use crate::response::{Page, Record};

/// If at most one record in this number is missing, there is only a warning: repositories change
/// while they are read, and the standard allows the size to be an estimate.
const MISSING_SHARE: u64 = 100;

/// Maximum number of restarts for one short list. Shorter windows must find the records of a single
/// day in a window of years.
const SHORT_RESTARTS_MAX: u64 = 12;

/// A window whose list was short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short {
    /// Its last datestamp, in Unix seconds, if it has an end.
    pub(super) until: Option<i64>,
    /// Distinct records that its list brought.
    pub(super) found: u64,
    /// Distinct records that the shorter windows have brought since.
    pub(super) since: u64,
    /// Number of restarts because of this list.
    pub(super) restarts: u64,
}

impl Run {
    /// Counts the distinct records of the list, readable or not.
    pub(super) fn record_count(&self) -> u64 {
        self.distinct.saturating_add(self.unread)
    }

    /// Returns whether more records are missing from the list than allowed.
    pub(super) fn lacks_many(&self) -> bool {
        let announced = self.announced.unwrap_or(0);
        announced / MISSING_SHARE < announced.saturating_sub(self.record_count())
    }

    /// Records that the present window is begun again because its list was short.
    fn begin_short(&mut self) {
        let found = self.record_count();
        let begins = Short { until: self.window.1, found, since: 0, restarts: 0 };
        self.short.get_or_insert(begins).restarts += 1;
    }

    /// Counts a completed list. Returns true if all dates of the short window are done, and the
    /// shorter windows together have brought no more records.
    fn end_short(&mut self) -> bool {
        let found = self.record_count();
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
    /// Returns whether the ended list lacks records that shorter windows may bring.
    pub(super) fn is_short(&self, run: &Run) -> bool {
        if !run.lacks_many() || RESTARTS_MAX <= run.restarts {
            return false;
        }
        if run.short.is_some_and(|it| SHORT_RESTARTS_MAX <= it.restarts) {
            return false;
        }
        // If a list has lost its set, the announced size is that of another list.
        if self.checkpoint.miscounts || run.set_lost || run.retries != 0 {
            return false;
        }
        let mut shorter = run.clone();
        shorter.shrink(self.settings.overlap_secs);
        shorter.window != run.window
    }

    /// Begins the present window again, shorter, because its list was short.
    pub(super) fn restart_short(&mut self) {
        let Some(mut run) = self.checkpoint.run.take() else { return };
        let why =
            Warning::ListSize { announced: run.announced.unwrap_or(0), found: run.record_count() };
        run.begin_short();
        self.begin_shorter(run, why.to_string());
    }

    /// Finds out from a completed list whether earlier short lists lacked any records.
    pub(super) fn learn_of_sizes(&mut self, run: &mut Run) {
        if run.end_short() {
            self.checkpoint.miscounts = true;
            // Shorter windows did not help.
            run.careful = false;
        }
    }

    /// Returns whether a part is an empty list. The standard has noRecordsMatch for that, so the
    /// cause may be a database that does not answer.
    fn is_hollow(&self, page: &Page<Record>) -> bool {
        let is_first = self.checkpoint.run.as_ref().is_some_and(|it| it.token.is_none());
        let is_empty = page.items.is_empty() && page.quarantined.is_empty();
        is_first && is_empty && page.token.is_none() && self.list_announced != Some(0)
    }

    /// Handles a part of the list. An empty list is requested again. In the end it is accepted
    /// without consequences: absent records are not taken to be gone, and the next harvest asks for
    /// the same dates, unless later ones bring records.
    pub(super) fn records(&mut self, page: Page<Record>, date: Option<i64>, now_ms: u64) {
        if !self.is_hollow(&page) {
            return self.page(page, date);
        }
        if self.tries + 1 < TRIES_MAX || self.is_at_gap() {
            let failure = Failure::Unreadable("an empty list instead of noRecordsMatch".to_owned());
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

    /// Returns the time up to which a completed set has been seen, in Unix seconds by the
    /// repository's clock. The dates of an empty list that no records followed do not count as
    /// seen.
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
