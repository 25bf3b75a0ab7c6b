//! The wait before a pass is tried again after a failed commit.
//!
//! Sans-I/O.

use std::time::Duration;

/// Wait after a failed commit. It doubles after each further failure in a row, since each try costs
/// a walk over the roots.
pub(super) const RETRY: Duration = Duration::from_secs(10);

/// Longest wait before the next try. A request for a pass causes a try immediately.
const RETRY_MAX: Duration = Duration::from_secs(300);

/// Returns how long to wait after this number of refusals in a row.
pub(super) fn retry_wait(refusals: u32) -> Duration {
    RETRY.saturating_mul(2_u32.saturating_pow(refusals.saturating_sub(1))).min(RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_with_each_refusal_up_to_the_maximum() {
        let waits = [0, 1, 2, 3, 5, 6, 40, u32::MAX].map(|it| retry_wait(it).as_secs());
        assert_eq!(waits, [10, 10, 20, 40, 160, 300, 300, 300]);
    }
}
