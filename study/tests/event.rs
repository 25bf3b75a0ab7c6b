//! Tests of the scheduler that brokers run, over simulated sources of all kinds.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and shows its figures"
)]

use freshness::interval::{Bounds, Model, Policy, Source, plan};
use freshness::rate::Method;
use freshness::schedule::{Rules, Settings};
use study::simulate::world::{Process, Repository};
use study::simulate::{KINDS, Listing, Mix, PULLS_MAX, PlayResult, Run, play};

const DAY_SECS: f64 = 86_400.0;
const THETA: f64 = 0.95;
const BOUNDS: Bounds = Bounds { interval_min: 60.0, interval_max: 365.0 * DAY_SECS };
const COUNT: usize = 30;

/// A named process, by its mean rate.
type NamedProcess = (&'static str, fn(f64) -> Process);

const PROCESSES: [NamedProcess; 5] = [
    ("stationary", |rate| Process::Poisson { rate }),
    ("bursty", |rate| Process::Bursty { rate, burst: 20.0 }),
    ("daily", |rate| Process::Daily { rate, share: 0.9, hours: 10.0, begin_secs: 28_800.0 }),
    ("faster", |rate| Process::Drifting {
        rate,
        factor: 3.0,
        from: 10.0 * DAY_SECS,
        over_secs: 20.0 * DAY_SECS,
    }),
    ("slower", |rate| Process::Drifting {
        rate,
        factor: 1.0 / 3.0,
        from: 10.0 * DAY_SECS,
        over_secs: 20.0 * DAY_SECS,
    }),
];

fn world(mix: Mix, process: NamedProcess) -> Vec<(Repository, Rules)> {
    let of = |((rate, elements), count): (&(f64, u64), usize)| {
        let repository = Repository::new(*elements, process.1(rate / DAY_SECS));
        std::iter::repeat_n((repository, Rules::new(BOUNDS)), count)
    };
    KINDS.iter().zip(mix.counts(COUNT)).flat_map(of).collect()
}

/// Method of learning rates, and the information that pulls give.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Learning(Method, Listing);

/// The way in which a broker learns from gatherers.
const OURS: Learning = Learning(Method::Ewma, Listing::Changes);

fn played(
    mix: Mix,
    process: NamedProcess,
    model: Model,
    Learning(method, listing): Learning,
    days: f64,
) -> PlayResult {
    let settings = Settings {
        policy: Policy::Optimal { theta: THETA },
        model,
        method,
        gain: 0.25,
        pulls_per_minute_max: 6_000,
    };
    play(
        &world(mix, process),
        &Run {
            settings,
            listing,
            seed: 11,
            start: 0.0,
            warm_secs: 10.0 * DAY_SECS,
            secs: days * DAY_SECS,
            pulls_max: PULLS_MAX,
        },
    )
}

/// Returns the pulls of the Poisson model's optimum divided by those of eq. 3, both computed.
fn allowed(mix: Mix) -> f64 {
    let per_second =
        |it: Source| Source::new(it.workload.rate / DAY_SECS, it.workload.elements, BOUNDS);
    let sources: Vec<Source> = mix.sources(COUNT, 1.0).into_iter().map(per_second).collect();
    let pulls = |model| plan(&sources, Policy::Optimal { theta: THETA }, model).pulls;
    pulls(Model::Poisson) / pulls(Model::Printed)
}

fn mixes() -> impl Iterator<Item = Mix> {
    (0..4).map(Mix::majority).chain([Mix::EVEN])
}

/// Returns the pulls of ours divided by those of OAP as printed. Both use the same estimator, the
/// paper's if sources report each change. For other sources the paper's rates would be too low: OAP
/// as printed would reach a freshness of 0.949 or less, with up to 5 % fewer pulls than ours.
fn check(mix: Mix, process: NamedProcess, learning: Learning, days: f64) -> f64 {
    let ours = played(mix, process, Model::Poisson, learning, days);
    let printed = played(mix, process, Model::Printed, learning, days);
    let fresh = ours.totals.freshness();
    let share = ours.totals.pulls as f64 / printed.totals.pulls as f64;
    let what = format!("{mix} {} {learning:?}", process.0);
    println!("{what}: {fresh:.4} with {share:.4} of the pulls");
    assert!((fresh - THETA).abs() <= 0.01, "{what}: {fresh}");
    assert!(share <= 1.0, "{what}: {share} of the pulls");
    let measured = ours.measured.unwrap();
    assert!((measured - fresh).abs() < 0.01, "{what}: measured {measured}, was {fresh}");
    share
}

/// Checks that θ is reached within a hundredth, with no more pulls than OAP as printed, and with
/// fewer if sources change so much between pulls that the straight line is far off (T2).
fn check_all(learning: Learning) {
    for (mix, process) in mixes().flat_map(|mix| PROCESSES.map(|process| (mix, process))) {
        let share = check(mix, process, learning, 30.0);
        // Sources that follow the day or grow slower are kept fresher than the target, which costs
        // pulls.
        let most = if ["daily", "slower"].contains(&process.0) { 0.96 } else { 0.95 };
        assert!(mix != Mix::majority(1) || share <= most, "{mix} {}: {share}", process.0);
    }
}

/// With the broker's own settings.
#[test]
fn theta_is_reached_over_sources_of_every_kind_with_fewer_pulls() {
    check_all(OURS);
}

#[test]
fn theta_is_reached_over_sources_that_tell_each_element_once() {
    check_all(Learning(Method::Datestamps, Listing::Elements));
}

/// In the long run ours needs the share of OAP's pulls (as printed) that the equations give: in two
/// of the five mixes less than 95 %.
#[test]
fn pulls_are_as_few_as_the_equations_allow() {
    let mut below = 0;
    for mix in mixes() {
        let (share, allowed) = (check(mix, PROCESSES[0], OURS, 150.0), allowed(mix));
        // Rates scatter by the gain, and intervals with them.
        assert!((share - allowed).abs() <= 0.003, "{mix}: {share}, by the equations {allowed}");
        assert!(0.95 < allowed || share <= 0.95, "{mix}: {share}, by the equations {allowed}");
        below += u32::from(allowed <= 0.95);
    }
    assert_eq!(below, 2);
}
