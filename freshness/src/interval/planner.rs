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

use super::model::Model;
use super::solve::{Scale, Term};
use super::{Outcome, Policy, Source, interval, room, solve};

/// How far the sums may be off before all intervals are computed anew, as a share of what is asked for.
pub(super) const DRIFT_SHARE_MAX: f64 = 0.01;

/// Names a source in its planner. Slots of removed sources are given out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u32);

impl Slot {
    /// The slot as an index; slots are dense.
    pub fn index(self) -> usize {
        self.0 as usize
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
    free: Vec<u32>,
    scale: Scale,
    outcome: Outcome,
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
    /// Σ aN s, elements.
    stale: f64,
    /// Σ aN, elements.
    mass: f64,
    /// Stale elements while pulls run, weighted.
    reserve: f64,
    /// ΣN, elements.
    elements: f64,
    /// Σ 1/I, pulls a second.
    pulls: f64,
}

impl Sums {
    fn add(&mut self, term: &Term, interval: f64, sign: f64) {
        self.stale += sign * term.stale(interval);
        self.mass += sign * term.mass;
        self.reserve += sign * term.reserve;
        self.elements += sign * term.elements;
        self.pulls += sign * interval.recip();
    }

    /// How far what there is differs from what is asked for, and what that is.
    fn off(&self, policy: Policy) -> (f64, f64) {
        match policy {
            Policy::Individual { .. } | Policy::Fixed { .. } => (0.0, 0.0),
            Policy::Optimal { theta } | Policy::Uniform { theta } => {
                let room = room(self.mass, self.reserve, theta);
                (self.stale - room, room)
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
            sums: Sums::default(),
            off: 0.0,
            mass_max: 0.0,
            changes: 0,
        }
    }

    /// Changes the policy. `sources` are all there are, by slot, since terms depend on the model.
    pub fn handle_policy<'a>(
        &mut self,
        policy: Policy,
        model: Model,
        sources: impl IntoIterator<Item = (Slot, &'a Source)>,
    ) {
        (self.policy, self.model) = (policy, model);
        for (slot, source) in sources {
            if let Some(term) = self.terms.get_mut(slot.index()) {
                *term = policy.term(source, model);
            }
        }
        self.replan();
    }

    /// Adds sources, and computes all intervals anew.
    pub fn extend<'a>(&mut self, sources: impl IntoIterator<Item = &'a Source>) -> Vec<Slot> {
        let slots = sources.into_iter().map(|source| self.place(source)).collect();
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
        self.free.push(slot.0);
        self.change(before, Term::NONE)
    }

    /// The interval of a source, in seconds; infinite for one that is not there.
    pub fn interval(&self, slot: Slot) -> f64 {
        self.terms
            .get(slot.index())
            .map_or(f64::INFINITY, |term| interval(term, self.policy, self.scale))
    }

    /// Whether the policy's aim could be met when all intervals were last computed.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Expected freshness of the whole, weighted; 1 when there is nothing.
    pub fn freshness(&self) -> f64 {
        let Sums { stale, reserve, mass, .. } = self.sums;
        if 0.0 < mass { 1.0 - (stale + reserve) / mass } else { 1.0 }
    }

    /// Pulls a second of all sources together.
    pub fn pulls(&self) -> f64 {
        self.sums.pulls
    }

    /// Computes all intervals anew.
    pub fn replan(&mut self) {
        (self.scale, self.outcome) = solve(&self.terms, self.policy, self.scale);
        self.sums = Sums::default();
        for term in &self.terms {
            self.sums.add(term, interval(term, self.policy, self.scale), 1.0);
        }
        (self.off, _) = self.sums.off(self.policy);
        self.mass_max = self.sums.mass;
        self.changes = 0;
    }

    fn place(&mut self, source: &Source) -> Slot {
        let term = self.policy.term(source, self.model);
        if let Some(free) = self.free.pop()
            && let Some(place) = self.terms.get_mut(free as usize)
        {
            *place = term;
            return Slot(free);
        }
        let next = u32::try_from(self.terms.len()).unwrap_or(u32::MAX);
        self.terms.push(term);
        Slot(next)
    }

    /// Takes a source's part in the sums from what it was to what it is.
    fn change(&mut self, before: Term, now: Term) -> Replanned {
        for (term, sign) in [(before, -1.0), (now, 1.0)] {
            self.sums.add(&term, interval(&term, self.policy, self.scale), sign);
        }
        self.changes += 1;
        self.mass_max = self.mass_max.max(self.sums.mass);
        let (off, asked) = self.sums.off(self.policy);
        let close = (off - self.off).abs() <= DRIFT_SHARE_MAX * asked;
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
