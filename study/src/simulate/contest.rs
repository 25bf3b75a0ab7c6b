//! The contest: the pulls that each of four policies needs for the same measured freshness.
//!
//! Source: Adly §5, where policies are compared by cost at an equal θ. There the equations promise
//! θ. Here the scheduler plays every policy ([`play`]), and the policy's parameter is varied until
//! the freshness that the *world* measures is the target. So a policy that misjudges the sources
//! neither gains by too little freshness nor loses by too much.
//!
//! The parameter is a staleness 1 − θ, or an interval. Measured staleness is nearly proportional to
//! it. So a secant through the logarithms of the last two plays, clamped to the bracket of all
//! plays so far, finds the parameter in few plays.
//!
//! A play is a single history, in which pulls hit changes or miss them. So the number of pulls
//! scatters by about 1 % with a few thousand changes, and by less with the simulated worlds.
//!
//! # Differences from the paper
//!
//! * The paper computes with known rates. Here every policy must learn them, by the paper's
//!   estimator or by ours.
//! * Changes need not come evenly, and an element that changes twice is one stale element.
//!
//! Sans-I/O.

use std::fmt;

use super::event::{PlayResult, Run, play};
use super::world::Repository;
use super::{Cell, Table};
use freshness::interval::{Model, Policy};
use freshness::rate::Method;
use freshness::schedule::{Rules, Settings};

/// Maximum difference of the measured freshness from a target that is reached.
pub const TOLERANCE: f64 = 0.001;
/// Maximum number of plays of one search.
pub const PLAYS_MAX: u32 = 20;
/// Share of the target staleness within which the search ends. The number of pulls is inversely
/// proportional to staleness, and so about as exact.
const FINE_SHARE: f64 = 0.003;
/// Least and greatest staleness as a parameter.
const STALENESS: (f64, f64) = (1e-6, 1.0);
/// Shortest and longest interval as a parameter, in seconds.
const INTERVAL_SECS: (f64, f64) = (10.0, 3_650.0 * DAY_SECS);
/// Relative width of the bracket below which the search ends.
const ASKED_SHARE: f64 = 1e-5;
/// Maximum step of the search, as a factor.
const STEP_MAX: f64 = 30.0;
const DAY_SECS: f64 = 86_400.0;

/// A policy with its estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contestant {
    /// Ours: OAP(θ) of the Poisson model, rates from datestamps.
    Ours,
    /// OAP(θ) as printed: eq. 3, rates by the paper's estimator.
    Printed,
    /// UAP(θ): one interval for all, which follows the rates; by the paper's estimator.
    Uniform,
    /// One constant interval for all.
    Fixed,
}

impl Contestant {
    /// All contestants, ours first.
    pub const ALL: [Self; 4] = [Self::Ours, Self::Printed, Self::Uniform, Self::Fixed];

    /// Returns the scheduler's settings. `asked` is a staleness 1 − θ, or [`Fixed`](Self::Fixed)'s
    /// interval in seconds. Gain and cap are those of `settings`.
    pub fn settings(self, asked: f64, settings: Settings) -> Settings {
        let theta = (1.0 - asked).clamp(0.0, 1.0);
        let (policy, model, method) = match self {
            Self::Ours => (Policy::Optimal { theta }, Model::Poisson, Method::Datestamps),
            Self::Printed => (Policy::Optimal { theta }, Model::Printed, Method::Ewma),
            Self::Uniform => (Policy::Uniform { theta }, Model::Printed, Method::Ewma),
            Self::Fixed => (Policy::Fixed { interval: asked }, Model::Printed, Method::Ewma),
        };
        Settings { policy, model, method, ..settings }
    }

    fn range(self) -> (f64, f64) {
        if self == Self::Fixed { INTERVAL_SECS } else { STALENESS }
    }
}

/// The name in tables.
impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "oap poisson",
            Self::Printed => "oap printed",
            Self::Uniform => "uap",
            Self::Fixed => "fixed",
        })
    }
}

/// Sources, and the settings of the plays.
#[derive(Clone, Debug)]
pub struct Contest<'a> {
    /// The repositories to pull.
    pub repositories: &'a [(Repository, Rules)],
    /// The settings of every play: length, begin, gain and cap. A play that reaches the run's
    /// maximum of pulls has a parameter that asks for too many.
    pub run: Run,
}

/// Result of one contestant.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The contestant.
    pub contestant: Contestant,
    /// Its parameter: a staleness 1 − θ, or an interval in seconds.
    pub asked: f64,
    /// The play with that parameter.
    pub played: PlayResult,
    /// Whether the target freshness was measured, within [`TOLERANCE`]. If not, `played` is the
    /// nearest play.
    pub reached: bool,
    /// The number of plays of the search.
    pub plays: u32,
}

/// Results of all contestants for one target.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// The target freshness.
    pub target: f64,
    /// In the order of [`Contestant::ALL`].
    pub scores: Vec<Score>,
}

impl Contest<'_> {
    /// Plays one contestant with a parameter.
    pub fn play(&self, contestant: Contestant, asked: f64) -> PlayResult {
        let settings = contestant.settings(asked, self.run.settings);
        play(self.repositories, &Run { settings, ..self.run })
    }

    /// Returns the scores for the freshness that a pull of every source once a day reaches.
    pub fn against_daily(&self) -> Scores {
        let played = self.play(Contestant::Fixed, DAY_SECS);
        let target = played.totals.freshness();
        let (contestant, asked) = (Contestant::Fixed, DAY_SECS);
        let daily = Score { contestant, asked, played, reached: true, plays: 1 };
        let score = |it| match it {
            Contestant::Fixed => daily.clone(),
            _ => self.reach(it, target),
        };
        Scores { target, scores: Contestant::ALL.map(score).to_vec() }
    }

    /// Returns the scores for a measured freshness of `target`.
    pub fn at_freshness(&self, target: f64) -> Scores {
        let score = |it| self.reach(it, target);
        Scores { target, scores: Contestant::ALL.map(score).to_vec() }
    }

    /// Searches for the parameter with which a contestant reaches a measured freshness of `target`,
    /// in at most [`PLAYS_MAX`] plays.
    pub fn reach(&self, contestant: Contestant, target: f64) -> Score {
        let target = if target.is_nan() { 0.0 } else { target.clamp(0.0, 1.0) };
        let fine = (FINE_SHARE * (1.0 - target)).clamp(f64::EPSILON, TOLERANCE);
        let first = if contestant == Contestant::Fixed { DAY_SECS } else { 1.0 - target };
        let mut search = Search::new(contestant.range(), first, 1.0 - target);
        let mut best: Option<Score> = None;
        let mut plays = 0;
        while let Some(asked) = search.next().filter(|_| plays < PLAYS_MAX) {
            let played = self.play(contestant, asked);
            plays += 1;
            let fresh = played.totals.freshness();
            let off = |fresh: f64| (fresh - target).abs();
            let (is_cut, is_fine) = (played.cut, off(fresh) <= fine && !played.cut);
            let nearer = |it: &Score| off(fresh) < off(it.played.totals.freshness());
            // A play that was cut is the best only if all were.
            if best.as_ref().is_none_or(|it| it.played.cut || (!is_cut && nearer(it))) {
                let reached = off(fresh) <= TOLERANCE && !is_cut;
                best = Some(Score { contestant, asked, played, reached, plays });
            }
            if is_fine {
                break;
            }
            search.learn(asked, (!is_cut).then_some(1.0 - fresh));
        }
        let best = best.unwrap_or_else(|| {
            let played = self.play(contestant, first);
            Score { contestant, asked: first, played, reached: false, plays }
        });
        Score { plays, ..best }
    }
}

impl Scores {
    /// Returns the pulls of a contestant relative to ours; `None` if one of the two did not reach
    /// the target, or ours needs none.
    pub fn ratio(&self, of: Contestant) -> Option<f64> {
        let pulls = |it: Contestant| {
            let score = self.scores.iter().find(|score| score.contestant == it);
            score.filter(|it| it.reached).map(|it| it.played.totals.pulls as f64)
        };
        Some(pulls(of)? / pulls(Contestant::Ours).filter(|it| 0.0 < *it)?)
    }

    /// Returns the scores as a table. A row has the target freshness, the contestant, its parameter
    /// (θ, or an interval in days), the measured freshness, the pulls in all, a day and relative to
    /// ours, and whether the target was reached; `secs` is the time that counted.
    pub fn table(&self, secs: f64) -> Table {
        let columns =
            vec!["target", "policy", "asked", "freshness", "pulls", "a_day", "of_ours", "reached"];
        let row = |score: &Score| {
            let totals = score.played.totals;
            let asked = match score.contestant {
                Contestant::Fixed => score.asked / DAY_SECS,
                _ => 1.0 - score.asked,
            };
            let a_day = if 0.0 < secs { totals.pulls as f64 * DAY_SECS / secs } else { 0.0 };
            let reached = match (score.reached, score.played.cut) {
                (true, _) => "yes",
                (false, true) => "too many pulls",
                (false, false) => "no: this is nearest",
            };
            let ratio = self.ratio(score.contestant);
            let ratio = ratio.map_or_else(|| Cell::from("-".to_owned()), Cell::from);
            let (policy, reached) = (score.contestant.to_string(), reached.to_owned());
            let pulls = totals.pulls as f64;
            vec![
                self.target.into(),
                policy.into(),
                asked.into(),
                totals.freshness().into(),
                pulls.into(),
                a_day.into(),
                ratio,
                reached.into(),
            ]
        };
        Table { columns, rows: self.scores.iter().map(row).collect() }
    }
}

/// Search for the parameter that gives a measured staleness, which grows with the parameter.
#[derive(Clone, Debug)]
struct Search {
    /// The bracket found so far.
    bracket: (f64, f64),
    /// The range of the parameter.
    range: (f64, f64),
    next: Option<f64>,
    /// The last play: its parameter, and the measured staleness.
    last: Option<(f64, f64)>,
    staleness: f64,
}

impl Search {
    fn new(range: (f64, f64), first: f64, staleness: f64) -> Self {
        let next = Some(first.clamp(range.0, range.1));
        Self { bracket: range, range, next, last: None, staleness }
    }

    /// Returns the next parameter to try; `None` at the end of the search.
    fn next(&mut self) -> Option<f64> {
        self.next.take()
    }

    /// Takes in the measured staleness; `None` if the parameter asked for too many pulls.
    fn learn(&mut self, asked: f64, measured: Option<f64>) {
        let too_stale = measured.is_some_and(|it| self.staleness < it);
        let (low, high) = if too_stale { (self.bracket.0, asked) } else { (asked, self.bracket.1) };
        self.bracket = (low, high);
        let at_end = if too_stale { asked <= self.range.0 } else { self.range.1 <= asked };
        if at_end || high <= low * (1.0 + ASKED_SHARE) {
            return;
        }
        let measured = measured.filter(|it| 0.0 < *it);
        // Assume that staleness is proportional to the power of the parameter that fits the last
        // two plays, or else to the parameter itself.
        let slope = measured
            .zip(self.last)
            .map(|(measured, last)| (measured / last.1).ln() / (asked / last.0).ln());
        let slope = slope.filter(|it| (0.2..=5.0).contains(it)).unwrap_or(1.0);
        let factor = measured.map(|it| (self.staleness / it).powf(1.0 / slope));
        let factor = factor.filter(|it| it.is_finite());
        let factor = factor.unwrap_or(STEP_MAX).clamp(1.0 / STEP_MAX, STEP_MAX);
        let within = |it: f64| low < it && it < high;
        let proposed = (asked * factor).clamp(self.range.0, self.range.1);
        let is_end = self.range.0 >= proposed || proposed >= self.range.1;
        let is_open = is_end && (low..=high).contains(&proposed);
        let middle = low.sqrt() * high.sqrt();
        self.next = Some(if within(proposed) || is_open { proposed } else { middle });
        self.last = measured.map(|it| (asked, it)).or(self.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches in a world whose staleness is `measure` of the parameter.
    fn check(measure: fn(f64) -> f64, staleness: f64, expected: Option<f64>) {
        let mut search = Search::new(STALENESS, staleness, staleness);
        let (mut found, mut plays) = (None, 0);
        while let Some(asked) = search.next().filter(|_| plays < PLAYS_MAX) {
            plays += 1;
            let measured = measure(asked);
            if (measured / staleness - 1.0).abs() < FINE_SHARE {
                found = Some(asked);
                break;
            }
            search.learn(asked, Some(measured));
        }
        match (found, expected) {
            (Some(found), Some(expected)) => {
                assert!((found / expected - 1.0).abs() < 0.02, "{found}, not {expected}");
            }
            _ => assert_eq!(found, expected),
        }
    }

    #[test]
    fn a_parameter_is_found_in_few_plays() {
        check(|it| it, 0.1, Some(0.1));
        check(|it| 3.0 * it, 0.1, Some(0.1 / 3.0));
        check(|it| it.sqrt(), 0.05, Some(0.002_5));
        check(|it| it * it, 0.05, Some(0.05_f64.sqrt()));
        check(|it| 1.0 - (-it).exp(), 0.5, Some(2_f64.ln()));
        check(|it| it + 0.04, 0.05, Some(0.01));
    }

    #[test]
    fn an_impossible_target_is_given_up() {
        check(|_| 0.2, 0.1, None);
        check(|_| 0.0, 0.1, None);
        check(|it| 0.2 + it, 0.1, None);
        check(|it| it / 100.0, 0.1, None);
        check(|it| if it < 0.07 { 0.05 } else { 0.2 }, 0.1, None);
    }
}
