//! Back-off: the waits of a source after failures.
//!
//! Waits double, with jitter, for each source alone. A source that was ever reached waits at least
//! its shortest interval (or an hour, if that interval is longer): a source to be pulled once an
//! hour must not be pulled each second because its answers fail. A source that was never reached is
//! tried sooner at first, since it was just added and somebody waits for it; but its tries become
//! rarer just as quickly.
//!
//! A followed source that answered a moment ago is tried again at once, and every few seconds for
//! minutes. Most likely it was restarted, and its changes should arrive as they come. The longer it
//! is away, the more rarely it is tried.
//!
//! Sans-I/O.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{SourceId, millis, seconds};

/// First wait after a failure, milliseconds; each further failure doubles it.
const BACK_OFF_MIN_MS: u64 = 1_000;

/// Longest wait after a failure, milliseconds, unless the source itself asks for longer.
pub(super) const BACK_OFF_MAX_MS: u64 = 3_600_000;

/// First wait after a failure of a followed source, milliseconds; each further failure doubles it.
const FOLLOW_MIN_MS: u64 = 200;

/// Longest wait after a failure of a followed source that was there a moment ago, milliseconds.
pub(super) const FOLLOW_MAX_MS: u64 = 5_000;

/// A followed source that has been away for a time waits at most this fraction (1 / 24) of that
/// time, or [`FOLLOW_MAX_MS`] if that is longer.
const AWAY_SHARE: u64 = 24;

/// Maximum requested wait that may be shortened for a followed source, milliseconds: a source that
/// is starting, or repairs a part, asks for a minute. Longer waits are respected.
const FOLLOW_ASKED_MAX_MS: u64 = 120_000;

/// Maximum share by which a wait is lengthened, so that many sources behind one broken link do not
/// return in step.
const JITTER_SHARE: f64 = 0.25;

/// Returns the wait after the `failures`-th failure in a row, milliseconds: at least `least_ms`, or
/// the longest wait if that is shorter; with jitter.
pub(super) fn wait_ms(id: SourceId, failures: u32, least_ms: u64, now_ms: u64) -> u64 {
    let base = doubled(BACK_OFF_MIN_MS, failures).max(least_ms).min(BACK_OFF_MAX_MS);
    jittered(base, id, failures, now_ms)
}

/// Returns the wait after the `failures`-th failure in a row of a followed source that last
/// succeeded `away_ms` ago, milliseconds. `asked_ms` is the wait that the source asks for.
pub(super) fn follow_ms(
    id: SourceId,
    failures: u32,
    away_ms: u64,
    asked_ms: u64,
    now_ms: u64,
) -> u64 {
    let most_ms = (away_ms / AWAY_SHARE).clamp(FOLLOW_MAX_MS, BACK_OFF_MAX_MS);
    let base = doubled(FOLLOW_MIN_MS, failures).min(most_ms);
    let own = jittered(base, id, failures, now_ms);
    own.max(if asked_ms <= FOLLOW_ASKED_MAX_MS { asked_ms.min(most_ms) } else { asked_ms })
}

fn doubled(first_ms: u64, failures: u32) -> u64 {
    first_ms.saturating_mul(1 << failures.saturating_sub(1).min(32))
}

fn jittered(base: u64, id: SourceId, failures: u32, now_ms: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (id, failures, now_ms).hash(&mut hasher);
    let draw = (hasher.finish() >> 32) as f64 / f64::from(u32::MAX);
    base + millis(seconds(base) * JITTER_SHARE * draw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(failures: u32, away_ms: u64, asked_ms: u64, expected_ms: u64) {
        let id = SourceId(1);
        let wait_ms = follow_ms(id, failures, away_ms, asked_ms, 7);
        assert!((expected_ms..=expected_ms * 5 / 4).contains(&wait_ms), "{failures}: {wait_ms}");
    }

    #[test]
    fn a_followed_source_that_just_left_is_tried_again_soon() {
        for (failures, expected_ms) in
            [(1, 200), (2, 400), (3, 800), (5, 3_200), (6, 5_000), (99, 5_000)]
        {
            check(failures, 60_000, 0, expected_ms);
        }
        check(99, 3_600_000, 0, 150_000);
        check(99, 100 * 86_400_000, 0, BACK_OFF_MAX_MS);
        // A wait of a minute is shortened; a long one is kept.
        check(1, 1_000, 60_000, 5_000);
        check(1, 1_000, 3_600_000, 3_600_000);
    }
}
