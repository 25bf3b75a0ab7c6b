//! Going on with an answer that broke off: the rest alone is asked for.
//!
//! Source: RFC 9110 §13.1.5 (`If-Range`), §14 (ranges), §15.3.7 (206).
//!
//! Sans-I/O.

use http::{HeaderMap, HeaderValue, StatusCode, header};

/// How often one answer is gone on with.
pub(super) const TIMES_MAX: u32 = 3;

/// An answer whose front is there.
#[derive(Debug)]
pub(super) struct Front {
    etag: HeaderValue,
    got: usize,
    length: usize,
}

impl Front {
    /// Returns the front of an answer of which `got` bytes have come. `None`: the rest cannot be asked for, because
    /// the host has no ranges or no strong validator, or the bytes are those of a coding.
    pub(super) fn of((status, headers): (StatusCode, &HeaderMap), got: usize) -> Option<Self> {
        let text = |name| headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
        let ranges = text(header::ACCEPT_RANGES)?;
        let has_ranges = ranges.split(',').any(|it| it.trim().eq_ignore_ascii_case("bytes"));
        let is_plain = !headers.contains_key(header::CONTENT_ENCODING);
        let etag = headers.get(header::ETAG).filter(|it| it.as_bytes().starts_with(b"\""))?;
        let length = text(header::CONTENT_LENGTH)?.parse().ok()?;
        let is_front = status == StatusCode::OK && 0 < got && got < length;
        (is_front && has_ranges && is_plain).then(|| Self { etag: etag.clone(), got, length })
    }

    /// Makes a request for the whole one for the rest: of the same content, as it is stored.
    pub(super) fn ask(&self, headers: &mut HeaderMap) {
        headers.remove(header::IF_NONE_MATCH);
        headers.remove(header::IF_MODIFIED_SINCE);
        let range = HeaderValue::try_from(format!("bytes={}-", self.got));
        headers.extend(range.ok().map(|it| (header::RANGE, it)));
        headers.insert(header::IF_RANGE, self.etag.clone());
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }

    /// Returns whether an answer is the rest of this front.
    pub(super) fn goes_on(&self, (status, headers): (StatusCode, &HeaderMap)) -> bool {
        let range = format!("bytes {}-{}/{}", self.got, self.length - 1, self.length);
        let is = |name, expected: &[u8]| {
            headers.get(name).is_some_and(|it: &HeaderValue| it.as_bytes() == expected)
        };
        status == StatusCode::PARTIAL_CONTENT
            && is(header::CONTENT_RANGE, range.as_bytes())
            && is(header::ETAG, self.etag.as_bytes())
            && !headers.contains_key(header::CONTENT_ENCODING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &'static str) -> HeaderMap {
        let pair = |line: &'static str| {
            let (name, value) = line.split_once(": ").unwrap();
            (http::HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        text.split('\n').filter(|it| !it.is_empty()).map(pair).collect()
    }

    const WHOLE: &str = "accept-ranges: bytes\netag: \"a\"\ncontent-length: 10";

    fn front(status: u16, text: &'static str, got: usize) -> Option<Front> {
        Front::of((StatusCode::from_u16(status).unwrap(), &headers(text)), got)
    }

    #[test]
    fn only_plain_content_with_a_strong_validator_can_be_gone_on_with() {
        assert!(front(200, WHOLE, 4).is_some());
        assert!(front(206, WHOLE, 4).is_none() && front(404, WHOLE, 4).is_none());
        assert!(front(200, WHOLE, 0).is_none() && front(200, WHOLE, 10).is_none());
        for other in [
            "etag: \"a\"\ncontent-length: 10",
            "accept-ranges: none\netag: \"a\"\ncontent-length: 10",
            "accept-ranges: bytes\netag: W/\"a\"\ncontent-length: 10",
            "accept-ranges: bytes\ncontent-length: 10\nlast-modified: Fri, 02 Jan 2026 00:00:00 GMT",
            "accept-ranges: bytes\netag: \"a\"",
            "accept-ranges: bytes\netag: \"a\"\ncontent-length: 10\ncontent-encoding: gzip",
        ] {
            assert!(front(200, other, 4).is_none(), "{other}");
        }
    }

    #[test]
    fn only_the_rest_of_the_same_content_goes_on() {
        let front = front(200, WHOLE, 4).unwrap();
        let mut asked = headers("if-none-match: \"z\"\naccept-encoding: gzip");
        front.ask(&mut asked);
        assert_eq!(asked, headers("range: bytes=4-\nif-range: \"a\"\naccept-encoding: identity"));
        let is = |status: u16, text| {
            front.goes_on((StatusCode::from_u16(status).unwrap(), &headers(text)))
        };
        assert!(is(206, "content-range: bytes 4-9/10\netag: \"a\""));
        assert!(!is(200, "content-range: bytes 4-9/10\netag: \"a\""));
        assert!(!is(206, "content-range: bytes 4-9/10\netag: \"b\""));
        assert!(!is(206, "content-range: bytes 4-9/10"));
        assert!(!is(206, "content-range: bytes 3-9/10\netag: \"a\""));
        assert!(!is(206, "content-range: bytes 4-8/10\netag: \"a\""));
        assert!(!is(206, "content-range: bytes 4-9/10\netag: \"a\"\ncontent-encoding: gzip"));
    }
}
