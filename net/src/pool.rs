//! Connections kept for the next request to the same place.
//!
//! Bounded for each place and in all; the newest is taken first, since the peer is the least
//! likely to have closed it.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::guard::Policy;
use crate::tls::ClientFiles;

/// Most connections kept in all.
const KEPT_MAX: usize = 256;

/// Where a connection leads. The policy belongs to it: a connection that an admin's URL opened
/// into a private network must not carry a stranger's request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) allow_private: bool,
    /// What the host was shown: another's request must not go in that name.
    pub(crate) shown: Option<Arc<ClientFiles>>,
}

impl Place {
    pub(crate) fn new(
        secure: bool,
        host: String,
        port: u16,
        policy: Policy,
        shown: Option<Arc<ClientFiles>>,
    ) -> Self {
        Self { secure, host, port, allow_private: policy == Policy::AllowPrivate, shown }
    }
}

/// Unused connections.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    kept: BTreeMap<Place, Vec<(Instant, T)>>,
    per_place_max: usize,
    age_max: Duration,
}

impl<T> Pool<T> {
    pub(crate) fn new(per_place_max: usize, age_max: Duration) -> Self {
        Self { kept: BTreeMap::new(), per_place_max, age_max }
    }

    /// Takes a connection to `place`, if one is there that is not too old.
    pub(crate) fn take(&mut self, place: &Place, now: Instant) -> Option<T> {
        self.expire(now);
        let connections = self.kept.get_mut(place)?;
        let newest = connections.pop().map(|(_, connection)| connection);
        if connections.is_empty() {
            self.kept.remove(place);
        }
        newest
    }

    /// Keeps a connection; the oldest to that place goes for it where there are too many.
    pub(crate) fn keep(&mut self, place: Place, connection: T, now: Instant) {
        self.expire(now);
        if self.kept.values().map(Vec::len).sum::<usize>() >= KEPT_MAX {
            return;
        }
        let connections = self.kept.entry(place).or_default();
        connections.push((now, connection));
        if self.per_place_max < connections.len() {
            connections.remove(0);
        }
    }

    fn expire(&mut self, now: Instant) {
        let age_max = self.age_max;
        self.kept.retain(|_, connections| {
            connections.retain(|(since, _)| now.saturating_duration_since(*since) < age_max);
            !connections.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic;

    const AGE: Duration = Duration::from_secs(20);

    fn place(host: &str, policy: Policy) -> Place {
        Place::new(false, host.to_owned(), 80, policy, None)
    }

    #[test]
    fn gives_the_newest_of_one_place_until_it_is_too_old() {
        let now = monotonic();
        let mut pool = Pool::new(2, AGE);
        let (a, b) = (place("a", Policy::Public), place("b", Policy::Public));
        for n in 1..=3 {
            pool.keep(a.clone(), n, now + Duration::from_secs(n));
        }
        assert_eq!(pool.take(&b, now), None);
        assert_eq!(pool.take(&place("a", Policy::AllowPrivate), now), None);
        assert_eq!(pool.take(&a, now + Duration::from_secs(4)), Some(3));
        assert_eq!(pool.take(&a, now + Duration::from_secs(2) + AGE), None);
    }

    #[test]
    fn keeps_no_more_than_its_bounds() {
        let now = monotonic();
        let mut pool = Pool::new(1, AGE);
        for n in 0..2 * KEPT_MAX {
            pool.keep(place(&n.to_string(), Policy::Public), n, now);
        }
        assert_eq!(pool.kept.len(), KEPT_MAX);
        pool.keep(place("0", Policy::Public), 0, now + AGE);
        assert_eq!(pool.kept.len(), 1);
    }
}
