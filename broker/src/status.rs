//! What the broker says of itself: `harvest broker status`, `GET /status` of the admin listener.
//!
//! Shapes only; `crate::pipeline` fills them. Field names are the JSON's and stay: scripts of
//! site admins read them. Times are Unix milliseconds, durations seconds, rates changes per second.
//!
//! Sans-I/O.

pub(crate) mod outlook;

use std::collections::BTreeMap;

use collection::Takedowns;
use daemon::Listening;
use daemon::health::Readiness;
use freshness::history::{self, History, Log};
use freshness::interval::{Outcome, Policy};
use serde::{Deserialize, Serialize};

use self::outlook::Outlook;
use crate::config::Freshness;
use crate::schedule::Planned;

/// Seconds of an hour.
const HOUR_SECS: f64 = 3_600.0;

/// Seconds of a day.
const DAY_SECS: f64 = 86_400.0;

/// The broker as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The name in the settings.
    pub name: String,
    /// The broker's id: 16 hex digits, made once.
    pub id: String,
    /// Version of the software.
    pub software: String,
    /// The settings file, its whole path; `None` of a broker that has none.
    pub settings: Option<String>,
    /// Where the public listener listens.
    pub listen: String,
    /// Where the admin listener listens.
    pub admin_listen: String,
    /// What its listeners met.
    #[serde(flatten)]
    pub listening: Listening,
    /// When this process started, Unix milliseconds.
    pub started_ms: u64,
    /// Live objects in the collection.
    pub objects: u64,
    /// The collection's epoch, 16 hex digits.
    pub epoch: String,
    /// The collection's serial.
    pub serial: u64,
    /// The serial that the full-text index covers, in this epoch; `None` before the first commit.
    pub index_covered: Option<u64>,
    /// Whether it can do what it is for.
    #[serde(default)]
    pub ready: Readiness,
    /// What last went wrong in the index; `None` while it works.
    pub index_problem: Option<String>,
    /// What last went wrong in the sweep or the compaction; `None` while they work.
    pub catalog_problem: Option<String>,
    /// Why the collection takes no changes just now; `None` while it does.
    pub collection_problem: Option<String>,
    /// Members of the collection that are damaged and not yet replaced: file, byte and what is wrong;
    /// at most 100 are listed.
    pub damaged: Vec<String>,
    /// Members found damaged since the start.
    pub damaged_total: u64,
    /// What is suppressed, refused, and not genuine.
    pub takedowns: Takedowns,
    /// An expiry that waits for an admin's `confirm`.
    pub held: Option<Held>,
    /// The policy of the schedule: `oap`.
    pub policy: String,
    /// What the policy aims at; `None` of `best_estimation`.
    pub aim: Option<Aim>,
    /// θ of the settings; for `oap`, `uap` and `ioap` it is the aim.
    pub theta: f64,
    /// What is to be expected.
    pub expected: Expected,
    /// Measured freshness over all sources, weighted by their size and `weight`; `None` before a second pull.
    pub freshness: Option<f64>,
    /// What all sources together were asked for, and brought: update cost on the broker's side.
    pub cost: Cost,
    /// Pulls finished since the start, of all sources.
    pub pulls: u64,
    /// Whom the broker tells of its own changes.
    #[serde(default)]
    pub push: exchange::push::Status,
    /// The sources, in the order of the settings.
    pub sources: Vec<SourceStatus>,
}

/// What a policy aims at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Aim {
    /// The setting: `theta`, `interval`, `price` or `pulls_per_hour`.
    pub setting: String,
    /// In the setting's unit; seconds if it is a time.
    pub value: f64,
}

/// What is to be expected of the sources whose rate is known, if they go on as they have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Freshness of the whole at the present intervals, weighted.
    pub freshness: f64,
    /// Pulls of all sources together, at the present intervals.
    pub pulls_per_hour: f64,
    /// `met`, or how the bounds keep the policy from its aim: `all_longest` (every source is at its
    /// longest interval, and that is more than was asked for), `all_shortest` (every source is at its
    /// shortest interval, and `planned_freshness` is what can be attained), `partly` (the
    /// bounds of some sources keep them from it), `capped` (the plan has more pulls than
    /// `pulls_per_minute_max` lets begin).
    pub aim: String,
    /// Freshness by the policy's plan: sources that have not been watched for long are pulled more
    /// often than planned.
    pub planned_freshness: f64,
    /// Pulls by the policy's plan.
    pub planned_pulls_per_hour: f64,
    /// Sources at their shortest interval.
    pub at_shortest: u64,
    /// Sources at their longest interval.
    pub at_longest: u64,
    /// Sources whose bounds contradict each other: the shortest interval holds.
    pub contradictory: u64,
    /// Sources that even their shortest interval does not keep θ fresh, the largest first, at most 10:
    /// under `oap` and `uap` all the others are pulled the more for them.
    pub held_back: Vec<String>,
}

/// What an outcome is called in status and on the page.
pub(crate) fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Met => "met",
        Outcome::AllLongest => "all_longest",
        Outcome::AllShortest => "all_shortest",
        Outcome::Partly => "partly",
    }
}

/// Most names of sources that hold the others back.
const HELD_BACK_MAX: usize = 10;

impl Expected {
    /// What the present intervals come to, and the plan.
    pub(crate) fn new(
        planned: &[Planned],
        plan: freshness::schedule::Expected,
        settings: Freshness,
    ) -> Self {
        let now = Outlook::new(planned, settings.model);
        let held_back = match settings.settings().policy {
            Policy::Optimal { theta }
            | Policy::Uniform { theta }
            | Policy::Individual { theta }
                if plan.outcome != Outcome::Met =>
            {
                outlook::held_back(planned, settings.model, theta)
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

/// Update cost (Liu §3), over restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Pulls that succeeded.
    pub requests: u64,
    /// Of those, pulls that brought nothing.
    pub requests_empty: u64,
    /// Changes that they brought, those of the first pull included.
    pub records: u64,
}

impl From<history::Cost> for Cost {
    fn from(cost: history::Cost) -> Self {
        let history::Cost { requests, requests_empty, records } = cost;
        Self { requests, requests_empty, records }
    }
}

/// How a source changes (Liu §3), as its pulls have found over restarts. An update is a pull that
/// brought changes: what happens between two pulls is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Updates {
    /// Update status, by the last pull: `changed`, `unchanged`, or `started` when it was the first, or
    /// brought everything anew.
    pub status: Option<String>,
    /// Updates.
    pub count: u64,
    /// Changes that they brought.
    pub records: u64,
    /// Update frequency.
    pub per_day: Option<f64>,
    /// Record update rate.
    pub records_per_day: Option<f64>,
    /// Mean of the intervals between updates; `None` before two.
    pub interval_mean_seconds: Option<f64>,
    /// Their standard deviation; `None` before three updates.
    pub interval_deviation_seconds: Option<f64>,
    /// What the source was asked for, and sent: update cost on its side.
    pub cost: Cost,
}

impl Updates {
    /// What is known of a source, its last observation having been `status`.
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
            cost: history.cost.into(),
        }
    }
}

/// An expiry sweep that would take more than its share and therefore waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Objects that would go.
    pub would_expire: u64,
    /// Of so many.
    pub of: u64,
}

/// One source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// Its address.
    pub url: String,
    /// `gatherer`, `broker`, `oai` or `replica`.
    pub kind: String,
    /// λ: estimated rate of change, changes per second; `None` before a second pull.
    pub rate_per_second: Option<f64>,
    /// The same per day.
    pub rate_per_day: Option<f64>,
    /// N: live objects at the source, as it last said, at most as many as it held here and brought.
    pub elements: Option<u64>,
    /// The interval that the policy gives it, seconds; `None` before its first pull.
    pub interval_seconds: Option<f64>,
    /// What a pull costs, in requests: 1, and 1 more for each second that is not its changes'; `None`
    /// before a second pull.
    pub pull_cost: Option<f64>,
    /// How long a pull takes, seconds; decayed mean.
    pub pull_seconds: Option<f64>,
    /// When it is due next, Unix milliseconds.
    pub next_due_ms: Option<u64>,
    /// Whether a pull is under way.
    pub pulling: bool,
    /// The last pull that succeeded.
    pub last_pull: Option<LastPull>,
    /// Pulls that succeeded since this process started.
    pub pulls: u64,
    /// Measured freshness; `None` before a second pull.
    pub freshness: Option<f64>,
    /// How it changes, as its pulls have found.
    pub updates: Updates,
    /// Whether a long poll is held open.
    pub follow: bool,
    /// How its hub tells of changes; `None` where that is not asked for.
    #[serde(default)]
    pub push: Option<Pushing>,
    /// What went wrong.
    pub errors: Errors,
    /// Why it waits for an administrator's `confirm`; `None` if it does not.
    pub held: Option<String>,
    /// Objects of the collection that this source holds.
    pub objects: u64,
    /// What was odd at its last pull and lost nothing, or named what it left out.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// How a source's hub tells of changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pushing {
    /// `active`, `asking`, or `failed`.
    pub state: String,
    /// Until when it is active, Unix milliseconds; it is renewed before that.
    pub until_ms: Option<u64>,
    /// Why it is not.
    pub problem: Option<String>,
    /// Notifications believed, since the start.
    pub notices: u64,
    /// Those without a signature.
    pub unsigned: u64,
    /// Those with another's.
    pub forged: u64,
}

/// A pull that succeeded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastPull {
    /// When it ended, Unix milliseconds.
    pub at_ms: u64,
    /// `delta` or `snapshot`.
    pub kind: String,
    /// Changes that it brought.
    pub changes: u64,
    /// Compressed bytes that it took.
    pub bytes: u64,
    /// How long it took, seconds; a long poll's wait is included.
    pub took_seconds: f64,
}

/// What went wrong with a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Pulls that failed since this process started.
    pub count: u64,
    /// The same by kind: `unreachable`, `too_slow`, `broken_off`, `refused`, `not_a_feed`,
    /// `other_format`, `corrupt`, `over_limit`, `wrong_epoch`, `loss`, `tokens`, `ours`; those that
    /// occurred.
    pub by_kind: BTreeMap<String, u64>,
    /// Failures since the last success.
    pub in_a_row: u32,
    /// The last failure, even if a success came after it.
    pub last: Option<String>,
    /// When that was, Unix milliseconds.
    pub last_ms: Option<u64>,
    /// How long the source is left alone after the last failure, seconds; 0 when it answers.
    pub back_off_seconds: f64,
}
