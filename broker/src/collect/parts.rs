//! The queue of parts: pieces of feeds that sources have sent and that are not stored yet.
//!
//! A part is not a pull, makes no pull due, and does not count as a pull.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

use collection::pull::Pushed;

/// Maximum number of waiting parts of one source.
pub(super) const PARTS_MAX: usize = 16;

/// Maximum number of waiting bytes of all sources.
pub(super) const BYTES_MAX: usize = 32 << 20;

/// Numbers of parts by outcome since the start: each part counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartCounters {
    /// Stored.
    pub taken: u64,
    /// Skipped, since all their changes were known already.
    pub known: u64,
    /// Dropped: after a gap, damaged, too large, or after another dropped part.
    pub dropped: u64,
    /// Refused, since the queue was full.
    pub refused: u64,
}

/// The waiting parts of each source, in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct PartQueue {
    /// No queue is empty.
    waiting: BTreeMap<String, VecDeque<Pushed>>,
    bytes: usize,
    last: String,
    pub(super) counters: PartCounters,
}

impl PartQueue {
    /// Adds a part; returns false if there is no room for it.
    pub(super) fn push(&mut self, source: &str, part: Pushed) -> bool {
        let bytes = self.bytes.saturating_add(part.members.len());
        let count = self.waiting.get(source).map_or(0, VecDeque::len);
        if PARTS_MAX <= count || BYTES_MAX < bytes {
            self.counters.refused += 1;
            return false;
        }
        self.bytes = bytes;
        self.waiting.entry(source.to_owned()).or_default().push_back(part);
        true
    }

    /// Takes the first part of the next source that `admits` accepts, so that sources take turns;
    /// `None` if there is no such part.
    pub(super) fn pop(&mut self, admits: impl Fn(&str) -> bool) -> Option<(String, Pushed)> {
        let after = self.waiting.range::<str, _>((Excluded(self.last.as_str()), Unbounded));
        let mut names = after.chain(&self.waiting).map(|(name, _)| name);
        let name = names.find(|it| admits(it))?.clone();
        let parts = self.waiting.get_mut(&name)?;
        let part = parts.pop_front()?;
        if parts.is_empty() {
            self.waiting.remove(&name);
        }
        self.bytes -= part.members.len();
        self.last.clone_from(&name);
        Some((name, part))
    }

    pub(super) fn forget(&mut self, source: &str) {
        let parts = self.waiting.remove(source).unwrap_or_default();
        self.bytes -= parts.iter().map(|it| it.members.len()).sum::<usize>();
        self.counters.dropped += parts.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use collection::{Epoch, Version};

    use super::*;

    fn part(from: u64, bytes: usize) -> Pushed {
        let to = Version { epoch: Epoch(1), serial: from + 1 };
        Pushed { from, to, objects: 50, members: Bytes::from(vec![0; bytes]) }
    }

    fn popped(parts: &mut PartQueue, admits: impl Fn(&str) -> bool) -> Option<(String, u64)> {
        parts.pop(admits).map(|(name, part)| (name, part.from))
    }

    #[test]
    fn sources_take_turns_and_their_parts_keep_their_order() {
        let mut parts = PartQueue::default();
        for (name, from) in [("a", 1), ("a", 2), ("b", 1), ("c", 1)] {
            assert!(parts.push(name, part(from, 10)));
        }
        let name = |name: &str, from| Some((name.to_owned(), from));
        assert_eq!(popped(&mut parts, |_| true), name("a", 1));
        assert_eq!(popped(&mut parts, |it| it != "b"), name("c", 1));
        assert_eq!(popped(&mut parts, |_| true), name("a", 2));
        assert_eq!(popped(&mut parts, |it| it != "b"), None);
        assert_eq!(popped(&mut parts, |_| true), name("b", 1));
        assert_eq!((popped(&mut parts, |_| true), parts.bytes), (None, 0));
    }

    #[test]
    fn waiting_parts_are_bounded_for_each_source_and_for_all() {
        let mut parts = PartQueue::default();
        for from in 0..PARTS_MAX as u64 {
            assert!(parts.push("a", part(from, 1)));
        }
        assert!(!parts.push("a", part(99, 1)));
        assert!(parts.push("b", part(0, BYTES_MAX - PARTS_MAX)));
        assert!(!parts.push("b", part(1, 1)));
        parts.forget("b");
        assert!(parts.push("b", part(1, 1)));
        parts.forget("none");
        assert_eq!(parts.bytes, PARTS_MAX + 1);
        let expected = PartCounters { dropped: 1, refused: 2, ..PartCounters::default() };
        assert_eq!(parts.counters, expected);
    }
}
