//! What a schedule and its shell tell each other of pulls, and what it shows of itself.
//!
//! Sans-I/O.

use crate::interval::Outcome;

use super::SourceId;

/// A pull to perform now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The source.
    pub source: SourceId,
    /// Whether to hold a long poll (a followed source).
    pub wait: bool,
    /// Whether it takes a slot, to be free again when the pull has ended.
    pub slot: bool,
}

/// What a successful pull found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Everything was transferred anew: says nothing about how fast the source changes.
    pub full: bool,
    /// Updates and deletes found.
    pub changes: u64,
    /// Their mean age when the pull ended, seconds; any value if there are none.
    pub age_secs: f64,
    /// How many of them came by themselves before the pull, which took no longer for them.
    pub sent: u64,
    /// The objects that changed, where it is known of each when it first did; without, every change counts
    /// as that of another object, and freshness as measured is too low by those that changed twice; or too
    /// high, if the source tells of each object once and when it last changed.
    pub firsts: Option<Firsts>,
    /// Live objects at the source, N. The plan weighs the source by it from now on: if the source may not
    /// be believed, hand in what it is known to have.
    pub elements: u64,
    /// How far the pull can have seen: when it asked, or when a long poll was answered.
    pub as_of_ms: u64,
    /// Whether a long poll came back before its time without anything new.
    pub early: bool,
}

/// The objects that a pull found changed, each from its first change on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Firsts {
    /// How many they are.
    pub objects: u64,
    /// Mean time from the first change of each to the end of the pull, seconds.
    pub age_secs: f64,
}

/// What status says of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct View {
    /// λ, changes per second.
    pub rate: Option<f64>,
    /// N.
    pub elements: Option<u64>,
    /// Interval from one pull to the next, seconds; `None` of a followed source.
    pub interval_secs: Option<f64>,
    /// Next due; `None` while a pull is under way.
    pub due_ms: Option<u64>,
    /// Whether a pull is under way.
    pub pulling: bool,
    /// Measured freshness.
    pub freshness: Option<f64>,
    /// How long a pull takes, seconds; decayed mean.
    pub took_secs: Option<f64>,
    /// What a pull costs, in requests, at least 1: the request, and the time that is not its changes'
    /// ([`PULL_COST_SECS`](super::PULL_COST_SECS)).
    pub pull_cost: Option<f64>,
    /// Failures since the last success, up to 255.
    pub failures: u32,
    /// Wait after the last failure, milliseconds; 0 when there was none.
    pub back_off_ms: u64,
}

/// What is expected of the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Whether the policy's aim is met within the bounds.
    pub outcome: Outcome,
    /// Freshness of the whole, weighted: where the outcome is not [`Met`](Outcome::Met), the attainable.
    pub freshness: f64,
    /// Pulls a second of all sources together.
    pub pulls: f64,
    /// Sources at their shortest interval.
    pub shortest: usize,
    /// Sources at their longest interval.
    pub longest: usize,
    /// Sources whose bounds contradict each other: their shortest interval holds, the longest is not
    /// kept. Those without a known rate count, too.
    pub contradictory: usize,
}
