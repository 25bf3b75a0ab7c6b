//! The broker's status: `harvest broker status`, `GET /status` of the admin listener.
//!
//! This module has only types; `crate::server` fills them. The field names are those of the JSON
//! and must not change, since scripts of administrators read them. Times are in Unix milliseconds,
//! durations in seconds, rates in changes per second.
//!
//! Sans-I/O.

pub(crate) mod forecast;

use std::collections::BTreeMap;

use collection::Takedowns;
use daemon::ListenerStatus;
use daemon::health::Readiness;
use freshness::history::{self, Cost, History, Log};
use freshness::interval::{Outcome, Policy};
use serde::{Deserialize, Serialize};

use self::forecast::{Forecast, HOUR_SECS};
use crate::config::Freshness;
use crate::schedule::Planned;

pub(crate) const DAY_SECS: f64 = 86_400.0;

/// The broker as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The broker's name in the settings.
    pub name: String,
    /// The broker's id: 16 hex digits, made once and kept.
    pub id: String,
    /// Version of the software.
    pub software: String,
    /// Absolute path of the settings file; `None` if there is none.
    pub settings: Option<String>,
    /// Address of the public listener.
    pub listen: String,
    /// Address of the admin listener.
    pub admin_listen: String,
    /// Counters of the listeners.
    #[serde(flatten)]
    pub listening: ListenerStatus,
    /// Time at which this process started, Unix milliseconds.
    pub started_ms: u64,
    /// Number of live objects in the collection.
    pub objects: u64,
    /// The collection's epoch, 16 hex digits.
    pub epoch: String,
    /// The collection's serial.
    pub serial: u64,
    /// The serial that the full-text index covers; `None` if it covers none of this epoch yet.
    pub index_covered: Option<u64>,
    /// Whether the broker can do its work.
    #[serde(default)]
    pub ready: Readiness,
    /// Last problem of the index; `None` while it works.
    pub index_problem: Option<String>,
    /// Last problem of the sweep or the compaction; `None` while they work.
    pub catalog_problem: Option<String>,
    /// Reason why the collection accepts no changes now; `None` while it accepts them.
    pub collection_problem: Option<String>,
    /// Damaged members of the collection that are not yet replaced: file, byte and problem; at most
    /// 100.
    pub damaged: Vec<String>,
    /// Number of members found damaged since the start.
    pub damaged_total: u64,
    /// Numbers of takedowns in force, of records refused by them, and of notices not genuine.
    pub takedowns: Takedowns,
    /// An expiry that waits for an administrator's `confirm`.
    pub held: Option<Held>,
    /// Name of the schedule's policy, such as `oap`.
    pub policy: String,
    /// Aim of the policy; `None` for `best_estimation`.
    pub aim: Option<Aim>,
    /// θ of the settings; for `oap`, `uap` and `ioap` it is the aim.
    pub theta: f64,
    /// Expected freshness and traffic.
    pub expected: Expected,
    /// Measured freshness of all sources, weighted by size and `weight`; `None` before any is
    /// measured.
    pub freshness: Option<f64>,
    /// Update cost (Liu §3) on the broker's side, of all sources, including the time before
    /// restarts.
    pub cost: Cost,
    /// Number of pulls of all sources that have succeeded since the start.
    pub pulls: u64,
    /// Subscribers to the broker's own changes.
    #[serde(default)]
    pub push: exchange::push::Status,
    /// What brokers that searches everywhere may ask claim beyond what can be, which does not count; at most 100.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The sources, in the order of the settings.
    pub sources: Vec<SourceStatus>,
}

/// Aim of a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Aim {
    /// The setting: `theta`, `interval`, `price` or `pulls_per_hour`.
    pub setting: String,
    /// The value in the setting's unit; seconds if the setting is a time.
    pub value: f64,
}

/// Expected values for the sources with a known rate, if they go on changing as before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Weighted freshness of all these sources at the present intervals.
    pub freshness: f64,
    /// Pulls an hour of all these sources together, at the present intervals; at most the number
    /// that `pulls_per_minute_max` allows.
    pub pulls_per_hour: f64,
    /// `met`, or the way in which bounds prevent the aim: `all_longest` (every source is at its
    /// longest interval, and the freshness is above the aim), `all_shortest` (every source is at
    /// its shortest interval, and `planned_freshness` is the best possible), `partly` (some sources
    /// are at a bound), `capped` (the plan has more pulls than `pulls_per_minute_max` allows).
    pub aim: String,
    /// Freshness if the policy's plan were followed. Sources with a short history are pulled more
    /// often than planned.
    pub planned_freshness: f64,
    /// Pulls an hour if the policy's plan were followed.
    pub planned_pulls_per_hour: f64,
    /// Number of sources at their shortest interval.
    pub at_shortest: u64,
    /// Number of sources at their longest interval.
    pub at_longest: u64,
    /// Number of sources whose bounds contradict each other; their shortest interval holds.
    pub contradictory: u64,
    /// Names of at most 10 sources that stay below θ even at their shortest interval, the largest
    /// source first. Under `oap` and `uap` all other sources are pulled more often to compensate.
    pub held_back: Vec<String>,
}

/// Returns the name of an outcome in status and on the page.
pub(crate) fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Met => "met",
        Outcome::AllLongest => "all_longest",
        Outcome::AllShortest => "all_shortest",
        Outcome::Partly => "partly",
    }
}

/// Maximum number of names in [`Expected::held_back`].
const HELD_BACK_MAX: usize = 10;

impl Expected {
    pub(crate) fn new(
        planned: &[Planned],
        plan: freshness::schedule::Expected,
        settings: Freshness,
    ) -> Self {
        let now = Forecast::new(planned, settings.model);
        let held_back = match settings.settings().policy {
            Policy::Optimal { theta }
            | Policy::Uniform { theta }
            | Policy::Individual { theta }
                if plan.outcome != Outcome::Met =>
            {
                forecast::held_back(planned, settings.model, theta)
            }
            _ => Vec::new(),
        };
        let most_per_hour = f64::from(settings.pulls_per_minute_max) * 60.0;
        let aim = match plan.outcome {
            _ if most_per_hour < plan.pulls * HOUR_SECS => "capped",
            outcome => outcome_name(outcome),
        };
        Self {
            freshness: now.freshness,
            pulls_per_hour: now.pulls_per_hour.min(most_per_hour),
            aim: aim.to_owned(),
            planned_freshness: plan.freshness,
            planned_pulls_per_hour: plan.pulls * HOUR_SECS,
            at_shortest: plan.shortest as u64,
            at_longest: plan.longest as u64,
            contradictory: plan.contradictory as u64,
            held_back: held_back.into_iter().take(HELD_BACK_MAX).map(str::to_owned).collect(),
        }
    }
}

/// Updates of a source (Liu §3), as found by its pulls, including those before restarts. An update
/// is a pull with changes: all changes between two pulls count as one update.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Updates {
    /// Update status that the last pull found: `changed`, `unchanged`, or `started` for the first
    /// pull or a snapshot.
    pub status: Option<String>,
    /// Number of updates.
    pub count: u64,
    /// Number of changes of all updates.
    pub records: u64,
    /// Update frequency: updates a day.
    pub per_day: Option<f64>,
    /// Record update rate: changes a day.
    pub records_per_day: Option<f64>,
    /// Mean of the intervals between updates; `None` before the second update.
    pub interval_mean_seconds: Option<f64>,
    /// Standard deviation of these intervals; `None` before the third update.
    pub interval_deviation_seconds: Option<f64>,
    /// Update cost on the source's side.
    pub cost: Cost,
}

impl Updates {
    /// Returns the updates of a history with the last observation `status`.
    pub(crate) fn new(history: &History, status: Option<history::Status>) -> Self {
        let status = status.map(|it| match it {
            history::Status::Started => "started",
            history::Status::Unchanged => "unchanged",
            history::Status::Changed => "changed",
        });
        let a_day = |rate: Option<f64>| rate.map(|it| it * DAY_SECS);
        let until = history.last_secs;
        Self {
            status: status.map(str::to_owned),
            count: history.updates,
            records: history.records,
            per_day: a_day(history.frequency(Log::Pulls, until)),
            records_per_day: a_day(history.record_rate(Log::Pulls, until)),
            interval_mean_seconds: history.intervals.mean(),
            interval_deviation_seconds: history.intervals.deviation(),
            cost: history.cost,
        }
    }
}

/// An expiry sweep that waits because it would delete more than the allowed share of all objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Number of objects that would expire.
    pub would_expire: u64,
    /// Number of all live objects.
    pub of: u64,
}

/// One source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// Its URL.
    pub url: String,
    /// `gatherer`, `broker`, `oai` or `replica`.
    pub kind: String,
    /// What is pulled of it, in words; `None`: all that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// λ: estimated rate of change, changes per second; `None` before the second pull.
    pub rate_per_second: Option<f64>,
    /// The same rate, changes per day.
    pub rate_per_day: Option<f64>,
    /// N: number of live objects at the source, as it last reported; at most the number held here
    /// before the pull plus the number of received records.
    pub elements: Option<u64>,
    /// The source's interval by its pace, seconds; `None` before the first pull, or if it is
    /// followed.
    pub interval_seconds: Option<f64>,
    /// Cost of a pull, in requests: 1, and 1 more for each second not spent on changes; `None`
    /// before the second pull.
    pub pull_cost: Option<f64>,
    /// Duration of a pull, seconds; a mean in which recent pulls count more.
    pub pull_seconds: Option<f64>,
    /// Time at which the next pull is due, Unix milliseconds; `None` during a pull.
    pub next_due_ms: Option<u64>,
    /// Whether a pull is running.
    pub pulling: bool,
    /// Of a repository: what the harvest under way does, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// The last pull that succeeded.
    pub last_pull: Option<LastPull>,
    /// Number of pulls that succeeded since this process started.
    pub pulls: u64,
    /// Measured freshness; `None` before the second pull.
    pub freshness: Option<f64>,
    /// Its updates, as found by its pulls.
    pub updates: Updates,
    /// Whether the source is followed with long polls.
    pub follow: bool,
    /// The subscription at its hub; `None` without `push`.
    #[serde(default)]
    pub push: Option<Pushing>,
    /// Its failed pulls.
    pub errors: Errors,
    /// Reason why the source waits for an administrator's `confirm`; `None` if it does not.
    pub held: Option<String>,
    /// Number of objects of the collection that this source holds.
    pub objects: u64,
    /// Warnings of the last pull: harmless oddities, and the names of records left out.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// The subscription at a source's hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pushing {
    /// `active`, `asking`, or `failed`.
    pub state: String,
    /// End of the lease, Unix milliseconds; the lease is renewed before that time.
    pub until_ms: Option<u64>,
    /// Reason of the failure.
    pub problem: Option<String>,
    /// Number of notifications accepted since the start.
    pub notices: u64,
    /// Number of notifications refused because they had no signature.
    pub unsigned: u64,
    /// Number of notifications refused because their signature was wrong.
    pub forged: u64,
}

/// A pull that succeeded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastPull {
    /// End of the pull, Unix milliseconds.
    pub at_ms: u64,
    /// `delta` or `snapshot`.
    pub kind: String,
    /// Number of pulled changes.
    pub changes: u64,
    /// Number of pulled bytes, compressed.
    pub bytes: u64,
    /// Duration, seconds, including the wait of a long poll.
    pub took_seconds: f64,
}

/// Failed pulls of a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Number of pulls that failed since this process started.
    pub count: u64,
    /// The same number for each kind that occurred: `unreachable`, `too_slow`, `broken_off`,
    /// `refused`, `not_a_feed`, `other_format`, `corrupt`, `damaged`, `over_limit`, `wrong_epoch`,
    /// `loss`, `tokens`, `ours`.
    pub by_kind: BTreeMap<String, u64>,
    /// Number of failures since the last success.
    pub in_a_row: u32,
    /// Message of the last failure, even if a success came after it.
    pub last: Option<String>,
    /// Time of the last failure, Unix milliseconds.
    pub last_ms: Option<u64>,
    /// Pause after the last failure, seconds; 0 when the source answers.
    pub back_off_seconds: f64,
}
