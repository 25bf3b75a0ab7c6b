//! Rate limit: how often strangers can make the hub contact a host.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

/// Span of a count, milliseconds (a minute).
const SPAN_MS: u64 = 60_000;

/// Maximum number of hosts that are counted in a minute. Once it is reached, no other host is
/// asked.
const HOSTS_MAX: usize = 10_000;

/// Requests of this minute by host.
#[derive(Debug, Default)]
pub(super) struct Pace {
    since_ms: u64,
    counts: BTreeMap<String, u32>,
}

impl Pace {
    /// Counts a request to verify; returns false if the host has reached its limit.
    pub(super) fn handle(&mut self, host: &str, per_minute_max: u32, now_ms: u64) -> bool {
        if !(self.since_ms..self.since_ms.saturating_add(SPAN_MS)).contains(&now_ms) {
            (self.since_ms, self.counts) = (now_ms, BTreeMap::new());
        }
        if self.counts.len() == HOSTS_MAX && !self.counts.contains_key(host) {
            return false;
        }
        let count = self.counts.entry(host.to_owned()).or_default();
        let admits = *count < per_minute_max;
        *count += u32::from(admits);
        admits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_counts_each_host_alone() {
        let mut pace = Pace::default();
        for (host, now_ms, admits) in [
            ("a", 100, true),
            ("a", 101, true),
            ("a", 102, false),
            ("b", 103, true),
            ("a", 59_999, false),
            ("a", 60_000, true),
            ("a", 5, true),
        ] {
            assert_eq!(pace.handle(host, 2, now_ms), admits, "{host} at {now_ms}");
        }
        for n in 0..HOSTS_MAX {
            pace.handle(&n.to_string(), 2, 6);
        }
        assert!(!pace.handle("other", 2, 6) && pace.handle("a", 2, 6));
        assert_eq!(pace.counts.len(), HOSTS_MAX);
    }
}
