//! Hosts, with their queues, and the servers behind them, with their turns.
//!
//! A host is a scheme, a name and a port, as each has its own robots.txt (RFC 9309 §2.3). A server
//! is what is left alone between two requests: one name, or all names at one address.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use url::{Host as Name, Url};

use super::pace::Pace;
use super::state::{Pause, Wait};
use super::store::{NONE, Phase, Store};
use super::{Order, Settings};
use crate::key::origin;
use crate::robots::{Known, State};

/// Schemes of servers with connections of state, which serve one request after the other: more of them are for other
/// clients, and with TLS data connections of one could be taken for those of another.
const SERIAL: [&str; 4] = ["ftp", "ftps", "news", "snews"];

/// URLs of one depth, first and last, linked by their entries.
#[derive(Clone, Copy, Debug)]
struct Queue {
    first: u32,
    last: u32,
}

/// What is known of a host's robots.txt.
#[derive(Clone, Debug, Default)]
pub(super) enum Robots {
    #[default]
    Unknown,
    Asked(Option<Known>),
    Known(Known),
}

#[derive(Debug)]
pub(super) struct Host {
    /// `https://h.example:8443`.
    pub(super) origin: String,
    pub(super) name: String,
    pub(super) server: u32,
    pub(super) robots: Robots,
    pub(super) pause: Option<(Pause, Option<u64>)>,
    /// URLs to fetch, by depth.
    queues: BTreeMap<u16, Queue>,
    /// The host is in the list of its server.
    is_listed: bool,
    /// Nothing else is asked of its server while it is asked for.
    is_serial: bool,
}

#[derive(Debug, Default)]
pub(super) struct Server {
    /// Hosts with URLs to fetch, the next one first.
    hosts: VecDeque<u32>,
    pub(super) requests: usize,
    /// Time of the next request.
    pub(super) next_ms: u64,
    /// The reason for that time.
    pub(super) why: Option<Wait>,
    pub(super) pace: Pace,
    is_loopback: bool,
    /// Its place in the order of turns.
    turn: Option<(u64, u64)>,
}

/// All hosts and servers by number, from 0.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    hosts: Vec<Host>,
    servers: Vec<Server>,
    origins: HashMap<String, u32>,
    names: HashMap<String, u32>,
    addresses: HashMap<IpAddr, u32>,
    /// Servers with something to fetch: time, turn, number.
    turns: BTreeSet<(u64, u64, u32)>,
    /// Number of turns given.
    given: u64,
    /// Ends of pauses: time, host.
    pauses: BTreeSet<(u64, u32)>,
}

impl Hosts {
    /// Returns the number of names.
    pub(super) fn names(&self) -> usize {
        self.names.len()
    }

    pub(super) fn has_name(&self, url: &Url) -> bool {
        url.host_str().is_some_and(|it| self.names.contains_key(it))
    }

    pub(super) fn find(&self, url: &Url) -> Option<u32> {
        self.origins.get(&origin(url)).copied()
    }

    /// Returns the number of the URL's host, and adds the host if it is new. `None`: the URL has
    /// none.
    pub(super) fn add(&mut self, url: &Url) -> Option<u32> {
        let origin = origin(url);
        if let Some(known) = self.origins.get(&origin) {
            return Some(*known);
        }
        let name = url.host_str()?.to_owned();
        let server = match self.names.get(&name) {
            Some(server) => *server,
            None => {
                let is_loopback = url.host().is_some_and(|it| is_loopback(&it));
                self.servers.push(Server { is_loopback, ..Server::default() });
                u32::try_from(self.servers.len() - 1).ok()?
            }
        };
        let id = u32::try_from(self.hosts.len()).ok()?;
        self.names.insert(name.clone(), server);
        self.origins.insert(origin.clone(), id);
        self.hosts.push(Host {
            origin,
            name,
            server,
            robots: Robots::default(),
            pause: None,
            queues: BTreeMap::new(),
            is_listed: false,
            is_serial: SERIAL.contains(&url.scheme()),
        });
        Some(id)
    }

    pub(super) fn host(&self, id: u32) -> Option<&Host> {
        self.hosts.get(id as usize)
    }

    pub(super) fn host_mut(&mut self, id: u32) -> Option<&mut Host> {
        self.hosts.get_mut(id as usize)
    }

    pub(super) fn server_of(&self, host: u32) -> Option<&Server> {
        self.servers.get(self.host(host)?.server as usize)
    }

    /// Changes the server of a host, and its place in the order of turns after that.
    pub(super) fn with_server(
        &mut self,
        host: u32,
        settings: &Settings,
        change: impl FnOnce(&mut Server),
    ) {
        let Some(id) = self.host(host).map(|it| it.server) else { return };
        if let Some(server) = self.servers.get_mut(id as usize) {
            change(server);
        }
        self.place(id, settings);
    }

    /// Returns the delay of a host between two requests, in milliseconds.
    pub(super) fn delay_ms(&self, host: u32, settings: &Settings, now_ms: u64) -> u64 {
        let asked_ms = self.host(host).and_then(|it| match &it.robots {
            Robots::Known(known) => match known.state(now_ms) {
                State::Rules(rules) => rules.crawl_delay_ms(),
                State::Missing | State::Unreachable { .. } => None,
            },
            Robots::Unknown | Robots::Asked(_) => None,
        });
        self.server_of(host).map_or(0, |it| {
            it.pace.delay_ms(settings, it.is_loopback, asked_ms.unwrap_or_default())
        })
    }

    /// Puts a server where it belongs in the order of turns.
    fn place(&mut self, id: u32, settings: &Settings) {
        let Some(server) = self.servers.get_mut(id as usize) else { return };
        if let Some((at_ms, turn)) = server.turn.take() {
            self.turns.remove(&(at_ms, turn, id));
        }
        let Some(next) = server.hosts.front().and_then(|it| self.hosts.get(*it as usize)) else {
            return;
        };
        let most = if next.is_serial { 1 } else { settings.host_requests_max.max(1) };
        if server.requests < most {
            self.given += 1;
            server.turn = Some((server.next_ms, self.given));
            self.turns.insert((server.next_ms, self.given, id));
        }
    }

    /// Returns the time of the next turn, and the host that has it.
    pub(super) fn next_turn(&self) -> Option<(u64, u32)> {
        let (at_ms, _, id) = self.turns.first()?;
        let host = self.servers.get(*id as usize)?.hosts.front()?;
        Some((*at_ms, *host))
    }

    /// Returns when the first pause ends.
    pub(super) fn next_end_ms(&self) -> Option<u64> {
        self.pauses.first().map(|it| it.0)
    }

    /// Puts the host that has the turn behind the others of its server.
    pub(super) fn rotate(&mut self, host: u32, settings: &Settings) {
        self.with_server(host, settings, |server| {
            if !server.hosts.is_empty() {
                server.hosts.rotate_left(1);
            }
        });
    }

    /// Puts a host on the list of its server if it can be fetched from, and off it if not.
    pub(super) fn list(&mut self, id: u32, settings: &Settings) {
        let Some(host) = self.host_mut(id) else { return };
        let is_asked = matches!(host.robots, Robots::Asked(_));
        let is_ready = !host.queues.is_empty() && host.pause.is_none() && !is_asked;
        if host.is_listed != is_ready {
            host.is_listed = is_ready;
            self.with_server(id, settings, |server| {
                if is_ready {
                    server.hosts.push_back(id);
                } else {
                    server.hosts.retain(|it| *it != id);
                }
            });
        }
    }

    /// Pauses a host, until a time or until it is resumed.
    pub(super) fn pause(
        &mut self,
        id: u32,
        why: Pause,
        until_ms: Option<u64>,
        settings: &Settings,
    ) {
        self.resume(id, settings);
        let Some(host) = self.host_mut(id) else { return };
        host.pause = Some((why, until_ms));
        self.pauses.extend(until_ms.map(|it| (it, id)));
        self.list(id, settings);
    }

    pub(super) fn resume(&mut self, id: u32, settings: &Settings) {
        let Some(host) = self.host_mut(id) else { return };
        if let Some((_, Some(until_ms))) = host.pause.take() {
            self.pauses.remove(&(until_ms, id));
        }
        self.list(id, settings);
    }

    /// Resumes the hosts whose pause has ended.
    pub(super) fn wake(&mut self, now_ms: u64, settings: &Settings) {
        while let Some((_, host)) = self.pauses.first().copied().filter(|it| it.0 <= now_ms) {
            self.resume(host, settings);
        }
    }

    /// Returns the hosts with a name.
    pub(super) fn named(&self, name: &str) -> Vec<u32> {
        let all = (0..).zip(&self.hosts);
        all.filter(|it| it.1.name == name).map(|it| it.0).collect()
    }

    /// Puts a URL into the queue of its host.
    pub(super) fn queue(&mut self, url: u32, store: &mut Store, is_first: bool) {
        let Some(entry) = store.get_mut(url) else { return };
        entry.phase = Phase::Queued;
        let (id, depth) = (entry.host, entry.depth);
        let Some(host) = self.host_mut(id) else { return };
        let queue = host.queues.entry(depth).or_insert(Queue { first: NONE, last: NONE });
        entry.next = if is_first { queue.first } else { NONE };
        if queue.first == NONE {
            (queue.first, queue.last) = (url, url);
        } else if is_first {
            queue.first = url;
        } else if let Some(last) = store.get_mut(queue.last) {
            last.next = url;
            queue.last = url;
        }
    }

    /// Takes the next URL from the queue of a host.
    pub(super) fn take(&mut self, id: u32, store: &Store, order: Order) -> Option<u32> {
        let host = self.host_mut(id)?;
        let mut entry = match order {
            Order::Breadth => host.queues.first_entry()?,
            Order::Depth => host.queues.last_entry()?,
        };
        let url = entry.get().first;
        let next = store.get(url)?.next;
        if next == NONE {
            entry.remove();
        } else {
            entry.get_mut().first = next;
        }
        Some(url)
    }

    /// Lets a name share the server of all names at an address.
    pub(super) fn resolved(&mut self, name: &str, address: IpAddr, settings: &Settings) {
        let Some(old) = self.names.get(name).copied() else { return };
        let new = *self.addresses.entry(address).or_insert(old);
        if old == new {
            return;
        }
        for server in self.names.values_mut().filter(|it| **it == old) {
            *server = new;
        }
        for server in self.addresses.values_mut().filter(|it| **it == old) {
            *server = new;
        }
        for host in self.hosts.iter_mut().filter(|it| it.server == old) {
            host.server = new;
        }
        let Some(left) = self.servers.get_mut(old as usize) else { return };
        let (hosts, requests) =
            (std::mem::take(&mut left.hosts), std::mem::take(&mut left.requests));
        let (next_ms, why) = (left.next_ms, left.why);
        if let Some(server) = self.servers.get_mut(new as usize) {
            server.hosts.extend(hosts);
            server.requests += requests;
            if server.next_ms < next_ms {
                (server.next_ms, server.why) = (next_ms, why);
            }
        }
        self.place(old, settings);
        self.place(new, settings);
    }

    /// Returns the estimated number of allocated bytes.
    pub(super) fn bytes(&self) -> usize {
        let texts: usize =
            self.hosts.iter().map(|it| 2 * it.origin.len() + 2 * it.name.len()).sum();
        let maps = (self.origins.capacity() + self.names.capacity()) * 33;
        texts
            + maps
            + self.hosts.capacity() * size_of::<Host>()
            + self.servers.capacity() * size_of::<Server>()
    }
}

fn is_loopback(name: &Name<&str>) -> bool {
    match name {
        // In URLs of schemes that browsers do not know, an address is read as a name.
        Name::Domain(name) => {
            *name == "localhost"
                || name.ends_with(".localhost")
                || name.parse::<Ipv4Addr>().is_ok_and(|it| it.is_loopback())
        }
        Name::Ipv4(address) => address.is_loopback(),
        Name::Ipv6(address) => address.to_canonical().is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Candidate, Frontier, Next};
    use super::*;
    use crate::robots::Answer;

    #[test]
    fn servers_that_list_what_they_have_are_asked_for_one_thing_at_a_time() {
        for (scheme, expected) in [("http", 8), ("gopher", 8), ("ftps", 1), ("snews", 1)] {
            let schemes = vec![scheme.to_owned()];
            let settings =
                Settings { schemes, host_requests_max: 8, delay_ms: 0, ..Settings::default() };
            let mut frontier = Frontier::new(settings, Box::new(|_| None));
            for it in 0..20 {
                let url = Url::parse(&format!("{scheme}://127.0.0.1/{it}")).unwrap();
                frontier.push(Candidate { url: &url, depth: 0, known: false });
            }
            let Next::Robots { url } = frontier.next(0) else { panic!("{frontier:?}") };
            frontier.robots_answered(&url, Answer::Status(404), 0);
            let under_way = std::iter::repeat_with(|| frontier.next(0))
                .take_while(|it| matches!(it, Next::Fetch { .. }));
            assert_eq!(under_way.count(), expected, "{scheme}");
        }
    }

    #[test]
    fn this_machine_is_known_in_urls_of_any_scheme() {
        for (text, expected) in [
            ("http://127.0.0.1/", true),
            ("gopher://127.0.0.1:7070/1", true),
            ("news://[::1]/a.b", true),
            ("ftp://localhost/", true),
            ("gopher://192.0.2.1/", false),
            ("gopher://h.example/", false),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!(url.host().is_some_and(|it| is_loopback(&it)), expected, "{text}");
        }
    }
}
