//! Requests to the feed, and its refusals.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use net::body::{self, Body};

use super::WAIT_SECS_MAX;
use crate::change::{Epoch, Version};
use crate::log::holes::Holes;
use crate::member;
use crate::wire::{ACCEPT_FORMAT, FORMAT, PURGED, set_missing, value};

/// Time after which a consumer at a hole should ask again, in seconds.
const RETRY_SECS: u64 = 15;

/// The parameters of a request to the feed.
pub(super) struct Query {
    /// The consumer's version; `None` if the request lacks the serial or the epoch.
    pub(super) version: Option<Version>,
    pub(super) wait: Duration,
}

impl Query {
    pub(super) fn parse(query: &str) -> Result<Self, Refusal> {
        let bad = |message: String| Refusal::new(StatusCode::BAD_REQUEST, message);
        let (mut since, mut epoch, mut wait) = (None, None, 0);
        for pair in query.split('&').filter(|it| !it.is_empty()) {
            let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
            let number = || {
                text.parse::<u64>()
                    .map_err(|_error| bad(format!("{name}={text} is not a number from 0")))
            };
            match name {
                "since" => since = Some(number()?),
                "wait" => wait = number()?.min(WAIT_SECS_MAX),
                "epoch" => {
                    let parsed = text.parse::<Epoch>();
                    epoch = Some(parsed.map_err(|error| bad(error.to_string()))?);
                }
                // An unknown parameter may be a filter, so it must not be ignored.
                _ => {
                    return Err(bad(format!(
                        "the parameter {name} is unknown; since, epoch and wait are known"
                    )));
                }
            }
        }
        let version = match (epoch, since) {
            (Some(epoch), Some(serial)) => Some(Version { epoch, serial }),
            _ => None,
        };
        Ok(Self { version, wait: Duration::from_secs(wait) })
    }
}

/// Returns the serial of the last purge that the consumer knows, if the request has one.
pub(super) fn purged(headers: &HeaderMap) -> Option<u64> {
    headers.get(PURGED)?.to_str().ok()?.trim().parse().ok()
}

/// Checks that this server has one of the formats that the request accepts.
pub(super) fn negotiate(headers: &HeaderMap) -> Result<(), Refusal> {
    let accepted: Vec<_> =
        headers.get_all(ACCEPT_FORMAT).iter().map(HeaderValue::as_bytes).collect();
    if accepted.is_empty() {
        return Ok(());
    }
    let spoken = member::FORMAT;
    let accepted = accepted.join(&b", "[..]);
    let accepted = String::from_utf8_lossy(&accepted);
    if accepted.split(',').any(|it| it.trim().parse() == Ok(spoken)) {
        return Ok(());
    }
    let message = format!("this server has format {spoken}, not {accepted}");
    Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, message))
}

pub(super) fn text(status: StatusCode, message: impl Into<String>) -> Response<Body> {
    let message = message.into() + "\n";
    let mut response = Response::new(body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CONTENT_LENGTH, value(message.len()));
    *response.body_mut() = body::full(message);
    response
}

/// An answer that refuses the request.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    message: String,
    missing: Holes,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), missing: Holes::default() }
    }

    /// Makes the answer to a consumer whose version is just before a hole.
    pub(super) fn missing(holes: &Holes) -> Self {
        let message =
            format!("the changes {holes} are damaged here and are being replaced; ask again");
        Self { missing: holes.clone(), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    pub(super) fn response(self) -> Response<Body> {
        let mut response = text(self.status, self.message);
        let headers = response.headers_mut();
        set_missing(headers, &self.missing);
        if self.status == StatusCode::NOT_ACCEPTABLE {
            headers.insert(FORMAT, value(member::FORMAT));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, value(RETRY_SECS));
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: Result<(Option<&str>, u64), StatusCode>) {
        let parsed = Query::parse(query);
        let parsed = parsed.map(|it| (it.version.map(|it| it.to_string()), it.wait.as_secs()));
        let expected = expected.map(|(version, wait)| (version.map(str::to_owned), wait));
        assert_eq!(parsed.map_err(|it| it.status), expected, "{query}");
    }

    #[test]
    fn a_query_is_parsed_or_refused() {
        check("", Ok((None, 0)));
        check("since=7&epoch=00000000000000ff&wait=5", Ok((Some("00000000000000ff-7"), 5)));
        check("wait=600&since=7", Ok((None, 60)));
        check("epoch=00000000000000ff", Ok((None, 0)));
        for bad in ["since=-1", "since=", "epoch=ff", "wait=x", "q=title:x", "since"] {
            check(bad, Err(StatusCode::BAD_REQUEST));
        }
    }

    #[test]
    fn one_common_format_is_enough() {
        let asks = |text: &'static str| {
            let headers = HeaderMap::from_iter([(ACCEPT_FORMAT, HeaderValue::from_static(text))]);
            negotiate(&headers).map_err(|it| it.message)
        };
        assert!(negotiate(&HeaderMap::new()).is_ok());
        assert_eq!(asks("1"), Ok(()));
        assert_eq!(asks("3, 2,1"), Ok(()));
        assert_eq!(asks("2, 3"), Err("this server has format 1, not 2, 3".to_owned()));
        assert!(asks("").is_err());
        let lines = ["2", "1"].map(|it| (ACCEPT_FORMAT, HeaderValue::from_static(it)));
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, value);
        }
        assert!(negotiate(&headers).is_ok());
    }
}
