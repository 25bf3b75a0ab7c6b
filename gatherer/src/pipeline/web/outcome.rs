//! The outcome of a request: its answer goes to the workers, or it has failed.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;

use ::crawl::frontier::{Failure, Out, Outcome, Pushed};
use net::clock;
use net::guard::{self, Refusal};
use url::{Host, Url};

use super::super::run::Candidate;
use super::crawl::{Crawl, PAGE_PROBLEM};
use super::{Got, What};
use crate::lock::lock;
use crate::note::ObjectNote;
use crate::validator::Validator;

impl Crawl<'_> {
    /// Counts what was got of a page, and hands it to the workers.
    pub(super) fn settle(
        &mut self,
        got: Got,
        old: Option<&ObjectNote>,
        candidates: &SyncSender<Candidate>,
    ) {
        self.answered += u64::from(old.is_some_and(|it| !it.is_empty()));
        let validator = match (&got.content, old) {
            (Some(content), _) => content.validator.clone(),
            (None, Some(old)) => old.brief.validator.clone(),
            (None, None) => Validator::Http { etag: None, last_modified: None, md5: String::new() },
        };
        self.hand(got, validator, candidates);
    }

    /// Hands what was got to the workers; waits while they have enough.
    pub(super) fn hand(
        &mut self,
        got: Got,
        validator: Validator,
        candidates: &SyncSender<Candidate>,
    ) {
        let run = self.run;
        self.has_news |= got.what != What::Unchanged;
        run.got_room.enter(got.bytes(), &|| run.is_stopped());
        let url = got.url.to_string();
        match candidates.send(Candidate { url, validator, got: Some(Box::new(got)) }) {
            Ok(()) => {
                run.site.metrics.walk.leave(1);
                self.handed += 1;
            }
            Err(_stopped) => run.site.metrics.walk.drop_one("stopped"),
        }
    }

    /// Takes the URL where a page is instead, and names what keeps it from being gathered.
    pub(super) fn handle_moved(&mut self, url: &Url, to: &Url, depth: u16) {
        let pushed = self.push(to, depth, false);
        let is_out = matches!(pushed, Pushed::Out(_));
        let spec = &self.web.plan.web;
        // As it is asked for, so that the redirects of a pass are one chain.
        let asked = lock(&self.frontier).spelled(to);
        let fault = if self.moved.note(url, asked.as_ref().unwrap_or(to)) {
            Some(format!("it leads to {to}, and from there back to itself"))
        } else if is_out && *url == spec.url {
            self.elsewhere = Some(to.clone());
            None
        } else if is_out && !spec.leaves.is_empty() {
            Some(format!("it leads to {to}, which is not listed: list that"))
        } else if pushed == Pushed::Out(Out::Scheme) {
            Some(format!("it only leads to {to}, which is not gathered"))
        } else {
            let inside = is_out.then(|| inside(to)).flatten();
            inside.map(|it| format!("it only leads to {to}, {it}"))
        };
        if let Some(fault) = fault {
            self.problem(url, PAGE_PROBLEM, fault);
        }
    }

    pub(super) fn fail(
        &mut self,
        url: &Url,
        failure: Failure,
        retry_at_ms: Option<u64>,
        message: String,
    ) {
        self.run.site.metrics.walk.drop_one(PAGE_PROBLEM);
        self.run.site.counts.done.fetch_add(1, Relaxed);
        self.problem(url, PAGE_PROBLEM, message);
        let outcome = Outcome::Failed { failure, retry_at_ms };
        lock(&self.frontier).answered(url, outcome, clock::now_ms());
    }

    /// Takes what was asked for off the count: people count objects. A pass over trees may have begun the counts
    /// anew meanwhile.
    pub(super) fn uncount(&self) {
        let seen = &self.run.site.counts.seen;
        let _none = seen.fetch_update(Relaxed, Relaxed, |it| it.checked_sub(1));
    }

    pub(super) fn problem(&self, url: &Url, kind: &str, message: String) {
        self.run.site.problem_from_walk(self.run.walk, url.to_string(), kind, message);
    }
}

impl Got {
    /// Returns the memory of the content, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.content.as_ref().map_or(0, |it| it.object.bytes.len())
    }
}

/// Returns in which network that is not public the address of a URL is, if it has one.
fn inside(url: &Url) -> Option<Refusal> {
    match url.host()? {
        Host::Ipv4(address) => guard::classify(address.into()),
        Host::Ipv6(address) => guard::classify(address.into()),
        Host::Domain(_) => None,
    }
}
