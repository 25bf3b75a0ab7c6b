//! `Vary`: which requests a stored answer answers.
//!
//! Two requests are alike if the headers that the answer names have the same values, with lines joined
//! and without white space around commas. In lists of choices (`Accept-Encoding`, `Accept-Language`) neither case
//! nor the order of equals counts.
//!
//! Source: RFC 9111 §4.1.
//!
//! Sans-I/O.

use http::{HeaderMap, HeaderName, header};

use super::control::members;
use xxhash_rust::xxh3::Xxh3;

/// Maximum number of headers that an answer may name; one that names more is kept for no request.
const NAMES_MAX: usize = 16;

/// Maximum number of answers to one URL that are kept.
pub const VARIANTS_MAX: usize = 64;

/// The headers on which an answer depends, with the values of the request that it answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vary(Vec<(HeaderName, Option<String>)>);

impl Vary {
    /// Returns on what the answer to a request depends. `None`: on more than headers.
    pub fn of(answer: &HeaderMap, request: &HeaderMap) -> Option<Self> {
        let mut names = Vec::new();
        for line in answer.get_all(header::VARY) {
            for member in members(line.to_str().ok()?) {
                // `*` is no name, too.
                names.push(member.parse::<HeaderName>().ok().filter(|it| it.as_str() != "*")?);
            }
        }
        names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        names.dedup();
        let values = names.into_iter().map(|name| {
            let value = normal(request, &name);
            (name, value)
        });
        let vary: Vec<_> = values.collect();
        (vary.len() <= NAMES_MAX).then_some(Self(vary))
    }

    /// Returns the headers with their values, in the form that is compared.
    pub fn parts(&self) -> &[(HeaderName, Option<String>)] {
        &self.0
    }

    /// Returns a hash of the parts.
    pub fn hash(&self) -> u32 {
        let mut hash = Xxh3::new();
        for (name, value) in &self.0 {
            hash.update(name.as_str().as_bytes());
            hash.update(&[0, u8::from(value.is_some())]);
            hash.update(value.as_deref().unwrap_or_default().as_bytes());
            hash.update(&[0]);
        }
        let [.., one, two, three, four] = hash.digest().to_be_bytes();
        u32::from_be_bytes([one, two, three, four])
    }

    /// Returns what has these [`parts`](Self::parts).
    pub fn from_parts(parts: Vec<(HeaderName, Option<String>)>) -> Self {
        Self(parts)
    }

    /// Returns whether the answer is one to such a request.
    pub fn answers(&self, request: &HeaderMap) -> bool {
        self.0.iter().all(|(name, value)| normal(request, name) == *value)
    }
}

/// Returns the value of a header in the form that is compared; `None` if it is missing. Its bytes are
/// characters.
fn normal(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut lines = headers.get_all(name).iter().map(|it| it.as_bytes()).peekable();
    lines.peek()?;
    let joined = lines.collect::<Vec<_>>().join(&b","[..]);
    let joined: String = joined.iter().map(|it| char::from(*it)).collect();
    if [header::ACCEPT_ENCODING, header::ACCEPT_LANGUAGE].contains(name) {
        let mut parts: Vec<String> = members(&joined).map(str::to_ascii_lowercase).collect();
        parts.iter_mut().for_each(|it| it.retain(|c| c != ' ' && c != '\t'));
        parts.sort_unstable();
        parts.dedup();
        return Some(parts.join(","));
    }
    // White space around commas that separate members says nothing.
    let (mut out, mut is_quoted, mut is_escaped) = (String::new(), false, false);
    for c in joined.trim().chars() {
        if c == ',' && !is_quoted {
            out.truncate(out.trim_end().len());
        }
        let is_after_comma = out.ends_with(',') && !is_quoted;
        if !(is_after_comma && (c == ' ' || c == '\t')) {
            out.push(c);
        }
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = is_quoted && c == '\\' && !is_escaped;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        lines.iter().map(line).collect()
    }

    /// Checks whether an answer to `first` that says `vary` answers `second`, too.
    fn check(vary: &str, first: &[(&str, &str)], second: &[(&str, &str)], expected: bool) {
        let vary = Vary::of(&headers(&[("vary", vary)]), &headers(first)).unwrap();
        assert!(vary.answers(&headers(first)), "{first:?}");
        assert_eq!(vary.answers(&headers(second)), expected, "{vary:?}: {second:?}");
    }

    #[test]
    fn requests_are_alike_by_the_headers_that_the_answer_names() {
        let (en, de) = (("accept-language", "en"), ("accept-language", "de"));
        check("Accept-Language", &[en], &[en, ("x", "1")], true);
        check("Accept-Language", &[en], &[de], false);
        check("Accept-Language", &[en], &[], false);
        check("Accept-Language", &[], &[], true);
        check("x, Accept-Language", &[en, ("x", "1")], &[en, ("x", "2")], false);
        check("x", &[("x", "a, b")], &[("x", "a"), ("x", "b")], true);
        check("x", &[("x", "a,b")], &[("x", " a ,  b ")], true);
        check("x", &[("x", "a b")], &[("x", "a  b")], false);
        check("x", &[("x", "\"a, b\"")], &[("x", "\"a,b\"")], false);
        check("x", &[("x", "a,,b")], &[("x", "a,b")], false);
        check("x", &[("x", "a,b")], &[("x", "b,a")], false);
        check("x", &[("x", "a")], &[("x", "A")], false);
        check("x", &[("x", "")], &[], false);
        let both = [("accept-language", "en, de;q=0.5")];
        check("accept-language", &both, &[("accept-language", "DE; q=0.5,EN")], true);
        check(
            "accept-encoding",
            &[("accept-encoding", "gzip, br")],
            &[("accept-encoding", "br,gzip")],
            true,
        );
    }

    #[test]
    fn values_that_are_no_text_differ_by_their_bytes() {
        let of = |it: &[u8]| {
            HeaderMap::from_iter([("x".parse().unwrap(), HeaderValue::from_bytes(it).unwrap())])
        };
        let vary = Vary::of(&headers(&[("vary", "x")]), &of(b"\xfe")).unwrap();
        assert!(vary.answers(&of(b"\xfe")) && !vary.answers(&of(b"\xff")));
    }

    #[test]
    fn an_answer_that_depends_on_all_or_on_too_much_answers_none() {
        let of = |it: &str| Vary::of(&headers(&[("vary", it)]), &HeaderMap::new());
        assert_eq!([of("*"), of("x, *"), of("x y")], [None, None, None]);
        let many: Vec<String> = (0..=NAMES_MAX).map(|it| format!("x{it}")).collect();
        assert_eq!(of(&many.join(",")), None);
        assert!(of(&many[1..].join(", ,")).is_some());
    }
}
