//! Requests to one host, one after the other: repositories share hosts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many hosts are remembered before those are forgotten that may be asked at once.
const HOSTS_MANY: usize = 1_024;

/// When each host may be asked next. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    next: Arc<Mutex<HashMap<String, Instant>>>,
}

impl Hosts {
    /// Takes the next turn at a host, and keeps it free for `delay` after that; returns how long it is
    /// until then.
    pub fn turn(&self, host: &str, delay: Duration, now: Instant) -> Duration {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if HOSTS_MANY <= next.len() {
            next.retain(|_, at| now < *at);
        }
        let turn = next.get(host).map_or(now, |it| now.max(*it));
        next.insert(host.to_owned(), turn + delay);
        turn - now
    }
}

#[cfg(test)]
mod tests {
    use net::clock;

    use super::*;

    #[test]
    fn turns_at_a_host_are_apart_whoever_takes_them() {
        let (hosts, now) = (Hosts::default(), clock::monotonic());
        let secs = Duration::from_secs;
        let other = hosts.clone();
        assert_eq!(hosts.turn("a", secs(2), now), secs(0));
        assert_eq!(other.turn("a", secs(2), now), secs(2));
        assert_eq!(hosts.turn("a", secs(2), now + secs(1)), secs(3));
        assert_eq!(hosts.turn("b", secs(2), now), secs(0));
        assert_eq!(hosts.turn("a", secs(2), now + secs(100)), secs(0));
    }

    #[test]
    fn no_more_hosts_are_remembered_than_may_not_be_asked() {
        let (hosts, now) = (Hosts::default(), clock::monotonic());
        let secs = Duration::from_secs;
        for n in 0..5_000_u32 {
            hosts.turn(&n.to_string(), secs(1), now + secs(2) * n);
        }
        assert!(hosts.next.lock().unwrap().len() <= HOSTS_MANY);
    }
}
