//! Numbers and dates in queries: which attributes are ordered, and what `10k` and `2024-03` mean.
//!
//! Sans-I/O.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// How the values of an attribute compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not at all: words.
    Text,
    /// As whole numbers: sizes, years.
    Number,
    /// As moments.
    Date,
}

/// A span of time: `2024-03` is a month. Unix seconds, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// First second.
    pub first: i64,
    /// Last second.
    pub last: i64,
}

/// Returns how `field` compares; a name in any case. `None` for one that is not ours, whose values
/// compare as numbers where they are numbers.
pub fn kind(field: &str) -> Option<Kind> {
    const KINDS: &[(&str, Kind)] = &[
        ("size", Kind::Number),
        ("file-size", Kind::Number),
        ("year", Kind::Number),
        ("modified", Kind::Date),
        ("last-modification-time", Kind::Date),
        ("updated", Kind::Date),
        ("update-time", Kind::Date),
        ("title", Kind::Text),
        ("description", Kind::Text),
        ("abstract", Kind::Text),
        ("keywords", Kind::Text),
        ("author", Kind::Text),
        ("body", Kind::Text),
        ("text", Kind::Text),
        ("partial-text", Kind::Text),
        ("full-text", Kind::Text),
        ("url", Kind::Text),
        ("type", Kind::Text),
        ("host", Kind::Text),
        ("gatherer", Kind::Text),
        ("md5", Kind::Text),
        ("oid", Kind::Text),
    ];
    KINDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(field)).map(|(_, kind)| *kind)
}

/// Reads a whole number; `k`, `M`, `G` and `T` (any case, `B` or `iB` after them allowed) multiply by 1024.
pub fn number(text: &str) -> Option<i64> {
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

/// Reads `2024`, `2024-03`, `2024-03-09`, `2024-03-09T12:30:00` (UTC) or more than four digits of Unix seconds.
pub fn period(text: &str) -> Option<Period> {
    if 4 < text.len() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let second = text.parse().ok()?;
        return Some(Period { first: second, last: second });
    }
    if text.contains('T') {
        let second = seconds(text.trim_end_matches(['Z', 'z']).parse().ok()?)?;
        return Some(Period { first: second, last: second });
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
    Some(Period {
        first: seconds(first.to_datetime(jiff::civil::Time::midnight()))?,
        last: seconds(last.at(23, 59, 59, 0))?,
    })
}

/// Unix seconds of a moment in UTC.
fn seconds(moment: DateTime) -> Option<i64> {
    Some(moment.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}
