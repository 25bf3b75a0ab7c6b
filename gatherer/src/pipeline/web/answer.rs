//! Answers: what each means for the URL that was asked for.
//!
//! Source: RFC 9110 §15 (status codes).
//!
//! Sans-I/O.

use ::crawl::frontier::Failure;
use ::crawl::walls::{self, Wall};
use http::{HeaderMap, StatusCode};
use net::client::redirect;
use url::Url;

/// The meaning of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The body is the object.
    Content,
    /// The object has not changed.
    Unchanged,
    /// The object is elsewhere.
    Moved(Url),
    /// There is no object.
    Absent(Failure),
    /// Nothing is known of the object.
    Failed(Failure),
    /// A bot wall has answered.
    Wall(Wall),
}

/// Returns what an answer means for `url`. `is_conditional` says whether the request allowed that the
/// object has not changed.
pub(super) fn meaning(
    url: &Url,
    (status, headers, body): (StatusCode, &HeaderMap, &[u8]),
    is_conditional: bool,
) -> Meaning {
    let code = status.as_u16();
    if let Some(wall) = walls::recognize(code, headers, body) {
        return Meaning::Wall(wall);
    }
    let failure = Failure::Status(code);
    match status {
        StatusCode::NOT_MODIFIED if is_conditional => Meaning::Unchanged,
        StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION => {
            if walls::is_login(code, url, body) {
                Meaning::Failed(Failure::Login)
            } else {
                Meaning::Content
            }
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => Meaning::Absent(failure),
        _ => match redirect(url, status, headers) {
            Ok(Some(to)) => Meaning::Moved(to),
            Ok(None) | Err(_) => Meaning::Failed(failure),
        },
    }
}

/// Returns the name of the object at `url` by which its type is recognized. Many pages are called by
/// the name of the program that makes them, or have none.
pub(super) fn name(url: &Url, headers: &HeaderMap) -> String {
    let last = url.path_segments().and_then(|mut it| it.next_back()).unwrap_or_default();
    let last = percent_encoding::percent_decode_str(last).decode_utf8_lossy();
    let media_type = headers.get(http::header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let media_type = media_type.and_then(|it| it.split(';').next()).unwrap_or_default().trim();
    let has = |endings: &[&str]| {
        let ending = last.rsplit_once('.').map_or("", |(_, ending)| ending);
        endings.iter().any(|it| ending.eq_ignore_ascii_case(it))
    };
    let is = |it: &str| media_type.eq_ignore_ascii_case(it);
    let missing = if is("text/html") || is("application/xhtml+xml") {
        (!has(&["html", "htm", "xhtml", "xht", "shtml"])).then_some("html")
    } else if is("application/pdf") {
        (!has(&["pdf"])).then_some("pdf")
    } else {
        None
    };
    match (last.is_empty(), missing) {
        (true, Some(ending)) => format!("index.{ending}"),
        (false, Some(ending)) => format!("{last}.{ending}"),
        (_, None) => last.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (http::HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[track_caller]
    fn check(status: u16, pairs: &[(&'static str, &str)], body: &str, expected: &Meaning) {
        let url = Url::parse("http://h.example/a/b").unwrap();
        let status = StatusCode::from_u16(status).unwrap();
        let meaning = meaning(&url, (status, &headers(pairs), body.as_bytes()), status == 304);
        assert_eq!(meaning, *expected);
    }

    #[test]
    fn every_status_has_a_meaning() {
        let failed = |status| Meaning::Failed(Failure::Status(status));
        check(200, &[], "<p>text", &Meaning::Content);
        check(304, &[], "", &Meaning::Unchanged);
        let moved = Meaning::Moved(Url::parse("http://h.example/c").unwrap());
        check(301, &[("location", "/c")], "", &moved);
        check(308, &[("location", "/c")], "", &moved);
        check(302, &[], "", &failed(302));
        check(302, &[("location", "http://[")], "", &failed(302));
        check(300, &[("location", "/c")], "", &failed(300));
        check(404, &[], "", &Meaning::Absent(Failure::Status(404)));
        check(410, &[], "", &Meaning::Absent(Failure::Status(410)));
        for status in [204, 206, 400, 401, 403, 429, 500, 503] {
            check(status, &[], "", &failed(status));
        }
        let url = Url::parse("http://h.example/").unwrap();
        let unasked = meaning(&url, (StatusCode::NOT_MODIFIED, &HeaderMap::new(), b""), false);
        assert_eq!(unasked, failed(304));
    }

    #[test]
    fn walls_and_logins_are_no_content_whatever_their_status() {
        let page = "<title>Sign in</title><form><input type=password></form>";
        check(200, &[], page, &Meaning::Failed(Failure::Login));
        let pairs = [("server", "cloudflare"), ("cf-mitigated", "challenge")];
        let url = Url::parse("http://h.example/").unwrap();
        let wall = meaning(&url, (StatusCode::FORBIDDEN, &headers(&pairs), b""), false);
        assert!(matches!(wall, Meaning::Wall(_)), "{wall:?}");
    }

    #[test]
    fn names_have_the_ending_of_their_type() {
        let check = |url: &str, media_type: &str, expected: &str| {
            let pairs = [("content-type", media_type)];
            let url = Url::parse(url).unwrap();
            assert_eq!(name(&url, &headers(&pairs)), expected, "{url}");
        };
        check("http://h/", "text/html; charset=utf-8", "index.html");
        check("http://h/a/", "TEXT/HTML", "index.html");
        check("http://h/view.php?id=3", "text/html", "view.php.html");
        check("http://h/a.HTM", "text/html", "a.HTM");
        check("http://h/download", "application/pdf", "download.pdf");
        check("http://h/a%20b.tar.gz", "application/x-gzip", "a b.tar.gz");
        check("http://h/a.c", "text/plain", "a.c");
    }
}
