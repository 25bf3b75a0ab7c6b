//! The event engine: the scheduler that brokers run, against a simulated world.
//!
//! Source: Adly §5, played instead of computed: repositories change, the schedule decides when to
//! pull which source and learns from the pulls, and the world knows the true freshness.
//!
//! A repository that replays a log is born with its first change: before that it is not pulled and
//! adds nothing to the results. If its log begins before the world, it exists from the start, like
//! all others.
//!
//! # Differences from the paper
//!
//! * Rates are not known but estimated, as in a broker. The results leave out the time of
//!   [`Run::warm_secs`].
//! * A pull takes no time and never fails.
//! * Repositories may appear while others are harvested.
//!
//! Sans-I/O.

use super::world::{Process, Repository, SECS_MAX, Totals, World};
use freshness::schedule::{Due, FirstChanges, PullReport, Rules, Schedule, Settings, SourceNote};

/// Maximum number of pulls of a run; after them, nothing is pulled.
pub const PULLS_MAX: u64 = 100_000_000;

/// Information that a pull gives about the changes since the pull before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listing {
    /// All changes, and so also the first change of each element: the log of a collection.
    Changes,
    /// The changed elements, each once with the time of its last change: OAI-PMH.
    #[default]
    Elements,
}

/// Settings of a play.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The scheduler's settings.
    pub settings: Settings,
    /// The information that pulls give.
    pub listing: Listing,
    /// Seed of the world.
    pub seed: u64,
    /// Begin of the world, in seconds on the clock of the logs.
    pub start: f64,
    /// Seconds in which the scheduler learns; the results leave them out.
    pub warm_secs: f64,
    /// Seconds of the results, after `warm_secs`.
    pub secs: f64,
    /// Maximum number of pulls, up to [`PULLS_MAX`].
    pub pulls_max: u64,
}

/// Result of a play, over [`Run::secs`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlayResult {
    /// True freshness, pulls and updates.
    pub totals: Totals,
    /// The same for each repository, in their order; zeros for one that was never born.
    pub each: Vec<Totals>,
    /// Freshness as the scheduler itself measures it, at the end; `None` without a measurement.
    pub measured: Option<f64>,
    /// Changes that no pull had found at the end.
    pub missed: u64,
    /// Largest number of pulls in any minute of the clock.
    pub pulls_per_minute_max: u64,
    /// Whether the maximum number of pulls was reached, after which nothing was pulled.
    pub cut: bool,
}

/// Plays the scheduler against the repositories with their rules; at most
/// [`REPOSITORIES_MAX`](super::REPOSITORIES_MAX).
pub fn play(repositories: &[(Repository, Rules)], run: &Run) -> PlayResult {
    let start = if run.start.is_finite() { run.start.clamp(-SECS_MAX, SECS_MAX) } else { 0.0 };
    // NaN counts as no time.
    let secs = |it: f64| it.max(0.0).clamp(0.0, SECS_MAX);
    let warm = start + secs(run.warm_secs);
    let end = warm + secs(run.secs);
    let pulls_max = run.pulls_max.min(PULLS_MAX);
    let mut active = ActiveRun::new(repositories, run, start);
    let mut now_ms = 0;
    loop {
        let due_ms = active.schedule.poll_timeout(true);
        let next = due_ms.into_iter().chain(active.birth_ms()).min();
        // A shortened interval may end in the past.
        let Some(next_ms) = next.map(|it| it.max(now_ms)) else { break };
        now_ms = next_ms;
        let now = active.at(now_ms);
        if end < now || pulls_max <= active.pulls {
            break;
        }
        if warm <= now {
            active.begin(warm);
        }
        active.bear(now_ms);
        while let Some(due) = active.schedule.poll_due(true, now_ms) {
            if !active.pull(due, now_ms) {
                break;
            }
        }
    }
    active.begin(warm);
    active.end(end, pulls_max)
}

struct ActiveRun {
    world: World,
    schedule: Schedule,
    listing: Listing,
    start: f64,
    /// Birth of each repository, its number and its rules, in order of births.
    births: Vec<(u64, usize, Rules)>,
    /// Number of repositories born so far. The schedule numbers its sources in the order of births.
    born: usize,
    /// Whether each repository was pulled; its first pull brings everything.
    was_pulled: Vec<bool>,
    /// Stale time of each repository up to its last pull, in element seconds.
    stale_secs: Vec<f64>,
    /// Totals of each repository when its results began; `None` before that.
    before: Vec<Option<Totals>>,
    begun: bool,
    pulls: u64,
    /// The minute of the last pull.
    minute: u64,
    /// Number of pulls in that minute.
    in_minute: u64,
    /// Greatest number of pulls in any minute.
    busiest: u64,
}

impl ActiveRun {
    fn new(repositories: &[(Repository, Rules)], run: &Run, start: f64) -> Self {
        let mut world = World::new(run.seed, start);
        let mut births = Vec::with_capacity(repositories.len());
        for (repository, rules) in repositories {
            let Some(which) = world.add(repository) else { break };
            births.push((birth_ms(repository, start), which, *rules));
        }
        births.sort_by_key(|(at_ms, which, _)| (*at_ms, *which));
        Self {
            was_pulled: vec![false; births.len()],
            stale_secs: vec![0.0; births.len()],
            before: vec![None; births.len()],
            world,
            schedule: Schedule::new(run.settings),
            listing: run.listing,
            start,
            births,
            born: 0,
            begun: false,
            pulls: 0,
            minute: 0,
            in_minute: 0,
            busiest: 0,
        }
    }

    fn at(&self, ms: u64) -> f64 {
        self.start + ms as f64 / 1_000.0
    }

    fn birth_ms(&self) -> Option<u64> {
        self.births.get(self.born).map(|(at_ms, ..)| *at_ms)
    }

    /// Begins the results at `warm`.
    fn begin(&mut self, warm: f64) {
        if !std::mem::replace(&mut self.begun, true) {
            for (_, which, _) in self.births.iter().take(self.born) {
                self.before[*which] = self.world.measure(*which, warm);
            }
        }
    }

    /// Adds the repositories that are born by now.
    fn bear(&mut self, now_ms: u64) {
        let coming = self.births.iter().skip(self.born);
        let now = self.at(now_ms);
        let new: Vec<_> = coming.take_while(|(at_ms, ..)| *at_ms <= now_ms).copied().collect();
        if new.is_empty() {
            return;
        }
        self.born += new.len();
        for (_, which, _) in &new {
            if self.begun {
                self.before[*which] = self.world.measure(*which, now);
            }
        }
        self.schedule.add(new.iter().map(|(.., rules)| (*rules, SourceNote::default())), now_ms);
    }

    /// Makes a due pull; false if no repository has this number.
    fn pull(&mut self, due: Due, now_ms: u64) -> bool {
        let which = self.births.get(due.source.index()).map(|(_, which, _)| *which);
        let now = self.at(now_ms);
        let Some((which, found)) = which.and_then(|it| Some((it, self.world.pull(it, now)?)))
        else {
            return false;
        };
        let full = !std::mem::replace(&mut self.was_pulled[which], true);
        let mean = |secs: f64| secs / found.updates.max(1) as f64;
        let stale_secs = self.world.measure(which, now).map_or(0.0, |it| it.stale_secs);
        let stale = stale_secs - std::mem::replace(&mut self.stale_secs[which], stale_secs);
        let age_secs = mean(found.ages_secs);
        let (changes, first_changes) = match self.listing {
            // Each element has been stale since its first change.
            Listing::Changes => {
                let first_changes = FirstChanges { objects: found.updates, age_secs: mean(stale) };
                (found.changes, Some(first_changes))
            }
            Listing::Elements => (found.updates, None),
        };
        let elements = found.elements;
        let found = PullReport {
            full,
            changes,
            age_secs,
            first_changes,
            elements,
            as_of_ms: now_ms,
            early: false,
        };
        self.schedule.handle_pull(due.source, found, now_ms);
        self.pulls += 1;
        let minute = now_ms / 60_000;
        self.in_minute = if self.minute == minute { self.in_minute + 1 } else { 1 };
        self.minute = minute;
        self.busiest = self.busiest.max(self.in_minute);
        true
    }

    fn end(mut self, end: f64, pulls_max: u64) -> PlayResult {
        let mut each = Vec::with_capacity(self.before.len());
        let mut missed = 0;
        for (which, before) in self.before.iter().enumerate() {
            let after = self.world.measure(which, end);
            each.push(match (after, before) {
                (Some(after), Some(before)) => after.since(before),
                _ => Totals::default(),
            });
            let left = self.world.pull(which, end).filter(|_| before.is_some());
            missed += left.map_or(0, |it| it.changes);
        }
        PlayResult {
            totals: each.iter().fold(Totals::default(), |sum, it| sum.plus(it)),
            each,
            measured: self.schedule.freshness(),
            missed,
            pulls_per_minute_max: self.busiest,
            cut: pulls_max <= self.pulls,
        }
    }
}

/// Returns the birth of a repository, in milliseconds after the start; a repository that replays a
/// log is born with its first change.
fn birth_ms(repository: &Repository, start: f64) -> u64 {
    let Process::Replay(changes) = &repository.process else { return 0 };
    let times = changes.iter().map(|it| it.at).filter(|it| it.is_finite());
    let first = times.reduce(f64::min).unwrap_or(start);
    // The cast saturates; times before the start become 0.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let ms = ((first - start) * 1_000.0).ceil() as u64;
    ms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::world::{Change, Process};
    use freshness::interval::{Bounds, Model, Policy, Source, plan};
    use freshness::rate::Method;
    use proptest::prelude::*;

    const DAY_SECS: f64 = 86_400.0;
    const BOUNDS: Bounds = Bounds { interval_min: 60.0, interval_max: 365.0 * DAY_SECS };

    fn run(policy: Policy, model: Model, days: f64) -> Run {
        Run {
            settings: Settings {
                policy,
                model,
                method: Method::Ewma,
                gain: 0.25,
                pulls_per_minute_max: 6_000,
            },
            listing: Listing::Changes,
            seed: 7,
            start: 0.0,
            warm_secs: 10.0 * DAY_SECS,
            secs: days * DAY_SECS,
            pulls_max: PULLS_MAX,
        }
    }

    /// Ten of each type of the paper's table 1.
    fn table_1(process: fn(f64) -> Process) -> Vec<(Repository, Rules)> {
        let kinds = crate::simulate::KINDS.iter().cycle().take(40);
        let of = |(rate, elements): &(f64, u64)| {
            (Repository::new(*elements, process(rate / DAY_SECS)), Rules::new(BOUNDS))
        };
        kinds.map(of).collect()
    }

    fn sources() -> Vec<Source> {
        let kinds = crate::simulate::KINDS.iter().cycle().take(40);
        kinds.map(|(rate, elements)| Source::new(rate / DAY_SECS, *elements, BOUNDS)).collect()
    }

    #[test]
    fn the_scheduler_reaches_the_freshness_of_the_equations() {
        for theta in [0.87, 0.93] {
            let policy = Policy::Optimal { theta };
            let world = table_1(|rate| Process::Poisson { rate });
            let played = play(&world, &run(policy, Model::Poisson, 30.0));
            let fresh = played.totals.freshness();
            assert!((fresh - theta).abs() < 0.005, "{fresh} for {theta}");
            let expected = plan(&sources(), policy, Model::Poisson).pulls * 30.0 * DAY_SECS;
            let ratio = played.totals.pulls as f64 / expected;
            assert!((ratio - 1.0).abs() < 0.03, "{ratio} of the pulls expected");
            let measured = played.measured.unwrap();
            assert!((measured - fresh).abs() < 0.01, "{measured} was measured of {fresh}");
        }
    }

    #[test]
    fn no_minute_sees_more_pulls_than_the_cap() {
        let world = table_1(|rate| Process::Poisson { rate: rate * 1e4 });
        let mut storm = run(Policy::Optimal { theta: 1.0 }, Model::Linear, 0.02);
        storm.settings.pulls_per_minute_max = 17;
        storm.warm_secs = 0.0;
        let played = play(&world, &storm);
        assert!(played.pulls_per_minute_max <= 17, "{played:?}");
        assert!(17 * 20 <= played.totals.pulls, "{played:?}");
    }

    #[test]
    fn a_run_without_repositories_ends() {
        let played = play(&[], &run(Policy::Optimal { theta: 0.9 }, Model::Poisson, 1.0));
        assert_eq!((played.totals, played.cut), (Totals::default(), false));
    }

    /// Computed by hand: source a is born on the 10th day, b on the 20th, and both are pulled at
    /// once; a changes on the 30th day and is pulled within a day. A pull at birth finds the first
    /// change.
    #[test]
    fn a_log_begins_with_its_first_change() {
        let text = "864000,a,x\n1728000,b,y\n2592000,a,x\n#elements,b,7\n";
        let trace = crate::simulate::trace::Trace::parse(text).unwrap();
        let bounds = Bounds { interval_min: DAY_SECS, interval_max: DAY_SECS };
        let all: Vec<_> = trace.repositories().map(|(_, it)| (it, Rules::new(bounds))).collect();
        let days = |days: f64| days * DAY_SECS;
        let asked = run(Policy::Fixed { interval: DAY_SECS }, Model::Printed, 0.0);
        let asked = Run { start: days(5.0), warm_secs: 0.0, secs: days(30.0), ..asked };
        let played = play(&all, &asked);
        let [a, b] = played.each[..] else { panic!("{played:?}") };
        assert_eq!((a.element_secs, b.element_secs), (days(25.0), days(7.0 * 15.0)));
        assert_eq!((a.pulls, a.changes), (26, 2));
        assert_eq!((b.pulls, b.changes, b.stale_secs), (16, 1, 0.0));
        assert_eq!(played.missed, 0);
        // Cut after five pulls of a: the change of the 30th day is missed, and b was never seen.
        let cut = play(&all, &Run { pulls_max: 5, ..asked });
        assert_eq!((cut.totals.pulls, cut.missed, cut.cut), (5, 1, true));
        assert!((cut.each[0].stale_secs - days(5.0)).abs() < 1e-6);
    }

    fn foreign() -> impl Strategy<Value = f64> {
        let senseless = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e300, 1e-300];
        prop_oneof![2 => -1e7..1e7, 1 => prop::sample::select(senseless.to_vec())]
    }

    proptest! {
        #[test]
        fn every_run_ends(
            (start, warm_secs, secs) in (foreign(), foreign(), foreign()),
            times in prop::collection::vec((foreign(), 0..9_u32), 0..9),
            (theta, rate) in (foreign(), foreign()),
        ) {
            let list = times.into_iter().map(|(at, element)| Change { at, element }).collect();
            let all = [
                (Repository::new(3, Process::Replay(list)), Rules::new(BOUNDS)),
                (Repository::new(100, Process::Even { rate: rate / 1e7 }), Rules::new(BOUNDS)),
            ];
            let asked = run(Policy::Optimal { theta }, Model::Poisson, 0.0);
            let asked = Run { start, warm_secs, secs, pulls_max: 300, ..asked };
            let played = play(&all, &asked);
            prop_assert!(played.totals.pulls <= 300);
            prop_assert!((0.0..=1.0).contains(&played.totals.freshness()), "{played:?}");
        }
    }
}
