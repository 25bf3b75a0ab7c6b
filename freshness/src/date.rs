//! Days and date-times of the Gregorian calendar in UTC, as plain arithmetic.
//!
//! Source: Hinnant, "chrono-compatible low-level date algorithms": the year begins in March, so the
//! leap day is its last day. Date-times are ISO 8601 in the W3C profile.
//!
//! Sans-I/O.

/// Earliest accepted time: 0001-01-01T00:00:00Z, in Unix seconds.
pub const AT_SECS_MIN: i64 = -62_135_596_800;

/// Latest accepted time: 9999-12-31T23:59:59Z, in Unix seconds.
pub const AT_SECS_MAX: i64 = 253_402_300_799;

/// Seconds of a day.
pub const DAY_SECS: i64 = 86_400;
/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// Returns the days from 1970-01-01 to a date; months from 1, days from 1.
pub fn to_days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * ERA_DAYS + year * 365 + year / 4 - year / 100 + day_of_year - EPOCH_DAYS
}

/// Returns the year, month (from 1) and day (from 1) of a number of days since 1970-01-01.
pub fn from_days(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let (era, day) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

/// Returns the number of days of a month, from 28 to 31.
pub(crate) fn days_of_month(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    to_days(next_year, next, 1) - to_days(year, month, 1)
}

/// Formats Unix seconds as `2000-01-01T12:00:00Z`; a time outside the years 1 to 9999 is clamped.
pub fn date_time(at_secs: i64) -> String {
    let at = at_secs.clamp(AT_SECS_MIN, AT_SECS_MAX);
    let (year, month, day) = from_days(at.div_euclid(DAY_SECS));
    let secs = at.rem_euclid(DAY_SECS);
    let (hour, minute, second) = (secs / 3_600, secs / 60 % 60, secs % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Reads a date, or a date and a time, as Unix seconds. Seconds, fraction (dropped) and zone
/// (default UTC) are optional. `None`: the text is no date-time, or outside the years 1 to 9999.
pub fn parse_date_time(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = number(parts.next()?, 4)?;
    let month = number(parts.next()?, 2)?;
    let day = number(parts.next()?, 2)?;
    let valid = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
    if !valid || parts.next().is_some() {
        return None;
    }
    let secs = time.map_or(Some(0), parse_time)?;
    let at = to_days(year, month, day) * DAY_SECS + secs;
    (AT_SECS_MIN..=AT_SECS_MAX).contains(&at).then_some(at)
}

/// Returns the seconds from midnight UTC; the zone may make them negative or more than a day.
fn parse_time(text: &str) -> Option<i64> {
    let zone_at = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = (text.get(..zone_at)?, text.get(zone_at..)?);
    let mut parts = clock.split(':');
    let hour = number(parts.next()?, 2)?;
    let minute = number(parts.next()?, 2)?;
    let second = parts.next().map_or(Some(0), |part| match part.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && all_digits(fraction) => number(whole, 2),
        Some(_) => None,
        None => number(part, 2),
    })?;
    if hour > 23 || minute > 59 || second > 59 || parts.next().is_some() {
        return None;
    }
    Some(hour * 3_600 + minute * 60 + second - parse_zone(zone)?)
}

/// Returns by how many seconds the zone is ahead of UTC.
fn parse_zone(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first() {
        None => return Some(0),
        Some(b'Z') => return (zone.len() == 1).then_some(0),
        Some(b'-') => -1,
        Some(_) => 1,
    };
    let (hour, minute) = zone.get(1..)?.split_once(':')?;
    let (hour, minute) = (number(hour, 2)?, number(minute, 2)?);
    (hour <= 23 && minute <= 59).then_some(sign * (hour * 3_600 + minute * 60))
}

/// Reads a number of exactly `digits` digits.
fn number(text: &str, digits: usize) -> Option<i64> {
    (text.len() == digits && all_digits(text)).then(|| text.parse().ok())?
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(parse_date_time(text), expected, "{text}");
    }

    /// Seconds by `date -u -d TEXT +%s`.
    #[test]
    fn date_times_are_read_with_and_without_seconds_and_zone() {
        check("1970-01-01", Some(0));
        check("2000-01-01T12:00", Some(946_728_000));
        check("2000-01-01T12:00+00:00", Some(946_728_000));
        check("1901-01-01T12:00+00:00", Some(-2_177_409_600));
        check("2004-02-29T23:59:59Z", Some(1_078_099_199));
        check("2004-02-29T23:59:59.25-05:30", Some(1_078_099_199 + 19_800));
        check("0001-01-01T00:00:00Z", Some(AT_SECS_MIN));
        check("9999-12-31T23:59:59Z", Some(AT_SECS_MAX));
    }

    #[test]
    fn text_that_is_no_date_time_is_refused() {
        for text in [
            "",
            "T",
            "2000",
            "2000-1-1",
            "2000-13-01",
            "2001-02-29",
            "2000-01-00",
            "2000-01-01T",
            "2000-01-01T24:00",
            "2000-01-01T12",
            "2000-01-01T12:60",
            "2000-01-01T12:00:60",
            "2000-01-01T12:00:00.",
            "2000-01-01T12:00ZZ",
            "2000-01-01T12:00+1",
            "2000-01-01-01",
            "2000-01-01T12:00+24:00",
            "-001-01-01",
            "0000-01-01",
            "9999-12-31T23:59-01:00",
            "２０００-01-01",
            "2000-01-01T12:00:00:00",
            "2000-01-01T12:00é",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let (mut year, mut month, mut day) = (1, 1, 1);
        for days in to_days(1, 1, 1)..to_days(402, 1, 1) {
            assert_eq!(from_days(days), (year, month, day));
            assert_eq!(to_days(year, month, day), days);
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + i64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            assert_eq!(days_of_month(year, month), length);
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }
}
