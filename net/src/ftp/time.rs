//! Times of files, as FTP servers tell them.
//!
//! Times of MDTM and MLSD are in UTC (RFC 3659 §2.3). Those of lists are in the server's own zone,
//! which it does not tell; they are taken for UTC.
//!
//! Sans-I/O.

use super::reply::{number, split};

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The time of a file's last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Its precision, in seconds: 1, 60 or 86,400.
    pub precision_seconds: u32,
}

impl Moment {
    /// Reads `YYYYMMDDHHMMSS`, with or without a fraction, which is dropped.
    pub fn of_digits(digits: &[u8]) -> Option<Self> {
        let digits = split(digits, b'.').map_or(digits, |it| it.0);
        let part = |from: usize, to: usize| number::<i64>(digits.get(from..to)?);
        if digits.len() != 14 {
            return None;
        }
        let day = days(part(0, 4)?, part(4, 6)?, part(6, 8)?)?;
        let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
        let seconds = day * DAY_SECONDS + of_day(hour, minute)? + second;
        (second <= 60).then_some(Self { seconds, precision_seconds: 1 })
    }

    /// Reads day and time, `HH:MM`, of a year.
    pub(super) fn of_minute(year: i64, month: i64, day: i64, clock: &[u8]) -> Option<Self> {
        let (hour, minute) = split(clock, b':')?;
        let time = of_day(number(hour)?, number(minute)?)?;
        let seconds = days(year, month, day)? * DAY_SECONDS + time;
        Some(Self { seconds, precision_seconds: 60 })
    }

    /// Reads a day of a year.
    pub(super) fn of_date(year: i64, month: i64, day: i64) -> Option<Self> {
        let seconds = days(year, month, day)? * DAY_SECONDS;
        Some(Self { seconds, precision_seconds: 86_400 })
    }

    /// Reads day and time without a year: the last such time that is no more than a day after
    /// `now_seconds` (since 1970), as the server's clock and zone may be ahead.
    pub(super) fn of_recent(month: i64, day: i64, clock: &[u8], now_seconds: i64) -> Option<Self> {
        // By years of mean length, so the present year is this one or the next.
        let year = 1970 + now_seconds.div_euclid(31_556_952);
        // A 29th of February may be up to eight years ago.
        (year - 8..=year + 1)
            .rev()
            .filter_map(|year| Self::of_minute(year, month, day, clock))
            .find(|it| it.seconds <= now_seconds.saturating_add(DAY_SECONDS))
    }
}

fn of_day(hour: i64, minute: i64) -> Option<i64> {
    (hour < 24 && minute < 60).then(|| (hour * 60 + minute) * 60)
}

/// Returns the number of days from 1970 to a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if !(1..=9_999).contains(&year) || !(1..=length).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the day of a leap year is their last.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let leaps = year / 4 - year / 100 + year / 400;
    Some(year * 365 + leaps + (month * 153 + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read() {
        let of = |digits: &str| Moment::of_digits(digits.as_bytes()).map(|it| it.seconds);
        assert_eq!(of("19700101000000"), Some(0));
        assert_eq!(of("20000229120000"), Some(951_825_600));
        assert_eq!(of("20261127221307.123"), Some(1_795_817_587));
        for bad in ["20230229000000", "20231301000000", "20230101240000", "2023", "2023010100000x"]
        {
            assert_eq!(of(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_year_of_a_recent_time_is_found() {
        // 2026-11-27 22:13.
        let now = 1_795_817_587;
        let of = |month, day, clock: &str| {
            Moment::of_recent(month, day, clock.as_bytes(), now).map(|it| it.seconds)
        };
        let at = |digits: &str| Moment::of_digits(digits.as_bytes()).map(|it| it.seconds);
        assert_eq!(of(11, 27, "22:00"), at("20261127220000"));
        assert_eq!(of(11, 28, "09:00"), at("20261128090000"));
        assert_eq!(of(11, 29, "09:00"), at("20251129090000"));
        assert_eq!(of(2, 29, "09:00"), at("20240229090000"));
        assert_eq!(of(2, 30, "09:00"), None);
        assert_eq!(of(2, 3, "9"), None);
        assert_eq!(of(11, 23, "25:0819855292164868961"), None);
    }

    proptest! {
        #[test]
        fn days_follow_each_other(year in 1_i64..9_999, month in 1_i64..=12, day in 1_i64..=31) {
            if let Some(at) = days(year, month, day) {
                let next = days(year, month, day + 1)
                    .or_else(|| days(year, month + 1, 1))
                    .or_else(|| days(year + 1, 1, 1));
                prop_assert_eq!(next, Some(at + 1));
            }
        }
    }
}
