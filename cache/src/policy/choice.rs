//! The choice: how a request is answered from what is stored of its URL.
//!
//! Source: RFC 9111 §4 (which stored answer), §4.2.4 (stale ones), §4.3.1 (validation), §5.2.1 (what
//! the client takes).
//!
//! Sans-I/O.

use std::borrow::Borrow;
use std::fmt;

use http::{HeaderMap, Method, StatusCode, header};

use super::control::RequestControl;
use super::freshness::{Terms, date};
use super::storing::{Ask, Head};
use super::validation::continues;

/// Why a request goes to the origin; the words are those of RFC 9211 §2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Nothing of its kind is ever stored.
    Method,
    /// Nothing is stored of its URL.
    UriMiss,
    /// What is stored answers other requests.
    VaryMiss,
    /// A part is stored, and the client wants more.
    Partial,
    /// What is stored is stale.
    Stale,
    /// The client wants a newer answer than the fresh one that is stored.
    Request,
}

impl Forward {
    /// Returns its name in `Cache-Status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Partial => "partial",
            Self::Stale => "stale",
            Self::Request => "request",
        }
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Method => "requests with this method are passed on",
            Self::UriMiss => "nothing is stored of this URL",
            Self::VaryMiss => "what is stored answers requests with other headers",
            Self::Partial => "only a part of it is stored",
            Self::Stale => "what is stored is stale",
            Self::Request => "the client wants a newer answer than the stored one",
        })
    }
}

/// How a request is answered. Indices are those of the stored answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// By what is stored.
    Use {
        /// Which.
        index: usize,
        /// Whether it is to be validated beside that.
        validate: bool,
    },
    /// By the origin, which is asked whether a stored answer is still good, if it has anything to ask
    /// with; if the origin fails, the stored answer may do.
    Validate {
        /// Which.
        index: usize,
        /// Why.
        why: Forward,
    },
    /// By what is stored, a part from the object's start on, and the origin, which is asked for the rest.
    Complete {
        /// Which.
        index: usize,
    },
    /// By the origin.
    Fetch(Forward),
    /// By nobody: the client takes stored answers alone (504).
    Nothing,
}

/// Chooses how to answer a request of which `stored` is stored.
pub fn choose<H: Borrow<Head>>(ask: Ask<'_>, stored: &[H], now_ms: u64) -> Choice {
    if ![Method::GET, Method::HEAD].contains(ask.method) {
        return Choice::Fetch(Forward::Method);
    }
    let control = RequestControl::of(ask.headers);
    let asked = |it: Choice| if control.only_if_cached { Choice::Nothing } else { it };
    // What they ask of the origin's object, a cache cannot answer (RFC 9110 §13.1.1, §13.1.4).
    let is_for_origin = [header::IF_MATCH, header::IF_UNMODIFIED_SINCE];
    if is_for_origin.iter().any(|it| ask.headers.contains_key(it)) {
        return asked(Choice::Fetch(Forward::Request));
    }
    let alike =
        stored.iter().map(H::borrow).enumerate().filter(|(_, it)| it.vary.answers(ask.headers));
    let is_part = |head: &Head| head.status == StatusCode::PARTIAL_CONTENT;
    // Of several the newest answers (RFC 9111 §4.1); of one no date is read.
    let order = |head: &Head| (made(head), head.times.came_ms);
    let wholes = alike.clone().filter(|(_, it)| !is_part(it));
    let newest =
        wholes.reduce(|one, other| if order(one.1) <= order(other.1) { other } else { one });
    let Some((index, head)) = newest else {
        let parts: Vec<_> = alike.filter(|(_, it)| is_part(it)).collect();
        return match by_part(ask, &control, &parts, now_ms) {
            Some(it @ Choice::Use { .. }) => it,
            Some(it) => asked(it),
            None if stored.is_empty() => asked(Choice::Fetch(Forward::UriMiss)),
            None if parts.is_empty() => asked(Choice::Fetch(Forward::VaryMiss)),
            None => asked(Choice::Fetch(Forward::Partial)),
        };
    };
    let terms = &head.terms;
    let is_wanted = is_wanted(&control, terms, now_ms);
    let min_fresh = control.min_fresh.unwrap_or(0);
    if is_wanted && terms.is_fresh(now_ms, min_fresh) {
        return Choice::Use { index, validate: false };
    }
    let is_fresh = terms.is_fresh(now_ms, 0);
    let takes_stale = control.max_stale.is_some_and(|it| terms.may_be_stale(now_ms, it));
    if is_wanted && control.min_fresh.is_none() && !is_fresh {
        if takes_stale {
            return Choice::Use { index, validate: false };
        }
        if terms.may_be_used_meanwhile(now_ms) && !control.only_if_cached {
            return Choice::Use { index, validate: true };
        }
    }
    let why = if is_fresh { Forward::Request } else { Forward::Stale };
    asked(Choice::Validate { index, why })
}

/// Returns whether an answer is as young as the client wants it. One that never changes is, whatever its age
/// (RFC 8246 §2): who insists says `no-cache`.
fn is_wanted(control: &RequestControl, terms: &Terms, now_ms: u64) -> bool {
    let is_young = |max_age: u32| terms.age_ms(now_ms) <= u64::from(max_age) * 1_000;
    let is_constant = terms.control.immutable && terms.is_fresh(now_ms, 0);
    !control.no_cache && (is_constant || control.max_age.is_none_or(is_young))
}

/// Returns how a request is answered from one of the parts that are stored, all to such requests; `None`:
/// not by any (RFC 9111 §3.3, §3.4).
fn by_part(
    ask: Ask<'_>,
    control: &RequestControl,
    parts: &[(usize, &Head)],
    now_ms: u64,
) -> Option<Choice> {
    let is_usable = |terms: &Terms| {
        let is_fresh = terms.is_fresh(now_ms, control.min_fresh.unwrap_or(0));
        is_fresh && is_wanted(control, terms, now_ms)
    };
    let is_get = *ask.method == Method::GET;
    let mut fresh = parts.iter().filter(|(_, it)| is_get && is_usable(&it.terms));
    fresh.find_map(|(index, head)| {
        let (extent, index) = (head.extent()?, *index);
        if ask.headers.contains_key(header::RANGE) {
            let is_there = extent.asked(ask.headers).is_some() && continues(ask.headers, head);
            return is_there.then_some(Choice::Use { index, validate: false });
        }
        let is_start = extent.part.start == 0 && head.strong_tag().is_some();
        let is_plain = !ask.headers.contains_key(header::IF_NONE_MATCH)
            && !ask.headers.contains_key(header::IF_MODIFIED_SINCE);
        (is_start && is_plain).then_some(Choice::Complete { index })
    })
}

/// Returns when an answer was made, in Unix seconds.
fn made(head: &Head) -> u64 {
    date(&head.headers, &header::DATE).unwrap_or(head.times.came_ms / 1_000)
}

/// Returns the headers that ask an origin whether an answer is still good; empty, if it has nothing
/// to ask with.
pub fn conditions(head: &Head) -> HeaderMap {
    let mut conditions = HeaderMap::new();
    if let Some(tag) = head.headers.get(header::ETAG) {
        conditions.insert(header::IF_NONE_MATCH, tag.clone());
    }
    if let Some(changed) = head.headers.get(header::LAST_MODIFIED) {
        conditions.insert(header::IF_MODIFIED_SINCE, changed.clone());
    }
    conditions
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::policy::freshness::{Rules, Times};
    use crate::policy::storing::keep;

    const CAME_MS: u64 = 784_111_777_000;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        lines.iter().map(line).collect()
    }

    fn head(request: &[(&str, &str)], answer: &[(&str, &str)]) -> Head {
        let asked = headers(request);
        let ask = Ask { method: &Method::GET, headers: &asked };
        let times = Times { sent_ms: CAME_MS, came_ms: CAME_MS };
        keep(ask, StatusCode::OK, &headers(answer), times, &Rules::default()).unwrap()
    }

    /// Checks the choice for a request `later` seconds after the answers came.
    fn check(stored: &[Head], later: u64, request: &[(&str, &str)], expected: Choice) {
        let asked = headers(request);
        let ask = Ask { method: &Method::GET, headers: &asked };
        let stored: Vec<&Head> = stored.iter().collect();
        let seen = choose(ask, &stored, CAME_MS + later * 1_000);
        assert_eq!(seen, expected, "after {later} s: {request:?}");
    }

    fn cc(words: &'static str) -> (&'static str, &'static str) {
        ("cache-control", words)
    }

    const HIT: Choice = Choice::Use { index: 0, validate: false };

    fn validate(why: Forward) -> Choice {
        Choice::Validate { index: 0, why }
    }

    #[test]
    fn a_fresh_answer_is_used_and_a_stale_one_validated() {
        let it = [head(&[], &[cc("max-age=10"), ("etag", "\"a\"")])];
        check(&[], 0, &[], Choice::Fetch(Forward::UriMiss));
        check(&it, 9, &[], HIT);
        check(&it, 10, &[], validate(Forward::Stale));
        check(&[head(&[], &[cc("max-age=10")])], 10, &[], validate(Forward::Stale));
        let swr = [head(&[], &[cc("max-age=10, stale-while-revalidate=5"), ("etag", "\"a\"")])];
        check(&swr, 14, &[], Choice::Use { index: 0, validate: true });
        check(&swr, 14, &[cc("only-if-cached")], Choice::Nothing);
        check(&swr, 16, &[], validate(Forward::Stale));
    }

    #[test]
    fn a_client_says_what_it_takes() {
        let it = [head(&[], &[cc("max-age=10"), ("etag", "\"a\"")])];
        check(&it, 1, &[cc("no-cache")], validate(Forward::Request));
        check(&it, 1, &[("pragma", "no-cache")], validate(Forward::Request));
        check(&it, 1, &[cc("max-age=0")], validate(Forward::Request));
        check(&it, 1, &[cc("max-age=1")], HIT);
        check(&it, 1, &[cc("min-fresh=9")], HIT);
        let constant = [head(&[], &[cc("max-age=10, immutable"), ("etag", "\"a\"")])];
        check(&constant, 1, &[cc("max-age=0")], HIT);
        check(&constant, 1, &[cc("no-cache")], validate(Forward::Request));
        check(&constant, 10, &[cc("max-age=0")], validate(Forward::Stale));
        check(&it, 1, &[cc("min-fresh=10")], validate(Forward::Request));
        check(&it, 15, &[cc("max-stale=5")], HIT);
        check(&it, 16, &[cc("max-stale=5")], validate(Forward::Stale));
        check(&it, 999, &[cc("max-stale")], HIT);
        check(&it, 999, &[cc("max-stale, max-age=5")], validate(Forward::Stale));
        check(&it, 9, &[cc("only-if-cached")], HIT);
        check(&it, 10, &[cc("only-if-cached")], Choice::Nothing);
        check(&[], 10, &[cc("only-if-cached")], Choice::Nothing);
        check(&it, 1, &[("if-match", "\"a\"")], Choice::Fetch(Forward::Request));
        let strict = [head(&[], &[cc("max-age=10, must-revalidate"), ("etag", "\"a\"")])];
        check(&strict, 15, &[cc("max-stale")], validate(Forward::Stale));
    }

    #[test]
    fn of_several_answers_the_newest_to_such_a_request_is_used() {
        let answer = |date: &'static str| [cc("max-age=10000000"), ("vary", "x"), ("date", date)];
        let stored = [
            head(&[("x", "1")], &answer("Sun, 06 Nov 1994 08:49:36 GMT")),
            head(&[("x", "1")], &answer("Sun, 06 Nov 1994 08:49:37 GMT")),
            head(&[("x", "2")], &answer("Sun, 06 Nov 1994 08:49:38 GMT")),
        ];
        check(&stored, 0, &[("x", "1")], Choice::Use { index: 1, validate: false });
        check(&stored, 0, &[("x", "2")], Choice::Use { index: 2, validate: false });
        check(&stored, 0, &[], Choice::Fetch(Forward::VaryMiss));
    }

    #[test]
    fn only_gets_and_heads_are_answered() {
        let (it, none) = (head(&[], &[cc("max-age=10")]), HeaderMap::new());
        let of = |method| choose(Ask { method: &method, headers: &none }, &[&it], CAME_MS);
        assert_eq!(of(Method::HEAD), HIT);
        assert_eq!(of(Method::POST), Choice::Fetch(Forward::Method));
    }
}
