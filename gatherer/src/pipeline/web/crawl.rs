//! The loop that drives the frontier of one site.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::crawl::frontier::{
    Candidate as Found, Failure, Frontier, Next, Outcome, Pause, Pushed, State,
};
use ::crawl::robots;
use net::client::retry_after;
use net::clock;
use net::error::Error;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{self, JoinError, JoinSet};
use url::Url;

use super::super::run::{Candidate, Run, WalkResult};
use super::answer::{self, Meaning};
use super::fetch::{Answer, Fetcher};
use super::listed::Asked;
use super::lists::{self, Lists};
use super::memo::Memo;
use super::missing::Missing;
use super::moved::Moved;
use super::others::Others;
use super::{Got, Led, WebAccess, What};
use crate::known::Top;
use crate::lock::lock;
use crate::note::{self, ObjectNote};
use crate::progress::Hold;
use crate::spec::Protocol;

/// Longest wait until the loop looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(250);

/// Kind of the problem that a page cannot be had.
pub(super) const PAGE_PROBLEM: &str = "unreachable";

/// Kind of the problem that a bot wall answers.
pub(super) const WALL_PROBLEM: &str = "wall";

/// A request for a page that has ended.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) url: Url,
    pub(super) depth: u16,
    /// The note of the page, if it was there before.
    pub(super) old: Option<Box<ObjectNote>>,
    pub(super) took: Duration,
    pub(super) answer: Result<Answer, Error>,
}

/// A request that has ended.
#[derive(Debug)]
pub(super) enum Ended {
    Page(Box<Page>),
    Robots(Box<(Url, Result<Answer, Error>)>),
    Other(Box<Asked>),
}

pub(super) struct Crawl<'r> {
    pub(super) run: &'r Run<'r>,
    pub(super) web: &'r WebAccess<'r>,
    pub(super) fetcher: Fetcher,
    pub(super) others: Others,
    pub(super) frontier: Arc<Mutex<Frontier>>,
    pub(super) requests: JoinSet<Ended>,
    pub(super) led: UnboundedReceiver<Led>,
    /// Number of objects at the workers, whose links are still to come.
    pub(super) handed: usize,
    pub(super) began_ms: u64,
    /// Time at which the progress was last published.
    pub(super) published: Instant,
    /// Number of objects that are known, and of those that were answered.
    pub(super) known: u64,
    pub(super) answered: u64,
    /// URLs of the requests under way.
    pub(super) asked: HashMap<task::Id, Url>,
    pub(super) missing: Missing,
    pub(super) lists: Lists,
    /// URLs of objects that are gone for certain.
    pub(super) gone: HashSet<String>,
    /// URLs at which the pass before has found nothing.
    pub(super) empty: Vec<Url>,
    /// Names of hosts that an administrator has paused before.
    pub(super) paused: BTreeSet<String>,
    /// Links that were pushed.
    pub(super) pushed: Memo,
    /// Whether anything is not as the pass before has left it.
    pub(super) has_news: bool,
    pub(super) moved: Moved,
    /// Where the root's first page leads, if that is left out.
    pub(super) elsewhere: Option<Url>,
}

impl Run<'_> {
    /// Stage 1: asks for all pages that are known or found, and hands on what it gets. Blocks.
    pub(in super::super) fn crawl(
        &self,
        web: &WebAccess<'_>,
        confirmed: bool,
        candidates: SyncSender<Candidate>,
    ) -> WalkResult {
        let mut result = WalkResult {
            walk: self.walk,
            top: Top::Present { device: 0, is_empty: false },
            scopes: BTreeSet::new(),
            unread: BTreeSet::new(),
            frontier: None,
            answered_from: None,
            gone: None,
            alike: None,
            empty: Vec::new(),
            finished: false,
        };
        let Some(led) = lock(&web.led).take() else { return result };
        let hold = lock(&self.root.note).hold.clone();
        if confirmed {
            lock(&web.sameness).release_all();
        } else if matches!(hold, Some(Hold::Alike { .. })) {
            lock(&web.sameness).note_held();
        }
        let ended = Crawl::begin(self, web, led).and_then(|mut crawl| {
            web.runtime.block_on(crawl.go_on(&candidates));
            result.alike = lock(&web.sameness).hold(crawl.known);
            if result.alike.is_none() && crawl.ask_again() {
                web.runtime.block_on(crawl.go_on(&candidates));
            }
            if !self.is_stopped() {
                crawl.settle_refused(&candidates)?;
                crawl.settle_redirected(&candidates);
            }
            if result.alike.is_none() && !self.is_stopped() && crawl.settle_twins(&candidates)? {
                web.runtime.block_on(crawl.go_on(&candidates));
            }
            Ok(crawl)
        });
        match ended {
            Ok(crawl) if !self.is_stopped() => {
                crawl.report();
                result.answered_from = (crawl.answered < crawl.known).then_some(crawl.began_ms);
                result.empty = crawl.left_empty();
                result.frontier = Some(crawl.frontier);
                (result.gone, result.finished) = (Some(crawl.gone), true);
            }
            Ok(_stopped) => {}
            Err(error) => {
                self.site.problem(self.plan.url.clone(), "collection", error.to_string());
            }
        }
        result
    }
}

impl Crawl<'_> {
    /// Takes a page that was found, or is known.
    pub(super) fn push(&mut self, url: &Url, depth: u16, known: bool) -> Pushed {
        let mut frontier = lock(&self.frontier);
        if is_web(url) && (known || frontier.explain(url, 0) == State::Unknown) {
            self.missing.find(url, &self.web.plan.web, &mut frontier);
        }
        let pushed = frontier.push(Found { url, depth, known });
        if pushed == Pushed::In
            && let Some(host) = url.host_str().filter(|it| self.paused.contains(*it))
        {
            frontier.pause(host, Pause::Asked, None);
        }
        pushed
    }

    /// Asks again for the pages that have turned to one: they are few. Returns whether there are any.
    fn ask_again(&mut self) -> bool {
        let again = lock(&self.web.sameness).release();
        let mut frontier = lock(&self.frontier);
        again.iter().for_each(|it| frontier.again(it));
        // They are counted once more when they are answered.
        self.answered = self.answered.saturating_sub(again.len() as u64);
        !again.is_empty()
    }

    /// Takes the links of the page at `base`, as its note has them.
    pub(super) fn push_links(&mut self, base: &Url, links: &[String], depth: u16) {
        let depth = depth.saturating_add(1);
        for link in links {
            // Most pages of a site have the same links to others.
            if self.pushed.is_news(base, link, depth)
                && let Ok(url) = base.join(link)
            {
                self.push(&url, depth, false);
            }
        }
    }

    /// Asks for one page after the other until nothing is left to ask for.
    pub(super) async fn go_on(&mut self, candidates: &SyncSender<Candidate>) {
        while !self.run.is_stopped() {
            let next = lock(&self.frontier).next(clock::now_ms());
            match next {
                Next::Fetch { url, depth } => self.ask(url, depth),
                // Only the web has them.
                Next::Robots { url } if !is_web(&url) => {
                    let answer = robots::Answer::Status(404);
                    lock(&self.frontier).robots_answered(&url, answer, clock::now_ms());
                }
                Next::Robots { url } if self.recalls_robots(&url) => {}
                Next::Robots { url } => self.ask_robots(url),
                Next::Wait { until_ms } => self.wait(until_ms, candidates).await,
                Next::Done if self.requests.is_empty() && self.handed == 0 => return,
                Next::Done => self.wait(None, candidates).await,
            }
        }
        self.requests.shutdown().await;
    }

    /// Waits until a request has ended, a worker has found where a page leads, or `until_ms`.
    pub(super) async fn wait(&mut self, until_ms: Option<u64>, candidates: &SyncSender<Candidate>) {
        let wait = until_ms.map(|it| Duration::from_millis(it.saturating_sub(clock::now_ms())));
        tokio::select! {
            biased;
            Some(led) = self.led.recv() => {
                self.handed = self.handed.saturating_sub(1);
                if led.is_over {
                    self.gone.insert(led.url.to_string());
                }
                self.push_links(&led.url, &led.links, led.depth);
            }
            Some(ended) = self.requests.join_next_with_id(), if !self.requests.is_empty() => {
                let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
                let asked = self.asked.remove(&id);
                match ended {
                    Ok((_, Ended::Page(page))) => self.handle_page(*page, candidates),
                    Ok((_, Ended::Other(asked))) => self.handle_found(*asked, candidates),
                    Ok((_, Ended::Robots(asked))) => self.handle_robots(&asked.0, &asked.1),
                    Err(fault) => {
                        tracing::error!(%fault, "a request failed");
                        if let Some(url) = asked {
                            self.fail(&url, Failure::Unreadable, None, fault.to_string());
                            lock(&self.frontier).robots_answered(&url, robots::Answer::Unreachable, clock::now_ms());
                        }
                    }
                }
            }
            () = tokio::time::sleep(wait.unwrap_or(LOOK).min(LOOK)) => {}
        }
        let now = clock::monotonic();
        if LOOK <= now.duration_since(self.published) {
            self.published = now;
            self.run.site.publish();
            let spool = self.web.spool.clone();
            task::spawn_blocking(move || spool.sync());
        }
    }

    pub(super) fn note_of(&self, url: &Url) -> Option<ObjectNote> {
        let key = note::object_key(&self.run.plan.url, url.as_str());
        let stored = self.run.site.collection.note(&key).ok().flatten();
        stored.as_deref().and_then(note::from_bytes)
    }

    /// Returns whether the records of a page are of the present settings and annotations, so that
    /// they need not be made anew if the page has not changed.
    pub(super) fn is_current(&self, url: &Url, note: &ObjectNote) -> bool {
        let run = self.run;
        let annotations = run.annotations.fingerprint_of_file(url.as_str());
        let basis = note::basis_fingerprint(run.plan.summarizing.settings, annotations);
        let object = run.hasher.hash(url.as_str(), &note.brief.validator, basis);
        let is_gone = note.crawled.as_ref().is_some_and(|it| it.gone.is_some());
        !run.regather && !is_gone && lock(&run.root.known).is_same(object)
    }

    /// Tells the frontier at which address the host of an answer is.
    pub(super) fn note_address(&self, url: &Url, answer: &Answer) {
        if let Some(address) = answer.address {
            lock(&self.frontier).resolved(url.host_str().unwrap_or_default(), address);
        }
    }

    fn handle_page(&mut self, page: Page, candidates: &SyncSender<Candidate>) {
        if let Some(waiting) = self.missing.handle_sample(&page) {
            self.handle_aside(&page);
            waiting.into_iter().for_each(|it| self.handle_page(it, candidates));
            return;
        }
        if self.lists.is_list(&page.url) {
            self.handle_aside(&page);
            return;
        }
        let Some(page) = self.missing.hold(page, &lock(&self.frontier)) else { return };
        let Page { url, depth, old, took, answer } = page;
        match answer {
            Ok(answer) => self.handle_answer((url, depth), old, took, &answer, candidates),
            Err(error) => {
                let is_unreadable = matches!(error, Error::Url { .. });
                let failure =
                    if is_unreadable { Failure::Unreadable } else { Failure::Unreachable };
                self.fail(&url, failure, None, error.to_string());
            }
        }
    }

    fn handle_answer(
        &mut self,
        (url, depth): (Url, u16),
        old: Option<Box<ObjectNote>>,
        took: Duration,
        answer: &Answer,
        candidates: &SyncSender<Candidate>,
    ) {
        let (run, now_ms) = (self.run, clock::now_ms());
        self.note_address(&url, answer);
        run.site.metrics.bytes.fetch_add(answer.sent_bytes, Relaxed);
        run.site.counts.bytes.fetch_add(answer.sent_bytes, Relaxed);
        let found = (answer.status, &answer.headers, &*answer.body);
        let meaning = answer::meaning(&url, found, old.is_some());
        let done = Outcome::Done { took_ms: millis(took) };
        let (mut moved, mut without, mut listed) = (None, None, Vec::new());
        let (what, content, outcome) = match meaning {
            Meaning::Content if self.missing.says_nothing(&url, &answer.body) => {
                let failure = Failure::SoftMissing;
                self.fail(&url, failure, None, failure.to_string());
                return;
            }
            Meaning::Content => {
                listed = lists::entries_of_feed(&url, &answer.headers, &answer.body);
                (What::Content, Some(answer.content(&url)), done)
            }
            Meaning::Unchanged => (What::Unchanged, None, done),
            Meaning::Moved(to) => {
                self.handle_moved(&url, &to, depth);
                without = Some(format!("status {} leads to {to}", answer.status.as_u16()));
                moved = Some(to);
                (What::Absent { is_certain: false }, None, done)
            }
            Meaning::Absent(failure) => {
                let is_certain = failure == Failure::Status(410);
                self.problem(&url, "missing", failure.to_string());
                without = Some(failure.to_string());
                (What::Absent { is_certain }, None, Outcome::Failed { failure, retry_at_ms: None })
            }
            Meaning::Failed(failure) => {
                let wait = retry_after(&answer.headers, now_ms);
                let asks =
                    |it: Duration| format!("; it asks for no request within {} s", it.as_secs());
                let nowhere = if answer.status.is_redirection() {
                    ", with no address that can be read"
                } else {
                    ""
                };
                let message = format!("{failure}{nowhere}{}", wait.map(asks).unwrap_or_default());
                let retry_at_ms = wait.map(|it| now_ms.saturating_add(millis(it)));
                self.fail(&url, failure, retry_at_ms, message);
                return;
            }
            Meaning::Wall(wall) => {
                run.site.metrics.walk.drop_one(WALL_PROBLEM);
                run.site.counts.done.fetch_add(1, Relaxed);
                self.problem(&url, WALL_PROBLEM, wall.to_string());
                lock(&self.frontier).answered(&url, Outcome::Wall(wall), now_ms);
                return;
            }
        };
        lock(&self.frontier).answered(&url, outcome, now_ms);
        let directives = answer.directives();
        let links = listed.iter().map(|it| it.0.clone()).collect();
        self.push_listed(listed, depth.saturating_add(1));
        let (at_ms, kept) = (answer.at_ms, answer.kept.clone());
        let to = moved;
        let got = Got { content, url, depth, at_ms, what, directives, to, without, links, kept };
        match old.as_deref().filter(|it| got.to.is_some() && !it.records.is_empty()) {
            Some(old) => self.put_off(got, old, answer.status),
            None => self.settle(got, old.as_deref(), candidates),
        }
    }

    /// Handles the answer to a made-up name, or a list: neither is a page.
    fn handle_aside(&mut self, page: &Page) {
        self.run.site.metrics.walk.drop_one("aside");
        self.uncount();
        let outcome = match &page.answer {
            Ok(answer) => {
                self.note_address(&page.url, answer);
                let found = (answer.status, &answer.headers, &*answer.body);
                match answer::meaning(&page.url, found, false) {
                    Meaning::Wall(wall) => {
                        let host = page.url.join("/").unwrap_or_else(|_| page.url.clone());
                        self.problem(&host, WALL_PROBLEM, wall.to_string());
                        Outcome::Wall(wall)
                    }
                    Meaning::Content if self.lists.is_list(&page.url) => {
                        self.read_list(&page.url, &answer.body);
                        Outcome::Done { took_ms: millis(page.took) }
                    }
                    other => {
                        if let Meaning::Absent(failure) | Meaning::Failed(failure) = other {
                            self.miss_list(&page.url, failure.to_string());
                        }
                        Outcome::Done { took_ms: millis(page.took) }
                    }
                }
            }
            Err(error) => {
                self.miss_list(&page.url, error.to_string());
                Outcome::Failed { failure: Failure::Unreadable, retry_at_ms: None }
            }
        };
        lock(&self.frontier).answered(&page.url, outcome, clock::now_ms());
    }
}

/// Returns whether a URL is of HTTP.
pub(super) fn is_web(url: &Url) -> bool {
    Protocol::of(url) == Some(Protocol::Web)
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
