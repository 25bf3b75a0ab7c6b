//! Tests of the simulated world against the theory of its processes.
//!
//! Expected values: [`Model::staleness`] (`model.poisson.*`, eq. 1), moments of the processes, and
//! integrals done by hand. Tolerances are five standard errors, computed in the test.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use freshness::interval::Model;
use study::simulate::trace::Trace;
use study::simulate::world::{AGES_MAX, Change, Process, PullResult, Repository, Totals, World};

const DAY: f64 = 86_400.0;

fn check(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{what}: {found} against {expected}");
}

/// Random changes as their sum, and one by one.
fn random(rate: f64) -> [Process; 2] {
    [Process::Poisson { rate }, Process::Bursty { rate, burst: 1.0 }]
}

fn world(repositories: &[Repository]) -> World {
    let mut world = World::new(7, 0.0);
    for (at, repository) in repositories.iter().enumerate() {
        assert_eq!(world.add(repository), Some(at));
    }
    world
}

/// Pulls the only repository every `interval`, and returns the result of each pull, and the totals.
fn pulled(repository: &Repository, interval: f64, pulls: u32) -> (Vec<PullResult>, Totals) {
    let mut world = world(std::slice::from_ref(repository));
    let times = (1..=pulls).map(|it| f64::from(it) * interval);
    let found = times.map(|at| world.pull(0, at).unwrap()).collect();
    (found, world.measure(0, f64::from(pulls) * interval).unwrap())
}

fn mean(numbers: impl Iterator<Item = f64> + Clone) -> f64 {
    numbers.clone().sum::<f64>() / numbers.count() as f64
}

/// Returns the mean, and five times its standard error.
fn sampled(numbers: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let mean = mean(numbers.clone());
    let squares: f64 = numbers.clone().map(|it| (it - mean) * (it - mean)).sum();
    let count = numbers.count() as f64;
    (mean, 5.0 * (squares / (count - 1.0) / count).sqrt())
}

/// All results of pulls of a Poisson repository have known means. With x = λI/N: distinct updates
/// N(1 − e⁻ˣ), changes Nx, sum of the ages NI(1 − (1+x)e⁻ˣ)/x, and the model's staleness.
#[test]
fn poisson_repositories_are_as_stale_as_the_model_says() {
    for process in random(0.5) {
        for (elements, x, pulls) in [
            (5_u32, 0.3, 20_000),
            (100, 1.0, 500),
            (1_000, 0.1, 300),
            (1_000, 3.0, 50),
            (300, 0.02, 3_000),
        ] {
            let n = f64::from(elements);
            let interval = n * x / 0.5;
            let repository = Repository::new(u64::from(elements), process.clone());
            let (found, totals) = pulled(&repository, interval, pulls);
            let none = (-x).exp();
            for (what, numbers, expected) in [
                ("updates", found.iter().map(|it| it.updates as f64).collect(), n * (1.0 - none)),
                ("changes", found.iter().map(|it| it.changes as f64).collect(), n * x),
                (
                    "ages",
                    found.iter().map(|it| it.ages_secs).collect::<Vec<_>>(),
                    n * interval * (1.0 - (1.0 + x) * none) / x,
                ),
            ] {
                let (mean, error) = sampled(numbers.into_iter());
                check(&format!("{what} {process:?} {n} {x}"), mean, expected, error);
            }
            // The share of stale elements at any moment scatters by less than a coin's.
            let error = 5.0 * 0.5 / (n * f64::from(pulls)).sqrt();
            let expected = Model::Poisson.staleness(x);
            check("staleness", 1.0 - totals.freshness(), expected, error);
            check("as eq. 1 counts", 1.0 - totals.freshness_printed(), x / 2.0, error * (1.0 + x));
            if matches!(process, Process::Poisson { .. }) {
                check("expectation", 1.0 - totals.freshness(), expected, 1e-9);
            }
        }
    }
}

/// The N elements are independent, so variances are N times that of one element. The second moment
/// of its age (0 if it did not change) is I²(2 − (2+2x+x²)e⁻ˣ)/x².
#[test]
fn results_of_pulls_have_the_right_variance() {
    let [summed, single] = random(0.5);
    for (process, elements) in [(single, 200_u32), (summed.clone(), 200), (summed, 20)] {
        let n = f64::from(elements);
        let (x, interval) = (0.5_f64, n);
        let repository = Repository::new(elements.into(), process.clone());
        let (found, _) = pulled(&repository, interval, 3_000);
        let none = (-x).exp();
        let age = interval * (1.0 - (1.0 + x) * none) / x;
        let squared = interval * interval * (2.0 - (2.0 + 2.0 * x + x * x) * none) / (x * x);
        let updates = found.iter().map(|it| it.updates as f64).collect::<Vec<_>>();
        let changes = found.iter().map(|it| it.changes as f64).collect();
        let ages = found.iter().map(|it| it.ages_secs).collect();
        for (what, numbers, expected) in [
            ("updates", updates, n * none * (1.0 - none)),
            ("changes", changes, n * x),
            ("ages", ages, n * (squared - age * age)),
        ] {
            let mean = mean(numbers.iter().copied());
            let (variance, error) = sampled(numbers.iter().map(|it| (it - mean).powi(2)));
            check(&format!("{what} {process:?} {n}"), variance, expected, error);
        }
    }
}

/// With a whole number of changes in an interval, eq. 1 holds to rounding. After N/λ everything is
/// stale, but the paper's count goes on.
#[test]
fn an_even_repository_is_eq_1() {
    for (changes, elements) in [(1_u32, 10_u32), (7, 100), (100, 100), (250, 100)] {
        let rate = 0.125;
        let repository = Repository::new(elements.into(), Process::Even { rate });
        let (found, totals) = pulled(&repository, f64::from(changes) / rate, 40);
        let x = f64::from(changes) / f64::from(elements);
        check("eq. 1", totals.freshness_printed(), 1.0 - x / 2.0, 1e-9);
        check("freshness", 1.0 - totals.freshness(), Model::Linear.staleness(x), 1e-9);
        let updates = changes.min(elements);
        // Half an interval of changes is the mean age, if no element changed twice.
        let ages = f64::from(updates) * f64::from(updates) / (2.0 * rate);
        for it in &found {
            assert_eq!((it.updates, it.changes), (updates.into(), changes.into()));
            check("ages", it.ages_secs, ages, 1e-6);
        }
    }
    // Eq. 1 also holds for an interval of 6.4 changes.
    let repository = Repository::new(100, Process::Even { rate: 0.5 });
    let (_, totals) = pulled(&repository, 12.8, 50);
    check("eq. 1", totals.freshness(), 1.0 - 0.5 * 12.8 / 200.0, 1e-9);
}

/// A measurement between two pulls changes nothing but the rounding.
#[test]
fn measurements_do_not_disturb() {
    for process in [
        Process::Even { rate: 0.3 },
        Process::Poisson { rate: 0.3 },
        Process::Daily { rate: 0.01, share: 0.9, hours: 10.0, begin_secs: 0.0 },
        Process::Bursty { rate: 0.3, burst: 4.0 },
        Process::Replay(
            (0..900).map(|it| Change { at: f64::from(it), element: it % 77 }).collect(),
        ),
    ] {
        let all = [Repository::new(50, process)];
        let (mut plain, mut watched) = (world(&all), world(&all));
        for step in 1..=900_u32 {
            watched.measure(0, f64::from(step)).unwrap();
            if step % 90 == 0 {
                let pulls = [&mut plain, &mut watched].map(|it| it.pull(0, step.into()).unwrap());
                let [a, b] = pulls;
                check("ages", a.ages_secs, b.ages_secs, 1e-6);
                assert_eq!(a, PullResult { ages_secs: a.ages_secs, ..b });
            }
        }
        let [plain, watched] = [plain, watched].map(|mut it| it.measure(0, 900.0).unwrap());
        check("stale", plain.stale_secs, watched.stale_secs, 1e-6);
        check("counted", plain.counted_secs, watched.counted_secs, 1e-6);
    }
}

#[test]
fn rates_are_those_of_the_process() {
    let rate = 0.01;
    let daily = Process::Daily { rate, share: 0.9, hours: 10.0, begin_secs: 3_600.0 };
    let bursty = Process::Bursty { rate, burst: 20.0 };
    let [summed, single] = random(rate);
    // The variance of a day's changes divided by their mean: a burst's mean square divided by its
    // mean.
    for (process, dispersion) in [(summed, 1.0), (single, 1.0), (daily, 1.0), (bursty, 39.0)] {
        let repository = Repository::new(100_000, process.clone());
        let (found, _) = pulled(&repository, DAY, 400);
        let changes = found.iter().map(|it| it.changes as f64);
        let error = 5.0 * (dispersion * rate * DAY / 400.0).sqrt();
        check(&format!("{process:?}"), mean(changes.clone()), rate * DAY, error);
        let variance = mean(changes.map(|it| (it - rate * DAY).powi(2)));
        check(&format!("{process:?}"), variance / (rate * DAY), dispersion, 0.4 * dispersion);
    }
}

#[test]
fn nine_changes_of_ten_fall_into_the_busy_hours() {
    let daily = Process::Daily { rate: 0.02, share: 0.9, hours: 10.0, begin_secs: 8.0 * 3_600.0 };
    let mut world = world(&[Repository::new(1 << 30, daily)]);
    let (mut busy, mut all) = (0, 0);
    for day in 0..60_u32 {
        let midnight = f64::from(day) * DAY;
        let still = world.pull(0, midnight + 8.0 * 3_600.0).unwrap().changes;
        let here = world.pull(0, midnight + 18.0 * 3_600.0).unwrap().changes;
        busy += here;
        all += here + still;
    }
    all += world.pull(0, 60.0 * DAY).unwrap().changes;
    let error = 5.0 * (0.09 / all as f64).sqrt();
    check("share", busy as f64 / all as f64, 0.9, error);
}

/// A pull long after a jump; the expected values are computed by hand from e^−x of each part.
#[test]
fn staleness_spans_pieces_of_constant_rate() {
    let (n, rate) = (1_000.0, 0.1);
    let jump = Process::Drifting { rate, factor: 4.0, from: 5_000.0, over_secs: 0.0 };
    let repository = Repository::new(1_000, jump);
    let (slow, fast) = (rate / n, 4.0 * rate / n);
    let x = [5_000.0 * slow, 5_000.0 * fast];
    let none = x.map(|it| (-it).exp());
    let fresh = (1.0 - none[0]) / slow + none[0] * (1.0 - none[1]) / fast;
    // The last change is in the fast part, or else in the slow part, which ended 5,000 seconds ago.
    let in_fast = (1.0 - (1.0 + x[1]) * none[1]) / fast;
    let in_slow = 5_000.0 * (1.0 - none[0]) + (1.0 - (1.0 + x[0]) * none[0]) / slow;
    let age = (in_fast + none[1] * in_slow) / (1.0 - none[0] * none[1]);
    let mut ages = Vec::new();
    for seed in 0..200 {
        let mut world = World::new(seed, 0.0);
        world.add(&repository).unwrap();
        let totals = world.measure(0, 10_000.0).unwrap();
        check("expectation", totals.freshness(), fresh / 10_000.0, 1e-9);
        let found = world.pull(0, 10_000.0).unwrap();
        ages.push(found.ages_secs / found.updates as f64);
    }
    let (found, error) = sampled(ages.iter().copied());
    check("ages", found, age, error);
}

#[test]
fn a_drift_reaches_its_factor() {
    let drift = Process::Drifting { rate: 0.05, factor: 9.0, from: 1e4, over_secs: 1e4 };
    let mut world = world(&[Repository::new(1 << 40, drift)]);
    let mut changes = || [1e4, 2e4, 3e4].map(|at| world.pull(0, at).unwrap().changes as f64);
    let found = changes();
    // ∫ 9^u du = 8 / ln 9; the steps are within a thousandth of it.
    for (found, expected) in found.into_iter().zip([500.0, 500.0 * 8.0 / 9.0_f64.ln(), 4_500.0]) {
        check("changes", found, expected, 5.0 * expected.sqrt() + expected / 1_000.0);
    }
    assert_eq!(changes().map(|it| it.to_bits()), [0; 3], "before the last pull");
}

#[test]
fn equal_seeds_make_equal_worlds() {
    let poisson = Repository::new(100, Process::Poisson { rate: 0.1 });
    let bursty = Repository::new(100, Process::Bursty { rate: 0.1, burst: 5.0 });
    let all = [poisson.clone(), bursty, poisson];
    let run = |all: &[Repository], seed| {
        let mut world = World::new(seed, 0.0);
        for it in all {
            world.add(it).unwrap();
        }
        let pulls =
            (1..50_u32).flat_map(|at| [(0, f64::from(at) * 100.0), (1, f64::from(at) * 77.0)]);
        let found: Vec<PullResult> =
            pulls.map(|(which, at)| world.pull(which, at).unwrap()).collect();
        (found, world.measure(0, 1e4).unwrap(), world.measure(1, 1e4).unwrap())
    };
    assert_eq!(run(&all, 1), run(&all, 1));
    assert_ne!(run(&all, 1).0, run(&all, 2).0);
    assert_eq!(run(&all, 1), run(&all[..2], 1), "another repository does not change the others");
    let mut world = world(&all);
    assert_ne!(world.pull(0, 1e4), world.pull(2, 1e4), "each has its own random numbers");
}

#[test]
fn the_times_of_changes_do_not_depend_on_pulls() {
    let repository = Repository::new(1 << 40, Process::Bursty { rate: 0.5, burst: 3.0 });
    let changes = |interval, pulls| {
        pulled(&repository, interval, pulls).0.iter().map(|it| it.changes).sum::<u64>()
    };
    assert_eq!(changes(10.0, 1_000), changes(2_500.0, 4));
}

#[test]
fn without_pulls_everything_gets_stale() {
    for process in random(0.1) {
        let mut world = world(&[Repository::new(100, process)]);
        let early = world.measure(0, 1e5).unwrap();
        let late = world.measure(0, 2e5).unwrap().since(&early);
        check("freshness", late.freshness(), 0.0, 1e-9);
        check("time", late.element_secs, 1e7, 1e-3);
        assert_eq!((late.pulls, late.updates), (0, 0));
        // Eq. 1 knows no bound: 10,000 to 20,000 changes of 100 elements.
        check("as eq. 1 counts", late.freshness_printed(), -149.0, 15.0);
    }
}

/// Pulls at the same moment, before it and at NaN find nothing; time goes on from the last moment.
#[test]
fn time_does_not_go_back() {
    for process in [
        Process::Poisson { rate: 0.1 },
        Process::Even { rate: 0.1 },
        Process::Bursty { rate: 0.1, burst: 3.0 },
        Process::Replay([Change { at: 500.0, element: 3 }].into()),
    ] {
        let mut world = world(&[Repository::new(1_000, process)]);
        assert!(0 < world.pull(0, 1_000.0).unwrap().updates);
        let before = world.measure(0, 1_000.0).unwrap();
        for at in [1_000.0, 10.0, f64::NAN, f64::NEG_INFINITY] {
            let found = world.pull(0, at).unwrap();
            assert_eq!((found.updates, found.changes, found.elements), (0, 0, 1_000), "{at}");
            check("ages", found.ages_secs, 0.0, 1e-12);
        }
        let after = world.measure(0, 0.0).unwrap();
        assert_eq!(after.pulls, before.pulls + 4);
        check("stale", after.stale_secs, before.stale_secs, 1e-9);
        assert_eq!(world.pull(1, 2_000.0), None);
    }
}

/// Two elements and three changes, computed by hand.
#[test]
fn a_replay_follows_its_list() {
    let trace = Trace::parse("10,a,x\n40,a,y\n20,a,x\n70,b,z\n#elements,b,4").unwrap();
    let mut world = World::new(0, 15.0);
    for (_, repository) in trace.repositories() {
        world.add(&repository).unwrap();
    }
    // From 15 on: x exists, and changes at 20; y comes at 40.
    let found = world.pull(0, 50.0).unwrap();
    let expected = PullResult { updates: 2, changes: 2, elements: 2, ages_secs: 40.0 };
    assert_eq!(found, expected);
    assert_eq!(world.pull(1, 80.0).unwrap().updates, 1);
    let [a, b] = [0, 1].map(|it| world.measure(it, 100.0).unwrap());
    let totals = a.plus(&b);
    check("elements", totals.element_secs, 25.0 + 2.0 * 60.0 + 4.0 * 85.0, 1e-9);
    check("stale", totals.stale_secs, 30.0 + 10.0 + 10.0, 1e-9);
}

/// With more stale elements than ages are kept, the estimate of the sum is close.
#[test]
fn ages_beyond_those_kept_are_estimated() {
    let elements = 4 * AGES_MAX as u64;
    let all = [Repository::new(elements, Process::Bursty { rate: 0.9, burst: 1.0 })];
    let x = 1.5;
    let interval = elements as f64 * x / 0.9;
    let found = world(&all).pull(0, interval).unwrap();
    let expected = interval * (1.0 - (1.0 + x) * (-x).exp()) / x * elements as f64;
    check("ages", found.ages_secs / expected, 1.0, 5.0 / (AGES_MAX as f64).sqrt());
}

/// A billion elements, 10⁹ changes a day: a pull takes no longer than with a small repository.
#[test]
fn large_repositories_are_fast() {
    let rate = 1e9 / DAY;
    let mut world = world(&[Repository::new(1_000_000_000, Process::Poisson { rate })]);
    for day in 1..=10_u32 {
        let found = world.pull(0, f64::from(day) * DAY).unwrap();
        let share = 1.0 - (-1.0_f64).exp();
        check("updates", found.updates as f64 / 1e9, share, 5.0 * (share / 1e9).sqrt());
    }
    let totals = world.measure(0, 10.0 * DAY).unwrap();
    check("staleness", 1.0 - totals.freshness(), (-1.0_f64).exp(), 1e-4);
}
