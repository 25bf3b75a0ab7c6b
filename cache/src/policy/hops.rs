//! Headers of one connection, which a proxy does not pass on.
//!
//! Source: RFC 9110 §7.6.1 (`Connection`), §7.6.3 (`Via`).
//!
//! Sans-I/O.

use http::{HeaderMap, HeaderName, header};

use super::control::members;

/// Headers that are of a connection even where `Connection` does not list them.
const OF_CONNECTION: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Headers that belong to a message, whatever `Connection` lists: without them another party would
/// read another message.
const OF_MESSAGE: [HeaderName; 6] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CACHE_CONTROL,
    header::AUTHORIZATION,
    header::VIA,
];

/// Removes the headers of the connection, and those that `Connection` lists.
pub fn remove(headers: &mut HeaderMap) {
    let lines = headers.get_all(header::CONNECTION);
    let listed: Vec<HeaderName> = lines
        .iter()
        .filter_map(|it| it.to_str().ok())
        .flat_map(members)
        .filter_map(|it| it.parse().ok())
        .filter(|it| !OF_MESSAGE.contains(it))
        .collect();
    for name in listed.iter().chain(&OF_CONNECTION) {
        headers.remove(name);
    }
}

/// Returns whether `Via` names the proxy `name`: the message has been here.
pub fn has_passed(headers: &HeaderMap, name: &str) -> bool {
    let lines = headers.get_all(header::VIA).iter().filter_map(|it| it.to_str().ok());
    // A member is `protocol received-by (comment)`.
    lines.flat_map(members).any(|it| it.split_ascii_whitespace().nth(1) == Some(name))
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

    #[test]
    fn what_connection_lists_is_not_passed_on() {
        let mut seen = headers(&[
            ("connection", "X-One, close, host, Content-Length"),
            ("connection", "x-two"),
            ("x-one", "1"),
            ("x-two", "1"),
            ("x-three", "1"),
            ("te", "trailers"),
            ("host", "h"),
            ("content-length", "1"),
        ]);
        remove(&mut seen);
        let mut names: Vec<&str> = seen.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-length", "host", "x-three"]);
    }

    #[test]
    fn a_proxy_finds_itself_in_via() {
        let seen =
            headers(&[("via", "1.0 fred, 1.1 p.example (Harvest, really)"), ("via", "1.1 q")]);
        assert_eq!(
            ["fred", "p.example", "q", "Harvest", "p"].map(|it| has_passed(&seen, it)),
            [true, true, true, false, false]
        );
    }
}
