//! Failures of requests: a page for people, JSON for programs.
//!
//! Sans-I/O.

use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

/// Message to clients that need a damaged part of a collection.
pub const DAMAGED: &str =
    "a part of the collection is damaged and being replaced: come again later";

/// A request that cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// 4xx or 5xx.
    pub status: StatusCode,
    /// The heading: a few words.
    pub title: String,
    /// The fault: a sentence.
    pub message: String,
    /// The remedy: a sentence, or empty.
    pub advice: String,
}

impl Failure {
    fn new(status: StatusCode, title: &str, message: impl Into<String>, advice: &str) -> Self {
        let (title, advice) = (title.to_owned(), advice.to_owned());
        Self { status, title, message: message.into(), advice }
    }

    /// Returns 400; `message` says what is wrong with the request.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "This request cannot be read", message, "")
    }

    /// Returns 404; `what` says what is missing.
    pub fn not_found(what: impl Into<String>) -> Self {
        let advice = "It may have been moved or removed; searching for it may help.";
        Self::new(StatusCode::NOT_FOUND, "Nothing here", what, advice)
    }

    /// Returns 405: the address takes other methods.
    pub fn method_not_allowed(method: &http::Method) -> Self {
        let message = format!("This address does not take {method} requests.");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "Not this way", message, "")
    }

    /// Returns 500: a fault of this program. The cause belongs in the log, not on the page.
    pub fn internal() -> Self {
        let message = "The request could not be answered, and it is not your fault.";
        let advice = "Please try again; the cause is in the server's log.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Something went wrong", message, advice)
    }

    /// Returns the failure as the JSON of an API: `{"error":{"message"}}`.
    pub fn to_json(&self) -> Value {
        json!({ "error": { "message": self.message } })
    }
}

/// The format that a client prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// A page.
    Html,
    /// JSON.
    Json,
}

impl Wants {
    /// Decides by the path (`/api/…` is for programs), else by the `Accept` header.
    pub fn of(path: &str, headers: &HeaderMap) -> Self {
        if path.starts_with("/api/")
            || weight(headers, "text/html") < weight(headers, "application/json")
        {
            Self::Json
        } else {
            Self::Html
        }
    }
}

/// Returns the weight (RFC 9110 §12.5.1) of exactly `media` in thousandths; 0 when it is not named.
fn weight(headers: &HeaderMap, media: &str) -> u32 {
    let lists = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = lists.flat_map(|list| list.split(','));
    let weights = ranges.filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case(media) {
            return None;
        }
        let q = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        Some(q.map_or(1_000, thousandths))
    });
    weights.max().unwrap_or(0)
}

/// Reads a weight such as `0.85`; anything else counts as 0.
fn thousandths(q: &str) -> u32 {
    let (whole, fraction) = q.split_once('.').unwrap_or((q, ""));
    let digits = fraction.chars().chain("000".chars()).take(3);
    let part = digits.collect::<String>().parse::<u32>().unwrap_or(0);
    whole.parse::<u32>().map_or(0, |it| it.saturating_mul(1_000).saturating_add(part).min(1_000))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(path: &str, accept: &str, expected: Wants) {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(accept).unwrap())]);
        assert_eq!(Wants::of(path, &headers), expected, "{path} {accept}");
    }

    #[test]
    fn programs_get_json() {
        check("/api/search", "text/html", Wants::Json);
        check("/x", "application/json", Wants::Json);
        check("/x", "text/html;q=0.5, application/json", Wants::Json);
        check("/x", "application/json;q=0.8, text/html;q=0.75", Wants::Json);
    }

    #[test]
    fn people_get_pages() {
        check("/x", "", Wants::Html);
        check("/x", "*/*", Wants::Html);
        check("/x", "text/html, application/json;q=0.9", Wants::Html);
        check("/x", "application/json;q=0", Wants::Html);
        check("/x", "application/json;q=nonsense", Wants::Html);
        check("/api", "text/html", Wants::Html);
        assert_eq!(Wants::of("/", &HeaderMap::new()), Wants::Html);
    }
}
