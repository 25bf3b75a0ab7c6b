//! Pauses before another attempt at a request.
//!
//! Source: OAI-PMH §3.1.2.2 (503 and Retry-After), RFC 9110 §10.2.3 (seconds or a date), §5.6.7.
//!
//! # Differences from the standard
//!
//! * A date in one of the two obsolete forms of RFC 9110 is ignored.

use jiff::fmt::rfc2822::DateTimeParser;

/// Maximum number of attempts at one request.
pub const TRIES_MAX: u32 = 5;

/// Pause after the first failed attempt, in milliseconds; it doubles with each further one.
const FIRST_MS: u64 = 1_000;

/// Longest pause of our own, in milliseconds.
const LAST_MS: u64 = 60_000;

/// Returns the pause before attempt number `tries` + 1, in milliseconds.
pub(super) fn backoff_ms(tries: u32) -> u64 {
    let doublings = tries.saturating_sub(1).min(16);
    (FIRST_MS << doublings).min(LAST_MS)
}

/// Reads a `Retry-After` as seconds from `now_secs` on, or from the `Date` of the same response,
/// which has the same clock. `None` if it is neither a number nor a date.
pub fn retry_after_secs(value: &str, date: Option<&str>, now_secs: i64) -> Option<u64> {
    let value = value.trim();
    if value.bytes().all(|it| it.is_ascii_digit()) && !value.is_empty() {
        // A number that overflows means a very long time.
        return Some(value.parse().unwrap_or(u64::MAX));
    }
    let read = |text: &str| DateTimeParser::new().parse_timestamp(text.trim()).ok();
    let until = read(value)?.as_second();
    let since = date.and_then(read).map_or(now_secs, |it| it.as_second());
    Some(u64::try_from(until - since).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, date: Option<&str>, expected: Option<u64>) {
        // Sun, 06 Nov 1994 08:49:37 GMT: `date -u -d ... +%s`.
        assert_eq!(retry_after_secs(value, date, 784_111_777), expected, "{value}");
    }

    #[test]
    fn both_forms_are_read() {
        check("120", None, Some(120));
        check(" 0 ", None, Some(0));
        check("99999999999999999999999", None, Some(u64::MAX));
        check("Sun, 06 Nov 1994 08:50:37 GMT", None, Some(60));
        check("Sun, 06 Nov 1994 08:00:00 GMT", None, Some(0));
        // If the clock of a server is an hour ahead, its date means a time by that clock.
        let date = "Sun, 06 Nov 1994 09:49:37 GMT";
        check("Sun, 06 Nov 1994 09:50:37 GMT", Some(date), Some(60));
        check("Sun, 06 Nov 1994 08:50:37 GMT", Some("nonsense"), Some(60));
    }

    #[test]
    fn other_text_is_none() {
        for value in ["", "soon", "-1", "1.5", "1994-11-06", "Sun, 32 Nov 1994 08:50:37 GMT"] {
            check(value, None, None);
        }
    }

    #[test]
    fn pauses_grow_up_to_the_last() {
        let pauses: Vec<u64> = (1..=8).map(backoff_ms).collect();
        assert_eq!(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(backoff_ms(u32::MAX), LAST_MS);
    }
}
