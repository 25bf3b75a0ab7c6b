//! The history of what was answered: a mark a minute for an hour, and one an hour for two days.
//!
//! Sans-I/O.

use std::collections::VecDeque;
use std::ops::Sub;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Time between two marks.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

const HOUR: Duration = Duration::from_secs(3_600);

/// Marks that are kept a minute apart, and an hour apart: for so many spans, and the end of the first.
const MINUTES_MAX: usize = 61;
const HOURS_MAX: usize = 49;

/// What was answered: of objects alone, without tunnels and the cache's own pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of requests.
    pub requests: u64,
    /// Those whose body did not come from the origin for them.
    pub hits: u64,
    /// Bytes of the bodies of all answers.
    pub bytes: u64,
    /// Bytes of those that are hits.
    pub hit_bytes: u64,
}

/// What was answered in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// How long ago it ended, in seconds.
    pub ago: u64,
    /// Its length, in seconds.
    pub seconds: u64,
    /// What was answered.
    #[serde(flatten)]
    pub totals: Totals,
}

/// Totals at marks, each with the time since the start.
#[derive(Debug)]
pub(crate) struct History {
    minutes: VecDeque<Mark>,
    hours: VecDeque<Mark>,
}

type Mark = (Duration, Totals);

impl Sub for Totals {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            // A mark may be younger than what was read just before it.
            requests: self.requests.saturating_sub(other.requests),
            hits: self.hits.saturating_sub(other.hits),
            bytes: self.bytes.saturating_sub(other.bytes),
            hit_bytes: self.hit_bytes.saturating_sub(other.hit_bytes),
        }
    }
}

impl Default for History {
    fn default() -> Self {
        let start = VecDeque::from([Mark::default()]);
        Self { minutes: start.clone(), hours: start }
    }
}

impl History {
    /// Marks what was answered up to now. Returns whether an hour has begun.
    pub(crate) fn mark(&mut self, now: Mark) -> bool {
        push(&mut self.minutes, now, MINUTES_MAX);
        let hour = |it: Duration| it.as_secs() / HOUR.as_secs();
        let is_new = self.hours.back().is_none_or(|last| hour(last.0) < hour(now.0));
        if is_new {
            push(&mut self.hours, now, HOURS_MAX);
        }
        is_new
    }

    /// Returns what was answered in the last `span`, or since the start if that was later.
    pub(crate) fn last(&self, span: Duration, now: Mark) -> Span {
        let marks = if span <= HOUR { &self.minutes } else { &self.hours };
        let begin = now.0.saturating_sub(span);
        let from = marks.iter().rev().find(|it| it.0 <= begin).or_else(|| marks.front());
        between(from.copied().unwrap_or_default(), now, now.0)
    }

    /// Returns what was answered from minute to minute, the latest last.
    pub(crate) fn minutes(&self, now: Mark) -> Vec<Span> {
        spans(&self.minutes, now)
    }

    /// Returns what was answered from hour to hour, the latest last.
    pub(crate) fn hours(&self, now: Mark) -> Vec<Span> {
        spans(&self.hours, now)
    }
}

fn push(marks: &mut VecDeque<Mark>, mark: Mark, max: usize) {
    while max <= marks.len() {
        marks.pop_front();
    }
    marks.push_back(mark);
}

fn spans(marks: &VecDeque<Mark>, now: Mark) -> Vec<Span> {
    let ends = marks.iter().skip(1).chain([&now]);
    marks.iter().zip(ends).map(|(from, to)| between(*from, *to, now.0)).collect()
}

fn between(from: Mark, to: Mark, now: Duration) -> Span {
    let ago = now.saturating_sub(to.0).as_secs();
    Span { ago, seconds: to.0.saturating_sub(from.0).as_secs(), totals: to.1 - from.1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One request a second, every fourth a hit.
    fn at(seconds: u64) -> Mark {
        let requests = seconds;
        let (hits, bytes) = (requests / 4, requests * 10);
        (Duration::from_secs(seconds), Totals { requests, hits, bytes, hit_bytes: hits * 10 })
    }

    #[test]
    fn the_last_minutes_and_hours_are_known() {
        let mut history = History::default();
        let early = history.last(HOUR, at(8));
        assert_eq!((early.seconds, early.totals), (8, at(8).1), "since the start");
        let begun = (1..=100 * 60).filter(|it| history.mark(at(it * 60))).count();
        assert_eq!(begun, 100, "hours");
        let now = at(100 * 3_600 + 30);
        let span = history.last(Duration::from_secs(300), now);
        assert_eq!((span.seconds, span.totals.requests, span.ago), (330, 330, 0));
        let day = history.last(24 * HOUR, now);
        assert_eq!((day.seconds, day.totals.hits), (24 * 3_600 + 30, 6 * 3_600 + 7));
        let (minutes, hours) = (history.minutes(now), history.hours(now));
        assert_eq!((minutes.len(), hours.len()), (MINUTES_MAX, HOURS_MAX));
        assert_eq!(minutes.last().map(|it| (it.ago, it.seconds)), Some((0, 30)), "it still runs");
        assert_eq!(
            (minutes[59].ago, minutes[59].seconds, minutes[59].totals.requests),
            (30, 60, 60)
        );
        assert_eq!((hours[0].ago, hours[0].totals.bytes), (47 * 3_600 + 30, 36_000));
    }
}
