//! Formatting of numbers, durations and times for people.
//!
//! Sans-I/O.

use jiff::Timestamp;
use web::templates::grouped;

/// No-break space.
const SPACE: char = '\u{a0}';

/// Renders a share as a percentage: `89.3 %`, `99.95 %`.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    let decimals = if 99.0 < value && value < 100.0 { 2 } else { 1 };
    format!("{}{SPACE}%", trimmed(value, decimals))
}

/// Renders a number with about three significant digits and groups of thousands: `1,234`, `56.7`,
/// `0.04`.
pub(super) fn number(value: f64) -> String {
    match value {
        _ if value.is_nan() => "unknown".to_owned(),
        _ if 1e15 <= value.abs() => format!("{value:.2e}"),
        // The cast turns a float into the nearest integer that fits.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded")]
        _ if 1_000.0 <= value => grouped(value.round() as u64),
        _ if 0.0 < value && value < 0.001 => format!("less than{SPACE}0.001"),
        _ => trimmed(
            value,
            if 100.0 <= value {
                0
            } else if 10.0 <= value {
                1
            } else {
                2 + usize::from(value < 1.0)
            },
        ),
    }
}

/// Renders a duration in the largest unit that is not longer than the duration: `12.5 min`; an
/// infinite duration is `never`.
pub(super) fn span(secs: f64) -> String {
    if secs == f64::INFINITY {
        return "never".to_owned();
    }
    let (value, unit) = match secs {
        _ if 86_400.0 <= secs => (secs / 86_400.0, "days"),
        _ if 3_600.0 <= secs => (secs / 3_600.0, "h"),
        _ if 60.0 <= secs => (secs / 60.0, "min"),
        _ if 1.0 <= secs || secs <= 0.0 => (secs.max(0.0), "s"),
        _ => (secs * 1_000.0, "ms"),
    };
    let written = number(value);
    let unit = if unit == "days" && written == "1" { "day" } else { unit };
    format!("{written}{SPACE}{unit}")
}

/// Renders the change of a duration as a factor: `× 0.5`.
pub(super) fn factor(now: f64, then: f64) -> String {
    if now.is_finite() && then.is_finite() && 0.0 < now {
        format!("×{SPACE}{}", number(then / now))
    } else {
        "–".to_owned()
    }
}

/// Renders a moment relative to now: `in 5 min`, `2 h ago`.
pub(super) fn moment(at_ms: u64, now_ms: u64) -> String {
    let secs = at_ms.abs_diff(now_ms) as f64 / 1_000.0;
    match at_ms {
        _ if secs < 1.0 => "now".to_owned(),
        _ if now_ms < at_ms => format!("in{SPACE}{}", span(secs.round())),
        _ => format!("{}{SPACE}ago", span(secs.round())),
    }
}

/// Renders a moment for machines, RFC 3339; `None` if it is out of range.
pub(super) fn instant(at_ms: u64) -> Option<String> {
    let at = Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()?;
    Some(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0') } else { &text };
    let text = text.trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: &str, expected: &str) {
        assert_eq!(found.replace(SPACE, " "), expected);
    }

    #[test]
    fn shares() {
        check(&percent(0.893), "89.3 %");
        check(&percent(0.9), "90 %");
        check(&percent(0.9995), "99.95 %");
        check(&percent(1.0), "100 %");
        check(&percent(-0.0), "0 %");
    }

    #[test]
    fn numbers() {
        for (value, expected) in [
            (0.0, "0"),
            (0.0004, "less than 0.001"),
            (0.042, "0.042"),
            (0.5, "0.5"),
            (1.0, "1"),
            (1.234, "1.23"),
            (56.78, "56.8"),
            (456.7, "457"),
            (100.0, "100"),
            (1_234.4, "1,234"),
            (1e12, "1,000,000,000,000"),
            (1e300, "1.00e300"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "unknown"),
        ] {
            check(&number(value), expected);
        }
    }

    #[test]
    fn times() {
        check(&span(0.25), "250 ms");
        check(&span(0.0), "0 s");
        check(&span(45.24), "45.2 s");
        check(&span(750.0), "12.5 min");
        check(&span(7_200.0), "2 h");
        check(&span(86_400.0), "1 day");
        check(&span(561_600.0), "6.5 days");
        check(&span(f64::INFINITY), "never");
        check(&moment(1_000_000, 1_000_300), "now");
        check(&moment(1_300_000, 1_000_000), "in 5 min");
        check(&moment(0, 7_200_000), "2 h ago");
        check(&instant(1_700_000_000_000).unwrap(), "2023-11-14T22:13:20Z");
        assert_eq!(instant(u64::MAX), None);
        check(&factor(2.0, 1.0), "× 0.5");
        check(&factor(2.0, f64::INFINITY), "–");
    }
}
