//! Invalidation: what a request that changes something makes unusable.
//!
//! Source: RFC 9111 §4.4.
//!
//! Sans-I/O.

use http::{HeaderMap, Method, StatusCode, header};
use url::Url;

/// Returns the URLs of which nothing stored is to be used any more after the answer to a request:
/// the target's own, and those of the same origin that the answer names.
pub fn invalidated(
    method: &Method,
    target: &Url,
    status: StatusCode,
    headers: &HeaderMap,
) -> Vec<Url> {
    let is_done = status.is_success() || status.is_redirection();
    // Methods that nobody knows may change anything.
    if method.is_safe() || !is_done {
        return Vec::new();
    }
    let named = [header::LOCATION, header::CONTENT_LOCATION].into_iter().filter_map(|name| {
        let named = target.join(headers.get(name)?.to_str().ok()?).ok()?;
        (named.origin() == target.origin()).then_some(named)
    });
    let mut all = vec![target.clone()];
    all.extend(named);
    all.iter_mut().for_each(|it| it.set_fragment(None));
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(method: Method, status: u16, lines: &[(&str, &'static str)], expected: &[&str]) {
        let target = Url::parse("http://h/a").unwrap();
        let line = |(name, value): &(&str, &'static str)| {
            (name.parse().unwrap(), HeaderValue::from_static(value))
        };
        let headers: HeaderMap = lines.iter().map(line).collect();
        let seen = invalidated(&method, &target, status.try_into().unwrap(), &headers);
        let seen: Vec<&str> = seen.iter().map(Url::as_str).collect();
        assert_eq!(seen, expected, "{method} {status}");
    }

    #[test]
    fn a_change_makes_the_target_and_what_the_answer_names_unusable() {
        check(Method::GET, 200, &[], &[]);
        check(Method::OPTIONS, 200, &[], &[]);
        check(Method::POST, 500, &[], &[]);
        check(Method::POST, 404, &[], &[]);
        check(Method::PUT, 201, &[], &["http://h/a"]);
        check(Method::from_bytes(b"MERGE").unwrap(), 200, &[], &["http://h/a"]);
        let named = [("location", "/b#c"), ("content-location", "http://other/d")];
        check(Method::POST, 303, &named, &["http://h/a", "http://h/b"]);
    }
}
