//! Politeness: how long a host is left alone between two requests.
//!
//! Source: RFC 6585 §4 (429). That a slow host is asked more seldom is from Heydon and Najork,
//! "Mercator" (1999), §3.3.
//!
//! Sans-I/O.

use super::{Failure, Settings};

/// Longest pause after failures, in milliseconds: an hour.
const BACK_OFF_MS_MAX: u64 = 60 * 60 * 1000;

/// Pause after a first failure, in milliseconds; each further one doubles it.
const BACK_OFF_MS: u64 = 2_000;

/// What requests have shown of a host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Mean time of an answer, in milliseconds; newer ones count more.
    took_ms: Option<u64>,
    /// Failures since the last success.
    pub(super) failures: u32,
}

impl Pace {
    /// Takes the time of an answer into account.
    pub(super) fn took(&mut self, took_ms: u64) {
        let took_ms = took_ms.min(BACK_OFF_MS_MAX);
        self.took_ms = Some(self.took_ms.map_or(took_ms, |it| (it * 3).midpoint(took_ms) / 2));
    }

    /// Returns the mean time of an answer, in milliseconds.
    pub(super) fn answer_ms(&self) -> Option<u64> {
        self.took_ms
    }

    /// Returns the delay between two requests, in milliseconds.
    pub(super) fn delay_ms(&self, settings: &Settings, is_near: bool, asked_ms: u64) -> u64 {
        if is_near {
            return asked_ms;
        }
        let factor = u64::from(settings.delay_factor);
        let adapted = self.took_ms.unwrap_or_default().saturating_mul(factor);
        settings.delay_ms.max(adapted.min(settings.delay_ms_max)).max(asked_ms)
    }

    /// Returns the pause after the failures, in milliseconds.
    pub(super) fn back_off_ms(&self) -> u64 {
        let doublings = self.failures.saturating_sub(1).min(20);
        (BACK_OFF_MS << doublings).min(BACK_OFF_MS_MAX)
    }
}

/// Whom a failure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failing {
    /// The object: asking again is of no use.
    Object,
    /// The object, but it may pass.
    ForNow,
    /// The host: it is to be left alone.
    Host,
}

impl Failing {
    pub(super) fn new(failure: Failure) -> Self {
        match failure {
            Failure::Unreachable | Failure::Status(429 | 503) => Self::Host,
            Failure::Status(408 | 425 | 500..) => Self::ForNow,
            Failure::Status(_) | Failure::SoftMissing | Failure::Login | Failure::Unreadable => {
                Self::Object
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_host_is_asked_more_seldom() {
        let settings = Settings { delay_factor: 5, delay_ms_max: 30_000, ..Settings::default() };
        let mut pace = Pace::default();
        assert_eq!(pace.delay_ms(&settings, false, 0), 1_000);
        pace.took(100);
        assert_eq!(pace.delay_ms(&settings, false, 0), 1_000);
        pace.took(4_100);
        assert_eq!(pace.delay_ms(&settings, false, 0), 5 * 1_100);
        assert_eq!(pace.delay_ms(&settings, false, 60_000), 60_000, "Crawl-delay");
        assert_eq!(pace.delay_ms(&settings, true, 0), 0, "loopback");
        assert_eq!(pace.delay_ms(&settings, true, 500), 500);
        for _ in 0..50 {
            pace.took(1 << 40);
        }
        assert_eq!(pace.delay_ms(&settings, false, 0), 30_000);
    }

    #[test]
    fn failures_double_the_pause() {
        let pauses =
            [1, 2, 3, 30].map(|failures| Pace { failures, ..Pace::default() }.back_off_ms());
        assert_eq!(pauses, [2_000, 4_000, 8_000, BACK_OFF_MS_MAX]);
    }
}
