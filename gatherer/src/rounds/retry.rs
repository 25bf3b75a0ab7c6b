//! How long a pass that could not be committed waits before it is tried again.
//!
//! Sans-I/O.

use std::time::Duration;

/// How long after a failed commit the same is tried again; after each further one in a row it is twice
/// as long as before, since each costs a walk over the roots.
pub(super) const RETRY: Duration = Duration::from_secs(10);

/// Longest wait for the next try. A request for a pass is a try at once.
const RETRY_MAX: Duration = Duration::from_secs(300);

/// Returns how long to wait after this many refusals in a row.
pub(super) fn retry_wait(refusals: u32) -> Duration {
    RETRY.saturating_mul(2_u32.saturating_pow(refusals.saturating_sub(1))).min(RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_is_waited_for_longer_and_never_too_long() {
        let waits = [0, 1, 2, 3, 5, 6, 40, u32::MAX].map(|it| retry_wait(it).as_secs());
        assert_eq!(waits, [10, 10, 20, 40, 160, 300, 300, 300]);
    }
}
