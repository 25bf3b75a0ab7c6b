//! A view of the frontier: where a URL is and why, hosts, traps and counts.
//!
//! Sans-I/O.

use std::cmp::Reverse;
use std::collections::HashMap;

use url::Url;

use super::hosts::Robots;
use super::store::Phase;
use super::{Counts, Failure, Frontier, Out, State, Trap, Wait};
use crate::key::key;

/// What is known of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostView<'a> {
    /// Scheme, name and port.
    pub origin: &'a str,
    /// Number of its URLs in the queue.
    pub waiting: usize,
    /// Mean time of an answer, in milliseconds; `None` before the first.
    pub answer_ms: Option<u64>,
    /// Why it is not asked now.
    pub why: Option<Wait>,
}

impl Frontier {
    /// Returns where a URL is, and why.
    pub fn explain(&self, url: &Url, now_ms: u64) -> State {
        let Some(entry) = self.store.find(&key(url)).and_then(|id| self.store.get(id)) else {
            let out = self.refusal(url, 0, false);
            let out = out.or_else(|| self.traps.holds(url).map(Out::Trap));
            return out.map_or(State::Unknown, State::Out);
        };
        match entry.phase {
            Phase::Fetching => return State::Fetching,
            Phase::Done | Phase::Skipped => return State::Done,
            Phase::Failed => return State::Failed(Failure::by_code(entry.detail)),
            Phase::Out => return State::Out(Out::Robots(entry.detail)),
            Phase::Queued => {}
        }
        let wait = self.wait_of(entry.host, now_ms);
        wait.map_or(State::In, |(why, until_ms)| State::Waiting { until_ms, why })
    }

    /// Returns the URL that is asked for in place of this one, of which it is another spelling; `None` if there is
    /// none.
    pub fn spelled(&self, url: &Url) -> Option<Url> {
        self.store.find(&key(url)).and_then(|id| Url::parse(self.store.url(id)).ok())
    }

    /// Returns the numbers of URLs by state.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the hosts with URLs that wait or a pause, those with most URLs first, at most
    /// `hosts_max`. The last of them is the slowest of all, if that would be left out. Goes through
    /// all URLs.
    pub fn hosts(&self, hosts_max: usize, now_ms: u64) -> Vec<HostView<'_>> {
        let mut waiting: HashMap<u32, usize> = HashMap::new();
        for entry in self.store.entries().filter(|it| it.phase == Phase::Queued) {
            *waiting.entry(entry.host).or_default() += 1;
        }
        let mut views: Vec<HostView<'_>> = (0..)
            .map_while(|id| Some((id, self.hosts.host(id)?)))
            .map(|(id, host)| HostView {
                origin: &host.origin,
                waiting: waiting.get(&id).copied().unwrap_or_default(),
                answer_ms: self.hosts.server_of(id).and_then(|it| it.pace.answer_ms()),
                why: self.wait_of(id, now_ms).map(|(why, _)| why),
            })
            .filter(|it| 0 < it.waiting || matches!(it.why, Some(Wait::Paused(_))))
            .collect();
        views.sort_by_key(|it| Reverse(it.waiting));
        let timed = views.iter().enumerate().rev().filter(|it| it.1.answer_ms.is_some());
        let slowest = timed.max_by_key(|it| it.1.answer_ms).map(|it| it.0);
        if let (Some(slowest), Some(last)) = (slowest, hosts_max.checked_sub(1))
            && last < slowest
        {
            views.swap(slowest, last);
        }
        views.truncate(hosts_max);
        views
    }

    /// Returns why a host is not asked now, and until when.
    fn wait_of(&self, id: u32, now_ms: u64) -> Option<(Wait, Option<u64>)> {
        let host = self.hosts.host(id)?;
        if let Some((why, until_ms)) = host.pause {
            return Some((Wait::Paused(why), until_ms));
        }
        let server = self.hosts.server_of(id).filter(|it| now_ms < it.next_ms);
        if let Some((until_ms, why)) = server.and_then(|it| Some((it.next_ms, it.why?))) {
            return Some((why, Some(until_ms)));
        }
        match host.robots {
            Robots::Known(_) => None,
            _ => Some((Wait::Robots, None)),
        }
    }

    /// Returns the time for which the host of a URL is left alone after a request, in milliseconds.
    pub fn delay_ms(&self, url: &Url, now_ms: u64) -> u64 {
        self.hosts.find(url).map_or(0, |id| self.hosts.delay_ms(id, &self.settings, now_ms))
    }

    /// Returns the traps in which the crawl no longer goes.
    pub fn traps(&self) -> &[Trap] {
        self.traps.found()
    }

    /// Returns the number of bytes that are allocated for URLs, hosts and prefixes.
    pub fn bytes(&self) -> usize {
        self.store.bytes() + self.hosts.bytes() + self.traps.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Candidate, Next, Outcome, Settings};
    use super::*;
    use crate::robots::Answer;

    #[test]
    fn a_url_is_asked_for_as_it_was_found_first() {
        let [found, other, another] =
            ["%61#x", "a", "b"].map(|it| Url::parse(&format!("http://h.example/{it}")).unwrap());
        let mut frontier = Frontier::new(Settings::default(), Box::new(|_| None));
        frontier.push(Candidate { url: &found, depth: 0, known: false });
        let asked = Url::parse("http://h.example/%61").unwrap();
        assert_eq!(
            [&found, &other].map(|it| frontier.spelled(it)),
            [Some(asked.clone()), Some(asked)]
        );
        assert_eq!(frontier.spelled(&another), None);
    }

    #[test]
    fn the_slowest_host_is_named_though_few_of_its_urls_wait() {
        let mut frontier = Frontier::new(Settings::default(), Box::new(|_| None));
        for (host, count) in [("a", 5), ("b", 4), ("c", 3), ("d", 2)] {
            for it in 0..count {
                let url = Url::parse(&format!("http://{host}.example/{it}")).unwrap();
                frontier.push(Candidate { url: &url, depth: 0, known: false });
            }
        }
        let (mut now_ms, mut answers) = (1_000_000, 0);
        while answers < 4 {
            match frontier.next(now_ms) {
                Next::Robots { url } => {
                    frontier.robots_answered(&url, Answer::Status(404), now_ms);
                }
                Next::Fetch { url, .. } => {
                    let took_ms = if url.host_str() == Some("d.example") { 190 } else { 10 };
                    frontier.answered(&url, Outcome::Done { took_ms }, now_ms);
                    answers += 1;
                }
                Next::Wait { .. } => now_ms += 1_000,
                Next::Done => panic!("{frontier:?}"),
            }
        }
        let named = |count| {
            let hosts = frontier.hosts(count, now_ms).into_iter();
            hosts.map(|it| (it.origin.to_owned(), it.waiting)).collect::<Vec<_>>()
        };
        let host = |it: &str, waiting| (format!("http://{it}.example"), waiting);
        assert_eq!(named(2), [host("a", 4), host("d", 1)]);
        assert_eq!(named(4), [host("a", 4), host("b", 3), host("c", 2), host("d", 1)]);
        assert!(named(0).is_empty());
    }
}
