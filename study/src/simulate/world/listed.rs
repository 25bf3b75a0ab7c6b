//! Repositories whose changes are not random: even ones, and replays.
//!
//! Source: Adly §3.1, fig. 2, for the even one: distinct elements change in turn, so eq. 1 is
//! exact.
//!
//! # Differences from the paper
//!
//! * If there were more changes than there are elements, all elements are stale, and no more.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::changes::{Change, RATE_MAX, held};
use super::measure::{PullResult, Totals};

/// A repository that changes evenly; see [`Process::Even`](super::Process::Even).
#[derive(Clone, Copy, Debug)]
pub(super) struct Even {
    pub(super) rate: f64,
    pub(super) elements: u64,
    pub(super) start: f64,
}

impl Even {
    pub(super) fn new(elements: u64, rate: f64, start: f64) -> Self {
        let rate = if elements == 0 { 0.0 } else { held(rate, 0.0, RATE_MAX) };
        Self { rate, elements, start }
    }

    /// Advances the time; the last pull was at `since`.
    pub(super) fn advance(&self, since: f64, from: f64, to: f64, totals: &mut Totals) {
        totals.element_secs += self.elements as f64 * (to - from);
        // The stale elements and the changes not yet pulled, integrated along straight lines.
        let (from, to) = (from - since, to - since);
        let counted = |secs: f64| self.rate * secs * secs / 2.0;
        let full = if 0.0 < self.rate { self.elements as f64 / self.rate } else { f64::INFINITY };
        let stale =
            |secs: f64| counted(secs.min(full)) + self.elements as f64 * (secs - full).max(0.0);
        totals.stale_secs += stale(to) - stale(from);
        totals.counted_secs += counted(to) - counted(from);
    }

    /// Returns the changes since `since`.
    pub(super) fn pull(&self, since: f64, at: f64) -> PullResult {
        let (before, now) = (self.count(since), self.count(at));
        let changes = now - before;
        let updates = changes.min(self.elements as f64);
        // The changes now, now − 1 … are at distances of 1/λ; nothing is divided by a rate of 0.
        let ages_secs = if 0.0 < updates {
            updates * (at - self.start - now / self.rate) + updates * updates / (2.0 * self.rate)
        } else {
            0.0
        };
        PullResult {
            updates: super::draw::count(updates),
            changes: super::draw::count(changes),
            elements: self.elements,
            ages_secs: ages_secs.max(0.0),
        }
    }

    /// Returns the number of changes up to `at`.
    fn count(&self, at: f64) -> f64 {
        (self.rate * (at - self.start) + 0.5).floor().max(0.0)
    }
}

/// A repository that replays a list. Takes memory for each element changed since the last pull.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    changes: Arc<[Change]>,
    next: usize,
    /// Number of changes since the last pull.
    changed: u64,
    /// Time of the last change of each element that changed since the last pull.
    lasts: BTreeMap<u32, f64>,
    elements: u64,
}

impl Replay {
    /// Starts a replay; changes before `start` count as pulled.
    pub(super) fn new(elements: u64, changes: &Arc<[Change]>, start: f64) -> Self {
        let sound = |it: &Change| it.at.is_finite();
        let changes = if changes.is_sorted_by(|a, b| a.at <= b.at) && changes.iter().all(sound) {
            Arc::clone(changes)
        } else {
            let mut sorted: Vec<Change> = changes.iter().copied().filter(sound).collect();
            sorted.sort_by(|a, b| a.at.total_cmp(&b.at));
            sorted.into()
        };
        let (lasts, changed, next) = (BTreeMap::new(), 0, 0);
        let mut replay = Self { changes, next, changed, lasts, elements };
        while replay.due(start).is_some_and(|it| it.at < start) {
            replay.take();
        }
        replay.lasts.clear();
        replay.changed = 0;
        replay
    }

    pub(super) fn advance(&mut self, from: f64, to: f64, totals: &mut Totals) {
        let mut at = from;
        while let Some(change) = self.due(to) {
            totals.pass(change.at - at, self.counts());
            at = change.at;
            self.take();
        }
        totals.pass(to - at, self.counts());
    }

    /// Makes everything fresh, and returns the changes.
    pub(super) fn pull(&mut self, at: f64) -> PullResult {
        let found = PullResult {
            updates: self.lasts.len() as u64,
            changes: self.changed,
            elements: self.elements,
            ages_secs: self.lasts.values().fold(0.0, |sum, last| sum + (at - last)),
        };
        self.lasts.clear();
        self.changed = 0;
        found
    }

    /// Returns the next change, if it is due at `at`.
    fn due(&self, at: f64) -> Option<Change> {
        let next = self.changes.get(self.next).copied();
        next.filter(|it| it.at <= at)
    }

    fn take(&mut self) {
        if let Some(Change { at, element }) = self.changes.get(self.next) {
            self.elements = self.elements.max(u64::from(*element) + 1);
            self.lasts.insert(*element, *at);
            self.changed += 1;
            self.next += 1;
        }
    }

    fn counts(&self) -> [u64; 3] {
        [self.elements, self.lasts.len() as u64, self.changed]
    }
}
