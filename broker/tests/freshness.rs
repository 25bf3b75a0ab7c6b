//! Live test of the paper's result: sources that change at rates 1 : 5 : 10 : 50 are pulled at
//! intervals that go with the inverse roots, and the measured freshness reaches the aim.
//!
//! Follow is off: only the schedule starts pulls. Time runs fast: changes a second instead of a
//! day. `HARVEST_FRESHNESS_SECONDS` makes the run longer and the figures steadier.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use broker::config::Freshness;
use broker::status::{SourceStatus, Status};
use collection::Change;
use common::{Origin, Running, config, record};
use freshness::interval::{self, Bounds, Model, Policy, plan};
use net::clock;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

/// Time for which the sources change, seconds.
const SECONDS: u64 = 30;

/// Number of changes a second at each source.
const RATES: [f64; 4] = [2.0, 10.0, 20.0, 100.0];

const ELEMENTS: u64 = 200;

const THETA: f64 = 0.9;

/// θ for elements that change at random: low enough for many to change twice between two pulls.
const THETA_RANDOM: f64 = 0.75;

/// Maximum relative deviation of a ratio of two intervals from the root of the rates' ratio.
const RATIO_TOLERANCE: f64 = 0.15;

/// Maximum difference of the measured freshness below the aim.
const FRESHNESS_TOLERANCE: f64 = 0.02;

/// Minimum pause between two commits of one source: faster changes are committed together.
const COMMIT_EVERY: Duration = Duration::from_millis(50);

/// Order of a source's changes: the element of its `n`th change.
type Order = fn(n: u64) -> u64;

/// One after the other, as in eq. 1.
fn in_turn(n: u64) -> u64 {
    n % ELEMENTS
}

/// Pseudo-random, as in the Poisson model (splitmix64's finalizer: the same in each run).
fn at_random(n: u64) -> u64 {
    let mixed =
        (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % ELEMENTS
}

/// Runs a broker over sources that change in the given order; returns its status at the end, and
/// for each source its index, its real rate and the source itself.
async fn live(freshness: Freshness, order: Order) -> (Status, Vec<(usize, f64, Origin)>) {
    let seconds = std::env::var("HARVEST_FRESHNESS_SECONDS");
    let seconds = seconds.map_or(SECONDS, |it| it.parse().unwrap());
    let mut origins = Vec::new();
    for n in 0..RATES.len() {
        let origin = Origin::start(&format!("{n:016x}")).await;
        origin.update(0..ELEMENTS, "start").await;
        origins.push(origin);
    }
    let dir = tempfile::tempdir().unwrap();
    let sources = origins.iter().enumerate().map(|(n, it)| it.source(&format!("s{n}"))).collect();
    let mut config = config(dir.path(), sources);
    config.freshness = Freshness { interval_min: 0.1, interval_max: 60.0, ..freshness };

    let end = Instant::now() + Duration::from_secs(seconds);
    let mut changing = JoinSet::new();
    for (n, (origin, rate)) in origins.into_iter().zip(RATES).enumerate() {
        changing.spawn(async move { (n, change(&origin, rate, end, order).await, origin) });
    }
    let broker = Running::start(config).await;
    let mut changed = changing.join_all().await;
    changed.sort_by_key(|(n, _, _)| *n);

    let status = broker.status().await;
    broker.stop().await;
    (status, changed)
}

#[tokio::test(flavor = "multi_thread")]
async fn intervals_and_freshness_are_those_of_the_paper() {
    // Eq. 3 assumes the linear model.
    let freshness = Freshness { theta: THETA, model: Model::Linear, ..Freshness::default() };
    let (status, changed) = live(freshness, in_turn).await;
    let shown: Vec<String> = status.sources.iter().zip(&changed).map(show).collect();
    println!("freshness {:.3}\n{}", status.freshness.unwrap(), shown.join("\n"));
    for (one, (_, rate_one, origin)) in status.sources.iter().zip(&changed) {
        for (other, (_, rate_other, _)) in status.sources.iter().zip(&changed) {
            let ratio = one.interval_seconds.unwrap() / other.interval_seconds.unwrap();
            let expected = (rate_other / rate_one).sqrt();
            let off = (ratio / expected - 1.0).abs();
            assert!(off < RATIO_TOLERANCE, "{ratio:.3} against {expected:.3}: {shown:#?}");
        }
        // There is no other client: each pull ends with one delta, and the last pull may still run.
        let asked = origin.feed_counters().deltas;
        assert!((one.pulls..=one.pulls + 1).contains(&asked), "{asked} requests: {shown:#?}");
    }
    let freshness = status.freshness.unwrap();
    assert!(THETA - FRESHNESS_TOLERANCE <= freshness, "freshness {freshness}: {shown:#?}");
}

/// A gatherer of a new release makes all its records anew, once: they come as updates, the cursor goes on, nothing
/// is held, and the source does not count as one that changes more.
#[tokio::test(flavor = "multi_thread")]
async fn records_made_anew_are_one_wave_of_updates_and_no_changes_of_the_source() {
    let origin = Origin::start("000000000000000a").await;
    let first = origin.update(0..ELEMENTS, "start").await;
    let dir = tempfile::tempdir().unwrap();
    let broker = Running::start(config(dir.path(), vec![origin.source("a")])).await;
    broker.caught_up("a", first).await;
    let changed = origin.update(0..5, "other").await;
    broker.caught_up("a", changed).await;
    // The first pulls take less time than a rate needs.
    let known = |it: &Status| it.sources.iter().all(|it| it.rate_per_second.is_some());
    let before = broker.until("estimated", known).await.sources.remove(0);
    assert_eq!((before.updates.count, before.updates.records), (1, 5));

    let anew = |n| {
        let mut it = record(&origin.id, n, if n < 5 { "other" } else { "start" });
        it.push("Language", "en");
        it.push("Language-Source", "detected");
        Change::Update(it)
    };
    let version = origin.commit((0..ELEMENTS).map(anew).collect()).await;
    assert_eq!(version.epoch, first.epoch);
    broker.caught_up("a", version).await;
    broker.until("indexed", |it| it.index_covered == Some(it.serial)).await;
    assert_eq!(broker.total("language:en").await, ELEMENTS);

    let (status, after) = (broker.status().await, broker.source("a").await);
    assert_eq!((status.objects, status.held, &after.held), (ELEMENTS, None, &None));
    assert_eq!((after.objects, after.errors.count), (ELEMENTS, 0));
    assert_eq!((after.updates.count, after.updates.records), (1, 5), "{after:#?}");
    assert!(after.rate_per_second <= before.rate_per_second, "{before:#?} {after:#?}");
    let (counters, feed) = (broker.handle.counters(), origin.feed_counters());
    let changes = 2 * ELEMENTS + 5;
    assert_eq!(
        (counters.changes, counters.applied.updated, counters.applied.deleted),
        (changes, changes, 0)
    );
    assert!(feed.snapshots <= 1, "{feed:?}");

    // A change of the content counts as before.
    let version = origin.update(7..10, "third").await;
    broker.caught_up("a", version).await;
    let last = broker.source("a").await;
    assert_eq!((last.updates.count, last.updates.records), (2, 8), "{last:#?}");
    broker.stop().await;
}

/// By default a broker assumes random changes: for such sources the measured freshness is the aim,
/// with fewer pulls than in eq. 3.
#[tokio::test(flavor = "multi_thread")]
async fn changes_at_random_need_fewer_pulls() {
    let freshness = Freshness { theta: THETA_RANDOM, ..Freshness::default() };
    let (status, changed) = live(freshness, at_random).await;
    let shown: Vec<String> = status.sources.iter().zip(&changed).map(show).collect();
    let measured = status.freshness.unwrap();
    println!("freshness {measured:.3}\n{}", shown.join("\n"));
    assert!((measured - THETA_RANDOM).abs() < 0.03, "freshness {measured}: {shown:#?}");
    // Use the rates that the broker estimated, since the real ones depend on the machine.
    let bounds = Bounds { interval_min: 0.1, interval_max: 60.0 };
    let source = |it: &SourceStatus| {
        interval::Source::new(it.rate_per_second.unwrap(), it.elements.unwrap(), bounds)
    };
    let sources: Vec<interval::Source> = status.sources.iter().map(source).collect();
    let printed = plan(&sources, Policy::Optimal { theta: THETA_RANDOM }, Model::Printed).pulls;
    let planned = status.expected.planned_pulls_per_hour / 3_600.0;
    println!("{:.3} of the pulls of eq. 3", planned / printed);
    assert!(planned < 0.9 * printed, "{planned} of {printed} a second: {shown:#?}");
}

/// Renders a source with its real rate.
fn show((source, (_, rate, _)): (&SourceStatus, &(usize, f64, Origin))) -> String {
    format!(
        "{}: {:.2} changes/s of {rate:.2}, interval {:.3} s, {} pulls, freshness {:.3}",
        source.name,
        source.rate_per_second.unwrap_or_default(),
        source.interval_seconds.unwrap_or_default(),
        source.pulls,
        source.freshness.unwrap_or_default()
    )
}

/// Changes elements in the given order, `rate` times a second until `end`; returns the real rate on
/// this machine.
async fn change(origin: &Origin, rate: f64, end: Instant, order: Order) -> f64 {
    let pause = Duration::from_secs_f64(1.0 / rate).max(COMMIT_EVERY);
    let mut ticks = tokio::time::interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (began, mut done) = (clock::monotonic(), 0_u64);
    while Instant::now() < end {
        ticks.tick().await;
        let due = (clock::monotonic() - began).as_secs_f64() * rate;
        let numbers: Vec<u64> = (done..).take_while(|n| (*n as f64) < due).collect();
        if numbers.is_empty() {
            continue;
        }
        done += numbers.len() as u64;
        // A commit has each element once.
        let numbers: BTreeSet<u64> = numbers.into_iter().map(order).collect();
        origin.update(numbers, &format!("change{done}")).await;
    }
    done as f64 / (clock::monotonic() - began).as_secs_f64()
}
