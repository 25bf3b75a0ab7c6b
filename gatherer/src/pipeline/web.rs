//! The stages that depend on web sites: asking for pages, and what an answer means for a page that is
//! known.
//!
//! One loop drives the [frontier](crawl::frontier): it asks for what may be asked for, hands what it
//! gets to the workers, and gets back where the pages lead. A page's links are stored with its
//! records, in one commit, together with the time of its answer. So a crawl that was stopped, even by
//! force, goes on with the pages that were not yet answered, and a page that has not changed leads
//! where it led before. Nothing is deleted because nobody links to it: it is asked for first.

mod answer;
mod asking;
mod crawl;
mod due;
mod enumerating;
mod fetch;
mod listed;
mod lists;
mod memo;
mod missing;
mod moved;
mod others;
mod outcome;
mod pass;
mod realms;
mod redirected;
mod resuming;
mod robots;
mod sameness;
mod spool;
mod twins;
mod volatile;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use ::crawl::directives::Directives;
use ::crawl::robots::PRODUCT;
use collection::Oid;
use essence::fingerprint::fingerprint_of;
use formats::object::Leads;
use net::client::Client;
use net::clock;
use soif::Record;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use url::Url;

use self::sameness::Sameness;
pub(crate) use self::spool::{Kept, Spool};
pub(super) use self::twins::renew_twins;
use super::prepare;
use super::run::{Access, Candidate, Fetched, Prepared, Run};
use crate::lock::lock;
use crate::note::{self, Crawled, Difference, Gone, ObjectNote};
use crate::site::plan::WebPlan;
use crate::validator::Validator;

/// The way to the pages of a site.
pub(crate) struct WebAccess<'a> {
    pub(crate) plan: &'a WebPlan,
    client: Client,
    /// Certificates (DER) of the authorities that the settings trust, for what the client does not do.
    extra_roots: Vec<Vec<u8>>,
    pub(super) spool: Arc<Spool>,
    /// The runtime that requests run on.
    runtime: Handle,
    /// For each page that a worker has read, where it leads. At most as many wait as pages are on
    /// their way to the commit, whose number is bounded.
    lead: UnboundedSender<Led>,
    led: Mutex<Option<UnboundedReceiver<Led>>>,
    sameness: Mutex<Sameness>,
    /// Whether all that is known is asked for, not what is due alone.
    is_full: bool,
    /// Whether the root's first page was had.
    pub(crate) has_begun: Arc<AtomicBool>,
}

/// Where a page leads, as a worker has found.
#[derive(Debug)]
pub(crate) struct Led {
    url: Url,
    depth: u16,
    /// Its links, as its note has them.
    links: Vec<String>,
    /// Whether the page wants no record, and has had the time of grace.
    is_over: bool,
}

/// What a request got.
#[derive(Debug)]
pub(crate) struct Got {
    /// The content; `None` if there is none, or it has not changed.
    pub(crate) content: Option<Fetched>,
    url: Url,
    depth: u16,
    at_ms: u64,
    what: What,
    /// What the header fields ask of robots.
    directives: Directives,
    /// Where the page is, if only elsewhere.
    to: Option<Url>,
    /// The answer that says that nothing is there, in words.
    without: Option<String>,
    /// Where it leads, as a feed, in addition to its links.
    links: Vec<Url>,
    /// Keeps it in the spool.
    kept: Option<Kept>,
}

/// What an answer is about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Content,
    Unchanged,
    /// It is not there, or only elsewhere. Says whether that is certain.
    Absent {
        is_certain: bool,
    },
    /// The record of another page (`to`) stands for it from now on; without one, it has its own again.
    Twin,
    /// Its record stands for other pages (`links`).
    Twins,
}

impl<'a> WebAccess<'a> {
    /// Returns the way to the pages of a site, whose requests run on the present runtime, and end in the spool. The
    /// client comes with the authorities that it trusts. `is_full` says whether all that is known is asked for.
    pub(crate) fn new(
        plan: &'a WebPlan,
        (client, extra_roots): (Client, Vec<Vec<u8>>),
        spool: Arc<Spool>,
        is_full: bool,
    ) -> Self {
        let (lead, led) = unbounded_channel();
        let (led, has_begun) = (Mutex::new(Some(led)), Arc::default());
        let (runtime, sameness) = (Handle::current(), Mutex::default());
        Self { plan, client, extra_roots, spool, runtime, lead, led, sameness, is_full, has_begun }
    }

    /// Returns whether a page may turn to what it has become.
    fn may_turn(&self, url: &Url, prepared: &Prepared) -> bool {
        let own = prepared.updated.first().filter(|it| it.url == prepared.url);
        let (Some(record), Some(_known)) = (own, prepared.against) else { return true };
        let text = |name| record.get(name).unwrap_or_default();
        // A notice may be too short for a print, and its bytes may differ in what nobody sees.
        let content = ["Text-Print", "Partial-Text", "Full-Text", "MD5"].map(text);
        let content = content.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
        lock(&self.sameness).take(fingerprint_of(&[text("Title"), content]), url)
    }

    fn grace_ms(&self) -> u64 {
        u64::try_from(self.plan.web.grace.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Got {
    /// Returns what is known now of a page without its content.
    fn without_content(url: Url, depth: u16, what: What) -> Self {
        let (at_ms, directives) = (clock::now_ms(), Directives::default());
        let (content, to, without, links, kept) = (None, None, None, Vec::new(), None);
        Self { content, url, depth, at_ms, what, directives, to, without, links, kept }
    }

    /// Returns what to remember of the page from now on.
    fn crawled(&self, gone: Option<Gone>) -> Crawled {
        Crawled { answered_ms: self.at_ms, depth: self.depth, gone, ..Crawled::default() }
    }
}

/// Returns which directive leaves a page without a record, and where it is.
fn hidden_by(place: &str, directives: Directives) -> String {
    let directive = if directives.noindex { "noindex" } else { "unavailable_after, which is over" };
    format!("{place} says {directive}")
}

impl Run<'_> {
    /// Stages 2 and 3: reads an object, or takes what a crawl has got, and makes its records.
    pub(super) fn prepare(&self, candidate: &Candidate) -> Option<Prepared> {
        let (Access::Web(web), Some(got)) = (&self.access, &candidate.got) else {
            return prepare::prepare(self, candidate);
        };
        self.got_room.leave(got.bytes());
        let mut prepared = match got.what {
            What::Content => {
                prepare::prepare(self, candidate).filter(|it| web.may_turn(&got.url, it))
            }
            What::Unchanged | What::Absent { .. } => self.remember(got, &candidate.validator),
            What::Twin | What::Twins => self.twin(got),
        };
        if let Some(prepared) = &mut prepared {
            prepared.kept.clone_from(&got.kept);
        }
        let note = prepared.as_ref().map(|it| &it.note);
        let is_over = note.is_some_and(|it| it.is_over(web.grace_ms(), got.at_ms));
        let crawled = note.and_then(|it| it.crawled.as_ref());
        let links = crawled.map(|it| it.links.clone()).unwrap_or_default();
        // The crawl may have been stopped.
        drop(web.lead.send(Led { url: got.url.clone(), depth: got.depth, links, is_over }));
        prepared
    }

    /// Notes the time of an answer without content. Returns `None` if the note cannot be read.
    fn remember(&self, got: &Got, validator: &Validator) -> Option<Prepared> {
        let url = got.url.to_string();
        let key = note::object_key(&self.plan.url, &url);
        let against = lock(&self.root.known).committed(&url);
        let stored = self.site.collection.note(&key).ok().flatten();
        let old: Option<ObjectNote> = stored.as_deref().and_then(note::from_bytes);
        let before = old.as_ref().and_then(|it| it.crawled.clone()).unwrap_or_default();
        let fetch = &self.site.metrics.fetch;
        if got.what == What::Unchanged {
            fetch.drop_one("same-content");
            self.site.counts.unchanged.fetch_add(1, Relaxed);
            self.site.resolve(&url, &url);
        } else {
            fetch.drop_one("missing");
        }
        let gone = match got.what {
            What::Absent { is_certain } => Some(before.once_more(got.at_ms, is_certain)),
            _ => None,
        };
        let (is_hidden, in_a_row) = (before.is_hidden, before.in_a_row);
        let (canonical, without) = (before.canonical.clone(), got.without.clone());
        let mut crawled = Crawled { is_hidden, canonical, without, in_a_row, ..got.crawled(gone) };
        match gone {
            Some(_) => crawled.links = note::short_links(&got.url, got.to.iter().map(Url::as_str)),
            None => crawled.links.clone_from(&before.links),
        }
        crawled.follow(Some(&before), gone.is_none());
        let crawled = Some(Box::new(crawled));
        let note = match old {
            Some(note) => ObjectNote { crawled, ..note },
            None => ObjectNote::without_records(validator.clone(), crawled),
        };
        Some(Prepared { url, key, against, note, updated: vec![], deleted: vec![], kept: None })
    }

    /// Returns what to remember of a page that was read, and whether it wants a record. `old` is its
    /// note, and `leads` what its content says; without them its content has not changed.
    pub(super) fn crawled(
        &self,
        candidate: &Candidate,
        old: Option<&ObjectNote>,
        leads: Option<&Leads>,
    ) -> Option<(Box<Crawled>, bool)> {
        let got = candidate.got.as_ref()?;
        let before = old.and_then(|it| it.crawled.as_deref());
        let mut own = Directives::default();
        let mut canonical = before.and_then(|it| it.canonical.clone());
        let now_ms = clock::now_ms();
        let (is_hidden, links) = match leads {
            // Of the same content, the wish is the same.
            None => before.map(|it| (it.is_hidden, it.links.clone())).unwrap_or_default(),
            Some(leads) => {
                for (name, content) in &leads.robots {
                    own.add_meta(name, content, PRODUCT);
                }
                canonical = leads.canonical.clone().filter(|it| it != got.url.as_str());
                let links = leads.links.iter().map(String::as_str);
                let links =
                    note::short_links(&got.url, links.chain(got.links.iter().map(Url::as_str)));
                (own.hides(now_ms), links)
            }
        };
        let links = if own.nofollow || got.directives.nofollow { Vec::new() } else { links };
        let by_head = got.directives.hides(now_ms);
        let without = match leads {
            None if is_hidden => before.and_then(|it| it.without.clone()),
            _ if is_hidden => Some(hidden_by("<meta name=\"robots\">", own)),
            _ => by_head.then(|| hidden_by("X-Robots-Tag", got.directives)),
        };
        let hides = is_hidden || by_head;
        let gone = hides.then(|| before.cloned().unwrap_or_default().once_more(got.at_ms, true));
        let in_a_row = before.map_or(0, |it| it.in_a_row);
        let mut crawled =
            Crawled { is_hidden, without, canonical, in_a_row, links, ..got.crawled(gone) };
        crawled.follow(before, true);
        Some((Box::new(crawled), hides))
    }

    /// Counts a change of a page, unless it is one of volatile parts alone, again: then its record stays.
    pub(super) fn weigh_change(
        &self,
        crawled: &mut Crawled,
        old: &ObjectNote,
        difference: &mut Difference,
    ) {
        let Difference { updated, deleted, records } = difference;
        if updated.is_empty() && deleted.is_empty() {
            return;
        }
        crawled.changes = crawled.changes.saturating_add(1);
        // In other types numbers are what matters.
        let is_page = |it: &&Record| it.get("Type").is_some_and(|it| it == b"HTML");
        let Some(record) = updated.first().filter(is_page) else { return };
        let oid = Oid::new(&self.site.id, &record.url);
        let Ok(Some(stored)) = self.site.collection.get(&oid) else { return };
        let is_alone =
            updated.len() + deleted.len() == 1 && records.len() == 1 && old.records.len() == 1;
        let (in_a_row, is_published) = if is_alone {
            volatile::weigh(&stored.record, record, crawled.in_a_row)
        } else {
            (0, true)
        };
        crawled.in_a_row = in_a_row;
        if !is_published {
            self.site.metrics.left_out.add("volatile", 1);
            crawled.changes -= 1;
            updated.clear();
            records.clone_from(&old.records);
        }
    }
}
