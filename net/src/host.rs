//! Host names: `host:port` in text and headers, the rule of the `Host` header, and URLs below a
//! base with a path.
//!
//! Source: RFC 9112 §3.2 (a request has exactly one `Host`; a target that is a whole URL takes
//! precedence), RFC 3986 §3.2.2.
//!
//! Sans-I/O.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use http::{HeaderMap, Uri, Version, header};
use url::Url;

/// Longest host name, in bytes (RFC 1035 §2.3.4).
pub const HOST_BYTES_MAX: usize = 255;

/// A host, with or without a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// The host in lower case: a name, an IPv4 address, or an IPv6 address in brackets.
    pub host: String,
    /// The port, where one is given.
    pub port: Option<u16>,
}

impl HostPort {
    /// Returns the host and port that `text` names, or `None` if it is not valid.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                address.parse::<Ipv6Addr>().ok()?;
                let port = match rest.split_once(':') {
                    Some(("", port)) => Some(port),
                    None if rest.is_empty() => None,
                    _ => return None,
                };
                (format!("[{address}]"), port)
            }
            None => {
                let (host, port) = match text.split_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (text, None),
                };
                if !is_name(host) {
                    return None;
                }
                (host.to_owned(), port)
            }
        };
        let port = match port {
            // "host:" is allowed (RFC 3986 §3.2.3) and means the default port.
            None | Some("") => None,
            Some(digits) if digits.bytes().all(|it| it.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            Some(_) => return None,
        };
        Some(Self { host: host.to_ascii_lowercase(), port })
    }

    /// Returns whether the host names this machine: `localhost`, a name below it (RFC 6761 §6.3),
    /// or a loopback address.
    pub fn is_loopback(&self) -> bool {
        let host = self.host.as_str();
        let is_v6 = |it: &str| it.parse::<Ipv6Addr>().is_ok_and(|it| it.is_loopback());
        host == "localhost"
            || host.ends_with(".localhost")
            || host.parse::<Ipv4Addr>().is_ok_and(|it| it.is_loopback())
            || host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).is_some_and(is_v6)
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

/// Returns whether `host` is a name as in DNS; underscores are allowed because some networks use
/// them.
fn is_name(host: &str) -> bool {
    let allowed = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-' | b'_');
    (1..=HOST_BYTES_MAX).contains(&host.len()) && host.bytes().all(allowed)
}

/// Fault of a request's `Host`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostProblem {
    /// It is missing; HTTP/1.1 requires one.
    Missing,
    /// There are several.
    Repeated,
    /// It is not a host.
    Invalid,
}

impl fmt::Display for HostProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "the request has no Host header",
            Self::Repeated => "the request has several Host headers",
            Self::Invalid => "the request does not name a host: see its Host header and its target",
        })
    }
}

/// Returns the host that a request names. A target that is a whole URL takes precedence over `Host`
/// (RFC 9112 §3.2.2). `None`: HTTP/1.0 without a host.
///
/// # Errors
///
/// The header is missing, repeated or not a host, or the target's host is invalid. The caller
/// answers 400 and closes the connection.
pub fn of_request(
    target: &Uri,
    headers: &HeaderMap,
    version: Version,
) -> Result<Option<HostPort>, HostProblem> {
    if is_news(target) {
        // It has no host, and its `Host` is empty (RFC 9112 §3.2).
        return Ok(None);
    }
    let named = of_headers(headers, version)?;
    match of_target(target) {
        Some(it) => HostPort::parse(it).map(Some).ok_or(HostProblem::Invalid),
        None => Ok(named),
    }
}

/// Returns the host of a target that is a whole URL, with its port; of `ftp` without the name and
/// password, which other URLs must not have.
pub(crate) fn of_target(target: &Uri) -> Option<&str> {
    let authority = target.authority().filter(|_| !is_news(target))?.as_str();
    let is_ftp = target.scheme_str().is_some_and(|it| it.eq_ignore_ascii_case("ftp"));
    let host = authority.rsplit_once('@').filter(|_| is_ftp).map(|it| it.1);
    Some(host.unwrap_or(authority))
}

/// Returns whether a target is a `news` URL, which reads like a host and a port.
fn is_news(target: &Uri) -> bool {
    let authority = target.authority().filter(|_| target.scheme().is_none());
    authority.and_then(|it| it.as_str().get(..5)).is_some_and(|it| it.eq_ignore_ascii_case("news:"))
}

fn of_headers(headers: &HeaderMap, version: Version) -> Result<Option<HostPort>, HostProblem> {
    let mut values = headers.get_all(header::HOST).iter();
    let Some(value) = values.next() else {
        return if version < Version::HTTP_11 { Ok(None) } else { Err(HostProblem::Missing) };
    };
    if values.next().is_some() {
        return Err(HostProblem::Repeated);
    }
    let text = value.to_str().ok().and_then(HostPort::parse);
    text.map(Some).ok_or(HostProblem::Invalid)
}

/// Returns the URL of `path` below `base`, which counts as a folder whether or not it ends in a
/// slash: `http://h/harvest` and `feed` give `http://h/harvest/feed`. `path` may carry a query and
/// is relative even if it begins with a slash. The base's own query and fragment are dropped.
pub fn join(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    };
    let folder = base.path().trim_end_matches('/');
    url.set_path(&format!("{folder}/{}", path.trim_start_matches('/')));
    url.set_query(query);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Option<(&str, Option<u16>)>) {
        let expected = expected.map(|(host, port)| HostPort { host: host.to_owned(), port });
        assert_eq!(HostPort::parse(text), expected, "{text:?}");
    }

    #[test]
    fn parses_hosts_with_and_without_ports() {
        check("Example.ORG", Some(("example.org", None)));
        check("example.org:8500", Some(("example.org", Some(8500))));
        check("example.org:", Some(("example.org", None)));
        check("127.0.0.1:1", Some(("127.0.0.1", Some(1))));
        check("[::1]", Some(("[::1]", None)));
        check("[2001:DB8::1]:80", Some(("[2001:db8::1]", Some(80))));
        for bad in
            ["", ":80", "a b", "a:99999", "a:+8", "::1", "[::1", "[::1]x", "[x]", "a/b", "u@h"]
        {
            check(bad, None);
        }
        check(&"a".repeat(HOST_BYTES_MAX + 1), None);
    }

    #[test]
    fn knows_the_names_of_this_machine() {
        let is_loopback = |text: &str| HostPort::parse(text).unwrap().is_loopback();
        for own in
            ["localhost", "LOCALHOST:8501", "x.localhost", "127.0.0.1:1", "127.9.9.9", "[::1]:5"]
        {
            assert!(is_loopback(own), "{own}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]",
        ] {
            assert!(!is_loopback(other), "{other}");
        }
    }

    #[test]
    fn a_request_names_exactly_one_host() {
        let of = |values: &[&'static str], version| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::HOST, HeaderValue::from_static(value));
            }
            of_request(&Uri::from_static("/feed"), &headers, version)
        };
        assert_eq!(of(&[], Version::HTTP_10), Ok(None));
        assert_eq!(of(&[], Version::HTTP_11), Err(HostProblem::Missing));
        assert_eq!(of(&["a", "a"], Version::HTTP_11), Err(HostProblem::Repeated));
        assert_eq!(of(&["a, b"], Version::HTTP_11), Err(HostProblem::Invalid));
        assert_eq!(of(&["a:1"], Version::HTTP_11), Ok(HostPort::parse("a:1")));
    }

    #[test]
    fn a_whole_url_takes_precedence_over_the_header() {
        let of = |target: &'static str, headers: &HeaderMap| {
            of_request(&Uri::from_static(target), headers, Version::HTTP_11)
        };
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("a:1"))]);
        assert_eq!(of("http://B.example:2/feed", &headers), Ok(HostPort::parse("b.example:2")));
        assert_eq!(of("http://u@b.example/", &headers), Err(HostProblem::Invalid));
        assert_eq!(of("http://b.example/", &HeaderMap::new()), Err(HostProblem::Missing));
        assert_eq!(of("ftp://u:p@b.example:2/", &headers), Ok(HostPort::parse("b.example:2")));
        let empty = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(""))]);
        for news in ["news:comp.lang.c++", "News:1$%2Fa@b.example"] {
            assert_eq!(of(news, &empty), Ok(None), "{news}");
        }
        assert_eq!(of("http://b.example/", &empty), Err(HostProblem::Invalid));
    }

    #[test]
    fn joins_below_a_base_with_or_without_a_path() {
        let joined = |base: &str, path: &str| join(&Url::parse(base).unwrap(), path).to_string();
        assert_eq!(joined("http://h:1", "feed?since=0"), "http://h:1/feed?since=0");
        assert_eq!(joined("http://h/", "/feed"), "http://h/feed");
        assert_eq!(joined("https://h/harvest", "feed"), "https://h/harvest/feed");
        assert_eq!(
            joined("https://h/harvest/?x=1#f", "snapshot/7"),
            "https://h/harvest/snapshot/7"
        );
    }

    proptest! {
        #[test]
        fn a_displayed_host_parses_to_the_same(text in "[a-z0-9.\\[\\]:_-]{0,20}") {
            if let Some(parsed) = HostPort::parse(&text) {
                prop_assert_eq!(HostPort::parse(&parsed.to_string()), Some(parsed));
            }
        }
    }
}
