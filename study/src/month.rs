//! Calendar months, the units of a log's sums.
//!
//! # Differences from the paper
//!
//! Liu does not define "month"; ours are calendar months in UTC.
//!
//! Sans-I/O.

use std::fmt;

use freshness::date::{AT_SECS_MAX, AT_SECS_MIN, DAY_SECS, from_days, to_days};

/// A calendar month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month {
    /// Months since January of the year 0.
    index: i32,
}

impl Month {
    /// Returns the month of a Unix time, clamped to [`AT_SECS_MIN`]`..=`[`AT_SECS_MAX`] seconds.
    pub fn of(at_secs: i64) -> Self {
        let (year, month, _) =
            from_days(at_secs.clamp(AT_SECS_MIN, AT_SECS_MAX).div_euclid(DAY_SECS));
        Self { index: i32::try_from(year * 12 + month - 1).unwrap_or(0) }
    }

    /// Returns the year.
    pub fn year(self) -> i32 {
        self.index.div_euclid(12)
    }

    /// Returns the month in the year, from 1 to 12.
    pub fn number(self) -> i32 {
        self.index.rem_euclid(12) + 1
    }

    /// Returns the start of the month, in Unix seconds.
    pub fn start_secs(self) -> i64 {
        to_days(self.year().into(), self.number().into(), 1) * DAY_SECS
    }

    /// Returns the start of the next month, in Unix seconds.
    pub fn end_secs(self) -> i64 {
        Self { index: self.index + 1 }.start_secs()
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year(), self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freshness::date::date_time;

    #[test]
    fn months_begin_and_end() {
        let february = Month::of(1_078_099_199);
        assert_eq!(february.to_string(), "2004-02");
        assert_eq!(date_time(february.start_secs()), "2004-02-01T00:00:00Z");
        assert_eq!(february.end_secs() - february.start_secs(), 29 * DAY_SECS);
        assert_eq!(Month::of(i64::MAX).to_string(), "9999-12");
        assert_eq!(Month::of(i64::MIN).to_string(), "0001-01");
    }
}
