//! Daily window of hours in which a source may be pulled.
//!
//! Sans-I/O.

use std::num::NonZeroU8;

const HOUR_MS: u64 = 3_600_000;

const DAY_HOURS: u64 = 24;

/// A daily stretch of whole hours (UTC), from `start` up to but not including `end`; it may run
/// over midnight. Written `22-6` in settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    start: u8,
    end: NonZeroU8,
}

impl Window {
    /// Reads `START-END`: START from 0 to 23, END from 1 to 24, not equal; `None` for any other
    /// text.
    pub fn parse(text: &str) -> Option<Self> {
        let (start, end) = text.split_once('-')?;
        let (start, end): (u8, NonZeroU8) = (start.trim().parse().ok()?, end.trim().parse().ok()?);
        (start < 24 && end.get() <= 24 && start != end.get()).then_some(Self { start, end })
    }

    /// Returns the earliest time not before `at_ms` (Unix milliseconds) that lies in the window;
    /// saturates at the end of time.
    pub fn admit(self, at_ms: u64) -> u64 {
        if self.contains(at_ms) {
            return at_ms;
        }
        let hours = at_ms / HOUR_MS;
        let ahead = (u64::from(self.start) + DAY_HOURS - hours % DAY_HOURS) % DAY_HOURS;
        (hours + ahead).saturating_mul(HOUR_MS)
    }

    fn contains(self, at_ms: u64) -> bool {
        let hour = at_ms / HOUR_MS % DAY_HOURS;
        let (start, end) = (u64::from(self.start), u64::from(self.end.get()));
        if start < end { start <= hour && hour < end } else { start <= hour || hour < end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Admits `hour:minute` of the second day and compares the result, as day+hour:minute.
    fn check(window: &str, hour: u64, minute: u64, expected: &str) {
        let at = (DAY_HOURS + hour) * HOUR_MS + minute * 60_000;
        let admitted = Window::parse(window).unwrap().admit(at);
        let hours = admitted / HOUR_MS;
        let minutes = admitted % HOUR_MS / 60_000;
        let seen = format!("{}+{}:{minutes:02}", hours / DAY_HOURS - 1, hours % DAY_HOURS);
        assert_eq!(seen, expected, "{window} at {hour}:{minute}");
    }

    #[test]
    fn a_window_admits_the_next_time_inside_it() {
        check("9-17", 12, 30, "0+12:30");
        check("9-17", 8, 59, "0+9:00");
        check("9-17", 17, 0, "1+9:00");
        check("22-6", 23, 10, "0+23:10");
        check("22-6", 5, 59, "0+5:59");
        check("22-6", 6, 0, "0+22:00");
        check("0-24", 3, 3, "0+3:03");
        check("22-24", 1, 0, "0+22:00");
    }

    #[test]
    fn text_that_is_no_window_is_refused() {
        for text in ["", "9", "9-9", "24-3", "9-25", "a-b", "-3-4", "3-0"] {
            assert_eq!(Window::parse(text), None, "{text}");
        }
    }
}
