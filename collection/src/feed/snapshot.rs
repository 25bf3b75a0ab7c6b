//! Snapshots: the whole log at one version, pinned while consumers fetch it.
//!
//! A snapshot is a list of file ranges. Their bytes never change: segments only grow, even the
//! active one, and compaction writes new files. So a snapshot has a strong ETag (its id in quotes),
//! and can be fetched in ranges and by any number of readers. New consumers within the same hour
//! share one snapshot; it can be fetched for a day. The list of snapshots is lost when the process
//! ends: an unknown id is answered with 410, and the consumer requests a new snapshot.
//!
//! While the log has holes, a snapshot contains the rest, and names the missing serials. Its
//! consumer releases nothing, and sends another request later.
//!
//! Source: docs/collection.md, "On the wire"; RFC 9110 §13 and §14 for conditions and ranges (one
//! range at a time; a list of them is answered in full, as §14.2 allows).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use net::body::{self, Body};

use crate::change::{Epoch, Version};
use crate::log::holes::Holes;
use crate::log::served;
use crate::log::{Address, SegmentRange, View};
use crate::member;
use crate::wire::{VIEW, set_missing, set_stream_headers, value};

use super::selection::Made;

/// A snapshot. Its files stay readable as long as it exists.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Its name, which no other snapshot has, of this or any other collection.
    pub(crate) id: String,
    pub(crate) to: Version,
    parts: Vec<SegmentRange>,
    /// The end mark.
    tail: Bytes,
    pub(crate) bytes: u64,
    objects: u64,
    /// The missing serials.
    missing: Holes,
    /// The members that were left out.
    damaged: HashSet<Address>,
    made: Instant,
    /// Keeps the files from being removed.
    view: View,
    /// The selection that it is of; `None`: it has all.
    selection: Option<String>,
}

impl Snapshot {
    pub(crate) fn new(view: View, objects: u64, made: Instant) -> Self {
        // The order matters: if damage is found between the two calls, its serials are reported as
        // missing although the snapshot has them, which is harmless.
        let damaged = view.damaged_members();
        let missing = view.possible_holes();
        let parts = view.parts_without(0, &damaged);
        Self { missing, damaged, ..Self::of(view, parts, objects, made) }
    }

    /// Returns the snapshot of a selection.
    pub(super) fn selected(of: &Made, name: &str, made: Instant) -> Self {
        let snapshot = Self::of(of.view.clone(), of.parts.clone(), of.objects, made);
        Self { missing: of.missing.clone(), selection: Some(name.to_owned()), ..snapshot }
    }

    /// Returns a snapshot of these parts, of which nothing is missing.
    fn of(view: View, parts: Vec<SegmentRange>, objects: u64, made: Instant) -> Self {
        let to = view.version;
        let tail = Bytes::from(member::end_mark(to));
        let bytes = served::bytes_of(&parts) + tail.len() as u64;
        // Compaction changes the bytes of a version, so the version alone cannot be the name.
        let random = getrandom::u64().unwrap_or(bytes);
        let id = format!("{to}-{random:016x}");
        let (missing, damaged) = (Holes::default(), HashSet::new());
        Self { id, to, parts, tail, bytes, objects, missing, damaged, made, view, selection: None }
    }

    /// Returns the bytes `from..=to`. The caller makes sure that `to` lies within the snapshot.
    fn body(&self, from: u64, to: u64) -> Body {
        served::body(&self.parts, &self.tail, from, to + 1)
    }

    /// Returns whether this snapshot is as complete as a new one would be. A snapshot without known
    /// holes is not if a loss of changes that it may lack was found after it was made.
    pub(crate) fn is_as_whole_as(&self, view: &View) -> bool {
        let is_doubted = 0 < view.doubt && view.doubt < self.to.serial;
        self.missing.is_empty() && !is_doubted || self.missing == view.possible_holes()
    }

    /// Returns whether no member of the snapshot is known to be damaged.
    pub(crate) fn is_sound(&self) -> bool {
        if self.selection.is_some() {
            return !self.parts.iter().any(|it| it.segment.is_damaged());
        }
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

    /// Returns the snapshot for new consumers; `None` if there is none that is recent enough.
    pub(crate) fn current(&mut self, epoch: Epoch, now: Instant) -> Option<Arc<Snapshot>> {
        self.expire(epoch, now);
        let newest = self.kept.last().filter(|it| it.is_sound())?;
        (now.saturating_duration_since(newest.made) < self.shared).then(|| Arc::clone(newest))
    }

    pub(crate) fn get(&mut self, id: &str, epoch: Epoch, now: Instant) -> Option<Arc<Snapshot>> {
        self.expire(epoch, now);
        self.kept.iter().find(|it| it.id == id).map(Arc::clone)
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }

    /// Returns the size of all, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.kept.iter().map(|it| it.bytes).sum()
    }

    /// Adds a new snapshot; drops one with the same id, and the oldest if there are too many.
    pub(crate) fn add(&mut self, snapshot: Snapshot) -> Arc<Snapshot> {
        let snapshot = Arc::new(snapshot);
        self.kept.retain(|it| it.id != snapshot.id);
        self.kept.push(Arc::clone(&snapshot));
        if self.kept_max < self.kept.len() {
            self.kept.remove(0);
        }
        snapshot
    }

    /// Drops old snapshots, and those of an earlier epoch, whose consumers would have to begin
    /// again at once.
    pub(crate) fn expire(&mut self, epoch: Epoch, now: Instant) {
        let kept_for = self.kept_for;
        self.kept
            .retain(|it| it.to.epoch == epoch && now.saturating_duration_since(it.made) < kept_for);
    }
}

/// Answers a request for a snapshot, or for a range of it.
pub(crate) fn answer(snapshot: &Snapshot, method: &Method, request: &HeaderMap) -> Response<Body> {
    let tag = format!("\"{}\"", snapshot.id);
    let selected = match select(request, &tag, snapshot.bytes) {
        // Ranges are defined for GET alone (RFC 9110 §14.2).
        Selection::Range(..) | Selection::Unsatisfiable if method != Method::GET => Selection::All,
        selected => selected,
    };
    let mut response = Response::new(match selected {
        Selection::All => snapshot.body(0, snapshot.bytes - 1),
        Selection::Range(from, to) => snapshot.body(from, to),
        Selection::Unchanged | Selection::Unsatisfiable => body::empty(),
    });
    set_stream_headers(response.headers_mut(), "snapshot", 0, &snapshot.view, snapshot.objects);
    set_missing(response.headers_mut(), &snapshot.missing);
    if let Some(name) = &snapshot.selection {
        response.headers_mut().insert(VIEW, value(name));
    }
    let cache = "public, max-age=86400, immutable, no-transform";
    let headers = response.headers_mut();
    headers.insert(header::ETAG, value(tag));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    let (status, length) = match selected {
        Selection::All => (StatusCode::OK, snapshot.bytes),
        Selection::Range(from, to) => {
            let range = format!("bytes {from}-{to}/{}", snapshot.bytes);
            headers.insert(header::CONTENT_RANGE, value(range));
            (StatusCode::PARTIAL_CONTENT, to + 1 - from)
        }
        Selection::Unchanged => {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        Selection::Unsatisfiable => {
            headers.insert(header::CONTENT_RANGE, value(format!("bytes */{}", snapshot.bytes)));
            (StatusCode::RANGE_NOT_SATISFIABLE, 0)
        }
    };
    headers.insert(header::CONTENT_LENGTH, value(length));
    *response.status_mut() = status;
    response
}

/// The part of a snapshot that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selection {
    All,
    /// First and last byte.
    Range(u64, u64),
    /// The consumer already has the snapshot.
    Unchanged,
    /// A range that lies past the end.
    Unsatisfiable,
}

fn select(headers: &HeaderMap, tag: &str, bytes: u64) -> Selection {
    let text = |name| headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
    let names_it = |list: &str| {
        list.split(',').map(str::trim).any(|it| it == "*" || it.trim_start_matches("W/") == tag)
    };
    if text(header::IF_NONE_MATCH).is_some_and(names_it) {
        return Selection::Unchanged;
    }
    // If `If-Range` names another snapshot, the range does not apply to this one.
    let same = !headers.contains_key(header::IF_RANGE) || text(header::IF_RANGE) == Some(tag);
    let range = text(header::RANGE).and_then(|it| it.trim().strip_prefix("bytes="));
    match range.filter(|_| same) {
        Some(range) => parse_range(range.trim(), bytes).unwrap_or(Selection::All),
        None => Selection::All,
    }
}

/// Reads one range; `None` if it is malformed or a list of ranges: the header is then ignored.
fn parse_range(range: &str, bytes: u64) -> Option<Selection> {
    let (from, to) = range.split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    if from.is_empty() {
        let count = number(to)?.min(bytes);
        return Some(if count == 0 {
            Selection::Unsatisfiable
        } else {
            Selection::Range(bytes - count, bytes - 1)
        });
    }
    let from = number(from)?;
    let to = if to.is_empty() { u64::MAX } else { number(to)? };
    if to < from {
        return None;
    }
    Some(if from < bytes {
        Selection::Range(from, to.min(bytes - 1))
    } else {
        Selection::Unsatisfiable
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pairs: &[(header::HeaderName, &'static str)], expected: Selection) {
        let pairs = pairs.iter().map(|(name, it)| (name.clone(), HeaderValue::from_static(it)));
        let headers: HeaderMap = pairs.collect();
        assert_eq!(select(&headers, "\"id\"", 100), expected, "{headers:?}");
    }

    #[test]
    fn a_request_selects_all_or_a_range_or_nothing() {
        check(&[], Selection::All);
        for (range, expected) in [
            ("bytes=0-0", Selection::Range(0, 0)),
            ("bytes=10-", Selection::Range(10, 99)),
            ("bytes=10-19", Selection::Range(10, 19)),
            ("bytes=99-1000", Selection::Range(99, 99)),
            ("bytes=-5", Selection::Range(95, 99)),
            ("bytes=-500", Selection::Range(0, 99)),
            ("bytes=-0", Selection::Unsatisfiable),
            ("bytes=100-", Selection::Unsatisfiable),
            ("bytes=99999999999999999999999-", Selection::Unsatisfiable),
            ("bytes=9-8", Selection::All),
            ("bytes=0-1,5-6", Selection::All),
            ("bytes=+1-", Selection::All),
            ("bytes=-", Selection::All),
            ("lines=1-2", Selection::All),
        ] {
            check(&[(header::RANGE, range)], expected);
        }
    }

    #[test]
    fn conditions_hold_for_the_same_snapshot_only() {
        let range = (header::RANGE, "bytes=10-");
        check(&[range.clone(), (header::IF_RANGE, "\"id\"")], Selection::Range(10, 99));
        check(&[range.clone(), (header::IF_RANGE, "\"other\"")], Selection::All);
        check(&[range.clone(), (header::IF_RANGE, "W/\"id\"")], Selection::All);
        check(&[range, (header::IF_NONE_MATCH, "\"a\", \"id\"")], Selection::Unchanged);
        check(&[(header::IF_NONE_MATCH, "\"a\"")], Selection::All);
    }
}
