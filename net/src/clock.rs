//! The clock: the only place that reads the time.
//!
//! Modules that make decisions take `now` as an argument; the shells around them read it here. A
//! clock set before 1970 counts as 1970.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Smallest jump of the wall clock relative to the monotonic clock that counts as a setting of the
/// clock, in milliseconds. A synchronized clock drifts less than this.
const JUMP_MS_MIN: u64 = 5_000;

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

/// Returns the processor time that this thread has used. It stands still while the thread waits, so
/// that it measures the work of one task however busy the machine is.
pub fn thread_cpu() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let secs = u64::try_from(used.tv_sec).unwrap_or_default();
    Duration::new(secs, u32::try_from(used.tv_nsec).unwrap_or_default())
}

/// Detects that the wall clock was set.
#[derive(Clone, Copy, Debug)]
pub struct JumpDetector {
    wall_ms: u64,
    at: Instant,
}

impl JumpDetector {
    /// Starts at the present time.
    #[must_use]
    pub fn start() -> Self {
        Self { wall_ms: now_ms(), at: monotonic() }
    }

    /// Returns by how many milliseconds the wall clock was set since the last call, forward or back
    /// (negative); `None` if by 5 s or less. A sleep of the machine looks like a forward setting.
    pub fn jump_ms(&mut self) -> Option<i64> {
        let before = std::mem::replace(self, Self::start());
        jump(before.wall_ms, self.wall_ms, self.at.saturating_duration_since(before.at))
    }
}

/// Returns how far the wall clock went from one time to another, beyond the time that passed.
fn jump(before_ms: u64, now_ms: u64, passed: Duration) -> Option<i64> {
    let passed_ms = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
    let jump = now_ms.wrapping_sub(before_ms).cast_signed().saturating_sub(passed_ms);
    (JUMP_MS_MIN < jump.unsigned_abs()).then_some(jump)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before_ms: u64, now_ms: u64, passed_ms: u64, expected: Option<i64>) {
        assert_eq!(jump(before_ms, now_ms, Duration::from_millis(passed_ms)), expected);
    }

    #[test]
    fn a_set_clock_is_distinguished_from_a_running_one() {
        check(1_000_000, 1_060_000, 60_000, None);
        check(1_000_000, 1_064_000, 60_000, None);
        check(1_000_000, 87_460_000, 60_000, Some(86_400_000));
        check(100_000_000, 13_660_000, 60_000, Some(-86_400_000));
        assert_eq!(JumpDetector::start().jump_ms(), None);
    }

    #[test]
    fn the_wall_clock_counts_milliseconds() {
        // 2020-01-01 and 2100-01-01.
        assert!((1_577_836_800_000..4_102_444_800_000).contains(&now_ms()));
    }

    #[test]
    fn the_monotonic_clock_does_not_go_back() {
        let first = monotonic();
        assert!(first <= monotonic());
    }
}
