//! `Vary`: which requests a stored answer answers.
//!
//! Two requests are alike if the headers that the answer names have the same values, with white space
//! folded and lines joined. In lists of choices (`Accept-Encoding`, `Accept-Language`) neither case
//! nor the order of equals counts.
//!
//! Source: RFC 9111 §4.1.
//!
//! Sans-I/O.

use http::{HeaderMap, HeaderName, header};

use super::control::members;

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

    /// Returns what has these [`parts`](Self::parts).
    pub fn from_parts(parts: Vec<(HeaderName, Option<String>)>) -> Self {
        Self(parts)
    }

    /// Returns whether the answer is one to such a request.
    pub fn answers(&self, request: &HeaderMap) -> bool {
        self.0.iter().all(|(name, value)| normal(request, name) == *value)
    }
}

/// Returns the value of a header in the form that is compared; `None` if it is missing.
fn normal(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let lines = headers.get_all(name).iter();
    let texts = lines.map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
    let lines: Vec<String> = texts.collect();
    if lines.is_empty() {
        return None;
    }
    let joined = lines.join(",");
    let folded = |it: &str| it.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts: Vec<String> = members(&joined).map(folded).collect();
    if [header::ACCEPT_ENCODING, header::ACCEPT_LANGUAGE].contains(name) {
        parts.iter_mut().for_each(|it| it.retain(|c| c != ' '));
        parts.iter_mut().for_each(|it| it.make_ascii_lowercase());
        parts.sort_unstable();
        parts.dedup();
    }
    Some(parts.join(","))
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
        check("x", &[("x", "a b")], &[("x", "a  b")], true);
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
    fn an_answer_that_depends_on_all_or_on_too_much_answers_none() {
        let of = |it: &str| Vary::of(&headers(&[("vary", it)]), &HeaderMap::new());
        assert_eq!([of("*"), of("x, *"), of("x y")], [None, None, None]);
        let many: Vec<String> = (0..=NAMES_MAX).map(|it| format!("x{it}")).collect();
        assert_eq!(of(&many.join(",")), None);
        assert!(of(&many[1..].join(", ,")).is_some());
    }
}
