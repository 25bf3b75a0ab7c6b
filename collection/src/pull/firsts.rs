//! Which of a stream's changes are the first of their objects.
//!
//! An object that changed twice since the pull before has been stale since the first change: the
//! freshness that is measured from pulls needs that one's stamp alone (Adly §3.1).
//!
//! Sans-I/O.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use crate::change::{Change, Oid};

/// Objects that are kept in mind (about a megabyte); a change of a further one counts as its first.
const OBJECTS_MAX: usize = 1 << 16;

/// The objects that a stream has changed so far.
#[derive(Debug, Default)]
pub(crate) struct Firsts {
    hasher: RandomState,
    /// By hash: one in 2⁴⁷ of full ones is taken for another.
    seen: HashSet<u64>,
}

impl Firsts {
    /// Returns whether what `change` changes has not changed before, as far as is known, and keeps it in
    /// mind.
    pub(crate) fn is_first(&mut self, change: &Change) -> bool {
        let hash = match change {
            Change::Update(record) => Oid::of(record).map(|oid| self.hasher.hash_one(oid)),
            Change::Delete(oid) | Change::Suppress(oid, _) => Some(self.hasher.hash_one(oid)),
            Change::Refresh(_) | Change::Confirm { .. } => None,
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
        let mut firsts = Firsts::default();
        let order = [1, 2, 1, 3, 2, 1];
        let found = order.map(|n| firsts.is_first(&change(n)));
        assert_eq!(found, [true, true, false, true, false, false]);
    }

    #[test]
    fn what_is_kept_in_mind_is_bounded() {
        let mut firsts = Firsts::default();
        for n in 0..OBJECTS_MAX + 100 {
            assert!(firsts.is_first(&change(n)), "{n}");
        }
        assert_eq!(firsts.seen.len(), OBJECTS_MAX);
        assert!(!firsts.is_first(&change(7)));
        assert!(firsts.is_first(&change(OBJECTS_MAX + 50)), "beyond what is kept in mind");
    }
}
