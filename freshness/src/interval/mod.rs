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
//! * Pulls take time. What changes while they run is put by from the staleness that θ leaves room for,
//!   up to half of it, before the intervals get the rest.
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
    /// How long a pull takes, in seconds: what changes meanwhile is stale until it has ended.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is, exactly.
    Met,
    /// All sources are at their longest interval, and fresher than asked (or pulled more often than the
    /// budget has it).
    AllLongest,
    /// All sources are at their shortest interval, and still less fresh than asked (or pulled less than
    /// the budget allows): [`Plan::freshness`] is the attainable one.
    AllShortest,
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
    let (mut pulls, mut pull_cost, mut stale, mut mass) = (0.0, 0.0, 0.0, 0.0);
    for (term, source) in terms.iter().zip(sources) {
        let (interval, aged) = measure(term, policy, model, scale);
        intervals.push(interval);
        pulls += interval.recip();
        pull_cost += cost(source) / interval;
        stale += aged + term.reserve();
        mass += term.mass;
    }
    let freshness = if 0.0 < mass { 1.0 - stale / mass } else { 1.0 };
    Plan { intervals, outcome, freshness, pulls, pull_cost }
}

/// The one unknown of a policy; `guess` is where the search for it starts.
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
            let interval = if interval.is_nan() { f64::INFINITY } else { interval };
            term.interval(Shape::Uniform, model, Scale::exactly(interval.max(0.0)))
        }
        Policy::Individual { theta } => term.interval_of_staleness(model, 1.0 - within(theta)),
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

/// Most of the staleness that θ leaves room for that is put by for the time that pulls take.
const RESERVE_SHARE_MAX: f64 = 0.5;

/// The stale elements that θ leaves room for between pulls, weighted, when there are `mass` of which
/// `reserve` are stale while pulls run.
fn room(mass: f64, reserve: f64, theta: f64) -> f64 {
    let room = (1.0 - within(theta)) * mass;
    room - reserve.min(RESERVE_SHARE_MAX * room)
}

fn room_of(terms: &[Term], theta: f64) -> f64 {
    let sum = |part: fn(&Term) -> f64| terms.iter().map(part).sum();
    room(sum(|it| it.mass), sum(Term::reserve), theta)
}

/// θ within 0 and 1; what is no number asks for nothing.
fn within(theta: f64) -> f64 {
    if theta.is_nan() { 0.0 } else { theta.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests;
