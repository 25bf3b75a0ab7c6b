//! The pull schedule, in which sources have names.
//!
//! [`freshness::schedule`] computes the schedule; this module only adds the names.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use freshness::interval::{self, Bounds};
use freshness::schedule::{self, Pace, Rules, SourceId};
pub use freshness::schedule::{Expected, PullReport, SourceNote, View};
use freshness::syndication::Syndication;

use crate::config::{Freshness, PolicyName};
use crate::source::Source;

/// The schedule of all sources.
#[derive(Debug)]
pub struct Schedule {
    freshness: Freshness,
    inner: schedule::Schedule,
    ids: BTreeMap<String, SourceId>,
    sources: BTreeMap<SourceId, Source>,
}

/// A pull to perform now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Name of the source.
    pub source: String,
    /// Whether the pull is a long poll (of a followed source).
    pub wait: bool,
    /// Whether the pull takes a slot; false for a followed source.
    pub slot: bool,
}

/// A source whose rate is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Its name.
    pub name: String,
    /// Input of a policy that chooses the source's interval.
    pub source: interval::Source,
    /// The same input under the policy `best_estimation`, in which the interval is given.
    pub estimated: interval::Source,
    /// The present interval, seconds; infinite for a followed source.
    pub interval_secs: f64,
}

impl Planned {
    /// Returns the input of the given policy.
    pub fn under(&self, policy: PolicyName) -> interval::Source {
        if policy == PolicyName::BestEstimation { self.estimated } else { self.source }
    }
}

impl Schedule {
    /// Returns a schedule without sources.
    pub fn new(freshness: Freshness) -> Self {
        Self {
            freshness,
            inner: schedule::Schedule::new(freshness.settings()),
            ids: BTreeMap::new(),
            sources: BTreeMap::new(),
        }
    }

    /// Changes the settings of the policy and of the existing sources in `changed`; due times
    /// follow at once.
    pub fn handle_settings(
        &mut self,
        freshness: Freshness,
        changed: impl IntoIterator<Item = Source>,
        now_ms: u64,
    ) {
        self.freshness = freshness;
        for source in changed {
            if let Some(id) = self.ids.get(&source.name) {
                self.sources.insert(*id, source);
            }
        }
        let all = self.sources.iter().map(|(id, source)| (*id, rules(source, freshness)));
        self.inner.handle_all_rules(all, freshness.settings(), now_ms);
    }

    /// Handles the announced update times of a source; `None` if it announces none.
    pub fn handle_announced(&mut self, name: &str, announced: Option<Syndication>, now_ms: u64) {
        let Some(id) = self.ids.get(name) else { return };
        let Some(source) = self.sources.get_mut(id) else { return };
        if source.syndication != announced {
            source.syndication = announced;
            self.inner.handle_rules(*id, rules(source, self.freshness), now_ms);
        }
    }

    /// Adds sources with new names. A source without a note is due at once; a source with a note is
    /// due an interval after its last pull.
    pub fn handle_sources(
        &mut self,
        sources: impl IntoIterator<Item = (Source, SourceNote)>,
        now_ms: u64,
    ) {
        let sources = sources.into_iter().filter(|(it, _)| !self.ids.contains_key(&it.name));
        let new: Vec<(Source, SourceNote)> = sources.collect();
        let known = new.iter().map(|(source, known)| (rules(source, self.freshness), *known));
        let ids = self.inner.add(known, now_ms);
        for (id, (source, _)) in ids.into_iter().zip(new) {
            self.ids.insert(source.name.clone(), id);
            self.sources.insert(id, source);
        }
    }

    /// Forgets the history of a source: it is scheduled like a new one.
    pub fn forget(&mut self, name: &str, now_ms: u64) {
        let Some(id) = self.ids.remove(name) else { return };
        let Some(source) = self.sources.remove(&id) else { return };
        self.inner.remove(id, now_ms);
        self.handle_sources([(source, SourceNote::default())], now_ms);
    }

    /// Removes sources; reports of their running pulls are ignored.
    pub fn remove<'a>(&mut self, names: impl IntoIterator<Item = &'a String>, now_ms: u64) {
        for name in names {
            if let Some(id) = self.ids.remove(name) {
                self.sources.remove(&id);
                self.inner.remove(id, now_ms);
            }
        }
    }

    /// See [`schedule::Schedule::poll_due`].
    pub fn poll_due(&mut self, slot: bool, now_ms: u64) -> Option<Due> {
        let due = self.inner.poll_due(slot, now_ms)?;
        let source = self.sources.get(&due.source)?.name.clone();
        Some(Due { source, wait: due.wait, slot: due.slot })
    }

    /// See [`schedule::Schedule::poll_timeout`].
    pub fn poll_timeout(&self, slot: bool) -> Option<u64> {
        self.inner.poll_timeout(slot)
    }

    /// Makes a source due now: see [`schedule::Schedule::handle_request`].
    pub fn handle_request(&mut self, name: &str, now_ms: u64) -> bool {
        self.ids.get(name).is_some_and(|id| self.inner.handle_request(*id, now_ms))
    }

    /// Handles a notice that a source has changed: see [`schedule::Schedule::handle_notice`].
    pub fn handle_notice(&mut self, name: &str, now_ms: u64) -> bool {
        self.ids.get(name).is_some_and(|id| self.inner.handle_notice(*id, now_ms))
    }

    /// Handles the report of a successful pull that ended at `now_ms`.
    pub fn handle_pull(&mut self, name: &str, report: PullReport, now_ms: u64) {
        if let Some(id) = self.ids.get(name) {
            self.inner.handle_pull(*id, report, now_ms);
        }
    }

    /// Handles a failed pull; `retry_after` is the pause that the source asked for.
    pub fn handle_failure(&mut self, name: &str, retry_after: Option<Duration>, now_ms: u64) {
        if let Some(id) = self.ids.get(name) {
            self.inner.handle_failure(*id, retry_after, now_ms);
        }
    }

    /// Handles a pull that this broker gave up: the source is due again as before.
    pub fn handle_cancel(&mut self, name: &str, now_ms: u64) {
        if let Some(id) = self.ids.get(name) {
            self.inner.handle_cancel(*id, now_ms);
        }
    }

    /// Handles a jump of the wall clock by `by_ms` to `now_ms`.
    pub fn handle_jump(&mut self, by_ms: i64, now_ms: u64) {
        self.inner.handle_jump(by_ms, now_ms);
    }

    /// Returns the state of a source that is kept over a restart; `None` if there is no such
    /// source.
    pub fn remembered(&self, name: &str) -> Option<SourceNote> {
        self.inner.note(*self.ids.get(name)?)
    }

    /// Returns the view of a source for status; `None` if there is no such source.
    pub fn view(&self, name: &str) -> Option<View> {
        self.inner.view(*self.ids.get(name)?)
    }

    /// Reads the next `count` sources after `after`, in the order of their ids, and returns those
    /// with a known rate, as input of [`interval::plan`] for any policy. Also returns the last
    /// source read; `None` if there are no more sources.
    pub fn planned(
        &self,
        after: Option<SourceId>,
        count: usize,
    ) -> (Vec<Planned>, Option<SourceId>) {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut planned, mut last) = (Vec::new(), None);
        for (id, source) in self.sources.range((from, Bound::Unbounded)).take(count) {
            last = Some(*id);
            planned.extend(self.planned_one(*id, source));
        }
        (planned, last)
    }

    fn planned_one(&self, id: SourceId, source: &Source) -> Option<Planned> {
        let under = |policy| {
            let freshness = Freshness { policy, ..self.freshness };
            self.inner.source_at(id, rules(source, freshness).pace)
        };
        Some(Planned {
            name: source.name.clone(),
            source: under(PolicyName::Oap)?,
            estimated: under(PolicyName::BestEstimation)?,
            interval_secs: self.inner.view(id)?.interval_secs.unwrap_or(f64::INFINITY),
        })
    }

    /// Returns the expected outcome of the plan.
    pub fn expected(&self) -> Expected {
        self.inner.expected()
    }

    /// Returns the measured freshness over all sources (Adly §3.1); `None` before any is measured.
    pub fn freshness(&self) -> Option<f64> {
        self.inner.freshness()
    }
}

fn rules(source: &Source, freshness: Freshness) -> Rules {
    let own = freshness.bounds();
    let longest = source.interval_max.unwrap_or(own.interval_max);
    let bounds = Bounds {
        interval_min: source.interval_min.unwrap_or(own.interval_min),
        interval_max: longest.min(source.latency_secs.unwrap_or(f64::INFINITY)),
    };
    let (weight, follow, window) = (source.weight, source.follow, source.window);
    let pace = match source.syndication {
        Some(syndication) => Pace::Syndication(syndication),
        None if freshness.policy == PolicyName::BestEstimation => Pace::BestEstimation,
        None => Pace::Planned,
    };
    // OAI-PMH lists each record once, with the time of its last change.
    Rules { bounds, weight, follow, window, pace, datestamps: source.oai.is_some() }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn source(name: &str) -> Source {
        Source::gatherer(name, Url::parse("http://host/").unwrap())
    }

    fn check(source: &Source, interval_min: f64, interval_max: f64) {
        let found = rules(source, Freshness::default()).bounds;
        assert_eq!(found, Bounds { interval_min, interval_max });
    }

    #[test]
    fn a_source_s_own_bounds_come_first_and_its_latency_caps_them() {
        check(&source("a"), 10.0, 86_400.0);
        let own = Source { interval_min: Some(60.0), interval_max: Some(3_600.0), ..source("a") };
        check(&own, 60.0, 3_600.0);
        check(&Source { latency_secs: Some(900.0), ..own }, 60.0, 900.0);
        check(&Source { latency_secs: Some(900.0), ..source("a") }, 10.0, 900.0);
    }

    #[test]
    fn announced_update_times_come_before_the_policy() {
        let daily = Syndication::parse(Some("daily"), Some("2"), None).unwrap();
        let estimated = Freshness { policy: PolicyName::BestEstimation, ..Freshness::default() };
        let syndicated = Source { syndication: Some(daily), ..source("a") };
        for (source, freshness, expected) in [
            (&source("a"), Freshness::default(), Pace::Planned),
            (&source("a"), estimated, Pace::BestEstimation),
            (&syndicated, Freshness::default(), Pace::Syndication(daily)),
            (&syndicated, estimated, Pace::Syndication(daily)),
        ] {
            assert_eq!(rules(source, freshness).pace, expected);
        }
    }

    #[test]
    fn sources_go_by_their_names() {
        let mut schedule = Schedule::new(Freshness::default());
        let sources = ["a", "b"].map(|name| (source(name), SourceNote::default()));
        schedule.handle_sources(sources, 5);
        let mut due: Vec<String> =
            std::iter::from_fn(|| schedule.poll_due(true, 5)).map(|it| it.source).collect();
        due.sort();
        assert_eq!(due, ["a", "b"]);
        assert_eq!(schedule.poll_timeout(true), None, "both are being pulled");
        let report = PullReport {
            full: true,
            changes: 9,
            age_secs: 0.0,
            first_changes: None,
            elements: 9,
            as_of_ms: 5,
            early: false,
        };
        schedule.handle_pull("a", report, 6);
        assert_eq!(schedule.view("a").unwrap().due_ms, Some(10_005));
        assert!(schedule.handle_request("a", 7) && !schedule.handle_request("c", 7));
        assert_eq!(schedule.poll_due(true, 7).unwrap().source, "a");
        schedule.remove([&"b".to_owned()], 8);
        schedule.handle_pull("b", report, 9);
        assert_eq!((schedule.view("b"), schedule.remembered("b")), (None, None));
        schedule.forget("a", 9);
        assert_eq!(schedule.view("a").unwrap().interval_secs, None, "like a new one");
        // The new source gets the id of the removed one, but has another name.
        schedule.handle_sources([(source("c"), SourceNote::default())], 10);
        let mut due: Vec<String> =
            std::iter::from_fn(|| schedule.poll_due(true, 10)).map(|it| it.source).collect();
        due.sort();
        assert_eq!(due, ["a", "c"]);
    }

    #[test]
    fn new_settings_take_effect_at_once_and_plans_are_read_in_parts() {
        let mut schedule = Schedule::new(Freshness::default());
        let names: Vec<String> = (0..10).map(|n| format!("s{n}")).collect();
        let new = names.iter().map(|name| (source(name), SourceNote::default()));
        schedule.handle_sources(new, 0);
        for (at_ms, full) in [(0, true), (3_600_000, false)] {
            for name in &names {
                let (changes, elements, age_secs) = (60, 100, 1_800.0);
                let (first_changes, early, as_of_ms) = (None, false, at_ms);
                let report = PullReport {
                    full,
                    changes,
                    age_secs,
                    first_changes,
                    elements,
                    as_of_ms,
                    early,
                };
                schedule.handle_pull(name, report, at_ms);
            }
        }
        let (first, last) = schedule.planned(None, 7);
        let (rest, end) = schedule.planned(last, 7);
        assert_eq!((first.len(), rest.len()), (7, 3));
        assert_eq!(schedule.planned(end, 7), (Vec::new(), None));
        let before = schedule.view("s0").unwrap().interval_secs.unwrap();
        let longer = Source { interval_min: Some(2.0 * before), ..source("s1") };
        let freshness = Freshness { interval_max: before / 2.0, ..Freshness::default() };
        schedule.handle_settings(freshness, [longer], 3_600_000);
        let interval = |name: &str| schedule.view(name).unwrap().interval_secs.unwrap();
        let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-3;
        assert!(close(interval("s0"), before / 2.0), "{}", interval("s0"));
        assert!(close(interval("s1"), 2.0 * before), "{}", interval("s1"));
    }
}
