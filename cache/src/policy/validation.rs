//! Validation: what an origin's answer about a stored answer means, and what a client's conditions
//! mean for one.
//!
//! Source: RFC 9111 §3.2 (updates), §4.3.2 (conditions of clients), §4.3.3 and §4.3.4 (answers),
//! §4.3.5 (HEAD); RFC 9110 §8.8.3.2 (comparison of entity tags), §13.1 (conditions).
//!
//! # Differences from the RFC
//!
//! A 304 that does not fit what was asked for updates nothing: the object is requested anew without
//! conditions. Otherwise an answer that nobody asked for could keep a wrong body alive.
//!
//! Sans-I/O.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::control::members;
use super::freshness::{Rules, Terms, Times, date};
use super::hops;
use super::storing::Head;

/// Headers that describe the stored body, which a 304 does not replace.
const OF_BODY: [HeaderName; 6] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    HeaderName::from_static("content-md5"),
    header::ETAG,
];

/// What the answer to a validation means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validated {
    /// The stored answer is still good: [`update`] it.
    Good,
    /// The answer is a new one.
    Replaced,
    /// The origin fails, and the stored answer may be used instead.
    Failed,
    /// The answer is about something else: request the object without conditions.
    Other,
}

/// Returns what the answer to the validation of a stored answer means.
pub fn validated(stored: &Head, status: StatusCode, headers: &HeaderMap, now_ms: u64) -> Validated {
    if status.is_server_error() {
        let may = stored.terms.may_be_used_instead(now_ms);
        return if may && status != StatusCode::NOT_IMPLEMENTED {
            Validated::Failed
        } else {
            Validated::Replaced
        };
    }
    if status != StatusCode::NOT_MODIFIED {
        return Validated::Replaced;
    }
    let has = |it: &HeaderName| stored.headers.get(it);
    let is_same = match (headers.get(header::ETAG), headers.get(header::LAST_MODIFIED)) {
        (Some(tag), _) => {
            has(&header::ETAG).is_some_and(|it| is_same(it.as_bytes(), tag.as_bytes(), false))
        }
        (None, Some(changed)) => has(&header::LAST_MODIFIED).is_none_or(|it| it == changed),
        // It says nothing: one object was asked about.
        (None, None) => true,
    };
    if is_same { Validated::Good } else { Validated::Other }
}

/// Updates a stored answer by the headers of a 304, or of the answer to HEAD.
pub fn update(stored: &mut Head, headers: &HeaderMap, times: Times, rules: &Rules) {
    let mut newer = headers.clone();
    hops::remove(&mut newer);
    OF_BODY.iter().chain(&[header::SET_COOKIE, header::VARY]).for_each(|it| drop(newer.remove(it)));
    let age = newer.remove(header::AGE);
    let names: Vec<HeaderName> = newer.keys().cloned().collect();
    for name in names {
        stored.headers.remove(&name);
        for value in newer.get_all(&name) {
            stored.headers.append(&name, value.clone());
        }
    }
    if !headers.contains_key(header::DATE) {
        stored.headers.remove(header::DATE);
    }
    stored.times = times;
    // The age is that of the newer answer.
    let mut described = stored.headers.clone();
    age.into_iter().for_each(|it| drop(described.insert(header::AGE, it)));
    stored.terms = Terms::of(stored.status, &described, times, rules);
    let control = &stored.terms.control;
    for name in control.no_cache.headers().iter().chain(control.private.headers()) {
        stored.headers.remove(name);
    }
}

/// Returns whether the answer to HEAD is about the stored object, whose body has `length` bytes; otherwise
/// the object has changed.
pub fn is_of_same(stored: &Head, length: u64, headers: &HeaderMap) -> bool {
    let named = headers.get(header::CONTENT_LENGTH).map(|it| it.to_str().ok()?.parse().ok());
    if named.is_some_and(|it| it != Some(length)) {
        return false;
    }
    [header::ETAG, header::LAST_MODIFIED, HeaderName::from_static("content-md5")]
        .iter()
        .all(|name| headers.get(name).is_none_or(|it| stored.headers.get(name) == Some(it)))
}

/// Returns whether a client that asks for an object on conditions has it already (304).
pub fn has_already(request: &HeaderMap, stored: &Head) -> bool {
    if ![StatusCode::OK, StatusCode::PARTIAL_CONTENT].contains(&stored.status) {
        return false;
    }
    let tags = request.get_all(header::IF_NONE_MATCH);
    if request.contains_key(header::IF_NONE_MATCH) {
        let tag = stored.headers.get(header::ETAG);
        let listed =
            tags.iter().filter_map(|it| std::str::from_utf8(it.as_bytes()).ok()).flat_map(members);
        return listed.into_iter().any(|it| {
            it == "*" || tag.is_some_and(|tag| is_same(tag.as_bytes(), it.as_bytes(), false))
        });
    }
    let Some(since) = date(request, &header::IF_MODIFIED_SINCE) else { return false };
    let changed = date(&stored.headers, &header::LAST_MODIFIED)
        .or_else(|| date(&stored.headers, &header::DATE))
        .unwrap_or(stored.times.came_ms / 1_000);
    changed <= since
}

/// Returns whether a part of a stored answer continues what the client has, by its `If-Range`
/// (RFC 9110 §13.1.5).
pub fn continues(request: &HeaderMap, stored: &Head) -> bool {
    let Some(condition) = request.get(header::IF_RANGE).map(HeaderValue::as_bytes) else {
        return true;
    };
    let name = if condition.ends_with(b"\"") { header::ETAG } else { header::LAST_MODIFIED };
    let is_exact = |it: &HeaderValue| match name {
        header::ETAG => is_same(it.as_bytes(), condition, true),
        // A date is exact if a second change in its second would be seen (RFC 9110 §8.8.2.2).
        _ => it.as_bytes() == condition && is_dated_later(stored),
    };
    stored.headers.get(&name).is_some_and(is_exact)
}

/// Returns whether an answer was made at least a second after the object's last change.
fn is_dated_later(stored: &Head) -> bool {
    let changed = date(&stored.headers, &header::LAST_MODIFIED);
    let made = date(&stored.headers, &header::DATE);
    changed.zip(made).is_some_and(|(changed, made)| changed < made)
}

/// Returns whether two entity tags are the same; by the strong comparison if `is_strong`.
fn is_same(one: &[u8], other: &[u8], is_strong: bool) -> bool {
    let opaque = |it: &[u8]| it.strip_prefix(b"W/").map(<[u8]>::to_vec);
    match (opaque(one), opaque(other)) {
        (None, None) => one == other,
        _ if is_strong => false,
        (one_weak, other_weak) => {
            one_weak.as_deref().unwrap_or(one) == other_weak.as_deref().unwrap_or(other)
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::policy::storing::{Ask, keep};

    const CAME_MS: u64 = 784_111_777_000;
    const THEN: &str = "Sun, 06 Nov 1994 07:49:37 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        lines.iter().map(line).collect()
    }

    fn head(answer: &[(&str, &str)]) -> Head {
        let none = HeaderMap::new();
        let ask = Ask { method: &Method::GET, headers: &none };
        let times = Times { sent_ms: CAME_MS, came_ms: CAME_MS };
        keep(ask, StatusCode::OK, &headers(answer), times, &Rules::default()).unwrap()
    }

    #[test]
    fn a_304_must_be_about_what_was_asked() {
        let stored = head(&[("etag", "\"a\""), ("last-modified", THEN)]);
        let check = |status: u16, answer: &[(&str, &str)], expected| {
            let seen = validated(&stored, status.try_into().unwrap(), &headers(answer), CAME_MS);
            assert_eq!(seen, expected, "{status} {answer:?}");
        };
        check(304, &[], Validated::Good);
        check(304, &[("etag", "\"a\"")], Validated::Good);
        check(304, &[("etag", "W/\"a\"")], Validated::Good);
        check(304, &[("etag", "\"b\"")], Validated::Other);
        check(304, &[("last-modified", THEN)], Validated::Good);
        check(304, &[("last-modified", LATER)], Validated::Other);
        check(200, &[("etag", "\"a\"")], Validated::Replaced);
        check(404, &[], Validated::Replaced);
        check(503, &[], Validated::Failed);
        let strict = head(&[("etag", "\"a\""), ("cache-control", "must-revalidate")]);
        let status = StatusCode::BAD_GATEWAY;
        assert_eq!(validated(&strict, status, &HeaderMap::new(), CAME_MS), Validated::Replaced);
    }

    #[test]
    fn an_update_replaces_what_does_not_describe_the_body() {
        let mut stored = head(&[
            ("etag", "\"a\""),
            ("cache-control", "max-age=1"),
            ("content-length", "5"),
            ("content-encoding", "gzip"),
            ("x", "1"),
            ("y", "1"),
            ("date", THEN),
        ]);
        let newer = headers(&[
            ("etag", "W/\"a\""),
            ("cache-control", "max-age=9, private=\"z\""),
            ("content-length", "0"),
            ("x", "2"),
            ("x", "3"),
            ("z", "1"),
            ("age", "4"),
            ("connection", "w"),
            ("w", "1"),
        ]);
        let now_ms = CAME_MS + 60_000;
        update(&mut stored, &newer, Times { sent_ms: now_ms, came_ms: now_ms }, &Rules::default());
        let mut lines: Vec<String> = (stored.headers.iter())
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "cache-control: max-age=9, private=\"z\"",
                "content-encoding: gzip",
                "content-length: 5",
                "etag: \"a\"",
                "x: 2",
                "x: 3",
                "y: 1",
            ]
        );
        assert_eq!((stored.terms.age(now_ms), stored.terms.lifetime), (4, 9));
    }

    #[test]
    fn a_client_that_has_it_is_told_so() {
        let stored = head(&[("etag", "\"a,b\""), ("last-modified", THEN)]);
        let check = |request: &[(&str, &str)], expected| {
            assert_eq!(has_already(&headers(request), &stored), expected, "{request:?}");
        };
        check(&[], false);
        check(&[("if-none-match", "\"x\", W/\"a,b\"")], true);
        check(&[("if-none-match", "\"x\""), ("if-none-match", "\"a,b\"")], true);
        check(&[("if-none-match", "*")], true);
        check(&[("if-none-match", "a,b")], false);
        check(&[("if-none-match", "\"x\""), ("if-modified-since", LATER)], false);
        check(&[("if-modified-since", THEN)], true);
        check(&[("if-modified-since", LATER)], true);
        check(&[("if-modified-since", "Sun, 06 Nov 1994 07:49:36 GMT")], false);
        check(&[("if-modified-since", "yesterday")], false);
    }

    #[test]
    fn a_part_continues_the_same_object_alone() {
        let stored = head(&[("etag", "\"a\""), ("last-modified", THEN), ("date", LATER)]);
        let check = |condition: &str, expected| {
            assert_eq!(
                continues(&headers(&[("if-range", condition)]), &stored),
                expected,
                "{condition}"
            );
        };
        assert!(continues(&HeaderMap::new(), &stored));
        check("\"a\"", true);
        check("W/\"a\"", false);
        check("\"b\"", false);
        check(THEN, true);
        check(LATER, false);
        let young = head(&[("last-modified", THEN), ("date", THEN)]);
        assert!(!continues(&headers(&[("if-range", THEN)]), &young));
    }

    #[test]
    fn an_answer_to_head_shows_whether_the_object_has_changed() {
        let stored = head(&[("etag", "\"a\""), ("content-length", "5")]);
        assert!(is_of_same(&stored, 5, &headers(&[("etag", "\"a\""), ("x", "1")])));
        assert!(!is_of_same(&stored, 5, &headers(&[("content-length", "6")])));
        assert!(!is_of_same(&stored, 5, &headers(&[("last-modified", THEN)])));
    }
}
