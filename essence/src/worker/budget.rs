//! The budget of programs: a bound on the time and output of all programs for one file.

use std::time::{Duration, Instant};

use formats::limit::Limit;
use formats::object::ProblemKind;

use super::Clock;
use super::program::Failure;

/// Maximum time for the programs of one file, in multiples of the time limit of one program.
const TIMES_MAX: u32 = 60;
/// Maximum number of programs for one file that may be ended because they take too long.
const LATE_MAX: u32 = 3;
/// Maximum number of bytes that the programs for one file may write. The output of the program that
/// reaches this number is not cut.
const WRITTEN_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Budget of the programs for one file.
#[derive(Debug)]
pub struct ProgramBudget {
    /// Time limit of one program.
    time_max: Duration,
    /// End of the time for all programs.
    end: Instant,
    clock: Clock,
    late: u32,
    bytes: usize,
}

impl ProgramBudget {
    /// Returns an unused budget for programs whose time limit is `time_max` each.
    pub(crate) fn new(time_max: Duration, clock: Clock) -> Self {
        Self { time_max, end: clock() + time_max * TIMES_MAX, clock, late: 0, bytes: 0 }
    }

    /// Returns the deadline of the next program; if the budget is used up, returns the reason as an
    /// error.
    pub(crate) fn next(&self) -> Result<Instant, (ProblemKind, &'static str)> {
        let now = (self.clock)();
        if self.end <= now || LATE_MAX <= self.late {
            return Err((ProblemKind::Program, "took too long"));
        }
        if WRITTEN_BYTES_MAX <= self.bytes {
            return Err((Limit::Output.kind_at(WRITTEN_BYTES_MAX), "wrote too much"));
        }
        Ok(self.end.min(now + self.time_max))
    }

    /// Adds the outcome of a program that had this deadline.
    pub(crate) fn count(&mut self, outcome: &Result<Vec<u8>, Failure>, deadline: Instant) {
        self.late += u32::from(outcome.is_err() && deadline <= (self.clock)());
        self.bytes += outcome.as_ref().map_or(0, Vec::len);
    }
}

#[cfg(test)]
mod tests {
    use net::clock;

    use super::*;

    #[test]
    fn programs_of_one_file_are_bounded() {
        let mut budget = ProgramBudget::new(Duration::from_secs(100), clock::monotonic);
        let deadline = budget.next().unwrap();
        budget.count(&Ok(vec![0; WRITTEN_BYTES_MAX]), deadline);
        let full = Limit::Output.kind_at(WRITTEN_BYTES_MAX);
        assert_eq!(budget.next(), Err((full, "wrote too much")));
        let mut budget = ProgramBudget::new(Duration::from_secs(100), clock::monotonic);
        let late = Err(Failure::from("late".to_owned()));
        for _ in 0..LATE_MAX {
            budget.count(&late, deadline);
            assert!(budget.next().is_ok(), "in time");
        }
        for _ in 0..LATE_MAX {
            budget.count(&late, clock::monotonic());
        }
        assert_eq!(budget.next(), Err((ProblemKind::Program, "took too long")));
    }
}
