//! An entry: one source of a schedule.
//!
//! There may be a million: an entry takes 128 bytes, and with its term in the planner (48) and its
//! positions in the queues (24) a source takes 200. Numbers are stored here with fewer bits than
//! outside.
//!
//! Sans-I/O.

use std::time::Duration;

use super::cost::CostLine;
use super::flags::{Flag, Flags};
use super::learned::{Learned, SourceNote};
use super::{
    FOLLOW_IDLE_MS, FOLLOW_PAUSE_MAX_MS, FOLLOW_PAUSE_MS, FOLLOW_STREAM_MS, FirstChanges, Pace,
    PullReport, RETRY_AFTER_MAX_MS, Rules, SYNDICATION_PAUSE_SECS, Settings, SourceId, Window,
    back_off, millis, narrowed, seconds,
};
use crate::expect::{interval_of_pulls, within};
use crate::interval::{Bounds, Slot, Source, Workload};
use crate::metrics::Span;
use crate::rate::{self, Estimate, Estimator, Gain, Method, Pull};

/// Share of the shortest interval that a sample of the rate must cover. The slack is for timers and
/// rounding: without it, the sample of a scheduled pull might have to wait for the next pull.
const POOL_SHARE: f64 = 0.9;

/// Maximum number of times that a pause or an interval is doubled, up to a million times the first.
const DOUBLINGS_MAX: u8 = 20;

/// Shortest interval of a source that brings everything again and again, seconds, if the source's
/// own is shorter. The interval is doubled each time.
const FULL_SECS_MIN: f64 = 1.0;

/// Bounds of sources that the policy must not pull.
const NEVER: Bounds = Bounds { interval_min: f64::INFINITY, interval_max: f64::INFINITY };

/// Lowest rate that the policy sees, changes a second (about one in 30 years).
const RATE_MIN: f64 = 1e-9;

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) learned: Learned,
    /// Before the first pull, the time at which the source was added; after a failure, the time of
    /// the next try; after a long poll, the end of the pause; during a pull, its start. The end of
    /// an interval is not stored.
    wait_ms: u64,
    pace: Pace,
    /// Shortest and longest interval, seconds.
    interval_min: f32,
    interval_max: f32,
    weight: f32,
    /// Slot in the planner, once there is a rate.
    pub(super) slot: Option<Slot>,
    back_off_ms: u32,
    /// The streak is a number of consecutive pulls: if the last one failed, of failed pulls;
    /// otherwise, for a followed source, of long polls that soon brought something, and for other
    /// sources, of pulls that brought everything.
    flags: Flags,
    window: Option<Window>,
}

impl Entry {
    pub(super) fn new(rules: Rules, known: &SourceNote, now_ms: u64) -> Self {
        let mut entry = Self {
            learned: Learned::new(known),
            wait_ms: now_ms,
            pace: rules.pace,
            interval_min: 0.0,
            interval_max: 0.0,
            weight: 0.0,
            slot: None,
            back_off_ms: 0,
            flags: Flags::default(),
            window: None,
        };
        entry.handle_rules(rules);
        entry
    }

    pub(super) fn handle_rules(&mut self, rules: Rules) {
        let Rules { bounds, weight, follow, window, pace, datestamps } = rules;
        self.interval_min = narrowed(bounds.interval_min);
        self.interval_max = narrowed(bounds.interval_max);
        self.weight = narrowed(weight);
        (self.window, self.pace) = (window, pace);
        if follow != self.is_followed() && !self.flags.has(Flag::Failed) {
            // The streaks of followed and other sources mean different things.
            self.flags.set_streak(0);
        }
        self.flags.set(Flag::Follow, follow);
        self.flags.set(Flag::Datestamps, datestamps);
    }

    /// Returns the bounds of the rules, which may contradict each other.
    pub(super) fn bounds(&self) -> Bounds {
        Bounds { interval_min: self.interval_min.into(), interval_max: self.interval_max.into() }
    }

    /// Returns the weight for the policy; NaN counts as 1.
    pub(super) fn weight(&self) -> f64 {
        if self.weight.is_nan() { 1.0 } else { self.weight.into() }
    }

    pub(super) fn is_followed(&self) -> bool {
        self.flags.has(Flag::Follow)
    }

    pub(super) fn is_pulling(&self) -> bool {
        self.flags.has(Flag::Pulling)
    }

    pub(super) fn failures(&self) -> u32 {
        if self.flags.has(Flag::Failed) { self.flags.streak().into() } else { 0 }
    }

    /// Returns the streak of pulls that did not fail.
    fn successes(&self) -> u8 {
        if self.flags.has(Flag::Failed) { 0 } else { self.flags.streak() }
    }

    pub(super) fn back_off_ms(&self) -> u64 {
        self.back_off_ms.into()
    }

    /// Begins a pull; returns whether the pull is a long poll.
    pub(super) fn begin(&mut self, now_ms: u64) -> bool {
        let asked = self.flags.has(Flag::Requested);
        // After a failure a source must answer at once, to show that it is there again.
        let is_there = self.learned.last_ms().is_some() && self.failures() == 0;
        let waits = self.is_followed() && is_there && !asked;
        for (flag, on) in [
            (Flag::Pulling, true),
            (Flag::Untimed, false),
            (Flag::Requested, false),
            (Flag::Notified, false),
            (Flag::Waiting, waits),
        ] {
            self.flags.set(flag, on);
        }
        self.wait_ms = now_ms;
        waits
    }

    pub(super) fn handle_request(&mut self) {
        let hears = self.is_pulling() && self.is_followed();
        self.flags.set(Flag::Requested, !hears);
    }

    pub(super) fn handle_notice(&mut self) {
        // A long poll notices all changes by itself.
        self.flags.set(Flag::Notified, !self.is_followed());
    }

    pub(super) fn handle_cancel(&mut self) {
        self.flags.set(Flag::Pulling, false);
    }

    pub(super) fn handle_failure(
        &mut self,
        id: SourceId,
        retry_after: Option<Duration>,
        now_ms: u64,
    ) {
        self.flags.set(Flag::Pulling, false);
        let failures = self.failures().saturating_add(1);
        self.flags.set(Flag::Failed, true);
        self.flags.set_streak(u8::try_from(failures).unwrap_or(u8::MAX));
        let asked = retry_after.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        let asked = asked.min(RETRY_AFTER_MAX_MS);
        let wait_ms = match self.learned.last_ms() {
            Some(last_ms) if self.is_followed() => {
                let away_ms = now_ms.saturating_sub(last_ms);
                back_off::follow_ms(id, failures, away_ms, asked, now_ms)
            }
            reached => {
                let least_ms = if reached.is_some() { millis(self.shortest()) } else { 0 };
                back_off::wait_ms(id, failures, least_ms, now_ms).max(asked)
            }
        };
        self.back_off_ms = u32::try_from(wait_ms).unwrap_or(u32::MAX);
        self.wait_ms = now_ms.saturating_add(self.back_off_ms());
    }

    pub(super) fn handle_pull(
        &mut self,
        found: PullReport,
        settings: Settings,
        line: &mut CostLine,
        now_ms: u64,
    ) {
        self.learn(found, settings, line, now_ms);
        let streak = match self.is_one_more(found, now_ms) {
            Some(true) => self.successes().saturating_add(1),
            Some(false) => 0,
            None => self.successes(),
        };
        self.back_off_ms = 0;
        self.flags.set_streak(streak.min(DOUBLINGS_MAX));
        self.flags.set(Flag::Pulling, false);
        self.flags.set(Flag::Failed, false);
        self.flags.set(Flag::Full, found.full);
        let least_ms = if found.early { FOLLOW_IDLE_MS } else { 0 };
        self.wait_ms = now_ms.saturating_add(self.pause_ms().max(least_ms));
    }

    /// Returns whether the pull extends the streak (it brought everything, or brought something
    /// soon) or ends it; `None` if it does neither.
    fn is_one_more(&self, found: PullReport, now_ms: u64) -> Option<bool> {
        if !self.is_followed() {
            return Some(found.full);
        }
        if found.early || !self.flags.has(Flag::Waiting) {
            return None;
        }
        let held_ms = found.as_of_ms.min(now_ms).saturating_sub(self.wait_ms);
        let soon = held_ms < self.pause_ms().max(FOLLOW_STREAM_MS);
        Some(soon && (found.full || 0 < found.changes))
    }

    /// Returns the pause between two long polls. While changes come in a stream, the pause grows to
    /// a second or the shortest interval; while each poll brings everything, it grows to the
    /// shortest interval. After a quiet time it is short again, so the next change arrives at once.
    fn pause_ms(&self) -> u64 {
        let most_ms = if self.flags.has(Flag::Full) { u64::MAX } else { FOLLOW_PAUSE_MAX_MS };
        let longest_ms = millis(self.shortest()).clamp(FOLLOW_PAUSE_MS, most_ms);
        (FOLLOW_PAUSE_MS << self.successes().min(DOUBLINGS_MAX)).min(longest_ms)
    }

    fn shortest(&self) -> f64 {
        self.bounds().settled().interval_min
    }

    /// Moves all times with a wall clock that was set.
    pub(super) fn handle_jump(&mut self, moved: impl Fn(u64) -> u64) {
        if let Some(last_ms) = self.learned.last_ms() {
            self.learned.set_last_ms(moved(last_ms));
        }
        self.wait_ms = moved(self.wait_ms);
        self.flags.set(Flag::Untimed, self.is_pulling());
    }

    /// Moves later times to `now_ms`, to which the clock was set back.
    pub(super) fn handle_past(&mut self, now_ms: u64) {
        if let Some(last_ms) = self.learned.last_ms() {
            self.learned.set_last_ms(last_ms.min(now_ms));
        }
        self.wait_ms = self.wait_until(now_ms);
    }

    /// Returns the end of the wait. A clock that was set back must not lengthen it.
    fn wait_until(&self, now_ms: u64) -> u64 {
        let longest_ms = match self.failures() {
            0 if self.learned.last_ms().is_some() => self.pause_ms().max(FOLLOW_IDLE_MS),
            0 => 0,
            _ => self.back_off_ms(),
        };
        self.wait_ms.min(now_ms.saturating_add(longest_ms))
    }

    /// Returns the time at which the source is due: by request, after a failure, or by its
    /// interval. `None` while it is being pulled.
    pub(super) fn due(&self, interval_secs: Option<f64>, now_ms: u64) -> Option<u64> {
        if self.is_pulling() {
            return None;
        }
        let last_ms = self.learned.last_ms();
        if self.flags.has(Flag::Requested) {
            // Of several requested sources the one pulled longest ago comes first.
            return Some(last_ms.unwrap_or(self.wait_ms).min(now_ms));
        }
        let at = match (last_ms, interval_secs) {
            (Some(last_ms), Some(interval)) if self.failures() == 0 && !self.is_followed() => {
                let told = self.flags.has(Flag::Notified);
                let interval = if told { interval.min(self.shortest()) } else { interval };
                last_ms.min(now_ms).saturating_add(millis(interval))
            }
            _ => self.wait_until(now_ms),
        };
        Some(match self.window {
            // Overdue inside the hours: the due time stays, since it shows which source has waited
            // longest.
            Some(window) if at < now_ms && window.admit(now_ms) == now_ms => at,
            Some(window) => window.admit(at.max(now_ms)),
            None => at,
        })
    }

    /// Returns the interval from the last pull to the next, in seconds; `planned` gives the
    /// policy's. `None` before the first pull, and for a followed source.
    pub(super) fn interval(&self, planned: impl FnOnce(Slot) -> f64) -> Option<f64> {
        let last_ms = self.learned.last_ms().filter(|_| !self.is_followed())?;
        let shortest = self.shortest();
        let watched_secs = self.learned.watched_secs.max(shortest);
        Some(match self.pace {
            Pace::Planned => match self.slot {
                Some(slot) => planned(slot).min(watched_secs).max(self.full_secs()),
                None => shortest.max(self.full_secs()),
            },
            Pace::BestEstimation => {
                self.expected_interval().min(watched_secs).max(self.full_secs())
            }
            Pace::Syndication(announced) => {
                let last_secs = i64::try_from(last_ms / 1_000).unwrap_or(i64::MAX);
                let next_secs = announced.next_update(last_secs);
                let next_secs = next_secs.saturating_add(SYNDICATION_PAUSE_SECS);
                within(next_secs as f64 - last_secs as f64, self.bounds())
            }
        })
    }

    /// Returns the least interval, in seconds, after pulls that brought everything: such a source
    /// sends all it has each time, and nothing can be learned of it. 0 before the second such pull
    /// in a row.
    fn full_secs(&self) -> f64 {
        let Bounds { interval_min, interval_max } = self.bounds().settled();
        match self.successes().min(DOUBLINGS_MAX) {
            0 | 1 => 0.0,
            fulls => {
                let doubled = interval_min.max(FULL_SECS_MIN) * 2.0_f64.powi(i32::from(fulls) - 1);
                doubled.min(interval_max)
            }
        }
    }

    /// Returns the learned mean update interval, within the bounds, in seconds.
    fn expected_interval(&self) -> f64 {
        let (secs, pulls, changed) = self.learned.counted();
        let learned = interval_of_pulls(secs, pulls, changed);
        within(learned.unwrap_or(f64::INFINITY), self.bounds())
    }

    /// Returns the bounds within which the policy may choose.
    fn choice(&self, pace: Pace) -> Bounds {
        let interval = match pace {
            Pace::Planned => return self.bounds(),
            Pace::BestEstimation => self.expected_interval(),
            Pace::Syndication(announced) => within(announced.interval_secs(), self.bounds()),
        };
        Bounds { interval_min: interval, interval_max: interval }
    }

    pub(super) fn estimate(&self, settings: Settings) -> Option<Estimate> {
        self.estimator(settings).estimate()
    }

    /// Returns the source for the policy, once there is a rate. A followed source is fresh at once,
    /// whatever its rate, and the policy does not pull it.
    pub(super) fn source(&self, settings: Settings, line: &CostLine) -> Option<Source> {
        self.source_at(self.pace, settings, line)
    }

    /// Returns the source for the policy at another pace.
    pub(super) fn source_at(
        &self,
        pace: Pace,
        settings: Settings,
        line: &CostLine,
    ) -> Option<Source> {
        let rate = self.estimate(settings)?.careful().max(RATE_MIN);
        let elements = self.learned.elements().unwrap_or_default().max(1);
        let (rate, bounds) =
            if self.is_followed() { (0.0, NEVER) } else { (rate, self.choice(pace)) };
        Some(Source {
            workload: Workload { rate, elements },
            pull_cost: self.learned.took.pull_cost(line),
            pull_secs: self.learned.took.secs(),
            weight: self.weight.into(),
            bounds,
        })
    }

    fn learn(&mut self, found: PullReport, settings: Settings, line: &mut CostLine, now_ms: u64) {
        let mut estimator = self.estimator(settings);
        let (untimed, follow) = (self.flags.has(Flag::Untimed), self.is_followed());
        self.flags.set(Flag::Untimed, false);
        let learned = &mut self.learned;
        learned.set_elements(found.elements);
        let last_ms = learned.last_ms();
        // A pull cannot have seen the future, or less than the pull before.
        let as_of_ms = if untimed { now_ms } else { found.as_of_ms };
        let as_of_ms = as_of_ms.max(last_ms.unwrap_or_default()).min(now_ms);
        learned.set_last_ms(as_of_ms);
        let Some(last_ms) = last_ms.filter(|_| !found.full && !untimed) else {
            // This pull says nothing about the time between pulls, so only N is learned.
            estimator.handle_restart();
            learned.set_state(estimator.state());
            return;
        };
        let secs = seconds(as_of_ms.saturating_sub(last_ms));
        let took_secs = seconds(now_ms.saturating_sub(as_of_ms));
        if !follow {
            // The duration of a long poll is the time without changes.
            learned.took.handle(took_secs, found.changes, settings.gain(), line);
        }
        let every = FirstChanges { objects: found.changes, age_secs: found.age_secs };
        let first_changes = found.first_changes.unwrap_or(every);
        learned.measured.handle_span(
            Span {
                secs,
                elements: found.elements,
                changes: first_changes.objects,
                age_secs: first_changes.age_secs,
                age_secs_max: seconds(now_ms.saturating_sub(last_ms)),
            },
            settings.gain(),
        );
        learned.count(secs, found.changes);
        // Reported ages run to the end of the pull, and the estimator's ages to its start.
        let age_secs = (found.age_secs - took_secs).max(0.0);
        estimator.handle(Pull {
            updates: found.changes,
            elements: Some(found.elements),
            elapsed_secs: secs,
            ages_secs: Some(age_secs * found.changes as f64),
        });
        learned.set_state(estimator.state());
    }

    fn estimator(&self, settings: Settings) -> Estimator {
        let is_stamped = self.flags.has(Flag::Datestamps);
        let rules = rate::Rules {
            method: if is_stamped { Method::Datestamps } else { settings.method },
            gain: Gain::Settling(settings.gain),
            sample_secs_min: self.shortest() * POOL_SHARE,
        };
        Estimator::with_rules(rules, self.learned.state())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::TERM_BYTES;
    use crate::queue::KEY_BYTES;

    #[test]
    fn a_source_takes_at_most_200_bytes() {
        let bytes = [size_of::<Option<Entry>>(), TERM_BYTES, KEY_BYTES];
        assert!(bytes.iter().sum::<usize>() <= 200, "{bytes:?}");
    }
}
