//! Twins: pages that are one page under several URLs. One record stands for all of them, and names the others.
//!
//! Twins are pages of a root with the same bytes, a page and the one with the same title that it calls its own
//! (`rel=canonical`), and a page and the one to which its URL is redirected. Whose record it is, is decided at the
//! end of a pass that has brought something new: that of the page which others call their own, then of the one
//! that is fewest links from the root's first page, then of the one with the shortest URL. A page that is no twin any
//! more is asked for again, and has its own record.

use std::collections::{BTreeSet, HashMap};
use std::sync::mpsc::SyncSender;

use collection::Oid;
use essence::fingerprint::fingerprint_of;
use soif::Record;
use url::Url;

use super::super::prepare::UPDATE_TIME;
use super::super::run::{Candidate, Prepared, Run};
use super::crawl::Crawl;
use super::{Got, What};
use crate::lock::lock;
use crate::note::{self, Crawled, ObjectNote};

/// Attribute with the URLs of other pages for which a record stands, one a line.
const SAME_AS: &str = "Same-As";

/// Maximum number of pages that a record names.
const NAMED_MAX: usize = 20;

/// A page that may have twins.
#[derive(Debug)]
struct Page {
    url: Url,
    note: ObjectNote,
    digest: Option<u64>,
}

impl Page {
    fn depth(&self) -> u16 {
        self.note.crawled.as_ref().map_or(0, |it| it.depth)
    }

    fn canonical(&self) -> Option<&str> {
        self.note.crawled.as_ref()?.canonical.as_deref()
    }

    fn twin_of(&self) -> Option<&str> {
        self.note.crawled.as_ref()?.twin_of.as_deref()
    }

    /// Returns where the page is, if it was only elsewhere when it was asked for.
    fn moved_to(&self) -> Option<Url> {
        let crawled = self.note.crawled.as_ref().filter(|_| self.note.is_empty())?;
        // One that wants no record is there, and leads on as any page.
        let is_there = crawled.gone.is_some_and(|it| it.is_certain);
        crawled.links(&self.url).next().filter(|_| !is_there)
    }
}

/// Takes it that new content, with these records, is nobody's twin until the end of the pass.
pub(in super::super) fn renew_twins(crawled: &mut Crawled, records: &mut [Record]) {
    crawled.twin_of = None;
    if let Some(own) = records.first_mut() {
        set_twins(own, &crawled.twins);
    }
}

/// Sets what a record says of the other pages for which it stands.
fn set_twins(record: &mut Record, twins: &[String]) {
    record.remove(SAME_AS);
    if !twins.is_empty() {
        record.push(SAME_AS, twins.join("\n"));
    }
}

/// Returns the digest of an object that was read whole and is there; only such can be compared.
fn digest(note: &ObjectNote) -> Option<u64> {
    let is_gone = note.crawled.as_ref().is_some_and(|it| it.gone.is_some());
    if is_gone || note.brief.annotations != 0 || note.late {
        return None;
    }
    let md5 = match note.records.first() {
        Some(record) => record.md5.as_deref()?,
        None if note.is_twin() => &note.md5,
        None => return None,
    };
    (!md5.is_empty()).then(|| fingerprint_of(&[md5.as_bytes()]))
}

impl Crawl<'_> {
    /// Lets one record stand for all pages that are one, and names the others in it. Returns whether there are pages
    /// to ask for again, which are twins no more.
    pub(super) fn settle_twins(
        &mut self,
        candidates: &SyncSender<Candidate>,
    ) -> Result<bool, collection::Error> {
        if !std::mem::take(&mut self.has_news) {
            return Ok(false);
        }
        self.run.wait_until_committed();
        let pages = self.possible_twins()?;
        let stands = self.stands(&pages);
        let mut named: HashMap<&str, BTreeSet<&str>> = HashMap::new();
        for (page, of) in stands.iter().filter(|(page, of)| page != of) {
            named.entry(of).or_default().insert(page);
        }
        let mut again = Vec::new();
        for page in &pages {
            let own = page.url.as_str();
            let of = stands.get(own).copied().filter(|it| *it != own);
            if !page.note.is_empty() && of != page.twin_of() {
                if of.is_none() {
                    again.push(page.url.clone());
                }
                let to = of.and_then(|it| Url::parse(it).ok());
                self.hand_twin(page, What::Twin, to, Vec::new(), candidates);
            }
            let twins: Vec<&str> =
                named.remove(own).into_iter().flatten().take(NAMED_MAX).collect();
            let before = page.note.crawled.as_ref().map(|it| it.twins.as_slice());
            if of.is_none() && before.unwrap_or_default() != twins {
                let twins = twins.into_iter().filter_map(|it| Url::parse(it).ok()).collect();
                self.hand_twin(page, What::Twins, None, twins, candidates);
            }
        }
        while 0 < self.handed && !self.run.is_stopped() {
            self.web.runtime.block_on(self.wait(None, candidates));
        }
        // A page that is asked for again has to find what was decided.
        self.run.wait_until_committed();
        let mut frontier = lock(&self.frontier);
        again.iter().for_each(|it| frontier.again(it));
        Ok(!again.is_empty())
    }

    /// Returns the pages that are twins, may be, or were, and those that they name.
    fn possible_twins(&mut self) -> Result<Vec<Page>, collection::Error> {
        let mut counts: HashMap<u64, bool> = HashMap::new();
        let mut named: BTreeSet<String> = BTreeSet::new();
        self.for_each_known(|crawl, url, note| {
            // What goes with this pass stands for nothing.
            let digest = digest(&note).filter(|_| !crawl.gone.contains(url.as_str()));
            if let Some(digest) = digest {
                counts.entry(digest).and_modify(|it| *it = true).or_insert(false);
            }
            let page = Page { url, note, digest };
            let others = [page.canonical(), page.twin_of()].into_iter().flatten();
            named.extend(others.map(str::to_owned));
            named.extend(page.moved_to().map(String::from));
        })?;
        let mut pages = Vec::new();
        self.for_each_known(|crawl, url, note| {
            if !note.is_empty() && crawl.gone.contains(url.as_str()) {
                return;
            }
            let digest = digest(&note).filter(|it| counts.get(it) == Some(&true));
            let page = Page { url, note, digest };
            let has_twins = page.note.crawled.as_ref().is_some_and(|it| !it.twins.is_empty());
            let has_named = page.canonical().or_else(|| page.twin_of()).is_some();
            let is_named = named.contains(page.url.as_str());
            if page.digest.is_some()
                || has_twins
                || has_named
                || is_named
                || page.moved_to().is_some()
            {
                pages.push(page);
            }
        })?;
        Ok(pages)
    }

    /// Returns for each page the one whose record stands for it, which may be itself.
    fn stands<'p>(&self, pages: &'p [Page]) -> HashMap<&'p str, &'p str> {
        let by_url: HashMap<&str, &Page> = pages.iter().map(|it| (it.url.as_str(), it)).collect();
        let mut best: HashMap<u64, &Page> = HashMap::new();
        let rank = |it: &Page| {
            let is_other = it.canonical().is_some();
            (is_other, it.depth(), it.url.as_str().len(), it.url.to_string())
        };
        for page in pages {
            let Some(digest) = page.digest else { continue };
            let found = best.entry(digest).or_insert(page);
            if rank(page) < rank(found) {
                *found = page;
            }
        }
        let one =
            |page: &'p Page| page.digest.map_or(page, |it| best.get(&it).copied().unwrap_or(page));
        let mut stands = HashMap::new();
        for page in pages.iter().filter(|it| digest(&it.note).is_some()) {
            let same = one(page);
            let called = same.canonical().and_then(|it| by_url.get(it).copied()).map(one);
            let is_one = |other: &&Page| {
                other.canonical().is_none()
                    && digest(&other.note).is_some()
                    && (same.twin_of() == Some(other.url.as_str())
                        || self.has_same_title(same, other))
            };
            let of = called.filter(is_one).unwrap_or(same);
            stands.insert(page.url.as_str(), of.url.as_str());
        }
        for page in pages {
            let to = page.moved_to();
            if let Some(to) = to.as_ref().and_then(|it| stands.get(it.as_str()).copied()) {
                stands.insert(page.url.as_str(), to);
            }
        }
        stands
    }

    fn has_same_title(&self, one: &Page, other: &Page) -> bool {
        let site = self.run.site;
        let title = |page: &Page| {
            let oid = Oid::new(&site.id, page.url.as_str());
            let stored = site.collection.get(&oid).ok().flatten()?;
            let title = stored.record.text("Title")?.trim().to_owned();
            (!title.is_empty()).then_some(title)
        };
        title(one).is_some_and(|it| title(other) == Some(it))
    }

    fn hand_twin(
        &mut self,
        page: &Page,
        what: What,
        to: Option<Url>,
        links: Vec<Url>,
        candidates: &SyncSender<Candidate>,
    ) {
        self.run.site.metrics.walk.enter(1);
        let got = Got { to, links, ..Got::without_content(page.url.clone(), page.depth(), what) };
        self.hand(got, page.note.brief.validator.clone(), candidates);
    }
}

impl Run<'_> {
    /// Notes what the end of a pass has decided about a page and its twins.
    pub(super) fn twin(&self, got: &Got) -> Option<Prepared> {
        let url = got.url.to_string();
        let key = note::object_key(&self.plan.url, &url);
        let against = lock(&self.root.known).committed(&url);
        let stored = self.site.collection.note(&key).ok().flatten()?;
        let mut note: ObjectNote = note::from_bytes(&stored)?;
        let crawled = note.crawled.as_mut()?;
        self.site.metrics.fetch.drop_one("twin");
        let (mut updated, mut deleted) = (Vec::new(), Vec::new());
        match (got.what, &got.to) {
            (What::Twin, Some(to)) => {
                crawled.twin_of = Some(to.to_string());
                crawled.twins.clear();
                deleted = std::mem::take(&mut note.records).into_iter().map(|it| it.url).collect();
            }
            (What::Twin, None) => {
                crawled.twin_of = None;
                // So that it is read as if it were new.
                (note.md5, note.brief.unsure) = (String::new(), true);
            }
            _ => {
                crawled.twins = got.links.iter().map(Url::to_string).collect();
                let stored =
                    self.site.collection.get(&Oid::new(&self.site.id, &url)).ok().flatten();
                let mut record = stored?.record;
                set_twins(&mut record, &crawled.twins);
                record.set(UPDATE_TIME, (got.at_ms / 1_000).to_string());
                updated.push(record);
            }
        }
        Some(Prepared { url, key, against, note, updated, deleted, kept: None })
    }
}
