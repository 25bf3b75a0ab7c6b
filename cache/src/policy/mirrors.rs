//! Mirrors: other places that have the same objects, which of them to ask, and which not for a while.
//!
//! Mirrors are named by the settings, or by the origin itself in `Link` with the relation `duplicate`.
//!
//! Source: TR §11; RFC 6249 (mirrors in `Link`), RFC 8288 §3 (its syntax).
//!
//! Sans-I/O.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, header};
use quick_cache::sync::Cache;
use url::Url;

/// Maximum number of mirrors of one object that are looked at.
const COPIES_MAX: usize = 8;

/// Maximum number of mirrors that are remembered as not to be asked.
const DROPPED_MAX: usize = 1_000;

/// Time for which a mirror is not asked that was not reached, or gave what it should not.
const DROPPED: Duration = Duration::from_secs(600);

/// Objects of which there are copies elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// The beginning of their URLs; ends in a slash.
    pub url: Url,
    /// What the URLs of the copies begin with instead; each ends in a slash.
    pub mirrors: Vec<Url>,
}

/// Returns the URLs of the copies of an object, by the first of the settings that fits its URL.
pub(crate) fn copies(list: &[Mirror], url: &Url) -> Vec<Url> {
    let fit = list.iter().find_map(|it| Some((it, url.as_str().strip_prefix(it.url.as_str())?)));
    let Some((Mirror { mirrors, .. }, rest)) = fit else { return Vec::new() };
    let copy = |it: &Url| Url::parse(&format!("{it}{rest}")).ok();
    mirrors.iter().filter_map(copy).take(COPIES_MAX).collect()
}

/// Returns the URLs of the copies of an object that its origin names.
pub(crate) fn duplicates(headers: &HeaderMap, url: &Url) -> Vec<Url> {
    let mut found = Vec::new();
    for value in headers.get_all(header::LINK).iter().filter_map(|it| it.to_str().ok()) {
        let mut rest = value;
        while let Some((target, after)) =
            rest.split_once('<').and_then(|(_, it)| it.split_once('>'))
        {
            let (parameters, next) = split_unquoted(after, ',');
            rest = next;
            let target = url.join(target.trim()).ok().filter(|it| {
                ["http", "https"].contains(&it.scheme()) && it.username().is_empty() && it != url
            });
            if let Some(target) = target.filter(|_| is_duplicate(parameters)) {
                found.push(target);
            }
        }
    }
    found.truncate(COPIES_MAX);
    found
}

/// Returns whether the parameters of a link have the relation `duplicate`.
fn is_duplicate(mut parameters: &str) -> bool {
    while !parameters.is_empty() {
        let (parameter, rest) = split_unquoted(parameters, ';');
        parameters = rest;
        let Some((name, value)) = parameter.split_once('=') else { continue };
        // The first counts (RFC 8288 §3.3).
        if name.trim().eq_ignore_ascii_case("rel") {
            let mut relations = value.trim().trim_matches('"').split_ascii_whitespace();
            return relations.any(|it| it.eq_ignore_ascii_case("duplicate"));
        }
    }
    false
}

/// Splits at the first `mark` that is not within a quoted string; without one, at the end.
fn split_unquoted(text: &str, mark: char) -> (&str, &str) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let at = text.find(|it: char| {
        let ends = it == mark && !is_quoted;
        is_quoted ^= it == '"' && !is_escaped;
        is_escaped = is_quoted && it == '\\' && !is_escaped;
        ends
    });
    at.and_then(|it| text.split_at_checked(it)).map_or((text, ""), |(before, after)| {
        (before, after.strip_prefix(mark).unwrap_or_default())
    })
}

/// Returns the order in which to ask places that are so distant; the first is the home, which is asked
/// first until its distance is known. Mirrors of unknown distance come last.
pub(crate) fn order(distances: &[Option<Duration>]) -> Vec<usize> {
    let key = |index: usize| match distances.get(index).copied().flatten() {
        Some(distance) => distance,
        None if index == 0 => Duration::ZERO,
        None => Duration::MAX,
    };
    let mut order: Vec<usize> = (0..distances.len()).collect();
    order.sort_by_key(|index| key(*index));
    order
}

/// Returns the mirror that is worth asking while the home answers already: the nearest, if a connection
/// and a request take less there than one way and back to the home.
pub(crate) fn nearer(home: Option<Duration>, distances: &[Option<Duration>]) -> Option<usize> {
    let known = distances.iter().enumerate().filter_map(|(index, it)| Some(((*it)?, index)));
    let (distance, index) = known.min()?;
    (distance * 2 < home?).then_some(index)
}

/// The mirrors that are not asked for now, by scheme, host and port. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Dropped(Arc<Cache<String, Instant>>);

impl Default for Dropped {
    fn default() -> Self {
        Self(Arc::new(Cache::new(DROPPED_MAX)))
    }
}

impl Dropped {
    /// Returns whether a mirror is not asked.
    pub(crate) fn has(&self, copy: &Url, now: Instant) -> bool {
        self.0.get(&place(copy)).is_some_and(|it| now < it)
    }

    /// Drops a mirror for a while.
    pub(crate) fn drop(&self, copy: &Url, now: Instant) {
        tracing::info!(mirror = place(copy), "a mirror is not asked for ten minutes");
        self.0.insert(place(copy), now + DROPPED);
    }

    /// Keeps a mirror from being asked until it is measured, at most until `until`.
    pub(crate) fn begin(&self, copy: &Url, until: Instant) {
        self.0.insert(place(copy), until);
    }

    /// Has a mirror be asked again, unless it has been dropped since [`begin`](Self::begin).
    pub(crate) fn end(&self, copy: &Url, until: Instant) {
        let place = place(copy);
        if self.0.get(&place) == Some(until) {
            self.0.remove(&place);
        }
    }
}

fn place(copy: &Url) -> String {
    copy.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn copies_are_named_by_the_first_settings_that_fit() {
        let mirror = |from: &str, to: &[&str]| Mirror {
            url: url(from),
            mirrors: to.iter().map(|it| url(it)).collect(),
        };
        let list = [
            mirror("http://h/pub/", &["http://a/h/", "https://b/"]),
            mirror("http://h/", &["http://c/"]),
        ];
        let seen = |it: &str| {
            copies(&list, &url(it)).iter().map(Url::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(seen("http://h/pub/x/y?z"), "http://a/h/x/y?z https://b/x/y?z");
        assert_eq!(seen("http://h/public"), "http://c/public");
        assert_eq!(seen("http://h:81/pub/x"), "");
    }

    #[test]
    fn duplicates_are_read_from_links() {
        let seen = |values: &[&str]| {
            let line = |it: &&str| (header::LINK, HeaderValue::from_str(it).unwrap());
            let headers = values.iter().map(line).collect();
            let found = duplicates(&headers, &url("http://h/d/x"));
            found.iter().map(Url::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            seen(&[
                "<http://a/x,y>; rel=duplicate; pri=1; geo=de, <http://b/>;title=\"a, <c>; \\\" rel=x\";REL=\"next Duplicate\"",
                "<http://c/>; rel=next, <../e> ; rel = \"duplicate\""
            ]),
            "http://a/x,y http://b/ http://h/e"
        );
        for none in [
            "<http://a/>",
            "<ftp://a/>;rel=duplicate",
            "<http://u@a/>;rel=duplicate",
            "<a",
            "x",
            "<x>;rel=duplicate",
            "<http://a/>;rel=describedby;rel=duplicate",
        ] {
            assert_eq!(seen(&[none]), "", "{none}");
        }
        assert_eq!(seen(&["<http://a/>;rel=duplicate,".repeat(99).as_str()]).split(' ').count(), 8);
    }

    #[test]
    fn the_nearest_is_asked_first_and_the_home_until_it_is_known() {
        let ms = |it: u64| Some(Duration::from_millis(it));
        assert_eq!(order(&[None, ms(1), ms(2)]), [0, 1, 2]);
        assert_eq!(order(&[ms(9), None, ms(2), ms(10)]), [2, 0, 3, 1]);
        assert_eq!(order(&[ms(2), ms(2)]), [0, 1]);
        assert_eq!(nearer(ms(9), &[None, ms(4), ms(3)]), Some(2));
        assert_eq!(nearer(ms(6), &[None, ms(3)]), None);
        assert_eq!(nearer(None, &[ms(3)]), None);
    }

    #[test]
    fn a_mirror_is_dropped_for_a_while() {
        let (dropped, now) = (Dropped::default(), net::clock::monotonic());
        let (copy, soon) = (url("http://a/x"), now + Duration::from_secs(9));
        dropped.begin(&copy, soon);
        assert!(dropped.has(&url("http://a:80/y"), now) && !dropped.has(&url("http://a:81/"), now));
        dropped.end(&copy, soon);
        assert!(!dropped.has(&copy, now));
        dropped.begin(&copy, soon);
        dropped.drop(&copy, now);
        dropped.end(&copy, soon);
        assert!(dropped.has(&copy, soon) && !dropped.has(&copy, now + DROPPED));
    }
}
