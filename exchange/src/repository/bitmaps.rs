//! Bitmaps by name, the largest of which are sets.
//!
//! Source: ours.
//!
//! Names come from anywhere, so their number is unbounded. Up to [`SETS_MAX`] are sets, and up to
//! [`OTHERS_MAX`] more are stored, so that the sets are the largest ones regardless of the order of
//! arrival. Once there are more names, no new name is ever stored: its bitmap would lack earlier
//! records, and an incomplete set is worse than none.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use roaring::RoaringTreemap;

/// Maximum number of sets of a kind.
pub(super) const SETS_MAX: usize = 10_000;

/// Maximum number of additional names.
pub(super) const OTHERS_MAX: usize = 50_000;

/// Longest name of a set, in bytes.
const NAME_BYTES_MAX: usize = 200;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NamedBitmaps {
    pub(super) sets: BTreeMap<String, RoaringTreemap>,
    others: BTreeMap<String, RoaringTreemap>,
    /// Whether there were more names than could be stored.
    is_full: bool,
}

impl NamedBitmaps {
    pub(super) fn new(all: BTreeMap<String, RoaringTreemap>, is_full: bool) -> Self {
        let mut named = Self { sets: all, others: BTreeMap::new(), is_full };
        named.choose();
        named
    }

    /// Returns all bitmaps, their number, and whether there were more names than could be stored.
    pub(super) fn all(&self) -> (impl Iterator<Item = (&String, &RoaringTreemap)>, usize, bool) {
        let count = self.sets.len() + self.others.len();
        (self.sets.iter().chain(&self.others), count, self.is_full)
    }

    pub(super) fn add(&mut self, name: String, serial: u64) {
        if let Some(set) = self.sets.get_mut(&name).or_else(|| self.others.get_mut(&name)) {
            set.insert(serial);
            return;
        }
        if name.is_empty() || NAME_BYTES_MAX < name.len() || self.is_full {
            return;
        }
        let bitmaps = match (self.sets.len(), self.others.len()) {
            (0..SETS_MAX, _) => &mut self.sets,
            (_, 0..OTHERS_MAX) => &mut self.others,
            _ => {
                self.is_full = true;
                return;
            }
        };
        bitmaps.insert(name, RoaringTreemap::from_iter([serial]));
    }

    /// Drops all serials that are not in `kept`, and makes the largest bitmaps sets.
    pub(super) fn keep(&mut self, kept: &RoaringTreemap) {
        for names in [&mut self.sets, &mut self.others] {
            names.values_mut().for_each(|it| *it &= kept);
            names.retain(|_, it| !it.is_empty());
        }
        self.choose();
    }

    /// Makes the largest bitmaps sets; among equally large ones, the first by name.
    fn choose(&mut self) {
        self.sets.append(&mut self.others);
        if self.sets.len() <= SETS_MAX {
            return;
        }
        let mut all: Vec<_> = std::mem::take(&mut self.sets).into_iter().collect();
        // The sort is stable: equals stay in the order of names.
        all.sort_by_key(|(_, it)| Reverse(it.len()));
        self.others.extend(all.split_off(SETS_MAX));
        self.sets.extend(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_bitmaps_are_sets_in_any_order_of_arrival() {
        let all = SETS_MAX as u64 + 3;
        let live: RoaringTreemap = (0..all + 6).collect();
        let made = |order: &mut dyn Iterator<Item = u64>| {
            let mut named = NamedBitmaps::default();
            order.for_each(|n| named.add(format!("{n:05}"), n));
            // The last names have two serials each.
            (all - 3..all).for_each(|n| named.add(format!("{n:05}"), n + 6));
            named.keep(&live);
            named
        };
        let named = made(&mut (0..all));
        assert_eq!(named, made(&mut (0..all).rev()));
        assert_eq!((named.sets.len(), named.others.len()), (SETS_MAX, 3));
        let has = |n: u64| named.sets.contains_key(&format!("{n:05}"));
        assert!(has(all - 1) && !has(all - 4));
        let (saved, count, is_full) = named.all();
        let saved: BTreeMap<_, _> = saved.map(|(a, b)| (a.clone(), b.clone())).collect();
        assert_eq!(count, saved.len());
        assert_eq!(NamedBitmaps::new(saved, is_full), named);
    }

    #[test]
    fn a_dropped_name_never_becomes_a_set() {
        let mut named = NamedBitmaps::default();
        let kept = (SETS_MAX + OTHERS_MAX) as u64;
        (0..=kept).for_each(|n| named.add(n.to_string(), n));
        named.add("x".repeat(201), 1);
        assert_eq!(named.all().1, SETS_MAX + OTHERS_MAX);
        named.keep(&RoaringTreemap::from_iter([1, kept]));
        named.add(kept.to_string(), kept + 1);
        assert!(named.sets.contains_key("1") && !named.sets.contains_key(&kept.to_string()));
    }
}
