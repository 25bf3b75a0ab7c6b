//! Parts of feeds that sources have sent and that are not taken in yet.
//!
//! They have a way of their own: no part is a pull, makes one due, or counts as one.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

use collection::pull::Pushed;

/// Most parts of one source that wait.
pub(super) const PARTS_MAX: usize = 16;

/// Most bytes of all sources that wait.
pub(super) const BYTES_MAX: usize = 32 << 20;

/// What became of parts since the start: each counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartCounters {
    /// Taken in.
    pub taken: u64,
    /// Passed over, since what was in them was known by then.
    pub known: u64,
    /// Dropped, since they left a gap, were damaged or too much, or came behind such a one.
    pub dropped: u64,
    /// Sent away, since there was no room for them.
    pub refused: u64,
}

/// What waits, in the order in which it came, of each source.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// No queue is empty.
    waiting: BTreeMap<String, VecDeque<Pushed>>,
    bytes: usize,
    /// Whose turn it was last.
    last: String,
    pub(super) counters: PartCounters,
}

impl Parts {
    /// Keeps a part; false where there is no room for it.
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

    /// Returns the first part of the next source that is admitted: they take turns.
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

    /// Drops what a source has sent.
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

    fn popped(parts: &mut Parts, admits: impl Fn(&str) -> bool) -> Option<(String, u64)> {
        parts.pop(admits).map(|(name, part)| (name, part.from))
    }

    #[test]
    fn sources_take_turns_and_each_one_s_parts_keep_their_order() {
        let mut parts = Parts::default();
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
    fn what_waits_is_bounded_for_each_source_and_for_all() {
        let mut parts = Parts::default();
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
