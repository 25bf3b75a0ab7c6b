//! Adly's experiments, repeated with the planner and the scheduler of brokers.
//!
//! Source: Adly §5 and §6: a thousand repositories of four types, their intervals by different
//! policies, and the costs. No results are stored: every number comes from code that brokers run,
//! [`plan`](freshness::interval::plan) or the [`Schedule`](freshness::schedule::Schedule).
//!
//! Times are in days here, as they are in the paper.
//!
//! # Differences from the paper
//!
//! * The paper does not say how many repositories a share of, for example, 33.3 % is. Here the
//!   numbers are whole, and the largest fractions are rounded up.
//!
//! Sans-I/O.

pub mod contest;
mod engine;
mod event;
mod figures;
mod table;
pub mod trace;
pub mod world;

use std::fmt;
use std::str::FromStr;

use freshness::interval::{Bounds, Source};

pub use engine::{Engine, Experiment, Outcome};
pub use event::{Listing, PULLS_MAX, PlayResult, Run, play};
pub use figures::{Figure, Settings};
pub use table::{Cell, Table};

/// Costs of harvesting, in any unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Cost C_U of extracting and processing one update.
    pub update: f64,
    /// Cost C_P of initiation, negotiation and communication of one pull.
    pub pull: f64,
}

/// A type of repository: λ, in updates a day, and N.
pub type Kind = (f64, u64);

/// Table 1: T1 to T4.
pub const KINDS: [Kind; 4] = [(100.0, 1_000), (500.0, 1_000), (1_000.0, 10_000), (5_000.0, 10_000)];

/// Maximum number of repositories of a simulation.
pub const REPOSITORIES_MAX: usize = 1_000_000;

/// Mix of repository types: shares of T1 to T4 that add up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    shares: [f64; 4],
}

impl Mix {
    /// A quarter of each.
    pub const EVEN: Self = Self { shares: [0.25; 4] };

    /// Returns a mix from parts of any sum; `None` if their sum is not above 0, or one is below 0.
    pub fn new(parts: [f64; 4]) -> Option<Self> {
        let sum: f64 = parts.iter().sum();
        let sound = parts.iter().all(|it| 0.0 <= *it) && 0.0 < sum && sum.is_finite();
        sound.then(|| Self { shares: parts.map(|it| it / sum) })
    }

    /// Returns a mix of T1 with the share `t1`, clamped to 0 to 1, and T4 (figures 3 to 5).
    pub fn of_t1_and_t4(t1: f64) -> Self {
        let t1 = t1.clamp(0.0, 1.0);
        Self { shares: [t1, 0.0, 0.0, 1.0 - t1] }
    }

    /// Returns a mix of 70 % of the type `of` (0 for T1), and 10 % of each other type (figures 6 to
    /// 9).
    pub fn majority(of: usize) -> Self {
        let mut shares = [0.1; 4];
        if let Some(share) = shares.get_mut(of) {
            *share = 0.7;
        }
        Self::new(shares).unwrap_or(Self::EVEN)
    }

    /// Returns the share of T1, 0 to 1.
    pub fn t1(self) -> f64 {
        self.shares[0]
    }

    /// Returns the number of repositories of each type among `count`.
    pub fn counts(self, count: usize) -> [usize; 4] {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to count")]
        let mut counts = self.shares.map(|it| (it * count as f64 + 1e-9).floor() as usize);
        let mut order = [0, 1, 2, 3];
        let fraction = |at: usize| (self.shares[at] * count as f64 + 1e-9).fract();
        order.sort_by(|a, b| fraction(*b).total_cmp(&fraction(*a)));
        let missing = count.saturating_sub(counts.iter().sum());
        for at in order.into_iter().cycle().take(missing) {
            counts[at] += 1;
        }
        counts
    }

    /// Returns the repositories, T1 first, whose pulls cost `pull_cost`.
    pub fn sources(self, count: usize, pull_cost: f64) -> Vec<Source> {
        let of = |((rate, elements), count)| {
            let source = Source { pull_cost, ..Source::new(rate, elements, Bounds::FREE) };
            std::iter::repeat_n(source, count)
        };
        KINDS.into_iter().zip(self.counts(count)).flat_map(of).collect()
    }
}

/// `even`, `T1` to `T4` for a majority of one, or shares as `75:0:0:25`.
impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("a mix is even, T1, T2, T3, T4, or four shares as in 75:0:0:25, not {text:?}")
        };
        let named = |name: &str| text.eq_ignore_ascii_case(name);
        if named("even") {
            return Ok(Self::EVEN);
        }
        if let Some(of) = ["T1", "T2", "T3", "T4"].into_iter().position(named) {
            return Ok(Self::majority(of));
        }
        let parts: Option<Vec<f64>> = text.split(':').map(|it| it.parse().ok()).collect();
        let parts = parts.and_then(|it| <[f64; 4]>::try_from(it).ok());
        parts.and_then(Self::new).ok_or_else(wrong)
    }
}

/// The form that [`FromStr`] reads; shares in percent.
impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is = |other: Self| {
            self.shares.iter().zip(other.shares).all(|(one, other)| (one - other).abs() < 5e-7)
        };
        if is(Self::EVEN) {
            return f.write_str("even");
        }
        if let Some(of) = (0..4).find(|of| is(Self::majority(*of))) {
            return write!(f, "T{}", of + 1);
        }
        let [t1, t2, t3, t4] = self.shares.map(|it| (it * 1e6).round() / 1e4);
        write!(f, "{t1}:{t2}:{t3}:{t4}")
    }
}

impl Settings {
    /// Returns the paper's settings: C_P 50, C_U 0.1, 1,000 repositories, and each figure's values.
    pub fn paper() -> Self {
        let costs = Costs { update: 0.1, pull: 50.0 };
        let engine = Engine::Equation;
        Self { engine, costs, repositories: 1_000, thetas: None, mixes: None, prices: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, counts: [usize; 4], text_of: &str) {
        let mix: Mix = text.parse().unwrap();
        assert_eq!((mix.counts(1_000), mix.to_string().as_str()), (counts, text_of), "{text}");
        assert_eq!(mix.to_string().parse::<Mix>().unwrap().counts(1_000), counts);
    }

    #[test]
    fn mixes_are_named_or_given_as_shares() {
        check("even", [250; 4], "even");
        check("t2", [100, 700, 100, 100], "T2");
        check("75:0:0:25", [750, 0, 0, 250], "75:0:0:25");
        check("1:1:1:0", [334, 333, 333, 0], "33.3333:33.3333:33.3333:0");
        check("7:1:1:1", [700, 100, 100, 100], "T1");
    }

    #[test]
    fn text_that_is_no_mix_is_refused() {
        for text in
            ["", "T5", "1:2:3", "1:2:3:4:5", "0:0:0:0", "-1:1:1:1", "nan:1:1:1", "inf:1:1:1"]
        {
            assert!(text.parse::<Mix>().unwrap_err().contains(text), "{text}");
        }
    }

    #[test]
    fn counts_add_up() {
        for count in [0, 1, 3, 7, 999, 1_000] {
            for mix in [Mix::EVEN, Mix::majority(2), Mix::of_t1_and_t4(0.333)] {
                assert_eq!(mix.counts(count).iter().sum::<usize>(), count);
            }
        }
    }
}
