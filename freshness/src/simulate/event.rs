//! The event engine: the scheduler that brokers run, against a simulated world.
//!
//! Source: Adly §5, played instead of computed: repositories change, the schedule says whom to pull
//! when, learns from what the pull finds, and the world knows how fresh that keeps everything.
//!
//! # Differences from the paper
//!
//! * Rates are not known but estimated, as a broker has to. What happens in [`Run::warm_secs`] does not
//!   count.
//! * A pull takes no time and never fails.
//!
//! Sans-I/O.

use super::world::{Detail, Repository, Totals, World};
use crate::schedule::{Found, Known, Rules, Schedule, Settings};

/// Most pulls of a run; it ends where they are used up.
pub const PULLS_MAX: u64 = 100_000_000;

/// What is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The scheduler's settings.
    pub settings: Settings,
    /// Seed of the world.
    pub seed: u64,
    /// How closely the world is simulated.
    pub detail: Detail,
    /// Seconds that do not count, for the scheduler to learn.
    pub warm_secs: f64,
    /// Seconds that count.
    pub secs: f64,
}

/// What came of it, over the seconds that count.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Freshness, pulls and updates as they were.
    pub totals: Totals,
    /// The same of each repository, in their order.
    pub each: Vec<Totals>,
    /// Freshness as the scheduler itself measures it, at the end; `None` before it has.
    pub measured: Option<f64>,
    /// Most pulls that began in a minute of the clock.
    pub pulls_per_minute_max: u64,
    /// The run took [`PULLS_MAX`] and was cut short.
    pub cut: bool,
}

/// Plays the scheduler against the repositories, of each of which it is told the rules; at most
/// [`REPOSITORIES_MAX`](super::REPOSITORIES_MAX).
pub fn play(repositories: &[(Repository, Rules)], run: &Run) -> Played {
    let mut world = World::new(run.seed, 0.0, run.detail);
    let there = repositories.iter().filter(|(repository, _)| world.add(repository).is_some());
    let rules: Vec<_> = there.map(|(_, rules)| (*rules, Known::default())).collect();
    let mut schedule = Schedule::new(run.settings);
    let ids = schedule.add(rules, 0);
    let mut is_first = vec![true; ids.len()];
    let (warm, end) = (run.warm_secs.max(0.0), run.warm_secs.max(0.0) + run.secs.max(0.0));
    let mut before = None;
    let (mut pulls, mut minute, mut in_minute, mut busiest) = (0_u64, 0, 0_u64, 0);
    while let Some(now_ms) = schedule.poll_timeout(true) {
        let now = now_ms as f64 / 1_000.0;
        if warm <= now && before.is_none() {
            before = Some(each(&mut world, warm));
        }
        if end < now || PULLS_MAX <= pulls {
            break;
        }
        while let Some(due) = schedule.poll_due(true, now_ms) {
            let at = due.source.index();
            let Some(found) = world.pull(at, now) else { break };
            // The first pull brings everything there is.
            let full = is_first.get_mut(at).is_some_and(std::mem::take);
            let age_secs = found.ages_secs / found.updates.max(1) as f64;
            let (changes, elements) = (found.updates, found.elements);
            let found = Found { full, changes, age_secs, elements, as_of_ms: now_ms, early: false };
            schedule.handle_pull(due.source, found, now_ms);
            pulls += 1;
            if minute != now_ms / 60_000 {
                (minute, in_minute) = (now_ms / 60_000, 0);
            }
            in_minute += 1;
            busiest = busiest.max(in_minute);
        }
    }
    let before = before.unwrap_or_else(|| each(&mut world, warm));
    let after = each(&mut world, end);
    let each: Vec<Totals> =
        after.iter().zip(&before).map(|(it, before)| it.since(before)).collect();
    Played {
        totals: each.iter().fold(Totals::default(), |sum, it| sum.plus(it)),
        each,
        measured: schedule.freshness(),
        pulls_per_minute_max: busiest,
        cut: PULLS_MAX <= pulls,
    }
}

/// The sums of each repository up to `at`.
fn each(world: &mut World, at: f64) -> Vec<Totals> {
    (0..world.len()).filter_map(|which| world.measure_of(which, at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::{Bounds, Model, Policy, Source, plan};
    use crate::rate::Method;
    use crate::simulate::world::Process;

    const DAY_SECS: f64 = 86_400.0;
    const BOUNDS: Bounds = Bounds { interval_min: 60.0, interval_max: 365.0 * DAY_SECS };

    fn run(policy: Policy, model: Model, days: f64) -> Run {
        Run {
            settings: Settings {
                policy,
                model,
                method: Method::Datestamps,
                gain: 0.25,
                pulls_per_minute_max: 6_000,
            },
            seed: 7,
            detail: Detail::Expected,
            warm_secs: 10.0 * DAY_SECS,
            secs: days * DAY_SECS,
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
    fn the_scheduler_reaches_what_the_equations_promise() {
        for theta in [0.87, 0.93] {
            let policy = Policy::Optimal { theta };
            let world = table_1(|rate| Process::Poisson { rate });
            let played = play(&world, &run(policy, Model::Poisson, 30.0));
            let fresh = played.totals.freshness();
            assert!((fresh - theta).abs() < 0.005, "{fresh} for {theta}");
            let expected = plan(&sources(), policy, Model::Poisson).pulls * 30.0 * DAY_SECS;
            let ratio = played.totals.pulls as f64 / expected;
            assert!((ratio - 1.0).abs() < 0.03, "{ratio} of the pulls expected");
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
    fn nobody_is_played_to_the_end() {
        let played = play(&[], &run(Policy::Optimal { theta: 0.9 }, Model::Poisson, 1.0));
        assert_eq!((played.totals, played.cut), (Totals::default(), false));
    }
}
