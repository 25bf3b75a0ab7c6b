//! Tests of paces: pulls by cost, by learned updates, and by announced schedules.

use super::*;
use crate::syndication::{Period, Syndication};

fn check(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{found} against {expected}");
}

fn interval(world: &World, name: &str) -> f64 {
    world.view(name).interval_secs.unwrap()
}

/// OAP's interval grows with the root of C_P: here 1.02 requests, and 9.02 requests.
#[test]
fn slow_sources_are_pulled_more_seldom_by_the_root() {
    for seed in [0, 3] {
        let mut world = World::new(seed);
        for (name, slow_ms) in [("quick", 0), ("quick too", 0), ("slow", 8_000)] {
            world.add(name, 0.1, 1_000).slow_ms = slow_ms;
        }
        world.run(200_000.0);
        check(world.view("slow").pull_cost.unwrap(), 9.02, 0.1);
        if seed == 0 {
            check(
                interval(&world, "slow") / interval(&world, "quick"),
                (9.02_f64 / 1.02).sqrt(),
                0.02,
            );
            check(interval(&world, "quick too") / interval(&world, "quick"), 1.0, 0.02);
        }
        // The same over a restart.
        let known = ["quick", "slow"].map(|it| world.schedule.note(world.feeds[it].id).unwrap());
        let rules = Rules::new(BOUNDS);
        let mut again = Schedule::new(settings());
        let ids = again.add(known.map(|it| (rules, it)), world.now_ms);
        let costs = [0, 1].map(|it| again.view(ids[it]).unwrap().pull_cost.unwrap());
        check(costs[1] / costs[0], 9.02 / 1.02, 0.1);
    }
}

#[test]
fn the_time_of_changes_is_not_a_cost_of_the_pull() {
    let mut world = World::new(5);
    for (name, rate) in [("calm", 0.02), ("busy", 0.5)] {
        world.add(name, rate, 1_000).change_ms = 50;
    }
    world.run(200_000.0);
    for name in ["calm", "busy"] {
        let view = world.view(name);
        check(view.pull_cost.unwrap(), 1.02, 0.1);
        assert!(0.3 < view.took_secs.unwrap(), "{name}: {view:?}");
    }
}

/// A source whose updates come at random, one in 500 seconds on average.
#[test]
fn best_estimation_learns_the_mean_update_interval() {
    let estimated = Rules { pace: Pace::BestEstimation, ..Rules::new(BOUNDS) };
    let mut world = World::new(7);
    world.add_ruled("random", estimated, 1.0 / 500.0, 1_000);
    world.add_ruled("still", estimated, 0.0, 1_000);
    world.run(2_000_000.0);
    check(interval(&world, "random"), 500.0, 0.1);
    check(interval(&world, "still"), BOUNDS.interval_max, 1e-6);
}

/// Whether a pull hits an update of a regular source depends on its phase: at 1 − 1/e of the true
/// interval, pulls miss as often as for a random source: there are 1.6 pulls for each update.
#[test]
fn best_estimation_misses_no_update_of_a_regular_source() {
    let estimated = Rules { pace: Pace::BestEstimation, ..Rules::new(BOUNDS) };
    let mut world = World::new(0);
    world.add_ruled("regular", estimated, 1.0 / 500.0, 1_000);
    let often = Rules { bounds: Bounds { interval_max: 60.0, ..BOUNDS }, ..estimated };
    world.add_ruled("watched", often, 1.0 / 500.0, 1_000);
    world.run(2_000_000.0);
    check(interval(&world, "regular"), 500.0 * (1.0 - (-1.0_f64).exp()), 0.05);
    check(interval(&world, "watched"), 60.0, 1e-6);
    // Frequent pulls measure the interval to 10 %.
    let entry = world.schedule.entry(world.feeds["watched"].id).unwrap();
    let (secs, pulls, changed) = entry.learned.counted();
    let found = crate::expect::interval_of_pulls(secs, pulls, changed);
    check(found.unwrap(), 500.0, 0.1);
}

#[test]
fn planned_sources_get_the_staleness_that_a_paced_source_leaves() {
    let mut world = World::new(0);
    let hourly = Syndication::new(Period::Hourly, 1, 0).unwrap();
    let paced = Rules { pace: Pace::Syndication(hourly), ..Rules::new(BOUNDS) };
    world.add_ruled("hourly", paced, 0.1, 2_000);
    world.add("planned", 0.1, 2_000);
    world.run(400_000.0);
    // Of 4,000 elements 400 may be stale: 180 of the paced source, so 220 of the other.
    check(interval(&world, "planned"), 4_400.0, 0.02);
    check(world.schedule.freshness().unwrap(), 0.9, 0.01);
}

#[test]
fn an_announced_update_is_fetched_right_after_it() {
    // From January 30th of 2024 to June, on the last day of each month at 06:00.
    let days = |date: i64| date * 86_400 + 21_600;
    let monthly = Syndication::new(Period::Monthly, 1, days(19_753)).unwrap();
    let rules = Rules {
        pace: Pace::Syndication(monthly),
        ..Rules::new(Bounds { interval_max: 1e9, ..BOUNDS })
    };
    let mut world = World::new(0);
    world.now_ms = (days(19_752) * 1_000).cast_unsigned();
    world.add_ruled("monthly", rules, 0.001, 1_000).next_ms = world.now_ms as f64;
    world.run(130.0 * 86_400.0);
    // 2024-01-31, 02-29, 03-31, 04-30, 05-31, as days since 1970.
    let pulls: Vec<i64> = world.pulls("monthly")[1..].iter().map(|it| it.cast_signed()).collect();
    let announced = [19_753, 19_782, 19_813, 19_843, 19_874].map(|day| days(day) * 1_000);
    assert_eq!(pulls.len(), 5, "{pulls:?}");
    for (pull, announced) in pulls.iter().zip(announced) {
        let late_ms = pull - announced;
        assert!((1_000..2_000).contains(&late_ms), "{late_ms} ms after {announced}");
    }
}

#[test]
fn bounds_hold_whatever_is_announced() {
    let often = Syndication::new(Period::Hourly, 3_600, 0).unwrap();
    let seldom = Syndication::new(Period::Yearly, 1, 0).unwrap();
    let mut world = World::new(0);
    for (name, announced) in [("often", often), ("seldom", seldom)] {
        let rules = Rules { pace: Pace::Syndication(announced), ..Rules::new(BOUNDS) };
        world.add_ruled(name, rules, 0.01, 1_000);
    }
    world.run(100.0);
    check(interval(&world, "often"), 10.0, 1e-6);
    check(interval(&world, "seldom"), 86_400.0, 1e-6);
}

/// N U / (Σ ages + (N − U) I) = 100 · 50 / (50 · 300 + 50 · 1,000); the paper's is 50 / 1,000.
#[test]
fn a_source_that_lists_each_element_once_is_estimated_from_datestamps() {
    let mut schedule = Schedule::new(settings());
    for (datestamps, expected) in [(false, 0.05), (true, 1.0 / 13.0)] {
        let id = add(&mut schedule, Rules { datestamps, ..Rules::new(BOUNDS) }, 0);
        let found = |full, as_of_ms| PullReport {
            full,
            changes: 50,
            age_secs: 300.0,
            first_changes: None,
            elements: 100,
            as_of_ms,
            early: false,
        };
        schedule.handle_pull(id, found(true, 0), 0);
        schedule.handle_pull(id, found(false, 1_000_000), 1_000_000);
        check(schedule.view(id).unwrap().rate.unwrap(), expected, 1e-6);
    }
}
