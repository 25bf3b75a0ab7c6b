//! Ranking: the names that come most often among any number of them, in bounded memory.
//!
//! Source: Space-Saving (Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k
//! Elements in Data Streams", ICDT 2005): a name that has no place gets that of the rarest one, and
//! its count, which is noted as what the new one may be counted too much. Every name that comes more
//! often than the `PLACES_MAX`th part of all is there.
//!
//! Sans-I/O.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// Names that have a place.
pub(crate) const PLACES_MAX: usize = 256;

/// Longest part of a name that is kept, in bytes.
const NAME_BYTES_MAX: usize = 1_000;

/// A name, and how often it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranked<V> {
    hash: u64,
    pub(crate) name: String,
    /// How often it came, at most.
    pub(crate) count: u64,
    /// What that may be too much.
    pub(crate) excess: u64,
    /// What is noted beside, since it has its place.
    pub(crate) value: V,
}

/// The names that come most often.
#[derive(Clone, Debug)]
pub(crate) struct Ranking<V> {
    names: Vec<Ranked<V>>,
    /// The index of each name, by its hash.
    places: HashTable<usize>,
    /// No count is below it, up to `cursor` all are above it.
    least: u64,
    cursor: usize,
}

impl<V> Default for Ranking<V> {
    fn default() -> Self {
        Self { names: Vec::new(), places: HashTable::new(), least: 0, cursor: 0 }
    }
}

impl<V: Default> Ranking<V> {
    /// Notes that a name came. Returns what is noted beside it.
    pub(crate) fn note(&mut self, name: &str) -> Option<&mut V> {
        let hash = xxh3_64(name.as_bytes());
        let is_it = |index: &usize| self.names.get(*index).is_some_and(|it| it.hash == hash);
        let found = self.places.find(hash, is_it).copied();
        let index = found.unwrap_or_else(|| self.take_place(hash, name));
        let ranked = self.names.get_mut(index)?;
        ranked.count += 1;
        Some(&mut ranked.value)
    }

    /// Gives a name a place: a free one, or that of a rarest one.
    fn take_place(&mut self, hash: u64, name: &str) -> usize {
        let end = name.floor_char_boundary(NAME_BYTES_MAX.min(name.len()));
        let name = name.get(..end).unwrap_or_default().to_owned();
        let mut new = Ranked { hash, name, count: 0, excess: 0, value: V::default() };
        let index = if self.names.len() < PLACES_MAX {
            self.names.push(new);
            self.names.len() - 1
        } else {
            let index = self.rarest();
            if let Some(old) = self.names.get_mut(index) {
                (new.count, new.excess) = (old.count, old.count);
                if let Ok(found) = self.places.find_entry(old.hash, |it| *it == index) {
                    found.remove();
                }
                *old = new;
            }
            index
        };
        let Self { names, places, .. } = self;
        places.insert_unique(hash, index, |it| names.get(*it).map_or(0, |it| it.hash));
        index
    }

    /// Returns the index of a rarest name. Counts only rise: so each pass over all finds many.
    fn rarest(&mut self) -> usize {
        loop {
            let rest = self.names.iter().skip(self.cursor);
            if let Some(at) = rest.clone().position(|it| it.count <= self.least) {
                self.cursor += at + 1;
                return self.cursor - 1;
            }
            self.cursor = 0;
            self.least = self.names.iter().map(|it| it.count).min().unwrap_or_default();
        }
    }

    /// Returns all names of this ranking and of an `earlier` one, the most frequent first. `join`
    /// adds what is noted beside a name there.
    pub(crate) fn with(mut self, earlier: Self, mut join: impl FnMut(&mut V, V)) -> Vec<Ranked<V>> {
        for it in earlier.names {
            let is_it = |known: &&mut Ranked<V>| known.hash == it.hash;
            match self.names.iter_mut().find(is_it) {
                Some(known) => {
                    known.count += it.count;
                    known.excess += it.excess;
                    join(&mut known.value, it.value);
                }
                None => self.names.push(it),
            }
        }
        // What is surely counted comes first.
        let sure = |it: &Ranked<V>| it.count - it.excess;
        self.names.sort_unstable_by(|a, b| sure(b).cmp(&sure(a)).then_with(|| a.name.cmp(&b.name)));
        self.names
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn all(ranking: &Ranking<u64>) -> Vec<Ranked<u64>> {
        ranking.clone().with(Ranking::default(), |_, _| ())
    }

    proptest! {
        #[test]
        fn counts_are_bounded_and_frequent_names_are_there(
            // Some names come often, many seldom.
            names in prop::collection::vec(prop_oneof![0..20_u32, 0..2_000_u32], 0..3_000)
        ) {
            let (mut ranking, mut truth) = (Ranking::<u64>::default(), HashMap::new());
            for it in &names {
                let name = it.to_string();
                *ranking.note(&name).unwrap() += 1;
                *truth.entry(name).or_insert(0_u64) += 1;
            }
            let found = all(&ranking);
            prop_assert!(found.len() <= PLACES_MAX);
            prop_assert_eq!(found.iter().map(|it| it.count).sum::<u64>(), names.len() as u64);
            for it in &found {
                prop_assert!(truth[&it.name] <= it.count && it.count - it.excess <= truth[&it.name]);
                prop_assert_eq!(it.value, it.count - it.excess);
            }
            let often = (names.len() / PLACES_MAX) as u64;
            for (name, _) in truth.iter().filter(|it| often < *it.1) {
                prop_assert!(found.iter().any(|it| it.name == *name), "{} is not there", name);
            }
        }
    }

    #[test]
    fn two_rankings_are_one() {
        let (mut now, mut before) = (Ranking::<u64>::default(), Ranking::default());
        for (ranking, names) in [(&mut before, "aab"), (&mut now, "bbc")] {
            names.chars().for_each(|it| *ranking.note(&it.to_string()).unwrap() += 1);
        }
        let both = now.with(before, |sum, it| *sum += it);
        let seen: Vec<_> = both.iter().map(|it| (it.name.as_str(), it.count, it.value)).collect();
        assert_eq!(seen, [("b", 3, 3), ("a", 2, 2), ("c", 1, 1)]);
    }

    #[test]
    fn long_names_are_cut() {
        let mut ranking = Ranking::<u64>::default();
        let long = "é".repeat(2_000);
        (0..3).for_each(|_| *ranking.note(&long).unwrap() += 1);
        ranking.note(&format!("{long}2"));
        let found = all(&ranking);
        assert_eq!((found[0].count, found[1].count), (3, 1));
        assert!(found.iter().all(|it| it.name.len() == NAME_BYTES_MAX));
    }
}
