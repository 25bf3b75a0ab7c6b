//! The scheduler that brokers run, over simulated sources of all kinds.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and shows its figures"
)]

use freshness::interval::{Bounds, Model, Policy, Source, plan};
use freshness::rate::Method;
use freshness::schedule::{Rules, Settings};
use study::simulate::world::{Burst, Detail, Process, Repository};
use study::simulate::{KINDS, Mix, PULLS_MAX, Played, Run, Tells, play};

const DAY_SECS: f64 = 86_400.0;
const THETA: f64 = 0.95;
const BOUNDS: Bounds = Bounds { interval_min: 60.0, interval_max: 365.0 * DAY_SECS };
/// Repositories of a mix.
const COUNT: usize = 30;

/// Sources that change in one way, by their mean rate.
type Way = (&'static str, fn(f64) -> Process);

const WAYS: [Way; 5] = [
    ("stationary", |rate| Process::Poisson { rate }),
    ("bursty", |rate| Process::Bursty { rate, burst: Burst::Geometric(20.0) }),
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

fn world(mix: Mix, way: Way) -> Vec<(Repository, Rules)> {
    let of = |((rate, elements), count): (&(f64, u64), usize)| {
        let repository = Repository::new(*elements, way.1(rate / DAY_SECS));
        std::iter::repeat_n((repository, Rules::new(BOUNDS)), count)
    };
    KINDS.iter().zip(mix.counts(COUNT)).flat_map(of).collect()
}

/// Who learns the rates how, of sources that tell what.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ours(Method, Tells);

/// As a broker learns of its gatherers.
const OURS: Ours = Ours(Method::Ewma, Tells::Changes);

fn played(mix: Mix, way: Way, model: Model, Ours(method, tells): Ours, days: f64) -> Played {
    let settings = Settings {
        policy: Policy::Optimal { theta: THETA },
        model,
        method,
        gain: 0.25,
        pulls_per_minute_max: 6_000,
    };
    play(
        &world(mix, way),
        &Run {
            settings,
            tells,
            seed: 11,
            detail: Detail::Expected,
            start: 0.0,
            warm_secs: 10.0 * DAY_SECS,
            secs: days * DAY_SECS,
            pulls_max: PULLS_MAX,
        },
    )
}

/// How many of the pulls of eq. 3 the optimum of the Poisson model needs, by the equations.
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

/// The share of the pulls of OAP as printed that ours needs, by the same estimator. Of sources that tell each
/// change it is the printed one; of the others that would be low, and so would be the freshness that OAP
/// as printed comes to (0.949 or less), at up to 5 % fewer pulls than ours.
fn check(mix: Mix, way: Way, learning: Ours, days: f64) -> f64 {
    let ours = played(mix, way, Model::Poisson, learning, days);
    let printed = played(mix, way, Model::Printed, learning, days);
    let fresh = ours.totals.freshness();
    let share = ours.totals.pulls as f64 / printed.totals.pulls as f64;
    let what = format!("{mix} {} {learning:?}", way.0);
    println!("{what}: {fresh:.4} with {share:.4} of the pulls");
    assert!((fresh - THETA).abs() <= 0.01, "{what}: {fresh}");
    assert!(share <= 1.0, "{what}: {share} of the pulls");
    let measured = ours.measured.unwrap();
    assert!((measured - fresh).abs() < 0.01, "{what}: measured {measured}, was {fresh}");
    share
}

/// θ within a hundredth, at no more pulls than OAP as printed, and at fewer where sources change so
/// much between pulls that the straight line is far from what happens (T2).
fn check_all(learning: Ours) {
    for (mix, way) in mixes().flat_map(|mix| WAYS.map(|way| (mix, way))) {
        let share = check(mix, way, learning, 30.0);
        // Those that follow the day come out fresher than asked for, and so do those that grow slower;
        // they pay for it.
        let most = if ["daily", "slower"].contains(&way.0) { 0.96 } else { 0.95 };
        assert!(mix != Mix::majority(1) || share <= most, "{mix} {}: {share}", way.0);
    }
}

/// The broker's own settings.
#[test]
fn theta_is_reached_over_sources_of_every_kind_with_fewer_pulls() {
    check_all(OURS);
}

#[test]
fn theta_is_reached_over_sources_that_tell_each_element_once() {
    check_all(Ours(Method::Datestamps, Tells::Elements));
}

/// In the long run ours needs as many of the pulls of OAP as printed as the equations allow, which in
/// two of the five mixes is less than 95 %.
#[test]
fn pulls_are_as_few_as_the_equations_allow() {
    let mut below = 0;
    for mix in mixes() {
        let (share, allowed) = (check(mix, WAYS[0], OURS, 150.0), allowed(mix));
        // Rates scatter by the gain, and intervals with them.
        assert!((share - allowed).abs() <= 0.003, "{mix}: {share}, by the equations {allowed}");
        assert!(0.95 < allowed || share <= 0.95, "{mix}: {share}, by the equations {allowed}");
        below += u32::from(allowed <= 0.95);
    }
    assert_eq!(below, 2);
}
