//! Who is due: small numbers by the time at which they want to be looked at next.
//!
//! Source: Adly §4, the loop of OAP(θ).
//!
//! A heap that knows where each number is: a change takes O(log M) steps, and all of them together O(M).
//!
//! # Differences from the paper
//!
//! * The pseudo-code takes the source with the shortest *interval* next, which would pull the fastest
//!   source forever. What it means is the source that is due first.
//! * Times are given in from outside; nothing here waits.
//!
//! Sans-I/O.

/// Where a number that is not in the queue is.
const NOWHERE: u32 = u32::MAX;
/// Children of a node: four lie in one cache line.
const CHILDREN: usize = 4;

/// What a number takes that is in one of two queues, bytes: a place in both, and a node.
#[cfg(test)]
pub(crate) const KEY_BYTES: usize = 2 * size_of::<u32>() + size_of::<Due>();

/// A queue of numbers, each due once, ordered by due time and then by number.
///
/// The numbers are indices: what it takes of memory goes with the largest.
#[derive(Clone, Debug, Default)]
pub struct DueQueue {
    heap: Vec<Due>,
    /// By number: its place in the heap.
    places: Vec<u32>,
}

/// In the order in which they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ms: u64,
    key: u32,
}

impl DueQueue {
    /// A queue of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `key` due at `due_ms`, in milliseconds of the caller's clock, in the place of when it was
    /// due before.
    pub fn schedule(&mut self, key: u32, due_ms: u64) {
        let due = Due { at_ms: due_ms, key };
        let place = match self.place(key) {
            Some(place) => {
                self.heap[place] = due;
                place
            }
            None => self.push(due),
        };
        self.settle(place);
    }

    /// Makes keys due that are not in the queue yet, or due at another time, all at once.
    pub fn schedule_all(&mut self, dues: impl IntoIterator<Item = (u32, u64)>) {
        for (key, at_ms) in dues {
            let due = Due { at_ms, key };
            match self.place(key) {
                Some(place) => self.heap[place] = due,
                None => {
                    self.push(due);
                }
            }
        }
        for place in (0..self.heap.len().div_ceil(CHILDREN)).rev() {
            self.sink(place);
        }
    }

    /// Makes these keys due and no others. What memory there is, is used again.
    pub fn replace(&mut self, dues: impl IntoIterator<Item = (u32, u64)>) {
        self.heap.clear();
        self.places.fill(NOWHERE);
        self.schedule_all(dues);
    }

    /// Makes room for `keys` in all, numbered below `end`, and no more.
    pub fn reserve_exact(&mut self, keys: usize, end: usize) {
        self.heap.reserve_exact(keys.saturating_sub(self.heap.len()));
        if 0 < keys {
            self.places.reserve_exact(end.saturating_sub(self.places.len()));
        }
    }

    /// Takes `key` out; false when it was not in.
    pub fn remove(&mut self, key: u32) -> bool {
        let Some(place) = self.place(key) else { return false };
        self.take(place);
        true
    }

    /// Takes out the key that has been due longest at `now_ms`, if any is.
    pub fn poll_due(&mut self, now_ms: u64) -> Option<u32> {
        if now_ms < self.next_due()? {
            return None;
        }
        Some(self.take(0).key)
    }

    /// When the next key is due, in milliseconds.
    pub fn next_due(&self) -> Option<u64> {
        self.heap.first().map(|due| due.at_ms)
    }

    /// When `key` is due, in milliseconds.
    pub fn due(&self, key: u32) -> Option<u64> {
        Some(self.heap[self.place(key)?].at_ms)
    }

    /// How many keys are in the queue.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True when no key is in the queue.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn place(&self, key: u32) -> Option<usize> {
        let place = *self.places.get(key as usize)?;
        (place != NOWHERE).then_some(place as usize)
    }

    /// Puts a key at the end and returns its place.
    fn push(&mut self, due: Due) -> usize {
        let key = due.key as usize;
        if self.places.len() <= key {
            self.places.resize(key + 1, NOWHERE);
        }
        let place = self.heap.len();
        self.heap.push(due);
        self.note(place);
        place
    }

    fn take(&mut self, place: usize) -> Due {
        let taken = self.heap.swap_remove(place);
        self.places[taken.key as usize] = NOWHERE;
        if place < self.heap.len() {
            self.note(place);
            self.settle(place);
        }
        taken
    }

    /// Takes what is at `place` to where it belongs.
    fn settle(&mut self, place: usize) {
        let place = self.rise(place);
        self.sink(place);
    }

    fn rise(&mut self, mut place: usize) -> usize {
        while 0 < place {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent] <= self.heap[place] {
                break;
            }
            self.swap(parent, place);
            place = parent;
        }
        place
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let first = place * CHILDREN + 1;
            let children = first..(first + CHILDREN).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.heap[*child]) else { break };
            if self.heap[place] <= self.heap[least] {
                break;
            }
            self.swap(place, least);
            place = least;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.note(one);
        self.note(other);
    }

    /// Writes down who is at `place`.
    fn note(&mut self, place: usize) {
        // A key is below the largest number, and there are no more places than keys.
        self.places[self.heap[place].key as usize] = u32::try_from(place).unwrap_or(NOWHERE);
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
        let mut queue = DueQueue::new();
        for (key, due) in [(2, 20), (1, 20), (3, 10), (4, 30)] {
            queue.schedule(key, due);
        }
        check(&mut queue, 9, &[]);
        assert_eq!(queue.next_due(), Some(10));
        check(&mut queue, 20, &[3, 1, 2]);
        assert_eq!(queue.len(), 1);
        check(&mut queue, 99, &[4]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_key_is_due_once() {
        let mut queue = DueQueue::new();
        queue.schedule(7, 10);
        queue.schedule(7, 30);
        assert_eq!((queue.len(), queue.due(7), queue.due(6)), (1, Some(30), None));
        check(&mut queue, 20, &[]);
        assert!(queue.remove(7));
        assert!(!queue.remove(7));
        check(&mut queue, 99, &[]);
    }

    proptest! {
        /// Whatever is done, it holds what a map would, in order.
        #[test]
        fn it_is_a_map_in_the_order_of_due_times(
            steps in prop::collection::vec(
                (0..4_u8, prop::collection::vec((0..40_u32, 0..100_u64), 1..20)), 0..60,
            ),
        ) {
            let (mut queue, mut model) = (DueQueue::new(), BTreeMap::new());
            for (kind, dues) in steps {
                let (key, at_ms) = dues[0];
                match kind {
                    0 => {
                        queue.schedule(key, at_ms);
                        model.insert(key, at_ms);
                    }
                    1 => {
                        queue.schedule_all(dues.iter().copied());
                        model.extend(dues);
                    }
                    2 if at_ms == 0 => {
                        queue.replace(dues.iter().copied());
                        model = dues.into_iter().collect();
                    }
                    2 => prop_assert_eq!(queue.remove(key), model.remove(&key).is_some()),
                    _ => {
                        let next = model.iter().map(|(key, at)| (*at, *key)).min();
                        let next = next.filter(|(at, _)| *at <= at_ms).map(|(_, key)| key);
                        prop_assert_eq!(queue.poll_due(at_ms), next);
                        next.map(|key| model.remove(&key));
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.next_due(), model.values().min().copied());
                prop_assert_eq!(queue.due(key), model.get(&key).copied());
            }
        }
    }
}
