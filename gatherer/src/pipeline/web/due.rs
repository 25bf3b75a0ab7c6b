//! Due pages: the pages of a host that are equally far from the root's first one are asked for as often as
//! they have changed.
//!
//! Source: Adly §3.3 (OAP(θ)); `freshness` computes the intervals.
//!
//! # Differences from the paper
//!
//! * A source is a group of pages, and asking for it costs as much as it has pages.
//! * No interval is longer than the time for which its pages were watched: a group that has not changed is left
//!   alone twice as long each time.
//!
//! Sans-I/O.

use std::collections::HashMap;
use std::time::Duration;

use freshness::expect::interval_of_pulls;
use freshness::interval::{Bounds, Model, Policy, Source, plan};
use url::Url;

use crate::note::Crawled;

/// Share of the pages that are to be as their site has them.
const THETA: f64 = 0.95;

/// What is known of a group of pages.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    pages: u64,
    visits: u64,
    changes: u64,
    /// Sum over the pages of the time from the first answer to the last, in seconds.
    watched_secs: f64,
}

/// A host, and a number of links from the root's first page.
type Place = (String, u16);

/// The changes that earlier passes have found.
#[derive(Debug, Default)]
pub(super) struct Changes {
    groups: HashMap<Place, Group>,
}

/// The time from one request for a page to the next, by group, in milliseconds.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    groups: HashMap<Place, u64>,
    /// Time from one pass to the next.
    pass_ms: u64,
}

fn place(url: &Url, crawled: &Crawled) -> Place {
    (url.host_str().unwrap_or_default().to_owned(), crawled.depth)
}

impl Changes {
    /// Takes what is known of a page.
    pub(super) fn add(&mut self, url: &Url, crawled: &Crawled) {
        let group = self.groups.entry(place(url, crawled)).or_default();
        group.pages += 1;
        group.visits += u64::from(crawled.visits);
        group.changes += u64::from(crawled.changes);
        if crawled.since_ms != 0 {
            group.watched_secs +=
                crawled.answered_ms.saturating_sub(crawled.since_ms) as f64 / 1_000.0;
        }
    }

    /// Returns the intervals, of at least the time from one pass to the next, and at most `interval_max`.
    pub(super) fn intervals(self, pass: Duration, interval_max: Duration) -> Intervals {
        let source = |group: &Group| {
            let pages = group.pages as f64;
            let longest = (2.0 * group.watched_secs / pages).min(interval_max.as_secs_f64());
            let bounds = Bounds { interval_min: pass.as_secs_f64(), interval_max: longest };
            let own = interval_of_pulls(group.watched_secs, group.visits, group.changes);
            let rate = own.map_or(0.0, |it| pages / it);
            Source { pull_cost: pages, ..Source::new(rate, group.pages, bounds.settled()) }
        };
        let sources: Vec<Source> = self.groups.values().map(source).collect();
        // The straight line of eq. 1 never gives up what always changes: such pages lead to what is new.
        let planned = plan(&sources, Policy::Optimal { theta: THETA }, Model::Linear);
        let longest_ms = millis(interval_max);
        let in_ms =
            |secs| Duration::try_from_secs_f64(secs).map_or(longest_ms, millis).min(longest_ms);
        let groups =
            self.groups.into_keys().zip(planned.intervals.into_iter().map(in_ms)).collect();
        Intervals { groups, pass_ms: millis(pass) }
    }
}

impl Intervals {
    /// Returns whether a page is to be asked for in a pass that begins at `now_ms`. What would be due before the
    /// middle of the time up to the next pass is due now, as is what seems to be gone.
    pub(super) fn is_due(&self, url: &Url, crawled: &Crawled, now_ms: u64) -> bool {
        let interval_ms = self.groups.get(&place(url, crawled)).copied().unwrap_or_default();
        let due_ms = crawled.answered_ms.saturating_add(interval_ms);
        crawled.gone.is_some() || due_ms <= now_ms.saturating_add(self.pass_ms / 2)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::Gone;

    const DAY: Duration = Duration::from_secs(24 * 3_600);
    const DAY_MS: u64 = 24 * 3_600 * 1_000;

    fn url(path: &str) -> Url {
        Url::parse("http://h.example/").unwrap().join(path).unwrap()
    }

    /// Returns a page that was asked for on each of some days.
    fn page(depth: u16, days: u32, changes: u32) -> Crawled {
        let since_ms = 1_000 * DAY_MS;
        let answered_ms = since_ms + u64::from(days) * DAY_MS;
        Crawled { answered_ms, depth, since_ms, visits: days, changes, ..Crawled::default() }
    }

    #[test]
    fn pages_that_do_not_change_are_asked_for_less_often() {
        let all = [page(0, 20, 20), page(1, 20, 1), page(2, 20, 0), page(3, 0, 0)];
        let mut changes = Changes::default();
        // One page that changes each day, and many that do not.
        for (page, count) in all.iter().zip([1, 40, 40, 40]) {
            (0..count).for_each(|_| changes.add(&url("a"), page));
        }
        let intervals = changes.intervals(DAY, 30 * DAY);
        let days = |page: &Crawled| {
            let is_due =
                |days: &u64| intervals.is_due(&url("a"), page, page.answered_ms + days * DAY_MS);
            (1..100).find(is_due).unwrap()
        };
        let found: Vec<u64> = all.iter().map(days).collect();
        assert_eq!(
            (found[0], found[3]),
            (1, 1),
            "it changes each day, and nothing is known: {found:?}"
        );
        assert!(1 < found[1] && found[1] < found[2] && found[2] <= 30, "{found:?}");
        let gone = Gone { since_ms: 0, times: 1, is_certain: false };
        let gone = Crawled { gone: Some(gone), ..all[2].clone() };
        assert!(intervals.is_due(&url("a"), &gone, gone.answered_ms));
    }

    #[test]
    fn nobody_is_left_alone_for_longer_than_he_was_watched() {
        let mut changes = Changes::default();
        let (new, old) = (page(1, 2, 0), page(2, 200, 0));
        changes.add(&url("a"), &new);
        changes.add(&url("b"), &old);
        let intervals = changes.intervals(DAY, 15 * DAY);
        let at = |page: &Crawled, days| {
            intervals.is_due(&url("a"), page, page.answered_ms + days * DAY_MS)
        };
        assert!(!at(&new, 3) && at(&new, 4));
        assert!(!at(&old, 14) && at(&old, 15));
    }
}
