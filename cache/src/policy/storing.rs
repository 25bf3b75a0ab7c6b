//! Storing: whether an answer may be kept for others, and what of it.
//!
//! Source: RFC 9111 §3; §3.1 (headers), §3.5 (requests with `Authorization`), §5.2.2.3
//! (`must-understand`), §7.3 (cookies).
//!
//! # Differences from the RFC
//!
//! An answer that sets a cookie is for one client, whatever else it says: it is kept for others only
//! if its origin says `public` or `s-maxage`, and then without its cookies, which go to that client alone.
//! No other client takes it on its way: each asks for itself, and so has cookies of its own.
//!
//! Sans-I/O.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use super::control::{Control, RequestControl, Scope};
use super::freshness::{Rules, Terms, Times, is_guessed};
use super::hops;
use super::range::Extent;
use super::vary::Vary;

/// Why an answer is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStored {
    /// Its request was none for an object: not GET.
    Method,
    /// Its status is not one that can be used again.
    Status,
    /// The client forbids it.
    RequestNoStore,
    /// The origin forbids it.
    NoStore,
    /// It is for one user.
    Private,
    /// Its request had credentials, and the origin does not say that it is for others, too.
    Authorization,
    /// It sets a cookie.
    Cookie,
    /// It depends on more than headers of the request.
    VaryAll,
    /// It could be neither used nor validated.
    Useless,
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Method => "only answers to GET are kept",
            Self::Status => "answers with this status are not kept",
            Self::RequestNoStore => "the request says no-store",
            Self::NoStore => "the answer says no-store",
            Self::Private => "the answer says private",
            Self::Authorization => {
                "its request had credentials, and the answer says none of public, s-maxage and \
                 must-revalidate"
            }
            Self::Cookie => "it sets a cookie, and says neither public nor s-maxage",
            Self::VaryAll => "it says Vary: *",
            Self::Useless => "it has no lifetime and no validator",
        })
    }
}

/// A request, as far as storing and using answers depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Method.
    pub method: &'a Method,
    /// Headers, as the client sent them.
    pub headers: &'a HeaderMap,
}

/// What is kept of an answer beside its body.
#[derive(Clone, Debug)]
pub struct Head {
    /// Status.
    pub status: StatusCode,
    /// Headers that are sent with it again.
    pub headers: HeaderMap,
    /// When it was requested and came; that of its last validation.
    pub times: Times,
    /// The terms on which it is used.
    pub terms: Terms,
    /// The requests that it answers.
    pub vary: Vary,
}

impl Head {
    /// Returns what of its object it has; `None`: all.
    pub fn extent(&self) -> Option<Extent> {
        (self.status == StatusCode::PARTIAL_CONTENT).then(|| Extent::of(&self.headers)).flatten()
    }

    /// Returns its entity tag, if that is a strong one.
    pub fn strong_tag(&self) -> Option<&HeaderValue> {
        self.headers.get(header::ETAG).filter(|it| it.as_bytes().starts_with(b"\""))
    }
}

/// Returns what to keep of the answer to a request.
///
/// # Errors
///
/// It is not to be kept, and why.
pub fn keep(
    ask: Ask<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    times: Times,
    rules: &Rules,
) -> Result<Head, NotStored> {
    let terms = Terms::of(status, headers, times, rules);
    let control = &terms.control;
    if ask.method != Method::GET {
        return Err(NotStored::Method);
    }
    let is_final = status.as_u16() >= 200 && status != StatusCode::NOT_MODIFIED;
    let is_part = status == StatusCode::PARTIAL_CONTENT;
    if !is_final || was_provoked(status) || is_part && Extent::of(headers).is_none() {
        return Err(NotStored::Status);
    }
    if RequestControl::of(ask.headers).no_store {
        return Err(NotStored::RequestNoStore);
    }
    // Whoever knows the status keeps it by its rules (RFC 9111 §5.2.2.3).
    if control.no_store && !(control.must_understand && is_guessed(status)) {
        return Err(NotStored::NoStore);
    }
    if control.must_understand && !is_guessed(status) {
        return Err(NotStored::Status);
    }
    if control.private == Scope::All {
        return Err(NotStored::Private);
    }
    let is_for_all = control.public || control.s_maxage.is_some();
    if ask.headers.contains_key(header::AUTHORIZATION) && !is_for_all && !control.must_revalidate {
        return Err(NotStored::Authorization);
    }
    if sets_cookies(headers) && !is_for_all {
        return Err(NotStored::Cookie);
    }
    let vary = Vary::of(headers, ask.headers).ok_or(NotStored::VaryAll)?;
    let is_explicit = control.max_age.is_some()
        || control.s_maxage.is_some()
        || control.public
        || headers.contains_key(header::EXPIRES);
    if !is_explicit && !is_guessed(status) {
        return Err(NotStored::Status);
    }
    let can_be_validated =
        [header::ETAG, header::LAST_MODIFIED].iter().any(|it| headers.contains_key(it));
    let can_be_stale = control.stale_while_revalidate.is_some() || control.stale_if_error.is_some();
    // A part is used while it is fresh alone.
    if terms.lifetime == 0 && (is_part || !can_be_validated && !can_be_stale) {
        return Err(NotStored::Useless);
    }
    let headers = kept(headers, [&control.no_cache, &control.private]);
    Ok(Head { status, headers, times, terms, vary })
}

/// Returns whether an answer says that the request was wrong: somebody else's may be right.
pub fn was_provoked(status: StatusCode) -> bool {
    let code = status.as_u16();
    matches!(
        code,
        400 | 401 | 407 | 408 | 411..=413 | 416 | 417 | 421 | 425 | 426 | 428 | 429 | 431
    )
}

/// Returns the headers of an answer that only the client gets whose request brought it: cookies, and those
/// that a directive reserves.
pub fn own(headers: &HeaderMap, control: &Control) -> HeaderMap {
    let (mut own, cookies) = (HeaderMap::new(), COOKIES);
    let reserved = control.no_cache.headers().iter().chain(control.private.headers());
    let names = reserved.chain(&cookies).filter(|it| headers.contains_key(*it));
    let names: Vec<&HeaderName> = names.collect();
    if names.is_empty() {
        return own;
    }
    let mut passed_on = headers.clone();
    hops::remove(&mut passed_on);
    for name in names {
        for value in passed_on.get_all(name) {
            own.append(name, value.clone());
        }
        // It may be named twice.
        passed_on.remove(name);
    }
    own
}

/// Returns whether headers of an answer set cookies.
pub fn sets_cookies(headers: &HeaderMap) -> bool {
    COOKIES.iter().any(|it| headers.contains_key(it))
}

/// Returns the headers that are kept: not those of the connection, not cookies, and not those that a
/// directive reserves.
fn kept(headers: &HeaderMap, reserved: [&Scope; 2]) -> HeaderMap {
    let mut kept = headers.clone();
    hops::remove(&mut kept);
    for name in reserved.iter().flat_map(|it| it.headers()) {
        kept.remove(name);
    }
    for name in NOT_KEPT.iter().chain(&COOKIES) {
        kept.remove(name);
    }
    kept
}

/// Headers that set cookies.
const COOKIES: [HeaderName; 2] = [header::SET_COOKIE, HeaderName::from_static("set-cookie2")];

/// Headers of one answer alone; `Age` is that of the time when it came.
const NOT_KEPT: [HeaderName; 3] =
    [header::AGE, header::PROXY_AUTHENTICATE, HeaderName::from_static("proxy-authentication-info")];

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { sent_ms: 784_111_777_000, came_ms: 784_111_777_000 };

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        lines.iter().map(line).collect()
    }

    fn keep_of(
        request: &[(&str, &str)],
        status: u16,
        answer: &[(&str, &str)],
    ) -> Result<Head, NotStored> {
        let asked = headers(request);
        let ask = Ask { method: &Method::GET, headers: &asked };
        keep(ask, status.try_into().unwrap(), &headers(answer), TIMES, &Rules::default())
    }

    fn check(
        request: &[(&str, &str)],
        status: u16,
        answer: &[(&str, &str)],
        expected: Option<NotStored>,
    ) {
        let seen = keep_of(request, status, answer).err();
        assert_eq!(seen, expected, "{request:?} {status} {answer:?}");
    }

    #[test]
    fn an_answer_is_kept_by_its_own_words() {
        let cc = |it| ("cache-control", it);
        check(&[], 200, &[cc("max-age=1")], None);
        check(&[], 200, &[cc("max-age=0")], Some(NotStored::Useless));
        check(&[], 200, &[cc("max-age=0"), ("etag", "\"a\"")], None);
        check(&[], 200, &[cc("max-age=0, stale-while-revalidate=9")], None);
        check(&[], 200, &[], Some(NotStored::Useless));
        check(&[], 200, &[("last-modified", "Sun, 06 Nov 1994 07:49:37 GMT")], None);
        check(&[], 200, &[cc("max-age=1, no-store")], Some(NotStored::NoStore));
        check(&[], 200, &[cc("max-age=1, no-store, must-understand")], None);
        check(&[], 299, &[cc("max-age=1, no-store, must-understand")], Some(NotStored::NoStore));
        check(&[], 299, &[cc("max-age=1, must-understand")], Some(NotStored::Status));
        check(&[], 299, &[cc("max-age=1")], None);
        check(&[], 299, &[("etag", "\"a\"")], Some(NotStored::Status));
        check(&[], 200, &[cc("max-age=1, private")], Some(NotStored::Private));
        check(&[], 200, &[cc("max-age=1, private=\"x\"")], None);
        check(&[], 200, &[cc("max-age=1"), ("vary", "*")], Some(NotStored::VaryAll));
        check(&[], 206, &[cc("max-age=1")], Some(NotStored::Status));
        let part = ("content-range", "bytes 0-4/10");
        check(&[], 206, &[cc("max-age=1"), part], None);
        check(&[], 206, &[cc("max-age=0"), part, ("etag", "\"a\"")], Some(NotStored::Useless));
        check(&[], 304, &[cc("max-age=1")], Some(NotStored::Status));
        check(&[], 503, &[], Some(NotStored::Status));
        check(&[], 503, &[cc("max-age=1")], None);
        check(&[], 404, &[], None);
        check(&[], 431, &[cc("max-age=1")], Some(NotStored::Status));
        check(&[cc("no-store")], 200, &[cc("max-age=1")], Some(NotStored::RequestNoStore));
    }

    #[test]
    fn what_is_for_one_client_is_kept_for_none() {
        let cc = |it| ("cache-control", it);
        let (user, cookie) = (("authorization", "Basic eDp5"), ("set-cookie", "a=b"));
        check(&[user], 200, &[cc("max-age=1")], Some(NotStored::Authorization));
        for words in ["max-age=1, public", "s-maxage=1", "max-age=1, must-revalidate"] {
            check(&[user], 200, &[cc(words)], None);
        }
        check(&[], 200, &[cc("max-age=1"), cookie], Some(NotStored::Cookie));
        let lines = [cc("max-age=1, public, private=\"a, set-cookie, b\""), cookie, ("a", "1")];
        let kept = keep_of(&[], 200, &lines).unwrap();
        assert!(!kept.headers.contains_key("set-cookie"));
        let lines = [&lines[..], &[cookie, ("b", "1"), ("connection", "b")]].concat();
        let own = own(&headers(&lines), &kept.terms.control);
        assert_eq!(own, headers(&[cookie, cookie, ("a", "1")]), "what is the client's alone");
    }

    #[test]
    fn headers_of_the_connection_and_reserved_ones_are_not_kept() {
        let answer = [
            ("cache-control", "max-age=1, no-cache=\"a\", private=\"b\""),
            ("a", "1"),
            ("b", "1"),
            ("c", "1"),
            ("d", "1"),
            ("connection", "d, close"),
            ("keep-alive", "timeout=1"),
            ("age", "5"),
            ("proxy-authenticate", "Basic"),
        ];
        let kept = keep_of(&[], 200, &answer).unwrap().headers;
        let mut names: Vec<&str> = kept.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["c", "cache-control"]);
    }

    #[test]
    fn only_gets_are_kept() {
        let (asked, answer) = (HeaderMap::new(), headers(&[("cache-control", "max-age=1")]));
        for method in [Method::POST, Method::HEAD, Method::OPTIONS] {
            let ask = Ask { method: &method, headers: &asked };
            let seen = keep(ask, StatusCode::OK, &answer, TIMES, &Rules::default());
            assert_eq!(seen.err(), Some(NotStored::Method));
        }
    }
}
