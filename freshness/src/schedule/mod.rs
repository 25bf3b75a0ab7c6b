//! The live schedule: brokers run it, and simulations are run against it.
//!
//! Source: Adly §4 (the algorithm), eq. 3 (the intervals). After every pull the source's rate is
//! estimated again, the intervals follow, and every source is due one interval after its own last
//! pull. A request, a notification of a change, and a followed source's long poll also cause pulls.
//!
//! # Differences from the paper
//!
//! * The paper pulls the source with the least *interval* again and again, so that the others
//!   starve; here the source with the next *due time* goes first.
//! * The paper computes all intervals after every pull; see [`planner`](crate::interval::Planner).
//! * A source is pulled as soon as it is added, and once more after its shortest interval. Until it
//!   has been watched for longer than the policy's interval, its interval is at most the time it
//!   has been watched: a few quiet seconds do not justify a pause of a day.
//! * A source without a change in T seconds counts as changing at 1 / 2T, since unknown is not
//!   never ([`Estimate::careful`](crate::rate::Estimate::careful)).
//! * A sample of the rate has several changes, found or expected, over at least the shortest
//!   interval ([`Gain::Settling`](crate::rate::Gain::Settling)). A long poll ends at the very
//!   moment of a change, and one change in a tenth of a second is no rate.
//! * The interval runs from the *start* of the last pull, since the pull may miss later changes.
//!   Plans allow for the duration ([`Source::pull_secs`](crate::interval::Source::pull_secs)).
//! * The cost of pulls is measured for each source ([`PULL_COST_SECS`]), and a source may follow
//!   its own updates instead of the policy ([`Pace`]).
//! * Nothing can be learned of a source that brings everything again and again: each such pull
//!   doubles its interval, up to its longest.
//! * A followed source is fresh at once: the policy uses its elements, but not its rate and its
//!   pulls. The pause between its long polls grows while its changes come in a stream.
//! * After each failure a source waits twice as long, with jitter and independently of other
//!   sources, and it is never pulled more often than its shortest interval allows. It may have
//!   hours in which it is not pulled. No minute has more pulls, of any kind, than
//!   [`Settings::pulls_per_minute_max`].
//! * N is the source's own statement, and the plan uses it at once, even if it jumps: θ is a share
//!   of the existing elements, and slower steps would delay true statements as well as false ones.
//!   The caller can limit N by the records that it holds of the source ([`PullReport::elements`]).
//! * No source is put off forever: it is due within its longest interval or wait after a failure,
//!   and its hours. Without a longest interval, or with an endless shortest one, it may never be
//!   due.
//!
//! Use: the shell calls [`Schedule::poll_due`] when a slot is free, performs the pull, and reports
//! with [`Schedule::handle_pull`] or [`Schedule::handle_failure`]. One source is never pulled twice
//! at the same time. Times are Unix milliseconds.
//!
//! Sans-I/O.

mod back_off;
mod cap;
mod cost;
mod entry;
mod flags;
mod jump;
mod learned;
mod rules;
mod view;
mod window;

use std::time::Duration;

use crate::interval::{Planner, Replanned, Source};
use crate::metrics;
use crate::queue::DueQueue;

use cap::Cap;
pub use cost::PULL_COST_SECS;
use cost::{CostLine, PullMeans};
use entry::Entry;
use learned::Learned;
pub use learned::SourceNote;
pub use rules::{Pace, Rules, Settings};
pub use view::{Due, Expected, FirstChanges, PullReport, View};
pub use window::Window;

/// Longest wait that a source may ask for, milliseconds (a day).
pub const RETRY_AFTER_MAX_MS: u64 = 86_400_000;

/// Pause between two long polls of a source that had changes, milliseconds: a stream's changes are
/// fetched together. It doubles with each long poll that has changes within [`FOLLOW_STREAM_MS`] or
/// the last pause, up to the shortest interval and at most [`FOLLOW_PAUSE_MAX_MS`].
pub const FOLLOW_PAUSE_MS: u64 = 50;

/// Longest pause between two long polls, milliseconds; it bounds the delay of changes.
pub const FOLLOW_PAUSE_MAX_MS: u64 = 1_000;

/// Time from a long poll's request within which a change is part of a stream, milliseconds.
pub const FOLLOW_STREAM_MS: u64 = 1_000;

/// Pause after a long poll that returned early and empty, milliseconds: a source that does not hold
/// its answer must not be asked in a tight loop.
pub const FOLLOW_IDLE_MS: u64 = 1_000;

/// Maximum step back in time, milliseconds, that is ignored. After a larger step the clock was set
/// back, which requires a pass over every source.
const SLIP_MS: u64 = 1_000;

/// Time from an announced update to the pull that fetches it, seconds: announced times are whole
/// seconds, and the update should have happened.
pub const SYNDICATION_PAUSE_SECS: i64 = 1;

/// Number of a source. The numbers of removed sources are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u32);

impl SourceId {
    /// Returns the number; numbers are dense, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The schedule of pulls.
#[derive(Debug)]
pub struct Schedule {
    settings: Settings,
    planner: Planner,
    /// The time that a change takes, over the pulls of all sources.
    line: CostLine,
    /// The sources, by their numbers; `None` for a free number.
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// Sources whose pulls take a slot.
    due: DueQueue,
    /// Followed sources; their long polls take no slot.
    follows: DueQueue,
    cap: Cap,
    /// Whether the last pull was of a followed source.
    was_followed: bool,
    /// The latest time seen; the wall clock may be set back.
    seen_ms: u64,
}

impl Schedule {
    /// Returns a schedule without sources.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            planner: Planner::new(settings.policy, settings.model),
            line: CostLine::default(),
            entries: Vec::new(),
            free: Vec::new(),
            due: DueQueue::default(),
            follows: DueQueue::default(),
            cap: Cap::new(settings.pulls_per_minute_max),
            was_followed: false,
            seen_ms: 0,
        }
    }

    /// Adds sources with their notes. A new source is due at once; a source that was pulled before
    /// is due one interval after its last pull. Returns their numbers, in their order.
    pub fn add(
        &mut self,
        sources: impl IntoIterator<Item = (Rules, SourceNote)>,
        now_ms: u64,
    ) -> Vec<SourceId> {
        let sources = sources.into_iter();
        let (count, _) = sources.size_hint();
        let new = count.saturating_sub(self.free.len());
        self.entries.reserve_exact(new);
        self.planner.reserve_exact(new);
        let mut ids = Vec::with_capacity(count);
        for (rules, known) in sources {
            let entry = Entry::new(rules, &known, now_ms);
            self.line.handle_note(entry.learned.took, known.overhead_secs);
            let id = self.free.pop().unwrap_or_else(|| {
                self.entries.push(None);
                u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
            });
            if let Some(free) = self.entries.get_mut(id as usize) {
                *free = Some(entry);
            }
            ids.push(SourceId(id));
        }
        let followed = self.entries.iter().flatten().filter(|it| it.is_followed()).count();
        self.follows.reserve_exact(followed, self.entries.len());
        self.due.reserve_exact(self.entries.len() - followed, self.entries.len());
        self.plan_new(&ids);
        self.enqueue_all(now_ms);
        ids
    }

    /// Changes the rules of a source.
    pub fn handle_rules(&mut self, id: SourceId, rules: Rules, now_ms: u64) {
        let Some(entry) = self.entry_mut(id) else { return };
        entry.handle_rules(rules);
        self.replan(id, now_ms);
    }

    /// Changes the settings and the rules of many sources with one plan; due times follow at once.
    pub fn handle_all_rules(
        &mut self,
        rules: impl IntoIterator<Item = (SourceId, Rules)>,
        settings: Settings,
        now_ms: u64,
    ) {
        for (id, rules) in rules {
            if let Some(entry) = self.entry_mut(id) {
                entry.handle_rules(rules);
            }
        }
        self.settings = settings;
        self.cap.set(settings.pulls_per_minute_max);
        // A new planner, since with other bounds a source may gain or lose its rate.
        self.planner = Planner::new(settings.policy, settings.model);
        self.planner.reserve_exact(self.entries.len());
        let mut ids = Vec::with_capacity(self.entries.len());
        for (id, entry) in (0..).zip(&mut self.entries) {
            if let Some(entry) = entry {
                entry.slot = None;
                ids.push(SourceId(id));
            }
        }
        self.plan_new(&ids);
        self.enqueue_all(now_ms);
    }

    /// Removes a source. The report of a running pull is ignored, unless its number was reused.
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

    /// Returns the next due pull; `None` if none may begin now. `slot` tells whether a slot is
    /// free; pulls of followed sources need none.
    pub fn poll_due(&mut self, slot: bool, now_ms: u64) -> Option<Due> {
        if now_ms.saturating_add(SLIP_MS) < self.seen_ms {
            self.seen_ms = now_ms;
            self.handle_past(now_ms);
        }
        if now_ms < self.cap.next_ms() {
            return None;
        }
        // Followed and other sources take turns: if the cap does not let all begin, none starve.
        let turn = !self.was_followed;
        let (id, followed) = [turn, !turn].into_iter().find_map(|followed| {
            let id = match followed {
                true => self.follows.poll_due(now_ms),
                false if slot => self.due.poll_due(now_ms),
                false => None,
            };
            Some((id?, followed))
        })?;
        self.was_followed = followed;
        self.cap.pass(now_ms);
        let entry = self.entry_mut(SourceId(id))?;
        let (wait, slot) = (entry.begin(now_ms), !entry.is_followed());
        Some(Due { source: SourceId(id), wait, slot })
    }

    /// Returns the time of the next pull from [`poll_due`](Self::poll_due), if nothing else
    /// happens; `None` if no pull will be due.
    pub fn poll_timeout(&self, slot: bool) -> Option<u64> {
        let due = if slot { self.due.next_due() } else { None };
        let first = self.follows.next_due().into_iter().chain(due).min();
        first.map(|at| at.max(self.cap.next_ms()))
    }

    /// Makes a source due now, despite its interval, back-off or hours. If a pull is running,
    /// another follows it; after a long poll none follows, since it notices all changes anyway.
    /// Returns false if there is no such source.
    pub fn handle_request(&mut self, id: SourceId, now_ms: u64) -> bool {
        let Some(entry) = self.entry_mut(id) else { return false };
        entry.handle_request();
        self.enqueue(id, now_ms);
        true
    }

    /// Handles a notification that a source has changed: it is due as soon as its shortest
    /// interval, its back-off and its hours allow. If a pull is under way, another follows it.
    /// Returns false if there is no such source.
    pub fn handle_notice(&mut self, id: SourceId, now_ms: u64) -> bool {
        let Some(entry) = self.entry_mut(id) else { return false };
        entry.handle_notice();
        self.enqueue(id, now_ms);
        true
    }

    /// Handles the report of a successful pull that ended at `now_ms`.
    pub fn handle_pull(&mut self, id: SourceId, found: PullReport, now_ms: u64) {
        let Some(entry) = self.entries.get_mut(id.index()).and_then(Option::as_mut) else { return };
        entry.handle_pull(found, self.settings, &mut self.line, now_ms);
        self.replan(id, now_ms);
    }

    /// Handles a failed pull; `retry_after` is the wait that the source asks for.
    pub fn handle_failure(&mut self, id: SourceId, retry_after: Option<Duration>, now_ms: u64) {
        let Some(entry) = self.entry_mut(id) else { return };
        entry.handle_failure(id, retry_after, now_ms);
        self.enqueue(id, now_ms);
    }

    /// Handles a pull that was given up on our side: the source is due again as before.
    pub fn handle_cancel(&mut self, id: SourceId, now_ms: u64) {
        if let Some(entry) = self.entry_mut(id) {
            entry.handle_cancel();
            self.enqueue(id, now_ms);
        }
    }

    /// Returns the note of a source, to store over a restart; `None` if there is no such source.
    pub fn note(&self, id: SourceId) -> Option<SourceNote> {
        self.entry(id).map(|entry| entry.learned.note(&self.line))
    }

    /// Returns the view of a source for status; `None` if there is no such source.
    pub fn view(&self, id: SourceId) -> Option<View> {
        let entry = self.entry(id)?;
        let estimate = entry.estimate(self.settings);
        let learned = &entry.learned;
        let took = Some(learned.took).filter(|it| it.changes().is_some());
        Some(View {
            rate: estimate.map(|it| it.rate),
            elements: learned.elements(),
            interval_secs: interval(&self.planner, entry),
            due_ms: self.due.due(id.0).or_else(|| self.follows.due(id.0)),
            pulling: entry.is_pulling(),
            freshness: learned.measured.freshness(),
            took_secs: took.map(PullMeans::secs),
            pull_cost: took.map(|it| it.pull_cost(&self.line)),
            failures: entry.failures(),
            back_off_ms: entry.back_off_ms(),
        })
    }

    /// Returns the measured freshness over all sources, with the policy's weights (Adly §3.1);
    /// `None` before any source is measured.
    pub fn freshness(&self) -> Option<f64> {
        metrics::overall(self.entries.iter().flatten().map(|entry| {
            let Learned { measured, .. } = &entry.learned;
            let elements = entry.learned.elements().unwrap_or_default();
            (measured.freshness(), entry.weight(), elements)
        }))
    }

    /// Returns the expected effects of the plan, over sources with a known rate.
    pub fn expected(&self) -> Expected {
        let (shortest, longest) = self.planner.at_bounds();
        let contradictory = |entry: &&Entry| entry.bounds().contradict();
        Expected {
            outcome: self.planner.outcome(),
            freshness: self.planner.freshness(),
            pulls: self.planner.pulls(),
            shortest,
            longest,
            contradictory: self.entries.iter().flatten().filter(contradictory).count(),
        }
    }

    /// Returns a source as the policy would see it at another pace, once its rate is known;
    /// [`plan`](crate::interval::plan) gives the effect of another policy.
    pub fn source_at(&self, id: SourceId, pace: Pace) -> Option<Source> {
        self.entry(id)?.source_at(pace, self.settings, &self.line)
    }

    fn entry(&self, id: SourceId) -> Option<&Entry> {
        self.entries.get(id.index())?.as_ref()
    }

    fn entry_mut(&mut self, id: SourceId) -> Option<&mut Entry> {
        self.entries.get_mut(id.index())?.as_mut()
    }

    /// Adds new sources with a rate to the planner.
    fn plan_new(&mut self, ids: &[SourceId]) {
        let (settings, line, entries) = (self.settings, &self.line, &self.entries);
        let source = |id: &SourceId| entries.get(id.index())?.as_ref()?.source(settings, line);
        let mut slots = self.planner.extend(ids.iter().filter_map(source)).into_iter();
        for id in ids {
            if let Some(entry) = self.entry_mut(*id).filter(|it| it.estimate(settings).is_some()) {
                entry.slot = slots.next();
            }
        }
    }

    /// Updates a source in the planner.
    fn plan(&mut self, id: SourceId) -> Replanned {
        let settings = self.settings;
        let Some(entry) = self.entries.get_mut(id.index()).and_then(Option::as_mut) else {
            return Replanned::One;
        };
        let Some(source) = entry.source(settings, &self.line) else {
            // With longer bounds the time watched may no longer be enough for a rate.
            return entry.slot.take().map_or(Replanned::One, |it| self.planner.remove(it));
        };
        if let Some(slot) = entry.slot {
            return self.planner.update(slot, &source);
        }
        let (slot, replanned) = self.planner.insert(&source);
        entry.slot = Some(slot);
        replanned
    }

    /// Updates a source in the planner, and the due times that follow.
    fn replan(&mut self, id: SourceId, now_ms: u64) {
        match self.plan(id) {
            Replanned::One => self.enqueue(id, now_ms),
            Replanned::All => self.enqueue_all(now_ms),
        }
    }

    /// Puts a source into its queue, unless it is being pulled.
    fn enqueue(&mut self, id: SourceId, now_ms: u64) {
        self.seen_ms = self.seen_ms.max(now_ms);
        let Some(entry) = self.entry(id) else { return };
        let due_ms = entry.due(interval(&self.planner, entry), now_ms);
        let (queue, other) = if entry.is_followed() {
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

    /// Recomputes every due time.
    fn enqueue_all(&mut self, now_ms: u64) {
        self.seen_ms = self.seen_ms.max(now_ms);
        let (entries, planner) = (&self.entries, &self.planner);
        for (queue, follow) in [(&mut self.due, false), (&mut self.follows, true)] {
            let dues = (0..).zip(entries).filter_map(|(id, entry)| {
                let entry = entry.as_ref().filter(|it| it.is_followed() == follow)?;
                Some((id, entry.due(interval(planner, entry), now_ms)?))
            });
            queue.replace(dues);
        }
    }
}

/// Returns the interval of a source from its last pull to the next, in seconds; `None` before the
/// first pull, and for a followed source.
fn interval(planner: &Planner, entry: &Entry) -> Option<f64> {
    entry.interval(|slot| planner.interval(slot))
}

/// Narrows a number to seven digits.
fn narrowed(number: f64) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "that is what it is for")]
    let narrowed = number as f32;
    narrowed
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
