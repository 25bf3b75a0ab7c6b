//! The pulls under way: who takes a slot, and for how long.
//!
//! A slot is for a pull that gets on. One that has taken long gives it up and goes on beside the
//! others, up to a bound: sources that send a byte now and then must not keep the rest waiting.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::task::Id;

use crate::schedule::Due;

/// Scheduled pulls at once; further ones wait for their turn in order of their due times.
pub(crate) const PULLS_AT_ONCE: usize = 16;

/// Scheduled pulls at once, those that have given up their slots included.
pub(crate) const PULLS_MAX: usize = 64;

/// Pulls under way, by their tasks.
#[derive(Debug)]
pub(crate) struct UnderWay {
    pulls: BTreeMap<Id, (Due, Instant)>,
    slot_max: Duration,
}

impl UnderWay {
    /// Returns none; a pull keeps its slot for `slot_max` at most.
    pub(crate) fn new(slot_max: Duration) -> Self {
        Self { pulls: BTreeMap::new(), slot_max }
    }

    pub(crate) fn begin(&mut self, id: Id, due: Due, now: Instant) {
        self.pulls.insert(id, (due, now));
    }

    pub(crate) fn end(&mut self, id: Id) -> Option<Due> {
        self.pulls.remove(&id).map(|(due, _)| due)
    }

    /// Whether one more pull may take a slot.
    pub(crate) fn has_slot(&self, now: Instant) -> bool {
        let all = self.pulls.values().filter(|(due, _)| due.slot).count();
        all < PULLS_MAX && self.left(now).count() < PULLS_AT_ONCE
    }

    /// Returns how long it takes until a slot is given up.
    pub(crate) fn next_slot(&self, now: Instant) -> Option<Duration> {
        self.left(now).min()
    }

    /// How much longer each slot that is taken may be kept.
    fn left(&self, now: Instant) -> impl Iterator<Item = Duration> {
        self.pulls.values().filter(|(due, _)| due.slot).filter_map(move |(_, began)| {
            let left = self.slot_max.saturating_sub(now.saturating_duration_since(*began));
            (!left.is_zero()).then_some(left)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Begins `count` pulls at `now`.
    async fn begin(under_way: &mut UnderWay, count: usize, slot: bool, now: Instant) {
        for _ in 0..count {
            let task = tokio::spawn(std::future::ready(()));
            let due = Due { source: "s".to_owned(), wait: false, slot };
            under_way.begin(task.id(), due, now);
            task.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_slot_is_given_up_in_time_and_long_polls_take_none() {
        let (mut under_way, now) = (UnderWay::new(3 * SECOND), net::clock::monotonic());
        begin(&mut under_way, PULLS_MAX, false, now).await;
        begin(&mut under_way, PULLS_AT_ONCE - 1, true, now).await;
        assert!(under_way.has_slot(now));
        begin(&mut under_way, 1, true, now + SECOND).await;
        assert!(!under_way.has_slot(now + SECOND));
        assert_eq!(under_way.next_slot(now + SECOND), Some(2 * SECOND));
        assert!(under_way.has_slot(now + 3 * SECOND));
        begin(&mut under_way, PULLS_MAX - PULLS_AT_ONCE, true, now).await;
        assert!(!under_way.has_slot(now + 100 * SECOND), "there is an end to it");
    }
}
