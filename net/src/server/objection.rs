//! Refusals of requests before the service sees them.

use std::fmt;

use http::{HeaderValue, Response, StatusCode, header};

use crate::body::{self, Body};
use crate::tally::Event;

/// An answer that refuses a request.
pub(super) struct Objection {
    pub(super) status: StatusCode,
    pub(super) message: String,
    /// The event to count.
    pub(super) event: Event,
}

impl Objection {
    pub(super) fn new(status: StatusCode, message: impl fmt::Display) -> Self {
        Self { status, message: format!("{message}\n"), event: Event::Refused }
    }

    pub(super) fn response(self) -> Response<Body> {
        let mut response = Response::new(body::full(self.message));
        *response.status_mut() = self.status;
        let value = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, value);
        response
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status.as_u16(), self.message.trim_end())
    }
}
