//! The repositories that a scheduler is tried on: they change as they were told to, and measure how
//! fresh the pulls keep them.
//!
//! Source: Adly §3.1, §5 and table 1; the Poisson model of Cho and Garcia-Molina. A [`World`] has no
//! scheduler and no loop: whoever has them calls [`World::pull`] and [`World::measure`], with times in
//! seconds of a clock of their own. Everything starts fresh.
//!
//! An element is stale from its first change since the last pull on. A change at the moment of a pull
//! is found by it. Of equal seed, start and repositories, and equal calls, every number is equal; each
//! repository has random numbers of its own, so that one more leaves the others as they were.
//!
//! Memory: a few hundred bytes a repository. Beside that, when drawn change by change, 8 bytes for
//! each stale element, up to [`AGES_MAX`]; of a replay the list, and about 50 bytes for each changed
//! element. Nothing grows with N, or with the pulls.
//!
//! # Differences from the paper
//!
//! * The paper computes; its repositories change evenly and for ever. Here that is one
//!   [`Process`] of several.
//! * What a pull takes, and that it may fail, is not simulated: a pull is a moment.
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
pub use measure::{Found, Totals};

use super::REPOSITORIES_MAX;
use changes::{Epochs, held};
use draw::Random;
use drawn::Drawn;
use listed::{Even, Replay};
use sums::Sums;

/// Changes a second from which on a Poisson process is not drawn one by one (86,400 a day).
pub const DRAWN_RATE_MAX: f64 = 1.0;
/// Most elements of a repository; of more, so many are taken.
pub const ELEMENTS_MAX: u64 = 1 << 50;

/// How closely the world is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Change by change, as far as a repository is not faster than [`DRAWN_RATE_MAX`]. Takes some 50
    /// nanoseconds for each change.
    #[default]
    Exact,
    /// The staleness is its expectation, given when the pulls were: it does not scatter, and a pull
    /// takes a microsecond however much it brings. What pulls find is drawn, the number of distinct
    /// updates exactly, ages and changes closely. [`Process::Even`] becomes eq. 1, for any interval.
    /// Bursts, replays and growing repositories are as in [`Exact`](Self::Exact).
    Expected,
}

/// Simulated repositories. They are known by the order in which they were added, from 0.
#[derive(Clone, Debug)]
pub struct World {
    seed: u64,
    start: f64,
    detail: Detail,
    repositories: Vec<State>,
}

#[derive(Clone, Debug)]
struct State {
    kind: Kind,
    /// Where this repository's time is, and when it was pulled last.
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
    /// A world without repositories, whose time begins at `start`, in seconds.
    pub fn new(seed: u64, start: f64, detail: Detail) -> Self {
        let start = held(start, -SECS_MAX, SECS_MAX);
        Self { seed, start, detail, repositories: Vec::new() }
    }

    /// Adds a repository that is fresh at the start, and returns its number; `None` when there are
    /// [`REPOSITORIES_MAX`] already.
    pub fn add(&mut self, repository: &Repository) -> Option<usize> {
        let which = self.repositories.len();
        if REPOSITORIES_MAX <= which {
            return None;
        }
        let kind = Kind::new(repository, self, which as u64);
        let (now, since) = (self.start, self.start);
        self.repositories.push(State { kind, now, since, totals: Totals::default() });
        Some(which)
    }

    /// How many repositories there are.
    pub fn len(&self) -> usize {
        self.repositories.len()
    }

    /// True without repositories.
    pub fn is_empty(&self) -> bool {
        self.repositories.is_empty()
    }

    /// Pulls a repository at `at`, in seconds; `None` when there is none of that number.
    ///
    /// Each repository has its own time, which never goes back: a time before its last one, or that
    /// is no number, is taken for the last one, at which another pull finds nothing. A time above
    /// [`SECS_MAX`] is taken for that.
    pub fn pull(&mut self, which: usize, at: f64) -> Option<Found> {
        let state = self.repositories.get_mut(which)?;
        state.advance(at);
        let (since, at) = (state.since, state.now);
        let found = match &mut state.kind {
            Kind::Drawn(drawn) => drawn.pull(at, at - since),
            Kind::Sums(sums) => sums.pull(since, at),
            Kind::Even(even) => even.pull(since, at),
            Kind::Replay(replay) => replay.pull(at, at - since),
        };
        state.since = at;
        state.totals.count(&found);
        Some(found)
    }

    /// Sums over all repositories from the start to `at`, to which the time of each of them goes on.
    /// Freshness from one time to another is that of the one sum [`since`](Totals::since) the other:
    /// measure first at the one, then at the other.
    pub fn measure(&mut self, at: f64) -> Totals {
        let add = |sum: Totals, state: &mut State| sum.plus(state.advance(at));
        self.repositories.iter_mut().fold(Totals::default(), add)
    }

    /// The sums of one repository from the start to `at`, to which its time goes on; `None` when there
    /// is none of that number.
    pub fn measure_of(&mut self, which: usize, at: f64) -> Option<Totals> {
        self.repositories.get_mut(which).map(|it| *it.advance(at))
    }
}

impl State {
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
