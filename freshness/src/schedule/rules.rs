//! Settings of a schedule, and rules of each source.
//!
//! Sans-I/O.

use crate::interval::{Bounds, Model, Policy};
use crate::rate::{Gain, Method};
use crate::syndication::Syndication;

use super::Window;

/// Settings of the schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The policy of intervals.
    pub policy: Policy,
    /// The model of staleness between pulls.
    pub model: Model,
    /// The method of rate estimation.
    pub method: Method,
    /// Least gain g of the rate estimator, above 0 and up to 1.
    pub gain: f64,
    /// Maximum number of pulls that may begin in any minute, long polls of followed sources
    /// included; at least 1. If more are due, followed sources and the others take turns.
    pub pulls_per_minute_max: u32,
}

/// Rules of one source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Bounds of its interval.
    pub bounds: Bounds,
    /// Weight of its freshness relative to the others.
    pub weight: f64,
    /// Whether it is followed with long polls: it is then taken as fresh, and the policy plans no
    /// pulls of it. Of its bounds only the shortest interval matters: it limits the pause between
    /// long polls.
    pub follow: bool,
    /// Hours in which it may be pulled; `None` for all.
    pub window: Option<Window>,
    /// The rule that decides how often it is pulled.
    pub pace: Pace,
    /// Whether the source lists each element once, however often it changed, with the time of its
    /// last change (as OAI-PMH does). Its rate is then estimated by [`Method::Datestamps`],
    /// whatever the schedule's method.
    pub datestamps: bool,
}

/// The rule that decides how often a source is pulled, within its bounds.
///
/// At any pace, the policy leaves to the other sources what this one's staleness leaves of the
/// allowed staleness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// The policy.
    #[default]
    Planned,
    /// The source's updates: once in their mean interval, as learned
    /// ([`interval_of_pulls`](crate::expect::interval_of_pulls); Liu's "best estimation"). Before
    /// the first update, its interval is the time that it has been watched.
    BestEstimation,
    /// The source's own schedule: [`SYNDICATION_PAUSE_SECS`](super::SYNDICATION_PAUSE_SECS) after
    /// each announced update.
    Syndication(Syndication),
}

impl Settings {
    /// Returns the gain, clamped to its range.
    pub(super) fn gain(&self) -> f64 {
        Gain::Fixed(self.gain).value()
    }
}

impl Rules {
    /// Returns the rules of a source that is pulled by the policy, at any hour, with the weight 1.
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
