//! The solver behind every policy: it finds the multiplier at which a sum over all sources has its
//! target value.
//!
//! Minimize Σ cᵢ/Iᵢ under a bound on the staleness Σ aᵢkᵢNᵢs(λᵢIᵢ/Nᵢ), with Lᵢ ≤ Iᵢ ≤ Uᵢ, where kᵢ
//! is the share that is still fresh when a pull ends. The Karush–Kuhn–Tucker conditions leave one
//! unknown, the multiplier μ of the bound. With straight lines Iᵢ = clip(√(2cᵢ/(μ aᵢ kᵢ λᵢ)), Lᵢ,
//! Uᵢ); the Poisson curve has a similar form. With `scale` = 1/√μ every interval grows with the
//! scale, and so does the sum: bisection finds the scale.
//!
//! On the Poisson curve, a source is no longer pulled at all from some scale on. Just below that
//! scale its interval grows so fast that it jumps between two neighboring floating-point numbers.
//! If the solution lies between two such numbers, a [`Scale`] mixes their intervals.
//!
//! Sans-I/O.

use super::model::{Model, x_of_marginal};
use super::{Bounds, Source};

/// Maximum rate, in updates a second; higher ones are treated as this one.
const RATE_MAX: f64 = 1e9;
/// Minimum rate, in updates a second (one in thirty million years); lower ones are treated as 0.
const RATE_LEAST: f64 = 1e-15;
/// Maximum duration of a pull, in seconds; longer ones are treated as this one.
const PULL_SECS_MAX: f64 = 1e9;
/// Maximum weight and cost; the minimum is its inverse. A weight of 0 stays 0.
const WEIGHT_MAX: f64 = 1e12;
/// Minimum interval, in seconds: no pull is that fast, and 1/I stays finite.
const INTERVAL_LEAST_SECS: f64 = 1e-9;
/// Maximum number of steps of a search; each halves the bracket, or does better.
const STEPS_MAX: usize = 200;
/// Number of terms above which a sample is solved first, which saves most of the steps.
const SAMPLED_MIN: usize = 4_096;
/// Distance between two terms of the sample.
const SAMPLE_STEP: usize = 61;
/// Relative error at which a search ends.
const TOLERANCE: f64 = 1e-11;

/// Memory of a source in a planner, in bytes.
#[cfg(test)]
pub(crate) const TERM_BYTES: usize = size_of::<Term>();

/// A source in the equation, with sane numbers only. There may be a million sources, so numbers
/// that are only summed have seven digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    /// λ/N, changes a second of one element.
    pace: f64,
    /// aN, the weighted size.
    pub(super) mass: f64,
    /// √(2c/(akλ)): the interval at scale 1, on a straight line.
    reach: f64,
    pub(super) lower: f64,
    pub(super) upper: f64,
    /// N, at least 1; 0 in a free slot.
    elements: f32,
    /// 1 − k, the share of elements that is stale for the time that a pull takes, 0 to 1.
    lost_share: f32,
}

/// Rule by which intervals follow from the one unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Each interval by rate, cost and weight: the optimum.
    Optimal,
    /// All intervals equal, within their bounds.
    Uniform,
}

/// One source at one scale.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// In seconds.
    interval: f64,
    /// d ln I / d ln scale; 0 at a bound.
    growth: f64,
    /// [`Term::staleness`], if already computed.
    stale: Option<(f64, f64)>,
}

impl Point {
    fn new(interval: f64, growth: f64) -> Self {
        Self { interval, growth, stale: None }
    }
}

/// A sum over all sources.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Distance from the target; below 0 if intervals should be longer.
    off: f64,
    /// The sum itself.
    value: f64,
    /// Its derivative by the logarithm of the scale.
    slope: f64,
}

/// The one unknown: 1/√μ, or the common interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    /// If `low` and `high` differ, share of `high` in the mix of their pull rates, 0 to 1.
    share: f64,
}

/// The sum to solve for, with its target.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// Σ akN s, elements.
    Staleness(f64),
    /// Σ 1/I, pulls a second.
    Pulls(f64),
}

/// Outcome of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    Exactly,
    /// All intervals are at their longest, and still there is less staleness than the target, or
    /// there are more pulls.
    AllLongest,
    /// All intervals are at their shortest, and still there is more staleness than the target, or
    /// there are fewer pulls.
    AllShortest,
}

impl Term {
    /// A free slot; it adds nothing to any sum.
    pub(super) const NONE: Self = Self {
        pace: 0.0,
        mass: 0.0,
        reach: f64::INFINITY,
        lower: f64::INFINITY,
        upper: f64::INFINITY,
        elements: 0.0,
        lost_share: 0.0,
    };

    pub(super) fn is_none(&self) -> bool {
        self.elements <= 0.0
    }

    /// Returns whether the source is never to be pulled, or the slot is free.
    pub(super) fn is_never(&self) -> bool {
        self.lower.is_infinite()
    }

    /// Returns whether the source never changes.
    pub(super) fn is_still(&self) -> bool {
        self.pace <= 0.0
    }

    /// Makes the term of a source; with `alike`, every pull costs 1.
    pub(super) fn new(source: &Source, model: Model, alike: bool) -> Self {
        let rate = source.workload.rate;
        // NaN counts as 0.
        let rate = if RATE_LEAST <= rate { rate.min(RATE_MAX) } else { 0.0 };
        let elements = source.workload.elements.max(1) as f64;
        let weight = if source.weight <= 0.0 { 0.0 } else { sane(source.weight) };
        let cost = cost(source);
        let pull_secs =
            if 0.0 < source.pull_secs { source.pull_secs.min(PULL_SECS_MAX) } else { 0.0 };
        let Bounds { interval_min, interval_max: upper } = source.bounds.settled();
        let lower = interval_min.max(INTERVAL_LEAST_SECS);
        let pace = rate / elements;
        let longest = if 0.0 < pace { model.x_max() / pace } else { f64::INFINITY };
        let lost = match model {
            Model::Poisson => -(-pace * pull_secs).exp_m1(),
            Model::Printed | Model::Linear => (pace * pull_secs).min(1.0),
        };
        #[expect(clippy::cast_possible_truncation, reason = "seven digits will do")]
        let (few, lost_share) = (elements as f32, lost as f32);
        let kept = 1.0 - f64::from(lost_share);
        Self {
            pace,
            mass: weight * elements,
            reach: (2.0 * if alike { 1.0 } else { cost } / (weight * kept * rate)).sqrt(),
            lower,
            upper: upper.min(longest).max(lower),
            elements: few,
            lost_share,
        }
    }

    pub(super) fn elements(&self) -> f64 {
        self.elements.into()
    }

    /// Returns k: the share that is still fresh when a pull ends.
    fn kept(&self) -> f64 {
        1.0 - f64::from(self.lost_share)
    }

    /// Returns akN, the part whose freshness depends on the interval.
    fn kept_mass(&self) -> f64 {
        self.mass * self.kept()
    }

    /// Returns the weighted number of elements that are stale because pulls take time.
    pub(super) fn lost(&self) -> f64 {
        self.mass * f64::from(self.lost_share)
    }

    /// Returns the expected freshness of this source alone.
    pub(super) fn freshness(&self, model: Model, interval: f64) -> f64 {
        let kept = self.kept();
        if self.is_still() || kept <= 0.0 {
            return kept;
        }
        kept * (1.0 - model.staleness(self.pace * interval))
    }

    /// Returns the interval at `scale`, in seconds.
    pub(super) fn interval(&self, shape: Shape, model: Model, scale: Scale) -> f64 {
        let low = self.at(shape, model, scale.low).interval;
        if scale.low.total_cmp(&scale.high).is_eq() {
            return low;
        }
        let high = self.at(shape, model, scale.high).interval;
        ((1.0 - scale.share) / low + scale.share / high).recip().clamp(self.lower, self.upper)
    }

    /// Returns the interval at `scale`, in seconds, and the weighted number of stale elements.
    pub(super) fn measure(&self, shape: Shape, model: Model, scale: Scale) -> (f64, f64) {
        if scale.low.total_cmp(&scale.high).is_ne() {
            let interval = self.interval(shape, model, scale);
            return (interval, self.stale(model, interval));
        }
        let point = self.at(shape, model, scale.low);
        (point.interval, self.staleness(model, &point).0)
    }

    fn at(&self, shape: Shape, model: Model, scale: f64) -> Point {
        let free = match shape {
            Shape::Uniform => Point::new(scale, 1.0),
            Shape::Optimal if !self.reach.is_finite() => Point::new(f64::INFINITY, 0.0),
            Shape::Optimal if model == Model::Poisson => self.poisson(scale),
            Shape::Optimal => Point::new(scale * self.reach, 1.0),
        };
        if free.interval <= self.lower {
            Point::new(self.lower, 0.0)
        } else if self.upper <= free.interval {
            Point::new(self.upper, 0.0)
        } else {
            free
        }
    }

    fn poisson(&self, scale: f64) -> Point {
        // `line` is the x on a straight line at this scale; half of its square is the marginal.
        let line = scale * self.pace * self.reach;
        let marginal = line * line / 2.0;
        let x = x_of_marginal(marginal);
        if x.is_infinite() || x < 1e-3 {
            return Point::new(x / self.pace, 1.0);
        }
        // The marginal gives e⁻ˣ and with it all other values, without another exponential.
        let fall = (1.0 - marginal) / (1.0 + x);
        let mass = self.kept_mass();
        Point {
            interval: x / self.pace,
            growth: line * line / (x * x * fall),
            stale: Some((mass * (x * x - marginal) / (x * (1.0 + x)), mass * marginal / x)),
        }
    }

    /// Returns akN s at a point, in elements, and its derivative by the logarithm of the interval.
    fn staleness(&self, model: Model, point: &Point) -> (f64, f64) {
        // Zero times an infinite interval is zero.
        let mass = self.kept_mass();
        if self.pace <= 0.0 || mass <= 0.0 {
            return (0.0, 0.0);
        }
        point.stale.unwrap_or_else(|| {
            let x = self.pace * point.interval;
            let slope = if 0.0 < point.growth { x * model.slope(x) } else { 0.0 };
            (mass * model.staleness(x), mass * slope)
        })
    }

    /// Returns the elements that are expected to be stale between pulls, weighted.
    pub(super) fn stale(&self, model: Model, interval: f64) -> f64 {
        self.staleness(model, &Point::new(interval, 0.0)).0
    }

    /// Returns the interval at which this source alone is `theta` fresh.
    pub(super) fn interval_of_freshness(&self, model: Model, theta: f64) -> f64 {
        let share = (1.0 - theta - f64::from(self.lost_share)) / self.kept();
        let free = model.x_of_staleness(share) / self.pace;
        // 0 / 0: a source that never changes may have any interval.
        if free.is_nan() { self.upper } else { free.clamp(self.lower, self.upper) }
    }
}

pub(super) fn cost(source: &Source) -> f64 {
    sane(source.pull_cost)
}

/// Clamps `value` to a usable range; 1 for NaN.
fn sane(value: f64) -> f64 {
    if value.is_nan() { 1.0 } else { value.clamp(WEIGHT_MAX.recip(), WEIGHT_MAX) }
}

impl Scale {
    pub(super) fn exactly(at: f64) -> Self {
        Self { low: at, high: at, share: 0.0 }
    }

    /// Finds the scale at which the goal is reached; the search starts at `guess`.
    pub(super) fn find(
        terms: &[Term],
        shape: Shape,
        model: Model,
        goal: Goal,
        guess: Self,
    ) -> (Self, Reached) {
        let slack = TOLERANCE * goal.target().abs();
        let at = |scale| goal.sum(terms, model, |term| term.at(shape, model, scale));
        let guess = if guess.low.is_normal() { guess.low } else { goal.guess(terms, shape, model) };
        let (low, high) = match root(&at, goal.target(), guess, slack) {
            Root::Between(low, high) => (low, high),
            Root::Beyond(off) => {
                let reached = if off < -slack { Reached::AllLongest } else { Reached::Exactly };
                return (Self::exactly(f64::INFINITY), reached);
            }
            Root::Below(off) => {
                let reached = if slack < off { Reached::AllShortest } else { Reached::Exactly };
                return (Self::exactly(0.0), reached);
            }
        };
        let mut found = Self { low, high, share: 0.0 };
        let (mut least, mut most) = (0.0, 1.0);
        while low < high && least < most {
            found.share = f64::midpoint(least, most);
            let mixed = |term: &Term| Point::new(term.interval(shape, model, found), 0.0);
            let off = goal.sum(terms, model, mixed).off;
            if off.abs() <= slack || most - least <= f64::EPSILON {
                break;
            }
            if off < 0.0 { least = found.share } else { most = found.share }
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

    /// Estimates the scale at which the goal is reached: that of a sample if there are many terms,
    /// otherwise that of straight lines without bounds.
    fn guess(self, terms: &[Term], shape: Shape, model: Model) -> f64 {
        if SAMPLED_MIN < terms.len() {
            let sample: Vec<Term> = terms.iter().step_by(SAMPLE_STEP).copied().collect();
            let sum = |terms: &[Term]| terms.iter().map(|it| it.mass).sum::<f64>();
            let part = match self {
                Self::Staleness(target) => Self::Staleness(target * sum(&sample) / sum(terms)),
                Self::Pulls(target) => Self::Pulls(target / SAMPLE_STEP as f64),
            };
            let (found, _) = Scale::find(&sample, shape, model, part, Scale::exactly(0.0));
            if found.low.is_normal() {
                return found.low;
            }
        }
        let (mut stale, mut pulls) = (0.0, 0.0);
        for term in terms.iter().filter(|it| it.reach.is_finite()) {
            let reach = if shape == Shape::Uniform { 1.0 } else { term.reach };
            stale += term.kept_mass() * term.pace * reach / 2.0;
            pulls += reach.recip();
        }
        match self {
            Self::Staleness(target) => target / stale,
            Self::Pulls(target) => pulls / target,
        }
    }

    /// Returns the goal's sum, with each term at its `point`.
    fn sum(self, terms: &[Term], model: Model, point: impl Fn(&Term) -> Point) -> Sum {
        let mut sum = Sum::default();
        for term in terms {
            let point = point(term);
            let (value, slope) = match self {
                Self::Staleness(_) => term.staleness(model, &point),
                Self::Pulls(_) => (point.interval.recip(), -point.interval.recip()),
            };
            sum.value += value;
            // Zero times an infinite growth is zero.
            sum.slope += if 0.0 < point.growth { slope * point.growth } else { 0.0 };
        }
        sum.off = match self {
            Self::Staleness(target) => sum.value - target,
            Self::Pulls(target) => target - sum.value,
        };
        sum
    }
}

/// The zero of a sum.
#[derive(Clone, Copy, Debug)]
enum Root {
    /// Between two neighboring scales, in order; or at one scale, which is given twice.
    Between(f64, f64),
    /// Beyond all scales; the sum's distance from its target at the last scale.
    Beyond(f64),
    /// Below all scales; the sum's distance from its target at the first scale.
    Below(f64),
}

/// Finds the scale at which a sum crosses from below 0 to above 0.
///
/// Takes Newton steps of logarithms, since the sums are nearly powers of the scale, as long as they
/// stay in the bracket and make progress; otherwise it halves the bracket. Only when a step fails
/// does it check that a zero exists.
fn root(sum: &impl Fn(f64) -> Sum, target: f64, guess: f64, slack: f64) -> Root {
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut at = if guess.is_normal() && 0.0 < guess { guess } else { 1.0 };
    let (mut stride, mut before, mut is_there) = (4.0, f64::INFINITY, false);
    for _ in 0..STEPS_MAX {
        let Sum { off, value, slope } = sum(at);
        if off.abs() <= slack {
            return Root::Between(at, at);
        }
        if off < 0.0 {
            low = at;
        } else {
            high = at;
        }
        let newton = at * ((target / value).ln() * value / slope).exp();
        let gets_on = off.abs() <= 0.5 * before;
        before = off.abs();
        let good = low < newton && newton < high && newton.is_normal() && gets_on;
        if !good && !is_there {
            let (first, last) = (sum(0.0).off, sum(f64::INFINITY).off);
            if last <= slack {
                return Root::Beyond(last);
            }
            if -slack <= first {
                return Root::Below(first);
            }
            is_there = true;
        }
        at = if good {
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
    if low <= 0.0 || high.is_infinite() { Root::Between(at, at) } else { Root::Between(low, high) }
}
