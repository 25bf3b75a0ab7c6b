//! A log of observations of many sources, taken in one by one.
//!
//! Source: Liu §4: a service provider harvests some hundred repositories daily and keeps what each
//! harvest brought; table 1 has the records by month, table 2 the update intervals.
//!
//! # Differences from the paper
//!
//! * Nothing of the log is kept but sums: at most [`SOURCE_BYTES_MAX`] bytes a source and 16 for each
//!   of its months, its key left aside.
//! * A record counts in the month in which it was observed; what gathered before the month began is
//!   not told from the rest.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::fmt;

use freshness::date::{AT_SECS_MAX, AT_SECS_MIN};
use freshness::history::{History, Settings, Status};

use crate::month::Month;

/// Most sources of one study; more are refused.
pub const SOURCES_MAX: usize = 1_000_000;

/// Most months that are kept of all sources together; the oldest goes first.
pub const MONTHS_MAX: usize = 1_200;

/// Most months that are kept of each source; the oldest goes first.
pub const SOURCE_MONTHS_MAX: usize = 120;

/// Most bytes that a source takes, without its key and its months.
pub const SOURCE_BYTES_MAX: usize = 200;

/// Why an observation was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its time lies outside the years 1 to 9999: the entry is wrong and can be left out.
    Time,
    /// The study has [`SOURCES_MAX`] sources already, and this is another one.
    Sources,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time => "time outside the years 1 to 9999",
            Self::Sources => "more sources than a study can hold",
        })
    }
}

impl std::error::Error for Refused {}

/// What pulls cost besides requests and records, as their caller counted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests that failed; they are not among those of [`Cost`](freshness::history::Cost).
    pub requests_failed: u64,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Time that the requests took, in milliseconds.
    pub took_ms: u64,
}

impl Traffic {
    /// The traffic of both, up to the largest number there is.
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests_failed: self.requests_failed.saturating_add(other.requests_failed),
            bytes: self.bytes.saturating_add(other.bytes),
            took_ms: self.took_ms.saturating_add(other.took_ms),
        }
    }
}

/// What was updated in one month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MonthCount {
    pub(super) month: Month,
    pub(super) updates: u32,
    pub(super) records: u64,
}

/// What is kept of one source.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) history: History,
    pub(super) traffic: Traffic,
    /// In ascending order.
    pub(super) months: Vec<MonthCount>,
}

/// Liu's study, over observations of sources with keys of type `K`.
#[derive(Clone, Debug)]
pub struct Study<K> {
    settings: Settings,
    source_months_max: usize,
    pub(super) kept: BTreeMap<K, Kept>,
    /// Of all sources, in ascending order.
    pub(super) months: Vec<MonthCount>,
}

impl<K: Ord> Study<K> {
    /// A study that has seen nothing. Of each source the newest `source_months_max` months are kept, 16
    /// bytes each, up to [`SOURCE_MONTHS_MAX`]; 0 keeps only those of all sources together.
    pub fn new(settings: Settings, source_months_max: usize) -> Self {
        let source_months_max = source_months_max.min(SOURCE_MONTHS_MAX);
        Self { settings, source_months_max, kept: BTreeMap::new(), months: Vec::new() }
    }

    /// How observations are taken.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Takes in that `source` was observed at `at_secs`, in Unix seconds, and that `records` were
    /// updated. The observations of each source come in order of time.
    ///
    /// # Errors
    ///
    /// See [`Refused`]; the study is as it was, and the next observation can be handed in.
    pub fn handle(&mut self, source: K, at_secs: i64, records: u64) -> Result<Status, Refused> {
        if !(AT_SECS_MIN..=AT_SECS_MAX).contains(&at_secs) {
            return Err(Refused::Time);
        }
        let kept = kept_of(&mut self.kept, source)?;
        let before = kept.history.updates;
        let status = kept.history.handle(at_secs, records, self.settings);
        if status == Status::Changed {
            let updates = u32::from(kept.history.updates > before);
            let one = MonthCount { month: Month::of(at_secs), updates, records };
            add(&mut self.months, one, MONTHS_MAX);
            add(&mut kept.months, one, self.source_months_max);
        }
        Ok(status)
    }

    /// Counts what a request to `source` cost, whether it failed or is handed to
    /// [`handle`](Self::handle) too. A source of which nothing else is known has a row all the same.
    ///
    /// # Errors
    ///
    /// [`Refused::Sources`].
    pub fn handle_traffic(&mut self, source: K, traffic: Traffic) -> Result<(), Refused> {
        let kept = kept_of(&mut self.kept, source)?;
        kept.traffic = kept.traffic.plus(traffic);
        Ok(())
    }

    /// The next observation of `source` brings everything there is.
    pub fn handle_restart(&mut self, source: &K) {
        if let Some(kept) = self.kept.get_mut(source) {
            kept.history.handle_restart();
        }
    }

    /// Forgets a source; what it brought stays in the months of all sources.
    pub fn remove(&mut self, source: &K) {
        self.kept.remove(source);
    }

    /// What is known of a source.
    pub fn history(&self, source: &K) -> Option<&History> {
        self.kept.get(source).map(|kept| &kept.history)
    }

    /// Every source with what is known of it, in order of keys.
    pub fn histories(&self) -> impl Iterator<Item = (&K, &History)> {
        self.kept.iter().map(|(source, kept)| (source, &kept.history))
    }
}

/// What is kept of a source, which may be a new one.
fn kept_of<K: Ord>(kept: &mut BTreeMap<K, Kept>, source: K) -> Result<&mut Kept, Refused> {
    if kept.len() >= SOURCES_MAX && !kept.contains_key(&source) {
        return Err(Refused::Sources);
    }
    Ok(kept.entry(source).or_default())
}

/// Adds to the month's count. Of more than `months_max` months, the oldest goes.
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

    /// Takes in (month, records) of one source and shows what is kept by month.
    #[track_caller]
    fn check(source_months_max: usize, observations: &[(i64, u64)], expected: &str) {
        let mut study = Study::new(Settings::default(), source_months_max);
        for (month, records) in observations {
            study.handle("a", at(*month), *records).unwrap();
        }
        let shown: Vec<String> = study.kept["a"]
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
        assert_eq!(study.handle("a", i64::MAX, 1), Err(Refused::Time));
        assert_eq!(study.handle("a", AT_SECS_MIN - 1, 1), Err(Refused::Time));
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
        // The log begins with the first observation, not with what failed.
        let a_day = report.months[0].record_rate * 86_400.0;
        assert!((a_day - 2.0).abs() < 1e-9, "{a_day}");
    }

    #[test]
    fn a_source_is_small() {
        assert!(size_of::<Kept>() <= SOURCE_BYTES_MAX, "{}", size_of::<Kept>());
        assert_eq!(size_of::<MonthCount>(), 16);
    }
}
