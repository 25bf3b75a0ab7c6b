//! The key of a URL: one text for all spellings of the same URL.
//!
//! Source: RFC 3986 §6.2.2 and §6.2.3. The parser of `url` makes scheme and host lower case, leaves
//! out a default port and dot segments, and puts `/` for an empty path; here percent-encodings get
//! one form, and user information and fragment go, since neither names another object.
//!
//! A key is for comparing. It is never requested: servers may tell spellings apart, so what is
//! requested is the URL as it was found. What only looks alike has keys of its own: another order
//! of a query, an empty query (`/a?`), a slash at the end, `index.html`, a leading `www.`.
//!
//! Sans-I/O.

use url::{Position, Url};

use crate::percent;

/// Longest URL that is gathered, in bytes. Servers are advised to take 8,000 (RFC 9110 §4.1).
pub const URL_BYTES_MAX: usize = 8_000;

/// Returns the key of a URL. It is a URL too, and its own key.
///
/// The key of a URL without a host (`mailto:`) is its text without the fragment.
pub fn key(url: &Url) -> String {
    let end = url.fragment().map_or(url.as_str().len(), |it| url.as_str().len() - it.len() - 1);
    let Some(host) = url.host_str() else {
        return url.as_str().get(..end).unwrap_or_default().trim_end().to_owned();
    };
    let mut key = String::with_capacity(url.as_str().len());
    key.push_str(url.scheme());
    key.push_str("://");
    key.push_str(host);
    if let Some(port) = url.port() {
        key.push(':');
        key.push_str(&port.to_string());
    }
    percent::normalize(url.path().as_bytes(), |_| false, &mut key);
    if let Some(query) = url.query() {
        key.push('?');
        percent::normalize(query.as_bytes(), |_| false, &mut key);
    }
    key
}

/// Returns scheme, name and port of a URL, as text. The rules of browsers know no origins of the schemes that
/// they do not know, so that they do not do.
pub fn origin(url: &Url) -> String {
    let front = &url[Position::BeforeScheme..Position::AfterScheme];
    [front, "://", &url[Position::BeforeHost..Position::AfterPort]].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(url: &str, expected: &str) {
        assert_eq!(key(&Url::parse(url).unwrap()), expected, "{url}");
    }

    #[test]
    fn spellings_of_one_url_have_one_key() {
        for url in [
            "http://example.com/~a/b?c=%C3%A9",
            "HTTP://EXAMPLE.com/~a/b?c=%C3%A9",
            "http://example.com:80/~a/b?c=%C3%A9",
            "http://example.com:/~a/b?c=%C3%A9",
            "http://example.com/x/../~a/./b?c=%C3%A9",
            "http://example.com/x/%2e%2E/~a/b?c=%C3%A9",
            "http://example.com/%7Ea/%62?c=%c3%a9",
            "http://example.com/~a/b?c=é",
            "http://example.com/~a/b?c=%C3%A9#d",
            "http://u:p@example.com/~a/b?c=%C3%A9",
            "http:\\\\example.com\\~a\\b?c=%C3%A9",
            " http://exa\nmple.com/~a/b?c=%C3%A9 ",
        ] {
            check(url, "http://example.com/~a/b?c=%C3%A9");
        }
        check("http://example.com", "http://example.com/");
        check("http://example.com?", "http://example.com/?");
        check("http://Bücher.example/", "http://xn--bcher-kva.example/");
        check("https://example.com:443/#", "https://example.com/");
        check("https://example.com:80/", "https://example.com:80/");
        check("http://[::0:1]/", "http://[::1]/");
        check("http://0x7f.1/", "http://127.0.0.1/");
        check("ftp://example.com:21/a;type=i", "ftp://example.com/a;type=i");
        check("mailto:A@b.example#c", "mailto:A@b.example");
    }

    #[test]
    fn what_only_looks_alike_has_keys_of_its_own() {
        for (one, other) in [
            ("http://h/a", "http://h/a?"),
            ("http://h/a", "http://h/a/"),
            ("http://h/a", "http://h/A"),
            ("http://h/a?b&c", "http://h/a?c&b"),
            ("http://h/a%2Fb", "http://h/a/b"),
            ("http://h/a%3Fb", "http://h/a?b"),
            ("http://h/a+b", "http://h/a%20b"),
            ("http://h/a%26b", "http://h/a&b"),
            ("http://h/a", "https://h/a"),
            ("http://h/", "http://www.h/"),
            ("http://h//a", "http://h/a"),
        ] {
            let keys = [one, other].map(|it| key(&Url::parse(it).unwrap()));
            assert_ne!(keys[0], keys[1]);
        }
    }

    /// Returns texts that are URLs more often than not, with what normal forms must survive.
    fn texts() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[a-zA-Z0-9._~-]{1,4}",
            "%[0-9a-fA-F]{2}",
            "%[0-9a-f]?",
            Just("%2e".to_owned()),
            Just("..".to_owned()),
            "[/?#&=;:@!$*+,'()|^`{} é]",
        ];
        let scheme = prop_oneof!["https?", "HTTP", "ftp", "[a-z]{1,3}", Just("mailto".to_owned())];
        let host = "(//|/|)([a-zA-Z.]{1,8}|\\[::1\\]|1.2.3)(:[0-9]{0,3})?";
        (scheme, host, prop::collection::vec(piece, 0..12))
            .prop_map(|(scheme, host, path)| format!("{scheme}:{host}/{}", path.concat()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_key_is_a_url_and_its_own_key(text in texts()) {
            if let Ok(url) = Url::parse(&text) {
                let one = key(&url);
                let again = Url::parse(&one);
                prop_assert!(again.is_ok(), "{} has the key {}", url, one);
                let again = again.unwrap();
                prop_assert_eq!(key(&again), &one[..]);
                // The parser leaves a key as it is.
                prop_assert_eq!(again.as_str(), &one[..]);
            }
        }

        #[test]
        fn a_key_names_the_same_host_and_no_secret(text in texts()) {
            if let Ok(url) = Url::parse(&text) && let Ok(again) = Url::parse(&key(&url)) {
                prop_assert_eq!(url.host(), again.host());
                prop_assert_eq!(url.port_or_known_default(), again.port_or_known_default());
                prop_assert!(again.fragment().is_none());
                if url.has_host() {
                    prop_assert!(again.username().is_empty() && again.password().is_none());
                }
            }
        }
    }
}
