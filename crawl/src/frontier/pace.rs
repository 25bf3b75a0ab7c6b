//! Politeness: how long a host is left alone between two requests.
//!
//! Source: RFC 9110 §10.2.3 (`Retry-After`), RFC 6585 §4 (429). That a slow host is asked more
//! seldom is from Heydon and Najork, "Mercator" (1999), §3.3.
//!
//! Sans-I/O.

use super::{Failure, Settings};
use crate::date;

/// Longest `Retry-After` that is obeyed, in milliseconds: a day.
pub const RETRY_AFTER_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// Longest pause after failures, in milliseconds: an hour.
const BACK_OFF_MS_MAX: u64 = 60 * 60 * 1000;

/// Pause after a first failure, in milliseconds; each further one doubles it.
const BACK_OFF_MS: u64 = 2_000;

/// Reads a `Retry-After` field: seconds, or an HTTP date. Returns the time from which on the host
/// may be asked again, at most [`RETRY_AFTER_MS_MAX`] from now. `None`: it is neither.
pub fn retry_at_ms(value: &str, now_ms: u64) -> Option<u64> {
    let value = value.trim();
    let is_number = !value.is_empty() && value.bytes().all(|it| it.is_ascii_digit());
    let at_ms = if is_number {
        // What does not fit is long, too.
        let secs = value.parse::<u64>().unwrap_or(u64::MAX);
        now_ms.saturating_add(secs.saturating_mul(1000))
    } else {
        date::http_ms(value)?
    };
    Some(at_ms.clamp(now_ms, now_ms.saturating_add(RETRY_AFTER_MS_MAX)))
}

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
            Failure::Status(_) | Failure::SoftMissing | Failure::Login => Self::Object,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        let now = 784_111_777_000;
        for (value, expected) in [
            ("0", Some(now)),
            (" 120 ", Some(now + 120_000)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(now + 60_000)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(now + 60_000)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(now)),
            ("Sat, 06 Nov 2094 08:49:37 GMT", Some(now + RETRY_AFTER_MS_MAX)),
            ("99999999999999999999999", Some(now + RETRY_AFTER_MS_MAX)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(retry_at_ms(value, now), expected, "{value:?}");
        }
    }

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
