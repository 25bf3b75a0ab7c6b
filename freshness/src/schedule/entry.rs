//! One source of a schedule.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};

use super::{FOLLOW_IDLE_MS, Found, Rules, Settings, millis, seconds};
use crate::interval::{Slot, Source, Workload};
use crate::metrics::{Measured, Span};
use crate::rate::{self, Estimate, Estimator, Gain, Pull, State};

/// Share of the shortest interval that a sample of the rate has to cover: a little slack, for timers
/// and rounding must not make a scheduled pull wait for the next.
const POOL_SHARE: f64 = 0.9;

/// Lowest rate that the policy sees, changes a second (about one in 30 years).
const RATE_MIN: f64 = 1e-9;

/// What is known of a source over a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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
}

impl Known {
    pub(super) fn was_pulled(&self) -> bool {
        self.last_ms.is_some()
    }

    pub(super) fn elements(&self) -> Option<u64> {
        self.elements
    }

    pub(super) fn freshness(&self) -> Option<f64> {
        self.measured.freshness()
    }

    pub(super) fn watched_secs(&self) -> f64 {
        self.watched_secs
    }

    /// Moves what is remembered of the wall clock.
    pub(super) fn handle_jump(&mut self, moved: impl Fn(u64) -> u64) {
        self.last_ms = self.last_ms.map(moved);
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) rules: Rules,
    pub(super) known: Known,
    /// In the planner, once there is a rate.
    pub(super) slot: Option<Slot>,
    pub(super) added_ms: u64,
    /// A followed source rests until then.
    pub(super) rest_until_ms: u64,
    pub(super) failures: u32,
    pub(super) back_off_ms: u64,
    pub(super) retry_ms: u64,
    pub(super) pulling: bool,
    /// The clock was set while it is being pulled.
    pub(super) untimed: bool,
    pub(super) asked: bool,
    pub(super) due_ms: Option<u64>,
}

impl Entry {
    pub(super) fn new(rules: Rules, known: Known, now_ms: u64) -> Self {
        Self {
            rules,
            known,
            slot: None,
            added_ms: now_ms,
            rest_until_ms: now_ms,
            failures: 0,
            back_off_ms: 0,
            retry_ms: 0,
            pulling: false,
            untimed: false,
            asked: false,
            due_ms: None,
        }
    }

    /// When the source is due: by request, after a failure, or by its interval; `None` while it is
    /// being pulled.
    pub(super) fn due(&self, interval_secs: Option<f64>, now_ms: u64) -> Option<u64> {
        if self.pulling {
            return None;
        }
        if self.asked {
            return Some(now_ms);
        }
        // A clock that was set back must not put off what is due by as much.
        let at = if 0 < self.failures {
            self.retry_ms.min(now_ms + self.back_off_ms)
        } else if let (Some(last_ms), Some(interval)) = (self.known.last_ms, interval_secs) {
            if self.rules.follow {
                self.rest_until_ms.min(now_ms + FOLLOW_IDLE_MS)
            } else {
                last_ms.min(now_ms).saturating_add(millis(interval))
            }
        } else {
            self.added_ms.min(now_ms)
        };
        Some(match self.rules.window {
            // Overdue inside the hours: keep the due time, it says who has waited longest.
            Some(window) if at < now_ms && window.admit(now_ms) == now_ms => at,
            Some(window) => window.admit(at.max(now_ms)),
            None => at,
        })
    }

    /// The rate as far as it is known.
    pub(super) fn estimate(&self, settings: Settings) -> Option<Estimate> {
        self.estimator(settings).estimate()
    }

    /// The source as the policy weighs it, once there is a rate.
    pub(super) fn source(&self, settings: Settings) -> Option<Source> {
        let rate = self.estimate(settings)?.careful().max(RATE_MIN);
        let elements = self.known.elements.unwrap_or_default().max(1);
        Some(Source {
            workload: Workload { rate, elements },
            pull_secs: self.known.took_secs,
            weight: self.rules.weight,
            ..Source::new(rate, elements, self.rules.bounds)
        })
    }

    /// Updates what is known of the source.
    pub(super) fn learn(&mut self, found: Found, settings: Settings, now_ms: u64) {
        let mut estimator = self.estimator(settings);
        let known = &mut self.known;
        known.elements = Some(found.elements);
        let untimed = std::mem::take(&mut self.untimed);
        let last = known.last_ms.replace(if untimed { now_ms } else { found.as_of_ms });
        let Some(last) = last.filter(|_| !found.full && !untimed) else {
            // Whatever happened meanwhile came in one lump: nothing to learn but N.
            estimator.handle_restart();
            known.rate = estimator.state();
            return;
        };
        let secs = seconds(found.as_of_ms.saturating_sub(last));
        let took_secs = seconds(now_ms.saturating_sub(found.as_of_ms));
        known.took_secs += settings.gain * (took_secs - known.took_secs);
        known.measured.handle_span(
            Span {
                secs,
                elements: found.elements,
                changes: found.changes,
                age_secs: found.age_secs,
                age_secs_max: seconds(now_ms.saturating_sub(last)),
            },
            settings.gain,
        );
        known.watched_secs += secs;
        // Ages count to the end of the pull, the estimator's to when it asked.
        let age_secs = (found.age_secs - took_secs).max(0.0);
        estimator.handle(Pull {
            updates: found.changes,
            elements: Some(found.elements),
            elapsed_secs: secs,
            ages_secs: Some(age_secs * found.changes as f64),
        });
        known.rate = estimator.state();
    }

    fn estimator(&self, settings: Settings) -> Estimator {
        let rules = rate::Rules {
            method: settings.method,
            gain: Gain::Settling(settings.gain),
            sample_secs_min: self.rules.bounds.settled().interval_min * POOL_SHARE,
        };
        // The clock of the first pull is `last_ms`: no pull is the first to the estimator.
        Estimator::with_rules(
            rules,
            State { pulls: self.known.rate.pulls.max(1), ..self.known.rate },
        )
    }
}
