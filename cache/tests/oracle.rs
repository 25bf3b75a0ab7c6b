//! A second opinion: what another implementation of the same rules says of the same messages.
//!
//! It differs where the rules leave a choice, and in a few points where it is behind RFC 9111: it has
//! no scopes of `private` and `no-cache`, takes `proxy-revalidate` for no lifetime, reads no quoted
//! values, no weekday-first dates and no age from `Date`. The generated messages keep clear of these.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::{Duration, UNIX_EPOCH};

use cache::policy::choice::{Choice, choose};
use cache::policy::control::{RequestControl, Scope};
use cache::policy::freshness::{Guess, Rules, Times};
use cache::policy::storing::{Ask, Head, NotStored, keep};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_cache_semantics::{BeforeRequest, CachePolicy};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const CAME: u64 = 784_111_777;
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

type Lines = Vec<(&'static str, String)>;

/// Makes a message of some of the given lines, with some of the given directives.
fn message(
    lines: &'static [(&'static str, &'static str)],
    directives: &'static [&'static str],
) -> impl Strategy<Value = Lines> {
    let lines = subsequence(lines.to_vec(), 0..=lines.len());
    let directives = subsequence(directives.to_vec(), 0..=3);
    (lines, directives).prop_map(|(lines, directives)| {
        let mut all: Lines =
            lines.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        if !directives.is_empty() {
            all.push(("cache-control", directives.join(", ")));
        }
        all
    })
}

fn headers(lines: &Lines) -> HeaderMap {
    let line = |(name, value): &(&str, String)| {
        (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
    };
    lines.iter().map(line).collect()
}

fn answers() -> impl Strategy<Value = (u16, Lines)> {
    let lines = message(
        &[
            ("etag", "\"a\""),
            ("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT"),
            ("expires", "Sun, 06 Nov 1994 08:50:37 GMT"),
            ("age", "7"),
            ("vary", "x"),
            ("set-cookie", "a=b"),
        ],
        &[
            "max-age=30",
            "s-maxage=20",
            "no-store",
            "private",
            "public",
            "must-revalidate",
            "no-cache",
        ],
    );
    (select(vec![200, 203, 204, 300, 301, 308, 302, 307, 404, 410, 501, 503, 299, 206]), lines)
}

fn requests() -> impl Strategy<Value = Lines> {
    message(
        &[("x", "1"), ("authorization", "Basic eDp5")],
        &["no-cache", "no-store", "max-age=10", "min-fresh=5", "max-stale=9"],
    )
}

fn ours(first: &HeaderMap, status: u16, answer: &HeaderMap) -> Result<Head, NotStored> {
    let ask = Ask { method: &Method::GET, headers: first };
    let times = Times { sent_ms: CAME * 1_000, came_ms: CAME * 1_000 };
    // The other has no time of its own for negative answers.
    let rules = Rules {
        negative: 0,
        guess: Guess { max: u32::MAX, ..Guess::default() },
        ..Rules::default()
    };
    keep(ask, StatusCode::from_u16(status).unwrap(), answer, times, &rules)
}

fn theirs(first: &HeaderMap, status: u16, answer: &HeaderMap) -> CachePolicy {
    let mut request = http::Request::get("http://h/").body(()).unwrap();
    *request.headers_mut() = first.clone();
    let mut response = http::Response::builder().status(status).body(()).unwrap();
    *response.headers_mut() = answer.clone();
    let came = UNIX_EPOCH + Duration::from_secs(CAME);
    CachePolicy::new_options(
        &request,
        &response,
        came,
        http_cache_semantics::CacheOptions::default(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_096, ..ProptestConfig::default() })]

    #[test]
    fn the_same_is_stored_and_used(
        first in requests(),
        (status, mut answer) in answers(),
        second in requests(),
        later in select(vec![0_u64, 3, 10, 15, 25, 40, 70]),
    ) {
        answer.push(("date", DATE.to_owned()));
        let [first, answer, second] = [&first, &answer, &second].map(headers);
        let kept = ours(&first, status, &answer);
        let other = theirs(&first, status, &answer);
        match &kept {
            // Its list of statuses is closed; a status that nobody knows may be stored by its words.
            Ok(_) => prop_assert!(other.is_storable() || [299, 503].contains(&status), "stored alone"),
            Err(NotStored::Cookie | NotStored::Useless | NotStored::Status) => {}
            Err(why) => prop_assert!(!other.is_storable(), "{why}"),
        }
        let Ok(kept) = kept else { return Ok(()) };
        prop_assume!(other.is_storable());
        // The other lets clients take stale answers that `s-maxage` or `no-cache` forbid, and lets only
        // `public` share answers that set a cookie.
        let control = &kept.terms.control;
        let is_strict = control.must_revalidate || control.no_cache != Scope::Absent;
        let takes_stale = RequestControl::of(&second).max_stale.is_some();
        prop_assume!(!(is_strict && takes_stale));
        prop_assume!(control.public || !answer.contains_key("set-cookie"));
        let ask = Ask { method: &Method::GET, headers: &second };
        let seen = choose(ask, &[&kept], (CAME + later) * 1_000);
        let mut request = http::Request::get("http://h/").body(()).unwrap();
        *request.headers_mut() = second.clone();
        let now = UNIX_EPOCH + Duration::from_secs(CAME + later);
        let is_used = matches!(other.before_request(&request, now), BeforeRequest::Fresh(_));
        let is_used_here = matches!(seen, Choice::Use { .. });
        prop_assert_eq!(is_used_here, is_used, "{:?} after {} s", seen, later);
    }
}
