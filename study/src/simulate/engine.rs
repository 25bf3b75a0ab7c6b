//! Engines that evaluate a policy: by the equations, or by the scheduler.
//!
//! Sans-I/O.

use super::Costs;
use super::event::{Listing, PULLS_MAX, Run, play};
use super::world::{Process, Repository};
use freshness::interval::{Bounds, Model, Policy, Source, Workload, plan};
use freshness::rate::Method;
use freshness::schedule::{Rules, Settings};

const DAY_SECS: f64 = 86_400.0;
/// Number of days in which the scheduler learns, before the days that count.
const WARM_DAYS: f64 = 20.0;
/// Shortest interval of a played source, in seconds: shorter than the paper's mixes need.
const INTERVAL_MIN_SECS: f64 = 10.0;

/// An engine that evaluates a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Engine {
    /// Eq. 1 to 4, with known rates.
    Equation,
    /// The scheduler, which must learn the rates, over sources that change evenly.
    Event(Experiment),
}

/// An experiment with the scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Experiment {
    /// Number of days over which cost and freshness are measured.
    pub days: f64,
    /// Seed of the simulated world.
    pub seed: u64,
    /// Least gain g of the rate estimator, above 0 and up to 1.
    pub gain: f64,
}

/// Outcome of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// C_H of eq. 2, a day.
    pub cost: f64,
    /// F_H of eq. 1; all elements count the same.
    pub freshness: f64,
    /// Σ aNs / ΣN: the staleness, weighted by the sources' weights.
    pub stale_weighted: f64,
}

impl Engine {
    /// Evaluates a policy. Rates and times are in days. The cost of a pull is that of its source
    /// with [`Engine::Equation`], and that of `costs` with [`Engine::Event`].
    pub fn run(self, sources: &[Source], policy: Policy, costs: Costs) -> Outcome {
        match self {
            Self::Equation => compute(sources, policy, costs),
            Self::Event(experiment) => event(sources, policy, costs, experiment),
        }
    }
}

fn compute(sources: &[Source], policy: Policy, costs: Costs) -> Outcome {
    let found = plan(sources, policy, Model::Printed);
    let updates: f64 = sources.iter().map(|it| it.workload.rate).sum();
    let (mut elements, mut mass, mut fresh) = (0.0, 0.0, 0.0);
    for (source, interval) in sources.iter().zip(&found.intervals) {
        let own = source.workload.elements as f64;
        elements += own;
        mass += source.weight * own;
        fresh += own * source.freshness_at(*interval, Model::Printed);
    }
    Outcome {
        cost: updates * costs.update + found.pull_cost,
        freshness: fresh / elements,
        stale_weighted: (1.0 - found.freshness) * mass / elements,
    }
}

fn event(sources: &[Source], policy: Policy, costs: Costs, experiment: Experiment) -> Outcome {
    let Experiment { days, seed, gain } = experiment;
    let bounds = Bounds { interval_min: INTERVAL_MIN_SECS, ..Bounds::FREE };
    let repository = |source: &Source| {
        let Workload { rate, elements } = source.workload;
        let repository = Repository::new(elements, Process::Even { rate: rate / DAY_SECS });
        (repository, Rules { weight: source.weight, ..Rules::new(bounds) })
    };
    let repositories: Vec<_> = sources.iter().map(repository).collect();
    let settings = Settings {
        policy: match policy {
            // A pull of the scheduler costs 1.
            Policy::CombinedCost { price } => {
                Policy::CombinedCost { price: price / DAY_SECS / costs.pull }
            }
            Policy::Fixed { interval } => Policy::Fixed { interval: interval * DAY_SECS },
            Policy::Budget { pulls } => Policy::Budget { pulls: pulls / DAY_SECS },
            Policy::Optimal { .. } | Policy::Uniform { .. } | Policy::Individual { .. } => policy,
        },
        model: Model::Printed,
        method: Method::Ewma,
        gain,
        pulls_per_minute_max: u32::MAX,
    };
    let (warm_secs, secs) = (WARM_DAYS * DAY_SECS, days * DAY_SECS);
    let (start, listing) = (0.0, Listing::Changes);
    let run = Run { settings, listing, seed, start, warm_secs, secs, pulls_max: PULLS_MAX };
    let played = play(&repositories, &run);
    let (mut lost, mut elements) = (0.0, 0.0);
    for (each, source) in played.each.iter().zip(sources) {
        lost += source.weight * each.counted_secs;
        elements += each.element_secs;
    }
    let totals = played.totals;
    Outcome {
        cost: (totals.changes as f64 * costs.update + totals.pulls as f64 * costs.pull) / days,
        freshness: totals.freshness_printed(),
        stale_weighted: lost / elements,
    }
}
