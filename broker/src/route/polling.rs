//! Polling: how often a feed of peers is asked.
//!
//! Feeds hold back their answers until something changes. One that does not, or changes all the time, is asked less and
//! less, as is one that fails.
//!
//! Sans-I/O.

use std::time::Duration;

/// Pause after a failure: the first one, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Pause after an answer, so that changes in quick succession are taken together: the first one, and the longest, of a
/// feed that always answers at once.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));
/// An answer that takes less time than this was not held back.
const AT_ONCE: Duration = Duration::from_secs(1);

/// How a feed answers.
#[derive(Debug, Default)]
pub struct Polling {
    /// Number of failures in a row.
    failures: u32,
    /// Number of answers in a row that were not held back.
    at_once: u32,
}

impl Polling {
    /// Returns the pause after an answer, or after a failure, that took so long.
    pub fn after(&mut self, is_answer: bool, took: Duration) -> Duration {
        let pause = |(first, longest): (Duration, Duration), count: u32| {
            first.saturating_mul(2_u32.saturating_pow(count)).min(longest)
        };
        if is_answer {
            let at_once = if took < AT_ONCE { self.at_once } else { 0 };
            *self = Self { failures: 0, at_once: at_once.saturating_add(1) };
            pause(PAUSE, at_once)
        } else {
            self.failures = self.failures.saturating_add(1);
            pause(RETRY, self.failures - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_that_always_answers_at_once_is_asked_less() {
        let (mut polling, ms) = (Polling::default(), Duration::from_millis);
        let mut after = |is_answer, took| polling.after(is_answer, ms(took)).as_millis();
        let at_once: Vec<_> = (0..6).map(|_| after(true, 5)).collect();
        assert_eq!(at_once, [200, 400, 800, 1_600, 2_000, 2_000]);
        assert_eq!((after(true, 50_000), after(true, 5)), (200, 400));
        let failed: Vec<_> = (0..8).map(|_| after(false, 5)).collect();
        assert_eq!(failed, [1, 2, 4, 8, 16, 32, 60, 60].map(|it| it * 1_000));
        assert_eq!(after(true, 50_000), 200);
    }
}
