//! Bitmaps by name, of which the largest are sets.
//!
//! Source: ours.
//!
//! Names come from anywhere, so that there may be any number of them. Up to [`SETS_MAX`] are sets, and up to
//! [`OTHERS_MAX`] more are kept beside, so that the sets are those with the most records whatever came first.
//! A name beyond these is not kept, nor is any new one from then on: its bitmap would lack what came
//! before, and a set that lacks a record is worse than none.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use roaring::RoaringTreemap;

/// Most sets of a kind.
pub(super) const SETS_MAX: usize = 10_000;

/// Most names that are kept besides.
pub(super) const OTHERS_MAX: usize = 50_000;

/// Longest name that makes a set, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// Bitmaps by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Named {
    sets: BTreeMap<String, RoaringTreemap>,
    others: BTreeMap<String, RoaringTreemap>,
    /// Whether there were more names than are kept.
    is_full: bool,
}

impl Named {
    /// Puts together what was saved.
    pub(super) fn new(all: BTreeMap<String, RoaringTreemap>, is_full: bool) -> Self {
        let mut named = Self { sets: all, others: BTreeMap::new(), is_full };
        named.choose();
        named
    }

    /// The sets.
    pub(super) fn sets(&self) -> &BTreeMap<String, RoaringTreemap> {
        &self.sets
    }

    /// All that is kept, and whether there were more names.
    pub(super) fn all(&self) -> (impl Iterator<Item = (&String, &RoaringTreemap)>, usize, bool) {
        let count = self.sets.len() + self.others.len();
        (self.sets.iter().chain(&self.others), count, self.is_full)
    }

    /// Whether there is a set of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.sets.contains_key(name)
    }

    /// Adds the serial of a change.
    pub(super) fn add(&mut self, name: String, serial: u64) {
        if let Some(set) = self.sets.get_mut(&name).or_else(|| self.others.get_mut(&name)) {
            set.insert(serial);
            return;
        }
        if name.is_empty() || NAME_BYTES_MAX < name.len() || self.is_full {
            return;
        }
        let place = match (self.sets.len(), self.others.len()) {
            (0..SETS_MAX, _) => &mut self.sets,
            (_, 0..OTHERS_MAX) => &mut self.others,
            _ => {
                self.is_full = true;
                return;
            }
        };
        place.insert(name, RoaringTreemap::from_iter([serial]));
    }

    /// Drops all serials but these, and makes sets of the largest.
    pub(super) fn keep(&mut self, kept: &RoaringTreemap) {
        for names in [&mut self.sets, &mut self.others] {
            names.values_mut().for_each(|it| *it &= kept);
            names.retain(|_, it| !it.is_empty());
        }
        self.choose();
    }

    /// Makes sets of the largest, and among equals of the first by name.
    fn choose(&mut self) {
        self.sets.append(&mut self.others);
        if self.sets.len() <= SETS_MAX {
            return;
        }
        let mut all: Vec<_> = std::mem::take(&mut self.sets).into_iter().collect();
        // Names are in order, and stay so among equals.
        all.sort_by_key(|(_, it)| Reverse(it.len()));
        self.others.extend(all.split_off(SETS_MAX));
        self.sets.extend(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_sets_whatever_came_first() {
        let all = SETS_MAX as u64 + 3;
        let live: RoaringTreemap = (0..all + 6).collect();
        let made = |order: &mut dyn Iterator<Item = u64>| {
            let mut named = Named::default();
            order.for_each(|n| named.add(format!("{n:05}"), n));
            // The last names have two each.
            (all - 3..all).for_each(|n| named.add(format!("{n:05}"), n + 6));
            named.keep(&live);
            named
        };
        let named = made(&mut (0..all));
        assert_eq!(named, made(&mut (0..all).rev()));
        assert_eq!((named.sets.len(), named.others.len()), (SETS_MAX, 3));
        assert!(named.has(&format!("{:05}", all - 1)) && !named.has(&format!("{:05}", all - 4)));
        let (saved, count, is_full) = named.all();
        let saved: BTreeMap<_, _> = saved.map(|(a, b)| (a.clone(), b.clone())).collect();
        assert_eq!(count, saved.len());
        assert_eq!(Named::new(saved, is_full), named);
    }

    #[test]
    fn a_name_that_was_not_kept_never_becomes_a_set() {
        let mut named = Named::default();
        let kept = (SETS_MAX + OTHERS_MAX) as u64;
        (0..=kept).for_each(|n| named.add(n.to_string(), n));
        named.add("x".repeat(201), 1);
        assert_eq!(named.all().1, SETS_MAX + OTHERS_MAX);
        named.keep(&RoaringTreemap::from_iter([1, kept]));
        named.add(kept.to_string(), kept + 1);
        assert!(named.has("1") && !named.has(&kept.to_string()));
    }
}
