//! How long a source that failed is left alone.
//!
//! Doubling, with jitter, each source for itself. A source that was ever reached is left alone for its
//! shortest interval at least (for an hour, if that is longer): who is to be asked once an hour is not
//! to be asked each second because the answer fails. One that was never reached is tried sooner at first:
//! it has just been added, somebody waits for it, and the tries grow rare as quickly.
//!
//! Sans-I/O.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{SourceId, millis, seconds};

/// First wait after a failure, milliseconds; doubled with every further one.
const BACK_OFF_MIN_MS: u64 = 1_000;

/// Longest wait after a failure, milliseconds, unless the source itself asks for longer.
pub(super) const BACK_OFF_MAX_MS: u64 = 3_600_000;

/// Share by which a wait is lengthened at most, so that many sources behind one broken link do
/// not come back in step.
const JITTER_SHARE: f64 = 0.25;

/// Returns the wait after the `failures`-th failure in a row, milliseconds, of at least `least_ms`, as far
/// as that is no longer than the longest; jitter included.
pub(super) fn wait_ms(id: SourceId, failures: u32, least_ms: u64, now_ms: u64) -> u64 {
    let doublings = failures.saturating_sub(1).min(32);
    let base = BACK_OFF_MIN_MS.saturating_mul(1 << doublings).max(least_ms).min(BACK_OFF_MAX_MS);
    let mut hasher = DefaultHasher::new();
    (id, failures, now_ms).hash(&mut hasher);
    let draw = (hasher.finish() >> 32) as f64 / f64::from(u32::MAX);
    base + millis(seconds(base) * JITTER_SHARE * draw)
}
