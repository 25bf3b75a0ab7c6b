//! A random repository of which only sums are drawn: a billion changes take no longer than ten.
//!
//! Source: Cho and Garcia-Molina's Poisson model. If x changes of an element are expected since the
//! last pull, it is stale with the probability 1 − e⁻ˣ, independently of the others.
//!
//! The number of distinct changed elements (binomial) is exact, and so is the expectation of the
//! staleness, given the times of pulls. The scatter of the staleness is not drawn. The ages of up
//! to [`SINGLE_MAX`] changed elements are drawn one by one; for more, their sum is a normal number
//! of the right mean and variance. The number of changes follows from the same ages.
//!
//! # Differences from the paper
//!
//! * The paper's straight line is the beginning of this curve.
//!
//! Sans-I/O.

use super::changes::{ChangeRate, Piece};
use super::draw::Random;
use super::measure::{PullResult, Totals};
use freshness::interval::Model;

/// Maximum number of changed elements whose ages are drawn one by one.
const SINGLE_MAX: u64 = 32;

#[derive(Clone, Debug)]
pub(super) struct Sums {
    rate: ChangeRate,
    random: Random,
    elements: u64,
    /// Changes of an element expected since the last pull: x.
    expected: f64,
}

/// A part of the time before a pull, with a constant rate.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Time from the end of this part to the pull, in seconds.
    age: f64,
    /// Length of this part, in seconds.
    secs: f64,
    /// Expected changes of an element after this part.
    after: f64,
    /// Expected changes of an element in this part.
    expected: f64,
}

/// Means and standard deviations of a changed element's age, and of its changes before the last.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    age: (f64, f64),
    before: (f64, f64),
}

impl Sums {
    pub(super) fn new(elements: u64, rate: ChangeRate, random: Random) -> Self {
        Self { rate, random, elements, expected: 0.0 }
    }

    pub(super) fn advance(&mut self, from: f64, to: f64, totals: &mut Totals) {
        let elements = self.elements as f64;
        totals.element_secs += elements * (to - from);
        if self.elements == 0 {
            return;
        }
        let mut at = from;
        while at < to {
            let Piece { rate, until } = self.rate.piece(at);
            let secs = until.min(to) - at;
            let here = rate / elements * secs;
            let fresh_then = (-self.expected).exp();
            let stale_then = -(-self.expected).exp_m1();
            let stale = stale_then + fresh_then * Model::Poisson.staleness(here);
            totals.stale_secs += elements * secs * stale;
            totals.counted_secs += elements * secs * (self.expected + here / 2.0);
            self.expected += here;
            at = until;
        }
    }

    /// Makes everything fresh, and returns the changes since `since`.
    pub(super) fn pull(&mut self, since: f64, at: f64) -> PullResult {
        let chance = -(-self.expected).exp_m1();
        let updates = self.random.binomial(self.elements, chance);
        let stretches = if 0 < updates { self.stretches(since, at) } else { Vec::new() };
        let (ages_secs, before) = self.ages(updates, &stretches);
        let most = updates as f64 * (at - since);
        let found = PullResult {
            updates,
            changes: updates.saturating_add(self.random.poisson(before.max(0.0))),
            elements: self.elements,
            ages_secs: ages_secs.clamp(0.0, most),
        };
        self.expected = 0.0;
        found
    }

    /// Returns the sums, over the changed elements, of their ages and of the changes expected
    /// before the last one.
    fn ages(&mut self, updates: u64, stretches: &[Stretch]) -> (f64, f64) {
        if SINGLE_MAX < updates {
            let number = updates as f64;
            let Moments { age, before } = moments(stretches, self.expected);
            // The older the last changes are, the fewer changes come before them.
            let off = number.sqrt() * self.random.normal();
            return (number * age.0 + off * age.1, number * before.0 - off * before.1);
        }
        let (mut ages, mut before) = (0.0, 0.0);
        for _ in 0..updates {
            let after = self.random.exponential_within(self.expected);
            before += self.expected - after;
            // The first stretch, going backwards in time, that reaches back to this number of
            // changes.
            let within = stretches.iter().find(|it| after <= it.after + it.expected);
            if let Some(it) = within.or_else(|| stretches.last()) {
                let share = ((after - it.after) / it.expected).clamp(0.0, 1.0);
                ages += it.age + share * it.secs;
            }
        }
        (ages, before)
    }

    /// Returns the stretches between `since` and `to` with possible changes, the latest first.
    fn stretches(&self, since: f64, to: f64) -> Vec<Stretch> {
        let mut found = Vec::new();
        let mut at = since;
        while at < to {
            let Piece { rate, until } = self.rate.piece(at);
            let end = until.min(to);
            let expected = rate / self.elements as f64 * (end - at);
            if 0.0 < expected {
                found.push(Stretch { age: to - end, secs: end - at, after: 0.0, expected });
            }
            at = until;
        }
        found.reverse();
        let mut after = 0.0;
        for it in &mut found {
            it.after = after;
            after += it.expected;
        }
        found
    }
}

/// Returns the moments of the last change of a changed element with `expected` changes.
fn moments(stretches: &[Stretch], expected: f64) -> Moments {
    let chance = -(-expected).exp_m1();
    let (mut age, mut squared) = (0.0, 0.0);
    for it in stretches {
        let (none_after, z) = ((-it.after).exp(), it.expected);
        let (zeroth, first, second) = (-(-z).exp_m1(), z * Model::Poisson.slope(z), second(z));
        age += none_after * (it.age * zeroth + it.secs * first);
        squared += none_after
            * (it.age * it.age * zeroth
                + 2.0 * it.age * it.secs * first
                + it.secs * it.secs * second);
    }
    let mean = age / chance;
    let deviation = (squared / chance - mean * mean).max(0.0).sqrt();
    // Measured in changes instead of seconds, all is one stretch. `before` is x less the mean,
    // without cancellation.
    let share = expected / chance;
    let last = expected * Model::Poisson.slope(expected) * share;
    let variance = expected * second(expected) * share - last * last;
    let before = (Model::Poisson.staleness(expected) * share, variance.max(0.0).sqrt());
    Moments { age: (mean, deviation), before }
}

/// Returns ∫ s² z e^−zs ds for a stretch of length 1 in which z changes are expected, where s is
/// the time from the stretch's end back to the last change. The first moment, with s instead of s²,
/// is z times [`Model::slope`].
fn second(z: f64) -> f64 {
    if z < 1e-2 {
        z * (1.0 / 3.0 - z * (0.25 - z / 10.0))
    } else {
        (2.0 - (2.0 + z * (2.0 + z)) * (-z).exp()) / (z * z)
    }
}
