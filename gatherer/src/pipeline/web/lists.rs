//! Lists of pages: the sitemaps that a host names in its robots.txt, and that of the root's own host
//! under its usual name. They lead to pages to which nothing else does.

use std::collections::HashMap;

use ::crawl::frontier::Frontier;
use ::crawl::robots::{Known, SITEMAPS_MAX, State};
use ::crawl::sitemap::{self, Kind, NoList};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use net::clock;
use net::coding;
use url::Url;

use crate::spec::is_same_site;

/// Largest nesting of lists of lists.
const DEPTH_MAX: u32 = 3;

/// The beginning of what gzip has packed: many sitemaps are stored so.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The lists of a crawl.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Those that were found, with their nesting.
    found: HashMap<Url, u32>,
}

/// What a list says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    /// The pages, each with the time of its last change in Unix milliseconds, if that is told.
    pub(super) pages: Vec<(Url, Option<u64>)>,
    /// What is wrong with it, if anything.
    pub(super) flaw: Option<String>,
}

impl Lists {
    /// Returns the new lists that a host's robots.txt names and that are at the host itself. `is_own`
    /// says whether it is the root's.
    pub(super) fn handle_robots(
        &mut self,
        url: &Url,
        known: Option<&Known>,
        is_own: bool,
    ) -> Vec<Url> {
        let named = match known.map(|it| it.state(clock::now_ms())) {
            Some(State::Rules(rules)) => rules.sitemaps(),
            _ => &[],
        };
        let mut all: Vec<Url> = named.iter().filter_map(|it| url.join(it).ok()).collect();
        if all.is_empty() && is_own {
            all.extend(url.join("/sitemap.xml"));
        }
        all.retain(|it| is_same_site(it, url));
        let mut new = Vec::new();
        all.into_iter().for_each(|it| self.find(it, 0, &mut new));
        new
    }

    fn find(&mut self, url: Url, depth: u32, ahead: &mut Vec<Url>) {
        if self.found.len() < SITEMAPS_MAX && depth <= DEPTH_MAX && !self.found.contains_key(&url) {
            self.found.insert(url.clone(), depth);
            ahead.push(url);
        }
    }

    /// Returns whether a URL is that of a list.
    pub(super) fn is_list(&self, url: &Url) -> bool {
        self.found.contains_key(url)
    }

    /// Reads the list at `url`; the lists that it names are asked for, too.
    pub(super) fn read(&mut self, url: &Url, body: &Bytes, frontier: &mut Frontier) -> Listed {
        let unpacked = body.starts_with(&GZIP).then(|| {
            let headers = HeaderMap::from_iter([(
                header::CONTENT_ENCODING,
                HeaderValue::from_static("gzip"),
            )]);
            coding::decode(&headers, body.clone(), false, sitemap::BYTES_MAX)
        });
        let body = unpacked.and_then(Result::ok).map_or_else(|| body.clone(), |it| it.bytes);
        let list = match sitemap::read(url, &body) {
            Ok(list) => list,
            // Hosts answer with a page.
            Err(NoList::Root(_) | NoList::Doctype | NoList::Text) => return Listed::default(),
        };
        let flaw = list.flaw.map(|it| it.to_string());
        let entries = list.entries.into_iter();
        match list.kind {
            Kind::Objects | Kind::News => {
                Listed { pages: entries.map(|it| (it.url, it.changed_ms)).collect(), flaw }
            }
            Kind::Lists => {
                let depth = self.found.get(url).copied().unwrap_or_default().saturating_add(1);
                let mut ahead = Vec::new();
                for list in entries.map(|it| it.url).filter(|it| is_same_site(it, url)) {
                    self.find(list, depth, &mut ahead);
                }
                ahead.iter().for_each(|it| frontier.push_aside(it));
                Listed { pages: Vec::new(), flaw }
            }
        }
    }
}
