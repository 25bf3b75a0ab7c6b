//! What the same freshness costs: how many pulls each of four ways needs to measure as fresh.
//!
//! Source: Adly §5, where policies are compared by cost at an equal θ. There θ is what the equations
//! promise; here every way is played by the scheduler ([`play`]) and what it asks for is moved until
//! the freshness that the *world* measures is the one wanted. Whoever misjudges the sources is
//! neither rewarded for delivering less, nor punished for delivering more.
//!
//! What is asked for is a staleness 1 − θ, or an interval. Measured staleness follows it nearly in
//! proportion, so that a secant through the logarithms of the last two plays, held within the
//! bracket of all plays so far, needs few of them.
//!
//! One play is one history, and pulls hit it or miss it: over a few thousand changes, numbers of pulls
//! scatter by about one in a hundred, over the simulated worlds by less.
//!
//! # Differences from the paper
//!
//! * The paper computes with known rates; everybody here has to learn them, by the paper's estimator
//!   or by ours.
//! * Changes not only come evenly, and an element that changes twice is stale once.
//!
//! Sans-I/O.

use std::fmt;

use super::event::{Played, Run, play};
use super::world::Repository;
use super::{Cell, Table};
use freshness::interval::{Model, Policy};
use freshness::rate::Method;
use freshness::schedule::{Rules, Settings};

/// How far from the freshness wanted a measured one may be and count as reached.
pub const TOLERANCE: f64 = 0.001;
/// Most plays to find one number of pulls.
pub const PLAYS_MAX: u32 = 20;
/// Share of the staleness wanted within which no further play is worth its time: pulls go with
/// staleness, so that this is about how exact their number is.
const FINE_SHARE: f64 = 0.003;
/// Least and greatest staleness that is asked for.
const STALENESS: (f64, f64) = (1e-6, 1.0);
/// Shortest and longest interval that is asked for, in seconds.
const INTERVAL_SECS: (f64, f64) = (10.0, 3_650.0 * DAY_SECS);
/// Share of what is asked for below which no difference shows.
const ASKED_SHARE: f64 = 1e-5;
/// Farthest that one step of the search goes, as a factor.
const STEP_MAX: f64 = 30.0;
const DAY_SECS: f64 = 86_400.0;

/// One way of saying when to pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contestant {
    /// Ours: OAP(θ) of the Poisson model, rates from datestamps.
    Ours,
    /// OAP(θ) as printed: eq. 3, rates by the paper's estimator.
    Printed,
    /// UAP(θ): one interval for all, which follows the rates; by the paper's estimator.
    Uniform,
    /// One interval for all and ever.
    Fixed,
}

impl Contestant {
    /// All of them, ours first.
    pub const ALL: [Self; 4] = [Self::Ours, Self::Printed, Self::Uniform, Self::Fixed];

    /// The scheduler's settings; `asked` is a staleness 1 − θ, or [`Fixed`](Self::Fixed)'s interval in
    /// seconds. Gain and cap are those of `settings`.
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

    /// Between what it may be asked for.
    fn range(self) -> (f64, f64) {
        if self == Self::Fixed { INTERVAL_SECS } else { STALENESS }
    }
}

/// As tables name it.
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

/// Sources, and how they are played.
#[derive(Clone, Debug)]
pub struct Contest<'a> {
    /// What is pulled.
    pub repositories: &'a [(Repository, Rules)],
    /// How long and from when on; of the settings, gain and cap. A play that uses up the pulls of the
    /// run counts as one that asked for too much.
    pub run: Run,
}

/// What one way needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Who.
    pub contestant: Contestant,
    /// What it had to be asked for: a staleness 1 − θ, or an interval in seconds.
    pub asked: f64,
    /// What came of it.
    pub played: Played,
    /// Whether the freshness wanted was measured, within [`TOLERANCE`]. If not, this is what came
    /// nearest.
    pub reached: bool,
    /// How many plays it took to find out.
    pub plays: u32,
}

/// What every way needs for one freshness.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// The freshness wanted.
    pub target: f64,
    /// In the order of [`Contestant::ALL`].
    pub scores: Vec<Score>,
}

impl Contest<'_> {
    /// Plays one way as it is asked.
    pub fn play(&self, contestant: Contestant, asked: f64) -> Played {
        let settings = contestant.settings(asked, self.run.settings);
        play(self.repositories, &Run { settings, ..self.run })
    }

    /// What every way needs to be as fresh as pulling everybody once a day keeps everything.
    pub fn against_daily(&self) -> Scores {
        let played = self.play(Contestant::Fixed, DAY_SECS);
        let target = played.totals.freshness();
        let daily = Score {
            contestant: Contestant::Fixed,
            asked: DAY_SECS,
            played,
            reached: true,
            plays: 1,
        };
        let score = |it| match it {
            Contestant::Fixed => daily.clone(),
            _ => self.reach(it, target),
        };
        Scores { target, scores: Contestant::ALL.map(score).to_vec() }
    }

    /// What every way needs to measure a freshness of `target`.
    pub fn at_freshness(&self, target: f64) -> Scores {
        let score = |it| self.reach(it, target);
        Scores { target, scores: Contestant::ALL.map(score).to_vec() }
    }

    /// Finds what a way has to be asked for to measure a freshness of `target`, in [`PLAYS_MAX`] plays
    /// at most.
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
            // Half a run is no answer as long as there is another.
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
    /// How many times the pulls of ours a way needs; `None` when one of the two did not reach the
    /// freshness wanted, or ours needs none.
    pub fn ratio(&self, of: Contestant) -> Option<f64> {
        let pulls = |it: Contestant| {
            let score = self.scores.iter().find(|score| score.contestant == it);
            score.filter(|it| it.reached).map(|it| it.played.totals.pulls as f64)
        };
        Some(pulls(of)? / pulls(Contestant::Ours).filter(|it| 0.0 < *it)?)
    }

    /// The scores as a table, of which a row has the freshness wanted, who, what it was asked for (θ,
    /// or an interval in days), what was measured, the pulls in all, a day and of ours, and whether the
    /// freshness was reached; `secs` are those that counted.
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
            let said = match (score.reached, score.played.cut) {
                (true, _) => "yes",
                (false, true) => "too many pulls",
                (false, false) => "no: this is nearest",
            };
            let ratio = self.ratio(score.contestant);
            let ratio = ratio.map_or_else(|| Cell::from("-".to_owned()), Cell::from);
            let (policy, said) = (score.contestant.to_string(), said.to_owned());
            let pulls = totals.pulls as f64;
            vec![
                self.target.into(),
                policy.into(),
                asked.into(),
                totals.freshness().into(),
                pulls.into(),
                a_day.into(),
                ratio,
                said.into(),
            ]
        };
        Table { columns, rows: self.scores.iter().map(row).collect() }
    }
}

/// Looks for what makes a measured staleness, which grows with what is asked for.
#[derive(Clone, Debug)]
struct Search {
    /// Between which it lies, as far as is known, and between which anything is asked for.
    bracket: (f64, f64),
    range: (f64, f64),
    next: Option<f64>,
    /// The last play: what was asked for, and the staleness measured.
    last: Option<(f64, f64)>,
    staleness: f64,
}

impl Search {
    fn new(range: (f64, f64), first: f64, staleness: f64) -> Self {
        let next = Some(first.clamp(range.0, range.1));
        Self { bracket: range, range, next, last: None, staleness }
    }

    /// What to ask for next; `None` when there is nothing left to ask.
    fn next(&mut self) -> Option<f64> {
        self.next.take()
    }

    /// Takes in the staleness that was measured, `None` when that was too much to ask.
    fn learn(&mut self, asked: f64, measured: Option<f64>) {
        let too_stale = measured.is_some_and(|it| self.staleness < it);
        let (low, high) = if too_stale { (self.bracket.0, asked) } else { (asked, self.bracket.1) };
        self.bracket = (low, high);
        let at_end = if too_stale { asked <= self.range.0 } else { self.range.1 <= asked };
        if at_end || high <= low * (1.0 + ASKED_SHARE) {
            return;
        }
        let measured = measured.filter(|it| 0.0 < *it);
        // Staleness goes with what is asked for, or as the last two plays say.
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

    /// Asks a world whose staleness is `measure` of what is asked for.
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
    fn what_is_measured_is_found_in_few_plays() {
        check(|it| it, 0.1, Some(0.1));
        check(|it| 3.0 * it, 0.1, Some(0.1 / 3.0));
        check(|it| it.sqrt(), 0.05, Some(0.002_5));
        check(|it| it * it, 0.05, Some(0.05_f64.sqrt()));
        check(|it| 1.0 - (-it).exp(), 0.5, Some(2_f64.ln()));
        check(|it| it + 0.04, 0.05, Some(0.01));
    }

    #[test]
    fn what_cannot_be_is_given_up() {
        check(|_| 0.2, 0.1, None);
        check(|_| 0.0, 0.1, None);
        check(|it| 0.2 + it, 0.1, None);
        check(|it| it / 100.0, 0.1, None);
        check(|it| if it < 0.07 { 0.05 } else { 0.2 }, 0.1, None);
    }
}
