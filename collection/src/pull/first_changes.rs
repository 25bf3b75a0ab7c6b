//! The first changes of objects in a stream.
//!
//! An object that changed twice since the last pull has been stale since the first change. So
//! freshness that is measured from pulls needs only the stamp of that change (Adly §3.1).
//!
//! Sans-I/O.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use crate::change::{Change, Oid};

/// Maximum number of objects that are remembered (about a megabyte); every change of any other
/// object counts as its first.
const OBJECTS_MAX: usize = 1 << 16;

/// The objects changed so far in a stream.
#[derive(Debug, Default)]
pub(crate) struct FirstChanges {
    hasher: RandomState,
    /// Hashes of the objects: with a full set one new object in 2⁴⁸ is taken for a known one.
    seen: HashSet<u64>,
}

impl FirstChanges {
    /// Returns whether `change` is the first known change of its object, and remembers the object.
    pub(crate) fn is_first(&mut self, change: &Change) -> bool {
        let hash = match change {
            Change::Update(record) => Oid::of(record).map(|oid| self.hasher.hash_one(oid)),
            Change::Delete(oid) | Change::Withdraw(oid, _) | Change::Suppress(oid, _) => {
                Some(self.hasher.hash_one(oid))
            }
            Change::Refresh(..) | Change::Confirm { .. } => None,
        };
        hash.is_some_and(|hash| {
            if self.seen.len() < OBJECTS_MAX {
                self.seen.insert(hash)
            } else {
                !self.seen.contains(&hash)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(n: usize) -> Change {
        Change::Delete(Oid::new("g", &format!("http://host/{n}")))
    }

    #[test]
    fn an_object_has_one_first_change() {
        let mut firsts = FirstChanges::default();
        let order = [1, 2, 1, 3, 2, 1];
        let found = order.map(|n| firsts.is_first(&change(n)));
        assert_eq!(found, [true, true, false, true, false, false]);
    }

    #[test]
    fn the_memory_for_objects_is_bounded() {
        let mut firsts = FirstChanges::default();
        for n in 0..OBJECTS_MAX + 100 {
            assert!(firsts.is_first(&change(n)), "{n}");
        }
        assert_eq!(firsts.seen.len(), OBJECTS_MAX);
        assert!(!firsts.is_first(&change(7)));
        assert!(firsts.is_first(&change(OBJECTS_MAX + 50)), "beyond the limit");
    }
}
