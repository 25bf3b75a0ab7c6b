//! Leases: which servers are there, by when they were last heard of.
//!
//! A server that announces itself has a lease. It is dead when two announcements in a row are missing, and gone when
//! none has come for its time-to-live, or when it says goodbye. Time in which the registry did not run, or heard of
//! nobody, does not count; while it hears of nobody, it takes no more than a hundred for gone.
//!
//! Source: ours.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, HashMap};

use exchange::servers::ServerKind;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::proof::Pin;

/// Maximum number of servers.
pub const SERVERS_MAX: usize = 100_000;
/// Maximum number of servers of one host: a path for each identity costs nothing.
pub const OF_HOST_MAX: usize = 200;
/// After how many times the time between two announcements a server is dead: a fraction.
pub(crate) const MISSED: (u32, u32) = (5, 2);
/// Maximum number of servers that are gone at once while nobody is heard of: more likely the registry is cut off.
const GONE_MAX: usize = 100;

/// What an administrator has said of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Nothing.
    #[default]
    None,
    /// It is listed.
    Approved,
    /// It is not listed, and its announcements are refused.
    Revoked,
}

/// How a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// It is there.
    Alive,
    /// It is listed, and has not been heard of for some time.
    Dead,
    /// An administrator has to approve it.
    Waiting,
    /// An administrator has revoked it.
    Revoked,
}

impl Standing {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Dead => "dead",
            Self::Waiting => "waiting",
            Self::Revoked => "revoked",
        }
    }
}

/// The lease of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Its key and the highest number of its messages.
    pub pin: Pin,
    /// Its kind.
    pub kind: ServerKind,
    /// Its name for people.
    pub name: String,
    /// Its address.
    pub url: Url,
    /// When its description was last read, in Unix milliseconds.
    pub seen_ms: u64,
    /// What an administrator has said of it.
    #[serde(default)]
    pub decision: Decision,
    /// The digest of what lasts of its record, as it was written; empty: it is not listed.
    #[serde(default)]
    pub written: String,
    /// When its record was written, in Unix milliseconds.
    #[serde(default)]
    pub written_ms: u64,
}

/// When servers are dead, and gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Time between two announcements of a server, in milliseconds.
    pub every_ms: u64,
    /// Time for which it stays listed without one, in milliseconds.
    pub ttl_ms: u64,
    /// Whether each server has to be approved.
    pub approval: bool,
}

/// The leases of all servers, by their ids.
#[derive(Clone, Debug)]
pub struct Leases {
    terms: Terms,
    all: BTreeMap<String, Lease>,
    /// Number of servers by host.
    by_host: HashMap<String, usize>,
    /// Since when the registry hears, in Unix milliseconds.
    hearing_since_ms: u64,
    /// When it last heard of any server.
    heard_ms: u64,
}

impl Leases {
    /// Returns the leases of a registry that begins to hear at `now_ms`, with those of before.
    pub fn new(terms: Terms, all: BTreeMap<String, Lease>, now_ms: u64) -> Self {
        let by_host = HashMap::new();
        let mut leases = Self { terms, all, by_host, hearing_since_ms: 0, heard_ms: 0 };
        for lease in leases.all.values() {
            *leases.by_host.entry(host_of(&lease.url)).or_default() += 1;
        }
        leases.begin(now_ms);
        leases
    }

    /// Begins to hear: at the start, and when the clock was set. Nothing was in the future.
    pub fn begin(&mut self, now_ms: u64) {
        (self.hearing_since_ms, self.heard_ms) = (now_ms, now_ms);
        for lease in self.all.values_mut() {
            lease.seen_ms = lease.seen_ms.min(now_ms);
            lease.written_ms = lease.written_ms.min(now_ms);
        }
    }

    /// Returns when servers are dead, and gone.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// Returns the lease of a server.
    pub fn get(&self, id: &str) -> Option<&Lease> {
        self.all.get(id)
    }

    /// Returns all leases by the ids of their servers.
    pub fn all(&self) -> impl Iterator<Item = (&String, &Lease)> {
        self.all.iter()
    }

    /// Returns why there is no room for a server at an address; `None`: there is.
    pub fn is_full(&self, id: &str, url: &Url) -> Option<&'static str> {
        let (known, host) = (self.all.get(id), host_of(url));
        if known.is_none() && SERVERS_MAX <= self.all.len() {
            return Some("the registry has as many servers as it can list");
        }
        let is_there = known.is_some_and(|it| host_of(&it.url) == host);
        let count = self.by_host.get(&host).copied().unwrap_or_default();
        let is_full = !is_there && OF_HOST_MAX <= count;
        is_full.then_some("the registry has as many servers of this host as it lists of one")
    }

    /// Takes what a server has proved, or an administrator has decided; returns what was known before.
    pub fn put(&mut self, id: &str, lease: Lease) -> Option<Lease> {
        if self.dead_ms() < lease.seen_ms.saturating_sub(self.heard_ms) {
            // The registry was cut off: the others could not be heard, either.
            self.hearing_since_ms = lease.seen_ms;
        }
        self.heard_ms = self.heard_ms.max(lease.seen_ms);
        self.insert(id, lease)
    }

    fn insert(&mut self, id: &str, lease: Lease) -> Option<Lease> {
        let before = self.remove(id);
        *self.by_host.entry(host_of(&lease.url)).or_default() += 1;
        self.all.insert(id.to_owned(), lease);
        before
    }

    fn remove(&mut self, id: &str) -> Option<Lease> {
        let before = self.all.remove(id)?;
        let host = host_of(&before.url);
        if let Some(count) = self.by_host.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                self.by_host.remove(&host);
            }
        }
        Some(before)
    }

    /// Puts what is kept of a server that is listed no more in its place; `None`: nothing.
    pub fn replace(&mut self, id: &str, kept: Option<Lease>) {
        match kept {
            Some(lease) => drop(self.insert(id, lease)),
            None => drop(self.remove(id)),
        }
    }

    /// Returns how a server stands.
    pub fn standing(&self, lease: &Lease, now_ms: u64) -> Standing {
        match lease.decision {
            Decision::Revoked => Standing::Revoked,
            Decision::None if self.terms.approval => Standing::Waiting,
            _ if self.dead_ms() < self.silent_ms(lease, now_ms) => Standing::Dead,
            _ => Standing::Alive,
        }
    }

    fn dead_ms(&self) -> u64 {
        self.terms.every_ms.saturating_mul(MISSED.0.into()) / u64::from(MISSED.1)
    }

    /// Returns for how long a server has not been heard of while the registry ran, in milliseconds.
    fn silent_ms(&self, lease: &Lease, now_ms: u64) -> u64 {
        now_ms.saturating_sub(lease.seen_ms.max(self.hearing_since_ms))
    }

    /// Returns the ids of the servers that are gone, whatever is kept of them. What an administrator has revoked is not
    /// listed anyway.
    pub fn gone(&self, now_ms: u64) -> Vec<String> {
        let is_kept = |it: &Lease| match it.decision {
            Decision::None => false,
            Decision::Approved => it.written.is_empty(),
            Decision::Revoked => true,
        };
        let is_gone = |it: &Lease| !is_kept(it) && self.terms.ttl_ms < self.silent_ms(it, now_ms);
        let gone = self.all.iter().filter(|it| is_gone(it.1)).map(|it| it.0.clone());
        let gone: Vec<String> = gone.collect();
        let is_deaf = self.dead_ms() < now_ms.saturating_sub(self.heard_ms);
        if is_deaf && GONE_MAX < gone.len() { Vec::new() } else { gone }
    }
}

/// Returns the host of an address.
fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;
    const TERMS: Terms = Terms { every_ms: 5 * MINUTE, ttl_ms: 60 * MINUTE, approval: false };

    fn lease(seen_ms: u64) -> Lease {
        Lease {
            pin: Pin::default(),
            kind: ServerKind::Broker,
            name: "b".to_owned(),
            url: Url::parse("http://h/").unwrap(),
            seen_ms,
            decision: Decision::None,
            written: String::new(),
            written_ms: 0,
        }
    }

    fn standing(leases: &Leases, id: &str, now_ms: u64) -> Standing {
        leases.standing(leases.get(id).unwrap(), now_ms)
    }

    #[test]
    fn a_silent_server_is_dead_then_gone() {
        let mut leases = Leases::new(TERMS, BTreeMap::new(), 0);
        leases.put("silent", lease(0));
        for minute in 0..=70 {
            leases.put("other", lease(minute * MINUTE));
            let now_ms = minute * MINUTE;
            let expected = if minute <= 12 { Standing::Alive } else { Standing::Dead };
            assert_eq!(standing(&leases, "silent", now_ms), expected, "{minute}");
            assert_eq!(standing(&leases, "other", now_ms), Standing::Alive);
            let gone = if minute <= 60 { vec![] } else { vec!["silent".to_owned()] };
            assert_eq!(leases.gone(now_ms), gone, "{minute}");
        }
    }

    #[test]
    fn time_in_which_the_registry_did_not_run_does_not_count() {
        let known = BTreeMap::from([("a".to_owned(), lease(0))]);
        let start = 10_000 * MINUTE;
        let leases = Leases::new(TERMS, known, start);
        assert_eq!(standing(&leases, "a", start + 12 * MINUTE), Standing::Alive);
        assert_eq!(standing(&leases, "a", start + 13 * MINUTE), Standing::Dead);
        assert_eq!(leases.gone(start + 60 * MINUTE), Vec::<String>::new());
        // One that is alone goes, too.
        assert_eq!(leases.gone(start + 61 * MINUTE), ["a"]);
    }

    #[test]
    fn a_registry_that_is_cut_off_forgets_nobody() {
        let known = (0..=GONE_MAX).map(|n| (n.to_string(), lease(0))).collect();
        let mut leases = Leases::new(TERMS, known, 0);
        let later = 61 * MINUTE;
        assert_eq!(leases.gone(later), Vec::<String>::new());
        // The first one that is heard of again says nothing of the others: they have their time once more.
        for minute in (61..=121).step_by(5) {
            leases.put("other", lease(minute * MINUTE));
            assert_eq!(leases.gone(minute * MINUTE), Vec::<String>::new(), "{minute}");
        }
        leases.put("other", lease(122 * MINUTE));
        assert_eq!(leases.gone(122 * MINUTE).len(), GONE_MAX + 1);
    }

    #[test]
    fn one_host_has_room_for_some_servers() {
        let at = |url: &str| Lease { url: Url::parse(url).unwrap(), ..lease(0) };
        let known = BTreeMap::from([("0".to_owned(), at("http://h/0/"))]);
        let mut leases = Leases::new(TERMS, known, 0);
        for n in 1..OF_HOST_MAX {
            let lease = at(&format!("http://h:{n}/{n}/"));
            assert_eq!(leases.is_full(&n.to_string(), &lease.url), None);
            leases.put(&n.to_string(), lease);
        }
        let is_full = |leases: &Leases, id: &str, url: &str| {
            leases.is_full(id, &Url::parse(url).unwrap()).is_some()
        };
        assert!(is_full(&leases, "new", "http://h/new/"));
        assert!(!is_full(&leases, "new", "http://other/"));
        // Who is there may move there; others come in its place.
        assert!(!is_full(&leases, "1", "http://h/elsewhere/"));
        leases.put("1", at("http://h/elsewhere/"));
        assert!(is_full(&leases, "new", "http://h/new/"));
        leases.put("1", at("http://other/"));
        assert!(!is_full(&leases, "new", "http://h/new/"));
        leases.put("new", at("http://h/new/"));
        assert!(is_full(&leases, "1", "http://h/1/"));
        leases.replace("new", None);
        assert!(!is_full(&leases, "1", "http://h/1/"));
    }

    #[test]
    fn a_clock_that_is_set_takes_nobody_away() {
        let day = 24 * 60 * MINUTE;
        let known = BTreeMap::from([("a".to_owned(), lease(day))]);
        let mut leases = Leases::new(TERMS, known, day);
        for now_ms in [10 * day, 2 * day, 0] {
            leases.begin(now_ms);
            assert_eq!(leases.gone(now_ms + 60 * MINUTE), Vec::<String>::new());
            assert_eq!(leases.gone(now_ms + 61 * MINUTE), ["a"]);
        }
        assert_eq!(leases.get("a").unwrap().seen_ms, 0);
    }

    #[test]
    fn an_administrator_decides() {
        let terms = Terms { approval: true, ..TERMS };
        let mut leases = Leases::new(terms, BTreeMap::new(), 0);
        for (decision, expected) in [
            (Decision::None, Standing::Waiting),
            (Decision::Approved, Standing::Alive),
            (Decision::Revoked, Standing::Revoked),
        ] {
            leases.put("a", Lease { decision, ..lease(0) });
            assert_eq!(standing(&leases, "a", 0), expected);
        }
        assert_eq!(leases.gone(170 * MINUTE), Vec::<String>::new());
        // Who is approved is listed no more when it is gone, and stays approved.
        let approved = Lease { decision: Decision::Approved, ..lease(0) };
        leases.put("a", Lease { written: "x".to_owned(), ..approved.clone() });
        assert_eq!(leases.gone(170 * MINUTE), ["a"]);
        leases.put("a", approved);
        assert_eq!(leases.gone(170 * MINUTE), Vec::<String>::new());
    }
}
