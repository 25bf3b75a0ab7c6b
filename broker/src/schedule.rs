//! When to pull whom: the live use of OAP(θ).
//!
//! Source: Adly §4 (the algorithm), eq. 3 (the intervals). After every pull the source's rate is
//! estimated anew, the intervals of *all* sources are computed, and every source is due one
//! interval after its own last pull. Pulls come from nowhere else, but for an admin's request and
//! for the long poll of a source that is followed.
//!
//! # Differences from the paper
//!
//! * The paper pulls the source of the least *interval* again and again, so that the others
//!   starve; here the next *due time* goes first.
//! * A source is pulled as soon as it is added, and once more after the shortest interval. Until it
//!   has been watched for longer than the interval that eq. 3 gives it, it is left alone for no
//!   longer than it has been watched: a few quiet seconds are no reason to look away for a day.
//! * A source without a change in T seconds is taken to change at 1 / 2T: unknown is not never.
//! * A sample of the rate is not every pull but at least [`SAMPLE_CHANGES`] changes, found or
//!   expected, over no less than the shortest interval; smaller pulls are pooled. One change in a
//!   tenth of a second is no rate, and a long poll ends at the very moment of a change. At the
//!   paper's intervals a pull brings more than that, and nothing differs.
//! * The gain of a sample is its share of the time watched, as long as that is above the settings'
//!   gain: at first the estimate is the plain mean, then it forgets.
//! * A pull takes time, and what it brings is stale until it has ended. What the pulls took is put
//!   by from the staleness that θ leaves room for, up to half of it, before eq. 3 gets the rest.
//! * The interval runs from when the last pull *asked*, since that is how far it can have seen.
//! * Failures back off, doubling, with jitter, each source for itself; hours may be closed.
//!
//! Machine: the shell calls [`Schedule::poll_due`] when a slot is free, performs the pull, and
//! reports with [`Schedule::handle_pull`] or [`Schedule::handle_failure`]. One source is never
//! pulled twice at the same time. Times are Unix milliseconds.
//!
//! Sans-I/O.

mod back_off;
mod jump;

use std::collections::BTreeMap;
use std::time::Duration;

use freshness::interval::{self, Bounds, Model, Policy};
use freshness::queue::DueQueue;
use freshness::rate::{Estimator, State};
use serde::{Deserialize, Serialize};

use crate::config::Freshness;
use crate::measure::{self, Measured, Span};
use crate::source::Source;

/// Longest wait that a source may ask for, milliseconds (a day).
pub const RETRY_AFTER_MAX_MS: u64 = 86_400_000;

/// Pause between two long polls of a source that had changes, milliseconds: changes that come in
/// a stream are fetched together.
pub const FOLLOW_PAUSE_MS: u64 = 50;

/// Pause after a long poll that came back early and empty, milliseconds: a source that does not
/// hold the answer must not be asked in a tight loop.
pub const FOLLOW_IDLE_MS: u64 = 1_000;

/// Changes, found or expected, that make a sample of the rate.
pub const SAMPLE_CHANGES: f64 = 8.0;

/// Most of the staleness that θ leaves room for that is put by for the time that pulls take.
const RESERVE_SHARE_MAX: f64 = 0.5;

/// Share of the shortest interval that a sample of the rate has to cover.
const POOL_SHARE: f64 = 0.9;

/// Lowest rate that eq. 3 sees, changes a second (about one in 30 years).
const RATE_MIN: f64 = 1e-9;

/// Who is pulled when.
#[derive(Debug)]
pub struct Schedule {
    settings: Freshness,
    entries: BTreeMap<String, Entry>,
    /// Sources that take a slot.
    due: DueQueue<String>,
    /// Followed sources: their long polls take none.
    follows: DueQueue<String>,
    /// When it was last asked: the wall clock may be set back.
    seen_ms: u64,
}

/// What is known of a source over a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    /// Estimated rate, changes per second.
    rate: Option<f64>,
    /// Changes found since the last sample of the rate, and over how many seconds.
    pooled: (u64, f64),
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

impl Remembered {
    /// Returns the rate as far as it is known, changes per second: before there is a sample, what
    /// the pulls since the first have brought; `None` until they cover the shortest interval.
    fn rate(&self, interval_min: f64) -> Option<f64> {
        let (changes, secs) = self.pooled;
        self.rate.or_else(|| (interval_min * POOL_SHARE <= secs).then(|| changes as f64 / secs))
    }
}

#[derive(Debug)]
struct Entry {
    source: Source,
    known: Remembered,
    interval_secs: Option<f64>,
    added_ms: u64,
    /// A followed source rests until then.
    rest_until_ms: u64,
    failures: u32,
    back_off_ms: u64,
    retry_ms: u64,
    pulling: bool,
    /// The clock was set while it is being pulled.
    untimed: bool,
    asked: bool,
    due_ms: Option<u64>,
    /// Which queue it is in, if it is due at all.
    queued_follow: bool,
}

/// A pull to perform now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Name of the source.
    pub source: String,
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
    /// Live objects at the source, N.
    pub elements: u64,
    /// How far the pull can have seen: when it asked, or when a long poll was answered.
    pub as_of_ms: u64,
    /// Whether a long poll came back before its time without anything new.
    pub early: bool,
}

/// What status says of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct View {
    /// λ, changes per second.
    pub rate: Option<f64>,
    /// N.
    pub elements: Option<u64>,
    /// Interval of the policy, seconds.
    pub interval_secs: Option<f64>,
    /// Next due; `None` while a pull is under way.
    pub due_ms: Option<u64>,
    /// Whether a pull is under way.
    pub pulling: bool,
    /// Measured freshness.
    pub freshness: Option<f64>,
    /// Failures since the last success.
    pub failures: u32,
    /// Wait after the last failure, milliseconds; 0 when there was none.
    pub back_off_ms: u64,
}

impl Schedule {
    /// Returns a schedule without sources.
    pub fn new(settings: Freshness) -> Self {
        let (due, follows) = (DueQueue::new(), DueQueue::new());
        Self { settings, entries: BTreeMap::new(), due, follows, seen_ms: 0 }
    }

    /// Changes the settings of the policy; dues follow at once.
    pub fn handle_settings(&mut self, settings: Freshness, now_ms: u64) {
        self.settings = settings;
        self.replan(now_ms);
    }

    /// Adds sources, or changes the settings of those that are there. A new one is due at once, one
    /// that is remembered an interval after its last pull.
    pub fn handle_sources(
        &mut self,
        sources: impl IntoIterator<Item = (Source, Remembered)>,
        now_ms: u64,
    ) {
        for (source, remembered) in sources {
            if let Some(entry) = self.entries.get_mut(&source.name) {
                entry.source = source;
                continue;
            }
            let entry = Entry {
                known: remembered,
                interval_secs: None,
                added_ms: now_ms,
                rest_until_ms: now_ms,
                failures: 0,
                back_off_ms: 0,
                retry_ms: 0,
                pulling: false,
                untimed: false,
                asked: false,
                due_ms: None,
                queued_follow: false,
                source,
            };
            self.entries.insert(entry.source.name.clone(), entry);
        }
        self.replan(now_ms);
    }

    /// Forgets sources; reports of pulls still under way are ignored.
    pub fn remove<'a>(&mut self, names: impl IntoIterator<Item = &'a String>, now_ms: u64) {
        for name in names {
            self.entries.remove(name);
            self.due.remove(name);
            self.follows.remove(name);
        }
        self.replan(now_ms);
    }

    /// Returns the next pull that is due. `slot`: whether one more pull may run; long polls of
    /// followed sources do not need one.
    pub fn poll_due(&mut self, slot: bool, now_ms: u64) -> Option<Due> {
        if now_ms < std::mem::replace(&mut self.seen_ms, now_ms) {
            self.replan(now_ms);
        }
        let name = match self.follows.poll_due(now_ms) {
            Some(name) => name,
            None if slot => self.due.poll_due(now_ms)?,
            None => return None,
        };
        let entry = self.entries.get_mut(&name)?;
        let wait = entry.source.follow && entry.known.last_ms.is_some() && !entry.asked;
        (entry.pulling, entry.untimed) = (true, false);
        (entry.asked, entry.due_ms) = (false, None);
        let slot = !entry.source.follow;
        Some(Due { source: name, wait, slot })
    }

    /// Returns when [`poll_due`](Self::poll_due) will have something, if nothing else happens.
    pub fn poll_timeout(&self, slot: bool) -> Option<u64> {
        let due = if slot { self.due.next_due() } else { None };
        self.follows.next_due().into_iter().chain(due).min()
    }

    /// Makes a source due now, whatever its interval, back-off or hours. If a pull is under way
    /// another follows it, but for a long poll: that hears of everything anyway. Returns false if
    /// there is no such source.
    pub fn handle_request(&mut self, name: &str, now_ms: u64) -> bool {
        let Some(entry) = self.entries.get_mut(name) else { return false };
        entry.asked = !(entry.pulling && entry.source.follow);
        self.enqueue(name, now_ms);
        true
    }

    /// Takes in what a pull found; `now_ms` is when it ended.
    pub fn handle_pull(&mut self, name: &str, found: Found, now_ms: u64) {
        let settings = self.settings;
        let Some(entry) = self.entries.get_mut(name) else { return };
        entry.learn(found, settings, now_ms);
        entry.pulling = false;
        (entry.failures, entry.back_off_ms) = (0, 0);
        entry.rest_until_ms = now_ms + if found.early { FOLLOW_IDLE_MS } else { FOLLOW_PAUSE_MS };
        self.replan(now_ms);
    }

    /// Takes in that a pull failed; `retry_after` is what the source asked for, if it did.
    pub fn handle_failure(&mut self, name: &str, retry_after: Option<Duration>, now_ms: u64) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        entry.pulling = false;
        entry.failures = entry.failures.saturating_add(1);
        let asked = retry_after.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        entry.back_off_ms =
            back_off::wait_ms(name, entry.failures, now_ms).max(asked.min(RETRY_AFTER_MAX_MS));
        entry.retry_ms = now_ms + entry.back_off_ms;
        self.enqueue(name, now_ms);
    }

    /// Takes in that a pull was given up for our own reasons: the source is due again as before.
    pub fn handle_cancel(&mut self, name: &str, now_ms: u64) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.pulling = false;
            self.enqueue(name, now_ms);
        }
    }

    /// Returns what is to be remembered of a source over a restart.
    pub fn remembered(&self, name: &str) -> Option<Remembered> {
        self.entries.get(name).map(|entry| entry.known)
    }

    /// Returns what status says of a source.
    pub fn view(&self, name: &str) -> Option<View> {
        let entry = self.entries.get(name)?;
        Some(View {
            rate: entry.known.rate(self.settings.interval_min),
            elements: entry.known.elements,
            interval_secs: entry.interval_secs,
            due_ms: entry.due_ms,
            pulling: entry.pulling,
            freshness: entry.known.measured.freshness(),
            failures: entry.failures,
            back_off_ms: entry.back_off_ms,
        })
    }

    /// Returns the measured freshness over all sources (Adly §3.1).
    pub fn freshness(&self) -> Option<f64> {
        measure::overall(self.entries.values().map(|entry| {
            (entry.known.measured.freshness(), entry.known.elements.unwrap_or_default())
        }))
    }

    /// Computes every interval and due time anew.
    fn replan(&mut self, now_ms: u64) {
        let interval_min = self.settings.interval_min;
        let bounds = self.bounds();
        let workloads = self.entries.values().filter_map(|it| it.workload(interval_min));
        let sources: Vec<interval::Source> =
            workloads.map(|it| interval::Source::new(it.rate, it.elements, bounds)).collect();
        let policy = Policy::Optimal { theta: self.theta() };
        let mut intervals = interval::plan(&sources, policy, Model::Printed).intervals.into_iter();
        for (name, entry) in &mut self.entries {
            entry.interval_secs = match entry.workload(interval_min) {
                Some(_) => {
                    let watched_secs = entry.known.watched_secs.max(interval_min);
                    intervals.next().map(|secs| secs.min(watched_secs))
                }
                None => entry.known.last_ms.map(|_| interval_min),
            };
            entry.enqueue(name, &mut self.due, &mut self.follows, interval_min, now_ms);
        }
    }

    /// Returns the θ for eq. 3: above the settings' by what the pulls themselves make stale.
    fn theta(&self) -> f64 {
        let (mut stale, mut elements) = (0.0, 0.0);
        for entry in self.entries.values() {
            if let Some(workload) = entry.workload(self.settings.interval_min) {
                stale += workload.rate * entry.known.took_secs;
                elements += workload.elements as f64;
            }
        }
        let theta = self.settings.theta;
        let room = (1.0 - theta) * RESERVE_SHARE_MAX;
        if 0.0 < elements { theta + (stale / elements).min(room) } else { theta }
    }

    /// Puts a source into the queue that it belongs to, unless it is being pulled.
    fn enqueue(&mut self, name: &str, now_ms: u64) {
        if let Some(entry) = self.entries.get_mut(name) {
            let interval_min = self.settings.interval_min;
            entry.enqueue(name, &mut self.due, &mut self.follows, interval_min, now_ms);
        }
    }

    fn bounds(&self) -> Bounds {
        let Freshness { interval_min, interval_max, .. } = self.settings;
        Bounds { interval_min, interval_max }
    }
}

impl Entry {
    fn enqueue(
        &mut self,
        name: &str,
        due: &mut DueQueue<String>,
        follows: &mut DueQueue<String>,
        interval_min: f64,
        now_ms: u64,
    ) {
        let follow = self.source.follow;
        let due_ms = (!self.pulling).then(|| self.due(interval_min, now_ms));
        if (due_ms, follow) == (self.due_ms, self.queued_follow) {
            return;
        }
        let key = name.to_owned();
        if follow != self.queued_follow {
            if follow {
                due.remove(&key)
            } else {
                follows.remove(&key)
            };
        }
        (self.due_ms, self.queued_follow) = (due_ms, follow);
        if let Some(due_ms) = due_ms {
            if follow { follows } else { due }.schedule(key, due_ms);
        }
    }

    /// Returns when the source is due: by request, after a failure, or by its interval.
    fn due(&self, interval_min: f64, now_ms: u64) -> u64 {
        if self.asked {
            return now_ms;
        }
        // A clock that was set back must not put off what is due by as much.
        let at = if 0 < self.failures {
            self.retry_ms.min(now_ms + self.back_off_ms)
        } else if let Some(last_ms) = self.known.last_ms {
            if self.source.follow {
                self.rest_until_ms.min(now_ms + FOLLOW_IDLE_MS)
            } else {
                last_ms
                    .min(now_ms)
                    .saturating_add(millis(self.interval_secs.unwrap_or(interval_min)))
            }
        } else {
            self.added_ms.min(now_ms)
        };
        match self.source.window {
            // Overdue inside the hours: keep the due time, it says who has waited longest.
            Some(window) if at < now_ms && window.admit(now_ms) == now_ms => at,
            Some(window) => window.admit(at.max(now_ms)),
            None => at,
        }
    }

    /// Returns λ and N for eq. 3, once there is a rate.
    fn workload(&self, interval_min: f64) -> Option<interval::Workload> {
        let quiet = 1.0 / (2.0 * self.known.watched_secs.max(f64::MIN_POSITIVE));
        let rate = self.known.rate(interval_min)?.max(quiet).max(RATE_MIN);
        Some(interval::Workload { rate, elements: self.known.elements.unwrap_or_default().max(1) })
    }

    /// Updates what is known of the source.
    fn learn(&mut self, found: Found, settings: Freshness, now_ms: u64) {
        let known = &mut self.known;
        known.elements = Some(found.elements);
        let untimed = std::mem::take(&mut self.untimed);
        let last = known.last_ms.replace(if untimed { now_ms } else { found.as_of_ms });
        let Some(last) = last.filter(|_| !found.full && !untimed) else {
            // Whatever happened meanwhile came in one lump: nothing to learn but N.
            known.pooled = (0, 0.0);
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
        known.pooled.0 = known.pooled.0.saturating_add(found.changes);
        known.pooled.1 += secs;
        let (changes, secs) = known.pooled;
        let expected = known.rate.map_or(0.0, |rate| rate * secs);
        let enough = SAMPLE_CHANGES <= expected.max(changes as f64);
        // A little slack: timers and rounding must not make a scheduled pull wait for the next.
        if enough && settings.interval_min * POOL_SHARE <= secs {
            let gain = settings.gain.max(secs / known.watched_secs).min(1.0);
            let before = State { rate: known.rate, pulls: 1, ..State::default() };
            let mut estimator = Estimator::with_state(gain, before);
            estimator.handle_pull(changes, secs);
            let state = estimator.state();
            known.rate = state.rate;
            known.pooled = (state.pending_updates, state.pending_secs);
        }
    }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

fn millis(secs: f64) -> u64 {
    // A float becomes the nearest integer that fits; 0 for NaN.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let ms = (secs * 1_000.0).round() as u64;
    ms
}

#[cfg(test)]
mod tests;
