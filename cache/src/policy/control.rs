//! `Cache-Control`: the directives of answers and of requests.
//!
//! Source: RFC 9111 §5.2, RFC 5861 (stale answers), RFC 8246 (immutable).
//!
//! Of a directive that comes twice the first counts; a time that cannot be read is zero, so that the
//! answer is stale (RFC 9111 §4.2.1). Unknown directives say nothing.
//!
//! Sans-I/O.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Longest time that a header can give, in seconds (RFC 9111 §1.2.2): longer ones are taken for it.
pub const SECONDS_MAX: u32 = 1 << 31;

/// Maximum number of directives of a message that are read.
const DIRECTIVES_MAX: usize = 64;

/// A directive that may be about some headers alone, such as `no-cache="Set-Cookie"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// It is not there.
    #[default]
    Absent,
    /// It is about these headers.
    Headers(Vec<HeaderName>),
    /// It is about the answer.
    All,
}

/// What an answer says of its storing and its use. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Its lifetime.
    pub max_age: Option<u32>,
    /// Its lifetime in caches that several people share, before [`max_age`](Self::max_age).
    pub s_maxage: Option<u32>,
    /// How long after its lifetime it may be used while it is validated.
    pub stale_while_revalidate: Option<u32>,
    /// How long after its lifetime it may be used when it cannot be validated.
    pub stale_if_error: Option<u32>,
    /// It is not to be stored.
    pub no_store: bool,
    /// It is to be stored, whatever [`no_store`](Self::no_store) says, by who knows its status.
    pub must_understand: bool,
    /// It is not to be used without validation, or some of its headers are not.
    pub no_cache: Scope,
    /// It is for one user, or some of its headers are.
    pub private: Scope,
    /// It may be stored by all.
    pub public: bool,
    /// It is never to be used stale: `must-revalidate`, `proxy-revalidate`, and `s-maxage`.
    pub must_revalidate: bool,
    /// It does not change while it is fresh.
    pub immutable: bool,
}

/// What a request says of the answers that it takes. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestControl {
    /// Only validated answers.
    pub no_cache: bool,
    /// Neither the request nor its answer is to be stored.
    pub no_store: bool,
    /// No answer for which somebody has to be asked.
    pub only_if_cached: bool,
    /// Greatest age.
    pub max_age: Option<u32>,
    /// How long the answer has to stay fresh.
    pub min_fresh: Option<u32>,
    /// How long after its lifetime it may be used.
    pub max_stale: Option<u32>,
}

impl Control {
    /// Reads the `Cache-Control` of an answer.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut control = Self::default();
        let (mut seen, mut count) = (Vec::new(), 0);
        for (name, argument) in directives(headers.get_all(header::CACHE_CONTROL)) {
            control.take(&name, argument.as_deref(), &mut seen);
            count += 1;
        }
        // Who cannot be understood to the end may have forbidden it.
        let lines = headers.get_all(header::CACHE_CONTROL).iter();
        let is_open = lines.map(HeaderValue::as_bytes).any(ends_in_quotes);
        control.no_store |= DIRECTIVES_MAX <= count || is_open;
        control
    }

    /// Takes a directive, unless it is one of those `seen`.
    pub(super) fn take(&mut self, name: &str, argument: Option<&str>, seen: &mut Vec<String>) {
        if seen.iter().any(|it| it == name) {
            // A scope grows with each: what is more careful counts.
            match name {
                "no-cache" => self.no_cache.widen(argument),
                "private" => self.private.widen(argument),
                _ => {}
            }
            return;
        }
        let time = || Some(argument.and_then(seconds).unwrap_or(0));
        match name {
            "max-age" => self.max_age = time(),
            "s-maxage" => (self.s_maxage, self.must_revalidate) = (time(), true),
            "stale-while-revalidate" => self.stale_while_revalidate = time(),
            "stale-if-error" => self.stale_if_error = time(),
            "no-store" => self.no_store = true,
            "must-understand" => self.must_understand = true,
            "no-cache" => self.no_cache.widen(argument),
            "private" => self.private.widen(argument),
            "public" => self.public = true,
            "must-revalidate" | "proxy-revalidate" => self.must_revalidate = true,
            "immutable" => self.immutable = true,
            _ => return,
        }
        seen.push(name.to_owned());
    }
}

impl RequestControl {
    /// Reads the `Cache-Control` of a request, or else its `Pragma` (RFC 9111 §5.4).
    pub fn of(headers: &HeaderMap) -> Self {
        let mut control = Self::default();
        if !headers.contains_key(header::CACHE_CONTROL) {
            let mut pragmas = directives(headers.get_all(header::PRAGMA));
            control.no_cache = pragmas.any(|(name, _)| name == "no-cache");
            return control;
        }
        for (name, argument) in directives(headers.get_all(header::CACHE_CONTROL)) {
            let time = argument.as_deref().and_then(seconds);
            match name.as_str() {
                "no-cache" => control.no_cache = true,
                "no-store" => control.no_store = true,
                "only-if-cached" => control.only_if_cached = true,
                "max-age" => control.max_age = control.max_age.or_else(|| Some(time.unwrap_or(0))),
                "min-fresh" => control.min_fresh = control.min_fresh.or(time),
                "max-stale" if argument.is_none() => control.max_stale = Some(SECONDS_MAX),
                "max-stale" => control.max_stale = control.max_stale.or(time),
                _ => {}
            }
        }
        control
    }
}

impl Scope {
    fn widen(&mut self, argument: Option<&str>) {
        let names: Option<Vec<HeaderName>> = argument.and_then(|it| {
            let names = it.split(',').map(str::trim).filter(|it| !it.is_empty());
            names.map(|it| it.parse().ok()).collect()
        });
        *self = match (std::mem::take(self), names) {
            (Self::Absent, Some(names)) if !names.is_empty() => Self::Headers(names),
            (Self::Headers(mut all), Some(names)) if !names.is_empty() => {
                all.extend(names);
                Self::Headers(all)
            }
            _ => Self::All,
        };
    }

    /// Returns the headers that it is about.
    pub fn headers(&self) -> &[HeaderName] {
        match self {
            Self::Headers(names) => names,
            Self::Absent | Self::All => &[],
        }
    }
}

/// Reads a number of seconds (RFC 9111 §1.2.2).
pub(super) fn seconds(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    // What does not fit is long, too.
    is_number.then(|| text.parse().map_or(SECONDS_MAX, |it: u32| it.min(SECONDS_MAX)))
}

/// Returns the directives with their arguments, in order.
fn directives<'a>(
    values: impl IntoIterator<Item = &'a HeaderValue>,
) -> impl Iterator<Item = (String, Option<String>)> {
    let texts = values.into_iter().map(|it| String::from_utf8_lossy(it.as_bytes()));
    let all = texts.flat_map(|it| members(&it).map(str::to_owned).collect::<Vec<_>>());
    all.take(DIRECTIVES_MAX).filter_map(|member| {
        let (name, argument) = match member.split_once('=') {
            Some((name, argument)) => (name, Some(unquoted(argument))),
            None => (member.as_str(), None),
        };
        let name = name.trim().to_ascii_lowercase();
        (!name.is_empty()).then_some((name, argument))
    })
}

/// Returns whether a quoted string of a value does not end.
fn ends_in_quotes(value: &[u8]) -> bool {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for byte in value {
        is_quoted ^= *byte == b'"' && !is_escaped;
        is_escaped = is_quoted && *byte == b'\\' && !is_escaped;
    }
    is_quoted
}

/// Returns the members of a list; a comma between quotes separates none (RFC 9110 §5.6.1).
pub(super) fn members(list: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let ends_member = move |c: char| {
        let ends = c == ',' && !is_quoted;
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = is_quoted && c == '\\' && !is_escaped;
        ends
    };
    list.split(ends_member).map(str::trim).filter(|it| !it.is_empty())
}

/// Returns the text of a quoted string (RFC 9110 §5.6.4), or else `text` as it is.
fn unquoted(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')) else {
        return text.to_owned();
    };
    let (mut out, mut is_escaped) = (String::with_capacity(inner.len()), false);
    for c in inner.chars() {
        is_escaped = c == '\\' && !is_escaped;
        if !is_escaped {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> HeaderMap {
        let value = |it: &&str| (header::CACHE_CONTROL, HeaderValue::from_str(it).unwrap());
        lines.iter().map(value).collect()
    }

    fn check(lines: &[&str], expected: Control) {
        assert_eq!(Control::of(&headers(lines)), expected, "{lines:?}");
    }

    fn max_age(seconds: u32) -> Control {
        Control { max_age: Some(seconds), ..Control::default() }
    }

    #[test]
    fn the_lifetime_is_read_in_all_its_spellings() {
        for line in
            ["max-age=60", "MAX-AGE=060", "max-age=\"60\"", "a=\"b, max-age=1\", max-age=60"]
        {
            check(&[line], max_age(60));
        }
        check(&["max-age=60, max-age=1"], max_age(60));
        check(&["max-age=60", "max-age=1"], max_age(60));
        check(&["a=\"\\\", max-age=1\", max-age=2"], max_age(2));
        check(&["max-age=99999999999"], max_age(SECONDS_MAX));
    }

    #[test]
    fn a_lifetime_that_cannot_be_read_is_none_at_all() {
        for line in
            ["max-age", "max-age=", "max-age=-1", "max-age=1.5", "max-age='60'", "max-age= 60"]
        {
            check(&[line], max_age(0));
        }
        check(&["x-max-age=60, max-age60, \"max-age=60\""], Control::default());
    }

    #[test]
    fn what_cannot_be_understood_is_not_stored() {
        let no_store = |it: &[&[u8]]| {
            let value = |it: &&[u8]| (header::CACHE_CONTROL, HeaderValue::from_bytes(it).unwrap());
            Control::of(&it.iter().map(value).collect()).no_store
        };
        assert!(no_store(&[b"max-age=60, foo=\"a, no-store"]));
        assert!(no_store(&[b"max-age=60", b"no-store, \xff"]));
        let many = format!("max-age=60{}", ", x".repeat(DIRECTIVES_MAX));
        assert!(no_store(&[many.as_bytes()]));
        assert!(!no_store(&[b"max-age=60, foo=\"a, no-store\", \xff"]));
    }

    #[test]
    fn scopes_are_about_headers_or_about_all() {
        let named =
            |names: &[&str]| Scope::Headers(names.iter().map(|it| it.parse().unwrap()).collect());
        let no_cache = |no_cache| Control { no_cache, ..Control::default() };
        check(&["no-cache"], no_cache(Scope::All));
        check(&["no-cache=\"a, B\""], no_cache(named(&["a", "b"])));
        check(&["no-cache=a", "no-cache=\"b\""], no_cache(named(&["a", "b"])));
        check(&["no-cache=a, no-cache"], no_cache(Scope::All));
        check(&["no-cache=\"\""], no_cache(Scope::All));
        check(&["no-cache=\"a b\""], no_cache(Scope::All));
        check(&["Private=\"x\""], Control { private: named(&["x"]), ..Control::default() });
    }

    #[test]
    fn a_request_says_what_it_takes() {
        let of = |line: &str| RequestControl::of(&headers(&[line]));
        let none = RequestControl::default();
        assert_eq!(of("max-age=0"), RequestControl { max_age: Some(0), ..none.clone() });
        assert_eq!(of("max-age=x"), RequestControl { max_age: Some(0), ..none.clone() });
        assert_eq!(
            of("max-stale"),
            RequestControl { max_stale: Some(SECONDS_MAX), ..none.clone() }
        );
        assert_eq!(of("max-stale=x"), none);
        assert_eq!(of("min-fresh=5"), RequestControl { min_fresh: Some(5), ..none.clone() });
        let mut pragma = HeaderMap::new();
        pragma.insert(header::PRAGMA, HeaderValue::from_static("x, No-Cache"));
        assert!(RequestControl::of(&pragma).no_cache);
        pragma.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=1"));
        assert!(!RequestControl::of(&pragma).no_cache, "the newer header counts alone");
    }
}
