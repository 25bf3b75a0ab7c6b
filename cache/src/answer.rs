//! Answers: what a client gets of what is stored, of what flows, and when nothing comes.
//!
//! Source: RFC 9110 §14 (parts), §15.4.5 (304); RFC 9111 §4.3.2, §5.1; RFC 9211.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use net::body::{self, Body};
use net::clock;

use crate::content::Content;
use crate::fetch::Failure;
use crate::policy::hops;
use crate::policy::range::{self, Part};
use crate::policy::status::{Source, cache_status};
use crate::policy::storing::Head;
use crate::policy::validation::{continues, has_already};
use crate::request::Asked;
use crate::transfer::Reader;

/// Name of the header that says how an answer came about.
pub(crate) const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// Headers that describe a body, which a 304 does not have.
const OF_BODY: [HeaderName; 5] = [
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_RANGE,
];

/// What makes answers, by the cache's name.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    name: Arc<str>,
    via: HeaderValue,
}

/// A body, as far as it can be cut.
enum Cuttable {
    Stored(Content),
    Flowing(Reader),
}

impl Answers {
    pub(crate) fn new(name: &str) -> Self {
        let via = HeaderValue::try_from(format!("1.1 {name}"));
        // The settings allow no other names than those that fit.
        Self { name: name.into(), via: via.unwrap_or(HeaderValue::from_static("1.1 harvest")) }
    }

    /// Returns the name in `Via`.
    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Answers with a stored object.
    pub(crate) fn stored(
        &self,
        asked: &Asked,
        head: Head,
        body: &Content,
        source: Source,
    ) -> Response<Body> {
        let content = Cuttable::Stored(body.clone());
        self.of(asked, head, (content, Some(body.len())), source)
    }

    /// Answers with an object as it arrives.
    pub(crate) fn flowing(
        &self,
        asked: &Asked,
        head: Head,
        (reader, length): (Reader, Option<u64>),
        source: Source,
    ) -> Response<Body> {
        self.of(asked, head, (Cuttable::Flowing(reader), length), source)
    }

    fn of(
        &self,
        asked: &Asked,
        head: Head,
        (content, length): (Cuttable, Option<u64>),
        source: Source,
    ) -> Response<Body> {
        let is_get = asked.method == Method::GET;
        let has_already = has_already(&asked.headers, &head);
        let is_cut = is_get && head.status == StatusCode::OK && continues(&asked.headers, &head);
        let extent = head.extent();
        let mut headers = head.headers;
        let age = head.terms.age(clock::now_ms());
        if matches!(source, Source::Hit { .. }) || age != 0 {
            headers.insert(header::AGE, HeaderValue::from(age));
        }
        self.mark(&mut headers, source);
        if has_already {
            OF_BODY.iter().for_each(|it| drop(headers.remove(it)));
            return whole(StatusCode::NOT_MODIFIED, headers, body::empty());
        }
        if let Some(extent) = extent {
            let part = if is_get { extent.asked(&asked.headers) } else { None };
            return match part {
                Some(part) => partial(headers, content, (part, extent.part.start), extent.length),
                // As it came.
                None => whole(head.status, headers, content.body()),
            };
        }
        let wanted = match length {
            Some(length) if is_cut => range::asked(&asked.headers, length),
            _ => range::Asked::Whole,
        };
        match (wanted, length) {
            (range::Asked::Part(part), Some(length)) => {
                partial(headers, content, (part, 0), length)
            }
            (range::Asked::Nothing, Some(length)) => {
                let mut headers = self.own_headers(source);
                insert(&mut headers, header::CONTENT_RANGE, &format!("bytes */{length}"));
                insert(&mut headers, header::CONTENT_LENGTH, "0");
                whole(StatusCode::RANGE_NOT_SATISFIABLE, headers, body::empty())
            }
            _ => {
                if let Some(length) = length {
                    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
                }
                let body = if is_get { content.body() } else { body::empty() };
                whole(head.status, headers, body)
            }
        }
    }

    /// Answers with what came from an origin for one client alone.
    pub(crate) fn passed(
        &self,
        status: StatusCode,
        mut headers: HeaderMap,
        body: Body,
        source: Source,
    ) -> Response<Body> {
        hops::remove(&mut headers);
        self.mark(&mut headers, source);
        whole(status, headers, body)
    }

    /// Answers that nothing came.
    pub(crate) fn failed(
        &self,
        asked: &Asked,
        failure: &Failure,
        source: Source,
    ) -> Response<Body> {
        let (status, message) = match failure {
            Failure::Stopping => {
                (StatusCode::SERVICE_UNAVAILABLE, "the cache stops: come again".to_owned())
            }
            Failure::Origin(error) => (status_of(error), message_of(error)),
        };
        let text = format!("{} was not fetched: {message}", asked.object.url);
        self.refused(status, &text, Some(source))
    }

    /// Answers with a message of the cache's own.
    pub(crate) fn refused(
        &self,
        status: StatusCode,
        message: &str,
        source: Option<Source>,
    ) -> Response<Body> {
        let mut headers = source.map(|it| self.own_headers(it)).unwrap_or_default();
        insert(&mut headers, header::CONTENT_TYPE, "text/plain; charset=utf-8");
        insert(&mut headers, header::CACHE_CONTROL, "no-store");
        whole(status, headers, body::full(format!("{message}\n")))
    }

    fn own_headers(&self, source: Source) -> HeaderMap {
        let mut headers = HeaderMap::new();
        insert(&mut headers, header::DATE, &net::client::http_date_of(clock::now_ms() / 1_000));
        self.mark(&mut headers, source);
        headers
    }

    /// Says that the answer has been here, and how it came about.
    fn mark(&self, headers: &mut HeaderMap, source: Source) {
        headers.append(header::VIA, self.via.clone());
        if let Ok(value) = HeaderValue::try_from(cache_status(&self.name, source)) {
            headers.append(CACHE_STATUS, value);
        }
    }
}

impl Cuttable {
    fn body(self) -> Body {
        match self {
            Self::Stored(content) => content.part(Part { start: 0, end: content.len() }),
            Self::Flowing(reader) => body::boxed(reader),
        }
    }

    fn part(self, part: Part) -> Body {
        match self {
            Self::Stored(content) => content.part(part),
            Self::Flowing(reader) => body::boxed(reader.part(part.start, part.end)),
        }
    }
}

/// Returns the message that says why nothing came, with the cache's own setting.
pub(crate) fn message_of(error: &net::Error) -> String {
    match error {
        net::Error::Refused { host, address, refusal } => format!(
            "{host} is at {address}, {refusal}; if that is meant, set allow_private = true in [access] of \
             cache.toml"
        ),
        error => error.to_string(),
    }
}

/// Returns the status that says why nothing came.
pub(crate) fn status_of(error: &net::Error) -> StatusCode {
    match error {
        net::Error::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
        net::Error::Refused { .. } | net::Error::PrivateName { .. } => StatusCode::FORBIDDEN,
        net::Error::Url { .. } => StatusCode::BAD_REQUEST,
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// Answers with a part of an object of `length` bytes, whose content is there from `from` on.
fn partial(
    mut headers: HeaderMap,
    content: Cuttable,
    (Part { start, end }, from): (Part, u64),
    length: u64,
) -> Response<Body> {
    let range = format!("bytes {start}-{}/{length}", end - 1);
    insert(&mut headers, header::CONTENT_RANGE, &range);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(end - start));
    let part = Part { start: start - from, end: end - from };
    whole(StatusCode::PARTIAL_CONTENT, headers, content.part(part))
}

fn whole(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(name, value);
    }
}
