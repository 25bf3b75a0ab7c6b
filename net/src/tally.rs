//! Counters of what peers of a listener do, for the administrator.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An event of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection was accepted.
    Accepted,
    /// A connection or request was refused: its address has the maximum number already.
    Crowding,
    /// All connections were taken for more than 1 s, so that new ones had to wait.
    Waited,
    /// A peer sent a malformed request or TLS handshake, or a head that is too large.
    Malformed,
    /// A request was refused before the service saw it, for example: for another host, without a
    /// host, with an ambiguous length, or with a body that is too large.
    Refused,
    /// A peer was cut off: it took too long to send its request, or to read the answer.
    Slow,
    /// No connection could be accepted: the system had run out of sockets, files or memory.
    Shortage,
}

impl Event {
    /// All events, with their names in metrics and status.
    const ALL: [(Self, &'static str); 7] = [
        (Self::Accepted, "accepted"),
        (Self::Crowding, "crowding"),
        (Self::Waited, "waited"),
        (Self::Malformed, "malformed"),
        (Self::Refused, "refused"),
        (Self::Slow, "slow"),
        (Self::Shortage, "shortage"),
    ];
}

/// Counters of events. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<[AtomicU64; Event::ALL.len()]>);

impl Tally {
    /// Returns how often `event` has happened since the start.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.0[event as usize].load(Ordering::Relaxed)
    }

    /// Returns every event's name with its count.
    #[must_use]
    pub fn counts(&self) -> [(&'static str, u64); Event::ALL.len()] {
        Event::ALL.map(|(event, name)| (name, self.count(event)))
    }

    pub(crate) fn add(&self, event: Event) {
        self.0[event as usize].fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_counted_by_itself_and_clones_count_together() {
        let tally = Tally::default();
        for (at, (event, _)) in Event::ALL.into_iter().enumerate() {
            (0..=at).for_each(|_| tally.clone().add(event));
        }
        let counts = Event::ALL.map(|(event, _)| tally.count(event));
        assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(tally.counts()[1], ("crowding", 2));
    }
}
