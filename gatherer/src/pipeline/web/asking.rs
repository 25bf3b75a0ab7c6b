//! Requests: each takes its turn at its host, and ends as a task of the crawl's loop.

use std::future::Future;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use ::crawl::sitemap;
use http::StatusCode;
use net::client::retry_after;
use net::clock;
use url::Url;

use super::crawl::{Crawl, Ended, Page, is_web, millis};
use super::fetch::Answer;
use super::listed::Asked;
use super::others::{self, Found, local};
use super::spool::{Kept, Kind};
use crate::lock::lock;
use crate::spec::mapped_path;
use crate::turns::{Manners, Turn};
use crate::validator::Validator;

/// What the spool has of an object.
enum Left {
    Page(Box<Answer>),
    Object(Found, Kept),
}

impl Crawl<'_> {
    /// Asks for an object.
    pub(super) fn ask(&mut self, url: Url, depth: u16) {
        self.run.site.metrics.walk.enter(1);
        self.run.site.counts.seen.fetch_add(1, Relaxed);
        let old = self.note_of(&url).map(Box::new);
        let known = old
            .as_ref()
            .filter(|it| self.is_current(&url, it))
            .map(|it| it.brief.validator.clone());
        if let Some(from_disk) = self.read_mapped(&url, known.as_ref()) {
            let (took, found) = (Duration::ZERO, Ok(from_disk));
            let asked = Asked { url: url.clone(), depth, old, took, found, kept: None };
            self.end(url, Ended::Other(Box::new(asked)));
        } else if let Some(left) = self.recall(&url, known.is_some()) {
            let (at, took) = (url.clone(), Duration::ZERO);
            let ended = match left {
                Left::Page(answer) => {
                    let answer = Ok(*answer);
                    Ended::Page(Box::new(Page { url: at, depth, old, took, answer }))
                }
                Left::Object(found, kept) => {
                    let (found, kept) = (Ok(found), Some(kept));
                    Ended::Other(Box::new(Asked { url: at, depth, old, took, found, kept }))
                }
            };
            self.end(url, ended);
        } else if is_web(&url) {
            let fetcher = self.fetcher.clone();
            // A list may be longer than any object is read.
            let is_list = self.lists.is_list(&url);
            let bytes_min = if is_list { sitemap::BYTES_MAX + 1 } else { 0 };
            let spool = self.web.spool.clone();
            self.begin_request(url.clone(), move |mut turn| async move {
                let began = clock::monotonic();
                let mut answer = fetcher.fetch(url.clone(), known, bytes_min).await;
                if let (Ok(answer), false) = (&mut answer, is_list) {
                    answer.keep_in(&spool, &url);
                }
                note_answer(&mut turn, answer.as_ref().ok());
                let took = clock::monotonic().duration_since(began);
                Ended::Page(Box::new(Page { url, depth, old, took, answer }))
            });
        } else {
            let (others, spool) = (self.others.clone(), self.web.spool.clone());
            self.begin_request(url.clone(), move |mut turn| async move {
                let began = clock::monotonic();
                let found = others.fetch(&url, known.as_ref()).await;
                let mut kept = None;
                if let Ok(Found::Content(content)) = &found {
                    kept = spool.keep(&others::head(&url, content), &content.object.bytes);
                    turn.note_answer(content.object.bytes.len() as u64, None);
                }
                let took = clock::monotonic().duration_since(began);
                Ended::Other(Box::new(Asked { url, depth, old, took, found, kept }))
            });
        }
    }

    /// Ends a request that needs no server.
    fn end(&mut self, url: Url, ended: Ended) {
        let task = self.requests.spawn(async move { ended });
        self.asked.insert(task.id(), url);
    }

    /// Returns what an earlier process has got of an object, and has not committed. That it has not changed is of
    /// use only if that would be asked. Blocks.
    fn recall(&self, url: &Url, is_conditional: bool) -> Option<Left> {
        let (head, body, kept) = self.web.spool.take(url)?;
        match head.kind {
            Kind::Page { .. } => Answer::from_spool(head, body, kept)
                .filter(|it| is_conditional || it.status != StatusCode::NOT_MODIFIED)
                .map(|it| Left::Page(Box::new(it))),
            Kind::Object { .. } => Some(Left::Object(others::from_spool(head, body)?, kept)),
        }
    }

    /// Returns the file of a URL that a map gives it; `None` if there is none. Blocks.
    fn read_mapped(&self, url: &Url, known: Option<&Validator>) -> Option<Found> {
        let plan = self.web.plan;
        let mapped = mapped_path(&plan.maps, url)?;
        let bytes_max = usize::try_from(plan.root.summarizing.read_bytes_max).unwrap_or(usize::MAX);
        let now_seconds = i64::try_from(clock::now_ms() / 1_000).unwrap_or(i64::MAX);
        local::read(url, mapped, known, (bytes_max, now_seconds))
    }

    /// Asks for a robots.txt.
    pub(super) fn ask_robots(&mut self, url: Url) {
        let fetcher = self.fetcher.clone();
        self.begin_request(url.clone(), move |mut turn| async move {
            let answer = fetcher.robots(url.clone()).await;
            note_answer(&mut turn, answer.as_ref().ok());
            Ended::Robots(Box::new((url, answer)))
        });
    }

    /// Begins a request for `url` as soon as its host has a turn for it.
    fn begin_request<R>(&mut self, url: Url, request: impl FnOnce(Turn) -> R + Send + 'static)
    where
        R: Future<Output = Ended> + Send,
    {
        let delay_ms = lock(&self.frontier).delay_ms(&url, clock::now_ms());
        let manners = Manners { delay_ms, bandwidth: self.web.plan.web.bandwidth };
        let turns = self.run.site.turns.clone();
        let host = url.host_str().unwrap_or_default().to_owned();
        let task = self.requests.spawn(async move {
            let turn = turns.take(&host, manners).await;
            request(turn).await
        });
        self.asked.insert(task.id(), url);
    }
}

fn note_answer(turn: &mut Turn, answer: Option<&Answer>) {
    if let Some(answer) = answer {
        let now_ms = clock::now_ms();
        let wait = retry_after(&answer.headers, now_ms);
        let retry_at_ms = wait.map(|it| now_ms.saturating_add(millis(it)));
        turn.note_answer(answer.sent_bytes, retry_at_ms);
    }
}
