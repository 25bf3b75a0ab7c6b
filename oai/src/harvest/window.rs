//! Windows: the ranges of dates into which a harvest is divided.
//!
//! A window may end only at a time that the repository no longer gives to changes. Records that
//! change during the harvest move to a later window.

use crate::datestamp::{Datestamp, Granularity};

use super::checkpoint::{Gap, Run};

/// After a window with fewer records the next one is twice as long.
const RECORDS_FEW: u64 = 5_000;

/// After a window with more records the next one is half as long.
const RECORDS_MANY: u64 = 50_000;

/// Longest window with an end, in seconds (ten years).
const SIZE_SECS_MAX: i64 = 3_653 * 86_400;

/// Shortest window after one with many records, in seconds.
const SIZE_SECS_MIN: i64 = 86_400;

/// Divisor of the length of a window that is begun again.
const SHRINK: i64 = 8;

impl Run {
    /// Returns a run before its first window. The harvest begins at `from`; without `from`, the
    /// lengths of windows are counted from `earliest`. Both are Unix seconds.
    pub(super) fn new(
        granularity: Granularity,
        full: bool,
        (from, earliest): (Option<i64>, i64),
    ) -> Self {
        let window = (from, None);
        Self { full, granularity, earliest, from, window, ..Self::default() }
    }

    /// Returns the length of the shortest possible window, in seconds.
    fn unit(&self) -> i64 {
        match self.granularity {
            Granularity::Day => 86_400,
            Granularity::Second => 1,
        }
    }

    /// Returns the first second of the window that begins at `from`.
    fn base(&self, from: Option<i64>) -> i64 {
        Datestamp::at(from.unwrap_or(self.earliest), self.granularity).secs()
    }

    /// Opens the window that begins at `from`.
    pub(super) fn open(&mut self, from: Option<i64>, overlap_secs: i64) {
        let unit = self.unit();
        let length = (self.size_secs / unit * unit).max(unit);
        let mut last = self.base(from).saturating_add(length - unit);
        if let Some(until) = self.short.and_then(|it| it.until) {
            // End the window where the short window ends, so that the numbers of records can be
            // compared.
            last = last.min(until);
        }
        let settled = self.server_secs.map_or(i64::MIN, |it| it.saturating_sub(overlap_secs));
        let has_end = self.size_secs != 0 && last.saturating_add(unit - 1) < settled;
        let end = self.end();
        let last = if has_end { Some(end.map_or(last, |it| it.min(last))) } else { end };
        self.window = (from, last);
        self.begin_list();
    }

    /// Returns the last datestamp of the harvest, if it has an end.
    fn end(&self) -> Option<i64> {
        self.until.map(|it| Datestamp::at(it, self.granularity).secs())
    }

    /// Returns whether no window follows the present one.
    pub(super) fn is_last_window(&self) -> bool {
        self.window.1.is_none_or(|last| self.end().is_some_and(|end| end <= last))
    }

    /// Returns the window as a gap in seconds: a later harvest may have another granularity.
    pub(super) fn gap(&self, from: Option<i64>, until: i64) -> Gap {
        let from = from.map(|it| Datestamp::at(it, self.granularity).secs());
        Gap { set: self.set, from, until: until.saturating_add(self.unit() - 1) }
    }

    /// Goes back to the beginning of the window's list.
    pub(super) fn begin_list(&mut self) {
        self.token = None;
        (self.pages, self.distinct, self.list_live, self.unread) = (0, 0, 0, 0);
        (self.announced, self.window_reached) = (None, None);
        (self.mark, self.of_set, self.set_lost) = (0, false, false);
    }

    /// Opens the same window again, with a shorter length if possible.
    pub(super) fn shrink(&mut self, overlap_secs: i64) {
        let (from, until) = self.window;
        let unit = self.unit();
        let base = self.base(from);
        let end = until.map(|it| it.saturating_add(unit)).or(self.server_secs);
        let length = end.map_or(0, |it| it.saturating_sub(base));
        if unit < length {
            self.size_secs = (length / SHRINK).max(unit);
        }
        self.careful = true;
        self.open(from, overlap_secs);
    }

    /// Opens the window after a completed one; returns `false` if that was the last.
    pub(super) fn open_next(&mut self, overlap_secs: i64) -> bool {
        let (_, Some(until)) = self.window else { return false };
        if self.is_last_window() {
            return false;
        }
        // After a failure only windows with one part are known to be short enough.
        let is_safe = !self.careful || self.pages <= 1;
        if self.size_secs == 0 {
            // The next window has no limit.
        } else if self.distinct < RECORDS_FEW && is_safe {
            self.size_secs = self.size_secs.saturating_mul(2).min(SIZE_SECS_MAX);
        } else if RECORDS_MANY < self.distinct && SIZE_SECS_MIN < self.size_secs {
            self.size_secs = (self.size_secs / 2).max(SIZE_SECS_MIN);
        }
        self.open(Some(until.saturating_add(self.unit())), overlap_secs);
        true
    }

    /// Returns whether a datestamp lies after the window's end.
    pub(super) fn is_after(&self, stamp: Datestamp) -> bool {
        self.window.1.is_some_and(|it| it.saturating_add(self.unit() - 1) < stamp.secs())
    }

    /// Returns whether a datestamp lies before the window's beginning.
    pub(super) fn is_before(&self, stamp: Datestamp) -> bool {
        self.window.0.is_some_and(|it| stamp.last_secs() < it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn run(granularity: Granularity, size_secs: i64, server_secs: i64) -> Run {
        let mut run = Run::new(granularity, true, (None, 0));
        (run.size_secs, run.server_secs) = (size_secs, Some(server_secs));
        run.open(None, 0);
        run
    }

    fn windows(mut run: Run) -> Vec<(Option<i64>, Option<i64>)> {
        let mut all = vec![run.window];
        while run.open_next(0) {
            all.push(run.window);
            assert!(all.len() < 100);
        }
        all
    }

    #[test]
    fn windows_leave_no_gap_and_grow_while_they_bring_little() {
        let day = |it: i64| Some(it * DAY);
        let found = windows(run(Granularity::Day, 10 * DAY, 100 * DAY));
        let expected = [
            (None, day(9)),
            (day(10), day(29)),
            (day(30), day(69)),
            // Days 70 to 149 would include times that still get changes.
            (day(70), None),
        ];
        assert_eq!(found, expected);
        let found = windows(run(Granularity::Second, 10, 100));
        assert_eq!(found[..2], [(None, Some(9)), (Some(10), Some(29))]);
    }

    #[test]
    fn no_window_goes_beyond_the_end_of_the_harvest() {
        let until = |days: i64, size: i64| {
            let mut run = run(Granularity::Day, size * DAY, 100 * DAY);
            run.until = Some(days * DAY + 7);
            run.open(None, 0);
            windows(run)
        };
        let day = |it: i64| Some(it * DAY);
        assert_eq!(until(25, 10), [(None, day(9)), (day(10), day(25))]);
        assert_eq!(until(9, 10), [(None, day(9))]);
        assert_eq!(until(200, 0), [(None, day(200))]);
        // The end may be later than the present.
        assert_eq!(until(200, 60), [(None, day(59)), (day(60), day(200))]);
    }

    #[test]
    fn a_window_ends_only_before_times_that_still_get_changes() {
        let mut run = run(Granularity::Day, DAY, 3 * DAY);
        assert_eq!(run.window, (None, Some(0)));
        run.open(None, 2 * DAY);
        assert_eq!(run.window, (None, Some(0)));
        run.open(None, 2 * DAY + 1);
        assert_eq!(run.window, (None, None));
        run.server_secs = None;
        run.open(None, 0);
        assert_eq!(run.window, (None, None));
    }

    #[test]
    fn a_failing_window_shrinks_to_an_eighth_down_to_the_shortest() {
        let mut run = run(Granularity::Day, 0, 640 * DAY);
        assert_eq!(run.window, (None, None));
        run.shrink(0);
        assert_eq!(run.window, (None, Some(79 * DAY)));
        run.shrink(0);
        assert_eq!(run.window, (None, Some(9 * DAY)));
        run.shrink(0);
        assert_eq!(run.window, (None, Some(0)));
        run.shrink(0);
        assert_eq!(run.window, (None, Some(0)));
        // With care: after several parts the next window is not longer.
        run.pages = 2;
        assert!(run.open_next(0));
        assert_eq!(run.window, (Some(DAY), Some(DAY)));
        run.pages = 1;
        assert!(run.open_next(0));
        assert_eq!(run.window, (Some(2 * DAY), Some(3 * DAY)));
    }

    #[test]
    fn a_gap_is_whole_days_where_days_were_asked_for() {
        let days = run(Granularity::Day, DAY, 100 * DAY).gap(Some(DAY + 5), DAY);
        assert_eq!((days.from, days.until), (Some(DAY), 2 * DAY - 1));
        let seconds = run(Granularity::Second, DAY, 100 * DAY).gap(Some(5), 7);
        assert_eq!((seconds.from, seconds.until), (Some(5), 7));
    }

    #[test]
    fn a_shorter_window_follows_one_with_many_records() {
        let mut run = run(Granularity::Second, 10 * DAY, 100 * DAY);
        run.distinct = RECORDS_MANY + 1;
        assert!(run.open_next(0));
        assert_eq!(run.window, (Some(10 * DAY), Some(15 * DAY - 1)));
    }
}
