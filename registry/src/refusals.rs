//! Refusals: which announcements were refused, and why, for the administrator.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, VecDeque};

use crate::answer::Refused;

/// Number of refusals that are kept.
const KEPT_MAX: usize = 200;
/// Number of those of one address: it alone cannot make all others forgotten.
const OF_ONE_MAX: usize = 10;

/// The refusals since the start.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    counts: BTreeMap<&'static str, u64>,
    last: VecDeque<Refused>,
}

impl Refusals {
    /// Adds one, of those of a `kind`. One that says the same of the same server to the same address takes the
    /// place of the earlier one.
    pub fn add(&mut self, kind: &'static str, mut refused: Refused) {
        *self.counts.entry(kind).or_default() += 1;
        let of = |it: &Refused| [&it.id, &it.url, &it.reason, &it.from].map(String::clone);
        let named = of(&refused);
        let same = |it: &Refused| of(it) == named;
        let key = self.last.iter().find(|it| same(it)).and_then(|it| it.key.clone());
        self.last.retain(|it| !same(it));
        refused.key = refused.key.or(key);
        let is_of_one = |it: &Refused| it.from == refused.from;
        if OF_ONE_MAX <= self.last.iter().filter(|it| is_of_one(it)).count() {
            let oldest = self.last.iter().position(is_of_one);
            oldest.and_then(|it| self.last.remove(it));
        } else if self.last.len() == KEPT_MAX {
            self.last.pop_front();
        }
        self.last.push_back(refused);
    }

    /// Returns their numbers by kind, and the last of them, the latest first.
    pub fn all(&self) -> (BTreeMap<String, u64>, Vec<Refused>) {
        let counts = self.counts.iter().map(|(kind, count)| ((*kind).to_owned(), *count));
        (counts.collect(), self.last.iter().rev().cloned().collect())
    }

    /// Returns the last one of an id for its key: this one, or else the only one that was found.
    pub fn of(&self, id: &str, key: Option<&str>) -> Option<Refused> {
        let of_id = self.last.iter().rev().filter(|it| it.id == id && it.key.is_some());
        let mut found = of_id.filter(|it| key.is_none() || it.key.as_deref() == key);
        let last = found.next()?;
        found.all(|it| it.key == last.key).then(|| last.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept() {
        let mut refusals = Refusals::default();
        let refused = |id: usize, key: Option<&str>| Refused {
            id: id.to_string(),
            from: (id / OF_ONE_MAX).to_string(),
            key: key.map(str::to_owned),
            ..Refused::default()
        };
        for id in 0..1_000 {
            refusals.add("proof", refused(id, None));
        }
        refusals.add("key", refused(5, Some("k")));
        refusals.add("key", refused(5, Some("k2")));
        refusals.add("proof", refused(5, None));
        let (counts, last) = refusals.all();
        assert_eq!((counts["proof"], counts["key"]), (1_001, 2));
        let key_of = |refusals: &Refusals, id: &str| refusals.of(id, None)?.key;
        assert_eq!((last.len(), &*last[0].id), (KEPT_MAX, "5"));
        assert_eq!(key_of(&refusals, "5").unwrap(), "k2");
        assert_eq!(key_of(&refusals, "999"), None);
        // Of several, one has to be named.
        refusals.add("key", Refused { url: "http://h/".to_owned(), ..refused(5, Some("k3")) });
        assert_eq!(key_of(&refusals, "5"), None);
        for (key, expected) in [("k2", ""), ("k3", "http://h/")] {
            assert_eq!(refusals.of("5", Some(key)).unwrap().url, expected);
        }
        assert_eq!(refusals.of("5", Some("k4")), None);
    }

    #[test]
    fn one_address_leaves_room_for_others() {
        let mut refusals = Refusals::default();
        let mut add = |from: &str, id: usize| {
            let (from, id) = (from.to_owned(), id.to_string());
            refusals.add("proof", Refused { from, id, ..Refused::default() });
        };
        for id in 0..KEPT_MAX {
            add(&format!("h{id}"), id);
        }
        for id in 1_000..2_000 {
            add("flood", id);
        }
        let (counts, last) = refusals.all();
        assert_eq!((counts["proof"], last.len()), (1_200, KEPT_MAX));
        let ids = |is_flood: bool| {
            let of = last.iter().filter(|it| (it.from == "flood") == is_flood);
            of.map(|it| it.id.parse::<usize>().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(ids(true), (2_000 - OF_ONE_MAX..2_000).rev().collect::<Vec<_>>());
        assert_eq!(ids(false), (OF_ONE_MAX..KEPT_MAX).rev().collect::<Vec<_>>());
    }
}
