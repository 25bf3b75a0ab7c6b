//! The frontier: the URLs that a crawl has found and not yet fetched, and when each may be.
//!
//! A caller [pushes](Frontier::push) what it finds, asks for the [next](Frontier::next) request,
//! performs it, and says how it was [answered](Frontier::answered). Robots.txt files are requested
//! and obeyed in the same way.
//!
//! A host is left alone between two requests, as long as the settings, its Crawl-delay, its
//! `Retry-After` or its slowness ask. Names that share an address count as one server. A host that
//! fails, or has a wall, is paused with its reason and never holds up the others.
//!
//! Source: Heydon and Najork, "Mercator: a scalable, extensible web crawler" (1999).
//!
//! Sans-I/O.

use std::fmt;
use std::net::IpAddr;

use url::{Position, Url};

use crate::key::{URL_BYTES_MAX, key};
use crate::robots::Decision;

mod hosts;
mod pace;
mod settings;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod traps;
mod view;
mod wishes;

use hosts::{Hosts, Robots, Server};
use pace::Failing;
pub use settings::{Order, Settings};
pub use state::{Counts, Failure, Out, Outcome, Pause, State, Wait};
use store::{Phase, Store};
use traps::Traps;
pub use traps::{TRAPS_MAX, Trap, TrapKind, TrapLimits};
pub use view::HostView;

/// Number of failures of a host, without a success in between, after which it is paused.
const FAILURES_MAX: u32 = 10;

/// Maximum number of URLs that robots.txt keeps out in one call of [`Frontier::next`], which so
/// takes a short time.
const STEPS_MAX: usize = 1_000;

/// A URL that may be fetched.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The URL as it was found.
    pub url: &'a Url,
    /// Number of links from the start.
    pub depth: u16,
    /// It was live at the last pass. Such URLs are pushed first, and no cap refuses them.
    pub known: bool,
}

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It is in the queue.
    In,
    /// Its key has been there before.
    Seen,
    /// It is kept out.
    Out(Out),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Fetch an object; its outcome goes to [`Frontier::answered`].
    Fetch {
        /// The URL, as it was found.
        url: Url,
        /// Number of links from the start.
        depth: u16,
    },
    /// Fetch a robots.txt; its answer goes to [`Frontier::robots_answered`].
    Robots {
        /// Its URL.
        url: Url,
    },
    /// Ask again after an answer, a push or a resume, or at a time.
    Wait {
        /// The time, which can be now; `None`: only after one of the others.
        until_ms: Option<u64>,
    },
    /// Nothing is left but what paused hosts hold back.
    Done,
}

/// A rule of a root: the number of the rule that refuses the URL, if one does.
pub type Filter = Box<dyn Fn(&Url) -> Option<u16> + Send>;

/// The frontier of one root.
pub struct Frontier {
    settings: Settings,
    filter: Filter,
    store: Store,
    hosts: Hosts,
    traps: Traps,
    counts: Counts,
    /// Number of requests under way, with those for robots.txt.
    requests: usize,
    /// Number of stored URLs that are no objects.
    aside: usize,
}

impl fmt::Debug for Frontier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frontier").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Frontier {
    /// Returns an empty frontier.
    pub fn new(settings: Settings, filter: Filter) -> Self {
        let traps = Traps::new(settings.traps);
        Self {
            settings,
            filter,
            store: Store::default(),
            hosts: Hosts::default(),
            traps,
            counts: Counts::default(),
            requests: 0,
            aside: 0,
        }
    }

    /// Takes a URL, unless it is there or kept out.
    pub fn push(&mut self, candidate: Candidate<'_>) -> Pushed {
        let (id, host) = match self.insert(candidate) {
            Ok(inserted) => inserted,
            Err(pushed) => return pushed,
        };
        self.counts.queued += 1;
        self.hosts.queue(id, &mut self.store, self.settings.order == Order::Depth);
        self.hosts.list(host, &self.settings);
        Pushed::In
    }

    /// Takes a URL that is no object of the crawl, such as a list of objects: rules and caps are not
    /// about it, robots.txt is. It comes before all others of its host, in either order.
    pub fn push_aside(&mut self, url: &Url) {
        if !self.has_scheme(url)
            || URL_BYTES_MAX < url.as_str().len()
            || self.store.find(&key(url)).is_some()
        {
            return;
        }
        let depth = if self.settings.order == Order::Depth { u16::MAX } else { 0 };
        let Ok((id, host)) = self.store_url(url, depth) else { return };
        self.aside += 1;
        self.counts.queued += 1;
        self.hosts.queue(id, &mut self.store, true);
        self.hosts.list(host, &self.settings);
    }

    /// Puts a URL that is done back into the queue, before others of its host and depth: who wants it again
    /// knows why.
    pub fn again(&mut self, url: &Url) {
        let Some(id) = self.store.find(&key(url)) else { return };
        let Some(entry) = self.store.get_mut(id).filter(|it| it.phase == Phase::Done) else {
            return;
        };
        let host = entry.host;
        self.counts.done -= 1;
        self.counts.queued += 1;
        self.hosts.queue(id, &mut self.store, true);
        self.hosts.list(host, &self.settings);
    }

    /// Takes a URL that was answered in this pass before the process was stopped: it is not fetched
    /// again.
    pub fn push_done(&mut self, candidate: Candidate<'_>) {
        if let Ok((id, _)) = self.insert(candidate)
            && let Some(entry) = self.store.get_mut(id)
        {
            entry.phase = Phase::Done;
            self.counts.done += 1;
        }
    }

    /// Says that a URL needs no request in this pass: a list has told enough of its object. Only one that waits
    /// is changed.
    pub fn skip(&mut self, url: &Url) {
        let Some(id) = self.store.find(&key(url)) else { return };
        if let Some(entry) = self.store.get_mut(id).filter(|it| it.phase == Phase::Queued) {
            entry.phase = Phase::Skipped;
            self.counts.queued -= 1;
            self.counts.done += 1;
        }
    }

    /// Stores a URL; returns it and its host, or why it is not stored.
    fn insert(&mut self, candidate: Candidate<'_>) -> Result<(u32, u32), Pushed> {
        let Candidate { url, depth, known } = candidate;
        let key = key(url);
        if let Some(id) = self.store.find(&key) {
            // A shorter way counts for what is found from there.
            if let Some(entry) = self.store.get_mut(id) {
                entry.depth = entry.depth.min(depth);
            }
            return Err(Pushed::Seen);
        }
        if let Some(out) = self.refusal(url, depth, known) {
            return Err(Pushed::Out(out));
        }
        if !known && let Err(kind) = self.traps.admit(url) {
            return Err(Pushed::Out(Out::Trap(kind)));
        }
        self.store_url(url, depth).map_err(Pushed::Out)
    }

    fn store_url(&mut self, url: &Url, depth: u16) -> Result<(u32, u32), Out> {
        let host = self.hosts.add(url).ok_or(Out::Scheme)?;
        // A fragment is never requested, and nobody's name and password are sent.
        let front = &url[..Position::BeforeUsername];
        let text = [front, &url[Position::BeforeHost..Position::AfterQuery]].concat();
        let id = self.store.insert(&text, &key(url), host, depth).ok_or(Out::UrlsMax)?;
        Ok((id, host))
    }

    fn has_scheme(&self, url: &Url) -> bool {
        url.has_host() && self.settings.schemes.iter().any(|it| it == url.scheme())
    }

    /// Returns why a URL that is not there is kept out, but for traps.
    fn refusal(&self, url: &Url, depth: u16, known: bool) -> Option<Out> {
        if !self.has_scheme(url) {
            return Some(Out::Scheme);
        }
        if URL_BYTES_MAX < url.as_str().len() {
            return Some(Out::TooLong);
        }
        if let Some(rule) = (self.filter)(url) {
            return Some(Out::Rule(rule));
        }
        if known {
            None
        } else if self.settings.depth_max < depth {
            Some(Out::Depth)
        } else if self.settings.urls_max <= self.store.len().saturating_sub(self.aside) {
            Some(Out::UrlsMax)
        } else if self.settings.hosts_max <= self.hosts.names() && !self.hosts.has_name(url) {
            Some(Out::HostsMax)
        } else {
            None
        }
    }

    /// Returns what to do now.
    pub fn next(&mut self, now_ms: u64) -> Next {
        self.hosts.wake(now_ms, &self.settings);
        for _ in 0..STEPS_MAX {
            if self.settings.requests_max.max(1) <= self.requests {
                return Next::Wait { until_ms: None };
            }
            let Some((at_ms, host)) = self.hosts.next_turn() else {
                let until_ms = self.hosts.next_end_ms();
                let is_done = self.requests == 0 && until_ms.is_none();
                return if is_done { Next::Done } else { Next::Wait { until_ms } };
            };
            if now_ms < at_ms {
                let end_ms = self.hosts.next_end_ms().unwrap_or(at_ms);
                return Next::Wait { until_ms: Some(at_ms.min(end_ms)) };
            }
            if let Some(next) = self.robots_request(host, now_ms) {
                return next;
            }
            if let Some(next) = self.request(host, now_ms) {
                return next;
            }
            self.hosts.list(host, &self.settings);
        }
        Next::Wait { until_ms: Some(now_ms) }
    }

    /// Returns the request for the next object of a host, if robots.txt allows it.
    fn request(&mut self, host: u32, now_ms: u64) -> Option<Next> {
        let id = self.hosts.take(host, &self.store, self.settings.order)?;
        let entry = self.store.get_mut(id)?;
        if entry.phase == Phase::Skipped {
            entry.phase = Phase::Done;
            return None;
        }
        let depth = entry.depth;
        let url = Url::parse(self.store.url(id)).ok()?;
        let robots = self.hosts.host(host).map(|it| &it.robots);
        let decision = match robots {
            Some(Robots::Known(known)) => known.decide(&url, now_ms),
            _ => Decision::Missing,
        };
        match decision {
            Decision::Unreachable { .. } => {
                self.hosts.queue(id, &mut self.store, true);
                self.hosts.pause(host, Pause::Robots, None, &self.settings);
                return None;
            }
            Decision::Line(rule) if !rule.allow => {
                let line = rule.line;
                self.settle(id, Phase::Out, line);
                return None;
            }
            _ => {}
        }
        self.store.get_mut(id)?.phase = Phase::Fetching;
        self.counts.queued -= 1;
        self.counts.fetching += 1;
        self.hosts.rotate(host, &self.settings);
        self.hosts.list(host, &self.settings);
        self.begin(host, now_ms);
        Some(Next::Fetch { url, depth })
    }

    fn begin(&mut self, host: u32, now_ms: u64) {
        self.requests += 1;
        let delay_ms = self.hosts.delay_ms(host, &self.settings, now_ms);
        self.hosts.with_server(host, &self.settings, |server| {
            server.requests += 1;
            server.hold(now_ms.saturating_add(delay_ms), Wait::Delay);
        });
    }

    /// Ends a request; its host waits for the delay, and longer if it says so or fails.
    fn end(&mut self, host: u32, now_ms: u64, took_ms: Option<u64>, hold: Option<(u64, Wait)>) {
        self.requests = self.requests.saturating_sub(1);
        self.hosts.with_server(host, &self.settings, |server| {
            server.requests = server.requests.saturating_sub(1);
            if let Some(took_ms) = took_ms {
                server.pace.took(took_ms);
            }
        });
        let delay_ms = self.hosts.delay_ms(host, &self.settings, now_ms);
        self.hosts.with_server(host, &self.settings, |server| {
            server.hold(now_ms.saturating_add(delay_ms), Wait::Delay);
            if let Some((until_ms, why)) = hold {
                server.hold(until_ms, why);
            }
        });
    }

    /// Says what came of a request for an object. A URL that is not being fetched is ignored.
    pub fn answered(&mut self, url: &Url, outcome: Outcome, now_ms: u64) {
        let Some(id) = self.store.find(&key(url)) else { return };
        let Some(entry) = self.store.get_mut(id).filter(|it| it.phase == Phase::Fetching) else {
            return;
        };
        entry.tries = entry.tries.saturating_add(1);
        let (host, is_last) = (entry.host, self.settings.tries_max <= entry.tries);
        match outcome {
            Outcome::Done { took_ms } => {
                self.settle(id, Phase::Done, 0);
                self.hosts.with_server(host, &self.settings, |it| it.pace.failures = 0);
                self.end(host, now_ms, Some(took_ms), None);
            }
            Outcome::Wall(wall) => {
                self.requeue(id, true);
                self.end(host, now_ms, None, None);
                self.hosts.pause(host, Pause::Wall(wall), None, &self.settings);
            }
            Outcome::Failed { failure, retry_at_ms } => {
                let failing = Failing::new(failure);
                if failing == Failing::Object || is_last {
                    self.settle(id, Phase::Failed, failure.code());
                } else {
                    self.requeue(id, false);
                }
                let hold = self.failed(host, failing, retry_at_ms, now_ms);
                self.end(host, now_ms, None, hold);
            }
        }
    }

    /// Counts a failure of a host; returns until when it is left alone, and why.
    fn failed(
        &mut self,
        host: u32,
        failing: Failing,
        retry_at_ms: Option<u64>,
        now_ms: u64,
    ) -> Option<(u64, Wait)> {
        let server = self.hosts.server_of(host)?;
        // Requests that were under way together fail together.
        let is_known =
            now_ms < server.next_ms && matches!(server.why, Some(Wait::BackOff | Wait::RetryAfter));
        let mut pace = server.pace;
        match failing {
            Failing::Object => pace.failures = 0,
            Failing::ForNow | Failing::Host => pace.failures += u32::from(!is_known),
        }
        self.hosts.with_server(host, &self.settings, |it| it.pace = pace);
        if FAILURES_MAX <= pace.failures {
            self.hosts.pause(host, Pause::Failing, None, &self.settings);
        }
        match (retry_at_ms, failing) {
            (Some(at_ms), Failing::ForNow | Failing::Host) => Some((at_ms, Wait::RetryAfter)),
            (None, Failing::Host) => {
                Some((now_ms.saturating_add(pace.back_off_ms()), Wait::BackOff))
            }
            _ => None,
        }
    }

    /// Puts a URL that was being fetched back into its queue.
    fn requeue(&mut self, id: u32, is_first: bool) {
        self.counts.fetching -= 1;
        self.counts.queued += 1;
        self.hosts.queue(id, &mut self.store, is_first);
        if let Some(host) = self.store.get(id).map(|it| it.host) {
            self.hosts.list(host, &self.settings);
        }
    }

    /// Moves a URL to a state in which it stays.
    fn settle(&mut self, id: u32, phase: Phase, detail: u32) {
        let Some(entry) = self.store.get_mut(id) else { return };
        match entry.phase {
            Phase::Queued => self.counts.queued -= 1,
            _ => self.counts.fetching -= 1,
        }
        match phase {
            Phase::Done => self.counts.done += 1,
            Phase::Out => self.counts.out += 1,
            _ => self.counts.failed += 1,
        }
        (entry.phase, entry.detail) = (phase, detail);
    }

    /// Says at which address a host is. Names at one address are left alone together.
    pub fn resolved(&mut self, name: &str, address: IpAddr) {
        self.hosts.resolved(name, address, &self.settings);
    }

    /// Pauses a host by its name, with all ports, until a time or until it is resumed.
    pub fn pause(&mut self, name: &str, why: Pause, until_ms: Option<u64>) {
        for id in self.hosts.named(name) {
            self.hosts.pause(id, why, until_ms, &self.settings);
        }
    }

    /// Resumes a host by its name.
    pub fn resume(&mut self, name: &str) {
        for id in self.hosts.named(name) {
            self.hosts.with_server(id, &self.settings, |it| it.pace.failures = 0);
            self.hosts.resume(id, &self.settings);
        }
    }
}

impl Server {
    /// Leaves the server alone until a time, if that is later than now planned.
    fn hold(&mut self, until_ms: u64, why: Wait) {
        if self.next_ms < until_ms {
            (self.next_ms, self.why) = (until_ms, Some(why));
        }
    }
}
