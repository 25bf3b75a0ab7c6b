//! `[freshness]`: the policy for the intervals between pulls.
//!
//! Sans-I/O.

use std::ops::RangeInclusive;
use std::time::Duration;

use freshness::interval::{Bounds, Model, Policy};
use freshness::rate::Method;
use freshness::schedule::Settings;
use settings::Table;

use crate::status::Aim;
use crate::status::forecast::HOUR_SECS;

/// The policies by the names that settings and status use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyName {
    /// The intervals that reach `theta` at the lowest cost (Adly eq. 3).
    Oap,
    /// One interval for all sources that reaches `theta` (Adly §5.1).
    Uap,
    /// For each source, the interval at which this source alone reaches `theta` (Adly §5.3).
    Ioap,
    /// One interval for all sources (Liu's uniform model; Adly §5.2).
    Fixed,
    /// The intervals of the lowest sum of the costs of pulls and of staleness (Adly §6).
    CombinedCost,
    /// The intervals of the best freshness for a given number of pulls an hour.
    Budget,
    /// For each source, the learned mean interval between its updates (Liu §6).
    BestEstimation,
}

impl PolicyName {
    /// The names of all policies, in the order in which they are shown.
    pub const NAMES: [&str; 7] =
        ["oap", "uap", "ioap", "fixed", "combined_cost", "budget", "best_estimation"];
    const ALL: [Self; 7] = [
        Self::Oap,
        Self::Uap,
        Self::Ioap,
        Self::Fixed,
        Self::CombinedCost,
        Self::Budget,
        Self::BestEstimation,
    ];

    /// Returns the policy with the given name; `None` if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns the policy's name.
    pub fn name(self) -> &'static str {
        // In the order of the variants.
        Self::NAMES[self as usize]
    }

    /// Returns the name of the setting that has the policy's aim; `None` for `best_estimation`.
    pub(crate) fn setting(self) -> Option<&'static str> {
        Some(match self {
            Self::Oap | Self::Uap | Self::Ioap => "theta",
            Self::Fixed => "interval",
            Self::CombinedCost => "price",
            Self::Budget => "pulls_per_hour",
            Self::BestEstimation => return None,
        })
    }
}

/// Settings for the intervals between pulls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Freshness {
    /// The policy; it uses at most one of the next four settings.
    pub policy: PolicyName,
    /// The freshness to keep, from 0 up to but not including 1.
    pub theta: f64,
    /// The interval of all sources, seconds.
    pub interval: f64,
    /// Price of an hour in which everything is stale, in pulls.
    pub price: f64,
    /// Pulls an hour, of all sources together.
    pub pulls_per_hour: f64,
    /// Model of how the share of stale elements grows between pulls.
    pub model: Model,
    /// Gain of the rate estimator, above 0 and up to 1.
    pub gain: f64,
    /// Shortest interval between scheduled pulls of one source, seconds, above 0.
    pub interval_min: f64,
    /// Longest interval between pulls of one source, seconds.
    pub interval_max: f64,
    /// Maximum number of pulls that may begin in any minute.
    pub pulls_per_minute_max: u32,
}

impl Freshness {
    /// Default shortest interval, seconds.
    pub const INTERVAL_MIN: f64 = 10.0;
    /// Default maximum number of pulls in any minute.
    pub const PULLS_PER_MINUTE_MAX: u32 = 600;
    /// Highest θ that the settings accept: the cost is proportional to 1 / (1 − θ).
    pub const THETA_MAX: f64 = 0.9999;
    /// Lowest gain that the settings accept: with a lower gain the estimate hardly changes.
    pub const GAIN_MIN: f64 = 0.01;
    /// Highest price and budget that the settings accept.
    pub const PULLS_MAX: f64 = 1e9;
    /// The intervals that the settings accept: 100 milliseconds to a year.
    pub const INTERVALS: RangeInclusive<Duration> =
        Duration::from_millis(100)..=Duration::from_secs(365 * 86_400);

    pub(super) fn read(table: &Table<'_>) -> Self {
        let own = Self::default();
        let seconds = |key| Some(table.duration_within(key, Self::INTERVALS)?.as_secs_f64());
        let policy = table.choice("policy", &PolicyName::NAMES).and_then(PolicyName::by_name);
        let model = match table.choice("model", &["linear", "poisson"]) {
            Some("linear") => Model::Linear,
            _ => own.model,
        };
        let cap = table.integer("pulls_per_minute_max", 1..=1_000_000);
        let read = Self {
            policy: policy.unwrap_or(own.policy),
            theta: table.float("theta", 0.0..=Self::THETA_MAX).unwrap_or(own.theta),
            interval: seconds("interval").unwrap_or(own.interval),
            price: table.float("price", 0.0..=Self::PULLS_MAX).unwrap_or(own.price),
            pulls_per_hour: table
                .float("pulls_per_hour", 0.0..=Self::PULLS_MAX)
                .unwrap_or(own.pulls_per_hour),
            model,
            gain: table.float("gain", Self::GAIN_MIN..=1.0).unwrap_or(own.gain),
            interval_min: seconds("interval_min").unwrap_or(own.interval_min),
            interval_max: seconds("interval_max").unwrap_or(own.interval_max),
            pulls_per_minute_max: cap
                .and_then(|it| u32::try_from(it).ok())
                .unwrap_or(own.pulls_per_minute_max),
        };
        for key in ["theta", "interval", "price", "pulls_per_hour"] {
            let own = read.policy.setting();
            if table.has(key) && own != Some(key) {
                let message = format!("policy {:?} has no {key:?}", read.policy.name());
                let expected = own.map(|own| format!("{own:?} or ")).unwrap_or_default();
                table.mistake(key, message, format!("{expected}nothing"));
            }
        }
        let (min, max) = (read.interval_min, read.interval_max);
        if read.policy == PolicyName::Fixed && min <= max && !(min..=max).contains(&read.interval) {
            let message = format!(
                "interval ({} s) is not within interval_min and interval_max",
                read.interval
            );
            table.mistake("interval", message, format!("{min} s to {max} s, or other bounds"));
        }
        if read.interval_max < read.interval_min {
            let message = format!("interval_max ({max} s) is below interval_min ({min} s)");
            table.mistake("interval_max", message, "the longer of the two");
        }
        read
    }

    /// Returns the aim of the policy; `None` for `best_estimation`.
    pub fn aim(self) -> Option<Aim> {
        let setting = self.policy.setting()?;
        let value = match setting {
            "interval" => self.interval,
            "price" => self.price,
            "pulls_per_hour" => self.pulls_per_hour,
            _ => self.theta,
        };
        Some(Aim { setting: setting.to_owned(), value })
    }

    /// Returns the settings of the schedule.
    pub fn settings(self) -> Settings {
        let Self { theta, interval, .. } = self;
        Settings {
            policy: match self.policy {
                PolicyName::Oap => Policy::Optimal { theta },
                PolicyName::Uap => Policy::Uniform { theta },
                PolicyName::Ioap => Policy::Individual { theta },
                PolicyName::Fixed => Policy::Fixed { interval },
                PolicyName::CombinedCost => Policy::CombinedCost { price: self.price / HOUR_SECS },
                PolicyName::Budget => Policy::Budget { pulls: self.pulls_per_hour / HOUR_SECS },
                // Each source has its own learned interval, so the policy chooses none.
                PolicyName::BestEstimation => Policy::Fixed { interval: self.interval_max },
            },
            model: self.model,
            // Right for feeds, which report every change; repositories use `Method::Datestamps`.
            method: Method::Ewma,
            gain: self.gain,
            pulls_per_minute_max: self.pulls_per_minute_max,
        }
    }

    /// Returns the default bounds of a source's interval.
    pub fn bounds(self) -> Bounds {
        Bounds { interval_min: self.interval_min, interval_max: self.interval_max }
    }
}

impl Default for Freshness {
    fn default() -> Self {
        Self {
            policy: PolicyName::Oap,
            theta: 0.9,
            // A day, which is usual for OAI-PMH harvesters.
            interval: 86_400.0,
            price: 1_000.0,
            pulls_per_hour: 60.0,
            model: Model::Poisson,
            // The value that Adly §4 suggests.
            gain: 0.25,
            interval_min: Self::INTERVAL_MIN,
            interval_max: 86_400.0,
            pulls_per_minute_max: Self::PULLS_PER_MINUTE_MAX,
        }
    }
}
