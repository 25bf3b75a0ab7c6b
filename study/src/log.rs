//! A log of observations of many sources, taken in one by one.
//!
//! Source: Liu §4: a service provider harvests some hundred repositories daily and logs the result
//! of each harvest. Table 1 has the records by month, table 2 the update intervals.
//!
//! # Differences from the paper
//!
//! * Only sums of the log are kept: at most 200 bytes for each source and 16 for each of its
//!   months, without its key.
//! * A record counts in the month in which it was observed, even if it changed before that month.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::fmt;

use freshness::date::{AT_SECS_MAX, AT_SECS_MIN};
use freshness::history::{History, Settings, Status};

use crate::month::Month;

/// Maximum number of sources of one study; more are refused.
pub const SOURCES_MAX: usize = 1_000_000;

/// Maximum number of months that are kept of all sources together; the oldest is dropped first.
pub const MONTHS_MAX: usize = 1_200;

/// Maximum number of months that are kept of each source; the oldest is dropped first.
pub const SOURCE_MONTHS_MAX: usize = 120;

/// Reason to refuse an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its time lies outside the years 1 to 9999; the caller can leave the entry out.
    Time,
    /// The study has [`SOURCES_MAX`] sources already, and the observation is of a new one.
    Sources,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time => "time outside the years 1 to 9999",
            Self::Sources => "more sources than a study can hold",
        })
    }
}

impl std::error::Error for Refusal {}

/// Cost of pulls in addition to requests and records, as counted by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of failed requests; [`Cost`](freshness::history::Cost) has the others.
    pub requests_failed: u64,
    /// Number of bytes sent.
    pub bytes: u64,
    /// Total duration of the requests, in milliseconds.
    pub took_ms: u64,
}

impl Traffic {
    /// Returns the sum of both, saturating.
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests_failed: self.requests_failed.saturating_add(other.requests_failed),
            bytes: self.bytes.saturating_add(other.bytes),
            took_ms: self.took_ms.saturating_add(other.took_ms),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MonthCount {
    pub(super) month: Month,
    pub(super) updates: u32,
    pub(super) records: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct SourceSums {
    pub(super) history: History,
    pub(super) traffic: Traffic,
    /// In ascending order.
    pub(super) months: Vec<MonthCount>,
}

/// Liu's study of observations of sources with keys of type `K`.
#[derive(Clone, Debug)]
pub struct Study<K> {
    settings: Settings,
    source_months_max: usize,
    pub(super) sums: BTreeMap<K, SourceSums>,
    /// Months of all sources, in ascending order.
    pub(super) months: Vec<MonthCount>,
}

impl<K: Ord> Study<K> {
    /// Returns a study without observations. Of each source the newest `source_months_max` months
    /// are kept, 16 bytes each, up to [`SOURCE_MONTHS_MAX`]; with 0, only those of all sources
    /// together.
    pub fn new(settings: Settings, source_months_max: usize) -> Self {
        let source_months_max = source_months_max.min(SOURCE_MONTHS_MAX);
        Self { settings, source_months_max, sums: BTreeMap::new(), months: Vec::new() }
    }

    /// Returns the settings of observations.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Handles an observation of `source` at `at_secs`, in Unix seconds, that found `records`
    /// updated. Call it in the order of time for each source.
    ///
    /// # Errors
    ///
    /// See [`Refusal`]; the study is unchanged and can go on.
    pub fn handle(&mut self, source: K, at_secs: i64, records: u64) -> Result<Status, Refusal> {
        if !(AT_SECS_MIN..=AT_SECS_MAX).contains(&at_secs) {
            return Err(Refusal::Time);
        }
        let sums = sums_of(&mut self.sums, source)?;
        let before = sums.history.updates;
        let status = sums.history.handle(at_secs, records, self.settings);
        if status == Status::Changed {
            let updates = u32::from(sums.history.updates > before);
            let one = MonthCount { month: Month::of(at_secs), updates, records };
            add(&mut self.months, one, MONTHS_MAX);
            add(&mut sums.months, one, self.source_months_max);
        }
        Ok(status)
    }

    /// Counts the cost of a request to `source`, failed or not; call [`handle`](Self::handle) too
    /// if it succeeded. A source of which only traffic is known has a row in the report as well.
    ///
    /// # Errors
    ///
    /// [`Refusal::Sources`].
    pub fn handle_traffic(&mut self, source: K, traffic: Traffic) -> Result<(), Refusal> {
        let sums = sums_of(&mut self.sums, source)?;
        sums.traffic = sums.traffic.plus(traffic);
        Ok(())
    }

    /// Restarts the clock of `source`: its next observation brings everything.
    pub fn handle_restart(&mut self, source: &K) {
        if let Some(sums) = self.sums.get_mut(source) {
            sums.history.handle_restart();
        }
    }

    /// Returns the history of a source.
    pub fn history(&self, source: &K) -> Option<&History> {
        self.sums.get(source).map(|sums| &sums.history)
    }

    /// Returns every source with its history, in order of keys.
    pub fn histories(&self) -> impl Iterator<Item = (&K, &History)> {
        self.sums.iter().map(|(source, sums)| (source, &sums.history))
    }
}

/// Returns the sums of a source, which may be new.
fn sums_of<K: Ord>(
    sums: &mut BTreeMap<K, SourceSums>,
    source: K,
) -> Result<&mut SourceSums, Refusal> {
    if sums.len() >= SOURCES_MAX && !sums.contains_key(&source) {
        return Err(Refusal::Sources);
    }
    Ok(sums.entry(source).or_default())
}

/// Adds to the sums of a month; drops the oldest of more than `months_max` months.
fn add(months: &mut Vec<MonthCount>, one: MonthCount, months_max: usize) {
    match months.binary_search_by_key(&one.month, |it| it.month) {
        Ok(at) => {
            if let Some(count) = months.get_mut(at) {
                count.updates = count.updates.saturating_add(one.updates);
                count.records = count.records.saturating_add(one.records);
            }
        }
        Err(at) => months.insert(at, one),
    }
    if months.len() > months_max {
        months.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noon of the first of a month of 2001.
    fn at(month: i64) -> i64 {
        freshness::date::to_days(2001, month, 1) * 86_400 + 43_200
    }

    /// Takes in (month, records) of one source and compares the sums by month.
    #[track_caller]
    fn check(source_months_max: usize, observations: &[(i64, u64)], expected: &str) {
        let mut study = Study::new(Settings::default(), source_months_max);
        for (month, records) in observations {
            study.handle("a", at(*month), *records).unwrap();
        }
        let shown: Vec<String> = study.sums["a"]
            .months
            .iter()
            .map(|it| format!("{}={}/{}", it.month, it.records, it.updates))
            .collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn records_are_counted_by_month() {
        check(9, &[(1, 900), (2, 5), (3, 0), (4, 1), (4, 2)], "2001-02=5/1 2001-04=3/1");
        check(9, &[(1, 900), (4, 5), (2, 7)], "2001-02=7/1 2001-04=5/1");
    }

    #[test]
    fn the_oldest_month_goes_first() {
        check(2, &[(1, 9), (2, 1), (3, 1), (4, 1)], "2001-03=1/1 2001-04=1/1");
        check(0, &[(1, 9), (2, 1)], "");
    }

    #[test]
    fn wrong_times_are_refused() {
        let mut study = Study::new(Settings::default(), 0);
        assert_eq!(study.handle("a", i64::MAX, 1), Err(Refusal::Time));
        assert_eq!(study.handle("a", AT_SECS_MIN - 1, 1), Err(Refusal::Time));
        assert!(study.history(&"a").is_none());
        assert_eq!(study.handle("a", AT_SECS_MAX, 1), Ok(Status::Started));
    }

    #[test]
    fn traffic_is_counted_without_an_observation() {
        let mut study = Study::new(Settings::default(), 0);
        let failed = Traffic { requests_failed: 1, bytes: 0, took_ms: 30 };
        let pulled = Traffic { requests_failed: 0, bytes: 500, took_ms: 70 };
        for traffic in [failed, pulled, failed] {
            study.handle_traffic("a", traffic).unwrap();
        }
        study.handle("b", at(3), 1).unwrap();
        study.handle("b", at(3) + 10 * 86_400, 20).unwrap();
        let report = study.report(at(4));
        let found: Vec<(&str, u64, Traffic)> =
            report.sources.iter().map(|it| (it.source, it.known_secs, it.traffic)).collect();
        let sum = Traffic { requests_failed: 2, bytes: 500, took_ms: 130 };
        assert_eq!(found, [("b", 10 * 86_400, Traffic::default()), ("a", 0, sum)]);
        assert_eq!(report.overall.traffic, sum);
        // The log begins with the first observation, not with a failed request.
        let a_day = report.months[0].record_rate * 86_400.0;
        assert!((a_day - 2.0).abs() < 1e-9, "{a_day}");
    }

    #[test]
    fn a_source_is_small() {
        assert!(size_of::<SourceSums>() <= 200, "{}", size_of::<SourceSums>());
        assert_eq!(size_of::<MonthCount>(), 16);
    }
}
