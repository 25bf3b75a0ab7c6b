//! A pass over a site: what is known at its begin, and what is said at its end.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use ::crawl::frontier::{Candidate as Found, Frontier, Out, Pushed, State};
use net::clock;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use url::Url;

use super::super::run::{Candidate, Run};
use super::crawl::Crawl;
use super::due::{Changes, Intervals};
use super::fetch::Fetcher;
use super::lists::Lists;
use super::memo::Memo;
use super::missing::Missing;
use super::moved::Moved;
use super::others::Others;
use super::{Got, Led, WebAccess, What};
use crate::lock::lock;
use crate::note::{self, Crawled, ObjectNote};
use crate::problems::CRAWL_PROBLEM;

impl<'r> Crawl<'r> {
    /// Begins a crawl, or goes on with the one that a stop has ended.
    pub(super) fn begin(
        run: &'r Run<'r>,
        web: &'r WebAccess<'r>,
        led: UnboundedReceiver<Led>,
    ) -> Result<Self, collection::Error> {
        // A crawl that was stopped may have brought something new before that.
        let (began_ms, is_resumed) = {
            let mut root = lock(&run.root.note);
            let is_resumed = root.crawl_began.is_some();
            if root.crawl_began.is_none() {
                root.crawl_began = Some(clock::now_ms());
                run.site.remember_root(&run.plan.url, &root)?;
            }
            (root.crawl_began.unwrap_or_default(), is_resumed)
        };
        let has_news = is_resumed;
        let (filter, spec) = (web.plan.filter.clone(), &web.plan.web);
        let frontier = Frontier::new(spec.frontier(), Box::new(move |url| filter.refuses(url)));
        let frontier = Arc::new(Mutex::new(frontier));
        *lock(&run.root.frontier) = Some(frontier.clone());
        let paused = lock(&run.site.paused_hosts).clone();
        let bytes_max = run.plan.summarizing.read_bytes_max;
        let shared = Arc::new(spec.clone());
        let fetcher = Fetcher::new(web.client.clone(), shared.clone(), bytes_max);
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let others = Others::new(shared, bytes_max, &web.extra_roots);
        let (requests, gone) = (JoinSet::new(), HashSet::new());
        let mut crawl = Self {
            run,
            web,
            fetcher,
            others,
            frontier,
            requests,
            led,
            handed: 0,
            began_ms,
            published: clock::monotonic(),
            known: 0,
            answered: 0,
            asked: HashMap::new(),
            missing: Missing::default(),
            lists: Lists::default(),
            gone,
            empty: Vec::new(),
            paused,
            has_news,
            pushed: Memo::default(),
            moved: Moved::default(),
            elsewhere: None,
        };
        if is_resumed {
            crawl.recover();
        } else {
            web.spool.clear();
        }
        crawl.name_lists();
        crawl.push_known()?;
        for start in spec.starts() {
            crawl.push(start, 0, false);
        }
        crawl.enumerate();
        Ok(crawl)
    }

    /// Finds what an earlier process has fetched in this pass and not committed.
    fn recover(&self) {
        self.web.spool.recover(|head| {
            let note = Url::parse(&head.url).ok().and_then(|it| self.note_of(&it));
            let answered_ms = note.and_then(|it| it.crawled).map_or(0, |it| it.answered_ms);
            self.began_ms <= head.at_ms && answered_ms < head.at_ms
        });
    }

    /// Takes all known pages, and the links of those that were answered before a stop.
    fn push_known(&mut self) -> Result<(), collection::Error> {
        let mut is_resumed = false;
        let intervals = self.intervals()?;
        let now_ms = clock::now_ms();
        // Of other settings or annotations, and what may have changed while it was read, is due as well.
        let is_done = |crawl: &Self, url: &Url, found: &Crawled, is_current: bool| {
            // The first page is where what is new begins.
            let is_first = *url == crawl.web.plan.web.url;
            let is_due = intervals.as_ref().is_none_or(|it| it.is_due(url, found, now_ms))
                || is_first
                || !is_current;
            crawl.began_ms <= found.answered_ms || !is_due
        };
        let lists_all = self.web.plan.web.protocol().lists_all();
        self.for_each_known(|crawl, url, note| {
            if crawl.lists.is_named(&url) {
                // It has become a list, which is no object.
                crawl.has_news = true;
                crawl.gone.insert(url.into());
                return;
            }
            let (is_empty, is_current) = (note.is_empty(), crawl.is_current(&url, &note));
            let is_over = note.is_over(crawl.web.grace_ms(), now_ms);
            let found = note.crawled.unwrap_or_default();
            let is_answered = crawl.began_ms <= found.answered_ms;
            let is_done = is_done(crawl, &url, &found, is_current);
            if is_empty && !is_done {
                crawl.empty.push(url);
                return;
            }
            crawl.known += u64::from(!is_empty);
            if is_done {
                is_resumed = true;
                crawl.answered += u64::from(!is_empty && is_answered);
                let candidate = Found { url: &url, depth: found.depth, known: true };
                lock(&crawl.frontier).push_done(candidate);
                if is_over {
                    crawl.gone.insert(url.into());
                }
                return;
            }
            // Where lists tell of what is known, it comes after them.
            let depth = if lists_all { u16::MAX } else { found.depth };
            if let Pushed::Out(Out::Rule(_)) = crawl.push(&url, depth, true) {
                // The settings leave it out.
                crawl.has_news = true;
                crawl.answered += 1;
                crawl.gone.insert(url.into());
            }
        })?;
        if is_resumed {
            self.for_each_known(|crawl, url, note| {
                let is_current = crawl.is_current(&url, &note);
                let found = note.crawled.unwrap_or_default();
                if is_done(crawl, &url, &found, is_current) {
                    crawl.push_links(&url, &found.links, found.depth);
                }
            })?;
        }
        Ok(())
    }

    /// Returns when to ask for what is known; `None`: now.
    fn intervals(&mut self) -> Result<Option<Intervals>, collection::Error> {
        let plan = self.web.plan;
        // Lists tell of all that they have.
        if self.web.is_full || plan.web.protocol().lists_all() {
            return Ok(None);
        }
        let mut changes = Changes::default();
        self.for_each_known(|_, url, note| {
            if let Some(crawled) = note.crawled.filter(|_| !note.records.is_empty()) {
                changes.add(&url, &crawled);
            }
        })?;
        Ok(Some(changes.intervals(plan.web.interval, plan.interval_max)))
    }

    pub(super) fn for_each_known(
        &mut self,
        mut each: impl FnMut(&mut Self, Url, ObjectNote),
    ) -> Result<(), collection::Error> {
        let (site, root) = (self.run.site, &self.run.plan.url);
        for entry in site.collection.notes(&note::objects_prefix(root)) {
            let (key, value) = entry?;
            let url = note::url_of(root, &key).and_then(|it| Url::parse(&it).ok());
            if let (Some(url), Some(note)) = (url, note::from_bytes(&value)) {
                each(self, url, note);
            }
        }
        Ok(())
    }

    /// Notes of known pages that robots.txt does not allow any more since when that is so.
    pub(super) fn settle_refused(
        &mut self,
        candidates: &SyncSender<Candidate>,
    ) -> Result<(), collection::Error> {
        let mut refused = Vec::new();
        self.for_each_known(|crawl, url, note| {
            if note.is_empty() {
                return;
            }
            let found = note.crawled.unwrap_or_default();
            let state = lock(&crawl.frontier).explain(&url, clock::now_ms());
            if matches!(state, State::Out(Out::Robots(_))) && found.answered_ms < crawl.began_ms {
                refused.push((url, found.depth, note.brief.validator));
            }
        })?;
        for (url, depth, validator) in refused {
            self.answered += 1;
            self.run.site.metrics.walk.enter(1);
            let got = Got::without_content(url, depth, What::Absent { is_certain: true });
            self.hand(got, validator, candidates);
        }
        while 0 < self.handed && !self.run.is_stopped() {
            self.web.runtime.block_on(self.wait(None, candidates));
        }
        Ok(())
    }

    /// Returns the URLs at which nothing was found before, and to which nothing led any more.
    pub(super) fn left_empty(&self) -> Vec<String> {
        let (frontier, now_ms) = (lock(&self.frontier), clock::now_ms());
        let is_left =
            |url: &&Url| matches!(frontier.explain(url, now_ms), State::Unknown | State::Out(_));
        self.empty.iter().filter(is_left).map(Url::to_string).collect()
    }

    /// Reports whether the root's first page was had, and the traps.
    pub(super) fn report(&self) {
        let (site, start, starts) =
            (self.run.site, &self.web.plan.web.url, self.web.plan.web.starts());
        let state_of = |it| lock(&self.frontier).explain(it, clock::now_ms());
        let is_begun = starts.is_empty() || starts.iter().any(|it| state_of(it) == State::Done);
        let has_begun = is_begun && self.elsewhere.is_none();
        self.web.has_begun.store(has_begun, Relaxed);
        if let Some(to) = &self.elsewhere {
            let message = format!("it leads to {to}, which is not of this root: name that instead");
            site.problem(start.to_string(), CRAWL_PROBLEM, message);
        } else if has_begun {
            lock(&site.problems).cure(start.as_str(), CRAWL_PROBLEM);
        } else {
            let state = starts.first().map_or(State::Unknown, state_of);
            site.problem(start.to_string(), CRAWL_PROBLEM, format!("not crawled: {state}"));
        }
        // Whoever has the problems may want the frontier: never the other way round.
        let traps = lock(&self.frontier).traps().to_vec();
        for trap in traps {
            let (kind, count) = (Out::Trap(trap.kind), trap.count);
            let cap = self.web.plan.web.trap_cap(trap.kind);
            let remedy = cap
                .map(|it| format!("; set `trap_urls_max` to raise the cap of {it}, for all traps"));
            let message = format!(
                "{kind}: {count} URLs that begin with {} are left out{}",
                trap.prefix,
                remedy.unwrap_or_default()
            );
            site.problem_from_walk(self.run.walk, trap.example, "trap", message);
        }
    }
}
