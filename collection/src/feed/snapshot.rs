//! Snapshots: the whole log as it was at one version, held still while consumers fetch it.
//!
//! A snapshot is a list of file ranges, pinned, so that neither commits nor a compaction change
//! it. Its bytes never change, so it has a strong ETag (its id in quotes), ranges and any number of
//! readers. Newcomers within the hour share one; it can be fetched for a day. The list does not
//! outlive the process: an id that is not known any more is answered with 410, and the consumer
//! asks for a new one.
//!
//! While the log has holes, a snapshot is made of the rest, and says what is missing: whoever takes it
//! releases nothing, and asks again.
//!
//! Source: DESIGN.md, "Snapshot"; RFC 9110 §13 and §14 for conditions and ranges (one range at a
//! time; a list of them is answered in full, as §14.2 allows).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use net::body::{self, Body};

use crate::change::{Epoch, Version};
use crate::log::holes::Holes;
use crate::log::scan::Pinned;
use crate::log::served;
use crate::log::{Address, Part, View};
use crate::member;
use crate::wire::{describe, lack, value};

/// A snapshot. While it lives, so do the files that it names.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    pub(crate) to: Version,
    parts: Vec<Part>,
    /// The end mark.
    tail: Bytes,
    bytes: u64,
    /// Live objects.
    objects: u64,
    /// What the log could not give.
    missing: Holes,
    /// The members that were left out for that.
    damaged: HashSet<Address>,
    made: Instant,
    /// Keeps the files.
    view: View,
}

impl Snapshot {
    pub(crate) fn new(pinned: Pinned, objects: u64, made: Instant) -> Self {
        // In this order: what is found damaged meanwhile is then said to be missing, and is there.
        let damaged = pinned.view.damaged_members();
        let missing = pinned.view.lacks();
        let (parts, _) = pinned.view.parts_but(0, &damaged);
        let tail = Bytes::from(member::end_mark(pinned.to));
        let bytes = served::bytes_of(&parts) + tail.len() as u64;
        let (id, to, view) = (pinned.id, pinned.to, pinned.view);
        Self { id, to, parts, tail, bytes, objects, missing, damaged, made, view }
    }

    /// Returns the bytes `from..=to`; `to` lies within the snapshot.
    fn body(&self, from: u64, to: u64) -> Body {
        served::body(&self.parts, &self.tail, from, to + 1)
    }

    /// Whether a new one would lack just as much. One that was thought to be whole is not if what it lacks came to
    /// light since.
    pub(crate) fn is_as_whole_as(&self, view: &View) -> bool {
        let is_doubted = 0 < view.doubt && view.doubt < self.to.serial;
        self.missing.is_empty() && !is_doubted || self.missing == view.lacks()
    }

    /// Whether none of it is known to be damaged.
    pub(crate) fn is_sound(&self) -> bool {
        self.view.damaged_members().is_subset(&self.damaged)
    }
}

/// The snapshots that can be fetched.
#[derive(Debug)]
pub(crate) struct Snapshots {
    /// The newest last.
    kept: Vec<Arc<Snapshot>>,
    shared: Duration,
    kept_for: Duration,
    kept_max: usize,
}

impl Snapshots {
    pub(crate) fn new(shared: Duration, kept_for: Duration, kept_max: usize) -> Self {
        Self { kept: Vec::new(), shared, kept_for, kept_max: kept_max.max(1) }
    }

    /// Returns the snapshot to give to newcomers, if it is still young enough.
    pub(crate) fn current(&mut self, epoch: Epoch, now: Instant) -> Option<Arc<Snapshot>> {
        self.expire(epoch, now);
        let newest = self.kept.last().filter(|it| it.is_sound())?;
        (now.saturating_duration_since(newest.made) < self.shared).then(|| Arc::clone(newest))
    }

    /// Returns the snapshot `id`, if it is still there.
    pub(crate) fn get(&mut self, id: &str, epoch: Epoch, now: Instant) -> Option<Arc<Snapshot>> {
        self.expire(epoch, now);
        self.kept.iter().find(|it| it.id == id).map(Arc::clone)
    }

    /// Lets go of all: they have what is to be purged.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }

    /// Adds a new snapshot; the oldest goes if there are too many. Of one state there is one.
    pub(crate) fn add(&mut self, snapshot: Snapshot) -> Arc<Snapshot> {
        let snapshot = Arc::new(snapshot);
        self.kept.retain(|it| it.id != snapshot.id);
        self.kept.push(Arc::clone(&snapshot));
        if self.kept_max < self.kept.len() {
            self.kept.remove(0);
        }
        snapshot
    }

    /// Forgets what is too old, and what belongs to an epoch that is over: whoever took it would
    /// have to begin again at once.
    pub(crate) fn expire(&mut self, epoch: Epoch, now: Instant) {
        let kept_for = self.kept_for;
        self.kept
            .retain(|it| it.to.epoch == epoch && now.saturating_duration_since(it.made) < kept_for);
    }
}

/// Answers a request for a snapshot, or for a range of it.
pub(crate) fn answer(snapshot: &Snapshot, method: &Method, request: &HeaderMap) -> Response<Body> {
    let tag = format!("\"{}\"", snapshot.id);
    let asked = match ask(request, &tag, snapshot.bytes) {
        // Ranges are defined for GET alone (RFC 9110 §14.2).
        Asked::Range(..) | Asked::Nothing if method != Method::GET => Asked::All,
        asked => asked,
    };
    let mut response = Response::new(match asked {
        Asked::All => snapshot.body(0, snapshot.bytes - 1),
        Asked::Range(from, to) => snapshot.body(from, to),
        Asked::Unchanged | Asked::Nothing => body::empty(),
    });
    describe(response.headers_mut(), "snapshot", 0, &snapshot.view, snapshot.objects);
    lack(response.headers_mut(), &snapshot.missing);
    let cache = "public, max-age=86400, immutable, no-transform";
    let headers = response.headers_mut();
    headers.insert(header::ETAG, value(tag));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    let (status, length) = match asked {
        Asked::All => (StatusCode::OK, snapshot.bytes),
        Asked::Range(from, to) => {
            let range = format!("bytes {from}-{to}/{}", snapshot.bytes);
            headers.insert(header::CONTENT_RANGE, value(range));
            (StatusCode::PARTIAL_CONTENT, to + 1 - from)
        }
        Asked::Unchanged => {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        Asked::Nothing => {
            headers.insert(header::CONTENT_RANGE, value(format!("bytes */{}", snapshot.bytes)));
            (StatusCode::RANGE_NOT_SATISFIABLE, 0)
        }
    };
    headers.insert(header::CONTENT_LENGTH, value(length));
    *response.status_mut() = status;
    response
}

/// Which part of a snapshot a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    All,
    /// First and last byte.
    Range(u64, u64),
    /// The asker has it already.
    Unchanged,
    /// A range that lies past the end.
    Nothing,
}

fn ask(headers: &HeaderMap, tag: &str, bytes: u64) -> Asked {
    let text = |name| headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
    let names_it = |list: &str| {
        list.split(',').map(str::trim).any(|it| it == "*" || it.trim_start_matches("W/") == tag)
    };
    if text(header::IF_NONE_MATCH).is_some_and(names_it) {
        return Asked::Unchanged;
    }
    // A range of something else is of no use to whoever says so.
    let same = !headers.contains_key(header::IF_RANGE) || text(header::IF_RANGE) == Some(tag);
    let range = text(header::RANGE).and_then(|it| it.trim().strip_prefix("bytes="));
    match range.filter(|_| same) {
        Some(range) => parse_range(range.trim(), bytes).unwrap_or(Asked::All),
        None => Asked::All,
    }
}

/// Reads one range; `None` for what is no range or several, which is then ignored.
fn parse_range(range: &str, bytes: u64) -> Option<Asked> {
    let (from, to) = range.split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    if from.is_empty() {
        let count = number(to)?.min(bytes);
        return Some(if count == 0 {
            Asked::Nothing
        } else {
            Asked::Range(bytes - count, bytes - 1)
        });
    }
    let from = number(from)?;
    let to = if to.is_empty() { u64::MAX } else { number(to)? };
    if to < from {
        return None;
    }
    Some(if from < bytes { Asked::Range(from, to.min(bytes - 1)) } else { Asked::Nothing })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(header::HeaderName, &'static str)], expected: Asked) {
        let pairs = pairs.iter().map(|(name, it)| (name.clone(), HeaderValue::from_static(it)));
        let headers: HeaderMap = pairs.collect();
        assert_eq!(ask(&headers, "\"id\"", 100), expected, "{headers:?}");
    }

    #[test]
    fn a_request_is_for_all_or_a_range_or_nothing() {
        check(&[], Asked::All);
        for (range, expected) in [
            ("bytes=0-0", Asked::Range(0, 0)),
            ("bytes=10-", Asked::Range(10, 99)),
            ("bytes=10-19", Asked::Range(10, 19)),
            ("bytes=99-1000", Asked::Range(99, 99)),
            ("bytes=-5", Asked::Range(95, 99)),
            ("bytes=-500", Asked::Range(0, 99)),
            ("bytes=-0", Asked::Nothing),
            ("bytes=100-", Asked::Nothing),
            ("bytes=99999999999999999999999-", Asked::Nothing),
            ("bytes=9-8", Asked::All),
            ("bytes=0-1,5-6", Asked::All),
            ("bytes=+1-", Asked::All),
            ("bytes=-", Asked::All),
            ("lines=1-2", Asked::All),
        ] {
            check(&[(header::RANGE, range)], expected);
        }
    }

    #[test]
    fn conditions_hold_for_the_same_snapshot_only() {
        let range = (header::RANGE, "bytes=10-");
        check(&[range.clone(), (header::IF_RANGE, "\"id\"")], Asked::Range(10, 99));
        check(&[range.clone(), (header::IF_RANGE, "\"other\"")], Asked::All);
        check(&[range.clone(), (header::IF_RANGE, "W/\"id\"")], Asked::All);
        check(&[range, (header::IF_NONE_MATCH, "\"a\", \"id\"")], Asked::Unchanged);
        check(&[(header::IF_NONE_MATCH, "\"a\"")], Asked::All);
    }
}
