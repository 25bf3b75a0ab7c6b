//! When to pull whom, live: the scheduler that brokers run, and that simulations are run against.
//!
//! Source: Adly §4 (the algorithm), eq. 3 (the intervals). After every pull the source's rate is
//! estimated anew, the intervals follow, and every source is due one interval after its own last pull.
//! Pulls come from nowhere else, but for a request and for the long poll of a source that is followed.
//!
//! # Differences from the paper
//!
//! * The paper pulls the source of the least *interval* again and again, so that the others
//!   starve; here the next *due time* goes first.
//! * The paper computes all intervals after every pull; see [`planner`](crate::interval::Planner).
//! * A source is pulled as soon as it is added, and once more after its shortest interval. Until it
//!   has been watched for longer than the interval that the policy gives it, it is left alone for no
//!   longer than it has been watched: a few quiet seconds are no reason to look away for a day.
//! * A source without a change in T seconds is taken to change at 1 / 2T: unknown is not never
//!   ([`Estimate::careful`](crate::rate::Estimate::careful)).
//! * A sample of the rate is several changes, found or expected, over no less than the shortest
//!   interval ([`Gain::Settling`](crate::rate::Gain::Settling)); a long poll ends at the very moment of
//!   a change, and one change in a tenth of a second is no rate.
//! * The interval runs from when the last pull *asked*, since that is how far it can have seen, and what
//!   pulls take of time is put by ([`Source::pull_secs`](crate::interval::Source::pull_secs)).
//! * Failures back off, doubling, with jitter, each source for itself; hours may be closed; and
//!   whatever the numbers say, no minute sees more pulls than [`Settings::pulls_per_minute_max`].
//!
//! Machine: the shell calls [`Schedule::poll_due`] when a slot is free, performs the pull, and
//! reports with [`Schedule::handle_pull`] or [`Schedule::handle_failure`]. One source is never
//! pulled twice at the same time. Times are Unix milliseconds.
//!
//! Sans-I/O.

mod back_off;
mod cap;
mod entry;
mod jump;
mod window;

use std::time::Duration;

use crate::interval::{Bounds, Model, Outcome, Planner, Policy, Replanned, Source};
use crate::metrics;
use crate::queue::DueQueue;
use crate::rate::Method;

use cap::Cap;
use entry::Entry;
pub use entry::Known;
pub use window::Window;

/// Longest wait that a source may ask for, milliseconds (a day).
pub const RETRY_AFTER_MAX_MS: u64 = 86_400_000;

/// Pause between two long polls of a source that had changes, milliseconds: changes that come in
/// a stream are fetched together.
pub const FOLLOW_PAUSE_MS: u64 = 50;

/// Pause after a long poll that came back early and empty, milliseconds: a source that does not
/// hold the answer must not be asked in a tight loop.
pub const FOLLOW_IDLE_MS: u64 = 1_000;

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
    /// Pulls that may begin in any minute, long polls of followed sources not counted; at least 1.
    pub pulls_per_minute_max: u32,
}

/// What is particular to one source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Between which intervals it is pulled.
    pub bounds: Bounds,
    /// Weight of its freshness beside the others'.
    pub weight: f64,
    /// Kept in step by long polls.
    pub follow: bool,
    /// Hours in which it may be pulled; `None` for all.
    pub window: Option<Window>,
}

impl Rules {
    /// A source that is pulled by its interval, at any hour, and counts as it is large.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, weight: 1.0, follow: false, window: None }
    }
}

/// Names a source. The numbers of removed sources are given out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u32);

impl SourceId {
    /// The number; numbers are dense, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Who is pulled when.
#[derive(Debug)]
pub struct Schedule {
    settings: Settings,
    planner: Planner,
    /// By number.
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// Sources that take a slot.
    due: DueQueue,
    /// Followed sources: their long polls take none.
    follows: DueQueue,
    cap: Cap,
    /// When it was last asked: the wall clock may be set back.
    seen_ms: u64,
}

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

/// What is expected of the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Whether the policy's aim is met within the bounds.
    pub outcome: Outcome,
    /// Freshness of the whole, weighted.
    pub freshness: f64,
    /// Pulls a second of all sources together.
    pub pulls: f64,
}

impl Schedule {
    /// Returns a schedule without sources.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            planner: Planner::new(settings.policy, settings.model),
            entries: Vec::new(),
            free: Vec::new(),
            due: DueQueue::new(),
            follows: DueQueue::new(),
            cap: Cap::new(settings.pulls_per_minute_max),
            seen_ms: 0,
        }
    }

    /// Changes the settings; dues follow at once.
    pub fn handle_settings(&mut self, settings: Settings, now_ms: u64) {
        self.settings = settings;
        self.cap.set(settings.pulls_per_minute_max);
        let planned = self.entries.iter().flatten();
        let sources: Vec<_> =
            planned.filter_map(|it| Some((it.slot?, it.source(settings)?))).collect();
        let sources = sources.iter().map(|(slot, source)| (*slot, source));
        self.planner.handle_policy(settings.policy, settings.model, sources);
        self.enqueue_all(now_ms);
    }

    /// Adds sources, with what is known of them. A new one is due at once, one that was pulled before an
    /// interval after its last pull. Returns their numbers, in their order.
    pub fn add(
        &mut self,
        sources: impl IntoIterator<Item = (Rules, Known)>,
        now_ms: u64,
    ) -> Vec<SourceId> {
        let mut ids = Vec::new();
        for (rules, known) in sources {
            let entry = Entry::new(rules, known, now_ms);
            let id = self.free.pop().unwrap_or_else(|| {
                self.entries.push(None);
                u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
            });
            if let Some(place) = self.entries.get_mut(id as usize) {
                *place = Some(entry);
            }
            ids.push(SourceId(id));
        }
        let settings = self.settings;
        let known = |id: &SourceId| Some((*id, self.entry(*id)?.source(settings)?));
        let (known, sources): (Vec<SourceId>, Vec<Source>) = ids.iter().filter_map(known).unzip();
        for (id, slot) in known.into_iter().zip(self.planner.extend(&sources)) {
            if let Some(entry) = self.entry_mut(id) {
                entry.slot = Some(slot);
            }
        }
        self.enqueue_all(now_ms);
        ids
    }

    /// Changes what is particular to a source.
    pub fn handle_rules(&mut self, id: SourceId, rules: Rules, now_ms: u64) {
        let Some(entry) = self.entry_mut(id) else { return };
        entry.rules = rules;
        self.replan(id, now_ms);
    }

    /// Forgets a source; the report of a pull still under way is ignored, unless its number has been
    /// given out again.
    pub fn remove(&mut self, id: SourceId, now_ms: u64) {
        let Some(entry) = self.entries.get_mut(id.index()).and_then(Option::take) else { return };
        self.free.push(id.0);
        self.due.remove(id.0);
        self.follows.remove(id.0);
        if let Some(slot) = entry.slot
            && self.planner.remove(slot) == Replanned::All
        {
            self.enqueue_all(now_ms);
        }
    }

    /// Returns the next pull that is due. `slot`: whether one more pull may run; long polls of
    /// followed sources do not need one.
    pub fn poll_due(&mut self, slot: bool, now_ms: u64) -> Option<Due> {
        if now_ms < std::mem::replace(&mut self.seen_ms, now_ms) {
            self.cap.handle_past(now_ms);
            self.enqueue_all(now_ms);
        }
        let id = match self.follows.poll_due(now_ms) {
            Some(id) => id,
            None if slot && self.cap.next_ms() <= now_ms => {
                let id = self.due.poll_due(now_ms)?;
                self.cap.pass(now_ms);
                id
            }
            None => return None,
        };
        let entry = self.entry_mut(SourceId(id))?;
        let wait = entry.rules.follow && entry.known.was_pulled() && !entry.asked;
        (entry.pulling, entry.untimed) = (true, false);
        (entry.asked, entry.due_ms) = (false, None);
        let slot = !entry.rules.follow;
        Some(Due { source: SourceId(id), wait, slot })
    }

    /// Returns when [`poll_due`](Self::poll_due) will have something, if nothing else happens.
    pub fn poll_timeout(&self, slot: bool) -> Option<u64> {
        let due = if slot { self.due.next_due() } else { None };
        let due = due.map(|at| at.max(self.cap.next_ms()));
        self.follows.next_due().into_iter().chain(due).min()
    }

    /// Makes a source due now, whatever its interval, back-off or hours. If a pull is under way
    /// another follows it, but for a long poll: that hears of everything anyway. Returns false if
    /// there is no such source.
    pub fn handle_request(&mut self, id: SourceId, now_ms: u64) -> bool {
        let Some(entry) = self.entry_mut(id) else { return false };
        entry.asked = !(entry.pulling && entry.rules.follow);
        self.enqueue(id, now_ms);
        true
    }

    /// Takes in what a pull found; `now_ms` is when it ended.
    pub fn handle_pull(&mut self, id: SourceId, found: Found, now_ms: u64) {
        let settings = self.settings;
        let Some(entry) = self.entry_mut(id) else { return };
        entry.learn(found, settings, now_ms);
        entry.pulling = false;
        (entry.failures, entry.back_off_ms) = (0, 0);
        entry.rest_until_ms = now_ms + if found.early { FOLLOW_IDLE_MS } else { FOLLOW_PAUSE_MS };
        self.replan(id, now_ms);
    }

    /// Takes in that a pull failed; `retry_after` is what the source asked for, if it did.
    pub fn handle_failure(&mut self, id: SourceId, retry_after: Option<Duration>, now_ms: u64) {
        let Some(entry) = self.entry_mut(id) else { return };
        entry.pulling = false;
        entry.failures = entry.failures.saturating_add(1);
        let asked = retry_after.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        entry.back_off_ms =
            back_off::wait_ms(id, entry.failures, now_ms).max(asked.min(RETRY_AFTER_MAX_MS));
        entry.retry_ms = now_ms + entry.back_off_ms;
        self.enqueue(id, now_ms);
    }

    /// Takes in that a pull was given up for our own reasons: the source is due again as before.
    pub fn handle_cancel(&mut self, id: SourceId, now_ms: u64) {
        if let Some(entry) = self.entry_mut(id) {
            entry.pulling = false;
            self.enqueue(id, now_ms);
        }
    }

    /// Returns what is to be remembered of a source over a restart.
    pub fn known(&self, id: SourceId) -> Option<Known> {
        self.entry(id).map(|entry| entry.known)
    }

    /// Returns what status says of a source.
    pub fn view(&self, id: SourceId) -> Option<View> {
        let entry = self.entry(id)?;
        let estimate = entry.estimate(self.settings);
        Some(View {
            rate: estimate.map(|it| it.rate),
            elements: entry.known.elements(),
            interval_secs: self.interval(entry),
            due_ms: entry.due_ms,
            pulling: entry.pulling,
            freshness: entry.known.freshness(),
            failures: entry.failures,
            back_off_ms: entry.back_off_ms,
        })
    }

    /// Returns the measured freshness over all sources (Adly §3.1).
    pub fn freshness(&self) -> Option<f64> {
        metrics::overall(
            self.entries
                .iter()
                .flatten()
                .map(|entry| (entry.known.freshness(), entry.known.elements().unwrap_or_default())),
        )
    }

    /// Returns what is expected of the plan, of those sources whose rate is known.
    pub fn expected(&self) -> Expected {
        Expected {
            outcome: self.planner.outcome(),
            freshness: self.planner.freshness(),
            pulls: self.planner.pulls(),
        }
    }

    /// Returns the sources as the policy weighs them, of those whose rate is known: what another policy
    /// would make of them is [`plan`](crate::interval::plan)'s to say.
    pub fn sources(&self) -> impl Iterator<Item = (SourceId, Source)> {
        self.entries.iter().enumerate().filter_map(|(id, entry)| {
            let source = entry.as_ref()?.source(self.settings)?;
            Some((SourceId(u32::try_from(id).ok()?), source))
        })
    }

    fn entry(&self, id: SourceId) -> Option<&Entry> {
        self.entries.get(id.index())?.as_ref()
    }

    fn entry_mut(&mut self, id: SourceId) -> Option<&mut Entry> {
        self.entries.get_mut(id.index())?.as_mut()
    }

    /// Tells the planner what is known of a source now.
    fn plan(&mut self, id: SourceId) -> Replanned {
        let settings = self.settings;
        let Some(entry) = self.entries.get_mut(id.index()).and_then(Option::as_mut) else {
            return Replanned::One;
        };
        let Some(source) = entry.source(settings) else { return Replanned::One };
        if let Some(slot) = entry.slot {
            return self.planner.update(slot, &source);
        }
        let (slot, replanned) = self.planner.insert(&source);
        entry.slot = Some(slot);
        replanned
    }

    /// Tells the planner of a source, and makes due what that changes.
    fn replan(&mut self, id: SourceId, now_ms: u64) {
        match self.plan(id) {
            Replanned::One => self.enqueue(id, now_ms),
            Replanned::All => self.enqueue_all(now_ms),
        }
    }

    /// The interval of a source that was pulled, in seconds.
    fn interval(&self, entry: &Entry) -> Option<f64> {
        let shortest = entry.rules.bounds.settled().interval_min;
        match entry.slot {
            Some(slot) => {
                let watched_secs = entry.known.watched_secs().max(shortest);
                Some(self.planner.interval(slot).min(watched_secs))
            }
            None => entry.known.was_pulled().then_some(shortest),
        }
    }

    /// Puts a source into the queue that it belongs to, unless it is being pulled.
    fn enqueue(&mut self, id: SourceId, now_ms: u64) {
        let Some(entry) = self.entry(id) else { return };
        let due_ms = entry.due(self.interval(entry), now_ms);
        let follow = entry.rules.follow;
        let Some(entry) = self.entry_mut(id) else { return };
        entry.due_ms = due_ms;
        let (queue, other) = if follow {
            (&mut self.follows, &mut self.due)
        } else {
            (&mut self.due, &mut self.follows)
        };
        other.remove(id.0);
        match due_ms {
            Some(due_ms) => queue.schedule(id.0, due_ms),
            None => {
                queue.remove(id.0);
            }
        }
    }

    /// Computes every due time anew.
    fn enqueue_all(&mut self, now_ms: u64) {
        let (mut due, mut follows) = (Vec::new(), Vec::new());
        for (id, entry) in (0..).zip(&self.entries) {
            let Some(entry) = entry else { continue };
            if let Some(at_ms) = entry.due(self.interval(entry), now_ms) {
                if entry.rules.follow { &mut follows } else { &mut due }.push((id, at_ms));
            }
        }
        for entry in self.entries.iter_mut().flatten() {
            entry.due_ms = None;
        }
        for (id, at_ms) in due.iter().chain(&follows) {
            if let Some(entry) = self.entry_mut(SourceId(*id)) {
                entry.due_ms = Some(*at_ms);
            }
        }
        (self.due, self.follows) = (DueQueue::new(), DueQueue::new());
        self.due.schedule_all(due);
        self.follows.schedule_all(follows);
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
