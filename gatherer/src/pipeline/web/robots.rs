//! Robots.txt: what a host's allows, over all passes. What is known of it is a note, so that a pass soon after another
//! does not ask again, and so that a time in which it cannot be had goes on over passes and restarts.

use ::crawl::robots::{self, Known};
use ::crawl::walls;
use net::clock;
use net::error::Error;
use url::Url;

use super::crawl::{Crawl, PAGE_PROBLEM, WALL_PROBLEM};
use super::fetch::Answer;
use crate::lock::lock;
use crate::note::{self, robots_key};
use crate::site::commit_note;
use crate::spec::is_same_site;

impl Crawl<'_> {
    /// Takes the answer to a request for a robots.txt, remembers what is known of it now, and lets its lists be asked
    /// for.
    pub(super) fn handle_robots(&mut self, url: &Url, answer: &Result<Answer, Error>) {
        let now_ms = clock::now_ms();
        let answer = match answer {
            Ok(answer) => {
                self.note_address(url, answer);
                let code = answer.status.as_u16();
                match walls::recognize(code, &answer.headers, &answer.body) {
                    Some(wall) => {
                        self.problem(url, WALL_PROBLEM, wall.to_string());
                        robots::Answer::Unreachable
                    }
                    None if answer.status.is_success() => robots::Answer::Body(&answer.body),
                    None => {
                        if code == 429 || 500 <= code {
                            let message = format!("status {code}, so nothing is asked for");
                            self.problem(url, PAGE_PROBLEM, message);
                        }
                        robots::Answer::Status(code)
                    }
                }
            }
            Err(error) => {
                self.problem(
                    url,
                    PAGE_PROBLEM,
                    format!("no robots.txt, so nothing is asked for: {error}"),
                );
                robots::Answer::Unreachable
            }
        };
        lock(&self.frontier).robots_answered(url, answer, now_ms);
        let known = lock(&self.frontier).robots(url).cloned();
        if let Some(known) = known {
            self.remember_robots(url, &known);
        }
        self.push_lists(url);
    }

    /// Returns whether a robots.txt need not be asked for, since an earlier pass knew enough of it.
    pub(super) fn recalls_robots(&mut self, url: &Url) -> bool {
        let stored = self.run.site.collection.note(&robots_key(&self.run.plan.url, url.as_str()));
        let known: Option<Known> = stored.ok().flatten().as_deref().and_then(note::from_bytes);
        let Some(known) = known else { return false };
        let (now_ms, since_ms) =
            (clock::now_ms(), if self.web.is_full { self.began_ms } else { 0 });
        let is_fresh = known.is_fresh(since_ms, now_ms);
        lock(&self.frontier).recall_robots(url, known, is_fresh, now_ms);
        if is_fresh {
            self.push_lists(url);
        }
        is_fresh
    }

    fn remember_robots(&self, url: &Url, known: &Known) {
        let (site, root) = (self.run.site, &self.run.plan.url);
        let value = Some(note::to_bytes(known));
        let key = robots_key(root, url.as_str());
        if let Err(error) = commit_note(&site.collection, key, value) {
            site.problem(root.clone(), "collection", error.to_string());
        }
    }

    /// Lets the frontier ask for the lists that a robots.txt names.
    fn push_lists(&mut self, url: &Url) {
        // What a `[[leaf]]` lists is all that it has.
        if !self.web.plan.web.leaves.is_empty() {
            return;
        }
        let is_own = is_same_site(url, &self.web.plan.web.url);
        let mut frontier = lock(&self.frontier);
        let lists = self.lists.handle_robots(url, frontier.robots(url), is_own);
        lists.iter().for_each(|it| frontier.push_aside(it));
    }
}
