//! Harvest intervals: the optimal ones, and the rival policies of the paper.
//!
//! Sources: Adly §3.3 (eq. 3), §5 and §6; Liu et al. for [`Policy::Fixed`]. Of all intervals that
//! keep a collection θ fresh, those of eq. 3 cost least: a source's interval is proportional to the
//! inverse square root of its update rate.
//!
//! # Differences from the paper
//!
//! * Bounds are part of the optimization. A source at a bound leaves a part of the staleness `(1 −
//!   θ) ΣaN` to the others, so θ is reached exactly if the bounds allow it. Otherwise [`Outcome`]
//!   says so, and the plan comes as near as possible.
//! * Pulls may cost different amounts at different sources, and sources may have weights: θ is then
//!   the weighted mean Σ aNF / Σ aN. The paper has weights in its combined cost only.
//! * The straight line of eq. 1 is one [`Model`] of three; with the Poisson curve fewer pulls are
//!   needed for the same true freshness, and freshness stays between 0 and 1.
//! * A pull takes a time τ, and its records are that old when it ends. If a source's elements
//!   change at the pace p = λ/N, a share e^(−pτ) is still fresh then, and F = (1 − s) e^(−pτ). This
//!   is exact for random changes: ∫ e^(−pt) dt / I from τ to τ + I. For straight lines the factor
//!   is 1 − min(pτ, 1), so that no freshness falls below 0. The loss is subtracted from the
//!   staleness that θ allows; if it exceeds that, θ is out of reach.
//! * The dual problem, the greatest freshness that a number of pulls can buy, is solved too
//!   ([`Policy::Budget`]).
//! * A source that never changes gets its longest interval, where eq. 3 divides by zero. Rates are
//!   limited to 10⁹ a second; N is at least 1; NaN becomes 0 (a rate) or 1 (a cost, a weight). If
//!   bounds contradict each other, the shortest interval holds, because the source asks for it.
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

/// Change rate and size of one source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Update rate λ, in updates a second; finite, not negative.
    pub rate: f64,
    /// Number of elements N at the source.
    pub elements: u64,
}

/// Bounds of a source's interval, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Shortest interval L (politeness); not negative.
    pub interval_min: f64,
    /// Longest interval U; may be infinite.
    pub interval_max: f64,
}

impl Bounds {
    /// No bounds.
    pub const FREE: Self = Self { interval_min: 0.0, interval_max: f64::INFINITY };

    /// Returns whether no interval lies within the bounds.
    pub fn contradict(self) -> bool {
        self.interval_max < self.interval_min
    }

    /// Returns consistent bounds: not negative, the longest no shorter than the shortest.
    pub fn settled(self) -> Self {
        let interval_min = if 0.0 < self.interval_min { self.interval_min } else { 0.0 };
        // NaN sets no bound.
        let interval_max =
            if self.interval_max.is_nan() { f64::INFINITY } else { self.interval_max };
        Self { interval_min, interval_max: interval_max.max(interval_min) }
    }
}

/// A source as the policies see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source {
    /// Its change rate and size.
    pub workload: Workload,
    /// Cost C_P of a pull, in any unit; above 0.
    pub pull_cost: f64,
    /// Duration of a pull, in seconds; its records are that old when it ends.
    pub pull_secs: f64,
    /// Weight a of its freshness relative to the others; not negative.
    pub weight: f64,
    /// The bounds of its interval.
    pub bounds: Bounds,
}

impl Source {
    /// Returns a source whose pulls cost 1 and take no time, and that counts by its size.
    pub fn new(rate: f64, elements: u64, bounds: Bounds) -> Self {
        let workload = Workload { rate, elements };
        Self { workload, pull_cost: 1.0, pull_secs: 0.0, weight: 1.0, bounds }
    }

    /// Returns the expected freshness of this source alone, when `interval` seconds lie between the
    /// starts of two pulls; bounds are ignored. From 0 to 1, but with [`Model::Printed`] also below
    /// 0. NaN is an infinite interval.
    pub fn freshness_at(&self, interval: f64, model: Model) -> f64 {
        let interval = if interval.is_nan() { f64::INFINITY } else { interval.max(0.0) };
        Term::new(self, model, false).freshness(model, interval)
    }
}

/// Policy by which intervals follow from workloads.
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
    /// One interval for all sources: UNAP, with an interval guessed from the workloads (Adly §5.2),
    /// and Liu's uniform model.
    Fixed {
        /// The interval, in seconds.
        interval: f64,
    },
    /// The least cost of pulls plus staleness (Adly §6); the weights are the paper's aᵢ/a.
    CombinedCost {
        /// Loss in a second in which everything is stale, in the unit of the pulls' cost: a/T.
        price: f64,
    },
    /// The greatest freshness with a given number of pulls; all pulls count the same.
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
/// [`Optimal`](Policy::Optimal), [`Uniform`](Policy::Uniform) and [`Budget`](Policy::Budget) have
/// one aim for all sources together. [`Individual`](Policy::Individual) and
/// [`Fixed`](Policy::Fixed) have one for each: θ, for sources that ever change, and the interval.
/// [`CombinedCost`](Policy::CombinedCost) asks for the least cost within the bounds, which always
/// exists. Sources never to be pulled are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The aim is met exactly; if each source has an aim, by each source.
    Met,
    /// All sources are at their longest interval (at most N/λ under [`Model::Linear`]), and fresher
    /// than asked, or pulled more often than the budget or the interval says.
    AllLongest,
    /// All sources are at their shortest interval, and still less fresh than asked, or pulled less
    /// often than the budget or the interval says. [`Plan::freshness`] is the attainable one.
    AllShortest,
    /// If each source has an aim: bounds keep some sources from it, but not all to the same side.
    /// [`Plan::freshness`] is the result.
    Partly,
}

/// Intervals, and their expected effects.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Interval of each source in seconds, in the order of the sources; infinite for a source that
    /// is not to be pulled again.
    pub intervals: Vec<f64>,
    /// Whether the aim is met.
    pub outcome: Outcome,
    /// Expected freshness of the whole, weighted; 1 without sources.
    pub freshness: f64,
    /// Pulls a second of all sources together.
    pub pulls: f64,
    /// Their cost a second, in the unit of the sources' costs.
    pub pull_cost: f64,
}

/// Computes the interval of each source.
///
/// Every input gives a plan; for senseless numbers see "Differences from the paper".
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

/// Numbers of sources with an aim of their own: those that meet it, and those that their longest or
/// shortest interval keeps from it.
#[derive(Clone, Copy, Debug, Default)]
struct Aims {
    met: usize,
    longest: usize,
    shortest: usize,
}

impl Aims {
    /// Difference of freshness up to which an aim is met.
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

    /// Returns the number to which a source pulled at `interval` belongs; `None` if it has no aim.
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
                // Two endless intervals are equal.
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

    /// Returns the policy's outcome; `whole` is that of its aim for all sources together.
    fn outcome(self, whole: Outcome) -> Outcome {
        match self {
            Self { longest: 0, shortest: 0, .. } => whole,
            Self { met: 0, shortest: 0, .. } => Outcome::AllLongest,
            Self { met: 0, longest: 0, .. } => Outcome::AllShortest,
            _ => Outcome::Partly,
        }
    }
}

/// Finds the one unknown of a policy, and the outcome of its aim for all sources together; the
/// search starts at `guess`.
fn solve(terms: &[Term], policy: Policy, model: Model, guess: Scale) -> (Scale, Outcome) {
    let (shape, goal) = match policy {
        Policy::Individual { .. } | Policy::Fixed { .. } => {
            return (Scale::exactly(0.0), Outcome::Met);
        }
        Policy::CombinedCost { price } => {
            let elements: f64 = terms.iter().map(Term::elements).sum();
            // A price of 0 lets everything grow old; NaN counts as 0.
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

/// Returns the interval of one source under a policy whose unknown is `scale`, in seconds.
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

/// Returns the interval, and the weighted number of elements that are stale then.
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

/// Returns the weighted number of elements that θ allows to be stale between pulls, if `lost` of
/// `mass` elements are stale because pulls take time. Negative if `lost` alone is too much.
fn room(mass: f64, lost: f64, theta: f64) -> f64 {
    (1.0 - within(theta)) * mass - lost
}

fn room_of(terms: &[Term], theta: f64) -> f64 {
    let sum = |part: fn(&Term) -> f64| terms.iter().map(part).sum();
    room(sum(|it| it.mass), sum(Term::lost), theta)
}

/// Returns the interval of [`Policy::Fixed`], at least 0; infinite for NaN.
fn asked(interval: f64) -> f64 {
    if interval.is_nan() { f64::INFINITY } else { interval.max(0.0) }
}

/// Clamps θ to 0 and 1; NaN counts as 0.
fn within(theta: f64) -> f64 {
    if theta.is_nan() { 0.0 } else { theta.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests;
