//! The index: where the records of each URL are, by the URL's hash.
//!
//! Sans-I/O.

use hashbrown::HashTable;
use std::collections::{HashSet, VecDeque};

use crate::policy::vary::VARIANTS_MAX;

/// Records start at multiples of so many bytes, and their lengths are counted in them.
pub(super) const UNIT: u64 = 8;

/// Greatest number of uses that is noted of a record.
const USES_MAX: u8 = 3;

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The segment.
    pub(super) segment: u32,
    /// Start of the record, in [`UNIT`]s.
    pub(super) at: u32,
    /// Length of the record, in [`UNIT`]s, rounded up.
    pub(super) length: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u64,
    variant: u32,
    place: Place,
    /// Uses since it was written or last spared, up to [`USES_MAX`].
    uses: u8,
    /// Whether it has replaced another record, which may still be on disk.
    replaces: bool,
}

/// Places of records, by the hash of their URL. 32 bytes each, and as much again at most while the
/// table is half full.
#[derive(Debug, Default)]
pub(super) struct Index(HashTable<Slot>);

impl Index {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Makes room for so many places, so that the table need not grow to them.
    pub(super) fn reserve(&mut self, count: usize) {
        self.0.reserve(count, |it| it.hash);
    }

    /// Puts in the place of a record, instead of the one to the same requests. Of too many variants of a
    /// URL one is gone.
    pub(super) fn insert(
        &mut self,
        (hash, variant): (u64, u32),
        place: Place,
        (uses, mut replaces): (u8, bool),
    ) {
        let is_same = |it: &Slot| it.hash == hash && it.variant == variant;
        if let Ok(found) = self.0.find_entry(hash, is_same) {
            found.remove();
            replaces = true;
        }
        let variants = self.0.iter_hash(hash).filter(|it| it.hash == hash).count();
        if VARIANTS_MAX <= variants
            && let Ok(found) = self.0.find_entry(hash, |it| it.hash == hash)
        {
            found.remove();
        }
        self.0.insert_unique(hash, Slot { hash, variant, place, uses, replaces }, |it| it.hash);
    }

    /// Returns all places, in any order.
    pub(super) fn all(&self) -> impl Iterator<Item = Place> {
        self.0.iter().map(|it| it.place)
    }

    /// Returns the places of a URL's records, and notes that they are used.
    pub(super) fn used(&mut self, hash: u64) -> Vec<Place> {
        let slots = self.0.iter_hash_mut(hash).filter(|it| it.hash == hash);
        let used = slots.map(|it| {
            it.uses = (it.uses + 1).min(USES_MAX);
            it.place
        });
        used.collect()
    }

    /// Returns whether anything of a URL is known.
    pub(super) fn has_any(&self, hash: u64) -> bool {
        self.0.iter_hash(hash).any(|it| it.hash == hash)
    }

    /// Returns whether a place is known.
    pub(super) fn has(&self, hash: u64, place: Place) -> bool {
        self.0.iter_hash(hash).any(|it| it.hash == hash && it.place == place)
    }

    /// Returns how often the record at a place was used, and whether it has replaced another one.
    pub(super) fn uses(&self, hash: u64, place: Place) -> Option<(u8, bool)> {
        let mut found = self.0.iter_hash(hash).filter(|it| it.hash == hash && it.place == place);
        found.next().map(|it| (it.uses, it.replaces))
    }

    /// Removes a place. Returns its number of uses, and whether it has replaced another record.
    pub(super) fn take(&mut self, hash: u64, place: Place) -> Option<(u8, bool)> {
        let found = self.0.find_entry(hash, |it| it.hash == hash && it.place == place).ok()?;
        let (slot, _) = found.remove();
        Some((slot.uses, slot.replaces))
    }

    /// Removes all places of a URL. Returns how many there were.
    pub(super) fn take_all(&mut self, hash: u64) -> usize {
        let mut count = 0;
        while let Ok(found) = self.0.find_entry(hash, |it| it.hash == hash) {
            found.remove();
            count += 1;
        }
        count
    }
}

/// URLs whose records made room lately: one that comes again is worth keeping.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    order: VecDeque<u64>,
    known: HashSet<u64>,
}

impl Ghosts {
    /// Notes a hash, of which at most `max` are kept.
    pub(super) fn add(&mut self, hash: u64, max: usize) {
        if self.known.insert(hash) {
            self.order.push_back(hash);
        }
        while max < self.order.len() {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    /// Returns whether a hash is known, and forgets it.
    pub(super) fn take(&mut self, hash: u64) -> bool {
        self.known.remove(&hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(at: u32) -> Place {
        Place { segment: 1, at, length: 1 }
    }

    #[test]
    fn places_are_found_by_their_hash() {
        let mut index = Index::default();
        for at in 0..3 {
            index.insert((7, at), place(at), (0, false));
        }
        index.insert((8, 0), place(9), (0, false));
        let mut seen = index.used(7);
        seen.sort_unstable_by_key(|it| it.at);
        assert_eq!(seen, [place(0), place(1), place(2)]);
        assert!(index.has(8, place(9)) && !index.has(8, place(0)));
        assert_eq!(
            [index.take(7, place(1)), index.take(7, place(1)), index.take(8, place(9))],
            [Some((1, false)), None, Some((0, false))]
        );
        assert_eq!((index.take_all(7), index.len()), (2, 0));
        index.insert((7, 0), place(0), (0, false));
        (0..9).for_each(|_| drop(index.used(7)));
        assert_eq!(index.take(7, place(0)), Some((USES_MAX, false)));
        index.insert((7, 1), place(1), (0, false));
        index.insert((7, 1), place(2), (0, false));
        assert_eq!(index.used(7), [place(2)], "it replaces the one to such requests");
        (0..1_000).for_each(|it| index.insert((7, it), place(it), (0, false)));
        assert_eq!(index.len(), VARIANTS_MAX);
    }

    #[test]
    fn the_latest_ghosts_are_known() {
        let mut ghosts = Ghosts::default();
        (0..10).for_each(|it| ghosts.add(it, 4));
        assert_eq!([5, 6, 9].map(|it| ghosts.take(it)), [false, true, true]);
        assert!(!ghosts.take(9), "it is forgotten");
        ghosts.add(9, 4);
        assert!(ghosts.order.len() <= 4 && ghosts.take(9));
    }
}
