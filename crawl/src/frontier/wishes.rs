//! Wishes of hosts: each has its robots.txt, which is asked for before anything else of it.
//!
//! Sans-I/O.

use url::Url;

use super::hosts::Robots;
use super::{Frontier, Next};
use crate::robots::{Answer, Known};

impl Frontier {
    /// Returns the request for a robots.txt if that comes first.
    pub(super) fn robots_request(&mut self, id: u32, now_ms: u64) -> Option<Next> {
        let host = self.hosts.host_mut(id)?;
        let known = match std::mem::take(&mut host.robots) {
            Robots::Known(known) if now_ms < known.due_ms() => {
                host.robots = Robots::Known(known);
                return None;
            }
            Robots::Known(known) | Robots::Asked(Some(known)) => Some(known),
            Robots::Unknown | Robots::Asked(None) => None,
        };
        host.robots = Robots::Asked(known);
        let url = Url::parse(&host.origin).and_then(|it| it.join("/robots.txt")).ok();
        self.hosts.list(id, &self.settings);
        self.begin(id, now_ms);
        Some(Next::Robots { url: url? })
    }

    /// Says what came of a request for a robots.txt. One that was not asked for is ignored.
    pub fn robots_answered(&mut self, url: &Url, answer: Answer<'_>, now_ms: u64) {
        let Some(id) = self.hosts.find(url) else { return };
        let Some(host) = self.hosts.host_mut(id) else { return };
        let Robots::Asked(known) = std::mem::take(&mut host.robots) else { return };
        let known = match known {
            Some(mut known) => {
                known.update(answer, &self.settings.product, now_ms);
                known
            }
            None => Known::new(answer, &self.settings.product, now_ms),
        };
        host.robots = Robots::Known(known);
        self.hosts.list(id, &self.settings);
        self.end(id, now_ms, None, None);
    }

    /// Takes over what an earlier pass knew of a robots.txt that is to be asked for. With `is_enough` it is not asked
    /// for any more; otherwise its rules, and since when it cannot be had, count for the answer.
    pub fn recall_robots(&mut self, url: &Url, known: Known, is_enough: bool, now_ms: u64) {
        let Some(id) = self.hosts.find(url) else { return };
        let Some(host) = self.hosts.host_mut(id) else { return };
        match host.robots {
            Robots::Asked(None) if is_enough => {
                host.robots = Robots::Known(known);
                self.hosts.list(id, &self.settings);
                self.end(id, now_ms, None, None);
            }
            Robots::Asked(None) => host.robots = Robots::Asked(Some(known)),
            Robots::Unknown | Robots::Asked(Some(_)) | Robots::Known(_) => {}
        }
    }

    /// Returns what is known of a host's robots.txt. The URL is any of the host.
    pub fn robots(&self, url: &Url) -> Option<&Known> {
        match &self.hosts.host(self.hosts.find(url)?)?.robots {
            Robots::Known(known) | Robots::Asked(Some(known)) => Some(known),
            Robots::Unknown | Robots::Asked(None) => None,
        }
    }
}
