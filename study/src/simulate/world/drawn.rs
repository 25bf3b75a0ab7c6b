//! A repository whose changes are drawn one by one.
//!
//! Source: as in [`changes`](super::changes). Elements that change at random are alike, so no element needs a name:
//! of N elements of which S are stale, a change hits a stale one with the chance S/N. The state is S, and the time
//! of each stale element's last change.
//!
//! # Differences from the paper
//!
//! * For more than [`AGES_MAX`] stale elements, a sample of that size holds the times. Only the sum of ages is then
//!   an estimate.
//! * Between two looks at a repository, at most [`STRETCH_CHANGES_MAX`] changes are made.
//!
//! Sans-I/O.

use super::changes::{Burst, Epochs, Piece, Repository, held};
use super::draw::{Random, count};
use super::measure::{PullResult, Totals};

/// Maximum number of stale elements of one repository whose last change is kept (128 KiB).
pub const AGES_MAX: usize = 16_384;
/// Maximum number of changes that are drawn for one repository between two looks at it.
pub const STRETCH_CHANGES_MAX: u32 = 5_000_000;
/// Largest number of creations or deletions a second.
const GROWTH_MAX: f64 = 1.0;

/// State between two pulls.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    epochs: Epochs,
    /// The piece in which the last epoch lies.
    piece: Piece,
    /// Separate from `hits`, so that the times of changes do not depend on the pulls.
    times: Random,
    hits: Random,
    /// Live elements.
    elements: u64,
    /// Those of them that are stale.
    stale: u64,
    /// Last change of each stale element, or a sample of these.
    lasts: Vec<f64>,
    /// Elements deleted since the last pull, and the sum of the times from that pull to the deletions.
    deleted: u64,
    deleted_secs: f64,
    changes: u64,
    /// The time of the next epoch, and of the next creation or deletion.
    next: f64,
    next_growth: f64,
    growth: f64,
    silent_from: f64,
}

impl Drawn {
    pub(super) fn new(
        repository: &Repository,
        epochs: Epochs,
        start: f64,
        [mut times, hits]: [Random; 2],
    ) -> Self {
        let growth = held(repository.growth, -GROWTH_MAX, GROWTH_MAX);
        let mut piece = epochs.piece(start);
        let next = epochs.after(start, times.exponential(), &mut piece);
        Self {
            epochs,
            piece,
            times,
            hits,
            elements: repository.elements,
            stale: 0,
            lasts: Vec::new(),
            deleted: 0,
            deleted_secs: 0.0,
            changes: 0,
            next,
            next_growth: start + growth.abs().recip(),
            growth,
            silent_from: repository.silent_from,
        }
    }

    /// Advances the time; the last pull was at `since`.
    pub(super) fn advance(&mut self, since: f64, from: f64, to: f64, totals: &mut Totals) {
        let (mut at, mut left) = (from, STRETCH_CHANGES_MAX);
        loop {
            if self.silent_from <= self.next_growth {
                self.next_growth = f64::INFINITY;
            }
            let next = self.next.min(self.next_growth);
            if to < next {
                break;
            }
            if left == 0 {
                self.next = self.after(to);
                self.next_growth = to + self.growth.abs().recip();
                break;
            }
            totals.pass(next - at, self.counts());
            at = next;
            if self.next_growth < self.next {
                left -= 1;
                self.grow(at, at - since);
                self.next_growth += self.growth.abs().recip();
            } else {
                let size = self.size().min(left);
                left -= size;
                for _ in 0..size {
                    self.change(at);
                }
                self.next = self.after(at);
            }
        }
        totals.pass(to - at, self.counts());
    }

    /// Makes everything fresh, and returns the changes.
    pub(super) fn pull(&mut self, at: f64, elapsed_secs: f64) -> PullResult {
        let known: f64 = self.lasts.iter().map(|last| at - last).sum();
        let of_known = self.stale as f64 / (self.lasts.len() as f64).max(1.0);
        let gone = self.deleted as f64 * elapsed_secs - self.deleted_secs;
        let found = PullResult {
            updates: self.stale + self.deleted,
            changes: self.changes,
            elements: self.elements,
            ages_secs: (known * of_known + gone).max(0.0),
            elapsed_secs,
        };
        self.lasts.clear();
        (self.stale, self.deleted, self.deleted_secs, self.changes) = (0, 0, 0.0, 0);
        found
    }

    /// Returns the elements, the stale ones, and the changes, for the totals.
    fn counts(&self) -> [u64; 3] {
        let elements = self.elements.saturating_add(self.deleted);
        [elements, self.stale + self.deleted, self.changes]
    }

    /// Returns the next epoch after `at`.
    fn after(&mut self, at: f64) -> f64 {
        self.epochs.after(at, self.times.exponential(), &mut self.piece)
    }

    /// Returns the number of changes of this epoch.
    fn size(&mut self) -> u32 {
        let size = match self.epochs.burst() {
            Burst::Fixed(size) => size,
            Burst::Geometric(mean) => self.times.geometric(mean),
        };
        u32::try_from(count(size)).unwrap_or(u32::MAX)
    }

    /// Changes one element.
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

    /// Creates or deletes one element, `since_pull` seconds after the last pull.
    fn grow(&mut self, at: f64, since_pull: f64) {
        if 0.0 < self.growth {
            self.elements = self.elements.saturating_add(1);
            self.changes += 1;
            self.add_stale(at);
        } else if 0 < self.elements {
            let hit = self.hits.below(self.elements);
            if let Some(hit) = place(hit).filter(|hit| *hit < self.lasts.len()) {
                self.lasts.swap_remove(hit);
            }
            self.stale -= u64::from(hit < self.stale);
            self.elements -= 1;
            self.changes += 1;
            self.deleted += 1;
            self.deleted_secs += since_pull;
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
