//! Serving: the requests of one neighbor that are not answered yet.
//!
//! Chunks are read in small batches and as late as possible, so that more urgent chunks go first
//! even if they were requested later.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::message::Request;
use crate::version::{Hash, Namespace, Number};

/// Maximum number of chunks of one neighbor that wait to be read.
pub(crate) const ASKED_MAX: usize = 4_096;
/// Maximum number of chunks in one batch.
const READ_MAX: usize = 32;

/// Requested chunks of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) namespace: Namespace,
    pub(crate) number: Number,
    pub(crate) priority: u8,
    pub(crate) chunks: Vec<Hash>,
}

impl Batch {
    /// Returns the same request for these chunks.
    pub(crate) fn request(&self, chunks: &[Hash]) -> Request {
        let Self { namespace, number, priority, .. } = self.clone();
        Request { namespace, number, priority, chunks: chunks.to_vec() }
    }
}

/// A chunk that can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) priority: u8,
    pub(crate) hash: Hash,
    pub(crate) bytes: Bytes,
}

#[derive(Debug, Default)]
pub(crate) struct Serving {
    asked: BTreeMap<u8, VecDeque<(Namespace, Number, Hash)>>,
    count: usize,
    ready: VecDeque<Ready>,
    reading: Option<Vec<Hash>>,
    /// Those of `reading` that came while they were being read.
    came: Vec<Hash>,
}

impl Serving {
    /// Takes in a request; returns the chunks for which there is no room below [`ASKED_MAX`].
    pub(crate) fn ask(&mut self, request: Request) -> Vec<Hash> {
        let Request { namespace, number, priority, mut chunks } = request;
        let room = ASKED_MAX.saturating_sub(self.count).min(chunks.len());
        let over = chunks.split_off(room);
        if chunks.is_empty() {
            return over;
        }
        self.count += chunks.len();
        let queue = self.asked.entry(priority).or_default();
        queue.extend(chunks.into_iter().map(|it| (namespace.clone(), number, it)));
        over
    }

    pub(crate) fn cancel(&mut self, chunks: &[Hash]) {
        let is_left = |it: &Hash| !chunks.contains(it);
        self.asked.retain(|_, queue| {
            queue.retain(|it| is_left(&it.2));
            !queue.is_empty()
        });
        self.count = self.asked.values().map(VecDeque::len).sum();
        self.ready.retain(|it| is_left(&it.hash));
    }

    /// Queues a chunk for sending, behind those that wait already.
    pub(crate) fn push(&mut self, ready: Ready) {
        self.ready.push_back(ready);
    }

    /// Queues a chunk again, at the front, because the link could not take it.
    pub(crate) fn put_back(&mut self, ready: Ready) {
        self.ready.push_front(ready);
    }

    pub(crate) fn pop(&mut self) -> Option<Ready> {
        self.ready.pop_front()
    }

    /// Returns the next batch to read; none while a batch is being read, or chunks wait to be sent.
    pub(crate) fn next_batch(&mut self) -> Option<Batch> {
        if self.reading.is_some() || !self.ready.is_empty() {
            return None;
        }
        let mut first = self.asked.first_entry()?;
        let priority = *first.key();
        let queue = first.get_mut();
        let (namespace, number, hash) = queue.pop_front()?;
        let mut chunks = vec![hash];
        let is_same = |it: &(Namespace, Number, Hash)| it.0 == namespace && it.1 == number;
        while chunks.len() < READ_MAX && queue.front().is_some_and(is_same) {
            chunks.extend(queue.pop_front().map(|it| it.2));
        }
        if queue.is_empty() {
            first.remove();
        }
        self.count -= chunks.len();
        self.reading = Some(chunks.clone());
        Some(Batch { namespace, number, priority, chunks })
    }

    /// Takes in that a chunk has come to this member.
    pub(crate) fn handle_came(&mut self, hash: &Hash) {
        if self.reading.as_ref().is_some_and(|it| it.contains(hash)) {
            self.came.push(*hash);
        }
    }

    /// Takes in the read chunks of a batch; returns those that this member does not have.
    pub(crate) fn handle_found(
        &mut self,
        batch: &Batch,
        chunks: Vec<(Hash, Option<Bytes>)>,
    ) -> Vec<Hash> {
        let mut absent = Vec::new();
        for (hash, bytes) in chunks {
            match bytes {
                Some(bytes) => self.push(Ready { priority: batch.priority, hash, bytes }),
                None => absent.push(hash),
            }
        }
        self.handle_read(batch, absent)
    }

    /// Ends a batch; `absent` are its chunks that were not here. Those that came during the reading
    /// are queued again. Returns the others, and those for which the queue has no room.
    pub(crate) fn handle_read(&mut self, batch: &Batch, absent: Vec<Hash>) -> Vec<Hash> {
        self.reading = None;
        let came = std::mem::take(&mut self.came);
        let (again, mut absent): (Vec<Hash>, Vec<Hash>) =
            absent.into_iter().partition(|it| came.contains(it));
        absent.extend(self.ask(batch.request(&again)));
        absent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::MemberId;
    use crate::version::Name;

    fn request(priority: u8, chunks: std::ops::Range<u8>) -> Request {
        let namespace = Namespace { origin: MemberId(7), name: Name::new("a").unwrap() };
        let chunks = chunks.map(|it| Hash([it; 32])).collect();
        Request { namespace, number: Number::default(), priority, chunks }
    }

    #[test]
    fn urgent_chunks_go_first_and_one_batch_at_a_time() {
        let mut serving = Serving::default();
        assert_eq!(serving.ask(request(3, 0..40)), []);
        assert_eq!(serving.ask(request(1, 100..102)), []);
        let first = serving.next_batch().unwrap();
        assert_eq!((first.priority, first.chunks.len()), (1, 2));
        assert_eq!(serving.next_batch(), None, "it is being read");
        let found = vec![(Hash([100; 32]), Some(Bytes::new())), (Hash([101; 32]), None)];
        assert_eq!(serving.handle_found(&first, found), [Hash([101; 32])]);
        assert_eq!(serving.next_batch(), None, "it is not sent yet");
        assert_eq!(serving.pop().map(|it| it.hash), Some(Hash([100; 32])));
        let second = serving.next_batch().unwrap();
        assert_eq!(second.chunks.len(), READ_MAX);
        assert_eq!(serving.handle_read(&second, Vec::new()), []);
        assert_eq!(serving.next_batch().map(|it| it.chunks.len()), Some(40 - READ_MAX));
    }

    #[test]
    fn chunks_that_come_while_they_are_read_are_read_again() {
        let mut serving = Serving::default();
        serving.ask(request(0, 0..3));
        let batch = serving.next_batch().unwrap();
        for it in [1, 9] {
            serving.handle_came(&Hash([it; 32]));
        }
        let absent = vec![Hash([0; 32]), Hash([1; 32])];
        assert_eq!(serving.handle_read(&batch, absent), [Hash([0; 32])]);
        assert_eq!(serving.next_batch().map(|it| it.chunks), Some(vec![Hash([1; 32])]));
    }

    #[test]
    fn chunks_above_the_bound_are_returned_and_canceled_ones_are_not_sent() {
        let mut serving = Serving::default();
        for _ in 0..ASKED_MAX / 64 {
            assert_eq!(serving.ask(request(0, 0..64)), []);
        }
        assert_eq!(serving.ask(request(0, 64..67)).len(), 3);
        serving.push(Ready { priority: 1, hash: Hash([0; 32]), bytes: Bytes::new() });
        let most: Vec<Hash> = (0..63).map(|it| Hash([it; 32])).collect();
        serving.cancel(&most);
        assert_eq!(serving.pop(), None);
        assert_eq!(serving.next_batch().map(|it| it.chunks), Some(vec![Hash([63; 32]); 32]));
    }
}
