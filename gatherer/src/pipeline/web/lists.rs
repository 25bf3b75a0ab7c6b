//! Lists of pages: those that the settings name, the sitemaps that a host names in its robots.txt, and that of the
//! root's own host under its usual name. They lead to pages to which nothing else does.

use std::collections::{HashMap, HashSet};

use ::crawl::frontier::Frontier;
use ::crawl::robots::{Known, SITEMAPS_MAX, State};
use ::crawl::sitemap::{self, Kind, NoList};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use net::clock;
use net::coding;
use net::ftp::{EntryKind, Form, Listing};
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
    /// Those that the settings name.
    named: HashSet<Url>,
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

    /// Takes a list that the settings name.
    pub(super) fn name(&mut self, url: Url) {
        self.found.insert(url.clone(), 0);
        self.named.insert(url);
    }

    /// Returns whether the settings name a list.
    pub(super) fn is_named(&self, url: &Url) -> bool {
        self.named.contains(url)
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
            Err(NoList::Root(_) | NoList::Doctype) => return self.no_list(url),
            Err(NoList::Text) => {
                let pages = files_of(url, &body);
                return if pages.is_empty() {
                    self.no_list(url)
                } else {
                    Listed { pages, flaw: None }
                };
            }
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

    fn no_list(&self, url: &Url) -> Listed {
        let flaw = self.is_named(url).then(|| "it is no list of a known form".to_owned());
        Listed { pages: Vec::new(), flaw }
    }
}

/// Returns the pages that a feed names, with the times of their last changes; none if the content is no feed.
pub(super) fn entries_of_feed(
    url: &Url,
    headers: &HeaderMap,
    body: &[u8],
) -> Vec<(Url, Option<u64>)> {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let is_xml = media_type.and_then(|it| it.split(';').next()).is_some_and(|it| {
        let it = it.trim().to_ascii_lowercase();
        it.ends_with("/xml") || it.ends_with("+xml") && !it.contains("xhtml")
    });
    match sitemap::read(url, if is_xml { body } else { b"" }) {
        Ok(list) if list.kind == Kind::News => {
            list.entries.into_iter().map(|it| (it.url, it.changed_ms)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the files of an `ls -lR`, whose folder is that of `url`, with the times of their last changes.
fn files_of(url: &Url, text: &[u8]) -> Vec<(Url, Option<u64>)> {
    let Ok(folder) = url.join(".") else { return Vec::new() };
    let now_seconds = i64::try_from(clock::now_ms() / 1_000).unwrap_or(i64::MAX);
    let listing = Listing::parse(text, Form::Free, now_seconds);
    let mut files = Vec::new();
    for list in &listing.folders {
        let Some(at) = list.url(&folder) else { continue };
        for entry in list.entries.iter().filter(|it| it.kind == EntryKind::File) {
            let seconds = entry.modified.and_then(|it| u64::try_from(it.seconds).ok());
            files.extend(entry.url(&at).map(|it| (it, seconds.map(|it| it.saturating_mul(1_000)))));
        }
    }
    files
}
