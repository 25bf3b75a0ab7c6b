//! A repository whose changes come in bursts, drawn one by one.
//!
//! Source: as in [`changes`](super::changes). Elements that change at random are alike, so no
//! element needs a name: of N elements of which S are stale, a change hits a stale one with the
//! chance S/N. The state is S, and the time of each stale element's last change.
//!
//! # Differences from the paper
//!
//! * If more than [`AGES_MAX`] elements are stale, only the times of a sample are kept, and the sum
//!   of ages is an estimate.
//! * Between two calls for a repository, at most [`STRETCH_CHANGES_MAX`] changes are made.
//!
//! Sans-I/O.

use super::changes::{BURST_MAX, RATE_MAX, held};
use super::draw::{Random, count};
use super::measure::{PullResult, Totals};

/// Maximum number of stale elements of one repository whose last change is kept (128 KiB).
pub const AGES_MAX: usize = 16_384;
/// Maximum number of changes that are drawn for one repository between two calls for it.
pub const STRETCH_CHANGES_MAX: u32 = 5_000_000;

#[derive(Clone, Debug)]
pub(super) struct Bursts {
    /// Bursts a second.
    rate: f64,
    /// Mean number of changes in a burst.
    size_mean: f64,
    /// Separate from `hits`, so that the times of changes do not depend on the pulls.
    times: Random,
    hits: Random,
    elements: u64,
    /// Number of elements that are stale.
    stale: u64,
    /// Last change of each stale element, or a sample of these.
    lasts: Vec<f64>,
    changes: u64,
    /// The time of the next burst.
    next: f64,
}

impl Bursts {
    pub(super) fn new(
        elements: u64,
        (rate, burst): (f64, f64),
        start: f64,
        [times, hits]: [Random; 2],
    ) -> Self {
        let size_mean = held(burst, 1.0, BURST_MAX);
        let rate = held(rate, 0.0, RATE_MAX) / size_mean;
        let (stale, lasts, changes, next) = (0, Vec::new(), 0, 0.0);
        let mut bursts =
            Self { rate, size_mean, times, hits, elements, stale, lasts, changes, next };
        bursts.next = bursts.after(start);
        bursts
    }

    pub(super) fn advance(&mut self, from: f64, to: f64, totals: &mut Totals) {
        let (mut at, mut left) = (from, STRETCH_CHANGES_MAX);
        while self.next <= to {
            if left == 0 {
                self.next = self.after(to);
                break;
            }
            totals.pass(self.next - at, self.counts());
            at = self.next;
            let size = count(self.times.geometric(self.size_mean));
            let size = u32::try_from(size).unwrap_or(u32::MAX).min(left);
            left -= size;
            for _ in 0..size {
                self.change(at);
            }
            self.next = self.after(at);
        }
        totals.pass(to - at, self.counts());
    }

    /// Makes everything fresh, and returns the changes.
    pub(super) fn pull(&mut self, at: f64) -> PullResult {
        let known: f64 = self.lasts.iter().map(|last| at - last).sum();
        let of_known = self.stale as f64 / (self.lasts.len() as f64).max(1.0);
        let found = PullResult {
            updates: self.stale,
            changes: self.changes,
            elements: self.elements,
            ages_secs: (known * of_known).max(0.0),
        };
        self.lasts.clear();
        (self.stale, self.changes) = (0, 0);
        found
    }

    /// Returns the elements, the stale ones, and the changes, for the totals.
    fn counts(&self) -> [u64; 3] {
        [self.elements, self.stale, self.changes]
    }

    /// Draws the time of the next burst after `at`; infinite if there is none.
    fn after(&mut self, at: f64) -> f64 {
        let wait = self.times.exponential();
        if 0.0 < self.rate { at + wait / self.rate } else { f64::INFINITY }
    }

    fn change(&mut self, at: f64) {
        if self.elements == 0 {
            return;
        }
        self.changes += 1;
        let hit = self.hits.below(self.elements);
        if let Some(last) = place(hit).and_then(|hit| self.lasts.get_mut(hit)) {
            *last = at;
        } else if self.stale <= hit {
            self.add_stale(at);
        }
    }

    fn add_stale(&mut self, at: f64) {
        let kept = self.lasts.len();
        let all_kept = kept as u64 == self.stale;
        self.stale += 1;
        if all_kept && kept < AGES_MAX {
            self.lasts.push(at);
        } else if let Some(last) =
            place(self.hits.below(self.stale)).and_then(|hit| self.lasts.get_mut(hit))
        {
            // Every stale element is in the sample with the same chance.
            *last = at;
        }
    }
}

fn place(hit: u64) -> Option<usize> {
    usize::try_from(hit).ok()
}
