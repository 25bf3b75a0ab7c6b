//! Syndication: a published schedule of a source's updates an hour, day, week, month or year.
//!
//! Source: Liu §6 ("syndication"), after the RDF Site Summary 1.0 module of that name: the elements
//! updatePeriod, updateFrequency and updateBase, here in a description of an OAI-PMH Identify
//! response.
//!
//! # Differences from the paper
//!
//! * The module does not say what a month is. Ours are calendar months (and years) in UTC, counted
//!   from the base: if the base is a 31st, a shorter month has its last day instead. A frequency
//!   above 1 divides each period into as many equal parts, so that it stays in step with the
//!   calendar. Hours, days and weeks, which always have the same length, are divided in the same
//!   way.
//! * Times are whole seconds, rounded down. Above one update a second, every second has one.
//! * The schedule holds before the base, too.
//! * The default of a missing element is daily, 1 and 1970-01-01T00:00:00Z. The first two are the
//!   module's; it has no default for the base.
//!
//! Sans-I/O.

use std::fmt;
use std::str::FromStr;

use crate::date::{
    AT_SECS_MAX, AT_SECS_MIN, DAY_SECS, days_of_month, from_days, parse_date_time, to_days,
};

/// Maximum length of a frequency and of a base, in bytes.
pub const VALUE_BYTES_MAX: usize = 64;

/// The period in which updates are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// 3,600 seconds.
    Hourly,
    /// 24 hours.
    #[default]
    Daily,
    /// 7 days.
    Weekly,
    /// A calendar month.
    Monthly,
    /// A calendar year.
    Yearly,
}

impl Period {
    /// All periods, the shortest first.
    pub const ALL: [Self; 5] =
        [Self::Hourly, Self::Daily, Self::Weekly, Self::Monthly, Self::Yearly];

    /// Returns the value of updatePeriod.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hourly => "hourly",
            Self::Daily => "daily",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Yearly => "yearly",
        }
    }

    /// Returns the length in seconds; for months and years the mean of the calendar's 400 years.
    pub fn secs(self) -> u32 {
        match self {
            Self::Hourly => 3_600,
            Self::Daily => 86_400,
            Self::Weekly => 604_800,
            Self::Monthly => 2_629_746,
            Self::Yearly => 31_556_952,
        }
    }

    /// Returns the length in calendar months, if it consists of them.
    fn months(self) -> Option<i64> {
        match self {
            Self::Hourly | Self::Daily | Self::Weekly => None,
            Self::Monthly => Some(1),
            Self::Yearly => Some(12),
        }
    }
}

impl FromStr for Period {
    type Err = SyndicationError;

    /// Reads a value of updatePeriod; case does not matter.
    fn from_str(text: &str) -> Result<Self, SyndicationError> {
        Self::ALL
            .into_iter()
            .find(|it| it.name().eq_ignore_ascii_case(text))
            .ok_or(SyndicationError::Period)
    }
}

/// Fault of a published schedule. The reader should go on without the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyndicationError {
    /// updatePeriod is none of the five.
    Period,
    /// updateFrequency is no whole number from 1 to 4,294,967,295.
    Frequency,
    /// updateBase is no date-time in the years 1 to 9999.
    Base,
}

impl fmt::Display for SyndicationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Period => "updatePeriod is not hourly, daily, weekly, monthly or yearly",
            Self::Frequency => "updateFrequency is not a whole number above 0",
            Self::Base => "updateBase is not a date-time of the years 1 to 9999",
        })
    }
}

impl std::error::Error for SyndicationError {}

/// A published schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syndication {
    period: Period,
    frequency: u32,
    base_secs: i64,
}

impl Syndication {
    /// Returns a schedule of `frequency` updates each `period`, from `base_secs` (Unix seconds).
    ///
    /// # Errors
    ///
    /// The frequency is 0 or the base lies outside the years 1 to 9999.
    pub fn new(period: Period, frequency: u32, base_secs: i64) -> Result<Self, SyndicationError> {
        if frequency == 0 {
            return Err(SyndicationError::Frequency);
        }
        if !(AT_SECS_MIN..=AT_SECS_MAX).contains(&base_secs) {
            return Err(SyndicationError::Base);
        }
        Ok(Self { period, frequency, base_secs })
    }

    /// Reads the values of updatePeriod, updateFrequency and updateBase, without the white space
    /// around them.
    ///
    /// # Errors
    ///
    /// A value is invalid.
    pub fn parse(
        period: Option<&str>,
        frequency: Option<&str>,
        base: Option<&str>,
    ) -> Result<Self, SyndicationError> {
        let short = |text: &&str| text.len() <= VALUE_BYTES_MAX;
        let period = period.map_or_else(|| Ok(Period::default()), |text| text.trim().parse())?;
        let frequency = match frequency.map(str::trim) {
            None => 1,
            Some(text) => Some(text)
                .filter(|text| short(text) && text.bytes().all(|it| it.is_ascii_digit()))
                .and_then(|text| text.parse().ok())
                .ok_or(SyndicationError::Frequency)?,
        };
        let base = match base.map(str::trim) {
            None => 0,
            Some(text) => {
                Some(text).filter(short).and_then(parse_date_time).ok_or(SyndicationError::Base)?
            }
        };
        Self::new(period, frequency, base)
    }

    /// Returns the average time from update to update, in seconds, at least 1.
    pub fn interval_secs(&self) -> f64 {
        (f64::from(self.period.secs()) / f64::from(self.frequency)).max(1.0)
    }

    /// Returns the first update after `after_secs`, in Unix seconds; saturates at the end of time.
    pub fn next_update(&self, after_secs: i64) -> i64 {
        let after = i128::from(after_secs);
        let period = self.period_at(after_secs);
        let start = self.start(period);
        let parts = i128::from(self.frequency);
        let length = self.start(period + 1) - start;
        // The first part whose start, rounded down, is past `after`. After the last part of the
        // period, it is the start of the next period.
        let part = ((after - start + 1) * parts + length - 1).div_euclid(length);
        let next = start + part * length / parts;
        i64::try_from(next).unwrap_or(i64::MAX)
    }

    /// Returns the number of the period in which a time in Unix seconds lies, counted from the
    /// base.
    fn period_at(&self, at: i64) -> i64 {
        let Some(months) = self.period.months() else {
            let since = i128::from(at) - i128::from(self.base_secs);
            let number = since.div_euclid(i128::from(self.period.secs()));
            return i64::try_from(number).unwrap_or(0);
        };
        let in_same_month = month_number(at) - month_number(self.base_secs);
        let begun = self.after_months(in_same_month) <= i128::from(at);
        (in_same_month - i64::from(!begun)).div_euclid(months)
    }

    /// Returns the start of the period with this number, in Unix seconds.
    fn start(&self, period: i64) -> i128 {
        match self.period.months() {
            Some(months) => self.after_months(period * months),
            None => {
                i128::from(self.base_secs) + i128::from(period) * i128::from(self.period.secs())
            }
        }
    }

    /// Returns the time `months` calendar months after the base, in Unix seconds.
    fn after_months(&self, months: i64) -> i128 {
        let (_, _, day) = from_days(self.base_secs.div_euclid(DAY_SECS));
        let number = month_number(self.base_secs) + months;
        let (year, month) = (number.div_euclid(12), number.rem_euclid(12) + 1);
        let days = to_days(year, month, day.min(days_of_month(year, month)));
        i128::from(days) * i128::from(DAY_SECS) + i128::from(self.base_secs.rem_euclid(DAY_SECS))
    }
}

/// Returns the number of months from January of the year 0 to the month of a Unix time.
fn month_number(at: i64) -> i64 {
    let (year, month, _) = from_days(at.div_euclid(DAY_SECS));
    year * 12 + month - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::date::date_time;

    /// Reads a schedule and walks it from a time on, hours and minutes only where they are not 0.
    #[track_caller]
    fn check(values: [&str; 3], from: &str, expected: &str) {
        let [period, frequency, base] = values.map(Some);
        let schedule = Syndication::parse(period, frequency, base).unwrap();
        let mut at = parse_date_time(from).unwrap();
        let times: Vec<String> = expected
            .split(' ')
            .map(|_| {
                at = schedule.next_update(at);
                date_time(at).trim_end_matches(":00Z").replace("T00:00", "")
            })
            .collect();
        assert_eq!(times.join(" "), expected);
    }

    #[test]
    fn hours_days_and_weeks_are_cut_evenly() {
        let twice = ["hourly", "2", "2000-01-01T12:00"];
        check(twice, "2003-05-01", "2003-05-01T00:30 2003-05-01T01:00 2003-05-01T01:30");
        check(["daily", "1", "2000-01-01T06:00+02:00"], "2003-05-01T04:00Z", "2003-05-02T04:00");
        // Seven times a day is no whole number of seconds: 86,400 / 7 = 12,342.857.
        check(
            ["daily", "7", "1970-01-01"],
            "1970-01-01",
            "1970-01-01T03:25:42Z 1970-01-01T06:51:25Z 1970-01-01T10:17:08Z",
        );
        // 1901-01-01 was a Tuesday.
        check(["weekly", "1", "1901-01-01T12:00+00:00"], "2003-05-24", "2003-05-27T12:00");
    }

    #[test]
    fn months_and_years_keep_to_the_calendar() {
        let last = ["monthly", "1", "2000-01-31"];
        check(last, "2000-01-31", "2000-02-29 2000-03-31 2000-04-30");
        check(last, "1999-11-05", "1999-11-30 1999-12-31 2000-01-31");
        check(
            ["monthly", "2", "2001-01-01"],
            "2001-02-01",
            "2001-02-15 2001-03-01 2001-03-16T12:00",
        );
        check(["yearly", "1", "2000-02-29"], "2003-01-01", "2003-02-28 2004-02-29 2005-02-28");
        check(["yearly", "4", "2001-01-01"], "2001-01-01", "2001-04-02T06:00 2001-07-02T12:00");
    }

    #[test]
    fn values_are_read_as_the_module_has_them() {
        let read = |period, frequency, base| Syndication::parse(period, frequency, base);
        let all = Syndication::new(Period::Hourly, 2, 946_728_000).unwrap();
        assert_eq!(read(Some(" Hourly\n"), Some(" 2 "), Some("2000-01-01T12:00+00:00")), Ok(all));
        assert_eq!(read(None, None, None), Syndication::new(Period::Daily, 1, 0));
        assert_eq!(read(Some("fortnightly"), None, None), Err(SyndicationError::Period));
        for text in ["", "0", "-1", "+1", "1.5", "4294967296", "٣"] {
            assert_eq!(read(None, Some(text), None), Err(SyndicationError::Frequency), "{text}");
        }
        assert_eq!(read(None, None, Some("noon")), Err(SyndicationError::Base));
        assert!(Syndication::new(Period::Daily, 1, i64::MAX).is_err());
    }

    #[test]
    fn the_interval_is_the_average_one() {
        for (period, frequency, expected) in [
            (Period::Hourly, 2, 1_800.0),
            (Period::Monthly, 1, 30.436_875 * 86_400.0),
            (Period::Yearly, 1, 365.242_5 * 86_400.0),
            (Period::Hourly, u32::MAX, 1.0),
        ] {
            let found = Syndication::new(period, frequency, 0).unwrap().interval_secs();
            assert!((found - expected).abs() < 1e-6, "{period:?} {frequency}: {found}");
        }
    }
}
