//! The budget of programs: what those for one file have cost so far.

use std::time::{Duration, Instant};

use super::Clock;
use super::program::Failure;

/// Most time that the programs for one file may take, in times of one.
const TIMES_MAX: u32 = 60;
/// Most programs for one file that are ended since they take too long.
const LATE_MAX: u32 = 3;
/// Most bytes that the programs for one file may write, beyond those of the one that reaches it.
const WRITTEN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What the programs for one file have cost so far, of what they may.
#[derive(Debug)]
pub struct Spent {
    /// How long one may take.
    time_max: Duration,
    /// When there is no more time.
    end: Instant,
    clock: Clock,
    late: u32,
    bytes: usize,
}

impl Spent {
    /// Nothing yet, of programs that may take `time_max` each.
    pub fn new(time_max: Duration, clock: Clock) -> Self {
        Self { time_max, end: clock() + time_max * TIMES_MAX, clock, late: 0, bytes: 0 }
    }

    /// Returns until when the next one may take; or what those before did, so that there is none.
    pub fn next(&self) -> Result<Instant, &'static str> {
        let now = (self.clock)();
        if self.end <= now || LATE_MAX <= self.late {
            return Err("took too long");
        }
        if WRITTEN_BYTES_MAX <= self.bytes {
            return Err("wrote too much");
        }
        Ok(self.end.min(now + self.time_max))
    }

    /// Counts what one has come to that had until `deadline`.
    pub fn count(&mut self, outcome: &Result<Vec<u8>, Failure>, deadline: Instant) {
        self.late += u32::from(outcome.is_err() && deadline <= (self.clock)());
        self.bytes += outcome.as_ref().map_or(0, Vec::len);
    }
}

#[cfg(test)]
mod tests {
    use net::clock;

    use super::*;

    #[test]
    fn one_file_s_programs_have_a_budget() {
        let mut spent = Spent::new(Duration::from_secs(100), clock::monotonic);
        let deadline = spent.next().unwrap();
        spent.count(&Ok(vec![0; WRITTEN_BYTES_MAX]), deadline);
        assert_eq!(spent.next(), Err("wrote too much"));
        let mut spent = Spent::new(Duration::from_secs(100), clock::monotonic);
        let late = Err(Failure::from("late".to_owned()));
        for _ in 0..LATE_MAX {
            spent.count(&late, deadline);
            assert!(spent.next().is_ok(), "in time");
        }
        for _ in 0..LATE_MAX {
            spent.count(&late, clock::monotonic());
        }
        assert_eq!(spent.next(), Err("took too long"));
    }
}
