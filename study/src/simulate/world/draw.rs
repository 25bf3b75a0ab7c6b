//! Seeded random numbers, and draws from the distributions that the world needs.
//!
//! Source: SplitMix64 for the numbers. Counts are drawn by inversion from the mode outwards, in a
//! number of steps that grows with the standard deviation. They are as exact as the logarithm of a
//! factorial (a relative error of a probability of 1e-5 at 10⁹ elements, 5e-3 at 10¹²).
//!
//! # Differences from the paper
//!
//! * The papers do not simulate; this part has no counterpart there.
//!
//! Sans-I/O.

/// Variance above which a count is drawn as a normal number: the difference is then less than a
/// ten-thousandth of the standard deviation.
const VARIANCE_MAX: f64 = 1e8;
/// Number of trials above which rounding in its factorial would be visible. With a variance below
/// [`VARIANCE_MAX`], the chance of success (or of failure) is then below 10⁻⁴, so the count is
/// drawn from Poisson with an error of that size.
const TRIALS_MAX: f64 = 1e12;
/// Number from which Stirling's series is exact enough for a factorial.
const STIRLING_MIN: f64 = 16.0;

#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Returns the stream `index` of `seed`; streams of other indices are independent of it.
    pub(super) fn new(seed: u64, index: u64) -> Self {
        Self(mixed(seed ^ mixed(index.wrapping_add(1))))
    }

    /// Draws uniformly from all 64-bit numbers.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// Draws uniformly; above 0, at most 1.
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Draws uniformly from the numbers below `end`; 0 if there is none.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Draws exponentially, with the mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Draws exponentially with the mean 1, given that it is not above `max`.
    pub(super) fn exponential_within(&mut self, max: f64) -> f64 {
        (-(self.uniform() * (-max).exp_m1()).ln_1p()).clamp(0.0, max)
    }

    /// Draws geometrically over 1, 2, 3 …, with the mean `mean`, which is at least 1.
    pub(super) fn geometric(&mut self, mean: f64) -> f64 {
        if mean <= 1.0 {
            return 1.0;
        }
        1.0 + (self.uniform().ln() / (-mean.recip()).ln_1p()).floor()
    }

    /// Draws normally, with the mean 0 and the variance 1.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Draws from Poisson, with the mean `mean`, which is finite and not negative.
    pub(super) fn poisson(&mut self, mean: f64) -> u64 {
        if mean <= 0.0 {
            return 0;
        }
        if VARIANCE_MAX < mean {
            return count(mean + mean.sqrt() * self.normal());
        }
        let mode = mean.floor();
        let log = mode * mean.ln() - mean - ln_factorial(mode);
        self.around(mode, log.exp(), |k| mean / (k + 1.0))
    }

    /// Draws how many of `trials` succeed, at `chance` each (0 to 1).
    pub(super) fn binomial(&mut self, trials: u64, chance: f64) -> u64 {
        if trials == 0 || chance <= 0.0 {
            return 0;
        }
        if 1.0 <= chance {
            return trials;
        }
        let n = trials as f64;
        let (mean, odds) = (n * chance, chance / (1.0 - chance));
        let variance = mean * (1.0 - chance);
        if VARIANCE_MAX < variance {
            return count(mean + variance.sqrt() * self.normal()).min(trials);
        }
        if TRIALS_MAX < n {
            let rare = self.poisson(n * chance.min(1.0 - chance)).min(trials);
            return if chance < 0.5 { rare } else { trials - rare };
        }
        let mode = ((n + 1.0) * chance).floor().min(n);
        let ways = ln_factorial(n) - ln_factorial(mode) - ln_factorial(n - mode);
        let log = ways + mode * chance.ln() + (n - mode) * (-chance).ln_1p();
        self.around(mode, log.exp(), |k| (n - k) / (k + 1.0) * odds).min(trials)
    }

    /// Draws a count by inversion. `at_mode` is the probability of `mode`, the most probable count;
    /// `ratio` of k is the probability of k + 1 over that of k.
    fn around(&mut self, mode: f64, at_mode: f64, ratio: impl Fn(f64) -> f64) -> u64 {
        let mut left = self.uniform() - at_mode;
        let (mut below, mut above) = ((mode, at_mode), (mode, at_mode));
        while 0.0 < left {
            above = (above.0 + 1.0, above.1 * ratio(above.0));
            left -= above.1;
            if left <= 0.0 {
                return count(above.0);
            }
            if 0.0 < below.0 {
                below = (below.0 - 1.0, below.1 / ratio(below.0 - 1.0));
                left -= below.1;
                if left <= 0.0 {
                    return count(below.0);
                }
            }
            // Only rounding errors remain.
            if above.1 + if 0.0 < below.0 { below.1 } else { 0.0 } < 1e-18 {
                break;
            }
        }
        count(mode)
    }
}

fn mixed(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Returns the nearest count; 0 for NaN.
pub(super) fn count(number: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let count = number.round() as u64;
    count
}

fn ln_factorial(n: f64) -> f64 {
    let (mut n, mut less) = (n, 0.0);
    while n < STIRLING_MIN {
        n += 1.0;
        less += n.ln();
    }
    let inverse = n.recip();
    let series = inverse / 12.0 - inverse.powi(3) / 360.0 + inverse.powi(5) / 1_260.0;
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + series - less
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 20_000;

    /// Checks the mean within five standard errors, and the variance within 6 %.
    fn check(mean: f64, variance: f64, mut draw: impl FnMut(&mut Random) -> f64) {
        let mut random = Random::new(3, 1);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..DRAWS {
            let off = draw(&mut random) - mean;
            sum += off;
            squares += off * off;
        }
        let draws = f64::from(DRAWS);
        let error = 5.0 * (variance / draws).sqrt();
        assert!((sum / draws).abs() <= error, "off {mean} by {}, not {error}", sum / draws);
        let found = squares / draws;
        assert!((found / variance - 1.0).abs() < 0.06, "variance {found}, not {variance}");
    }

    #[test]
    fn draws_have_the_moments_asked_for() {
        for mean in [0.3, 4.0, 40.0, 3_000.0, 1e9] {
            check(mean, mean, |random| random.poisson(mean) as f64);
        }
        for (trials, chance) in
            [(10, 0.05), (10, 0.7), (1_000, 0.1), (10_000, 0.999), (1 << 40, 0.3), (1 << 50, 1e-13)]
        {
            let mean = trials as f64 * chance;
            check(mean, mean * (1.0 - chance), |random| random.binomial(trials, chance) as f64);
        }
        check(20.0, 380.0, |random| random.geometric(20.0));
        check(1.0, 1.0, Random::exponential);
        check(0.0, 1.0, Random::normal);
        check(4.5, 8.25, |random| random.below(10) as f64);
        // E and the variance of an exponential number below 2: 1 − 2/(e²−1), 1 − 4e²/(e²−1)².
        check(0.686_965, 0.275_921, |random| random.exponential_within(2.0));
    }

    /// Shares of single outcomes, where a wrong order of the search would show.
    #[test]
    fn small_counts_have_the_right_shares() {
        let mut random = Random::new(5, 1);
        let mut seen = [0.0; 4];
        for _ in 0..DRAWS {
            seen[usize::try_from(random.binomial(3, 0.5)).unwrap()] += 1.0 / f64::from(DRAWS);
        }
        for (found, expected) in seen.into_iter().zip([0.125, 0.375, 0.375, 0.125]) {
            assert!((found - expected).abs() < 0.02, "{seen:?}");
        }
    }

    #[test]
    fn extremes_are_counts() {
        let mut random = Random::new(0, 0);
        assert_eq!(random.binomial(7, 1.0), 7);
        assert_eq!((random.binomial(7, 0.0), random.binomial(0, 0.5), random.below(0)), (0, 0, 0));
        assert!(random.binomial(u64::MAX, 0.5) > u64::MAX / 3);
        assert_eq!((random.poisson(0.0), random.binomial(1_000, 1e-300)), (0, 0));
        assert!((random.geometric(0.5) - 1.0).abs() < 1e-12);
    }
}
