//! Tests of the contest at equal freshness: ours, OAP as printed, UAP and a fixed interval.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and shows its figures"
)]

use freshness::interval::{Bounds, Model, Policy};
use freshness::rate::Method;
use freshness::schedule::{Rules, Settings};
use proptest::prelude::*;
use study::simulate::contest::{Contest, Contestant, PLAYS_MAX, Scores, TOLERANCE};
use study::simulate::world::{Process, Repository};
use study::simulate::{KINDS, Listing, Mix, Run};

const DAY_SECS: f64 = 86_400.0;
const COUNT: usize = 20;
/// Factor by which the paper's repositories are made smaller and change more rarely: the same share
/// is stale, and the tests are faster.
const SMALLER: u64 = 10;
const BOUNDS: Bounds = Bounds { interval_min: 60.0, interval_max: 365.0 * DAY_SECS };

/// A world of the paper's types T1 to T4.
fn world(mix: Mix, process: fn(f64) -> Process) -> Vec<(Repository, Rules)> {
    let of = |((rate, elements), count): (&(f64, u64), usize)| {
        let process = process(rate / SMALLER as f64 / DAY_SECS);
        let repository = Repository::new(elements / SMALLER, process);
        std::iter::repeat_n((repository, Rules::new(BOUNDS)), count)
    };
    KINDS.iter().zip(mix.counts(COUNT)).flat_map(of).collect()
}

/// Returns the settings of a run, long enough that parts of an interval at its end hardly matter.
fn run() -> Run {
    let settings = Settings {
        policy: Policy::Optimal { theta: 0.9 },
        model: Model::Poisson,
        method: Method::Datestamps,
        gain: 0.25,
        pulls_per_minute_max: 6_000,
    };
    Run {
        listing: Listing::Elements,
        settings,
        seed: 5,
        start: 0.0,
        warm_secs: 10.0 * DAY_SECS,
        secs: 80.0 * DAY_SECS,
        pulls_max: 200_000,
    }
}

/// Checks that all reach the target, and that none needs fewer pulls than ours by more than 2 %.
fn check_cheapest(what: &str, scores: &Scores) {
    for score in &scores.scores {
        let fresh = score.played.totals.freshness();
        let ratio = scores.ratio(score.contestant).unwrap();
        println!(
            "{what}: {} at {fresh:.4} with {ratio:.3} of our pulls, in {} plays",
            score.contestant, score.plays
        );
        assert!((fresh - scores.target).abs() <= TOLERANCE, "{what}: {score:?}");
        assert!(1.0 <= ratio * 1.02, "{what}: {score:?}");
    }
}

fn check_world(what: &str, process: fn(f64) -> Process) {
    for mix in [Mix::majority(1), Mix::EVEN] {
        let repositories = world(mix, process);
        let contest = Contest { repositories: &repositories, run: run() };
        check_cheapest(&format!("{what}, {mix}, as daily"), &contest.against_daily());
        check_cheapest(&format!("{what}, {mix}, 0.9"), &contest.at_freshness(0.9));
    }
}

#[test]
fn ours_is_cheapest_over_poisson_sources() {
    check_world("poisson", |rate| Process::Poisson { rate });
}

#[test]
fn ours_is_cheapest_over_bursty_sources() {
    check_world("bursty", |rate| Process::Bursty { rate, burst: 5.0 });
}

#[test]
fn ours_is_cheapest_over_sources_that_follow_the_day() {
    const BEGIN_SECS: f64 = 28_800.0;
    check_world("daily", |rate| Process::Daily {
        rate,
        share: 0.9,
        hours: 10.0,
        begin_secs: BEGIN_SECS,
    });
}

/// Half of the sources change twice a day and element, the others once in twenty days. One interval
/// for all needs more pulls, by the factor of the equations.
#[test]
fn a_uniform_interval_costs_what_the_equations_say() {
    let kinds = [(200.0, 100), (5.0, 100)];
    let of = |(rate, elements)| {
        let repository = Repository::new(elements, Process::Poisson { rate: rate / DAY_SECS });
        std::iter::repeat_n((repository, Rules::new(BOUNDS)), COUNT / 2)
    };
    let repositories: Vec<_> = kinds.into_iter().flat_map(of).collect();
    let contest = Contest { repositories: &repositories, run: run() };
    let scores = contest.at_freshness(0.6);
    check_cheapest("far from a line", &scores);
    let expected = uniform_ratio(&kinds, 0.6);
    for contestant in [Contestant::Uniform, Contestant::Fixed] {
        let ratio = scores.ratio(contestant).unwrap();
        assert!((ratio / expected - 1.0).abs() < 0.02, "{ratio}, not {expected}");
    }
}

/// Returns the pulls of one common interval divided by those of the best two intervals, at a
/// Poisson freshness of `target`. Rates are in changes a day; all sources have the same size.
fn uniform_ratio(kinds: &[(f64, u64); 2], target: f64) -> f64 {
    let fresh = |(rate, elements): (f64, u64), interval: f64| {
        let x = rate / elements as f64 * interval;
        (1.0 - (-x).exp()) / x
    };
    // Pulls a day at `target`, when the first interval is `share` of the second.
    let pulls = |share: f64| {
        let (mut low, mut high) = (1e-9, 1e9_f64);
        for _ in 0..200 {
            let middle = (low * high).sqrt();
            let mean = f64::midpoint(fresh(kinds[0], middle * share), fresh(kinds[1], middle));
            if mean < target { high = middle } else { low = middle }
        }
        1.0 / (low * share) + 1.0 / low
    };
    let shares = (0..2_000).map(|it| 10_f64.powf(f64::from(it) / 500.0 - 2.0));
    pulls(1.0) / shares.map(pulls).fold(f64::INFINITY, f64::min)
}

/// If a target is out of reach, the nearest play is returned and marked as not reached.
#[test]
fn a_target_out_of_reach_is_reported() {
    let slow = Bounds { interval_min: DAY_SECS / 2.0, interval_max: 2.0 * DAY_SECS };
    let repository = Repository::new(100, Process::Poisson { rate: 50.0 / DAY_SECS });
    let repositories = [(repository, Rules::new(slow))];
    let contest = Contest { repositories: &repositories, run: run() };
    // 1 − (1 − e⁻ˣ)/x at x = ¼, and at x = 1.
    for (target, nearest) in [(0.99, 0.884_8), (0.3, 0.632_1)] {
        let scores = contest.at_freshness(target);
        for score in &scores.scores {
            let fresh = score.played.totals.freshness();
            assert!(!score.reached && (fresh - nearest).abs() < 0.01, "{target}: {score:?}");
            assert_eq!(scores.ratio(score.contestant), None);
        }
        let rows = scores.table(run().secs).rows;
        assert!(
            rows.iter().all(|row| row[7] == "no: this is nearest".to_owned().into()),
            "{rows:?}"
        );
    }
    let few = Contest { run: Run { pulls_max: 50, ..run() }, ..contest };
    let score = few.reach(Contestant::Ours, 0.8);
    assert!(!score.reached, "{score:?}");
    assert!(few.reach(Contestant::Fixed, f64::NAN).played.totals.freshness().is_finite());
    let nobody = Contest { repositories: &[], run: run() };
    assert!(nobody.at_freshness(0.9).scores.iter().all(|it| !it.reached));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_target_gives_a_score(
        target in prop_oneof![-1.0..2.0, Just(f64::NAN), Just(f64::INFINITY), Just(1.0 - 1e-16)],
        rate in prop_oneof![0.0..1e-2, Just(f64::NAN), Just(1e9), Just(0.0), Just(-1.0)],
        elements in prop_oneof![0..200_u64, Just(u64::MAX)],
        (least, most) in (0.0..1e6, 0.0..1e7),
    ) {
        let bounds = Bounds { interval_min: least, interval_max: most };
        let process = Process::Poisson { rate };
        let repositories = [(Repository::new(elements, process), Rules::new(bounds))];
        let contest = Contest { repositories: &repositories, run: Run { pulls_max: 100, ..run() } };
        for contestant in Contestant::ALL {
            let score = contest.reach(contestant, target);
            prop_assert!(score.plays <= PLAYS_MAX && score.asked.is_finite(), "{score:?}");
            let wanted = if target.is_nan() { 0.0 } else { target.clamp(0.0, 1.0) };
            let off = (score.played.totals.freshness() - wanted).abs();
            prop_assert_eq!(score.reached, off <= TOLERANCE && !score.played.cut);
        }
    }
}
