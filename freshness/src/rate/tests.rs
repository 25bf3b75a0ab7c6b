//! Tests of the rules that hold for every method; the methods themselves: `tests/estimators.rs`.

use super::*;

/// Hands in a pull of which only the updates and the time since the pull before are known.
fn hand_in(estimator: &mut Estimator, updates: u64, elapsed_secs: f64) {
    estimator.handle(Pull { updates, elapsed_secs, ..Pull::default() });
}

fn rate_of(estimator: &Estimator) -> Option<f64> {
    estimator.estimate().map(|it| it.rate)
}

/// Hands in pulls and compares the estimates, `-` for none.
fn check_rules(rules: Rules, pulls: &[(u64, f64)], expected: &str) {
    let mut estimator = Estimator::with_rules(rules, State::default());
    let seen: Vec<String> = pulls
        .iter()
        .map(|(updates, secs)| {
            hand_in(&mut estimator, *updates, *secs);
            rate_of(&estimator).map_or_else(|| "-".to_owned(), |it| it.to_string())
        })
        .collect();
    assert_eq!(seen.join(" "), expected);
}

fn check(gain: f64, pulls: &[(u64, f64)], expected: &str) {
    check_rules(Rules { gain: Gain::Fixed(gain), ..Rules::default() }, pulls, expected);
}

#[test]
fn the_first_full_harvest_is_no_sample() {
    check(0.25, &[(1_000_000, 1.0), (8, 4.0)], "- 2");
}

#[test]
fn the_estimate_moves_by_the_gain() {
    check(0.25, &[(9, 0.0), (4, 1.0), (8, 1.0), (0, 1.0)], "- 4 5 3.75");
}

#[test]
fn the_time_that_went_by_counts() {
    check(0.5, &[(0, 0.0), (10, 10.0), (30, 10.0)], "- 1 2");
}

#[test]
fn empty_pulls_never_reach_0() {
    let mut estimator = Estimator::default();
    hand_in(&mut estimator, 0, 0.0);
    hand_in(&mut estimator, 100, 1.0);
    for _ in 0..20 {
        hand_in(&mut estimator, 0, 1.0);
    }
    assert!(rate_of(&estimator) > Some(0.0));
}

#[test]
fn pulls_close_together_make_one_sample() {
    check(0.25, &[(0, 0.0), (1, 0.25), (1, 0.25), (1, 0.25)], "- - 4 4");
    check(0.25, &[(0, 0.0), (1, -5.0), (1, 1.0)], "- - 2");
    check(0.25, &[(0, 0.0), (1, f64::NAN), (1, 1.0)], "- - 2");
    let rules = Rules { sample_secs_min: 3.0, ..Rules::default() };
    check_rules(rules, &[(0, 0.0), (1, 2.0), (5, 1.0), (9, 1.0)], "- - 2 2");
}

#[test]
fn a_restart_keeps_the_estimate() {
    let mut estimator = Estimator::default();
    hand_in(&mut estimator, 7, 1.0);
    hand_in(&mut estimator, 7, 1.0);
    estimator.handle_restart();
    hand_in(&mut estimator, 1_000, 1.0);
    assert_eq!(rate_of(&estimator), Some(7.0));
    assert_eq!(Estimator::with_rules(Rules::default(), estimator.state()), estimator);
}

#[test]
fn no_change_is_a_rate_and_unknown_is_none() {
    check(0.25, &[(5, 0.0), (0, 10.0)], "- 0");
    let mut estimator = Estimator::default();
    assert_eq!(estimator.estimate(), None);
    hand_in(&mut estimator, 5, 0.0);
    assert_eq!(estimator.estimate(), None);
    hand_in(&mut estimator, 0, 10.0);
    let still = estimator.estimate().unwrap();
    assert_eq!(still, Estimate { rate: 0.0, secs: 10.0 });
    // Half a change in the quiet time.
    assert!((still.careful() - 0.05).abs() < 1e-12);
}

#[test]
fn few_changes_are_put_together() {
    let rules = Rules { gain: Gain::Settling(0.25), ..Rules::default() };
    // At first, the estimate is the mean of all pulls; from the eighth change on, there is a
    // sample, and the estimate stays until the next sample.
    let pulls = [(9, 0.0), (0, 1.0), (3, 1.0), (5, 2.0), (1, 0.5), (0, 0.5), (15, 3.0)];
    // The last: 16 in 4 s, remembered after 4 s: weight 4 / (0.75 · 4 + 4).
    let last = 2.0 * 3.0 / 7.0 + 4.0 * 4.0 / 7.0;
    check_rules(rules, &pulls, &format!("- 0 1.5 2 2 2 {last}"));
    // Silence counts once eight changes were expected: 2 a second for 4 seconds.
    check_rules(rules, &[(0, 0.0), (8, 4.0), (0, 3.0), (0, 1.0)], "- 2 2 0.8571428571428572");
}

#[test]
fn a_gain_is_brought_to_its_range() {
    for (gain, expected) in [(f64::NAN, "- 4 5"), (7.0, "- 4 8"), (f64::NEG_INFINITY, "- 4 4.004")]
    {
        check(gain, &[(9, 0.0), (4, 1.0), (8, 1.0)], expected);
    }
}

#[test]
fn the_time_behind_an_estimate_is_that_of_a_plain_count() {
    // The variance is g / (2 − g) of a sample's: the estimate is as certain as 7 samples together.
    for method in [Method::Ewma, Method::Datestamps] {
        let rules = Rules { method, ..Rules::default() };
        let mut estimator = Estimator::with_rules(rules, State::default());
        for _ in 0..60 {
            hand_in(&mut estimator, 100, 10.0);
        }
        let found = estimator.estimate().unwrap();
        assert!((found.rate - 10.0).abs() < 1e-9);
        assert!((found.secs - 70.0).abs() < 1e-3, "{}", found.secs);
    }
}

#[test]
fn a_state_is_small() {
    assert!(size_of::<State>() <= 64, "{}", size_of::<State>());
}
