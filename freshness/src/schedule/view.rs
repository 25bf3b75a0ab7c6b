//! Messages between a schedule and its shell: due pulls, reports of pulls, and views for status.
//!
//! Sans-I/O.

use crate::interval::Outcome;

use super::SourceId;

/// A pull to perform now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The source.
    pub source: SourceId,
    /// Whether to make the pull a long poll (of a followed source).
    pub wait: bool,
    /// Whether the pull takes a slot; false for a followed source.
    pub slot: bool,
}

/// Report of a successful pull.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PullReport {
    /// Whether everything was transferred again; such a pull says nothing about the change rate.
    pub full: bool,
    /// Number of updates and deletes found.
    pub changes: u64,
    /// Mean age of these changes when the pull ended, seconds; any value if there are none.
    pub age_secs: f64,
    /// The changed objects, if the time of each one's first change is known. If `None`, every
    /// change is taken as one of another object. Measured freshness is then too low because of
    /// objects that changed twice, or too high if the source lists each object once with its last
    /// change.
    pub first_changes: Option<FirstChanges>,
    /// Number of live objects at the source, N, by which the plan weighs the source from now on. If
    /// the source cannot be trusted, report the number of its objects that are known.
    pub elements: u64,
    /// Time up to which the pull can have seen changes: its start, or the answer of a long poll.
    pub as_of_ms: u64,
    /// Whether a long poll was answered before its time without anything new.
    pub early: bool,
}

/// The changed objects of a pull, each from its first change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstChanges {
    /// Number of the objects.
    pub objects: u64,
    /// Mean time from the first change of each to the end of the pull, seconds.
    pub age_secs: f64,
}

/// View of one source for status.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct View {
    /// λ, changes per second.
    pub rate: Option<f64>,
    /// N.
    pub elements: Option<u64>,
    /// Interval from one pull to the next, seconds; `None` for a followed source.
    pub interval_secs: Option<f64>,
    /// Next due time; `None` while a pull is under way.
    pub due_ms: Option<u64>,
    /// Whether a pull is under way.
    pub pulling: bool,
    /// Measured freshness.
    pub freshness: Option<f64>,
    /// Duration of a pull, seconds; decayed mean.
    pub took_secs: Option<f64>,
    /// Cost of a pull, in requests, at least 1: the request, and its time without the time of its
    /// changes ([`PULL_COST_SECS`](super::PULL_COST_SECS)).
    pub pull_cost: Option<f64>,
    /// Number of failures since the last success, up to 127.
    pub failures: u32,
    /// Wait after the last failure, milliseconds; 0 after a success.
    pub back_off_ms: u64,
}

/// Expected effects of the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Whether the policy's aim is met within the bounds.
    pub outcome: Outcome,
    /// Weighted freshness of all; the attainable one if the outcome is not [`Met`](Outcome::Met).
    pub freshness: f64,
    /// Pulls a second of all sources together.
    pub pulls: f64,
    /// Number of sources at their shortest interval.
    pub shortest: usize,
    /// Number of sources at their longest interval.
    pub longest: usize,
    /// Number of sources whose bounds contradict each other, with or without a known rate: their
    /// shortest interval holds, the longest is ignored.
    pub contradictory: usize,
}
