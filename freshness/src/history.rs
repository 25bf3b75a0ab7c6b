//! The observed history of one source: how often it changes, how evenly, at what cost.
//!
//! Source: Liu §3. The definitions, as we take them:
//!
//! * *Update status* of a source at an observation: whether it changed since the one before
//!   ([`Status`]).
//! * *Record update rate*: the records that an observation found new, modified or deleted; its
//!   average is their number divided by the time observed ([`History::record_rate`]).
//! * *Update interval*: the time between two updates that follow each other; its mean, standard
//!   deviation and coefficient of variation are those of the paper's table 2 ([`Moments`]).
//! * *Update frequency*: updates divided by the time observed ([`History::frequency`]).
//! * *Update cost*: for a data provider the requests that it got and the records that it sent; for
//!   the harvester the same, summed over all sources ([`Cost`]).
//!
//! # Differences from the paper
//!
//! * The paper observes at regular intervals. Ours may come at any time, in order. A step back in
//!   time restarts the clock, and no interval is measured across it.
//! * The paper's granularity is a day. Ours is an option; with a day, several changes on one (UTC)
//!   day count as one update, and intervals are whole days.
//! * The first observation brings everything. It starts the clock and is no update.
//! * A pull only shows that the source changed at some time since the pull before. The later pull
//!   is taken as the time of the update, and half of the time in between as fresh.
//! * A pull counts as one request, however many pages it took; a failed pull observes nothing.
//! * The mean interval of the table is taken between updates, so it does not show how long a source
//!   has been silent since its last update. [`History::interval_secs`] does; it is the paper's
//!   other calculation, "changed so many times in so many months".
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};

use crate::date::{AT_SECS_MAX, AT_SECS_MIN};

/// Kind of a log of observations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Log {
    /// Pulls, including empty ones: each observation is a request.
    #[default]
    Pulls,
    /// Changes, each at its own time: there are no requests, and no entry means no change.
    Changes,
}

/// Settings of observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The kind of the log.
    pub log: Log,
    /// Length of a granule, in seconds; changes within one granule are one update. 0 counts as 1.
    pub granularity_secs: u32,
}

impl Default for Settings {
    /// Returns the settings of a log of pulls with the paper's granularity of a day.
    fn default() -> Self {
        Self { log: Log::Pulls, granularity_secs: 86_400 }
    }
}

/// Update status of a source at an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The clock starts here; whether the source changed is not known.
    Started,
    /// No record changed.
    Unchanged,
    /// Records changed.
    Changed,
}

/// Update cost, in numbers of requests and records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Number of requests made.
    pub requests: u64,
    /// Number of requests that brought nothing.
    pub requests_empty: u64,
    /// Number of records brought, including those of the first pull.
    pub records: u64,
}

impl Cost {
    /// Returns the sum of both costs, saturating.
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            requests_empty: self.requests_empty.saturating_add(other.requests_empty),
            records: self.records.saturating_add(other.records),
        }
    }
}

/// Count, mean and deviation of numbers, by Welford's method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// How many numbers there are.
    pub count: u64,
    /// Their mean; 0 without numbers.
    pub mean: f64,
    /// Sum of their squared distances from the mean.
    pub squares: f64,
}

impl Moments {
    /// Takes in a number; infinities and NaN are left out.
    pub fn handle(&mut self, value: f64) {
        if value.is_finite() {
            *self = self.plus(Self { count: 1, mean: value, squares: 0.0 });
        }
    }

    /// Returns the moments of both sets of numbers together.
    pub fn plus(self, other: Self) -> Self {
        let count = self.count.saturating_add(other.count);
        if count == 0 {
            return Self::default();
        }
        let (all, share) = (count as f64, other.count as f64 / count as f64);
        let step = other.mean - self.mean;
        Self {
            count,
            mean: self.mean + step * share,
            squares: self.squares + other.squares + step * step * share * (all * (1.0 - share)),
        }
    }

    /// Returns the mean; `None` without any number.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0 && self.mean.is_finite()).then_some(self.mean)
    }

    /// Returns the standard deviation of a sample (divisor: count − 1); `None` below two numbers.
    pub fn deviation(&self) -> Option<f64> {
        let variance = self.squares / self.count.checked_sub(1)? as f64;
        variance.is_finite().then(|| variance.max(0.0).sqrt())
    }

    /// Returns the coefficient of variation, the deviation divided by the mean: small for a steady
    /// source, 1 for random changes. `None` without a deviation or with a mean of 0.
    pub fn variation(&self) -> Option<f64> {
        let mean = self.mean().filter(|mean| *mean > 0.0)?;
        self.deviation().map(|deviation| deviation / mean)
    }
}

/// The history of one source, as plain numbers to store: at most 152 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Whether the clock runs, so that the next observation measures something.
    pub started: bool,
    /// First observation, in Unix seconds.
    pub first_secs: i64,
    /// Newest observation, in Unix seconds.
    pub last_secs: i64,
    /// Newest update, in Unix seconds; in a log of changes, the update that starts the clock is
    /// included.
    pub updated_secs: Option<i64>,
    /// Time between observations, in seconds, steps back left out.
    pub observed_secs: u64,
    /// Number of observations that measured something.
    pub samples: u64,
    /// Number of these observations that found a change.
    pub samples_changed: u64,
    /// Number of updates: of granules with a change.
    pub updates: u64,
    /// Number of records changed by these updates.
    pub records: u64,
    /// Update intervals, in seconds.
    pub intervals: Moments,
    /// Time in which the copy was fresh, in seconds, as estimated from pulls.
    pub fresh_secs: f64,
    /// The cost of the requests.
    pub cost: Cost,
}

impl History {
    /// Adds an observation of `records` updates at `at_secs` (clamped to the years 1 to 9999).
    pub fn handle(&mut self, at_secs: i64, records: u64, settings: Settings) -> Status {
        let at = at_secs.clamp(AT_SECS_MIN, AT_SECS_MAX);
        self.count_request(records, settings.log);
        if !self.started {
            return self.start(at, records, settings.log);
        }
        let elapsed = self.advance(at);
        self.samples += 1;
        let changed = records > 0;
        self.fresh_secs += if changed { 0.5 } else { 1.0 } * elapsed as f64;
        if !changed {
            return Status::Unchanged;
        }
        self.samples_changed += 1;
        self.records = self.records.saturating_add(records);
        self.update(at, i64::from(settings.granularity_secs.max(1)));
        Status::Changed
    }

    /// Stops the clock: the next observation brings everything (the source answered with a
    /// snapshot). Measurements stay.
    pub fn handle_restart(&mut self) {
        self.started = false;
        self.updated_secs = None;
    }

    /// Returns the time over which the source is known, in seconds. For a log of changes it reaches
    /// to `until_secs`, because no entry means no change; for a log of pulls, to the newest pull.
    pub fn known_secs(&self, log: Log, until_secs: i64) -> u64 {
        let until = until_secs.clamp(AT_SECS_MIN, AT_SECS_MAX);
        let silent = match log {
            Log::Changes if self.started => until.saturating_sub(self.last_secs),
            Log::Changes | Log::Pulls => 0,
        };
        self.observed_secs.saturating_add(u64::try_from(silent).unwrap_or(0))
    }

    /// Returns the update frequency, in updates a second; `None` while no time has been observed.
    pub fn frequency(&self, log: Log, until_secs: i64) -> Option<f64> {
        over(self.updates, self.known_secs(log, until_secs))
    }

    /// Returns the average record update rate, records a second; `None` before any time has passed.
    pub fn record_rate(&self, log: Log, until_secs: i64) -> Option<f64> {
        over(self.records, self.known_secs(log, until_secs))
    }

    /// Returns the observed time divided by the number of updates, in seconds; `None` for a source
    /// that never changed.
    pub fn interval_secs(&self, log: Log, until_secs: i64) -> Option<f64> {
        self.frequency(log, until_secs).filter(|it| *it > 0.0).map(|it| 1.0 / it)
    }

    /// Returns the share of the observed time in which the harvested copy was fresh, from 0 to 1,
    /// as estimated from pulls: all of the time before an empty pull, half of it before any other
    /// pull. `None` while no time has been observed.
    pub fn freshness(&self) -> Option<f64> {
        let share = self.fresh_secs / self.observed_secs as f64;
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }

    fn count_request(&mut self, records: u64, log: Log) {
        if log == Log::Pulls {
            let one = Cost { requests: 1, requests_empty: u64::from(records == 0), records };
            self.cost = self.cost.plus(one);
        }
    }

    fn start(&mut self, at: i64, records: u64, log: Log) -> Status {
        if self.samples == 0 && self.updates == 0 {
            self.first_secs = at;
        }
        self.started = true;
        self.last_secs = at;
        self.updated_secs = (log == Log::Changes && records > 0).then_some(at);
        Status::Started
    }

    /// Moves the clock; returns by how many seconds, 0 for a step back.
    fn advance(&mut self, at: i64) -> u64 {
        if at < self.last_secs {
            self.updated_secs = None;
        }
        let elapsed = u64::try_from(at.saturating_sub(self.last_secs)).unwrap_or(0);
        self.first_secs = self.first_secs.min(at);
        self.last_secs = at;
        self.observed_secs = self.observed_secs.saturating_add(elapsed);
        elapsed
    }

    /// Counts an update, unless its granule already has one.
    fn update(&mut self, at: i64, granularity: i64) {
        let granules = self
            .updated_secs
            .map(|before| at.div_euclid(granularity) - before.div_euclid(granularity));
        self.updated_secs = Some(at);
        if granules == Some(0) {
            return;
        }
        self.updates += 1;
        if let Some(granules) = granules {
            self.intervals.handle(granules as f64 * granularity as f64);
        }
    }
}

fn over(number: u64, secs: u64) -> Option<f64> {
    (secs > 0).then(|| number as f64 / secs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn taken(log: Log, granularity_secs: u32, observations: &[(i64, u64)]) -> History {
        let settings = Settings { log, granularity_secs };
        let mut history = History::default();
        for (at, records) in observations {
            history.handle(*at, *records, settings);
        }
        history
    }

    /// Compares number, mean and deviation of the update intervals, in seconds.
    #[track_caller]
    fn check(history: &History, count: u64, mean: f64, deviation: Option<f64>) {
        assert_eq!(history.intervals.count, count);
        let close = |found: f64, expected: f64| (found - expected).abs() <= 1e-9 * expected.abs();
        assert!(close(history.intervals.mean, mean), "{:?}", history.intervals);
        match (history.intervals.deviation(), deviation) {
            (Some(found), Some(expected)) => assert!(close(found, expected), "{found}"),
            (found, expected) => assert_eq!(found, expected),
        }
    }

    #[test]
    fn intervals_lie_between_updates() {
        // After the first harvest at 0, updates at 10, 14 and 24: intervals of 4 and 10.
        let log = [(0, 900), (10, 1), (12, 0), (14, 2), (24, 3), (30, 0)];
        let history = taken(Log::Pulls, 1, &log);
        check(&history, 2, 7.0, Some(18.0_f64.sqrt()));
        assert_eq!((history.updates, history.records), (3, 6));
        assert_eq!(history.interval_secs(Log::Pulls, 99), Some(10.0));
        assert_eq!(history.record_rate(Log::Pulls, 99), Some(0.2));
        assert_eq!(history.cost, Cost { requests: 6, requests_empty: 2, records: 906 });
        // Fresh for 2 s and 6 s before empty pulls, and for half of the other 22 s.
        assert_eq!(history.freshness(), Some(19.0 / 30.0));
    }

    #[test]
    fn the_first_change_starts_the_clock_of_a_log_of_changes() {
        let history = taken(Log::Changes, 1, &[(10, 5), (30, 1), (40, 1)]);
        check(&history, 2, 15.0, Some(50.0_f64.sqrt()));
        assert_eq!(history.cost, Cost::default());
        assert_eq!(history.interval_secs(Log::Changes, 70), Some(30.0));
        assert_eq!(history.interval_secs(Log::Changes, 0), Some(15.0));
    }

    #[test]
    fn changes_in_one_granule_are_one_update() {
        let day = 86_400;
        let log = [(0, 9), (DAY, 1), (DAY + 60, 1), (2 * DAY - 1, 1), (2 * DAY, 1), (5 * DAY, 1)];
        let history = taken(Log::Pulls, day, &log);
        assert_eq!((history.updates, history.records), (3, 5));
        check(&history, 2, 2.0 * DAY as f64, Some(2.0_f64.sqrt() * DAY as f64));
    }

    #[test]
    fn a_step_back_in_time_measures_nothing() {
        let history = taken(Log::Pulls, 1, &[(100, 1), (110, 1), (20, 1), (23, 1)]);
        check(&history, 1, 3.0, None);
        assert_eq!((history.observed_secs, history.first_secs), (13, 20));
    }

    #[test]
    fn a_restart_keeps_the_measurements() {
        let mut history = taken(Log::Pulls, 1, &[(0, 9), (10, 1), (20, 1)]);
        history.handle_restart();
        let settings = Settings { granularity_secs: 1, ..Settings::default() };
        assert_eq!(history.handle(1_000, 5_000, settings), Status::Started);
        assert_eq!(history.handle(1_010, 0, settings), Status::Unchanged);
        assert_eq!(history.handle(1_020, 1, settings), Status::Changed);
        check(&history, 1, 10.0, None);
        assert_eq!((history.updates, history.observed_secs, history.first_secs), (3, 40, 0));
    }

    #[test]
    fn without_observed_time_there_are_no_numbers() {
        let history = taken(Log::Pulls, 1, &[(5, 1), (5, 1)]);
        assert_eq!(history.frequency(Log::Pulls, 5), None);
        assert_eq!(history.freshness(), None);
        assert_eq!(Moments { count: 2, ..Moments::default() }.variation(), None);
    }

    #[test]
    fn a_history_is_small() {
        assert!(size_of::<History>() <= 152, "{}", size_of::<History>());
    }
}
