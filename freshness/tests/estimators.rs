//! Tests of the rate estimators against their theory.
//!
//! Expected values: `oap_expected.json`, ids `est.*` as given at each test. Simulated sources are N
//! records, each of which changes by a Poisson process of its own; a pull sees each once, with the
//! time of its last change. Times are in the pull interval's unit.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use freshness::rate::{Estimator, Gain, Method, Pull, Rules, State};
use proptest::prelude::*;

const METHODS: [Method; 3] = [Method::Ewma, Method::BiasReduced, Method::Datestamps];
/// Number of records of a source, as in the expected file.
const ELEMENTS: u64 = 1_000;
const RUNS: u32 = 400;

/// A small generator of numbers (SplitMix64), so that every run is the same.
struct Random(u64);

impl Random {
    /// Returns a number above 0 and at most 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        ((mixed >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Returns the time until the next change, at `rate`.
    fn wait(&mut self, rate: f64) -> f64 {
        -self.uniform().ln() / rate
    }

    /// Returns a pull after a time of 1, when each of `elements` changes at `rate`.
    fn pull(&mut self, elements: u64, rate: f64) -> Pull {
        let (mut updates, mut ages) = (0, 0.0);
        for _ in 0..elements {
            let (mut last, mut next) = (None, self.wait(rate));
            while next <= 1.0 {
                last = Some(next);
                next += self.wait(rate);
            }
            if let Some(last) = last {
                updates += 1;
                ages += 1.0 - last;
            }
        }
        let elements = Some(elements);
        Pull { updates, elements, elapsed_secs: 1.0, ages_secs: Some(ages) }
    }
}

fn check(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{what}: {found} against {expected}");
}

fn started(method: Method, gain: Gain) -> Estimator {
    let rules = Rules { method, gain, ..Rules::default() };
    let mut estimator = Estimator::with_rules(rules, State::default());
    estimator.handle(Pull { updates: ELEMENTS, ..Pull::default() });
    estimator
}

/// Returns the rate after one pull.
fn one(method: Method, pull: Pull) -> f64 {
    let mut estimator = started(method, Gain::default());
    estimator.handle(pull);
    estimator.estimate().unwrap().rate
}

/// Returns mean and root mean square error of one pull's rate, relative to the true rate, when the
/// average record changes `x` times.
fn simulate(method: Method, x: f64) -> (f64, f64) {
    let mut random = Random(1);
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..RUNS {
        let ratio = one(method, random.pull(ELEMENTS, x)) / (x * ELEMENTS as f64);
        sum += ratio;
        squares += (ratio - 1.0) * (ratio - 1.0);
    }
    (sum / f64::from(RUNS), (squares / f64::from(RUNS)).sqrt())
}

/// Returns the estimates of `step` during and after one odd sample.
fn response(mut step: impl FnMut(u64) -> f64) -> Vec<f64> {
    for _ in 0..3 {
        step(0);
    }
    let mut found = vec![step(1)];
    found.extend((0..60).map(|_| step(0)));
    found
}

/// Ids `est.paper_variance` and `est.ewma_variance`: the estimate is a sum of independent samples,
/// each with the weight that the response to a single one shows.
#[test]
fn the_text_s_rule_varies_less_than_the_pseudo_code_s() {
    let variance = |weights: Vec<f64>| weights.iter().map(|it| it * it).sum::<f64>();
    let (gain, mut before) = (0.25, 0.0);
    let printed = response(|updates| {
        let sample = updates as f64;
        let estimate = (1.0 - gain) * before + gain * sample;
        before = sample;
        estimate
    });
    let mut estimator = started(Method::Ewma, Gain::Fixed(gain));
    let ours = response(|updates| {
        estimator.handle(Pull { updates, elapsed_secs: 1.0, ..Pull::default() });
        estimator.estimate().unwrap().rate
    });
    check("pseudo-code", variance(printed), 0.625, 0.0005);
    check("text", variance(ours), 0.142_857, 0.0005);
}

/// Id `est.steps_to_zero_paper`.
#[test]
fn empty_pulls_leave_a_rate() {
    let (gain, mut before, mut steps) = (0.25, 100.0, 0);
    loop {
        let (sample, estimate) = (0.0, (1.0 - gain) * before);
        before = sample;
        steps += 1;
        if estimate == 0.0 {
            break;
        }
    }
    assert_eq!(steps, 2, "the pseudo-code's");
    for method in METHODS {
        for gain in [Gain::Fixed(gain), Gain::Settling(gain)] {
            let mut estimator = started(method, gain);
            estimator.handle(Pull { updates: 100, elapsed_secs: 1.0, ..Pull::default() });
            for empty in 0..200 {
                estimator.handle(Pull { elapsed_secs: 1.0, ..Pull::default() });
                let rate = estimator.estimate().unwrap().rate;
                assert!(rate > 0.0, "{method:?}, {gain:?}: {rate} after {empty}");
            }
            assert!(estimator.estimate().unwrap().rate < 2.0, "{method:?}, {gain:?}");
        }
    }
}

/// Ids `est.biasreduced.*`.
#[test]
fn a_source_that_changed_altogether_has_a_finite_rate() {
    let pull = Pull { elements: Some(1_000), elapsed_secs: 1.0, ..Pull::default() };
    for (updates, expected) in [(500, 692.647_555), (1_000, 7_601.402_335)] {
        let found = one(Method::BiasReduced, Pull { updates, ..pull });
        check("bias-reduced", found, expected, 0.01);
    }
    let halves = Pull { updates: 500, elapsed_secs: 2.0, ..pull };
    check("over 2", one(Method::BiasReduced, halves), 692.647_555 / 2.0, 0.01);
    // N U / (Σ ages + (N − U) I).
    let dated = Pull { updates: 500, ages_secs: Some(125.0), ..pull };
    check("datestamps", one(Method::Datestamps, dated), 800.0, 1e-9);
}

/// Changes and times decay by 1 − g each, so a long pull counts for more.
#[test]
fn datestamps_are_put_together_in_decayed_sums() {
    let mut estimator = started(Method::Datestamps, Gain::Fixed(0.25));
    let (mut changes, mut exposure) = (0.0, 0.0);
    for (updates, secs, ages) in [(10, 1.0, 4.0), (0, 2.0, 0.0), (400, 30.0, 5_000.0)] {
        let (elements, ages_secs) = (Some(ELEMENTS), Some(ages));
        estimator.handle(Pull { updates, elements, elapsed_secs: secs, ages_secs });
        changes = 0.75 * changes + updates as f64;
        exposure = 0.75 * exposure + ages + (ELEMENTS - updates) as f64 * secs;
        let expected = ELEMENTS as f64 * changes / exposure;
        check("rate", estimator.estimate().unwrap().rate, expected, 1e-9 * expected);
    }
}

/// Ids `est.sim.ratio.naive.*`; the other methods have no such bias.
#[test]
fn records_that_change_twice_are_missed_by_the_paper_s_sample_alone() {
    for (x, expected) in [(0.5, 0.786_939), (1.0, 0.632_121), (2.0, 0.432_332)] {
        check("naive", simulate(Method::Ewma, x).0, expected, 0.01);
        check("bias-reduced", simulate(Method::BiasReduced, x).0, 1.0, 0.01);
        check("datestamps", simulate(Method::Datestamps, x).0, 1.0, 0.01);
    }
}

/// Ids `est.sim.rmse.*`.
#[test]
fn the_errors_are_those_of_the_theory() {
    for (method, x, expected) in [
        (Method::BiasReduced, 0.1, 0.106_011),
        (Method::BiasReduced, 1.0, 0.040_655),
        (Method::Datestamps, 0.1, 0.105_741),
        (Method::Datestamps, 0.5, 0.048_699),
    ] {
        check(&format!("{method:?} at {x}"), simulate(method, x).1, expected, 0.02);
    }
    // If most records change, the times of changes tell more than their number.
    assert!(simulate(Method::Datestamps, 3.0).1 < 0.8 * simulate(Method::BiasReduced, 3.0).1);
}

/// Estimates the rate of a source of a hundred records, pull after pull; `rate_of` is its true rate
/// at a pull. Returns mean and root mean square error, relative to it, of the last half of the
/// estimates.
fn follow(method: Method, gain: Gain, pulls: u32, rate_of: impl Fn(u32) -> f64) -> (f64, f64) {
    let (mut random, mut estimator) = (Random(7), started(method, gain));
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    for pull in 0..pulls {
        let rate = rate_of(pull);
        estimator.handle(random.pull(100, rate / 100.0));
        if pulls / 2 <= pull {
            let ratio = estimator.estimate().unwrap().rate / rate;
            sum += ratio;
            squares += (ratio - 1.0) * (ratio - 1.0);
            count += 1.0;
        }
    }
    (sum / count, (squares / count).sqrt())
}

/// With 0.3 changes a pull, four pulls are too short a memory.
#[test]
fn pulls_of_no_change_or_one_do_not_shake_a_settled_rate() {
    for method in METHODS {
        let (mean, error) = follow(method, Gain::Settling(0.25), 4_000, |_| 0.3);
        println!("{method:?}: settled {mean:.3} ± {error:.3}");
        check("mean", mean, 1.0, 0.15);
        assert!(error < 0.3, "{method:?}: {error}");
        let (_, fixed) = follow(method, Gain::Fixed(0.25), 4_000, |_| 0.3);
        assert!(2.0 * error < fixed, "{method:?}: {error} against {fixed}");
    }
}

#[test]
fn a_drifting_rate_is_followed() {
    for method in METHODS {
        for gain in [Gain::Fixed(0.25), Gain::Settling(0.25)] {
            // Tenfold in 100 pulls, and down again.
            let (mean, error) = follow(method, gain, 400, |pull| {
                20.0 * 10_f64.powf((f64::from(pull % 200) / 100.0 - 1.0).abs()) / 10.0
            });
            println!("{method:?} {gain:?}: drift {mean:.3} ± {error:.3}");
            check("mean", mean, 1.0, 0.1);
            assert!(error < 0.35, "{method:?} {gain:?}: {error}");
        }
    }
}

/// Returns the share of sources whose true rate lies within two deviations of the estimate, when
/// `batch` changes come at once.
fn covered(method: Method, gain: Gain, batch: u64) -> f64 {
    let (mut random, mut covered) = (Random(3), 0_u32);
    for _ in 0..RUNS {
        let mut estimator = started(method, gain);
        for _ in 0..40 {
            let found = random.pull(4, 0.5);
            estimator.handle(Pull { updates: found.updates * batch, elements: None, ..found });
        }
        let truth = 4.0 * (1.0 - (-0.5_f64).exp()) * batch as f64;
        let found = estimator.estimate().unwrap();
        let deviation = (found.rate * found.secs + 0.5).sqrt() / found.secs;
        covered += u32::from((found.rate - truth).abs() <= 2.0 * deviation);
    }
    f64::from(covered) / f64::from(RUNS)
}

/// Within two deviations lie 95 % of a normal distribution.
#[test]
fn the_deviation_holds_for_sources_that_change_in_bursts() {
    for method in METHODS {
        for gain in [Gain::Fixed(0.25), Gain::Settling(0.25)] {
            for batch in [1, 100] {
                let found = covered(method, gain, batch);
                println!("{method:?} {gain:?}: {found} in batches of {batch}");
                assert!(found > 0.85, "{method:?} {gain:?} {batch}: {found}");
            }
        }
    }
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), 0.0..1e6_f64, Just(0.0), Just(f64::NAN), Just(f64::INFINITY)]
}

fn any_count() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..20_u64, Just(u64::MAX)]
}

fn any_pull() -> impl Strategy<Value = Pull> {
    let numbers = (any_number(), prop::option::of(any_number()));
    (any_count(), prop::option::of(any_count()), numbers).prop_map(
        |(updates, elements, (elapsed_secs, ages_secs))| Pull {
            updates,
            elements,
            elapsed_secs,
            ages_secs,
        },
    )
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let gain = any_number()
        .prop_flat_map(|it| prop_oneof![Just(Gain::Fixed(it)), Just(Gain::Settling(it))]);
    (prop::sample::select(&METHODS[..]), gain, any_number())
        .prop_map(|(method, gain, sample_secs_min)| Rules { method, gain, sample_secs_min })
}

fn any_state() -> impl Strategy<Value = State> {
    let stored = (any_number(), any_number(), any_count(), any_number(), any_number());
    (prop::option::of(any_number()), any::<u32>(), any::<f32>(), stored).prop_map(
        |(rate, pulls, dispersion, (sure_secs, memory_secs, updates, secs, exposure_secs))| State {
            rate,
            sure_secs,
            memory_secs,
            pending_updates: updates,
            pending_secs: secs,
            pending_exposure_secs: exposure_secs,
            pulls,
            dispersion,
        },
    )
}

proptest! {
    /// Any stored state and any pulls give finite, not negative numbers without a panic.
    #[test]
    fn every_answer_is_a_number(
        rules in any_rules(), state in prop_oneof![Just(State::default()), any_state()],
        pulls in prop::collection::vec(any_pull(), 0..20),
    ) {
        let mut estimator = Estimator::with_rules(rules, state);
        for pull in pulls {
            estimator.handle(pull);
            if let Some(found) = estimator.estimate() {
                for number in [found.rate, found.secs, found.careful()] {
                    prop_assert!(number.is_finite() && number >= 0.0, "{found:?} after {pull:?}");
                }
            }
        }
    }

    /// A stored and restored estimator goes on without a difference.
    #[test]
    fn a_stored_state_is_the_state(
        rules in any_rules(), pulls in prop::collection::vec(any_pull(), 0..20),
    ) {
        let mut estimator = Estimator::with_rules(rules, State::default());
        for pull in pulls {
            estimator.handle(pull);
            let stored = Estimator::with_rules(rules, estimator.state());
            prop_assert_eq!(stored.state(), estimator.state());
        }
    }

    /// More changed records give a higher rate, and the rate is at least the changes seen.
    #[test]
    fn more_changes_are_a_higher_rate(
        elements in 0..2_000_u64, updates in 0..3_000_u64, more in 0..1_000_u64, age in 0.0..1.0_f64,
    ) {
        for method in METHODS {
            let rate = |updates: u64| {
                let ages_secs = Some(age * updates as f64);
                one(method, Pull { updates, elements: Some(elements), elapsed_secs: 1.0, ages_secs })
            };
            prop_assert!(rate(updates) >= updates as f64 * (1.0 - 1e-12));
            prop_assert!(rate(updates + more) >= rate(updates) * (1.0 - 1e-12));
        }
    }
}
