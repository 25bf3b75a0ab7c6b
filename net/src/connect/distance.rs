//! Distances: how long it takes to reach hosts, measured with each connection that is made to them.
//!
//! A distance is the time in which TCP connects, about one round trip, without the look-up of the
//! name; it is smoothed as TCP smooths its own (RFC 6298 §2).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use url::Url;

use super::authority;

/// Maximum number of hosts; the one that was measured least recently makes room.
const HOSTS_MAX: usize = 4_096;

/// Known distances. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Distances(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    /// Distances by host and port, each with the number of its last measurement.
    hosts: HashMap<String, (Duration, u64)>,
    measured: u64,
}

impl Distances {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the distance of a URL's host; `None`: nobody has connected to it.
    pub fn of(&self, url: &Url) -> Option<Duration> {
        self.table().hosts.get(&authority(url)).map(|it| it.0)
    }

    /// Takes the time in which a URL's host was reached.
    pub(crate) fn reached(&self, url: &Url, took: Duration) {
        let mut table = self.table();
        table.measured += 1;
        let (host, number) = (authority(url), table.measured);
        if let Some(known) = table.hosts.get_mut(&host) {
            *known = ((known.0 * 7 + took) / 8, number);
            return;
        }
        if HOSTS_MAX <= table.hosts.len() {
            let oldest = table.hosts.iter().min_by_key(|it| it.1.1).map(|it| it.0.clone());
            oldest.map(|it| table.hosts.remove(&it));
        }
        table.hosts.insert(host, (took, number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(host: usize) -> Url {
        Url::parse(&format!("http://h{host}/a")).unwrap()
    }

    #[test]
    fn distances_are_smoothed_and_the_oldest_make_room() {
        let (distances, ms) = (Distances::default(), Duration::from_millis);
        assert_eq!(distances.of(&url(0)), None);
        distances.reached(&url(0), ms(80));
        distances.clone().reached(&url(0), ms(160));
        assert_eq!(distances.of(&Url::parse("http://h0:80/b").unwrap()), Some(ms(90)));
        assert_eq!(distances.of(&Url::parse("https://h0/b").unwrap()), None, "another port");
        (1..HOSTS_MAX).for_each(|it| distances.reached(&url(it), ms(1)));
        distances.reached(&url(0), ms(90));
        distances.reached(&url(HOSTS_MAX), ms(1));
        let known = [0, 1, 2, HOSTS_MAX].map(|it| distances.of(&url(it)).is_some());
        assert_eq!(known, [true, false, true, true]);
    }
}
