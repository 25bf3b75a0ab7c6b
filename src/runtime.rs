//! The tokio runtimes: one with a thread for each processor, one with a single thread.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::runtime::Builder;

/// A wait that is shorter than this is quick: the thread receives many small pieces.
const QUICK: Duration = Duration::from_millis(1);
/// After this many quick waits in a row, a thread rests before it waits again.
const QUICK_MAX: u32 = 4;
/// Length of the rest. At 50 Mbit/s four packets come meanwhile, and a socket holds hundreds.
const REST: Duration = Duration::from_millis(1);
/// Longest wait at the end for threads that still read a disk.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_millis(200);

/// Runs `future` to its end, with a thread for each processor.
pub(crate) fn on_all_processors<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    run(Builder::new_multi_thread().worker_threads(threads), future)
}

/// Runs `future` to its end on this thread; only blocking work has threads of its own. While many
/// small pieces arrive, the thread lets them collect for a millisecond: packets of a 50 Mbit/s line
/// come one by one, and waking up for each takes more of the processor than all work on it.
pub(crate) fn on_one_thread<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    let pace = Arc::new(Mutex::new(Pace::default()));
    let parking = Arc::clone(&pace);
    let mut builder = Builder::new_current_thread();
    builder.on_thread_park(move || {
        let has_to_rest = locked(&parking, |it| it.has_to_rest());
        if has_to_rest {
            rest();
        }
        locked(&parking, |it| it.handle_parked(net::clock::monotonic()));
    });
    builder.on_thread_unpark(move || locked(&pace, |it| it.handle_woken(net::clock::monotonic())));
    run(&mut builder, future)
}

fn run<T>(builder: &mut Builder, future: impl Future<Output = T>) -> anyhow::Result<T> {
    crate::process::raise_file_limit();
    let runtime =
        builder.enable_all().build().context("cannot start the threads of the runtime")?;
    let outcome = runtime.block_on(future);
    runtime.shutdown_timeout(LEFTOVERS_TIMEOUT);
    Ok(outcome)
}

fn locked<T>(pace: &Mutex<Pace>, change: impl FnOnce(&mut Pace) -> T) -> T {
    change(&mut pace.lock().unwrap_or_else(PoisonError::into_inner))
}

#[expect(
    clippy::disallowed_methods,
    reason = "no timer runs while the thread that drives them rests"
)]
fn rest() {
    std::thread::sleep(REST);
}

/// Counter of the quick waits in a row of a thread.
#[derive(Debug, Default)]
struct Pace {
    parked: Option<Instant>,
    quick: u32,
}

impl Pace {
    /// Returns whether the thread rests before it waits again.
    fn has_to_rest(&self) -> bool {
        QUICK_MAX <= self.quick
    }

    fn handle_parked(&mut self, now: Instant) {
        self.parked = Some(now);
    }

    fn handle_woken(&mut self, now: Instant) {
        let waited = self.parked.take().map(|it| now.saturating_duration_since(it));
        let is_quick = waited.is_some_and(|it| it < QUICK);
        self.quick = if is_quick { self.quick.saturating_add(1) } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns for each of these waits, one after the other, whether the thread rests after it.
    fn rests(waits: &[Duration]) -> Vec<bool> {
        let (mut pace, mut now) = (Pace::default(), net::clock::monotonic());
        let mut each = |wait: &Duration| {
            pace.handle_parked(now);
            now += *wait;
            pace.handle_woken(now);
            pace.has_to_rest()
        };
        waits.iter().map(&mut each).collect()
    }

    #[test]
    fn a_thread_rests_as_long_as_it_is_woken_quickly() {
        let (quick, slow) = (QUICK / 4, QUICK);
        assert_eq!(rests(&[quick; 6]), [false, false, false, true, true, true]);
        assert_eq!(rests(&[slow; 6]), [false; 6]);
        let waits = [quick, quick, quick, slow, quick, quick, quick, quick, slow];
        let expected = [false, false, false, false, false, false, false, true, false];
        assert_eq!(rests(&waits), expected);
    }

    #[test]
    fn spawned_tasks_run_on_one_thread() {
        let alone = || async {
            let here = std::thread::current().id();
            let there = tokio::spawn(async { std::thread::current().id() }).await;
            there.is_ok_and(|it| it == here)
        };
        assert!(on_one_thread(alone()).unwrap());
        assert!(!on_all_processors(alone()).unwrap());
    }
}
