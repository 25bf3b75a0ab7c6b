//! Learned state of a source: a note over restarts, and a compact form in memory.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};

use super::cost::{CostLine, PullMeans};
use super::narrowed;
use crate::metrics::Measured;
use crate::rate::State;

/// A source's learned state, to store over a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceNote {
    /// The estimate of the rate.
    rate: State,
    /// Total time for which the source has been watched, seconds.
    watched_secs: f64,
    /// N, as the source last said.
    elements: Option<u64>,
    /// Start of the last successful pull.
    last_ms: Option<u64>,
    /// Measured freshness.
    measured: Measured,
    /// Duration of pulls, from request to end, seconds; decayed mean.
    took_secs: f64,
    /// Changes of pulls; decayed mean.
    took_changes: Option<f64>,
    /// Part of `took_secs` that is not for changes; a stored number may be any.
    pub(super) overhead_secs: f64,
    /// Number of pulls that were counted.
    pulls: u32,
    /// Number of these pulls that brought something.
    pulls_changed: u32,
    /// Total time between the counted pulls, seconds; if absent, all the time watched.
    counted_secs: Option<f64>,
}

impl SourceNote {
    /// Returns the note without the time of the last pull, for a source that has been read further
    /// since. The next pull starts the clock, and is no sample.
    #[must_use]
    pub fn read_further(self) -> Self {
        Self { last_ms: None, ..self }
    }
}

/// Compact learned state: measured and averaged numbers have seven digits, times to which small
/// steps are added have all digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learned {
    pub(super) watched_secs: f64,
    pending_secs: f64,
    /// [`NEVER`] before the first pull.
    last_ms: u64,
    /// [`UNKNOWN`] before the source has stated it.
    elements: u64,
    /// Below 0 if there is no rate.
    rate: f32,
    sure_secs: f32,
    memory_secs: f32,
    dispersion: f32,
    pending_updates: u32,
    /// Share of `pending_secs` that is exposure, 0 to 1.
    pending_exposure_share: f32,
    pub(super) measured: Measured,
    pub(super) took: PullMeans,
    /// Number of counted pulls.
    pulls: u16,
    /// Number of these pulls that brought something.
    pulls_changed: u16,
    /// Mean time before each counted pull.
    gap_secs: f32,
}

/// Maximum number of pulls that are counted; if there are more, half of them are forgotten.
const PULLS_MAX: u16 = u16::MAX;

/// Value of `last_ms` before the first pull.
const NEVER: u64 = u64::MAX;
/// Value of `elements` before the source has stated it.
const UNKNOWN: u64 = u64::MAX;

impl Learned {
    /// Makes the state from a note, whose numbers may be any.
    pub(super) fn new(known: &SourceNote) -> Self {
        let watched_secs = known.watched_secs;
        let watched_secs = if watched_secs.is_finite() { watched_secs.max(0.0) } else { 0.0 };
        // Older notes count no pulls, or all pulls since the source was first watched.
        let counted_secs = known.counted_secs.unwrap_or(watched_secs).max(0.0).min(watched_secs);
        let of = known.pulls.max(PULLS_MAX.into());
        let few = |it: u32| u64::from(it) * u64::from(PULLS_MAX) / u64::from(of);
        let [pulls, pulls_changed] = [known.pulls, known.pulls_changed.min(known.pulls)]
            .map(|it| u16::try_from(few(it)).unwrap_or(PULLS_MAX));
        let mut learned = Self {
            watched_secs,
            last_ms: known.last_ms.map_or(NEVER, |it| it.min(NEVER - 1)),
            elements: known.elements.map_or(UNKNOWN, |it| it.min(UNKNOWN - 1)),
            measured: known.measured.checked(),
            took: PullMeans::new(known.took_secs, known.took_changes),
            pulls,
            pulls_changed,
            gap_secs: narrowed(counted_secs / f64::from(known.pulls.max(1))),
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

    pub(super) fn note(&self, line: &CostLine) -> SourceNote {
        SourceNote {
            rate: self.state(),
            watched_secs: self.watched_secs,
            elements: self.elements(),
            last_ms: self.last_ms(),
            measured: self.measured,
            took_secs: self.took.secs(),
            took_changes: self.took.changes(),
            overhead_secs: self.took.overhead_secs(line),
            pulls: self.pulls.into(),
            pulls_changed: self.pulls_changed.into(),
            counted_secs: Some(self.counted().0),
        }
    }

    pub(super) fn last_ms(&self) -> Option<u64> {
        (self.last_ms != NEVER).then_some(self.last_ms)
    }

    pub(super) fn set_last_ms(&mut self, last_ms: u64) {
        self.last_ms = last_ms.min(NEVER - 1);
    }

    pub(super) fn elements(&self) -> Option<u64> {
        (self.elements != UNKNOWN).then_some(self.elements)
    }

    pub(super) fn set_elements(&mut self, elements: u64) {
        self.elements = elements.min(UNKNOWN - 1);
    }

    pub(super) fn count(&mut self, secs: f64, changes: u64) {
        self.watched_secs += secs;
        if self.pulls == PULLS_MAX {
            (self.pulls, self.pulls_changed) = (self.pulls / 2, self.pulls_changed / 2);
        }
        self.pulls += 1;
        self.pulls_changed += u16::from(0 < changes);
        let gap_secs = f64::from(self.gap_secs);
        self.gap_secs = narrowed(gap_secs + (secs - gap_secs) / f64::from(self.pulls));
    }

    /// Returns the time over which pulls were counted, seconds; their number; and the number of
    /// those that brought something.
    pub(super) fn counted(&self) -> (f64, u64, u64) {
        let secs = f64::from(self.gap_secs) * f64::from(self.pulls);
        (secs, self.pulls.into(), self.pulls_changed.into())
    }

    /// Returns the estimator's state. `last_ms` starts its clock, so the next pull is not its
    /// first.
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

    /// Checks that the note `text` becomes `expected` when read and written.
    fn check(text: &str, expected: &str) {
        let known: SourceNote = serde_json::from_str(text).unwrap();
        let again = Learned::new(&known).note(&CostLine::default());
        assert_eq!(again, serde_json::from_str(expected).unwrap(), "{text}");
    }

    #[test]
    fn older_notes_are_read_and_senseless_numbers_corrected() {
        let rate = r#"{"rate":0.5,"sure_secs":8,"memory_secs":4,"pending_updates":3,
            "pending_secs":2,"pending_exposure_secs":1,"pulls":1,"dispersion":1}"#;
        let measured = r#"{"stale":1,"all":4}"#;
        // An older note, without the cost of pulls and their count.
        let before = format!(
            r#"{{"rate":{rate},"watched_secs":9,"elements":7,"last_ms":6,"measured":{measured},
            "took_secs":0.5}}"#
        );
        // Time watched without counted pulls does not count for later pulls.
        check(&before, &before.replace("0.5}", r#"0.5,"overhead_secs":0.5,"counted_secs":0}"#));
        check(
            "{}",
            r#"{"rate":{"rate":null,"sure_secs":0,"memory_secs":0,"pending_updates":0,
            "pending_secs":0,"pending_exposure_secs":0,"pulls":1,"dispersion":0},"counted_secs":0}"#,
        );
        check(
            &before
                .replace(r#""watched_secs":9"#, r#""watched_secs":-9,"pulls":2,"pulls_changed":5"#),
            &before
                .replace(r#""watched_secs":9"#, r#""watched_secs":0,"pulls":2,"pulls_changed":2"#)
                .replace("0.5}", r#"0.5,"overhead_secs":0.5,"counted_secs":0}"#),
        );
        // A note that counts over all the time watched, and one with too many pulls.
        check(
            &before.replace("0.5}", r#"0.5,"pulls":3,"pulls_changed":1}"#),
            &before.replace(
                "0.5}",
                r#"0.5,"overhead_secs":0.5,"pulls":3,"pulls_changed":1,"counted_secs":9}"#,
            ),
        );
        let before = before.replace(r#""watched_secs":9"#, r#""watched_secs":99999"#);
        let many = r#""pulls":131070,"pulls_changed":65536,"counted_secs":65535"#;
        let half = r#""pulls":65535,"pulls_changed":32768,"counted_secs":32767.5"#;
        check(
            &before.replace("0.5}", &format!("0.5,{many}}}")),
            &before.replace("0.5}", &format!(r#"0.5,"overhead_secs":0.5,{half}}}"#)),
        );
    }
}
