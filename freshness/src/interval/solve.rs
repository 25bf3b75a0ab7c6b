//! The one equation behind every policy: at which multiplier a sum over all sources has its value.
//!
//! Minimizing Σ cᵢ/Iᵢ under a bound on the staleness Σ aᵢNᵢs(λᵢIᵢ/Nᵢ), with Lᵢ ≤ Iᵢ ≤ Uᵢ, the
//! Karush–Kuhn–Tucker conditions leave one unknown, the multiplier μ of the bound: with straight lines
//! Iᵢ = clip(√(2cᵢ/(μ aᵢ λᵢ)), Lᵢ, Uᵢ), with the Poisson curve its like. Written with `scale` = 1/√μ,
//! every interval grows with it, so that the sum does, and a bracket that is halved finds it.
//!
//! On the Poisson curve a source is given up from some scale on, and just below it its interval grows
//! faster than the next two floating-point numbers tell apart. Where the answer lies between such two, a
//! [`Scale`] mixes what each of them gives.
//!
//! Sans-I/O.

use super::model::{Model, x_of_marginal};
use super::{Bounds, Source};

/// Rates above this, in updates a second, count as this.
const RATE_MAX: f64 = 1e9;
/// Rates below this, in updates a second, count as none: one in thirty million years.
const RATE_LEAST: f64 = 1e-15;
/// Weights and costs are held within this and its inverse; a weight of 0 stays.
const WEIGHT_MAX: f64 = 1e12;
/// Intervals below this, in seconds, count as this: no pull is as quick, and 1/I stays finite.
const INTERVAL_LEAST_SECS: f64 = 1e-9;
/// Most steps of a search; each halves what is left, or does better.
const STEPS_MAX: usize = 200;
/// Relative error at which a search ends.
const TOLERANCE: f64 = 1e-12;

/// A source as the equation sees it: sane numbers only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    model: Model,
    /// λ/N, changes a second of one element.
    pace: f64,
    /// aN, what the source counts for.
    pub(super) mass: f64,
    /// N.
    pub(super) elements: f64,
    /// Cost of a pull.
    pub(super) cost: f64,
    /// √(2c/(aλ)): the interval at scale 1, on a straight line.
    reach: f64,
    pub(super) lower: f64,
    pub(super) upper: f64,
}

/// How intervals follow from the one unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Each by its rate, cost and weight: the optimum.
    Optimal,
    /// All the same, but for their bounds.
    Uniform,
}

/// A sum over all sources, with its slope by the unknown.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    value: f64,
    slope: f64,
}

/// The one unknown: 1/√μ, or the interval that is the same for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    /// How much of the pulls are those that `high` gives, where it is not `low`; 0 to 1.
    share: f64,
}

/// What is to have which value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// Σ aN s, elements.
    Staleness(f64),
    /// Σ 1/I, pulls a second.
    Pulls(f64),
}

/// Whether the goal is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    Exactly,
    /// All at their longest, and still less stale, or more pulls, than asked.
    AllLongest,
    /// All at their shortest, and still more stale, or fewer pulls, than asked.
    AllShortest,
}

impl Term {
    /// A source that is not there: nothing that is summed up hears of it.
    pub(super) const NONE: Self = Self {
        model: Model::Printed,
        pace: 0.0,
        mass: 0.0,
        elements: 0.0,
        cost: 0.0,
        reach: f64::INFINITY,
        lower: f64::INFINITY,
        upper: f64::INFINITY,
    };

    pub(super) fn is_none(&self) -> bool {
        self.lower.is_infinite() && self.cost <= 0.0
    }

    /// `alike`: pulls count the same whatever they cost.
    pub(super) fn new(source: &Source, model: Model, alike: bool) -> Self {
        let rate = source.workload.rate;
        // NaN is no rate.
        let rate = if RATE_LEAST <= rate { rate.min(RATE_MAX) } else { 0.0 };
        let elements = source.workload.elements.max(1) as f64;
        let weight = if source.weight <= 0.0 { 0.0 } else { sane(source.weight) };
        let cost = sane(source.pull_cost);
        let Bounds { interval_min, interval_max: upper } = source.bounds.settled();
        let lower = interval_min.max(INTERVAL_LEAST_SECS);
        let pace = rate / elements;
        let longest = if 0.0 < pace { model.x_max() / pace } else { f64::INFINITY };
        Self {
            model,
            pace,
            mass: weight * elements,
            elements,
            cost,
            reach: (2.0 * if alike { 1.0 } else { cost } / (weight * rate)).sqrt(),
            lower,
            upper: upper.min(longest).max(lower),
        }
    }

    /// The interval at `scale`, in seconds.
    pub(super) fn interval(&self, shape: Shape, scale: Scale) -> f64 {
        let (low, _) = self.interval_at(shape, scale.low);
        if scale.low.total_cmp(&scale.high).is_eq() {
            return low;
        }
        let (high, _) = self.interval_at(shape, scale.high);
        ((1.0 - scale.share) / low + scale.share / high).recip().clamp(self.lower, self.upper)
    }

    /// The interval at a scale, in seconds, and how fast it grows with it (0 at a bound).
    fn interval_at(&self, shape: Shape, scale: f64) -> (f64, f64) {
        let (free, slope) = match shape {
            Shape::Uniform => (scale, 1.0),
            Shape::Optimal if !self.reach.is_finite() => (f64::INFINITY, 0.0),
            Shape::Optimal if self.model == Model::Poisson => self.poisson(scale),
            Shape::Optimal => (scale * self.reach, self.reach),
        };
        if free <= self.lower {
            (self.lower, 0.0)
        } else if self.upper <= free {
            (self.upper, 0.0)
        } else {
            (free, slope)
        }
    }

    fn poisson(&self, scale: f64) -> (f64, f64) {
        // At scale 1 a straight line would have x = pace · reach there, and half its square.
        let line = scale * self.pace * self.reach;
        let x = x_of_marginal(line * line / 2.0);
        if x.is_infinite() {
            return (x, 0.0);
        }
        let fall = (-x).exp();
        let slope = if x < 1e-6 { line } else { line * line / (x * fall) };
        (x / self.pace, slope / (scale * self.pace))
    }

    /// aN s at an interval, in elements, and how fast it grows with it.
    fn staleness(&self, interval: f64) -> Sum {
        // Nothing times an endless interval is nothing.
        if self.pace <= 0.0 || self.mass <= 0.0 {
            return Sum::default();
        }
        let x = self.pace * interval;
        Sum {
            value: self.mass * self.model.staleness(x),
            slope: self.mass * self.pace * self.model.slope(x),
        }
    }

    /// Expected stale elements, weighted.
    pub(super) fn stale(&self, interval: f64) -> f64 {
        self.staleness(interval).value
    }

    /// The interval at which `share` of this source's elements is stale by itself.
    pub(super) fn interval_of_staleness(&self, share: f64) -> f64 {
        let free = self.model.x_of_staleness(share) / self.pace;
        // Nothing stale of a source that never changes, in no time: any interval will do.
        if free.is_nan() { self.upper } else { free.clamp(self.lower, self.upper) }
    }
}

/// `value` within what can be reckoned with; 1 for what is no number.
fn sane(value: f64) -> f64 {
    if value.is_nan() { 1.0 } else { value.clamp(WEIGHT_MAX.recip(), WEIGHT_MAX) }
}

impl Scale {
    pub(super) fn exactly(at: f64) -> Self {
        Self { low: at, high: at, share: 0.0 }
    }

    /// Finds the scale at which the goal is reached; the search starts at `guess`.
    pub(super) fn find(terms: &[Term], shape: Shape, goal: Goal, guess: Self) -> (Self, Reached) {
        let slack = TOLERANCE * goal.target().abs();
        let at = |scale| goal.sum(terms, |term| term.interval_at(shape, scale));
        let (least, most) = (at(0.0).value, at(f64::INFINITY).value);
        if most <= slack {
            let reached = if most < -slack { Reached::AllLongest } else { Reached::Exactly };
            return (Self::exactly(f64::INFINITY), reached);
        }
        if -slack <= least {
            let reached = if slack < least { Reached::AllShortest } else { Reached::Exactly };
            return (Self::exactly(0.0), reached);
        }
        let (low, high) = root(at, guess.low, slack);
        let mut found = Self { low, high, share: 0.0 };
        let (mut least, mut most) = (0.0, 1.0);
        while low < high && least < most {
            found.share = f64::midpoint(least, most);
            let value = goal.sum(terms, |term| (term.interval(shape, found), 0.0)).value;
            if value.abs() <= slack || most - least <= f64::EPSILON {
                break;
            }
            if value < 0.0 { least = found.share } else { most = found.share }
        }
        (found, Reached::Exactly)
    }
}

impl Goal {
    fn target(self) -> f64 {
        match self {
            Self::Staleness(target) | Self::Pulls(target) => target,
        }
    }

    /// How far the sum is from the target, below 0 where intervals should be longer; `interval` gives a
    /// term's interval and how fast it grows.
    fn sum(self, terms: &[Term], interval: impl Fn(&Term) -> (f64, f64)) -> Sum {
        let mut sum = Sum::default();
        for term in terms {
            let (interval, growth) = interval(term);
            let part = match self {
                Self::Staleness(_) => term.staleness(interval),
                Self::Pulls(_) => Sum { value: interval.recip(), slope: interval.powi(2).recip() },
            };
            sum.value += part.value;
            // Nothing times an endless growth is nothing.
            sum.slope += if 0.0 < growth { part.slope * growth } else { 0.0 };
        }
        match self {
            Self::Staleness(target) => Sum { value: sum.value - target, ..sum },
            Self::Pulls(target) => Sum { value: target - sum.value, ..sum },
        }
    }
}

/// Where a sum grows from below 0 to above 0: a point twice, or two neighbors, in order.
///
/// Newton's steps while they stay in the bracket and get on, halves of it otherwise.
fn root(sum: impl Fn(f64) -> Sum, guess: f64, slack: f64) -> (f64, f64) {
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut at = if guess.is_normal() && 0.0 < guess { guess } else { 1.0 };
    let (mut stride, mut before) = (4.0, f64::INFINITY);
    for _ in 0..STEPS_MAX {
        let Sum { value, slope } = sum(at);
        if value.abs() <= slack {
            return (at, at);
        }
        if value < 0.0 {
            low = at
        } else {
            high = at
        }
        let newton = at - value / slope;
        let gets_on = value.abs() <= 0.5 * before;
        before = value.abs();
        at = if low < newton && newton < high && newton.is_finite() && gets_on {
            newton
        } else if high.is_infinite() {
            stride = f64::min(stride * stride, 1e18);
            at * stride
        } else if low <= 0.0 {
            stride = f64::min(stride * stride, 1e18);
            at / stride
        } else if high < 2.0 * low {
            f64::midpoint(low, high)
        } else {
            (low * high).sqrt()
        };
        if at <= low || high <= at || !at.is_normal() {
            break;
        }
    }
    if low <= 0.0 || high.is_infinite() { (at, at) } else { (low, high) }
}
