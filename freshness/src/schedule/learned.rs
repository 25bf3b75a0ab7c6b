//! What is known of a source, as it is remembered and as it is kept.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};

use super::cost::{Line, Took};
use super::narrowed;
use crate::metrics::Measured;
use crate::rate::State;

/// What is known of a source over a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// The estimate of the rate.
    rate: State,
    /// How long the source has been watched in all, seconds.
    watched_secs: f64,
    /// N, as the source last said.
    elements: Option<u64>,
    /// When the last successful pull asked.
    last_ms: Option<u64>,
    /// Measured freshness.
    measured: Measured,
    /// How long pulls take, from asking to the end, seconds; decayed mean.
    took_secs: f64,
    /// How many changes they bring; decayed mean.
    took_changes: Option<f64>,
    /// How much of `took_secs` is no change's.
    overhead_secs: f64,
    /// Pulls in the time watched.
    pulls: u32,
    /// Of those, pulls that brought something.
    pulls_changed: u32,
}

impl Known {
    /// How much of the time that pulls take is no change's, seconds; any number.
    pub(super) fn overhead_secs(&self) -> f64 {
        self.overhead_secs
    }
}

/// The same, as small as it can be kept: numbers that are measured and averaged anyway to seven digits,
/// those that small steps are added to (times) with all of theirs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learned {
    pub(super) watched_secs: f64,
    pending_secs: f64,
    /// [`NEVER`] before the first pull.
    last_ms: u64,
    /// [`UNKNOWN`] before the source said.
    elements: u64,
    /// Below 0 where there is none.
    rate: f32,
    sure_secs: f32,
    memory_secs: f32,
    dispersion: f32,
    pending_updates: u32,
    /// What of `pending_secs` is exposure, 0 to 1.
    pending_exposure_share: f32,
    pub(super) measured: Measured,
    pub(super) took: Took,
    pub(super) pulls: u32,
    pub(super) pulls_changed: u32,
}

/// The end of time, at which nothing is pulled.
const NEVER: u64 = u64::MAX;
/// More elements than there are.
const UNKNOWN: u64 = u64::MAX;

impl Learned {
    /// From stored numbers, which may be any.
    pub(super) fn new(known: &Known) -> Self {
        let watched_secs = known.watched_secs;
        let mut learned = Self {
            watched_secs: if watched_secs.is_finite() { watched_secs.max(0.0) } else { 0.0 },
            last_ms: known.last_ms.map_or(NEVER, |it| it.min(NEVER - 1)),
            elements: known.elements.map_or(UNKNOWN, |it| it.min(UNKNOWN - 1)),
            measured: known.measured.checked(),
            took: Took::new(known.took_secs, known.took_changes),
            pulls: known.pulls,
            pulls_changed: known.pulls_changed.min(known.pulls),
            pending_secs: 0.0,
            rate: -1.0,
            sure_secs: 0.0,
            memory_secs: 0.0,
            dispersion: 0.0,
            pending_updates: 0,
            pending_exposure_share: 0.0,
        };
        learned.set_state(known.rate.checked());
        learned
    }

    /// What is to be remembered.
    pub(super) fn known(&self, line: &Line) -> Known {
        Known {
            rate: self.state(),
            watched_secs: self.watched_secs,
            elements: self.elements(),
            last_ms: self.last_ms(),
            measured: self.measured,
            took_secs: self.took.secs(),
            took_changes: self.took.changes(),
            overhead_secs: self.took.overhead_secs(line),
            pulls: self.pulls,
            pulls_changed: self.pulls_changed,
        }
    }

    /// When the last successful pull asked.
    pub(super) fn last_ms(&self) -> Option<u64> {
        (self.last_ms != NEVER).then_some(self.last_ms)
    }

    pub(super) fn set_last_ms(&mut self, last_ms: u64) {
        self.last_ms = last_ms.min(NEVER - 1);
    }

    /// N, as the source last said.
    pub(super) fn elements(&self) -> Option<u64> {
        (self.elements != UNKNOWN).then_some(self.elements)
    }

    pub(super) fn set_elements(&mut self, elements: u64) {
        self.elements = elements.min(UNKNOWN - 1);
    }

    /// Counts a pull.
    pub(super) fn count(&mut self, secs: f64, changes: u64) {
        self.watched_secs += secs;
        if self.pulls < u32::MAX {
            self.pulls += 1;
            self.pulls_changed += u32::from(0 < changes);
        }
    }

    /// The estimate of the rate. The clock of the first pull is `last_ms`: no pull is the first to it.
    pub(super) fn state(&self) -> State {
        State {
            rate: (0.0 <= self.rate).then(|| f64::from(self.rate)),
            sure_secs: self.sure_secs.into(),
            memory_secs: self.memory_secs.into(),
            pending_updates: self.pending_updates.into(),
            pending_secs: self.pending_secs,
            pending_exposure_secs: f64::from(self.pending_exposure_share) * self.pending_secs,
            pulls: 1,
            dispersion: self.dispersion,
        }
    }

    pub(super) fn set_state(&mut self, state: State) {
        let share = state.pending_exposure_secs / state.pending_secs;
        self.pending_secs = state.pending_secs;
        self.rate = state.rate.filter(|it| 0.0 <= *it).map_or(-1.0, narrowed);
        self.sure_secs = narrowed(state.sure_secs);
        self.memory_secs = narrowed(state.memory_secs);
        self.dispersion = state.dispersion;
        self.pending_updates = u32::try_from(state.pending_updates).unwrap_or(u32::MAX);
        self.pending_exposure_share = if share.is_finite() { narrowed(share) } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is remembered of what was read from `text`.
    fn check(text: &str, expected: &str) {
        let known: Known = serde_json::from_str(text).unwrap();
        let again = Learned::new(&known).known(&Line::default());
        assert_eq!(again, serde_json::from_str(expected).unwrap(), "{text}");
    }

    #[test]
    fn notes_of_before_are_read_and_foreign_ones_made_sensible() {
        let rate = r#"{"rate":0.5,"sure_secs":8,"memory_secs":4,"pending_updates":3,
            "pending_secs":2,"pending_exposure_secs":1,"pulls":1,"dispersion":1}"#;
        let measured = r#"{"stale":1,"all":4}"#;
        // Without what pulls cost and how many there were.
        let before = format!(
            r#"{{"rate":{rate},"watched_secs":9,"elements":7,"last_ms":6,"measured":{measured},
            "took_secs":0.5}}"#
        );
        check(&before, &before.replace("0.5}", r#"0.5,"overhead_secs":0.5}"#));
        check(
            "{}",
            r#"{"rate":{"rate":null,"sure_secs":0,"memory_secs":0,"pending_updates":0,
            "pending_secs":0,"pending_exposure_secs":0,"pulls":1,"dispersion":0}}"#,
        );
        check(
            &before
                .replace(r#""watched_secs":9"#, r#""watched_secs":-9,"pulls":2,"pulls_changed":5"#),
            &before
                .replace(r#""watched_secs":9"#, r#""watched_secs":0,"pulls":2,"pulls_changed":2"#)
                .replace("0.5}", r#"0.5,"overhead_secs":0.5}"#),
        );
    }
}
