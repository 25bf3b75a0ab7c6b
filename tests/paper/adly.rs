//! Tests of the figures of Adly's paper that rest on eq. 1 to 4, and of the bounded problem.
//!
//! Expected values: the paper's text where it prints a number, and otherwise an independent
//! evaluation of its formulas (`oap_expected.json`, ids as given at each list). Units are days.

use freshness::interval::{Bounds, Model, Policy, Source, Workload};

use crate::adly_mixes::{COSTS, check, cost, freshness, majority, mix, planned, t1_and_t4};

fn oap(workloads: &[Workload], theta: f64) -> Vec<f64> {
    planned(workloads, Policy::Optimal { theta }, Bounds::FREE).intervals
}

fn uniform(workloads: &[Workload], theta: f64) -> f64 {
    planned(workloads, Policy::Uniform { theta }, Bounds::FREE).intervals[0]
}

/// Returns the cost of `intervals` over the cost of OAP(θ).
fn over_oap(workloads: &[Workload], intervals: &[f64], theta: f64) -> f64 {
    cost(workloads, intervals) / cost(workloads, &oap(workloads, theta))
}

/// Eq. 4, as the paper prints it.
fn eq_4(workloads: &[Workload], theta: f64) -> f64 {
    let sum = |of: fn(&Workload) -> f64| workloads.iter().map(of).sum::<f64>();
    let pulls =
        sum(|it| it.rate.sqrt()).powi(2) / (2.0 * (1.0 - theta) * sum(|it| it.elements as f64));
    sum(|it| it.rate) * COSTS.update + pulls * COSTS.pull
}

#[test]
fn eq_3_reaches_theta_at_the_cost_of_eq_4() {
    for workloads in [t1_and_t4(750), majority(0), majority(2)] {
        for theta in [0.5, 0.9, 0.95, 0.98] {
            let intervals = oap(&workloads, theta);
            check("freshness", freshness(&workloads, &intervals), theta, 1e-9);
            check("cost", cost(&workloads, &intervals) / eq_4(&workloads, theta), 1.0, 1e-9);
        }
    }
}

/// Ids `fig3.uap_over_oap.*`.
#[test]
fn figure_3_a_uniform_interval_costs_up_to_71_percent_more() {
    for (theta, t1, expected) in [
        (0.95, 500, 1.207_835),
        (0.95, 400, 1.146_295),
        (0.95, 300, 1.097_855),
        (0.96, 750, 1.522_396),
        (0.96, 600, 1.328_651),
        (0.96, 400, 1.167_906),
        (0.97, 700, 1.518_407),
        (0.97, 400, 1.197_007),
        (0.97, 300, 1.132_350),
        (0.98, 750, 1.706_331),
        (0.98, 600, 1.457_509),
        (0.98, 400, 1.238_312),
    ] {
        let workloads = t1_and_t4(t1);
        let intervals = vec![uniform(&workloads, theta); workloads.len()];
        check("fig. 3", over_oap(&workloads, &intervals, theta), expected, 0.0005);
        check("same freshness", freshness(&workloads, &intervals), theta, 1e-9);
    }
}

/// Ids `fig45.*`, `fig4.*` and `fig5.*`: the interval assumes 70 % T1 for every mix.
#[test]
fn figures_4_and_5_a_wrong_guess_costs_freshness_or_money() {
    let interval = |theta| uniform(&t1_and_t4(700), theta);
    for (theta, expected) in [(0.85, 0.707_006), (0.9, 0.471_338), (0.95, 0.235_669)] {
        check("I_U", interval(theta), expected, 0.0005);
    }
    for (theta, t1, expected) in [
        (0.85, 800, 0.863_649),
        (0.85, 700, 0.85),
        (0.9, 800, 0.909_099),
        (0.9, 700, 0.9),
        (0.9, 600, 0.894_461),
        (0.95, 600, 0.947_231),
    ] {
        let intervals = vec![interval(theta); 1_000];
        check("fig. 4", freshness(&t1_and_t4(t1), &intervals), expected, 0.0005);
    }
    for (theta, t1, expected) in [
        (0.85, 700, 1.180_786),
        (0.85, 600, 1.113_173),
        (0.9, 600, 1.156_365),
        (0.95, 800, 1.637_248),
        (0.98, 700, 1.613_954),
    ] {
        let ratio = over_oap(&t1_and_t4(t1), &vec![interval(theta); 1_000], theta);
        check("fig. 5", ratio, expected, 0.0005);
    }
}

/// Ids `fig6.ioap_over_oap.*`; majority 0 is the even mix. The paper: 3 % to 18 % for that one, up
/// to 36 % for T2.
#[test]
fn figure_6_each_source_for_itself_costs_up_to_36_percent_more() {
    for (theta, of, expected) in [
        (0.5, 2, 1.074_301),
        (0.6, 2, 1.090_204),
        (0.6, 0, 1.032_969),
        (0.7, 1, 1.044_650),
        (0.7, 2, 1.114_767),
        (0.7, 4, 1.008_167),
        (0.8, 1, 1.062_726),
        (0.8, 3, 1.045_443),
        (0.9, 1, 1.105_395),
        (0.9, 2, 1.252_025),
        (0.9, 4, 1.021_129),
        (0.9, 0, 1.108_334),
        (0.95, 1, 1.159_720),
        (0.95, 3, 1.135_766),
        (0.95, 4, 1.035_024),
    ] {
        let workloads = majority(of);
        let ratio = over_oap(
            &workloads,
            &planned(&workloads, Policy::Individual { theta }, Bounds::FREE).intervals,
            theta,
        );
        check("fig. 6", ratio, expected, 0.0005);
    }
}

/// Ids `sat.F_T2_linear.*`: the linear model, outside its valid range.
#[test]
fn the_freshness_of_one_source_may_fall_below_0() {
    let workloads = majority(2);
    let t2 = Source::new(500.0, 1_000, Bounds::FREE);
    for (theta, expected) in [(0.5, -0.164_367), (0.6, 0.068_507), (0.7, 0.301_38)] {
        let intervals = oap(&workloads, theta);
        // The first hundred are T1.
        check("F of a T2", t2.freshness_at(intervals[100], Model::Printed), expected, 0.0005);
    }
    // Id `model.linear.x=5`.
    let five = Source::new(5.0, 1, Bounds::FREE);
    check("x = 5", five.freshness_at(1.0, Model::Printed), -1.5, 1e-12);
}

/// Ids `kkt.*` with equal costs and priorities: table 1 and a source that never changes.
#[test]
fn bounded_intervals_solve_the_bounded_problem() {
    let mut workloads = mix([1, 1, 1, 1]);
    workloads.push(Workload { rate: 0.0, elements: 5_000 });
    let solve = |theta, interval_min, interval_max| {
        let bounds = Bounds { interval_min, interval_max };
        planned(&workloads, Policy::Optimal { theta }, bounds).intervals
    };
    let pulls = |intervals: &[f64]| intervals.iter().map(|it| 50.0 / it).sum::<f64>();

    let plain = solve(0.9, 1e-9, 1e9);
    check("plain I5", plain[4], 1e9, 0.0005);
    check("plain freshness", freshness(&workloads, &plain), 0.9, 1e-9);

    let upper = solve(0.9, 1e-9, 1.0);
    check("boundsU1 I3", upper[2], 1.0, 0.0005);
    check("boundsU1 I5", upper[4], 1.0, 0.0005);
    check("boundsU1 freshness", freshness(&workloads, &upper), 0.9, 1e-9);

    let lower = solve(0.9, 0.6, 7.0);
    check("boundL I1", lower[0], 3.750_97, 0.0005);
    check("boundL I4", lower[3], 0.6, 0.0005);
    check("boundL pull cost", pulls(&lower), 175.765_413, 0.01);
    check("boundL freshness", freshness(&workloads, &lower), 0.9, 1e-9);

    let slack = solve(0.5, 0.01, 2.0);
    check("slack I1", slack[0], 2.0, 0.0005);
    check("slack I4", slack[3], 2.0, 0.0005);
    check("slack pull cost", pulls(&slack), 125.0, 0.01);
    assert!(freshness(&workloads, &slack) > 0.5);

    let infeasible = solve(0.99, 1.0, 7.0);
    check("infeasible I2", infeasible[1], 1.0, 0.0005);
    check("infeasible I3", infeasible[2], 1.0, 0.0005);
    assert!(freshness(&workloads, &infeasible) < 0.99);
}
