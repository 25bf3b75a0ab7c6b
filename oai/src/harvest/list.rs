//! The parts of a list: their records, the way to the next part, and the reactions to failures.

use crate::datestamp::{Datestamp, Granularity};
use crate::error::{Code, Fault};
use crate::request::is_within;
use crate::response::{Page, Record, Token};

use super::checkpoint::{GAPS_MAX, Gap, RECENT_MAX, Run, STRING_BYTES_MAX};
use super::settings::short_sum;
use super::{Batch, Failure, Harvest, Phase, Warning};

/// Maximum number of restarts of a window in a row; each restart divides its length by eight.
pub(super) const RESTARTS_MAX: u64 = 6;

/// Maximum number of windows in a row that may be skipped.
const SKIPS_MAX: u64 = 2;

/// Maximum number of parts in a row with only records that the list has brought before.
const REPEATS_MAX: u64 = 16;

/// Maximum number of parts in a row without records.
const EMPTY_MAX: u64 = 1_000;

impl Harvest {
    /// Handles a part of the present list; `date` is the repository's time, in Unix seconds.
    pub(super) fn page(&mut self, page: Page<Record>, date: Option<i64>) {
        self.tries = 0;
        let Some(mut run) = self.checkpoint.run.take() else { return };
        let is_first = run.token.is_none();
        if is_first {
            run.begin_list();
            run.window_reached = date;
            self.seen.begin(None);
            self.stale = (0, 0);
            run.of_set = true;
        } else if let Some(date) = date {
            // After a repository's clock is set back, its later changes get earlier times.
            run.window_reached = run.window_reached.map(|it| it.min(date));
        }
        run.pages += 1;
        self.check_dates(&mut run, &page.items);
        self.check_set(&mut run, &page.items, is_first);
        let records = self.sift(&mut run, page.items);
        run.doubtful |= !page.quarantined.is_empty();
        for unread in page.quarantined {
            self.unread(&mut run, unread);
        }
        let failure = self.go_on(&mut run, page.token);
        let is_end = failure.is_none() && run.token.is_none();
        let is_short = is_end && self.is_short(&run);
        let is_last = is_end && !is_short && self.end_list(&mut run);
        let release = is_last && run.full && !run.doubtful;
        if is_last {
            self.finish(run);
        } else {
            self.checkpoint.run = Some(run);
        }
        let is_last = match failure {
            Some(failure) => {
                self.restart(failure);
                self.batch.take().is_some_and(|it| it.last)
            }
            None => is_last,
        };
        if is_short {
            self.restart_short();
        }
        self.hand_out(records, is_last);
        if let Some(batch) = &mut self.batch {
            batch.release = release;
        }
    }

    /// Passes records to the caller, together with the present checkpoint.
    pub(super) fn hand_out(&mut self, records: Vec<Record>, last: bool) {
        let checkpoint = self.checkpoint.clone();
        let generation = if self.report.full { checkpoint.generation } else { 0 };
        let batch = Batch { records, checkpoint, generation, release: false, last };
        self.batch = Some(Box::new(batch));
    }

    /// Counts records, and drops those that are of other sets, or unchanged since the last harvest.
    fn sift(&mut self, run: &mut Run, items: Vec<Record>) -> Vec<Record> {
        let settled = run.window_reached.map(|it| {
            let behind = it.saturating_sub(self.settings.overlap_secs);
            Datestamp::at(behind, run.granularity).secs()
        });
        let (mut kept, mut fresh) = (Vec::with_capacity(items.len()), 0);
        let is_empty = items.is_empty();
        for record in items {
            self.recover(&record.header.identifier);
            let is_new = self.seen.is_new(&record.header.identifier);
            fresh += u64::from(is_new);
            if run.set_lost && !self.is_of_set(run, &record) {
                continue;
            }
            run.list_live += u64::from(is_new && !record.header.deleted);
            let stamp = record.header.datestamp;
            if stamp.is_none() {
                let identifier = record.header.identifier.clone();
                self.report.warn(Warning::NoDatestamp(identifier));
            }
            let is_recent =
                stamp.zip(settled).is_some_and(|(stamp, settled)| settled <= stamp.last_secs());
            let identifier = short_sum(record.header.identifier.as_bytes());
            // A full harvest must name every record.
            let known = self.checkpoint.recent.get(&identifier).filter(|_| !run.full);
            // If there are too many records, only the first ones are remembered.
            let is_kept = is_recent
                && (run.recent.len() < RECENT_MAX || run.recent.contains_key(&identifier));
            if is_kept || known.is_some() {
                let content = content_sum(&record);
                if is_kept {
                    run.recent.insert(identifier, content);
                }
                if known == Some(&content) {
                    self.report.duplicates += 1;
                    continue;
                }
            }
            self.count(&record);
            kept.push(record);
        }
        run.distinct = run.distinct.saturating_add(fresh);
        let (repeats, empty) = &mut self.stale;
        *repeats = if fresh == 0 && !is_empty { *repeats + 1 } else { 0 };
        *empty = if is_empty { *empty + 1 } else { 0 };
        kept
    }

    /// Sets the token of the next part; returns a failure if the list cannot be continued.
    fn go_on(&mut self, run: &mut Run, token: Option<Token>) -> Option<Failure> {
        run.token = None;
        run.announced = self.list_announced.or(run.announced);
        let token = token?;
        run.announced = token.complete_list_size.or(run.announced);
        self.report.elements = token.total_elements.or(self.report.elements);
        if token.value.trim().is_empty() {
            return None;
        }
        let (bytes, bytes_max) = (token.value.len(), STRING_BYTES_MAX);
        if bytes_max < bytes {
            return Some(Failure::TokenSize { bytes, bytes_max });
        }
        let sum = short_sum(token.value.as_bytes());
        if !self.seen.is_new_token(&token.value) || run.mark == sum {
            if run.announced == Some(run.record_count()) {
                self.report.warn(Warning::EndedByToken);
                return None;
            }
            return Some(Failure::TokenLoop);
        }
        let (repeats, empty) = self.stale;
        if REPEATS_MAX <= repeats || EMPTY_MAX <= empty {
            return Some(Failure::Endless { pages: repeats.max(empty) });
        }
        if run.pages.is_power_of_two() {
            run.mark = sum;
        }
        run.token = Some(token.value);
        None
    }

    /// Ends a list, and opens the next window, set or gap; returns true if there is none.
    fn end_list(&mut self, run: &mut Run) -> bool {
        let found = run.record_count();
        if let Some(announced) = run.announced.filter(|it| *it != found) {
            run.doubtful |= run.lacks_many();
            self.report.warn(Warning::ListSize { announced, found });
        }
        if found != 0 {
            run.hollow = None;
        }
        self.learn_of_sizes(run);
        let overlap_secs = self.settings.overlap_secs;
        run.live = run.live.saturating_add(run.list_live);
        (run.restarts, run.skips) = (0, 0);
        if run.retries != 0 {
            let tried = usize::try_from(run.retries - 1).unwrap_or(usize::MAX);
            if tried < self.checkpoint.gaps.len() {
                self.checkpoint.gaps.remove(tried);
            }
            run.retries -= 1;
            return !self.open_gap(run);
        }
        if run.open_next(overlap_secs) {
            return false;
        }
        match self.reached_of_set(run) {
            Some(date) => run.reached = Some(run.reached.map_or(date, |it| it.min(date))),
            None => run.undated = true,
        }
        run.set += 1;
        if self.set_of(run).is_some() {
            run.open(run.from, overlap_secs);
            return false;
        }
        run.retries = u64::try_from(self.checkpoint.gaps.len()).unwrap_or(0);
        !self.open_gap(run)
    }

    fn finish(&mut self, run: Run) {
        let checkpoint = &mut self.checkpoint;
        checkpoint.reached = run.reached.filter(|_| !run.undated);
        if checkpoint.reached.is_none() {
            self.report.warn(Warning::NoResponseDate);
        }
        if run.full {
            checkpoint.full_at_ms = run.began_ms;
            self.report.elements = self.report.elements.or(Some(run.live));
            if run.doubtful {
                self.report.warn(Warning::ReleaseWithheld);
            }
        }
        checkpoint.recent = run.recent;
        let gaps: Vec<String> =
            checkpoint.gaps.iter().map(|it| it.describe(run.granularity)).collect();
        let why = self.gap_failure.take().map_or_else(String::new, |it| it.to_string());
        self.report.gaps.clone_from(&gaps);
        let is_whole = gaps.is_empty();
        let gaps = gaps.join(", ");
        self.phase = Phase::Over(if is_whole { Ok(()) } else { Err(Failure::Gaps { gaps, why }) });
    }

    /// Opens the next gap to try again; returns `false` if there is none.
    fn open_gap(&self, run: &mut Run) -> bool {
        let gap = usize::try_from(run.retries).ok().and_then(|it| it.checked_sub(1));
        let Some(gap) = gap.and_then(|it| self.checkpoint.gaps.get(it)) else { return false };
        (run.set, run.window) = (gap.set, (gap.from, Some(gap.until)));
        run.begin_list();
        true
    }

    /// Skips the present window, to be tried again later; returns `false` if it cannot be skipped.
    fn skip_window(&mut self, run: &mut Run) -> bool {
        let (from, Some(until)) = run.window else { return false };
        let gaps = &mut self.checkpoint.gaps;
        if run.skips == SKIPS_MAX || run.is_last_window() {
            return false;
        }
        let gap = run.gap(from, until);
        if gaps.len() < GAPS_MAX {
            gaps.push(gap);
        } else if let Some(last) = gaps.iter_mut().rfind(|it| it.set == gap.set) {
            // The merged gap includes the records between the two gaps, which then come again.
            (last.from, last.until) = (last.from.min(gap.from), last.until.max(gap.until));
        } else {
            return false;
        }
        (run.restarts, run.skips, run.doubtful) = (0, run.skips + 1, true);
        run.open_next(self.settings.overlap_secs)
    }

    /// Begins the window again with a shorter length. After too many restarts, skips the window or
    /// ends the harvest. A window that is a gap already stays a gap.
    pub(super) fn restart(&mut self, failure: Failure) {
        self.tries = 0;
        let Some(mut run) = self.checkpoint.run.take() else { return self.fail(failure) };
        let mut is_last = false;
        let goes_on = if run.retries != 0 {
            // A gap cannot be made shorter.
            run.retries -= 1;
            is_last = !self.open_gap(&mut run);
            true
        } else if run.restarts < RESTARTS_MAX {
            return self.begin_shorter(run, failure.to_string());
        } else {
            self.skip_window(&mut run)
        };
        if !goes_on {
            self.checkpoint.run = Some(run);
            return self.fail(failure);
        }
        self.gap_failure = Some(failure);
        if is_last {
            self.finish(run);
        } else {
            self.checkpoint.run = Some(run);
        }
        let records = std::mem::take(&mut self.whole);
        records.iter().for_each(|it| self.count(it));
        self.hand_out(records, is_last);
    }

    pub(super) fn begin_shorter(&mut self, mut run: Run, why: String) {
        run.restarts += 1;
        run.shrink(self.settings.overlap_secs);
        self.report.warn(Warning::Restarted(why));
        self.checkpoint.run = Some(run);
        self.seen.begin(None);
    }

    /// Handles a protocol error instead of a part.
    pub(super) fn faults(&mut self, faults: Vec<Fault>, date: Option<i64>) {
        let main = faults.iter().position(|it| it.code != Code::NoRecordsMatch).unwrap_or(0);
        let Some(fault) = faults.into_iter().nth(main) else {
            return self.restart(super::no_reason());
        };
        let Some(run) = &mut self.checkpoint.run else { return };
        let has_token = run.token.is_some();
        match fault.code {
            Code::NoRecordsMatch if !has_token => self.page(Page::of(Vec::new()), date),
            // The list's size shows whether records are missing.
            Code::NoRecordsMatch => {
                self.report.warn(Warning::EndedByError);
                self.page(Page::of(Vec::new()), date);
            }
            _ if has_token => self.restart(Failure::TokenRefused(fault.to_string())),
            Code::BadArgument if run.takes_days(self.settings.overlap_secs) => {
                self.report.warn(Warning::DaysOnly);
            }
            Code::BadArgument if run.window.1.is_some() && run.restarts < RESTARTS_MAX => {
                // The repository may not accept `until`.
                run.restarts += 1;
                (run.size_secs, run.window.1) = (0, None);
                self.report.warn(Warning::Restarted(fault.to_string()));
            }
            Code::CannotDisseminateFormat => {
                // The next harvest asks for the formats again.
                self.checkpoint.forget_progress();
                self.fail(Failure::Refused(fault));
            }
            _ if self.is_at_gap() => self.restart(Failure::Refused(fault)),
            _ => self.fail(Failure::Refused(fault)),
        }
    }

    /// Checks that the records are within the requested dates. If more than half of those that came
    /// are later, all remaining windows are merged into one.
    fn check_dates(&mut self, run: &mut Run, items: &[Record]) {
        let stamps = || items.iter().filter_map(|it| it.header.datestamp);
        let behind = stamps().filter(|it| run.is_after(*it)).count();
        if behind != 0 || stamps().any(|it| run.is_before(it)) {
            self.report.warn(Warning::OutsideWindow);
        }
        if items.len() < 2 * behind {
            run.size_secs = 0;
        }
    }

    /// Checks that later parts of a list are still restricted to the set. If not, records of other
    /// sets are dropped from then on.
    fn check_set(&mut self, run: &mut Run, items: &[Record], is_first: bool) {
        let all = items.iter().all(|it| self.is_of_set(run, it));
        if is_first {
            run.of_set = all;
        } else if run.of_set && !all {
            run.set_lost = true;
            let set = self.set_of(run).cloned().unwrap_or_default();
            self.report.warn(Warning::SetLost(set));
        }
    }

    /// Returns whether a record is in the present set, or names no set.
    fn is_of_set(&self, run: &Run, record: &Record) -> bool {
        let Some(set) = self.set_of(run) else { return true };
        let sets = &record.header.sets;
        sets.is_empty() || sets.iter().any(|it| is_within(it, set))
    }
}

impl Gap {
    fn describe(&self, granularity: Granularity) -> String {
        let at = |secs| Datestamp::at(secs, granularity);
        match self.from {
            Some(from) => format!("{} to {}", at(from), at(self.until)),
            None => format!("the beginning to {}", at(self.until)),
        }
    }
}

impl Run {
    /// Changes the dates of the window from seconds to days. Returns false if they are in days
    /// already, or the window has no dates.
    fn takes_days(&mut self, overlap_secs: i64) -> bool {
        let asks = self.window.0.is_some() || self.window.1.is_some();
        if !asks || self.granularity != Granularity::Second {
            return false;
        }
        self.granularity = Granularity::Day;
        self.open(self.window.0, overlap_secs);
        true
    }
}

fn content_sum(record: &Record) -> u64 {
    let header = &record.header;
    let stamp = header.datestamp.map(|it| it.to_string()).unwrap_or_default();
    let mut text = format!("{stamp}\n{}\n", header.deleted);
    for xml in record.metadata.iter().chain(&record.about) {
        text.push_str(&xml.0);
        text.push('\n');
    }
    short_sum(text.as_bytes())
}
