//! Rate limits: a token bucket.
//!
//! Source: the leaky bucket as a meter (ITU-T I.371), kept as a level that fills with time.
//!
//! Sans-I/O.

use std::time::{Duration, Instant};

/// Lets through so many units a second on average, and so many at once.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    /// Most units at once; above 0.
    burst: f64,
    /// Units a second; above 0.
    rate: f64,
    /// Units at `at`; at most `burst`.
    level: f64,
    /// When `level` was computed.
    at: Instant,
}

impl TokenBucket {
    /// Returns a full bucket that lets through `rate` units a second (at least one in ten
    /// thousand seconds) and `burst` at once (at least one).
    pub fn new(rate: f64, burst: f64, now: Instant) -> Self {
        let burst = burst.max(1.0);
        Self { burst, rate: rate.max(1e-4), level: burst, at: now }
    }

    /// Takes `units` and lets them through, or says how long to wait before asking again. More
    /// than a whole bucket passes when the bucket is full, and the debt is worked off after it.
    ///
    /// # Errors
    ///
    /// Too early; nothing was taken. The caller waits that long, or answers 429 with it.
    pub fn handle_take(&mut self, units: f64, now: Instant) -> Result<(), Duration> {
        self.fill(now);
        let missing = units.min(self.burst) - self.level;
        if 0.0 < missing {
            // Rounded up, so that whoever waits that long is let through.
            return Err(Duration::from_secs_f64(missing / self.rate) + Duration::from_micros(1));
        }
        self.level -= units;
        Ok(())
    }

    /// Returns whether the bucket is full at `now`: nobody has used it for a while, and it can be
    /// forgotten.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.burst <= self.level
    }

    fn fill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level + elapsed * self.rate).min(self.burst);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::monotonic;

    #[test]
    fn lets_a_burst_through_and_then_the_rate() {
        let start = monotonic();
        let mut bucket = TokenBucket::new(2.0, 3.0, start);
        for _ in 0..3 {
            assert_eq!(bucket.handle_take(1.0, start), Ok(()));
        }
        let wait = bucket.handle_take(1.0, start).unwrap_err();
        assert!((wait.as_secs_f64() - 0.5).abs() < 1e-3, "{wait:?}");
        assert!(!bucket.is_full(start + wait));
        assert_eq!(bucket.handle_take(1.0, start + wait), Ok(()));
        assert!(bucket.is_full(start + Duration::from_secs(10)));
    }

    #[test]
    fn more_than_a_bucket_passes_once_and_is_worked_off() {
        let start = monotonic();
        let mut bucket = TokenBucket::new(1.0, 2.0, start);
        assert_eq!(bucket.handle_take(10.0, start), Ok(()));
        assert!(bucket.handle_take(1.0, start + Duration::from_secs(8)).is_err());
        assert_eq!(bucket.handle_take(1.0, start + Duration::from_secs(9)), Ok(()));
    }

    proptest! {
        #[test]
        fn never_lets_through_more_than_burst_and_rate_allow(
            rate in 0.1_f64..50.0, burst in 1.0_f64..20.0,
            gaps in prop::collection::vec(0_u64..500, 1..200),
        ) {
            let start = monotonic();
            let mut bucket = TokenBucket::new(rate, burst, start);
            let (mut now, mut passed) = (start, 0.0);
            for gap in gaps {
                now += Duration::from_millis(gap);
                if bucket.handle_take(1.0, now).is_ok() {
                    passed += 1.0;
                }
            }
            let allowed = burst + rate * (now - start).as_secs_f64();
            prop_assert!(passed <= allowed + 1e-6, "{} of {}", passed, allowed);
        }

        #[test]
        fn whoever_waits_as_told_is_let_through(
            rate in 0.1_f64..50.0, burst in 1.0_f64..20.0, takes in prop::collection::vec(0.1_f64..5.0, 1..50),
        ) {
            let mut now = monotonic();
            let mut bucket = TokenBucket::new(rate, burst, now);
            for units in takes {
                if let Err(wait) = bucket.handle_take(units, now) {
                    now += wait;
                    prop_assert_eq!(bucket.handle_take(units, now), Ok(()));
                }
            }
        }
    }
}
