//! Running pulls and their slots.
//!
//! A slot is for a pull that makes progress. A long pull gives up its slot and goes on without one,
//! so that sources that send a byte now and then do not block the others. The number of all such
//! pulls is limited. Pulls of followed sources need no slot.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::task::Id;

use crate::schedule::Due;

/// Maximum number of pulls that have a slot at the same time; further pulls wait in the order of
/// their due times.
pub(crate) const PULLS_AT_ONCE: usize = 16;

/// Maximum number of pulls at the same time that have a slot or have given it up.
pub(crate) const PULLS_MAX: usize = 64;

/// Running pulls, by their tasks.
#[derive(Debug)]
pub(crate) struct RunningPulls {
    pulls: BTreeMap<Id, (Due, Instant)>,
    slot_max: Duration,
}

impl RunningPulls {
    /// Returns an empty set; a pull keeps its slot for at most `slot_max`.
    pub(crate) fn new(slot_max: Duration) -> Self {
        Self { pulls: BTreeMap::new(), slot_max }
    }

    pub(crate) fn begin(&mut self, id: Id, due: Due, now: Instant) {
        self.pulls.insert(id, (due, now));
    }

    pub(crate) fn end(&mut self, id: Id) -> Option<Due> {
        self.pulls.remove(&id).map(|(due, _)| due)
    }

    pub(crate) fn has_slot(&self, now: Instant) -> bool {
        let all = self.pulls.values().filter(|(due, _)| due.slot).count();
        all < PULLS_MAX && self.left(now).count() < PULLS_AT_ONCE
    }

    /// Returns the time until the next slot is given up; `None` if no slot is taken.
    pub(crate) fn next_slot(&self, now: Instant) -> Option<Duration> {
        self.left(now).min()
    }

    /// Returns, for each taken slot, the time until it is given up.
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

    async fn begin(running: &mut RunningPulls, count: usize, slot: bool, now: Instant) {
        for _ in 0..count {
            let task = tokio::spawn(std::future::ready(()));
            let due = Due { source: "s".to_owned(), wait: false, slot };
            running.begin(task.id(), due, now);
            task.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_slot_is_given_up_in_time_and_long_polls_take_none() {
        let (mut running, now) = (RunningPulls::new(3 * SECOND), net::clock::monotonic());
        begin(&mut running, PULLS_MAX, false, now).await;
        begin(&mut running, PULLS_AT_ONCE - 1, true, now).await;
        assert!(running.has_slot(now));
        begin(&mut running, 1, true, now + SECOND).await;
        assert!(!running.has_slot(now + SECOND));
        assert_eq!(running.next_slot(now + SECOND), Some(2 * SECOND));
        assert!(running.has_slot(now + 3 * SECOND));
        begin(&mut running, PULLS_MAX - PULLS_AT_ONCE, true, now).await;
        assert!(!running.has_slot(now + 100 * SECOND), "the number of pulls is limited");
    }
}
