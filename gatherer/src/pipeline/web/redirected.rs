//! Redirected pages: what becomes of the records of known pages that were only elsewhere in a pass.
//!
//! A page that has moved is one of which the host says where it is now. A login, a notice of maintenance or another
//! host that has the name now say the same. So it is decided at the end of the pass, when it is known what is there.

use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;

use ::crawl::frontier::{Out, State};
use http::StatusCode;
use net::clock;
use url::Url;

use super::super::run::Candidate;
use super::crawl::{Crawl, PAGE_PROBLEM};
use super::moved::{Redirected, place};
use super::{Got, What};
use crate::lock::lock;
use crate::note::ObjectNote;

impl Crawl<'_> {
    /// Puts off what becomes of a page that is only elsewhere to the end of the pass.
    pub(super) fn put_off(&mut self, got: Got, old: &ObjectNote, status: StatusCode) {
        let url = got.url.clone();
        let page = Redirected {
            url: got.url,
            depth: got.depth,
            at_ms: got.at_ms,
            validator: old.brief.validator.clone(),
            is_permanent: matches!(
                status,
                StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT
            ),
            without: got.without,
            kept: got.kept,
        };
        if !self.moved.wait(page) {
            self.keep_redirected(&url, "it only leads elsewhere, as very many pages do");
        }
    }

    /// Takes the pages for absent that have moved to a page that is there, and names the others.
    pub(super) fn settle_redirected(&mut self, candidates: &SyncSender<Candidate>) {
        let waiting = self.moved.take();
        if waiting.is_empty() {
            return;
        }
        // What is where they lead is in its note.
        self.run.wait_until_committed();
        let (alike, answering) = (self.moved.alike(&waiting), self.answering_hosts());
        for page in waiting {
            let end = self.moved.end_of(&page.url).cloned();
            let count = end.as_ref().and_then(|it| alike.get(place(it)));
            let why = match (end, count) {
                (None, _) => Some("it leads in a circle, or over too many redirects".to_owned()),
                (Some(end), Some(count)) => {
                    Some(format!("it leads to {end}, as {count} known pages do"))
                }
                (Some(end), None) => self.why_kept(&page, &end, &answering),
            };
            if let Some(why) = why {
                self.keep_redirected(&page.url, &why);
                continue;
            }
            self.answered += 1;
            let to = self.moved.next_of(&page.url).cloned();
            let what = What::Absent { is_certain: false };
            let got = Got::without_content(page.url, page.depth, what);
            let got = Got { at_ms: page.at_ms, kept: page.kept, without: page.without, to, ..got };
            self.hand(got, page.validator, candidates);
        }
        while 0 < self.handed && !self.run.is_stopped() {
            self.web.runtime.block_on(self.wait(None, candidates));
        }
    }

    /// Returns why a page keeps its record although it leads to `end`; `None`: it has moved there. Out of the root
    /// it has moved if that is for good, and its host still has a page where the crawl begins.
    fn why_kept(
        &self,
        page: &Redirected,
        end: &Url,
        answering: &HashSet<String>,
    ) -> Option<String> {
        let state = lock(&self.frontier).explain(end, clock::now_ms());
        let why = match state {
            State::Done => {
                let crawled = self.note_of(end).and_then(|it| it.crawled);
                // A page that wants no record is there.
                let is_there = crawled.is_some_and(|it| it.gone.is_none_or(|it| it.is_certain));
                if is_there {
                    return None;
                }
                "no object".to_owned()
            }
            State::Out(_) | State::Unknown
                if page.is_permanent
                    && page.url.host_str().is_some_and(|it| answering.contains(it)) =>
            {
                return None;
            }
            State::Out(Out::Rule(rule)) => format!("out: {}", self.web.plan.web.rule(rule)),
            state => state.to_string(),
        };
        Some(format!("it leads to {end} ({why})"))
    }

    /// Returns the hosts of which a page where the crawl begins is there.
    fn answering_hosts(&self) -> HashSet<String> {
        let (frontier, now_ms) = (lock(&self.frontier), clock::now_ms());
        let is_there = |it: &&Url| {
            self.moved.next_of(it).is_none() && frontier.explain(it, now_ms) == State::Done
        };
        let starts = self.web.plan.web.starts().iter().filter(is_there);
        starts.filter_map(|it| it.host_str().map(str::to_owned)).collect()
    }

    /// Leaves a page its record, and says why.
    fn keep_redirected(&self, url: &Url, why: &str) {
        self.run.site.metrics.walk.drop_one(PAGE_PROBLEM);
        self.run.site.counts.done.fetch_add(1, Relaxed);
        let message = format!(
            "{why}, so that its record stays: if it is gone, name it in `deny`; if a login or a wall is before it, \
             let this robot in"
        );
        self.problem(url, PAGE_PROBLEM, message);
    }
}
