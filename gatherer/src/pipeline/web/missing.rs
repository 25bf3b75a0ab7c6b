//! Missing pages: how each host says that it has none. Some say so with success.
//!
//! A host is asked once for a name that nobody gave to anything. Pages that come while its answer is
//! under way wait for it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use ::crawl::frontier::{Frontier, State};
use ::crawl::walls::{Sample, made_up_name};
use net::clock;
use url::Url;

use super::crawl::Page;
use crate::spec::Web;

/// What is known of a host.
#[derive(Debug)]
enum Host {
    /// The made-up URL that it is asked for, and the pages that wait for its answer.
    Asked { url: Url, waiting: Vec<Page> },
    /// The page by which it says "not found" with success, if it does that.
    Known(Option<Sample>),
}

/// The hosts of a crawl.
#[derive(Debug, Default)]
pub(super) struct Missing {
    hosts: HashMap<String, Host>,
}

impl Missing {
    /// Lets the frontier ask the host of a URL for a made-up name first, if it is new.
    pub(super) fn find(&mut self, url: &Url, web: &Web, frontier: &mut Frontier) {
        let Some(host) = url.host_str().filter(|it| !self.hosts.contains_key(*it)) else { return };
        let name = made_up_name(RandomState::new().hash_one(host));
        // What is beside the root's first page is within its folder.
        let beside =
            if web.url.host_str() == Some(host) { web.url.join(&name) } else { url.join("/") };
        let made_up = beside.and_then(|it| it.join(&name)).ok();
        let asked = made_up.map(|url| {
            frontier.push_aside(&url);
            Host::Asked { url, waiting: Vec::new() }
        });
        self.hosts.insert(host.to_owned(), asked.unwrap_or(Host::Known(None)));
    }

    /// Returns the pages that wait for this answer, if it is that to a made-up name.
    pub(super) fn handle_sample(&mut self, page: &Page) -> Option<Vec<Page>> {
        let host = self.hosts.get_mut(page.url.host_str()?)?;
        let Host::Asked { url, waiting } = host else { return None };
        if *url != page.url {
            return None;
        }
        let waiting = std::mem::take(waiting);
        let answer = page.answer.as_ref().ok();
        let sample =
            answer.and_then(|it| Sample::new(it.status.as_u16(), page.url.as_str(), &it.body));
        *host = Host::Known(sample);
        Some(waiting)
    }

    /// Returns the page, unless it waits for what is under way from its host.
    pub(super) fn hold(&mut self, page: Page, frontier: &Frontier) -> Option<Page> {
        let host = page.url.host_str().and_then(|it| self.hosts.get_mut(it));
        match host {
            Some(Host::Asked { url, waiting })
                if frontier.explain(url, clock::now_ms()) == State::Fetching =>
            {
                waiting.push(page);
                None
            }
            _ => Some(page),
        }
    }

    /// Returns whether the content of a page only says that there is none.
    pub(super) fn says_nothing(&self, url: &Url, body: &[u8]) -> bool {
        match url.host_str().and_then(|it| self.hosts.get(it)) {
            Some(Host::Known(Some(sample))) => sample.resembles(url.as_str(), body),
            _ => false,
        }
    }
}
