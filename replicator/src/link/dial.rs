//! Dialing: the times of connection attempts, and the choice between two connections.
//!
//! Both ends of a link try to connect, because perhaps only one of them can. If both succeed, the
//! connection that the smaller [`MemberId`] has dialed stays. Both ends come to this decision
//! without a message.
//!
//! Sans-I/O.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use crate::id::MemberId;

/// Pause before the second attempt.
pub const BACKOFF_MIN: Duration = Duration::from_secs(1);
/// Longest pause between attempts.
pub const BACKOFF_MAX: Duration = Duration::from_mins(2);
/// Time for which a link must be up to reset the pauses.
pub const SETTLED: Duration = Duration::from_secs(30);
/// Maximum number of connections from one address (for IPv6, from one /64) that have not shown a
/// key yet, or are still being closed.
pub const STRANGERS_PER_ADDRESS_MAX: usize = 16;
/// Maximum number of such connections from all addresses together.
pub const STRANGERS_MAX: usize = 256;

/// Returns whether a new connection to a member replaces the present one. For each connection, the
/// argument says whether this member has dialed it.
#[must_use]
pub fn replaces(me: MemberId, other: MemberId, old_is_ours: bool, new_is_ours: bool) -> bool {
    // An end that dials again has lost its old connection, even if this end has not noticed the
    // loss yet.
    old_is_ours == new_is_ours || new_is_ours == (me < other)
}

/// Pauses between attempts to connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Records a failure, and returns the pause before the next attempt. The pause doubles each
    /// time, up to [`BACKOFF_MAX`]. `lot`, a random number, selects a value from half of the pause
    /// to the whole pause, so that members that lost their links together do not all dial at once.
    pub fn handle_failed(&mut self, lot: u64) -> Duration {
        let wait = BACKOFF_MIN * 2u32.saturating_pow(self.failures.min(16));
        self.failures += 1;
        let half = wait.min(BACKOFF_MAX) / 2;
        let part = u64::try_from(half.as_micros()).unwrap_or(u64::MAX).max(1);
        half + Duration::from_micros(lot % part)
    }

    /// Records how long a link was up.
    pub fn handle_lasted(&mut self, lasted: Duration) {
        if SETTLED <= lasted {
            self.failures = 0;
        }
    }

    /// Returns how many attempts have failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// Counts incoming connections that have not shown a key.
#[derive(Clone, Debug, Default)]
pub struct Strangers {
    by_address: HashMap<IpAddr, usize>,
    all: usize,
}

impl Strangers {
    /// Admits a connection if there is room; returns whether it was admitted.
    pub fn enter(&mut self, address: IpAddr) -> bool {
        let address = network(address);
        let here = self.by_address.get(&address).copied().unwrap_or_default();
        if STRANGERS_MAX <= self.all || STRANGERS_PER_ADDRESS_MAX <= here {
            return false;
        }
        self.by_address.insert(address, here + 1);
        self.all += 1;
        true
    }

    /// Records that an admitted connection has shown its key, or has gone.
    pub fn leave(&mut self, address: IpAddr) {
        let address = network(address);
        if let Some(here) = self.by_address.get_mut(&address) {
            *here -= 1;
            self.all -= 1;
            if *here == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

/// Returns the address itself for IPv4, and its /64 for IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(it) => {
            let [a, b, c, d, ..] = it.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        it @ IpAddr::V4(_) => it,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_keep_the_same_connection() {
        let (small, large) = (MemberId(3), MemberId(8));
        for first_is_of_small in [true, false] {
            // Each end may see the two connections in either order, and describes them from its own
            // side.
            let kept = |me, other, seen_first_is_of_small: bool| {
                let is_ours = |is_of_small: bool| is_of_small == (me == small);
                let (old, new) =
                    (is_ours(seen_first_is_of_small), is_ours(!seen_first_is_of_small));
                if replaces(me, other, old, new) {
                    !seen_first_is_of_small
                } else {
                    seen_first_is_of_small
                }
            };
            assert!(kept(small, large, first_is_of_small));
            assert!(kept(large, small, first_is_of_small));
            assert!(replaces(small, large, first_is_of_small, first_is_of_small));
        }
    }

    #[test]
    fn attempts_become_rarer_and_are_spread() {
        let mut backoff = Backoff::default();
        let us = Duration::from_micros;
        for (lot, expected) in [(0, us(500_000)), (7, us(1_000_007)), (1_999_999, us(3_999_999))] {
            assert_eq!(backoff.handle_failed(lot), expected);
        }
        let last = (0..99).map(|lot| backoff.handle_failed(lot * 7_777_777)).last().unwrap();
        assert!((BACKOFF_MAX / 2..=BACKOFF_MAX).contains(&last));
        backoff.handle_lasted(SETTLED / 2);
        assert_eq!(backoff.failures(), 102);
        backoff.handle_lasted(SETTLED);
        assert_eq!(backoff.handle_failed(0), BACKOFF_MIN / 2);
    }

    #[test]
    fn one_address_cannot_take_all_the_room() {
        let mut strangers = Strangers::default();
        let address = |it: &str| it.parse::<IpAddr>().unwrap();
        let mut enter =
            |of: &dyn Fn(usize) -> IpAddr| (0..999).filter(|it| strangers.enter(of(*it))).count();
        assert_eq!(enter(&|it| address(&format!("2001:db8::{it:x}"))), STRANGERS_PER_ADDRESS_MAX);
        assert_eq!(enter(&|_| address("::ffff:192.0.2.1")), STRANGERS_PER_ADDRESS_MAX);
        assert_eq!(enter(&|_| address("192.0.2.1")), 0);
        let rest = STRANGERS_MAX - 2 * STRANGERS_PER_ADDRESS_MAX;
        assert_eq!(enter(&|it| address(&format!("10.0.{}.{}", it / 256, it % 256))), rest);
        strangers.leave(address("203.0.113.9"));
        assert!(!strangers.enter(address("203.0.113.9")));
        strangers.leave(address("192.0.2.1"));
        assert!(strangers.enter(address("203.0.113.9")));
    }
}
