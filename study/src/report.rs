//! Report of a study: its results as rows for tables and figures.
//!
//! Source: Liu §4: table 1 (record update rate by month, for each source), table 2 (average update
//! interval and rate, standard deviation, coefficient of variation, for each source) and the figure
//! after them (share of sources by average update interval).
//!
//! # Differences from the paper
//!
//! * The figure's axis is cut into named classes ([`Class`]). A source is roughly in the class
//!   whose name is nearest in ratio: if it changes every 8 days, in `Weekly`.
//! * A source's class depends on the time observed for each update, not on the mean of its
//!   intervals, so a source that falls silent changes its class in time.
//! * The first and the last month are divided by their observed part.
//!
//! Sans-I/O.

use freshness::history::{Cost, History, Log, Moments, Settings};

use crate::log::{MonthCount, SourceSums, Study, Traffic};
use crate::model::Demand;
use crate::month::Month;

/// Class of sources by their update interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// At most 3 days from update to update.
    Daily,
    /// Over 3 days, at most 15.
    Weekly,
    /// Over 15 days, at most 60.
    Monthly,
    /// Over 60 days, at most 180.
    Quarterly,
    /// Over 180 days, at most 540.
    Yearly,
    /// Over 540 days.
    Longer,
    /// No update was observed.
    Never,
}

impl Class {
    /// All classes, fastest first, with their names in tables and longest intervals in days.
    const ALL: [(Self, &'static str, Option<f64>); 7] = [
        (Self::Daily, "daily", Some(3.0)),
        (Self::Weekly, "weekly", Some(15.0)),
        (Self::Monthly, "monthly", Some(60.0)),
        (Self::Quarterly, "quarterly", Some(180.0)),
        (Self::Yearly, "yearly", Some(540.0)),
        (Self::Longer, "longer", None),
        (Self::Never, "never", None),
    ];

    /// Returns the longest interval of the class, in seconds; `None` for the last two.
    pub fn interval_max(self) -> Option<f64> {
        Self::ALL[self as usize].2.map(|days| days * 86_400.0)
    }

    /// Returns the class of an interval in seconds; [`Class::Never`] without one.
    pub fn of(interval: Option<f64>) -> Self {
        let Some(interval) = interval.filter(|it| it.is_finite()) else { return Self::Never };
        let within = |class: &Self| class.interval_max().is_some_and(|max| interval <= max);
        Self::ALL.map(|(class, ..)| class).into_iter().find(within).unwrap_or(Self::Longer)
    }

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// A source of table 2.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceRow<K> {
    /// Its key.
    pub source: K,
    /// Its class.
    pub class: Class,
    /// Updates observed.
    pub updates: u64,
    /// Records updated.
    pub records: u64,
    /// Time observed, in seconds.
    pub known_secs: u64,
    /// Newest update, in Unix seconds.
    pub updated_secs: Option<i64>,
    /// Time observed divided by the number of updates, in seconds; `None` if it never changed.
    pub interval_secs: Option<f64>,
    /// Update frequency, in updates a second; `None` while no time has been observed.
    pub frequency: Option<f64>,
    /// Average record update rate, in records a second; `None` while no time has been observed.
    pub record_rate: Option<f64>,
    /// Intervals from update to update, in seconds: mean, deviation, coefficient of variation.
    pub intervals: Moments,
    /// Estimated share of time in which the copy was fresh; only for a log of pulls.
    pub freshness: Option<f64>,
    /// Update cost of the data provider.
    pub cost: Cost,
    /// Failed requests, bytes and durations, as [`Study::handle_traffic`] counted them.
    pub traffic: Traffic,
}

/// A month of table 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MonthRow {
    /// The month.
    pub month: Month,
    /// Number of updates observed in the month.
    pub updates: u64,
    /// Records updated.
    pub records: u64,
    /// Record update rate, in records a second of the observed part of the month.
    pub record_rate: f64,
}

/// A month of one source.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceMonth<K> {
    /// The source's key.
    pub source: K,
    /// Its month.
    pub row: MonthRow,
}

/// A bar of the figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassRow {
    /// The class.
    pub class: Class,
    /// The number of sources in the class.
    pub sources: u64,
    /// Their share of all sources, from 0 to 1.
    pub share: f64,
    /// The share of this class and all faster ones, from 0 to 1.
    pub share_up_to: f64,
}

/// All sources together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overall {
    /// The number of sources.
    pub sources: u64,
    /// The number of sources that have changed.
    pub sources_changed: u64,
    /// Number of updates of all sources.
    pub updates: u64,
    /// Records updated.
    pub records: u64,
    /// Time observed, in seconds, summed over all sources.
    pub known_secs: u64,
    /// Average update frequency, in updates a second and source.
    pub frequency: Option<f64>,
    /// Average record update rate, in records a second and source.
    pub record_rate: Option<f64>,
    /// Update intervals of all sources pooled, in seconds.
    pub intervals: Moments,
    /// The sources' mean update intervals, in seconds, which show the differences between sources.
    pub means: Moments,
    /// Freshness of the service provider (Liu §3), the mean of its sources; only for a pull log.
    pub freshness: Option<f64>,
    /// Update cost of the harvester.
    pub cost: Cost,
    /// Failed requests, bytes and durations, as far as they were counted.
    pub traffic: Traffic,
}

impl Overall {
    fn new<K>(rows: &[SourceRow<K>]) -> Self {
        let mut all = Self::default();
        for row in rows {
            all.sources += 1;
            all.sources_changed += u64::from(row.updates > 0);
            all.updates = all.updates.saturating_add(row.updates);
            all.records = all.records.saturating_add(row.records);
            all.known_secs = all.known_secs.saturating_add(row.known_secs);
            all.intervals = all.intervals.plus(row.intervals);
            row.intervals.mean().into_iter().for_each(|mean| all.means.handle(mean));
            all.cost = all.cost.plus(row.cost);
            all.traffic = all.traffic.plus(row.traffic);
        }
        if all.known_secs > 0 {
            all.frequency = Some(all.updates as f64 / all.known_secs as f64);
            all.record_rate = Some(all.records as f64 / all.known_secs as f64);
        }
        let mut freshness = Moments::default();
        rows.iter().filter_map(|row| row.freshness).for_each(|it| freshness.handle(it));
        all.freshness = freshness.mean();
        all
    }
}

/// The report of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Report<K> {
    /// All sources together.
    pub overall: Overall,
    /// Every source, by interval (the shortest first), then by key; sources that never changed come
    /// last.
    pub sources: Vec<SourceRow<K>>,
    /// All classes in their order, including those without a source.
    pub classes: Vec<ClassRow>,
    /// The months with an update of any source, ascending.
    pub months: Vec<MonthRow>,
    /// For each source its months with an update, by key and month; as many as the study keeps.
    pub source_months: Vec<SourceMonth<K>>,
}

impl<K: Ord + Clone> Study<K> {
    /// Returns the report at `until_secs`, in Unix seconds. O(M log M) for M sources.
    pub fn report(&self, until_secs: i64) -> Report<K> {
        let sources = self.source_rows(until_secs);
        Report {
            overall: Overall::new(&sources),
            classes: classes(&sources),
            months: self.month_rows(until_secs),
            source_months: self.source_months(until_secs),
            sources,
        }
    }

    /// Returns the requirements of each source for the models, in order of keys: its acceptable
    /// latency in seconds, as given by `latency`, and its update frequency.
    pub fn demands(&self, until_secs: i64, latency: impl Fn(&K) -> f64) -> Vec<Demand> {
        let log = self.settings().log;
        self.histories()
            .map(|(source, history)| Demand {
                latency: latency(source),
                frequency: history.frequency(log, until_secs).unwrap_or(0.0),
            })
            .collect()
    }

    fn source_rows(&self, until: i64) -> Vec<SourceRow<K>> {
        let log = self.settings().log;
        let row = |(source, sums): (&K, &SourceSums)| {
            let history = &sums.history;
            let interval_secs = history.interval_secs(log, until);
            SourceRow {
                source: source.clone(),
                class: Class::of(interval_secs),
                updates: history.updates,
                records: history.records,
                known_secs: history.known_secs(log, until),
                updated_secs: history.updated_secs,
                interval_secs,
                frequency: history.frequency(log, until),
                record_rate: history.record_rate(log, until),
                intervals: history.intervals,
                freshness: if log == Log::Pulls { history.freshness() } else { None },
                cost: history.cost,
                traffic: sums.traffic,
            }
        };
        let mut rows: Vec<_> = self.sums.iter().map(row).collect();
        let interval = |row: &SourceRow<K>| row.interval_secs.unwrap_or(f64::INFINITY);
        rows.sort_by(|a, b| interval(a).total_cmp(&interval(b)));
        rows
    }

    fn month_rows(&self, until: i64) -> Vec<MonthRow> {
        // A source that is known by its traffic alone was never observed.
        let observed =
            || self.histories().map(|(_, it)| it).filter(|it| **it != History::default());
        let first = observed().map(|it| it.first_secs).min().unwrap_or(0);
        let last = observed().map(|it| end(it, self.settings(), until)).max();
        let span = ObservedSpan { first, last: last.unwrap_or(0), settings: self.settings() };
        self.months.iter().map(|it| span.row(*it)).collect()
    }

    fn source_months(&self, until: i64) -> Vec<SourceMonth<K>> {
        let mut rows = Vec::new();
        for (source, sums) in &self.sums {
            let last = end(&sums.history, self.settings(), until);
            let span =
                ObservedSpan { first: sums.history.first_secs, last, settings: self.settings() };
            let row = |it: &MonthCount| SourceMonth { source: source.clone(), row: span.row(*it) };
            rows.extend(sums.months.iter().map(row));
        }
        rows
    }
}

/// Returns the end of a source's observation, in Unix seconds.
fn end(history: &History, settings: Settings, until: i64) -> i64 {
    match settings.log {
        Log::Pulls => history.last_secs,
        Log::Changes => history.last_secs.max(until),
    }
}

/// The span of observation, in Unix seconds.
struct ObservedSpan {
    first: i64,
    last: i64,
    settings: Settings,
}

impl ObservedSpan {
    fn row(&self, count: MonthCount) -> MonthRow {
        let from = count.month.start_secs().max(self.first);
        let to = count.month.end_secs().min(self.last);
        let secs = to.saturating_sub(from).max(self.settings.granularity_secs.max(1).into());
        MonthRow {
            month: count.month,
            updates: count.updates.into(),
            records: count.records,
            record_rate: count.records as f64 / secs as f64,
        }
    }
}

fn classes<K>(rows: &[SourceRow<K>]) -> Vec<ClassRow> {
    let all = rows.len().max(1) as f64;
    let mut up_to = 0_u64;
    Class::ALL
        .into_iter()
        .map(|(class, ..)| {
            let sources = rows.iter().filter(|row| row.class == class).count() as u64;
            up_to += sources;
            ClassRow {
                class,
                sources,
                share: sources as f64 / all,
                share_up_to: up_to as f64 / all,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: f64 = 86_400.0;

    #[track_caller]
    fn check(interval: Option<f64>, expected: &str) {
        assert_eq!(Class::of(interval).name(), expected, "{interval:?}");
    }

    #[test]
    fn classes_have_their_bounds() {
        for (days, expected) in [
            (0.0, "daily"),
            (3.0, "daily"),
            (3.1, "weekly"),
            (15.0, "weekly"),
            (30.4, "monthly"),
            (91.3, "quarterly"),
            (365.25, "yearly"),
            (541.0, "longer"),
        ] {
            check(Some(days * DAY), expected);
        }
        check(None, "never");
        check(Some(f64::INFINITY), "never");
        check(Some(f64::NAN), "never");
    }

    #[test]
    fn the_fastest_source_comes_first_and_a_still_one_last() {
        let mut study = Study::new(Settings { granularity_secs: 1, ..Settings::default() }, 0);
        for (source, at, records) in
            [("still", 0, 9), ("still", 90, 0), ("slow", 0, 9), ("slow", 90, 2), ("fast", 0, 9)]
        {
            study.handle(source, at, records).unwrap();
        }
        study.handle("fast", 45, 1).unwrap();
        study.handle("fast", 90, 1).unwrap();
        let report = study.report(90);
        let order: Vec<&str> = report.sources.iter().map(|row| row.source).collect();
        assert_eq!(order, ["fast", "slow", "still"]);
        let all = report.overall;
        assert_eq!((all.sources, all.sources_changed, all.updates, all.records), (3, 2, 3, 4));
        assert_eq!((all.known_secs, all.frequency), (270, Some(3.0 / 270.0)));
        assert_eq!(all.intervals.count, 1);
        // The sources were fresh half of the time, half of the time, and all of it.
        assert!((all.freshness.unwrap() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(all.cost, Cost { requests: 7, requests_empty: 1, records: 31 });
        let shares: Vec<(u64, f64)> =
            report.classes.iter().map(|it| (it.sources, it.share_up_to)).collect();
        let two_thirds = (0, 2.0 / 3.0);
        let mut expected = vec![two_thirds; 7];
        (expected[0], expected[6]) = ((2, 2.0 / 3.0), (1, 1.0));
        assert_eq!(shares, expected);
    }

    #[test]
    fn a_month_is_divided_by_its_observed_part() {
        // 21 January to 14 February 1970: 11 days and 14.
        let (first, last) = (20 * 86_400, 45 * 86_400);
        let mut study = Study::new(Settings::default(), 9);
        for (at, records) in [(first, 99), (first + 86_400, 22), (40 * 86_400, 7), (last, 21)] {
            study.handle("a", at, records).unwrap();
        }
        let report = study.report(last);
        let rates: Vec<f64> = report.months.iter().map(|it| it.record_rate * DAY).collect();
        assert!((rates[0] - 2.0).abs() < 1e-9 && (rates[1] - 2.0).abs() < 1e-9, "{rates:?}");
        let of_source: Vec<MonthRow> = report.source_months.iter().map(|it| it.row).collect();
        assert_eq!(of_source, report.months);
    }
}
