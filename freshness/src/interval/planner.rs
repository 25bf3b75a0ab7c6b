//! Intervals that follow their sources pull by pull, without being computed anew every time.
//!
//! Source: Adly §4, where every pull recomputes every interval. All intervals hang on one number,
//! the scale. A pull changes what one source adds to the sums that the scale was solved for, and as long
//! as those are off by no more than [`DRIFT_SHARE_MAX`], only that source's own interval changes. Since
//! one source of M moves the sums by about 1/M, a whole recomputation comes about every M / 100 pulls at
//! most, and each of them costs a constant number of steps on average.
//!
//! # Differences from the paper
//!
//! * Between two recomputations freshness is off by up to a hundredth of what θ leaves room for.
//!
//! Sans-I/O.

use std::borrow::Borrow;
use std::num::NonZeroU32;

use super::model::Model;
use super::solve::{Scale, Term};
use super::{Aims, Outcome, Policy, Source, interval, measure, room, solve};

/// How far the sums may be off before all intervals are computed anew, as a share of what is asked for.
pub(super) const DRIFT_SHARE_MAX: f64 = 0.01;

/// Names a source in its planner. Slots of removed sources are given out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(NonZeroU32);

impl Slot {
    /// From 0; of more than there are numbers, the last.
    fn new(index: usize) -> Self {
        let number = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        Self(NonZeroU32::new(number).unwrap_or(NonZeroU32::MAX))
    }

    /// The slot as an index; slots are dense.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Whose intervals have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Replanned {
    /// That of the source at hand, if it is still there.
    One,
    /// Those of all.
    All,
}

/// The intervals of many sources under one policy.
#[derive(Clone, Debug)]
pub struct Planner {
    policy: Policy,
    model: Model,
    /// By slot; sources that are not there are [`Term::NONE`].
    terms: Vec<Term>,
    free: Vec<Slot>,
    scale: Scale,
    /// Of the policy's aim for all together.
    outcome: Outcome,
    /// And for each.
    aims: Aims,
    sums: Sums,
    /// What [`Sums::off`] was when the scale was solved.
    off: f64,
    /// The most that ΣaN has been since then.
    mass_max: f64,
    /// Changes since then.
    changes: usize,
}

/// What the scale hangs on, kept up with every change.
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

    /// How far what there is differs from what is asked for, and what that is (of a θ, all that it leaves
    /// room for: what pulls leave of it may be next to nothing).
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
    /// A planner of no sources.
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

    /// Changes the policy. `sources` are all there are, by slot, since terms depend on the model.
    pub fn handle_policy(
        &mut self,
        policy: Policy,
        model: Model,
        sources: impl IntoIterator<Item = (Slot, impl Borrow<Source>)>,
    ) {
        (self.policy, self.model) = (policy, model);
        for (slot, source) in sources {
            if let Some(term) = self.terms.get_mut(slot.index()) {
                *term = policy.term(source.borrow(), model);
            }
        }
        self.replan();
    }

    /// Makes room for so many sources more, and no other.
    pub fn reserve_exact(&mut self, sources: usize) {
        self.terms.reserve_exact(sources);
    }

    /// Adds sources, and computes all intervals anew.
    pub fn extend(&mut self, sources: impl IntoIterator<Item = impl Borrow<Source>>) -> Vec<Slot> {
        let slots = sources.into_iter().map(|source| self.place(source.borrow())).collect();
        self.replan();
        slots
    }

    /// Adds a source.
    pub fn insert(&mut self, source: &Source) -> (Slot, Replanned) {
        let slot = self.place(source);
        let term = self.terms.get(slot.index()).copied().unwrap_or(Term::NONE);
        (slot, self.change(Term::NONE, term))
    }

    /// Takes in what is known of a source now.
    pub fn update(&mut self, slot: Slot, source: &Source) -> Replanned {
        let term = self.policy.term(source, self.model);
        let Some(place) = self.terms.get_mut(slot.index()) else { return Replanned::One };
        let before = std::mem::replace(place, term);
        self.change(before, term)
    }

    /// Forgets a source.
    pub fn remove(&mut self, slot: Slot) -> Replanned {
        let Some(place) = self.terms.get_mut(slot.index()) else { return Replanned::One };
        let before = std::mem::replace(place, Term::NONE);
        if before.is_none() {
            return Replanned::One;
        }
        self.free.push(slot);
        self.change(before, Term::NONE)
    }

    /// The interval of a source, in seconds; infinite for one that is not there.
    pub fn interval(&self, slot: Slot) -> f64 {
        self.terms.get(slot.index()).map_or(f64::INFINITY, |term| self.interval_of(term))
    }

    /// Whether the policy's aim is met: for all together, when all intervals were last computed; for each,
    /// now.
    pub fn outcome(&self) -> Outcome {
        self.aims.outcome(self.outcome)
    }

    /// Expected freshness of the whole, weighted; 1 when there is nothing.
    pub fn freshness(&self) -> f64 {
        let Sums { stale, lost, mass, .. } = self.sums;
        if 0.0 < mass { 1.0 - (stale + lost) / mass } else { 1.0 }
    }

    /// Pulls a second of all sources together.
    pub fn pulls(&self) -> f64 {
        self.sums.pulls
    }

    /// How many sources are at their shortest interval, and how many at their longest, of those that have
    /// both.
    pub fn at_bounds(&self) -> (usize, usize) {
        let (mut shortest, mut longest) = (0, 0);
        for term in self.terms.iter().filter(|it| it.lower < it.upper) {
            let interval = self.interval_of(term);
            shortest += usize::from(interval <= term.lower);
            longest += usize::from(term.upper <= interval);
        }
        (shortest, longest)
    }

    /// Computes all intervals anew.
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

    /// Whether all are at a bound, and have to stay there.
    fn is_still_off(&self, off: f64) -> bool {
        // Fewer pulls are what more staleness is.
        let off = if matches!(self.policy, Policy::Budget { .. }) { -off } else { off };
        match self.outcome {
            Outcome::Met | Outcome::Partly => false,
            Outcome::AllLongest => off < 0.0,
            Outcome::AllShortest => 0.0 < off,
        }
    }

    fn place(&mut self, source: &Source) -> Slot {
        let term = self.policy.term(source, self.model);
        if let Some(free) = self.free.pop()
            && let Some(place) = self.terms.get_mut(free.index())
        {
            *place = term;
            return free;
        }
        self.terms.push(term);
        Slot::new(self.terms.len() - 1)
    }

    fn interval_of(&self, term: &Term) -> f64 {
        interval(term, self.policy, self.model, self.scale)
    }

    /// Takes a source's part in the sums from what it was to what it is.
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
        // Rounding errors must not add up without end, nor be all that is left.
        let exact =
            self.changes < self.terms.len().max(1_000) && self.mass_max < 2.0 * self.sums.mass;
        if close && exact {
            return Replanned::One;
        }
        self.replan();
        Replanned::All
    }
}
