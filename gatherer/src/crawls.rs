//! Crawls as their administrator sees them: their hosts, and why a page is in, out, waiting, done or
//! failed.

use collection::Collection;
use crawl::frontier::State;
use net::clock;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::lock::lock;
use crate::note::{self, ObjectNote};
use crate::progress::{CrawlStatus, HostStatus};
use crate::site::plan::{Plan, RemotePlan, WebPlan};
use crate::site::{RootState, Site};

/// Maximum number of hosts, and of traps, in a status.
const NAMED_MAX: usize = 20;

/// What is known of one URL under one root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The root's URL.
    pub root: String,
    /// The state in words, with the rule, line or answer that decided.
    pub state: String,
    /// What robots.txt says of it, if that was read since the start.
    pub robots: Option<String>,
    /// Time of the last answer, in Unix seconds; `None` if there was none.
    pub answered: Option<u64>,
    /// Number of pages to which it leads.
    pub links: usize,
    /// Number of its records.
    pub records: usize,
    /// Since when it seems to be gone, in Unix seconds.
    pub gone_since: Option<u64>,
    /// The page whose record stands for it, since both are one.
    pub same_as: Option<String>,
    /// The newest problem with it.
    pub problem: Option<String>,
}

/// Returns the state of the crawl of a root; `None` if there was none since the start.
pub(crate) fn status(root_state: &RootState) -> Option<CrawlStatus> {
    let frontier = lock(&root_state.frontier).clone()?;
    let frontier = lock(&frontier);
    let counts = frontier.counts();
    let host = |it: crawl::frontier::HostView<'_>| HostStatus {
        host: it.origin.to_owned(),
        waiting: it.waiting,
        answer_ms: it.answer_ms,
        why: it.why.map(|why| why.to_string()),
    };
    let hosts = frontier.hosts(NAMED_MAX, clock::now_ms());
    let trap = |it: &crawl::frontier::Trap| {
        format!("{}…: {}", it.prefix, crawl::frontier::Out::Trap(it.kind))
    };
    Some(CrawlStatus {
        waiting: counts.queued + counts.fetching,
        done: counts.done,
        failed: counts.failed,
        refused: counts.out,
        hosts: hosts.into_iter().map(host).collect(),
        traps: frontier.traps().iter().take(NAMED_MAX).map(trap).collect(),
    })
}

/// Returns what is known of a URL under each root that is a web site. Blocks.
pub(crate) fn explain(site: &Site, plans: &[Plan], url: &Url) -> Vec<Explanation> {
    let webs = plans.iter().filter_map(|plan| match plan {
        Plan::Remote(plan) => match plan {
            RemotePlan::Web(plan) => Some(plan.as_ref()),
            RemotePlan::Repository(_) => None,
        },
        Plan::Tree(_) => None,
    });
    let (own, others): (Vec<_>, Vec<_>) = webs.partition(|it| it.filter.refuses(url).is_none());
    // What leaves it out matters only if nobody takes it.
    let plans = if own.is_empty() { others } else { own };
    plans.into_iter().map(|plan| explain_under(site, plan, url)).collect()
}

fn explain_under(site: &Site, plan: &WebPlan, url: &Url) -> Explanation {
    let now_ms = clock::now_ms();
    let note = note_of(&site.collection, plan, url);
    let root_state = site.root_state(&plan.root.url).ok();
    let frontier = root_state.and_then(|it| lock(&it.frontier).clone());
    // Let go before the problems are looked at: whoever has them may want the frontier.
    let crawled = note.as_ref().and_then(|it| it.crawled.as_ref());
    let without = crawled.and_then(|it| it.without.as_deref());
    let found = frontier.map(|frontier| {
        let frontier = lock(&frontier);
        let robots = frontier.robots(url).map(|it| it.decide(url, now_ms).to_string());
        let state = match frontier.explain(url, now_ms) {
            // The pages beyond are not asked for, nor is it noted who names them.
            State::Unknown if plan.web.depth < u16::MAX => {
                "unknown: no page or list within `depth` has named it".to_owned()
            }
            // What has failed says so itself.
            State::Done => without.map_or_else(|| "done".to_owned(), |it| format!("done: {it}")),
            state => state.to_string(),
        };
        (state, robots)
    });
    let (state, robots) = found.map_or((None, None), |(state, robots)| (Some(state), robots));
    let rule = plan.filter.refuses(url).map(|it| format!("out: {}", plan.web.rule(it)));
    let remembered = || match (&note, without) {
        (Some(_), Some(without)) => format!("done in an earlier pass: {without}"),
        (Some(note), None) if note.is_empty() => {
            "nothing was there when it was asked for".to_owned()
        }
        (Some(_), None) => "done in an earlier pass".to_owned(),
        (None, _) => "not crawled since the start".to_owned(),
    };
    let problems = lock(&site.problems);
    let problem = problems.newest().find(|it| it.object == url.as_str());
    Explanation {
        root: plan.root.url.clone(),
        state: rule.or(state).unwrap_or_else(remembered),
        robots,
        answered: crawled.map(|it| it.answered_ms / 1_000),
        links: crawled.map_or(0, |it| it.links.len()),
        records: note.as_ref().map_or(0, |it| it.records.len()),
        gone_since: crawled.and_then(|it| it.gone).map(|it| it.since_ms / 1_000),
        same_as: crawled.and_then(|it| it.twin_of.clone()),
        problem: problem.map(|it| format!("{}: {}", it.kind, it.message)),
    }
}

fn note_of(collection: &Collection, plan: &WebPlan, url: &Url) -> Option<ObjectNote> {
    let key = note::object_key(&plan.root.url, url.as_str());
    note::from_bytes(&collection.note(&key).ok().flatten()?)
}

/// Returns the name of a host, which may be written as a URL or with a port.
pub(crate) fn host_name(written: &str) -> String {
    let url =
        if written.contains("://") { written.to_owned() } else { format!("http://{written}") };
    let name = Url::parse(&url).ok().and_then(|it| it.host_str().map(str::to_owned));
    name.unwrap_or_else(|| written.to_owned())
}

/// Pauses a host by its name, until it is resumed or the gatherer stops.
pub(crate) fn pause(site: &Site, name: &str) {
    lock(&site.paused_hosts).insert(name.to_owned());
    for frontier in site.frontiers() {
        lock(&frontier).pause(name, crawl::frontier::Pause::Asked, None);
    }
}

/// Resumes a host, whatever it was paused for.
pub(crate) fn resume(site: &Site, name: &str) {
    lock(&site.paused_hosts).remove(name);
    for frontier in site.frontiers() {
        lock(&frontier).resume(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_in_any_way() {
        for written in ["h.example", "h.example:8080", "https://h.example/a", "H.example"] {
            assert_eq!(host_name(written), "h.example");
        }
        assert_eq!(host_name("[::1]:80"), "[::1]");
    }
}
