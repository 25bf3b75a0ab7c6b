//! The clock: the only place that reads the time.
//!
//! Modules that decide take `now` as an argument; the shells around them read it here. A clock set
//! before 1970 counts as 1970.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Returns the wall clock, in milliseconds since 1970 (UTC). It may jump, forward or back.
#[expect(clippy::disallowed_methods, reason = "this is the one wall clock")]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the monotonic clock: for durations and deadlines; it never goes back.
#[expect(clippy::disallowed_methods, reason = "this is the one monotonic clock")]
pub fn monotonic() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_is_in_milliseconds_of_this_century() {
        // 2020-01-01 and 2100-01-01.
        assert!((1_577_836_800_000..4_102_444_800_000).contains(&now_ms()));
    }

    #[test]
    fn the_monotonic_clock_does_not_go_back() {
        let first = monotonic();
        assert!(first <= monotonic());
    }
}
