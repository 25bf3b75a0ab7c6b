//! Simulated repositories for trials of a scheduler: they change by a process, and the world
//! measures how fresh pulls keep them.
//!
//! Source: Adly §3.1, §5 and table 1; the Poisson model of Cho and Garcia-Molina. A [`World`] has
//! no scheduler and no loop: the caller calls [`World::pull`] and [`World::measure`], with times in
//! seconds on its own clock. At the start everything is fresh.
//!
//! An element is stale from its first change since the last pull. A pull at the time of a change
//! finds the change. Equal seed, start, repositories and calls give equal numbers. Each repository
//! has random numbers of its own, which do not depend on other repositories.
//!
//! Random changes are not drawn one by one: the staleness is the expected one, given the times of
//! pulls, and does not scatter. The results of pulls are drawn: the number of distinct updates
//! exactly, ages and changes approximately. [`Process::Even`] gives eq. 1 for any interval. Only
//! bursts and replays are simulated change by change.
//!
//! Memory: a few hundred bytes for each repository. Bursts take 8 bytes more for each stale
//! element, up to [`AGES_MAX`]; a replay takes its list, and about 50 bytes for each changed
//! element. Nothing grows with N, or with the pulls.
//!
//! # Differences from the paper
//!
//! * The paper computes; its repositories change evenly forever. Here these are one [`Process`] of
//!   several.
//! * The duration and failures of pulls are not simulated: a pull is a moment.
//!
//! Sans-I/O.

mod bursts;
mod changes;
mod draw;
mod listed;
mod measure;
mod sums;

pub use bursts::{AGES_MAX, STRETCH_CHANGES_MAX};
pub use changes::{BURST_MAX, Change, DRIFT_STEPS, Process, RATE_MAX, Repository, SECS_MAX};
pub use measure::{PullResult, Totals};

use super::REPOSITORIES_MAX;
use bursts::Bursts;
use changes::{ChangeRate, held};
use draw::Random;
use listed::{Even, Replay};
use sums::Sums;

/// Maximum number of elements of a repository; a larger number is treated as this one.
pub const ELEMENTS_MAX: u64 = 1 << 50;

/// Simulated repositories, numbered in the order in which they were added, from 0.
#[derive(Clone, Debug)]
pub struct World {
    seed: u64,
    start: f64,
    repositories: Vec<Simulated>,
}

#[derive(Clone, Debug)]
struct Simulated {
    kind: Kind,
    /// The repository's present time.
    now: f64,
    /// The time of its last pull.
    since: f64,
    totals: Totals,
}

#[derive(Clone, Debug)]
enum Kind {
    Bursts(Bursts),
    Sums(Sums),
    Even(Even),
    Replay(Replay),
}

impl World {
    /// Returns a world without repositories, whose time begins at `start`, in seconds.
    pub fn new(seed: u64, start: f64) -> Self {
        let start = held(start, -SECS_MAX, SECS_MAX);
        Self { seed, start, repositories: Vec::new() }
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

    /// Pulls a repository at `at`, in seconds; `None` if no repository has this number.
    ///
    /// Each repository has its own time, which never goes back: an earlier time, or NaN, is treated
    /// as its present time, at which another pull finds nothing. A time above [`SECS_MAX`] is
    /// treated as that.
    pub fn pull(&mut self, which: usize, at: f64) -> Option<PullResult> {
        let simulated = self.repositories.get_mut(which)?;
        simulated.advance(at);
        let (since, at) = (simulated.since, simulated.now);
        let found = match &mut simulated.kind {
            Kind::Bursts(bursts) => bursts.pull(at),
            Kind::Sums(sums) => sums.pull(since, at),
            Kind::Even(even) => even.pull(since, at),
            Kind::Replay(replay) => replay.pull(at),
        };
        simulated.since = at;
        simulated.totals.count(&found);
        Some(found)
    }

    /// Advances a repository to `at`, and returns its sums since the start; `None` if no repository
    /// has this number. For the freshness between two times, measure at both and call
    /// [`since`](Totals::since).
    pub fn measure(&mut self, which: usize, at: f64) -> Option<Totals> {
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
                Kind::Bursts(bursts) => bursts.advance(from, to, totals),
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
        let elements = repository.elements.min(ELEMENTS_MAX);
        let streams = [which * 2, which * 2 + 1].map(|index| Random::new(world.seed, index));
        match &repository.process {
            Process::Even { rate } => Self::Even(Even::new(elements, *rate, world.start)),
            Process::Replay(list) => Self::Replay(Replay::new(elements, list, world.start)),
            Process::Bursty { rate, burst } => {
                Self::Bursts(Bursts::new(elements, (*rate, *burst), world.start, streams))
            }
            process => {
                let [random, _] = streams;
                Self::Sums(Sums::new(elements, ChangeRate::new(process), random))
            }
        }
    }
}

#[cfg(test)]
mod tests;
