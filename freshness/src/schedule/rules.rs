//! What a schedule goes by: its own settings, and what is particular to a source.
//!
//! Sans-I/O.

use crate::interval::{Bounds, Model, Policy};
use crate::rate::{Gain, Method};
use crate::syndication::Syndication;

use super::Window;

/// What the schedule goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How intervals follow from workloads.
    pub policy: Policy,
    /// How the share of stale elements grows between pulls.
    pub model: Model,
    /// How updates become a rate.
    pub method: Method,
    /// Least gain g of the rate estimator, above 0 and up to 1.
    pub gain: f64,
    /// Pulls that may begin in any minute, long polls of followed sources included; at least 1. When there
    /// is more to do, followed sources and the others take turns.
    pub pulls_per_minute_max: u32,
}

/// What is particular to one source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Between which intervals it is pulled.
    pub bounds: Bounds,
    /// Weight of its freshness beside the others'.
    pub weight: f64,
    /// Kept in step by long polls: it is taken to be fresh at once, and is in nobody's budget. Of its
    /// bounds only the shortest interval counts, between changes that come in a stream.
    pub follow: bool,
    /// Hours in which it may be pulled; `None` for all.
    pub window: Option<Window>,
    /// Who says how often it is pulled.
    pub pace: Pace,
    /// Whether it tells of each element once, however often that changed, with the time of its last change
    /// (as OAI-PMH does): its rate is then estimated by [`Method::Datestamps`], whatever the schedule goes
    /// by.
    pub datestamps: bool,
}

/// Who says how often a source is pulled, within its bounds.
///
/// Whatever it is, the policy counts how stale the source gets at that pace, and gives the others what is
/// left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// The policy.
    #[default]
    Planned,
    /// The source's updates: once in their mean interval, as learned
    /// ([`interval_of_pulls`](crate::expect::interval_of_pulls); Liu's "best estimation"). Until
    /// there was one, the source is left alone for as long as it has been watched.
    BestEstimation,
    /// The source's own schedule: [`SYNDICATION_PAUSE_SECS`](super::SYNDICATION_PAUSE_SECS) after each time
    /// at which it says to be updated.
    Syndication(Syndication),
}

impl Settings {
    /// The gain, within its range.
    pub(super) fn gain(&self) -> f64 {
        Gain::Fixed(self.gain).value()
    }
}

impl Rules {
    /// A source that is pulled when the policy says, at any hour, and counts as it is large.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            weight: 1.0,
            follow: false,
            window: None,
            pace: Pace::Planned,
            datestamps: false,
        }
    }
}
