//! Datestamps: UTC, as days or as seconds.
//!
//! Source: OAI-PMH §3.3 (UTCdatetime), ISO 8601.
//!
//! # Differences from the standard
//!
//! * [`Datestamp::lenient`] also reads other forms that repositories send: fractions of a second,
//!   offsets from UTC, a space instead of the `T`, no `Z`.

use std::fmt;

use jiff::Span;
use jiff::civil::{Date, date};

/// The first day of Unix time.
const EPOCH: Date = date(1970, 1, 1);

pub(crate) const DAY_SECS: i64 = 86_400;

/// First and last second of the years 1 to 9999.
const SECS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Granularity of a repository's datestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Granularity {
    /// `YYYY-MM-DD`
    #[default]
    Day,
    /// `YYYY-MM-DDThh:mm:ssZ`
    Second,
}

impl Granularity {
    /// Returns its name in an Identify response.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "YYYY-MM-DD",
            Self::Second => "YYYY-MM-DDThh:mm:ssZ",
        }
    }

    /// Returns the granularity with that name, which is trimmed first.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Day, Self::Second].into_iter().find(|it| it.name() == name.trim())
    }
}

/// A datestamp of the years 1 to 9999. Datestamps are ordered by their first second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Datestamp {
    secs: i64,
    granularity: Granularity,
}

impl Datestamp {
    /// Returns the datestamp that contains a time in Unix seconds. Times beyond the years 1 to 9999
    /// become the first or last datestamp of those years.
    pub fn at(secs: i64, granularity: Granularity) -> Self {
        let secs = secs.clamp(*SECS.start(), *SECS.end());
        let secs = match granularity {
            Granularity::Day => secs.div_euclid(DAY_SECS) * DAY_SECS,
            Granularity::Second => secs,
        };
        Self { secs, granularity }
    }

    /// Reads a datestamp in the protocol's form; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let granularity = if text.len() == 10 { Granularity::Day } else { Granularity::Second };
        let found = Self::lenient(text)?;
        (found.granularity == granularity && found.to_string() == text).then_some(found)
    }

    /// Reads a datestamp in any form that repositories send; `None` if it is not a date or time.
    pub fn lenient(text: &str) -> Option<Self> {
        let text = text.trim();
        let (date, rest) = text.split_at_checked(10)?;
        let days = days(date)?;
        if rest.is_empty() {
            return Some(Self::at(days * DAY_SECS, Granularity::Day));
        }
        let time = rest.strip_prefix(['T', 't', ' '])?;
        let (clock, offset_secs) = split_offset(time)?;
        let clock = clock.split_once('.').map_or(clock, |(whole, _fraction)| whole);
        let mut parts = clock.split(':').map(two_digits);
        let (hours, minutes) = (parts.next()??, parts.next()??);
        let secs = parts.next().unwrap_or(Some(0))?;
        // A leap second counts as the first second of the next minute.
        let fits = parts.next().is_none() && hours < 24 && minutes < 60 && secs <= 60;
        let of_day = hours * 3_600 + minutes * 60 + secs;
        let at = days * DAY_SECS + of_day - offset_secs;
        (fits && SECS.contains(&at)).then(|| Self::at(at, Granularity::Second))
    }

    /// Returns its first second, Unix time.
    pub fn secs(self) -> i64 {
        self.secs
    }

    /// Returns its last second, Unix time, which a bound `until` includes.
    pub fn last_secs(self) -> i64 {
        match self.granularity {
            Granularity::Day => self.secs + DAY_SECS - 1,
            Granularity::Second => self.secs,
        }
    }

    /// Returns its granularity.
    pub fn granularity(self) -> Granularity {
        self.granularity
    }
}

impl fmt::Display for Datestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = Span::new().days(self.secs.div_euclid(DAY_SECS));
        let date = EPOCH.checked_add(since).map_err(|_out_of_range| fmt::Error)?;
        write!(f, "{:04}-{:02}-{:02}", date.year(), date.month(), date.day())?;
        if self.granularity == Granularity::Second {
            let secs = self.secs.rem_euclid(DAY_SECS);
            write!(f, "T{:02}:{:02}:{:02}Z", secs / 3_600, secs / 60 % 60, secs % 60)?;
        }
        Ok(())
    }
}

/// Splits a time into the clock time and its offset from UTC in seconds, which is 0 if none is
/// given; returns `None` if the offset is invalid.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(sign) = time.rfind(['+', '-']) else { return Some((time, 0)) };
    let (clock, offset) = time.split_at(sign);
    let (sign, offset) = offset.split_at_checked(1)?;
    let (hours, minutes) = offset.split_at_checked(2)?;
    let minutes = minutes.strip_prefix(':').unwrap_or(minutes);
    let minutes = if minutes.is_empty() { 0 } else { two_digits(minutes)? };
    let secs = two_digits(hours)? * 3_600 + minutes * 60;
    (secs < DAY_SECS).then_some((clock, if sign == "-" { -secs } else { secs }))
}

fn two_digits(text: &str) -> Option<i64> {
    let sound = text.len() == 2 && text.bytes().all(|it| it.is_ascii_digit());
    sound.then(|| text.parse().ok())?
}

/// Returns the number of days from 1970 to `YYYY-MM-DD`; `None` if there is no such day in the
/// years 1 to 9999.
fn days(date: &str) -> Option<i64> {
    let (year, rest) = date.split_at_checked(4)?;
    let (month, day) = rest.strip_prefix('-')?.split_once('-')?;
    let all_digits = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
    let year: i16 = year.parse().ok().filter(|it| all_digits(year) && 0 < *it)?;
    let two = |text: &str| i8::try_from(two_digits(text)?).ok();
    let date = Date::new(year, two(month)?, two(day)?).ok()?;
    Some((date - EPOCH).get_days().into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Expected values: `date -u -d ... +%s`.
    #[track_caller]
    fn check(text: &str, secs: Option<i64>, is_strict: bool) {
        assert_eq!(Datestamp::lenient(text).map(Datestamp::secs), secs, "{text}");
        assert_eq!(Datestamp::parse(text).is_some(), is_strict, "{text}");
    }

    #[test]
    fn days_and_seconds_are_read() {
        check("1970-01-01", Some(0), true);
        check("2024-02-29", Some(1_709_164_800), true);
        check("2024-02-29T23:59:59Z", Some(1_709_251_199), true);
        check("0001-01-01T00:00:00Z", Some(-62_135_596_800), true);
        check("9999-12-31T23:59:59Z", Some(253_402_300_799), true);
    }

    #[test]
    fn common_deviations_are_read_leniently() {
        check("2024-02-29T23:59:59.999Z", Some(1_709_251_199), false);
        check("2024-02-29T23:59:59", Some(1_709_251_199), false);
        check(" 2024-02-29 23:59:59Z\n", Some(1_709_251_199), false);
        check("2024-02-29T23:59Z", Some(1_709_251_140), false);
        check("2024-03-01T01:59:59+02:00", Some(1_709_251_199), false);
        check("2024-02-29T18:59:59-0500", Some(1_709_251_199), false);
        check("2024-02-29T23:59:60Z", Some(1_709_251_200), false);
    }

    #[test]
    fn text_without_a_time_is_none() {
        for text in [
            "",
            "2024",
            "2024-2-9",
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "0000-01-01",
            "2024-02-29T",
            "2024-02-29T24:00:00Z",
            "2024-02-29T1:00:00Z",
            "2024-02-29T10:00:00+99:00",
            "2024-02-29x10:00",
            "2024-02-29T10",
            "20240229",
            "２０24-02-29",
            "2024-02-29T10:00:00:00Z",
        ] {
            check(text, None, false);
        }
    }

    #[test]
    fn a_day_reaches_to_its_last_second() {
        let day = Datestamp::at(1_709_200_000, Granularity::Day);
        assert_eq!((day.to_string().as_str(), day.last_secs()), ("2024-02-29", 1_709_251_199));
        assert_eq!(Granularity::by_name(" YYYY-MM-DD "), Some(Granularity::Day));
        assert_eq!(Granularity::by_name("YYYY-MM-DDThh:mmZ"), None);
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(secs in any::<i64>(), day in any::<bool>()) {
            let granularity = if day { Granularity::Day } else { Granularity::Second };
            let stamp = Datestamp::at(secs, granularity);
            prop_assert_eq!(Datestamp::parse(&stamp.to_string()), Some(stamp));
        }

        #[test]
        fn any_text_is_a_time_or_none(text in "\\PC{0,30}") {
            let _ = Datestamp::lenient(&text);
        }
    }
}
