//! One source of a schedule.
//!
//! There may be a million: an entry takes 128 bytes, and with its term in the planner (48) and its places in
//! the queues (24) a source takes 200. What comes from outside is made small
//! here, and wide again where it leaves.
//!
//! Sans-I/O.

use std::time::Duration;

use super::cost::Line;
use super::flags::{Flag, Flags};
use super::learned::{Known, Learned};
use super::{
    FOLLOW_IDLE_MS, FOLLOW_PAUSE_MAX_MS, FOLLOW_PAUSE_MS, FOLLOW_STREAM_MS, Firsts, Found, Pace,
    RETRY_AFTER_MAX_MS, Rules, SYNDICATION_PAUSE_SECS, Settings, SourceId, Window, back_off,
    millis, narrowed, seconds,
};
use crate::expect::{interval_of_pulls, interval_until, within};
use crate::interval::{Bounds, Slot, Source, Workload};
use crate::metrics::Span;
use crate::rate::{self, Estimate, Estimator, Gain, Method, Pull};

/// Share of the shortest interval that a sample of the rate has to cover: a little slack, for timers
/// and rounding must not make a scheduled pull wait for the next.
const POOL_SHARE: f64 = 0.9;

/// Most times that a pause or an interval is doubled: a million times the first.
const DOUBLINGS_MAX: u8 = 20;

/// Interval of a source that brings everything again and again, doubled each time, where its shortest is
/// shorter, seconds.
const FULL_SECS_MIN: f64 = 1.0;

/// What is not to be pulled by the policy.
const NEVER: Bounds = Bounds { interval_min: f64::INFINITY, interval_max: f64::INFINITY };

/// Lowest rate that the policy sees, changes a second (about one in 30 years).
const RATE_MIN: f64 = 1e-9;

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) learned: Learned,
    /// What the source waits for, unless it is its interval: when it was added, before the first pull;
    /// the next try, after a failure; the end of the pause between two long polls. While it is being pulled:
    /// when that began.
    wait_ms: u64,
    pace: Pace,
    /// Shortest and longest interval, seconds.
    interval_min: f32,
    interval_max: f32,
    weight: f32,
    /// In the planner, once there is a rate.
    pub(super) slot: Option<Slot>,
    back_off_ms: u32,
    /// Its streak: how many pulls in a row ended as the last one did: failed; or else, of a followed source,
    /// were long polls that brought something soon; of others, brought everything.
    flags: Flags,
    window: Option<Window>,
}

impl Entry {
    pub(super) fn new(rules: Rules, known: &Known, now_ms: u64) -> Self {
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
            // Of the one kind it says nothing about the other.
            self.flags.set_streak(0);
        }
        self.flags.set(Flag::Follow, follow);
        self.flags.set(Flag::Datestamps, datestamps);
    }

    /// As the rules have them: they may contradict each other.
    pub(super) fn bounds(&self) -> Bounds {
        Bounds { interval_min: self.interval_min.into(), interval_max: self.interval_max.into() }
    }

    /// As the policy weighs it: what is no number counts as 1.
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

    /// What else there was in a row.
    fn successes(&self) -> u8 {
        if self.flags.has(Flag::Failed) { 0 } else { self.flags.streak() }
    }

    pub(super) fn back_off_ms(&self) -> u64 {
        self.back_off_ms.into()
    }

    /// A pull begins; true when it is a long poll.
    pub(super) fn begin(&mut self, now_ms: u64) -> bool {
        let asked = self.flags.has(Flag::Asked);
        // After a failure it is to answer at once: then it is there again.
        let is_there = self.learned.last_ms().is_some() && self.failures() == 0;
        let waits = self.is_followed() && is_there && !asked;
        for (flag, on) in [
            (Flag::Pulling, true),
            (Flag::Untimed, false),
            (Flag::Asked, false),
            (Flag::Told, false),
            (Flag::Waiting, waits),
        ] {
            self.flags.set(flag, on);
        }
        self.wait_ms = now_ms;
        waits
    }

    /// Somebody asks for a pull.
    pub(super) fn handle_request(&mut self) {
        let hears = self.is_pulling() && self.is_followed();
        self.flags.set(Flag::Asked, !hears);
    }

    /// Somebody says that it has changed.
    pub(super) fn handle_notice(&mut self) {
        // A long poll hears of everything by itself.
        self.flags.set(Flag::Told, !self.is_followed());
    }

    /// A pull was given up.
    pub(super) fn handle_cancel(&mut self) {
        self.flags.set(Flag::Pulling, false);
    }

    /// A pull failed.
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

    /// A pull succeeded.
    pub(super) fn handle_pull(
        &mut self,
        found: Found,
        settings: Settings,
        line: &mut Line,
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

    /// Whether the pull is one more that brought everything, or brought something soon, or ends the row;
    /// `None` when it says nothing.
    fn is_one_more(&self, found: Found, now_ms: u64) -> Option<bool> {
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

    /// The pause between two long polls. It grows while changes come in a stream, to a second or the
    /// shortest interval, and to that interval while each brings everything; after a quiet time it is short again, and what comes first then is heard of at once.
    fn pause_ms(&self) -> u64 {
        let most_ms = if self.flags.has(Flag::Full) { u64::MAX } else { FOLLOW_PAUSE_MAX_MS };
        let longest_ms = millis(self.shortest()).clamp(FOLLOW_PAUSE_MS, most_ms);
        (FOLLOW_PAUSE_MS << self.successes().min(DOUBLINGS_MAX)).min(longest_ms)
    }

    /// The shortest interval, seconds.
    fn shortest(&self) -> f64 {
        self.bounds().settled().interval_min
    }

    /// The wall clock was set.
    pub(super) fn handle_jump(&mut self, moved: impl Fn(u64) -> u64) {
        if let Some(last_ms) = self.learned.last_ms() {
            self.learned.set_last_ms(moved(last_ms));
        }
        self.wait_ms = moved(self.wait_ms);
        self.flags.set(Flag::Untimed, self.is_pulling());
    }

    /// It is `now_ms` again.
    pub(super) fn handle_past(&mut self, now_ms: u64) {
        if let Some(last_ms) = self.learned.last_ms() {
            self.learned.set_last_ms(last_ms.min(now_ms));
        }
        self.wait_ms = self.wait_until(now_ms);
    }

    /// Until when the source waits. A clock that was set back must not put it off by as much.
    fn wait_until(&self, now_ms: u64) -> u64 {
        let longest_ms = match self.failures() {
            0 if self.learned.last_ms().is_some() => self.pause_ms().max(FOLLOW_IDLE_MS),
            0 => 0,
            _ => self.back_off_ms(),
        };
        self.wait_ms.min(now_ms.saturating_add(longest_ms))
    }

    /// When the source is due: by request, after a failure, or by its interval; `None` while it is
    /// being pulled.
    pub(super) fn due(&self, interval_secs: Option<f64>, now_ms: u64) -> Option<u64> {
        if self.is_pulling() {
            return None;
        }
        let last_ms = self.learned.last_ms();
        if self.flags.has(Flag::Asked) {
            // Of several that are asked for, first the one that was not pulled for longest.
            return Some(last_ms.unwrap_or(self.wait_ms).min(now_ms));
        }
        let at = match (last_ms, interval_secs) {
            (Some(last_ms), Some(interval)) if self.failures() == 0 && !self.is_followed() => {
                let told = self.flags.has(Flag::Told);
                let interval = if told { interval.min(self.shortest()) } else { interval };
                last_ms.min(now_ms).saturating_add(millis(interval))
            }
            _ => self.wait_until(now_ms),
        };
        Some(match self.window {
            // Overdue inside the hours: keep the due time, it says who has waited longest.
            Some(window) if at < now_ms && window.admit(now_ms) == now_ms => at,
            Some(window) => window.admit(at.max(now_ms)),
            None => at,
        })
    }

    /// The interval from the last pull to the next, in seconds, where `planned` is the policy's; `None`
    /// before the first pull, and of a followed source.
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
                interval_until(next_secs, last_secs, self.bounds())
            }
        })
    }

    /// The least interval, in seconds, after pulls that brought everything: such a source is asked for all
    /// it has each time, and nothing is learned of it.
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

    /// The mean update interval, as far as it is learned, within the bounds, in seconds.
    fn expected_interval(&self) -> f64 {
        let (secs, pulls, changed) = self.learned.counted();
        let learned = interval_of_pulls(secs, pulls, changed);
        within(learned.unwrap_or(f64::INFINITY), self.bounds())
    }

    /// The bounds within which the policy may choose.
    fn choice(&self, pace: Pace) -> Bounds {
        let interval = match pace {
            Pace::Planned => return self.bounds(),
            Pace::BestEstimation => self.expected_interval(),
            Pace::Syndication(announced) => within(announced.interval_secs(), self.bounds()),
        };
        Bounds { interval_min: interval, interval_max: interval }
    }

    /// The rate as far as it is known.
    pub(super) fn estimate(&self, settings: Settings) -> Option<Estimate> {
        self.estimator(settings).estimate()
    }

    /// The source as the policy weighs it, once there is a rate. One that is followed is fresh at once,
    /// whatever it does, and is not pulled by the policy.
    pub(super) fn source(&self, settings: Settings, line: &Line) -> Option<Source> {
        self.source_at(self.pace, settings, line)
    }

    /// The same at another pace.
    pub(super) fn source_at(&self, pace: Pace, settings: Settings, line: &Line) -> Option<Source> {
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

    /// Updates what is known of the source.
    fn learn(&mut self, found: Found, settings: Settings, line: &mut Line, now_ms: u64) {
        let mut estimator = self.estimator(settings);
        let (untimed, follow) = (self.flags.has(Flag::Untimed), self.is_followed());
        self.flags.set(Flag::Untimed, false);
        let learned = &mut self.learned;
        learned.set_elements(found.elements);
        let last_ms = learned.last_ms();
        // No pull has seen the future, or less than the one before.
        let as_of_ms = if untimed { now_ms } else { found.as_of_ms };
        let as_of_ms = as_of_ms.max(last_ms.unwrap_or_default()).min(now_ms);
        learned.set_last_ms(as_of_ms);
        let Some(last_ms) = last_ms.filter(|_| !found.full && !untimed) else {
            // Whatever happened meanwhile came in one lump: nothing to learn but N.
            estimator.handle_restart();
            learned.set_state(estimator.state());
            return;
        };
        let secs = seconds(as_of_ms.saturating_sub(last_ms));
        let took_secs = seconds(now_ms.saturating_sub(as_of_ms));
        if !follow {
            // A long poll takes as long as nothing happens.
            let pulled = found.changes.saturating_sub(found.sent);
            learned.took.handle(took_secs, pulled, settings.gain(), line);
        }
        let every = Firsts { objects: found.changes, age_secs: found.age_secs };
        let firsts = found.firsts.unwrap_or(every);
        learned.measured.handle_span(
            Span {
                secs,
                elements: found.elements,
                changes: firsts.objects,
                age_secs: firsts.age_secs,
                age_secs_max: seconds(now_ms.saturating_sub(last_ms)),
            },
            settings.gain(),
        );
        learned.count(secs, found.changes);
        // Ages count to the end of the pull, the estimator's to when it asked.
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
