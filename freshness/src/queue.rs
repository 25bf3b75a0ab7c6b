//! The due-queue: small numbers in the order of their due times.
//!
//! Source: Adly §4, the loop of OAP(θ).
//!
//! A heap that knows the position of each number: changing one takes O(log M) steps, and changing
//! all together O(M).
//!
//! # Differences from the paper
//!
//! * The pseudo-code takes the source with the shortest *interval* next, which would pull the
//!   fastest source forever. We take the source that is due first.
//! * The caller gives the times; nothing here waits.
//!
//! Sans-I/O.

/// Position of a number that is not in the queue.
const NOWHERE: u32 = u32::MAX;
/// Children of a node; four fit in one cache line.
const CHILDREN: usize = 4;

/// Memory of a number that is in one of two queues, in bytes: a position in each, and a node.
#[cfg(test)]
pub(crate) const KEY_BYTES: usize = 2 * size_of::<u32>() + size_of::<Node>();

/// A queue of numbers, each due once, ordered by due time and then by number.
///
/// The numbers are indices; memory grows with the largest number.
#[derive(Clone, Debug, Default)]
pub struct DueQueue {
    heap: Vec<Node>,
    /// By number: its position in the heap.
    positions: Vec<u32>,
}

/// A node; nodes are in the order in which they are taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    at_ms: u64,
    key: u32,
}

impl DueQueue {
    /// Makes `key` due at `due_ms`, in milliseconds of the caller's clock, and at no other time.
    pub fn schedule(&mut self, key: u32, due_ms: u64) {
        let node = Node { at_ms: due_ms, key };
        let position = match self.position(key) {
            Some(position) => {
                self.heap[position] = node;
                position
            }
            None => self.push(node),
        };
        self.settle(position);
    }

    /// Makes these keys due and no others. Memory is reused.
    pub fn replace(&mut self, due_times: impl IntoIterator<Item = (u32, u64)>) {
        self.heap.clear();
        self.positions.fill(NOWHERE);
        for (key, at_ms) in due_times {
            let node = Node { at_ms, key };
            match self.position(key) {
                Some(position) => self.heap[position] = node,
                None => {
                    self.push(node);
                }
            }
        }
        for position in (0..self.heap.len().div_ceil(CHILDREN)).rev() {
            self.sink(position);
        }
    }

    /// Reserves memory for a total of `keys` keys below `end`, and no more.
    pub fn reserve_exact(&mut self, keys: usize, end: usize) {
        self.heap.reserve_exact(keys.saturating_sub(self.heap.len()));
        if 0 < keys {
            self.positions.reserve_exact(end.saturating_sub(self.positions.len()));
        }
    }

    /// Takes `key` out; false if it was not in the queue.
    pub fn remove(&mut self, key: u32) -> bool {
        let Some(position) = self.position(key) else { return false };
        self.take(position);
        true
    }

    /// Takes out the key that has been due longest at `now_ms`; `None` if no key is due.
    pub fn poll_due(&mut self, now_ms: u64) -> Option<u32> {
        if now_ms < self.next_due()? {
            return None;
        }
        Some(self.take(0).key)
    }

    /// Returns the due time of the next key, in milliseconds; `None` if the queue is empty.
    pub fn next_due(&self) -> Option<u64> {
        self.heap.first().map(|node| node.at_ms)
    }

    /// Returns the due time of `key`, in milliseconds; `None` if it is not in the queue.
    pub fn due(&self, key: u32) -> Option<u64> {
        Some(self.heap[self.position(key)?].at_ms)
    }

    fn position(&self, key: u32) -> Option<usize> {
        let position = *self.positions.get(key as usize)?;
        (position != NOWHERE).then_some(position as usize)
    }

    /// Adds a key at the end; returns its position.
    fn push(&mut self, node: Node) -> usize {
        let key = node.key as usize;
        if self.positions.len() <= key {
            self.positions.resize(key + 1, NOWHERE);
        }
        let position = self.heap.len();
        self.heap.push(node);
        self.note(position);
        position
    }

    fn take(&mut self, position: usize) -> Node {
        let taken = self.heap.swap_remove(position);
        self.positions[taken.key as usize] = NOWHERE;
        if position < self.heap.len() {
            self.note(position);
            self.settle(position);
        }
        taken
    }

    /// Moves the node at `position` to its right position.
    fn settle(&mut self, position: usize) {
        let position = self.rise(position);
        self.sink(position);
    }

    fn rise(&mut self, mut position: usize) -> usize {
        while 0 < position {
            let parent = (position - 1) / CHILDREN;
            if self.heap[parent] <= self.heap[position] {
                break;
            }
            self.swap(parent, position);
            position = parent;
        }
        position
    }

    fn sink(&mut self, mut position: usize) {
        loop {
            let first = position * CHILDREN + 1;
            let children = first..(first + CHILDREN).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.heap[*child]) else { break };
            if self.heap[position] <= self.heap[least] {
                break;
            }
            self.swap(position, least);
            position = least;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.note(one);
        self.note(other);
    }

    /// Records the position of the node at `position`.
    fn note(&mut self, position: usize) {
        // A key is below the largest number, and there are no more positions than keys.
        self.positions[self.heap[position].key as usize] =
            u32::try_from(position).unwrap_or(NOWHERE);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Polls at `now` until nothing is due.
    fn check(queue: &mut DueQueue, now: u64, expected: &[u32]) {
        let mut seen = Vec::new();
        while let Some(key) = queue.poll_due(now) {
            seen.push(key);
        }
        assert_eq!(seen, expected, "at {now}");
    }

    #[test]
    fn the_one_due_first_comes_first() {
        let mut queue = DueQueue::default();
        for (key, due) in [(2, 20), (1, 20), (3, 10), (4, 30)] {
            queue.schedule(key, due);
        }
        check(&mut queue, 9, &[]);
        assert_eq!(queue.next_due(), Some(10));
        check(&mut queue, 20, &[3, 1, 2]);
        assert_eq!(queue.heap.len(), 1);
        check(&mut queue, 99, &[4]);
        assert!(queue.heap.is_empty());
    }

    #[test]
    fn a_key_is_due_once() {
        let mut queue = DueQueue::default();
        queue.schedule(7, 10);
        queue.schedule(7, 30);
        assert_eq!((queue.heap.len(), queue.due(7), queue.due(6)), (1, Some(30), None));
        check(&mut queue, 20, &[]);
        assert!(queue.remove(7));
        assert!(!queue.remove(7));
        check(&mut queue, 99, &[]);
    }

    proptest! {
        /// The queue always holds the entries of a map, in order.
        #[test]
        fn it_is_a_map_in_the_order_of_due_times(
            steps in prop::collection::vec(
                (0..3_u8, prop::collection::vec((0..40_u32, 0..100_u64), 1..20)), 0..60,
            ),
        ) {
            let (mut queue, mut model) = (DueQueue::default(), BTreeMap::new());
            for (kind, dues) in steps {
                let (key, at_ms) = dues[0];
                match kind {
                    0 => {
                        queue.schedule(key, at_ms);
                        model.insert(key, at_ms);
                    }
                    1 if at_ms == 0 => {
                        queue.replace(dues.iter().copied());
                        model = dues.into_iter().collect();
                    }
                    1 => prop_assert_eq!(queue.remove(key), model.remove(&key).is_some()),
                    _ => {
                        let next = model.iter().map(|(key, at)| (*at, *key)).min();
                        let next = next.filter(|(at, _)| *at <= at_ms).map(|(_, key)| key);
                        prop_assert_eq!(queue.poll_due(at_ms), next);
                        next.map(|key| model.remove(&key));
                    }
                }
                prop_assert_eq!(queue.heap.len(), model.len());
                prop_assert_eq!(queue.next_due(), model.values().min().copied());
                prop_assert_eq!(queue.due(key), model.get(&key).copied());
            }
        }
    }
}
