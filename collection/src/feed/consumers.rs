//! The consumers of a feed and their versions: a purge names those that may have copies.
//!
//! They are kept in memory, up to a limit, and are forgotten when the daemon ends. A consumer's
//! name is its id (or, if it sends none, its software) together with its address.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{HeaderName, Request, header};
use net::clock;
use net::server::Peer;
use serde::{Deserialize, Serialize};

use crate::change::{Stamp, Version};
use crate::wire::CONSUMER;

/// Maximum number of consumers; a new one replaces the one whose last request is the oldest.
const CONSUMERS_MAX: usize = 10_000;
/// Maximum length of a consumer's name, in bytes; longer names are cut.
const NAME_BYTES_MAX: usize = 200;

/// A consumer of the feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumer {
    /// Its id or software, and its address.
    pub name: String,
    /// The version in its last request to `/feed`; epoch and serial are 0 if it sent none.
    pub version: String,
    /// The time of its last request, in Unix milliseconds.
    pub asked_ms: u64,
}

/// The consumers of a feed, shared by its requests.
#[derive(Debug)]
pub(crate) struct SharedConsumers(Mutex<Consumers>);

impl Default for SharedConsumers {
    fn default() -> Self {
        let known_since = Stamp(clock::now_ms());
        Self(Mutex::new(Consumers { known_since, ..Consumers::default() }))
    }
}

impl SharedConsumers {
    /// Records the version of the consumer that sent the request.
    pub(crate) fn note(&self, request: &Request<()>, version: Version) {
        let text = |name: HeaderName| request.headers().get(name).and_then(|it| it.to_str().ok());
        let name = text(CONSUMER).or_else(|| text(header::USER_AGENT)).unwrap_or("unnamed");
        let peer = request.extensions().get::<Peer>();
        let name = peer.map_or_else(|| name.to_owned(), |Peer(ip)| format!("{name} at {ip}"));
        self.consumers().note(&name, version, Stamp(clock::now_ms()));
    }

    /// Returns the consumers that may not have reached `version`, and the time since which all
    /// consumers are known, in Unix milliseconds.
    pub(crate) fn behind(&self, version: Version) -> (Vec<Consumer>, u64) {
        let consumers = self.consumers();
        (consumers.behind(version), consumers.known_since.0)
    }

    fn consumers(&self) -> MutexGuard<'_, Consumers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Consumers by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consumers {
    by_name: BTreeMap<String, (Version, Stamp)>,
    /// The time of each consumer's last request, oldest first.
    by_time: BTreeSet<(Stamp, String)>,
    /// All consumers since this time are known; earlier ones may be forgotten.
    known_since: Stamp,
}

impl Consumers {
    /// Records that a consumer has sent a request, and has everything up to `version`.
    pub(crate) fn note(&mut self, name: &str, version: Version, now: Stamp) {
        let mut end = name.len().min(NAME_BYTES_MAX);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let name = &name[..end];
        let before = self.by_name.insert(name.to_owned(), (version, now));
        if let Some((_, at)) = before {
            self.by_time.remove(&(at, name.to_owned()));
        }
        if CONSUMERS_MAX < self.by_name.len()
            && let Some((at, oldest)) = self.by_time.pop_first()
        {
            self.by_name.remove(&oldest);
            self.known_since = self.known_since.max(Stamp(at.0.saturating_add(1)));
        }
        self.by_time.insert((now, name.to_owned()));
    }

    /// Returns the consumers that may not have reached `version`, by name.
    pub(crate) fn behind(&self, version: Version) -> Vec<Consumer> {
        let is_behind = |it: &Version| it.epoch != version.epoch || it.serial < version.serial;
        let behind = self.by_name.iter().filter(|(_, (it, _))| is_behind(it));
        let consumer = |(name, (version, at)): (&String, &(Version, Stamp))| Consumer {
            name: name.clone(),
            version: version.to_string(),
            asked_ms: at.0,
        };
        behind.map(consumer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Epoch;

    fn version(epoch: u64, serial: u64) -> Version {
        Version { epoch: Epoch(epoch), serial }
    }

    #[test]
    fn names_the_consumers_that_are_behind() {
        let mut consumers = Consumers::default();
        consumers.note("a", version(1, 5), Stamp(1));
        consumers.note("b", version(1, 9), Stamp(2));
        consumers.note("c", version(0, 99), Stamp(3));
        let behind = |serial| -> Vec<String> {
            consumers.behind(version(1, serial)).into_iter().map(|it| it.name).collect()
        };
        assert_eq!(behind(9), ["a", "c"]);
        assert_eq!(behind(5), ["c"]);
        consumers.note("a", version(1, 9), Stamp(4));
        assert_eq!(consumers.behind(version(1, 9)).len(), 1);
    }

    #[test]
    fn the_consumer_that_was_away_longest_is_forgotten() {
        let mut consumers = Consumers::default();
        for n in 0..=CONSUMERS_MAX as u64 {
            consumers.note(&format!("{n} {}", "ä".repeat(NAME_BYTES_MAX)), version(1, 0), Stamp(n));
        }
        let all = consumers.behind(version(1, 1));
        assert_eq!(all.len(), CONSUMERS_MAX);
        assert!(all.iter().all(|it| it.asked_ms != 0 && it.name.len() <= NAME_BYTES_MAX));
        assert_eq!(consumers.by_time.len(), CONSUMERS_MAX);
    }

    #[test]
    fn a_report_starts_after_the_last_forgotten_consumer() {
        let consumers = Consumers { known_since: Stamp(5), ..Consumers::default() };
        let shared = SharedConsumers(Mutex::new(consumers));
        for n in 0..CONSUMERS_MAX as u64 {
            shared.consumers().note(&n.to_string(), version(1, 9), Stamp(10 + n));
        }
        assert_eq!(shared.behind(version(1, 9)), (Vec::new(), 5));
        shared.consumers().note("0", version(1, 9), Stamp(20_000));
        shared.consumers().note("another", version(1, 9), Stamp(20_001));
        // The consumer `1`, whose last request came at 11, was forgotten.
        assert_eq!(shared.behind(version(1, 9)), (Vec::new(), 12));
    }
}
