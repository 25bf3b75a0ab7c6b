//! Pulled queries: what consumers that the settings name select of the feed. They are kept as views are, so that such a
//! consumer is told of who left its query, and of nobody else. Of all other queries, every changed object that does not
//! match is released.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use query::Query;
use serde::{Deserialize, Serialize};

use super::super::Views;
use super::super::selecting::name_of;

/// Begins the name of a query, and that of no view.
const MARK: char = '=';
/// Maximum number of queries.
const QUERIES_MAX: usize = 64;
/// Number of days for which a query is kept that nobody pulls.
const DAYS_MAX: u64 = 30;
const MS_PER_DAY: u64 = 86_400_000;

/// Returns the name under which the objects of a query are kept.
pub(super) fn name(query: &Query) -> String {
    format!("{MARK}{}", name_of(query))
}

/// Returns whether a name is that of a view.
pub(super) fn is_view(name: &str) -> bool {
    !name.starts_with(MARK)
}

/// The queries that are kept. Clones share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Queries(Arc<BTreeMap<String, Pulled>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pulled {
    query: Query,
    /// The day on which it was last pulled, in days since 1970.
    day: u64,
}

/// A query as it is noted.
#[derive(Serialize, Deserialize)]
struct Noted {
    query: String,
    day: u64,
}

impl Queries {
    /// Reads a note; leaves out what means something else to this release.
    pub(super) fn read(note: &[u8]) -> Self {
        let noted: Vec<Noted> = serde_json::from_slice(note).unwrap_or_default();
        let read = noted.into_iter().filter_map(|Noted { query: text, day }| {
            let query = query::parse(&text).ok().filter(|it| it.to_string() == text)?;
            Some((name(&query), Pulled { query, day }))
        });
        Self(Arc::new(read.take(QUERIES_MAX).collect()))
    }

    /// Returns the note; `None`: nothing has to be noted.
    pub(super) fn written(&self) -> Option<Vec<u8>> {
        let noted = |it: &Pulled| Noted { query: it.query.to_string(), day: it.day };
        let noted: Vec<Noted> = self.0.values().map(noted).collect();
        (!noted.is_empty()).then(|| serde_json::to_vec(&noted).unwrap_or_default())
    }

    /// Keeps a query that is pulled at `now_ms`, if there is room: those that were pulled today stay. Returns whether
    /// anything is another than before.
    pub(super) fn pull(&mut self, query: &Query, now_ms: u64) -> bool {
        let (name, day) = (name(query), now_ms / MS_PER_DAY);
        if self.0.get(&name).is_some_and(|it| it.day == day) {
            return false;
        }
        let mut queries = BTreeMap::clone(&self.0);
        queries.retain(|of, it| *of == name || day.saturating_sub(it.day) <= DAYS_MAX);
        if QUERIES_MAX <= queries.len() && !queries.contains_key(&name) {
            let longest_ago = queries.iter().min_by_key(|it| it.1.day);
            match longest_ago.filter(|it| it.1.day < day).map(|it| it.0.clone()) {
                Some(other) => drop(queries.remove(&other)),
                None => return false,
            }
        }
        queries.insert(name, Pulled { query: query.clone(), day });
        self.0 = Arc::new(queries);
        true
    }
}

/// All whose objects are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) views: Views,
    pub(super) queries: Queries,
}

impl Wanted {
    /// Returns all names, each with what its objects match.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Query)> {
        let views = self.views.all().map(|it| (it.name.as_str(), &it.whole));
        views.chain(self.queries.0.iter().map(|(name, it)| (name.as_str(), &it.query)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        query::parse(text).unwrap()
    }

    #[test]
    fn queries_are_kept_as_long_as_they_are_pulled() {
        let (day, mut queries) = (MS_PER_DAY, Queries::default());
        assert_eq!(queries.written(), None);
        assert!(queries.pull(&query("type:PDF  apple"), 3 * day));
        assert!(!queries.pull(&query("type:PDF apple"), 3 * day + 5));
        assert!(queries.pull(&query("pear OR quince"), 20 * day));
        let read = Queries::read(&queries.written().unwrap());
        assert_eq!((&read, read.0.len()), (&queries, 2));
        // The first was pulled more than thirty days ago.
        assert!(queries.pull(&query("pear OR quince"), 34 * day));
        assert_eq!(queries.0.keys().collect::<Vec<_>>(), [&name(&query("pear OR quince"))]);
        assert_eq!(Queries::read(b"[{\"query\": \"(apple\", \"day\": 3}]"), Queries::default());
        assert_eq!(Queries::read(b"?"), Queries::default());
    }

    #[test]
    fn of_too_many_those_stay_that_are_pulled() {
        let (day, mut queries) = (MS_PER_DAY, Queries::default());
        for number in 0..QUERIES_MAX {
            assert!(queries.pull(&query(&format!("word{number}")), day));
        }
        assert!(!queries.pull(&query("apple"), day + 1));
        assert!(queries.pull(&query("word3"), 2 * day) && queries.pull(&query("apple"), 2 * day));
        let is_kept = |it: &str| queries.0.contains_key(&name(&query(it)));
        assert!(is_kept("word3") && is_kept("apple"));
        assert_eq!(queries.0.len(), QUERIES_MAX);
    }
}
