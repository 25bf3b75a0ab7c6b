//! Distances: how long it takes to reach hosts, measured with each connection that is made to them.
//!
//! A distance is the time in which TCP connects, about one round trip, without the look-up of the
//! name; it is smoothed as TCP smooths its own (RFC 6298 §2).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use url::Url;

use super::authority;

/// Maximum number of hosts; the one that was tried least recently makes room.
const HOSTS_MAX: usize = 4_096;

/// Time for which a distance is that of now, and for which a host that was not reached is not tried again.
const REACHED: Duration = Duration::from_secs(60);
const FAILED: Duration = Duration::from_secs(10);

/// Known distances. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Distances(Arc<Mutex<HashMap<String, Tried>>>);

/// What is known of a host.
#[derive(Clone, Copy, Debug)]
struct Tried {
    distance: Option<Duration>,
    /// When it was tried last, and whether that failed.
    at: Instant,
    fails: bool,
}

impl Distances {
    fn hosts(&self) -> MutexGuard<'_, HashMap<String, Tried>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the distance of a URL's host; `None`: nobody has reached it.
    pub fn of(&self, url: &Url) -> Option<Duration> {
        self.hosts().get(&authority(url))?.distance
    }

    /// Returns what was found of a URL's host shortly before `now`: its distance, or that it was not reached
    /// (`Some(None)`); `None`: nobody has tried.
    pub fn lately(&self, url: &Url, now: Instant) -> Option<Option<Duration>> {
        let tried = *self.hosts().get(&authority(url))?;
        let for_time = if tried.fails { FAILED } else { REACHED };
        let is_late = now.saturating_duration_since(tried.at) < for_time;
        is_late.then(|| tried.distance.filter(|_| !tried.fails))
    }

    /// Takes the time in which a URL's host was reached; `None`: it was not.
    pub(crate) fn tried(&self, url: &Url, took: Option<Duration>, at: Instant) {
        let (mut hosts, host) = (self.hosts(), authority(url));
        if !hosts.contains_key(&host) && HOSTS_MAX <= hosts.len() {
            let oldest = hosts.iter().min_by_key(|it| it.1.at).map(|it| it.0.clone());
            oldest.map(|it| hosts.remove(&it));
        }
        let fails = took.is_none();
        let tried = hosts.entry(host).or_insert(Tried { distance: took, at, fails });
        let smoothed = |took| tried.distance.map_or(took, |it| (it * 7 + took) / 8);
        *tried = Tried { distance: took.map(smoothed).or(tried.distance), at, fails };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn url(host: usize) -> Url {
        Url::parse(&format!("http://h{host}/a")).unwrap()
    }

    #[test]
    fn distances_are_smoothed_and_the_oldest_make_room() {
        let (distances, start) = (Distances::default(), crate::clock::monotonic());
        let reached = |host, took, after| distances.tried(&url(host), Some(took), start + after);
        assert_eq!(distances.of(&url(0)), None);
        reached(0, 80 * MS, Duration::ZERO);
        reached(0, 160 * MS, Duration::ZERO);
        assert_eq!(distances.of(&Url::parse("http://h0:80/b").unwrap()), Some(90 * MS));
        assert_eq!(distances.of(&Url::parse("https://h0/b").unwrap()), None, "another port");
        (1..HOSTS_MAX).for_each(|it| reached(it, MS, MS));
        (1..3).for_each(|it| reached(it - 1, 90 * MS, 2 * MS));
        reached(HOSTS_MAX, MS, 3 * MS);
        let known = [0, 1, HOSTS_MAX].map(|it| distances.of(&url(it)).is_some());
        assert_eq!((known, distances.hosts().len()), ([true; 3], HOSTS_MAX));
    }

    #[test]
    fn what_was_found_holds_for_a_while() {
        let (distances, start) = (Distances::default(), crate::clock::monotonic());
        let lately = |after| distances.lately(&url(0), start + after);
        assert_eq!(lately(MS), None);
        distances.tried(&url(0), Some(MS), start);
        assert_eq!((lately(REACHED - MS), lately(REACHED)), (Some(Some(MS)), None));
        distances.tried(&url(0), None, start);
        assert_eq!((lately(FAILED - MS), lately(FAILED)), (Some(None), None));
        assert_eq!(distances.of(&url(0)), Some(MS));
    }
}
