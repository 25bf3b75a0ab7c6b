//! Benchmark of plans: the time to compute the intervals of many sources, and to take in a pull.
//!
//! ```text
//! cargo bench -p freshness                     100,000 sources
//! HARVEST_BENCH_SOURCES=1000000 cargo bench …
//! ```
//!
//! Sources are drawn with rates and sizes over six decades, bounds of a minute and a month, costs
//! and weights. The reference is eq. 3 as printed: one pass that sums roots and one that divides.
//! "A pull" changes the rate of one random source, with the recomputations that this causes. The
//! last figure is all work of a schedule for a pull.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench may panic and prints")]
#![allow(missing_docs, reason = "a program")]
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::hint::black_box;
use std::time::Instant;
use std::{env, iter};

use freshness::interval::{Bounds, Model, Planner, Policy, Replanned, Source, plan};
use freshness::rate::Method;
use freshness::schedule::{PullReport, Rules, Schedule, Settings, SourceNote};

/// Repetitions of each measurement; the least is printed, as least disturbed by other work.
const TURNS: usize = 25;

/// Pseudo-random numbers in 0..1 (splitmix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn source(&mut self) -> Source {
        let bounds = Bounds { interval_min: 60.0, interval_max: 30.0 * 86_400.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 10⁷")]
        let elements = 10.0_f64.powf(1.0 + 6.0 * self.next()) as u64;
        let rate = elements as f64 * 10.0_f64.powf(-7.0 + 3.0 * self.next());
        let (pull_cost, weight) = (0.5 + self.next(), 0.5 + self.next());
        Source { pull_cost, weight, ..Source::new(rate, elements, bounds) }
    }
}

fn main() {
    let count = env::var("HARVEST_BENCH_SOURCES").map_or(100_000, |it| it.parse().unwrap());
    let mut draw = Draw(1);
    let sources: Vec<Source> = (0..count).map(|_| draw.source()).collect();
    let yardstick = least_ms(|| printed(&sources, 0.95));
    println!("{count} sources: eq. 3 as printed {yardstick:.2} ms");
    for model in [Model::Linear, Model::Poisson] {
        for policy in [Policy::Optimal { theta: 0.95 }, Policy::Budget { pulls: 100.0 }] {
            let whole = least_ms(|| plan(&sources, policy, model).intervals);
            let mut planner = Planner::new(policy, model);
            let slots = planner.extend(sources.iter().copied());
            let (pulls, mut all, began) = (10 * count, 0, Instant::now());
            for _ in 0..pulls {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "below count"
                )]
                let at = (draw.next() * count as f64) as usize;
                let mut source = sources[at];
                source.workload.rate *= 0.5 + draw.next();
                all += usize::from(planner.update(slots[at], &source) == Replanned::All);
                black_box(planner.interval(slots[at]));
            }
            let each = began.elapsed().as_secs_f64() * 1e6 / pulls as f64;
            println!(
                "  {model:?}, {policy:?}: {whole:.1} ms ({:.1} times; at most 50 ms); a pull {each:.2} µs \
                 (at most 50), {all} of {pulls} recomputed all",
                whole / yardstick
            );
        }
    }
    pull_all(count);
}

/// Measures pulls of a whole schedule: learning, plan and queue.
fn pull_all(count: usize) {
    let settings = Settings {
        policy: Policy::Optimal { theta: 0.95 },
        model: Model::Poisson,
        method: Method::Datestamps,
        gain: 0.25,
        pulls_per_minute_max: u32::MAX,
    };
    let mut draw = Draw(2);
    let mut schedule = Schedule::new(settings);
    let rules = Rules::new(draw.source().bounds);
    schedule.add(iter::repeat_n((rules, SourceNote::default()), count), 0);
    let (mut now_ms, mut began) = (0, Instant::now());
    for turn in 0..4_u64 {
        if turn == 2 {
            // The first turns learn rates and are not measured.
            began = Instant::now();
        }
        for _ in 0..count {
            now_ms = schedule.poll_timeout(true).unwrap().max(now_ms + 1);
            let source = schedule.poll_due(true, now_ms).unwrap().source;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most 99"
            )]
            let changes = (100.0 * draw.next()) as u64;
            let (elements, full, early) = (10_000, turn == 0, false);
            let found = PullReport {
                full,
                changes,
                age_secs: 30.0,
                first_changes: None,
                elements,
                as_of_ms: now_ms,
                early,
            };
            schedule.handle_pull(source, found, now_ms + 20);
        }
    }
    let each = began.elapsed().as_secs_f64() * 1e6 / (2 * count) as f64;
    println!("  a pull of a schedule of them {each:.2} µs (at most 50)");
}

/// Eq. 3, without bounds, costs or weights.
fn printed(sources: &[Source], theta: f64) -> Vec<f64> {
    let elements: f64 = sources.iter().map(|it| it.workload.elements as f64).sum();
    let roots: f64 = sources.iter().map(|it| it.workload.rate.sqrt()).sum();
    let room = 2.0 * (1.0 - theta) * elements / roots;
    sources.iter().map(|it| room / it.workload.rate.sqrt()).collect()
}

fn least_ms(work: impl Fn() -> Vec<f64>) -> f64 {
    let turn = |_| {
        let began = Instant::now();
        black_box(work());
        began.elapsed().as_secs_f64() * 1e3
    };
    (0..TURNS).map(turn).fold(f64::INFINITY, f64::min)
}
