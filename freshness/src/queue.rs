//! Who is due: keys by the time at which they want to be looked at next.
//!
//! Source: Adly §4, the loop of OAP(θ).
//!
//! # Differences from the paper
//!
//! * The pseudo-code takes the source with the shortest *interval* next, which would pull the fastest
//!   source forever. What it means is the source that is due first.
//! * Times are given in from outside; nothing here waits.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, BTreeSet};

/// A queue of keys, each due once, ordered by due time and then by key.
#[derive(Clone, Debug)]
pub struct DueQueue<K> {
    due_of: BTreeMap<K, u64>,
    by_due: BTreeSet<(u64, K)>,
}

impl<K: Ord + Clone> Default for DueQueue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone> DueQueue<K> {
    /// A queue of nothing.
    pub fn new() -> Self {
        Self { due_of: BTreeMap::new(), by_due: BTreeSet::new() }
    }

    /// Makes `key` due at `due_ms`, in milliseconds of the caller's clock, in the place of when it was
    /// due before.
    pub fn schedule(&mut self, key: K, due_ms: u64) {
        if let Some(before) = self.due_of.insert(key.clone(), due_ms) {
            self.by_due.remove(&(before, key.clone()));
        }
        self.by_due.insert((due_ms, key));
    }

    /// Takes `key` out; false when it was not in.
    pub fn remove(&mut self, key: &K) -> bool {
        let Some(due) = self.due_of.remove(key) else { return false };
        self.by_due.remove(&(due, key.clone()))
    }

    /// Takes out the key that has been due longest at `now_ms`, if any is.
    pub fn poll_due(&mut self, now_ms: u64) -> Option<K> {
        if now_ms < self.next_due()? {
            return None;
        }
        let (_, key) = self.by_due.pop_first()?;
        self.due_of.remove(&key);
        Some(key)
    }

    /// When the next key is due, in milliseconds.
    pub fn next_due(&self) -> Option<u64> {
        self.by_due.first().map(|(due, _)| *due)
    }

    /// When `key` is due, in milliseconds.
    pub fn due(&self, key: &K) -> Option<u64> {
        self.due_of.get(key).copied()
    }

    /// How many keys are in the queue.
    pub fn len(&self) -> usize {
        self.due_of.len()
    }

    /// True when no key is in the queue.
    pub fn is_empty(&self) -> bool {
        self.due_of.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls at `now` until nothing is due.
    fn check(queue: &mut DueQueue<&str>, now: u64, expected: &str) {
        let mut seen = Vec::new();
        while let Some(key) = queue.poll_due(now) {
            seen.push(key);
        }
        assert_eq!(seen.join(" "), expected, "at {now}");
    }

    #[test]
    fn the_one_due_first_comes_first() {
        let mut queue = DueQueue::new();
        for (key, due) in [("b", 20), ("a", 20), ("c", 10), ("d", 30)] {
            queue.schedule(key, due);
        }
        check(&mut queue, 9, "");
        assert_eq!(queue.next_due(), Some(10));
        check(&mut queue, 20, "c a b");
        assert_eq!(queue.len(), 1);
        check(&mut queue, 99, "d");
        assert!(queue.is_empty());
    }

    #[test]
    fn a_key_is_due_once() {
        let mut queue = DueQueue::new();
        queue.schedule("a", 10);
        queue.schedule("a", 30);
        assert_eq!((queue.len(), queue.due(&"a")), (1, Some(30)));
        check(&mut queue, 20, "");
        assert!(queue.remove(&"a"));
        assert!(!queue.remove(&"a"));
        check(&mut queue, 99, "");
    }
}
