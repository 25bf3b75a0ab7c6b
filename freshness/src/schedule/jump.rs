//! Jumps of the wall clock: the times in the schedule move with it.
//!
//! Otherwise a jump of a day forward would make every source due at once and its estimated rate
//! much too low, and after a jump of a day back nothing would be pulled for a day.
//!
//! Sans-I/O.

use super::Schedule;

impl Schedule {
    /// Handles a jump of the wall clock by `by_ms` to `now_ms`. A pull that is under way says
    /// nothing about rates.
    pub fn handle_jump(&mut self, by_ms: i64, now_ms: u64) {
        let moved = |at: u64| at.saturating_add_signed(by_ms);
        for entry in self.entries.iter_mut().flatten() {
            entry.handle_jump(moved);
        }
        self.cap.handle_jump(moved);
        self.seen_ms = now_ms;
        self.handle_past(now_ms);
    }

    /// Handles a clock that was set back to `now_ms`: later times become `now_ms`.
    pub(super) fn handle_past(&mut self, now_ms: u64) {
        for entry in self.entries.iter_mut().flatten() {
            entry.handle_past(now_ms);
        }
        self.cap.handle_past(now_ms);
        self.enqueue_all(now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::tests::{BOUNDS, settings};
    use crate::schedule::{PullReport, Rules, SourceId, SourceNote};

    const MINUTE_MS: u64 = 60_000;
    const DAY_MS: u64 = 86_400_000;
    const START_MS: u64 = 20_000 * DAY_MS;

    /// Pulls a source once a minute, `times` times; the source changes once a second. Returns the
    /// end of this time.
    fn pull(schedule: &mut Schedule, id: SourceId, from_ms: u64, times: u64) -> u64 {
        for minute in 1..=times {
            let now_ms = from_ms + minute * MINUTE_MS;
            schedule.handle_request(id, now_ms);
            schedule.poll_due(true, now_ms).unwrap();
            report(schedule, id, now_ms, now_ms + 20);
        }
        from_ms + times * MINUTE_MS
    }

    fn report(schedule: &mut Schedule, id: SourceId, as_of_ms: u64, now_ms: u64) {
        let found = PullReport {
            full: schedule.view(id).unwrap().elements.is_none(),
            first_changes: None,
            changes: 60,
            age_secs: 30.0,
            elements: 1000,
            as_of_ms,
            early: false,
        };
        schedule.handle_pull(id, found, now_ms);
    }

    fn check(by_ms: i64, pulling: bool) {
        let mut schedule = Schedule::new(settings());
        let id = schedule.add([(Rules::new(BOUNDS), SourceNote::default())], START_MS)[0];
        let mut now_ms = pull(&mut schedule, id, START_MS, 30);
        let before = schedule.view(id).unwrap();
        let asked_ms = now_ms + MINUTE_MS;
        if pulling {
            schedule.handle_request(id, asked_ms);
            schedule.poll_due(true, asked_ms).unwrap();
        }
        now_ms = now_ms.saturating_add_signed(by_ms);
        schedule.handle_jump(by_ms, now_ms);
        if pulling {
            now_ms = asked_ms.saturating_add_signed(by_ms);
            report(&mut schedule, id, asked_ms, now_ms + 20);
        } else {
            let after = schedule.view(id).unwrap();
            assert_eq!(after.interval_secs, before.interval_secs);
            assert_eq!(after.due_ms, before.due_ms.map(|it| it.saturating_add_signed(by_ms)));
        }
        pull(&mut schedule, id, now_ms, 3);
        let after = schedule.view(id).unwrap().interval_secs.unwrap();
        let ratio = after / before.interval_secs.unwrap();
        assert!((0.5..=2.0).contains(&ratio), "{by_ms} ms, {pulling}: {ratio}");
    }

    #[test]
    fn intervals_are_as_before_after_a_day_forward_or_back() {
        for by_ms in [DAY_MS.cast_signed(), -DAY_MS.cast_signed()] {
            check(by_ms, false);
            check(by_ms, true);
        }
    }
}
