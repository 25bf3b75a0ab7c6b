//! The planner: intervals that follow their sources pull by pull, without a new plan each time.
//!
//! Source: Adly §4, where every pull recomputes every interval. All intervals depend on one number,
//! the scale. A pull changes one source's part of the sums that the scale was solved for. While the
//! sums are off by at most [`DRIFT_SHARE_MAX`], only that source's own interval changes. One source
//! of M moves the sums by about 1/M. So a whole recomputation comes at most about every M / 100
//! pulls, and a pull costs a constant number of steps on average.
//!
//! # Differences from the paper
//!
//! * Between recomputations freshness is off by up to a hundredth of the staleness that θ allows.
//!
//! Sans-I/O.

use std::num::NonZeroU32;

use super::model::Model;
use super::solve::{Scale, Term};
use super::{Aims, Outcome, Policy, Source, interval, measure, room, solve};

/// Maximum error of the sum, as a share of its target, without a recomputation of all intervals.
pub(super) const DRIFT_SHARE_MAX: f64 = 0.01;

/// Slot of a source in its planner. Slots of removed sources are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(NonZeroU32);

impl Slot {
    /// Returns the slot of an index from 0; too large indices share the last slot.
    fn new(index: usize) -> Self {
        let number = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        Self(NonZeroU32::new(number).unwrap_or(NonZeroU32::MAX))
    }

    /// Returns the slot as an index; slots are dense.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The sources whose intervals have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Replanned {
    /// Only the given source, if it still exists.
    One,
    /// All sources.
    All,
}

/// The intervals of many sources under one policy.
#[derive(Clone, Debug)]
pub struct Planner {
    policy: Policy,
    model: Model,
    /// By slot; free slots are [`Term::NONE`].
    terms: Vec<Term>,
    free: Vec<Slot>,
    scale: Scale,
    /// Outcome of the policy's aim for all sources together.
    outcome: Outcome,
    /// Outcomes of the aims of each source.
    aims: Aims,
    sums: Sums,
    /// [`Sums::off`] when the scale was solved.
    off: f64,
    /// Greatest ΣaN since the scale was solved.
    mass_max: f64,
    /// Number of changes since the scale was solved.
    changes: usize,
}

/// Sums that the scale depends on, updated with every change.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Stale elements between pulls, weighted.
    stale: f64,
    /// Σ aN, elements.
    mass: f64,
    /// Stale elements for the time that pulls take, weighted.
    lost: f64,
    /// ΣN, elements.
    elements: f64,
    /// Σ 1/I, pulls a second.
    pulls: f64,
}

impl Sums {
    fn add(&mut self, term: &Term, (interval, stale): (f64, f64), sign: f64) {
        self.stale += sign * stale;
        self.mass += sign * term.mass;
        self.lost += sign * term.lost();
        self.elements += sign * term.elements();
        self.pulls += sign * interval.recip();
    }

    /// Returns the error of the sum that the scale was solved for (for the combined cost, ΣN
    /// itself), and the size to which its drift is compared. For θ that is all the staleness that θ
    /// allows, because the part that is left for the time between pulls may be almost nothing.
    fn off(&self, policy: Policy) -> (f64, f64) {
        match policy {
            Policy::Individual { .. } | Policy::Fixed { .. } => (0.0, 0.0),
            Policy::Optimal { theta } | Policy::Uniform { theta } => {
                (self.stale - room(self.mass, self.lost, theta), room(self.mass, 0.0, theta))
            }
            Policy::Budget { pulls } => (self.pulls - pulls, pulls),
            Policy::CombinedCost { .. } => (self.elements, self.elements),
        }
    }
}

impl Planner {
    /// Returns a planner without sources.
    pub fn new(policy: Policy, model: Model) -> Self {
        Self {
            policy,
            model,
            terms: Vec::new(),
            free: Vec::new(),
            scale: Scale::exactly(0.0),
            outcome: Outcome::Met,
            aims: Aims::default(),
            sums: Sums::default(),
            off: 0.0,
            mass_max: 0.0,
            changes: 0,
        }
    }

    /// Reserves memory for exactly `sources` more sources.
    pub fn reserve_exact(&mut self, sources: usize) {
        self.terms.reserve_exact(sources);
    }

    /// Adds sources, and recomputes all intervals.
    pub fn extend(&mut self, sources: impl IntoIterator<Item = Source>) -> Vec<Slot> {
        let slots = sources.into_iter().map(|source| self.store(&source)).collect();
        self.replan();
        slots
    }

    /// Adds a source.
    pub fn insert(&mut self, source: &Source) -> (Slot, Replanned) {
        let slot = self.store(source);
        let term = self.terms.get(slot.index()).copied().unwrap_or(Term::NONE);
        (slot, self.change(Term::NONE, term))
    }

    /// Updates a source.
    pub fn update(&mut self, slot: Slot, source: &Source) -> Replanned {
        let term = self.policy.term(source, self.model);
        let Some(stored) = self.terms.get_mut(slot.index()) else { return Replanned::One };
        let before = std::mem::replace(stored, term);
        self.change(before, term)
    }

    /// Removes a source.
    pub fn remove(&mut self, slot: Slot) -> Replanned {
        let Some(stored) = self.terms.get_mut(slot.index()) else { return Replanned::One };
        let before = std::mem::replace(stored, Term::NONE);
        if before.is_none() {
            return Replanned::One;
        }
        self.free.push(slot);
        self.change(before, Term::NONE)
    }

    /// Returns the interval of a source, in seconds; infinite for a free slot.
    pub fn interval(&self, slot: Slot) -> f64 {
        self.terms.get(slot.index()).map_or(f64::INFINITY, |term| self.interval_of(term))
    }

    /// Returns whether the policy's aim is met: an aim for all sources together, at the last
    /// recomputation of all intervals; an aim of each source, now.
    pub fn outcome(&self) -> Outcome {
        self.aims.outcome(self.outcome)
    }

    /// Returns the expected freshness of the whole, weighted; 1 without sources.
    pub fn freshness(&self) -> f64 {
        let Sums { stale, lost, mass, .. } = self.sums;
        if 0.0 < mass { 1.0 - (stale + lost) / mass } else { 1.0 }
    }

    /// Returns the pulls a second of all sources together.
    pub fn pulls(&self) -> f64 {
        self.sums.pulls
    }

    /// Returns the numbers of sources at their shortest and at their longest interval; sources
    /// whose two bounds are equal are not counted.
    pub fn at_bounds(&self) -> (usize, usize) {
        let (mut shortest, mut longest) = (0, 0);
        for term in self.terms.iter().filter(|it| it.lower < it.upper) {
            let interval = self.interval_of(term);
            shortest += usize::from(interval <= term.lower);
            longest += usize::from(term.upper <= interval);
        }
        (shortest, longest)
    }

    /// Recomputes all intervals.
    pub fn replan(&mut self) {
        (self.scale, self.outcome) = solve(&self.terms, self.policy, self.model, self.scale);
        (self.sums, self.aims) = (Sums::default(), Aims::default());
        for term in &self.terms {
            let measured = measure(term, self.policy, self.model, self.scale);
            self.sums.add(term, measured, 1.0);
            self.aims.add(term, self.policy, self.model, measured.0);
        }
        (self.off, _) = self.sums.off(self.policy);
        self.mass_max = self.sums.mass;
        self.changes = 0;
    }

    /// Returns whether all sources are at a bound and must stay there.
    fn is_still_off(&self, off: f64) -> bool {
        // Fewer pulls mean more staleness.
        let off = if matches!(self.policy, Policy::Budget { .. }) { -off } else { off };
        match self.outcome {
            Outcome::Met | Outcome::Partly => false,
            Outcome::AllLongest => off < 0.0,
            Outcome::AllShortest => 0.0 < off,
        }
    }

    fn store(&mut self, source: &Source) -> Slot {
        let term = self.policy.term(source, self.model);
        if let Some(free) = self.free.pop()
            && let Some(stored) = self.terms.get_mut(free.index())
        {
            *stored = term;
            return free;
        }
        self.terms.push(term);
        Slot::new(self.terms.len() - 1)
    }

    fn interval_of(&self, term: &Term) -> f64 {
        interval(term, self.policy, self.model, self.scale)
    }

    /// Replaces a source's part of the sums.
    fn change(&mut self, before: Term, now: Term) -> Replanned {
        for (term, sign) in [(before, -1.0), (now, 1.0)] {
            let measured = measure(&term, self.policy, self.model, self.scale);
            self.sums.add(&term, measured, sign);
            let count = if sign < 0.0 { Aims::remove } else { Aims::add };
            count(&mut self.aims, &term, self.policy, self.model, measured.0);
        }
        self.changes += 1;
        self.mass_max = self.mass_max.max(self.sums.mass);
        let (off, asked) = self.sums.off(self.policy);
        let close = (off - self.off).abs() <= DRIFT_SHARE_MAX * asked || self.is_still_off(off);
        // Rounding errors must not accumulate without end, nor dominate small sums.
        let exact =
            self.changes < self.terms.len().max(1_000) && self.mass_max < 2.0 * self.sums.mass;
        if close && exact {
            return Replanned::One;
        }
        self.replan();
        Replanned::All
    }
}
