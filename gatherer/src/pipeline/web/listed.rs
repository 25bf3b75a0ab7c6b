//! Listed objects: what servers of FTP, Gopher and News have, and what it means for what is known.

use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use ::crawl::frontier::{Failure, Outcome, State};
use net::clock;
use net::fetch::{Fault, FetchError};
use url::Url;

use super::super::run::Candidate;
use super::crawl::{Crawl, millis};
use super::others::{Found, Item, List, Numbers};
use super::spool::Kept;
use super::{Got, What};
use crate::lock::lock;
use crate::note::ObjectNote;
use crate::spec::Protocol;
use crate::validator::Validator;

/// A request to a server of FTP, Gopher or News that has ended.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) url: Url,
    pub(super) depth: u16,
    /// The note of the object, if it was there before.
    pub(super) old: Option<Box<ObjectNote>>,
    pub(super) took: Duration,
    pub(super) found: Result<Found, FetchError>,
    /// Keeps it in the spool.
    pub(super) kept: Option<Kept>,
}

impl Crawl<'_> {
    pub(super) fn handle_found(&mut self, asked: Asked, candidates: &SyncSender<Candidate>) {
        let Asked { url, depth, old, took, found, kept } = asked;
        let done = Outcome::Done { took_ms: millis(took) };
        let mut without = None;
        let (what, content, outcome) = match found {
            Ok(Found::List(list)) => {
                self.put_aside(&url, done);
                return self.handle_list(&url, depth, list, candidates);
            }
            Ok(Found::Content(content)) if self.lists.is_list(&url) => {
                self.put_aside(&url, done);
                return self.read_list(&url, &content.object.bytes);
            }
            Ok(Found::Content(content)) => {
                let bytes = content.object.bytes.len() as u64;
                self.run.site.metrics.bytes.fetch_add(bytes, Relaxed);
                self.run.site.counts.bytes.fetch_add(bytes, Relaxed);
                (What::Content, Some(*content), done)
            }
            Ok(Found::Unchanged) => (What::Unchanged, None, done),
            Ok(Found::Absent { why, .. }) if self.lists.is_list(&url) => {
                self.miss_list(&url, why);
                return self.put_aside(&url, done);
            }
            Ok(Found::Absent { is_certain, why }) => {
                self.problem(&url, "missing", why.clone());
                without = Some(why);
                let outcome = Outcome::Failed { failure: Failure::Status(404), retry_at_ms: None };
                (What::Absent { is_certain }, None, outcome)
            }
            Err(error) => {
                let failure = match error.fault {
                    Fault::Login { .. } | Fault::Unencrypted => Failure::Login,
                    Fault::Url { .. } => Failure::Unreadable,
                    _ => Failure::Unreachable,
                };
                return self.fail(&url, failure, None, error.fault.to_string());
            }
        };
        let now_ms = clock::now_ms();
        lock(&self.frontier).answered(&url, outcome, now_ms);
        let got = Got::without_content(url, depth, what);
        let got = Got { content, at_ms: now_ms, without, kept, ..got };
        self.settle(got, old.as_deref(), candidates);
    }

    /// Counts the answer to a request that was not for an object.
    fn put_aside(&self, url: &Url, outcome: Outcome) {
        self.run.site.metrics.walk.drop_one("aside");
        self.uncount();
        lock(&self.frontier).answered(url, outcome, clock::now_ms());
    }

    /// Takes what a list leads to. Known objects of which it tells that they have not changed, or are no longer
    /// there, are not asked for.
    fn handle_list(
        &mut self,
        url: &Url,
        depth: u16,
        list: List,
        candidates: &SyncSender<Candidate>,
    ) {
        if let Some(flaw) = list.flaw {
            self.problem(url, "list", flaw);
        }
        let mut listed = HashSet::new();
        for Item { url, steps, sign } in list.items {
            let old = self.note_of(&url);
            let known = old.as_ref().is_some_and(|it| !it.is_empty());
            self.push(&url, depth.saturating_add(steps), known);
            if let Some(sign) = sign {
                let is_same = |old: &&ObjectNote| {
                    sign.is_of(&old.brief.validator) && self.is_current(&url, old)
                };
                match old.as_ref().filter(is_same) {
                    Some(old) => self.tell(
                        &url,
                        depth.saturating_add(steps),
                        old,
                        What::Unchanged,
                        candidates,
                    ),
                    None if self.is_waiting(&url) => self.others.remember(&url, sign),
                    None => {}
                }
            }
            if list.numbers.is_some() {
                listed.insert(url);
            }
        }
        list.included.iter().for_each(|it| lock(&self.frontier).skip(it));
        if let Some(numbers) = list.numbers {
            self.tell_unlisted(numbers, &listed, candidates);
        }
    }

    /// Tells which known articles of a newsgroup are gone, of those that its list does not have: all but those
    /// that are older than the list and that the server still keeps.
    fn tell_unlisted(
        &mut self,
        numbers: Numbers,
        listed: &HashSet<Url>,
        candidates: &SyncSender<Candidate>,
    ) {
        let mut unlisted = Vec::new();
        let walked = self.for_each_known(|_, url, note| {
            let is_article = Protocol::of(&url) == Some(Protocol::News);
            if is_article && !note.is_empty() && !listed.contains(&url) {
                unlisted.push((url, note));
            }
        });
        if let Err(error) = walked {
            self.run.site.problem(self.run.plan.url.clone(), "collection", error.to_string());
        }
        for (url, old) in unlisted {
            let number = match &old.brief.validator {
                Validator::Http { etag, .. } => etag.as_ref().and_then(|it| it.parse().ok()),
                Validator::File(_) => None,
            };
            // What links have led to is of another group, or no article.
            let Some(number): Option<u64> = number else { continue };
            let is_kept = (numbers.lowest..numbers.first).contains(&number);
            let what = if is_kept { What::Unchanged } else { What::Absent { is_certain: true } };
            let depth = old.crawled.as_ref().map_or(1, |it| it.depth);
            self.tell(&url, depth, &old, what, candidates);
        }
    }

    /// Takes an answer that a list gives for an object that waits.
    fn tell(
        &mut self,
        url: &Url,
        depth: u16,
        old: &ObjectNote,
        what: What,
        candidates: &SyncSender<Candidate>,
    ) {
        if !self.is_waiting(url) {
            return;
        }
        lock(&self.frontier).skip(url);
        self.run.site.metrics.walk.enter(1);
        self.run.site.counts.seen.fetch_add(1, Relaxed);
        self.settle(Got::without_content(url.clone(), depth, what), Some(old), candidates);
    }

    fn is_waiting(&self, url: &Url) -> bool {
        let state = lock(&self.frontier).explain(url, clock::now_ms());
        matches!(state, State::In | State::Waiting { .. })
    }
}
