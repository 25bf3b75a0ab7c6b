//! Simulated repositories for trials of a scheduler: they change by a process, and measure how fresh the pulls keep
//! them.
//!
//! Source: Adly §3.1, §5 and table 1; the Poisson model of Cho and Garcia-Molina. A [`World`] has no scheduler and
//! no loop: the caller calls [`World::pull`] and [`World::measure`], with times in seconds of its own clock.
//! Everything starts fresh.
//!
//! An element is stale from its first change since the last pull. A pull finds a change at the same moment. Equal
//! seed, start, repositories and calls give equal numbers. Each repository has random numbers of its own, so
//! another repository does not change the others.
//!
//! Memory: a few hundred bytes for each repository. If changes are drawn one by one, 8 bytes more for each stale
//! element, up to [`AGES_MAX`]; a replay takes its list, and about 50 bytes for each changed element. Nothing grows
//! with N, or with the pulls.
//!
//! # Differences from the paper
//!
//! * The paper computes; its repositories change evenly forever. Here that is one [`Process`] of several.
//! * The duration and failures of pulls are not simulated: a pull is a moment.
//!
//! Sans-I/O.

mod changes;
mod draw;
mod drawn;
mod listed;
mod measure;
mod sums;

pub use changes::{BURST_MAX, Burst, Change, DRIFT_STEPS, Process, RATE_MAX, Repository, SECS_MAX};
pub use drawn::{AGES_MAX, STRETCH_CHANGES_MAX};
pub use measure::{PullResult, Totals};

use super::REPOSITORIES_MAX;
use changes::{Epochs, held};
use draw::Random;
use drawn::Drawn;
use listed::{Even, Replay};
use sums::Sums;

/// Changes a second above which a Poisson process is not drawn one by one (86,400 a day).
pub const DRAWN_RATE_MAX: f64 = 1.0;
/// Maximum number of elements of a repository; a larger number counts as this one.
pub const ELEMENTS_MAX: u64 = 1 << 50;

/// Detail of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Change by change, for repositories up to [`DRAWN_RATE_MAX`]. Takes some 50 nanoseconds for each change.
    #[default]
    Exact,
    /// The staleness is its expectation, given the times of pulls: it does not scatter, and a pull
    /// takes a microsecond for any number of changes. The results of pulls are drawn: the number of
    /// distinct updates exactly, ages and changes approximately. [`Process::Even`] becomes eq. 1,
    /// for any interval. Bursts, replays and growing repositories are as in [`Exact`](Self::Exact).
    Expected,
}

/// Simulated repositories, numbered in the order in which they were added, from 0.
#[derive(Clone, Debug)]
pub struct World {
    seed: u64,
    start: f64,
    detail: Detail,
    repositories: Vec<Simulated>,
}

#[derive(Clone, Debug)]
struct Simulated {
    kind: Kind,
    /// The repository's present time, and its last pull.
    now: f64,
    since: f64,
    totals: Totals,
}

#[derive(Clone, Debug)]
enum Kind {
    Drawn(Drawn),
    Sums(Sums),
    Even(Even),
    Replay(Replay),
}

impl World {
    /// Returns a world without repositories, whose time begins at `start`, in seconds.
    pub fn new(seed: u64, start: f64, detail: Detail) -> Self {
        let start = held(start, -SECS_MAX, SECS_MAX);
        Self { seed, start, detail, repositories: Vec::new() }
    }

    /// Adds a repository that is fresh at the start, and returns its number; `None` if there are
    /// [`REPOSITORIES_MAX`] already.
    pub fn add(&mut self, repository: &Repository) -> Option<usize> {
        let which = self.repositories.len();
        if REPOSITORIES_MAX <= which {
            return None;
        }
        let kind = Kind::new(repository, self, which as u64);
        let (now, since) = (self.start, self.start);
        self.repositories.push(Simulated { kind, now, since, totals: Totals::default() });
        Some(which)
    }

    /// Returns the number of repositories.
    pub fn len(&self) -> usize {
        self.repositories.len()
    }

    /// Returns whether there are no repositories.
    pub fn is_empty(&self) -> bool {
        self.repositories.is_empty()
    }

    /// Pulls a repository at `at`, in seconds; `None` if no repository has this number.
    ///
    /// Each repository has its own time, which never goes back: an earlier time, or NaN, counts as the present
    /// time, at which another pull finds nothing. A time above [`SECS_MAX`] counts as that.
    pub fn pull(&mut self, which: usize, at: f64) -> Option<PullResult> {
        let simulated = self.repositories.get_mut(which)?;
        simulated.advance(at);
        let (since, at) = (simulated.since, simulated.now);
        let found = match &mut simulated.kind {
            Kind::Drawn(drawn) => drawn.pull(at, at - since),
            Kind::Sums(sums) => sums.pull(since, at),
            Kind::Even(even) => even.pull(since, at),
            Kind::Replay(replay) => replay.pull(at, at - since),
        };
        simulated.since = at;
        simulated.totals.count(&found);
        Some(found)
    }

    /// Advances all repositories to `at`, and returns the sums over all since the start. For the freshness between
    /// two times, measure at the first and at the second, and take the difference by [`since`](Totals::since).
    pub fn measure(&mut self, at: f64) -> Totals {
        let add = |sum: Totals, simulated: &mut Simulated| sum.plus(simulated.advance(at));
        self.repositories.iter_mut().fold(Totals::default(), add)
    }

    /// Advances one repository to `at`, and returns its sums since the start; `None` if no
    /// repository has this number.
    pub fn measure_of(&mut self, which: usize, at: f64) -> Option<Totals> {
        self.repositories.get_mut(which).map(|it| *it.advance(at))
    }
}

impl Simulated {
    fn advance(&mut self, at: f64) -> &Totals {
        let (from, to) = (self.now, held(at, -SECS_MAX, SECS_MAX).max(self.now));
        let to = if at.is_nan() { from } else { to };
        if from < to {
            let totals = &mut self.totals;
            match &mut self.kind {
                Kind::Drawn(drawn) => drawn.advance(self.since, from, to, totals),
                Kind::Sums(sums) => sums.advance(from, to, totals),
                Kind::Even(even) => even.advance(self.since, from, to, totals),
                Kind::Replay(replay) => replay.advance(from, to, totals),
            }
            self.now = to;
        }
        &self.totals
    }
}

impl Kind {
    fn new(repository: &Repository, world: &World, which: u64) -> Self {
        let repository =
            Repository { elements: repository.elements.min(ELEMENTS_MAX), ..repository.clone() };
        let (elements, silent_from) = (repository.elements, repository.silent_from);
        let streams = [which * 2, which * 2 + 1].map(|index| Random::new(world.seed, index));
        match &repository.process {
            Process::Even { rate } => {
                let even = Even::new(elements, *rate, world.start, silent_from);
                Self::Even(Even { fluid: world.detail == Detail::Expected, ..even })
            }
            Process::Replay(list) => {
                Self::Replay(Replay::new(elements, list, world.start, silent_from))
            }
            process => {
                let epochs = Epochs::new(&repository);
                let steady = !matches!(process, Process::Bursty { .. })
                    && (repository.growth.is_nan() || repository.growth.abs() <= 0.0);
                let summed = world.detail == Detail::Expected || DRAWN_RATE_MAX < epochs.rate_max();
                if steady && summed {
                    let [random, _] = streams;
                    Self::Sums(Sums::new(elements, epochs, random))
                } else {
                    Self::Drawn(Drawn::new(&repository, epochs, world.start, streams))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
