//! Staleness between two pulls: the paper's straight line, and Poisson's curve.
//!
//! All values here are a function of x = λI/N, the changes of an interval per element. Sources:
//! Adly eq. 1 for the line, Cho and Garcia-Molina for the curve. If changes come at random and hit
//! random elements, the share of stale elements, averaged over the interval, is 1 − (1 − e⁻ˣ)/x.
//!
//! # Differences from the paper
//!
//! * Eq. 1 counts a second change of an element as a second stale element, so beyond x = 2 more
//!   elements are stale than exist. [`Model::Linear`] stops at x = 1, where each element has
//!   changed once on average (a source that must not be pulled as often is assumed to change its
//!   elements in turn). [`Model::Printed`] is eq. 1 as printed, for the paper's figures.
//!
//! Sans-I/O.

/// Growth of the share of stale elements between pulls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// Eq. 1 as printed; freshness below 0 is possible.
    Printed,
    /// Eq. 1 with intervals of at most N/λ.
    Linear,
    /// Random changes of random elements.
    #[default]
    Poisson,
}

/// The x below which the first terms of a series are more exact than the formula.
const SMALL: f64 = 1e-3;

impl Model {
    /// Returns the mean share of stale elements over an interval of `x` (0 to ∞) changes an
    /// element.
    pub fn staleness(self, x: f64) -> f64 {
        match self {
            Self::Linear if 1.0 < x => 1.0 - 0.5 / x,
            Self::Printed | Self::Linear => x / 2.0,
            Self::Poisson if x < SMALL => x / 2.0 - x * x / 6.0 + x * x * x / 24.0,
            Self::Poisson => 1.0 + (-x).exp_m1() / x,
        }
    }

    /// Returns the derivative of [`staleness`](Self::staleness) by `x`.
    pub fn slope(self, x: f64) -> f64 {
        match self {
            Self::Linear if 1.0 < x => 0.5 / (x * x),
            Self::Printed | Self::Linear => 0.5,
            Self::Poisson if x < SMALL => 0.5 - x / 3.0 + x * x / 8.0,
            Self::Poisson if x.is_infinite() => 0.0,
            Self::Poisson => (1.0 - (1.0 + x) * (-x).exp()) / (x * x),
        }
    }

    /// Returns the largest x for which the model makes sense.
    pub fn x_max(self) -> f64 {
        if self == Self::Linear { 1.0 } else { f64::INFINITY }
    }

    /// Returns the x at which `share` of the elements is stale on average; infinite if none.
    pub fn x_of_staleness(self, share: f64) -> f64 {
        if self != Self::Poisson || share <= 0.0 {
            return (2.0 * share.max(0.0)).min(self.x_max());
        }
        if 1.0 <= share {
            return f64::INFINITY;
        }
        // The curve is concave, so Newton's steps from the left never pass the solution.
        let mut x = 2.0 * share;
        for _ in 0..100 {
            let step = (share - self.staleness(x)) / self.slope(x);
            x += step.max(0.0);
            if step <= x * f64::EPSILON {
                break;
            }
        }
        x
    }
}

/// Returns the x of the Poisson curve where x² times the slope is `marginal`; infinite if that is
/// at least 1.
///
/// That product, 1 − (1+x)e⁻ˣ, is the marginal loss by a longer interval. In the optimum it is
/// proportional to cλ/(aN²). Its inverse is a branch of Lambert's W.
pub(super) fn x_of_marginal(marginal: f64) -> f64 {
    if 1.0 <= marginal {
        return f64::INFINITY;
    }
    let p = (2.0 * marginal.max(0.0)).sqrt();
    if p < SMALL {
        return p * (1.0 + p * (1.0 / 3.0 + p * (11.0 / 72.0 + p * 43.0 / 540.0)));
    }
    // x − ln(1+x) = −ln(1−marginal), without cancellation where the product nears 1. x is a smooth
    // function of t, the root of twice that. A ratio of polynomials follows it to 3·10⁻⁸ up to t =
    // 9, where the product is 1 to rounding; one Newton step squares the error.
    let target = -(-marginal).ln_1p();
    let t = (2.0 * target).sqrt();
    let above =
        polynomial(t, [1.0, 0.819_379_705_5, 0.281_213_715_2, 0.046_067_409_48, 0.002_888_610_452]);
    let below = polynomial(t, [1.0, 0.486_045_480_7, 0.091_425_660_23, 0.005_784_605_13, 0.0]);
    let x = t * above / below;
    x - (x - x.ln_1p() - target) * (1.0 + x) / x
}

/// Evaluates the polynomial with these coefficients, from the constant one on.
fn polynomial(at: f64, by: [f64; 5]) -> f64 {
    by[0] + at * (by[1] + at * (by[2] + at * (by[3] + at * by[4])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} against {expected}");
    }

    /// Ids `model.linear.*`, `model.saturating.*` and `model.poisson.*`.
    #[test]
    fn freshness_at_x_is_as_expected() {
        for (model, x, expected) in [
            (Model::Printed, 0.02, 0.99),
            (Model::Printed, 5.0, -1.5),
            (Model::Linear, 0.1, 0.95),
            (Model::Linear, 2.0, 0.25),
            (Model::Linear, 5.0, 0.1),
            (Model::Poisson, 0.1, 0.951_626),
            (Model::Poisson, 1.0, 0.632_121),
            (Model::Poisson, 2.0, 0.432_332),
        ] {
            check(1.0 - model.staleness(x), expected, 1e-6);
        }
    }

    #[test]
    fn series_and_formulas_meet() {
        for model in [Model::Linear, Model::Poisson] {
            let (below, above) = (SMALL * (1.0 - 1e-9), SMALL * (1.0 + 1e-9));
            check(model.staleness(below) / model.staleness(above), 1.0, 1e-8);
            check(model.slope(below) / model.slope(above), 1.0, 1e-8);
        }
        let (below, above) =
            (SMALL * SMALL / 2.0 * (1.0 - 1e-9), SMALL * SMALL / 2.0 * (1.0 + 1e-9));
        check(x_of_marginal(below) / x_of_marginal(above), 1.0, 1e-8);
    }

    #[test]
    fn the_slope_is_that_of_the_staleness() {
        for x in [1e-4, 0.01, 0.5, 1.0, 3.0, 20.0] {
            let step = x * 1e-5;
            let model = Model::Poisson;
            let found = (model.staleness(x + step) - model.staleness(x - step)) / (2.0 * step);
            check(found / model.slope(x), 1.0, 1e-5);
        }
    }

    #[test]
    fn inverses_are_inverse() {
        for x in [1e-9, 1e-6, 9e-4, 0.01, 0.3, 1.0, 2.0, 3.0, 8.0, 30.0] {
            let marginal = if x < SMALL {
                x * x * Model::Poisson.slope(x)
            } else {
                1.0 - (1.0 + x) * (-x).exp()
            };
            // Where the product is nearly 1, its last digits hold little of x.
            let tolerance = 1e-11 + 1e-15 / (1.0 - marginal).max(1e-300);
            check(x_of_marginal(marginal) / x, 1.0, tolerance.max(1e-9));
            let share = Model::Poisson.staleness(x);
            check(Model::Poisson.x_of_staleness(share) / x, 1.0, 1e-7);
        }
        assert!(
            x_of_marginal(1.0).is_infinite() && Model::Poisson.x_of_staleness(1.0).is_infinite()
        );
        assert!(x_of_marginal(0.0).abs() < f64::MIN_POSITIVE);
    }
}
