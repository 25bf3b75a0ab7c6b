//! The outcome of a request: its answer goes to the workers, or it has failed.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;

use ::crawl::frontier::{Failure, Outcome};
use net::clock;
use url::Url;

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
