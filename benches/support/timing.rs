//! Timing for benches: subjects run in turns, so that a noisy machine disturbs all of them alike.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// One thing to time.
pub(crate) struct Subject<'a> {
    /// Name, as printed.
    pub(crate) name: &'a str,
    /// Runs it once; the result is not optimized away.
    pub(crate) run: Box<dyn FnMut() -> u64 + 'a>,
}

impl<'a> Subject<'a> {
    /// Returns a subject that runs `run`.
    pub(crate) fn new(name: &'a str, run: impl FnMut() -> u64 + 'a) -> Self {
        Self { name, run: Box::new(run) }
    }
}

/// Runs every subject `rounds` times, in turns, and returns the least time of each: its time on an
/// idle core.
pub(crate) fn least(subjects: &mut [Subject<'_>], rounds: u32) -> Vec<Duration> {
    let mut least = vec![Duration::MAX; subjects.len()];
    for _ in 0..rounds {
        for (subject, least) in subjects.iter_mut().zip(&mut least) {
            #[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
            let start = Instant::now();
            black_box((subject.run)());
            *least = start.elapsed().min(*least);
        }
    }
    least
}

/// Prints gigabytes a second over `bytes`, each with its ratio to the first subject.
#[expect(clippy::print_stdout, reason = "a bench prints")]
pub(crate) fn print_rates(subjects: &[Subject<'_>], least: &[Duration], bytes: usize) {
    let rate = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e9;
    let yardstick = least.first().map_or(f64::NAN, |it| rate(*it));
    for (subject, time) in subjects.iter().zip(least) {
        let rate = rate(*time);
        println!("{:<44} {rate:>7.2} GB/s {:>7.3} x", subject.name, rate / yardstick);
    }
}
