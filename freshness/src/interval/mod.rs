//! Harvest intervals: the optimal ones, and the rivals that they are compared with.
//!
//! Sources: Adly §3.3 (eq. 3), §5 and §6; Liu et al. for [`Policy::Fixed`]. Of all intervals that keep a
//! collection θ fresh, those of eq. 3 cost least: a source's interval goes with the inverse square root
//! of its update rate.
//!
//! # Differences from the paper
//!
//! * Bounds are part of the problem, not a cut after it: what a source at a bound leaves of the
//!   staleness `(1 − θ) ΣaN` goes to the others, so that θ is reached exactly whenever the bounds allow
//!   it. When they do not, [`Outcome`] says so, and the plan is what comes nearest.
//! * Pulls may cost different amounts at different sources, and sources may count differently: with
//!   weights, θ is the weighted mean Σ aNF / Σ aN. The paper has weights in its combined cost only.
//! * The straight line of eq. 1 is one [`Model`] of three; with the Poisson curve fewer pulls are needed
//!   for the same true freshness, and freshness stays between 0 and 1.
//! * Pulls take time, τ: what they bring is as old as that when they end. Of a source whose elements
//!   change at the pace p = λ/N, a share e^(−pτ) is still fresh then, and F = (1 − s) e^(−pτ), which is
//!   exact for changes at random: ∫ e^(−pt) dt / I from τ to τ + I. With straight lines 1 − min(pτ, 1)
//!   stands in its place, so that no freshness falls below 0 for it. What is lost so is put by from the
//!   staleness that θ leaves room for; when it is more than that, θ is out of reach.
//! * The dual problem, the freshest that so many pulls can buy, is solved too ([`Policy::Budget`]).
//! * A source that never changes gets its longest interval, where eq. 3 divides by zero. Rates count as
//!   10⁹ a second at most, N as 1 at least, what is no number as 0 (a rate) or 1 (a cost, a weight).
//!   Where bounds contradict each other the shortest interval holds, being the source's own wish.
//!
//! Sans-I/O.

mod model;
mod planner;
mod solve;

pub use model::Model;
pub use planner::{Planner, Replanned, Slot};
#[cfg(test)]
pub(crate) use solve::TERM_BYTES;
use solve::{Goal, Reached, Scale, Shape, Term, cost};

/// What a harvester knows of one source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Update rate λ, in updates a second; finite, not negative.
    pub rate: f64,
    /// Number of elements N at the source.
    pub elements: u64,
}

/// Between which intervals a source may be pulled, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Shortest interval L (politeness); not negative.
    pub interval_min: f64,
    /// Longest interval U; may be infinite.
    pub interval_max: f64,
}

impl Default for Bounds {
    /// From 10 seconds to 7 days (the TR's refresh rate).
    fn default() -> Self {
        Self { interval_min: 10.0, interval_max: 7.0 * 86_400.0 }
    }
}

impl Bounds {
    /// No bounds.
    pub const FREE: Self = Self { interval_min: 0.0, interval_max: f64::INFINITY };

    /// True when no interval lies within.
    pub fn contradict(self) -> bool {
        self.interval_max < self.interval_min
    }

    /// Bounds that hold together: not negative, the longest no shorter than the shortest.
    pub fn settled(self) -> Self {
        let interval_min = if 0.0 < self.interval_min { self.interval_min } else { 0.0 };
        // What is no number bounds nothing.
        let interval_max =
            if self.interval_max.is_nan() { f64::INFINITY } else { self.interval_max };
        Self { interval_min, interval_max: interval_max.max(interval_min) }
    }
}

/// A source, as the policies weigh it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source {
    /// How fast it changes, and how large it is.
    pub workload: Workload,
    /// Cost C_P of a pull, in any unit; above 0.
    pub pull_cost: f64,
    /// How long a pull takes, in seconds: what it brings is as old as that when it ends.
    pub pull_secs: f64,
    /// Weight a of its freshness beside the others'; not negative.
    pub weight: f64,
    /// Between which intervals it may be pulled.
    pub bounds: Bounds,
}

impl Source {
    /// A source whose pulls cost 1 and take no time, and that counts as it is large.
    pub fn new(rate: f64, elements: u64, bounds: Bounds) -> Self {
        let workload = Workload { rate, elements };
        Self { workload, pull_cost: 1.0, pull_secs: 0.0, weight: 1.0, bounds }
    }

    /// Expected freshness of this source by itself when `interval` seconds lie between two pulls, from
    /// asking to asking, whatever the bounds: 0 to 1, but for [`Model::Printed`], which goes below 0. What
    /// is no interval counts as an endless one.
    pub fn freshness_at(&self, interval: f64, model: Model) -> f64 {
        let interval = if interval.is_nan() { f64::INFINITY } else { interval.max(0.0) };
        Term::new(self, model, false).freshness(model, interval)
    }
}

/// How intervals follow from workloads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// OAP(θ): the least cost at freshness `theta` (Adly eq. 3).
    Optimal {
        /// Freshness θ of the whole, 0 to 1.
        theta: f64,
    },
    /// UAP: one interval for all, at freshness `theta` (Adly §5.1).
    Uniform {
        /// Freshness θ of the whole, 0 to 1.
        theta: f64,
    },
    /// IOAP: each source at freshness `theta` by itself (Adly §5.3).
    Individual {
        /// Freshness θ of each, 0 to 1.
        theta: f64,
    },
    /// One interval for all, whatever they do: UNAP, with an interval from a guess of the workloads
    /// (Adly §5.2), and Liu's uniform model.
    Fixed {
        /// The interval, in seconds.
        interval: f64,
    },
    /// The least of what pulls cost and staleness loses (Adly §6), the weights being the paper's aᵢ/a.
    CombinedCost {
        /// What a second loses when everything is stale, in the unit of the pulls' cost: a/T.
        price: f64,
    },
    /// The freshest that so many pulls allow; they count the same whatever they cost.
    Budget {
        /// Pulls a second of all sources together.
        pulls: f64,
    },
}

impl Policy {
    fn term(self, source: &Source, model: Model) -> Term {
        Term::new(source, model, matches!(self, Self::Budget { .. }))
    }
}

/// Whether the policy's aim is met within the bounds.
///
/// [`Optimal`](Policy::Optimal), [`Uniform`](Policy::Uniform) and [`Budget`](Policy::Budget) have one aim
/// for all sources together. [`Individual`](Policy::Individual) and [`Fixed`](Policy::Fixed) have one for
/// each: θ, of those that ever change, and the interval. [`CombinedCost`](Policy::CombinedCost) asks for
/// the least within the bounds, and that there always is. Sources that are never to be pulled are left
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is, exactly; where each source has an aim, each has met it.
    Met,
    /// All sources are at their longest interval (which is N/λ at most under [`Model::Linear`]), and
    /// fresher than asked, or pulled more often than the budget or the interval has it.
    AllLongest,
    /// All sources are at their shortest interval, and still less fresh than asked, or pulled less than
    /// the budget or the interval has it: [`Plan::freshness`] is the attainable one.
    AllShortest,
    /// Some sources, not all of them to the same side, are kept by their bounds from the θ or the interval
    /// that is meant for each: [`Plan::freshness`] is what comes of it. Only where each has an aim.
    Partly,
}

/// Intervals, and what is to be expected of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Interval of each source in seconds, in the order of the sources; infinite for a source that is
    /// not to be pulled again.
    pub intervals: Vec<f64>,
    /// Whether the aim is met.
    pub outcome: Outcome,
    /// Expected freshness of the whole, weighted; 1 when there is nothing.
    pub freshness: f64,
    /// Pulls a second of all sources together.
    pub pulls: f64,
    /// What they cost a second, in the unit of the sources' costs.
    pub pull_cost: f64,
}

/// Computes the interval of each source.
///
/// Every input gives a plan: see "Differences from the paper" for what is no sensible number.
pub fn plan(sources: &[Source], policy: Policy, model: Model) -> Plan {
    let terms: Vec<Term> = sources.iter().map(|it| policy.term(it, model)).collect();
    let (scale, outcome) = solve(&terms, policy, model, Scale::exactly(0.0));
    let mut intervals = Vec::with_capacity(terms.len());
    let mut aims = Aims::default();
    let (mut pulls, mut pull_cost, mut stale, mut mass) = (0.0, 0.0, 0.0, 0.0);
    for (term, source) in terms.iter().zip(sources) {
        let (interval, aged) = measure(term, policy, model, scale);
        intervals.push(interval);
        aims.add(term, policy, model, interval);
        pulls += interval.recip();
        pull_cost += cost(source) / interval;
        stale += aged + term.lost();
        mass += term.mass;
    }
    let freshness = if 0.0 < mass { 1.0 - stale / mass } else { 1.0 };
    Plan { intervals, outcome: aims.outcome(outcome), freshness, pulls, pull_cost }
}

/// Of the sources that each have an aim, how many meet it, and how many a bound keeps from it.
#[derive(Clone, Copy, Debug, Default)]
struct Aims {
    met: usize,
    longest: usize,
    shortest: usize,
}

impl Aims {
    /// Freshness that differs by less is the same.
    const TOLERANCE: f64 = 1e-9;

    fn add(&mut self, term: &Term, policy: Policy, model: Model, interval: f64) {
        if let Some(count) = self.count(term, policy, model, interval) {
            *count = count.saturating_add(1);
        }
    }

    fn remove(&mut self, term: &Term, policy: Policy, model: Model, interval: f64) {
        if let Some(count) = self.count(term, policy, model, interval) {
            *count = count.saturating_sub(1);
        }
    }

    /// Where a source counts that is pulled at `interval`.
    fn count(
        &mut self,
        term: &Term,
        policy: Policy,
        model: Model,
        interval: f64,
    ) -> Option<&mut usize> {
        if term.is_never() {
            return None;
        }
        let longer_by = match policy {
            Policy::Fixed { interval: wanted } => {
                let wanted = asked(wanted);
                // Of two that are endless, neither is longer.
                if interval.total_cmp(&wanted).is_eq() { 0.0 } else { interval - wanted }
            }
            Policy::Individual { theta } if !term.is_still() => {
                let off = within(theta) - term.freshness(model, interval);
                if off.abs() <= Self::TOLERANCE { 0.0 } else { off }
            }
            _ => return None,
        };
        Some(if longer_by < 0.0 {
            &mut self.longest
        } else if 0.0 < longer_by {
            &mut self.shortest
        } else {
            &mut self.met
        })
    }

    /// What the policy comes to, when what it wants of all together comes to `whole`.
    fn outcome(self, whole: Outcome) -> Outcome {
        match self {
            Self { longest: 0, shortest: 0, .. } => whole,
            Self { met: 0, shortest: 0, .. } => Outcome::AllLongest,
            Self { met: 0, longest: 0, .. } => Outcome::AllShortest,
            _ => Outcome::Partly,
        }
    }
}

/// The one unknown of a policy, and what its aim for all together comes to; `guess` is where the search
/// starts.
fn solve(terms: &[Term], policy: Policy, model: Model, guess: Scale) -> (Scale, Outcome) {
    let (shape, goal) = match policy {
        Policy::Individual { .. } | Policy::Fixed { .. } => {
            return (Scale::exactly(0.0), Outcome::Met);
        }
        Policy::CombinedCost { price } => {
            let elements: f64 = terms.iter().map(Term::elements).sum();
            // A price of 0 lets everything grow old, and so does one that is no number.
            let price = if 0.0 < price { price } else { 0.0 };
            return (Scale::exactly((elements / price).sqrt()), Outcome::Met);
        }
        Policy::Optimal { theta } => (Shape::Optimal, Goal::Staleness(room_of(terms, theta))),
        Policy::Uniform { theta } => (Shape::Uniform, Goal::Staleness(room_of(terms, theta))),
        Policy::Budget { pulls } => {
            (Shape::Optimal, Goal::Pulls(if 0.0 < pulls { pulls.min(f64::MAX) } else { 0.0 }))
        }
    };
    let (scale, reached) = Scale::find(terms, shape, model, goal, guess);
    let outcome = match reached {
        Reached::Exactly => Outcome::Met,
        Reached::AllLongest => Outcome::AllLongest,
        Reached::AllShortest => Outcome::AllShortest,
    };
    (scale, outcome)
}

/// The interval of one source under a policy whose unknown is `scale`, in seconds.
fn interval(term: &Term, policy: Policy, model: Model, scale: Scale) -> f64 {
    match policy {
        Policy::Fixed { interval } => {
            term.interval(Shape::Uniform, model, Scale::exactly(asked(interval)))
        }
        Policy::Individual { theta } => term.interval_of_freshness(model, within(theta)),
        Policy::Uniform { .. } => term.interval(Shape::Uniform, model, scale),
        Policy::Optimal { .. } | Policy::CombinedCost { .. } | Policy::Budget { .. } => {
            term.interval(Shape::Optimal, model, scale)
        }
    }
}

/// The same, and how many of its elements are stale then, weighted.
fn measure(term: &Term, policy: Policy, model: Model, scale: Scale) -> (f64, f64) {
    match policy {
        Policy::Optimal { .. } | Policy::CombinedCost { .. } | Policy::Budget { .. } => {
            term.measure(Shape::Optimal, model, scale)
        }
        Policy::Fixed { .. } | Policy::Individual { .. } | Policy::Uniform { .. } => {
            let interval = interval(term, policy, model, scale);
            (interval, term.stale(model, interval))
        }
    }
}

/// The stale elements that θ leaves room for between pulls, weighted, when there are `mass` of which
/// `lost` are stale for the time that pulls take; below 0 where those are too many.
fn room(mass: f64, lost: f64, theta: f64) -> f64 {
    (1.0 - within(theta)) * mass - lost
}

fn room_of(terms: &[Term], theta: f64) -> f64 {
    let sum = |part: fn(&Term) -> f64| terms.iter().map(part).sum();
    room(sum(|it| it.mass), sum(Term::lost), theta)
}

/// An interval that is the same for all; what is no number is endless.
fn asked(interval: f64) -> f64 {
    if interval.is_nan() { f64::INFINITY } else { interval.max(0.0) }
}

/// θ within 0 and 1; what is no number asks for nothing.
fn within(theta: f64) -> f64 {
    if theta.is_nan() { 0.0 } else { theta.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests;
