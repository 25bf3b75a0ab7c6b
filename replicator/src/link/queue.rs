//! The send queue of one link.
//!
//! Control messages are sent first, then chunks: more urgent classes before less urgent ones, and
//! each class in the order of requests. So a small update that comes later overtakes a large one
//! under way, with at most one chunk in between.
//!
//! Nothing waits for ever. One of every [`TURNS`] chunks is of a less urgent class, if such a chunk
//! waits, and these classes take turns. After [`STEERING_BYTES_MAX`] of messages in a row one chunk
//! is sent.
//!
//! Sans-I/O.

use std::collections::VecDeque;

use bytes::Bytes;

/// Number of classes; a greater class number counts as the last class.
pub const CLASSES: usize = 4;
/// Maximum number of bytes of chunks that wait in a class and all more urgent ones together. So the
/// chunks of the whole queue have at most [`CLASSES`] times this number of bytes.
pub const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Maximum number of chunks that wait in one class.
pub const CHUNKS_MAX: usize = 1_024;
/// Maximum number of bytes of waiting messages, without chunks.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of waiting messages, without chunks.
pub const MESSAGES_MAX: usize = 8_192;
/// One of this number of chunks is of a less urgent class, if such a chunk waits.
pub const TURNS: u32 = 8;
/// Bytes of messages in a row after which one chunk is sent.
pub const STEERING_BYTES_MAX: usize = 256 << 10;

/// There is no room. Try again when something has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the link has more to send than it can hold")]
pub struct Full;

#[derive(Debug, Default)]
struct Class {
    chunks: VecDeque<([u8; 32], Bytes)>,
    bytes: usize,
}

/// The messages and chunks that wait to be sent over one link.
#[derive(Debug, Default)]
pub struct Queue {
    messages: VecDeque<Bytes>,
    message_bytes: usize,
    classes: [Class; CLASSES],
    /// Bytes of messages sent since the last chunk.
    steering: usize,
    /// Number of chunks sent since the last turn of a less urgent class, while such classes waited.
    passed: u32,
    /// The less urgent class that had the last turn.
    turn: usize,
}

impl Queue {
    /// Adds a message that is not a chunk.
    ///
    /// # Errors
    ///
    /// There is no room, because the other end reads too slowly. Drop messages that can be
    /// repeated, or close the link.
    pub fn push(&mut self, message: Bytes) -> Result<(), Full> {
        let bytes = self.message_bytes + message.len();
        if MESSAGE_BYTES_MAX < bytes || MESSAGES_MAX <= self.messages.len() {
            return Err(Full);
        }
        self.message_bytes = bytes;
        self.messages.push_back(message);
        Ok(())
    }

    /// Adds a message with the chunk of this hash.
    ///
    /// # Errors
    ///
    /// There is no room in this class. Try again when something has been sent.
    pub fn push_chunk(&mut self, class: u8, hash: [u8; 32], message: Bytes) -> Result<(), Full> {
        let class = usize::from(class).min(CLASSES - 1);
        let before: usize = self.classes.iter().take(class + 1).map(|it| it.bytes).sum();
        let Some(class) = self.classes.get_mut(class) else { return Err(Full) };
        if CHUNK_BYTES_MAX < before + message.len() || CHUNKS_MAX <= class.chunks.len() {
            return Err(Full);
        }
        class.bytes += message.len();
        class.chunks.push_back((hash, message));
        Ok(())
    }

    /// Cancels the chunk of this hash. Returns whether it was still waiting.
    pub fn cancel(&mut self, hash: &[u8; 32]) -> bool {
        for class in &mut self.classes {
            let place = class.chunks.iter().position(|it| it.0 == *hash);
            if let Some((_, message)) = place.and_then(|it| class.chunks.remove(it)) {
                class.bytes -= message.len();
                return true;
            }
        }
        false
    }

    /// Removes and returns the next message to send; `None` if nothing waits.
    #[expect(clippy::should_implement_trait, reason = "None does not end it: more may come")]
    pub fn next(&mut self) -> Option<Bytes> {
        let has_chunks = self.classes.iter().any(|it| !it.chunks.is_empty());
        if (self.steering < STEERING_BYTES_MAX || !has_chunks)
            && let Some(message) = self.messages.pop_front()
        {
            self.message_bytes -= message.len();
            self.steering = self.steering.saturating_add(message.len());
            return Some(message);
        }
        self.steering = 0;
        let class = self.next_class()?;
        let class = self.classes.get_mut(class)?;
        let (_, message) = class.chunks.pop_front()?;
        class.bytes -= message.len();
        Some(message)
    }

    /// Returns the class of the next chunk; `None` if none waits.
    fn next_class(&mut self) -> Option<usize> {
        let waits = |it: &usize| self.classes.get(*it).is_some_and(|it| !it.chunks.is_empty());
        let first = (0..CLASSES).find(waits)?;
        // The next waiting class after the last one that had a turn, cyclically.
        let mut others = (self.turn + 1..CLASSES).chain(0..=self.turn);
        let Some(other) = others.find(|it| first < *it && waits(it)) else {
            self.passed = 0;
            return Some(first);
        };
        self.passed += 1;
        if self.passed < TURNS {
            return Some(first);
        }
        self.passed = 0;
        self.turn = other;
        Some(other)
    }

    /// Returns whether at least half of each bound is free.
    pub fn has_room(&self) -> bool {
        let bytes: usize = self.classes.iter().map(|it| it.bytes).sum();
        bytes <= CHUNK_BYTES_MAX / 2
            && self.classes.iter().all(|it| it.chunks.len() <= CHUNKS_MAX / 2)
            && self.message_bytes <= MESSAGE_BYTES_MAX / 2
            && self.messages.len() <= MESSAGES_MAX / 2
    }

    /// Returns how many bytes of messages and chunks wait.
    pub fn bytes(&self) -> usize {
        self.message_bytes + self.classes.iter().map(|it| it.bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hash(of: usize) -> [u8; 32] {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&of.to_le_bytes());
        hash
    }

    fn chunk(class: u8, number: u8) -> Bytes {
        Bytes::copy_from_slice(&[b'c', class, number])
    }

    fn all(queue: &mut Queue) -> Vec<Bytes> {
        std::iter::from_fn(|| queue.next()).collect()
    }

    #[test]
    fn messages_go_before_chunks_and_small_updates_before_large_ones() {
        let mut queue = Queue::default();
        for (number, class) in [(0, 3), (1, 3), (2, 1), (3, 9), (4, 1)] {
            queue.push_chunk(class, hash(number.into()), chunk(class, number)).unwrap();
        }
        queue.push(Bytes::from_static(b"m")).unwrap();
        assert_eq!(queue.bytes(), 16);
        let expected = [
            Bytes::from_static(b"m"),
            chunk(1, 2),
            chunk(1, 4),
            chunk(3, 0),
            chunk(3, 1),
            chunk(9, 3),
        ];
        assert_eq!(all(&mut queue), expected);
        assert!(queue.next().is_none() && queue.bytes() == 0);
    }

    #[test]
    fn canceled_chunks_are_not_sent() {
        let mut queue = Queue::default();
        for number in 0..3 {
            queue.push_chunk(2, hash(number.into()), chunk(2, number)).unwrap();
        }
        assert!(queue.cancel(&hash(1)) && !queue.cancel(&hash(1)));
        assert_eq!(all(&mut queue), [chunk(2, 0), chunk(2, 2)]);
        assert!(!queue.cancel(&hash(0)));
    }

    #[test]
    fn less_urgent_classes_get_their_turns() {
        let mut queue = Queue::default();
        for number in 0..100 {
            queue.push_chunk(0, hash(number), chunk(0, 0)).unwrap();
            queue.push_chunk(2, hash(number + 100), chunk(2, 0)).unwrap();
            queue.push_chunk(3, hash(number + 200), chunk(3, 0)).unwrap();
        }
        let order: Vec<u8> = all(&mut queue).iter().map(|it| it[1]).collect();
        assert_eq!(order[..16], [0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3]);
        for row in order[..96].chunks(8) {
            assert_eq!(row.iter().filter(|it| **it == 0).count(), 7);
        }
    }

    #[test]
    fn endless_messages_leave_chunks_a_turn() {
        let mut queue = Queue::default();
        queue.push_chunk(0, hash(0), chunk(0, 0)).unwrap();
        let message = Bytes::from(vec![0; 1_000]);
        let mut sent = 0;
        loop {
            queue.push(message.clone()).unwrap();
            if queue.next().unwrap() == chunk(0, 0) {
                break;
            }
            sent += message.len();
        }
        assert!((STEERING_BYTES_MAX..STEERING_BYTES_MAX + 1_000).contains(&sent), "{sent}");
    }

    #[test]
    fn a_large_update_leaves_room_for_a_small_one() {
        let mut queue = Queue::default();
        let large = Bytes::from(vec![0; 64 << 10]);
        let mut pushed = 0;
        while queue.push_chunk(3, hash(pushed), large.clone()).is_ok() {
            pushed += 1;
        }
        assert_eq!(pushed, CHUNK_BYTES_MAX / large.len());
        assert_eq!(queue.push_chunk(0, hash(99), large), Ok(()));
        let message = Bytes::from(vec![0; 256 << 10]);
        while queue.push(message.clone()).is_ok() {}
        assert!(queue.bytes() <= CHUNK_BYTES_MAX + (64 << 10) + MESSAGE_BYTES_MAX);
        let mut small = 0;
        while queue.push_chunk(1, hash(small), Bytes::new()).is_ok() {
            small += 1;
        }
        assert_eq!(small, CHUNKS_MAX);
        assert!(!queue.has_room());
        while CHUNK_BYTES_MAX / 2 < queue.bytes() {
            assert!(!queue.has_room());
            queue.next();
        }
        while CHUNKS_MAX / 2 < queue.classes[1].chunks.len() {
            queue.next();
        }
        assert!(queue.has_room());
    }

    proptest! {
        /// Checks that a chunk of the most urgent class is sent after at most one other chunk, no
        /// matter which chunks wait and were sent before.
        #[test]
        fn a_small_update_overtakes(
            classes in prop::collection::vec(0u8..4, 1..200),
            taken in 0usize..200,
        ) {
            let mut queue = Queue::default();
            for (number, class) in classes.iter().enumerate() {
                queue.push_chunk((*class).max(1), hash(number), chunk(*class, 0)).unwrap();
            }
            for _ in 0..taken {
                queue.next();
            }
            let urgent = Bytes::from_static(b"urgent");
            queue.push_chunk(0, hash(999), urgent.clone()).unwrap();
            let next = [queue.next(), queue.next()];
            prop_assert!(next.contains(&Some(urgent)), "{next:?}");
        }

        /// Checks that everything pushed is sent once or canceled, each class in order, and that
        /// the count of bytes is right.
        #[test]
        fn nothing_is_lost(steps in prop::collection::vec((0u8..6, 0usize..400), 0..300)) {
            let mut queue = Queue::default();
            let (mut waiting, mut gone) = (Vec::new(), Vec::new());
            for (number, (step, size)) in steps.into_iter().enumerate() {
                let mut message = number.to_le_bytes().to_vec();
                message.resize(8 + size, 0);
                match step {
                    class @ 0..4 => {
                        queue.push_chunk(class, hash(number), message.into()).unwrap();
                        waiting.push((number, size + 8));
                    }
                    4 => {
                        let at = size % (number + 1);
                        let was = queue.cancel(&hash(at));
                        prop_assert_eq!(was, waiting.iter().any(|it| it.0 == at));
                        waiting.retain(|it| it.0 != at);
                    }
                    _ => gone.extend(queue.next()),
                }
                for it in gone.drain(..) {
                    let number = usize::from_le_bytes(it[..8].try_into().unwrap());
                    let place = waiting.iter().position(|it| it.0 == number);
                    prop_assert!(place.is_some());
                    waiting.remove(place.unwrap());
                }
                let bytes: usize = waiting.iter().map(|it| it.1).sum();
                prop_assert_eq!(queue.bytes(), bytes);
            }
            prop_assert_eq!(all(&mut queue).len(), waiting.len());
            prop_assert_eq!(queue.next(), None);
        }
    }
}
