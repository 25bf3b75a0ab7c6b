//! Numbers, dates and ranges in queries, such as `10k` and `2024-03`.
//!
//! Sans-I/O.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use super::{Bound, Kind, Value};

/// Reads a whole number. A unit `k`, `M`, `G` or `T` (any case; `B` or `iB` may follow) multiplies
/// it by a power of 1024.
pub(crate) fn number(text: &str) -> Option<i64> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'-').count();
    let (digits, unit) = text.split_at_checked(digits)?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(1 << shift)
}

/// Reads `2024`, `2024-03`, `2024-03-09`, `2024-03-09T12:30:00` (UTC), or Unix seconds of more than
/// four digits. Returns the period's first and last second, in Unix seconds.
pub(crate) fn period(text: &str) -> Option<(i64, i64)> {
    if 4 < text.len() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let second = text.parse().ok()?;
        return Some((second, second));
    }
    if text.contains('T') {
        let second = seconds(text.trim_end_matches(['Z', 'z']).parse().ok()?)?;
        return Some((second, second));
    }
    let mut parts = text.splitn(3, '-');
    let year: i16 = parts.next().filter(|it| it.len() == 4)?.parse().ok()?;
    let month: Option<i8> = parts.next().map(str::parse).transpose().ok()?;
    let day: Option<i8> = parts.next().map(str::parse).transpose().ok()?;
    let first = Date::new(year, month.unwrap_or(1), day.unwrap_or(1)).ok()?;
    let last = match (month, day) {
        (_, Some(_)) => first,
        (Some(_), None) => first.last_of_month(),
        (None, None) => first.last_of_year(),
    };
    Some((seconds(first.at(0, 0, 0, 0))?, seconds(last.at(23, 59, 59, 0))?))
}

/// Returns the first and the last number that `value` covers in an attribute of this kind; `None`
/// if it covers none. Without a kind, text that is no number is read as a date.
pub fn span(value: &Value, kind: Option<Kind>) -> Option<(i64, i64)> {
    let as_number = |text: &str| number(text).map(|it| (it, it));
    let reads = |text: &str| match kind {
        Some(Kind::Number) => as_number(text),
        Some(Kind::Date) => period(text),
        None => as_number(text).or_else(|| period(text)),
        Some(Kind::Text) => None,
    };
    let (low, high) = match value {
        Value::Word(text) | Value::Phrase(text) => reads(text)?,
        Value::Range(low, high) => {
            let low = match low {
                Bound::Open => i64::MIN,
                Bound::Inclusive(text) => reads(text)?.0,
                Bound::Exclusive(text) => reads(text)?.1.checked_add(1)?,
            };
            let high = match high {
                Bound::Open => i64::MAX,
                Bound::Inclusive(text) => reads(text)?.1,
                Bound::Exclusive(text) => reads(text)?.0.checked_sub(1)?,
            };
            (low, high)
        }
        Value::Present => (i64::MIN, i64::MAX),
        Value::Prefix(_) | Value::Fuzzy(..) | Value::Regex(_) => return None,
    };
    (low <= high).then_some((low, high))
}

fn seconds(moment: DateTime) -> Option<i64> {
    Some(moment.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}
