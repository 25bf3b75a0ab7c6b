//! Answers to requests of the client: the head, and the body as it comes in.

pub mod coding;
pub mod digest;

use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body::Body as _;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::body::{self, Body};
use crate::client::Shared;
use crate::clock;
use crate::connect::authority;
use crate::error::{Error, Stage};
use crate::guard;
use crate::pool::Destination;
use crate::session::Session;
use crate::wire::PROGRESS_BYTES_MIN;

/// Maximum number of bytes of a refusal's body that are read for its message.
const MESSAGE_BYTES_MAX: u64 = 4 * 1024;

/// Maximum number of characters of that message that an error quotes.
const MESSAGE_CHARS_MAX: usize = 200;

/// Longest `Retry-After` that is obeyed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// An answer whose body is still to come. Dropping it before the body's end closes the connection.
#[derive(Debug)]
pub struct Response {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// The URL that answered: the last one after redirects.
    pub url: Url,
    address: Option<IpAddr>,
    body: Incoming,
    /// The connection that the body comes over, until its end.
    live: Option<(Session, Destination)>,
    shared: Arc<Shared>,
    /// A permit for one of the client's connections; held as long as the answer exists.
    permit: Option<OwnedSemaphorePermit>,
    /// Longest total time of waiting for each [`PROGRESS_BYTES_MIN`].
    idle: Duration,
    /// Time for which the peer has kept us waiting for the present 16 KiB of the body.
    waited: Duration,
    /// Number of bytes of these 16 KiB that have come.
    moved: u64,
    /// Deadline of the whole exchange, and the time-out from which it was computed.
    deadline: Option<(Instant, Duration)>,
    received: u64,
    bytes_max: u64,
}

impl Response {
    pub(crate) fn new(
        head: http::Response<Incoming>,
        url: Url,
        session: Session,
        destination: Destination,
        shared: Arc<Shared>,
        idle: Duration,
        bytes_max: u64,
    ) -> Self {
        let (parts, body) = head.into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            url,
            address: session.address,
            body,
            live: Some((session, destination)),
            shared,
            permit: None,
            idle,
            waited: Duration::ZERO,
            moved: 0,
            deadline: None,
            received: 0,
            bytes_max,
        }
    }

    pub(crate) fn begin(
        mut self,
        permit: OwnedSemaphorePermit,
        deadline: Option<(Instant, Duration)>,
    ) -> Self {
        self.permit = Some(permit);
        self.deadline = deadline;
        self
    }

    /// Returns a header's value; `None` if it is missing or not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the address of the host that answered; `None` behind a proxy, whose own address says
    /// nothing of the host.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Returns whether the host is in a private network or on this machine; behind a proxy, as far
    /// as its name tells.
    pub fn is_private(&self) -> bool {
        guard::is_inside(self.address, self.url.host())
    }

    /// Returns how many bytes of the body have been handed out.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns this answer if its status is 2xx.
    ///
    /// # Errors
    ///
    /// [`Error::Status`] with the beginning of the peer's message.
    pub async fn require_success(self) -> Result<Self, Error> {
        if self.status.is_success() { Ok(self) } else { Err(self.into_error().await) }
    }

    /// Returns this answer as an error, with the beginning of the peer's message.
    pub async fn into_error(mut self) -> Error {
        self.bytes_max = MESSAGE_BYTES_MAX;
        let mut text = Vec::new();
        // If the message cannot be read, the error has none.
        while let Ok(Some(piece)) = self.chunk().await {
            text.extend_from_slice(&piece);
        }
        let text = String::from_utf8_lossy(&text);
        let text = if text.trim_start().starts_with('<') { "" } else { text.trim() };
        let line = text.lines().next().unwrap_or_default();
        let visible = line.chars().filter(|it| !it.is_control());
        Error::Status {
            status: self.status,
            message: visible.take(MESSAGE_CHARS_MAX).collect(),
            retry_after: retry_after(&self.headers, clock::now_ms()),
            url: self.url.into(),
        }
    }

    /// Returns the body's next piece, `None` at its end.
    ///
    /// # Errors
    ///
    /// The body broke off, took too long or is too large. The pieces before are good.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let announced = self.received.saturating_add(self.body.size_hint().lower());
        if self.bytes_max < announced {
            return Err(self.fail(|url, it| Error::TooLarge { url, bytes_max: it.bytes_max }));
        }
        loop {
            let Some((session, _)) = &mut self.live else { return Ok(None) };
            let body = &mut self.body;
            let begun = Instant::now();
            let idle_end = begun + self.idle.saturating_sub(self.waited);
            let end = self.deadline.map_or(idle_end, |(end, _)| end.min(idle_end));
            let frame = timeout_at(end, poll_fn(|cx| session.poll_frame(body, cx))).await;
            let data = match frame {
                Err(_) => return Err(self.timeout()),
                Ok(None) => {
                    self.finish().await;
                    return Ok(None);
                }
                Ok(Some(Err(source))) => {
                    let source = source.into();
                    return Err(self.fail(|url, it| Error::Cut {
                        url,
                        received: it.received,
                        source,
                    }));
                }
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            };
            self.waited += begun.elapsed();
            self.moved += u64::try_from(data.len()).unwrap_or(u64::MAX);
            if PROGRESS_BYTES_MIN <= self.moved {
                (self.moved, self.waited) = (0, Duration::ZERO);
            }
            // Trailers and empty pieces are of no use to the caller.
            if data.is_empty() {
                continue;
            }
            self.received += u64::try_from(data.len()).unwrap_or(u64::MAX);
            if self.bytes_max < self.received {
                return Err(self.fail(|url, it| Error::TooLarge { url, bytes_max: it.bytes_max }));
            }
            return Ok(Some(data));
        }
    }

    /// Returns the rest of the body, which is read as it is sent on: a slow reader slows the host.
    #[must_use]
    pub fn into_body(self) -> Body {
        body::unfold(Box::new(self), |mut response| async {
            let piece = response.chunk().await;
            (response, piece)
        })
    }

    /// Returns the whole body.
    ///
    /// # Errors
    ///
    /// As [`chunk`](Self::chunk); more than `bytes_max` bytes are too large.
    pub async fn bytes(mut self, bytes_max: u64) -> Result<Bytes, Error> {
        self.bytes_max = self.bytes_max.min(bytes_max);
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut all = BytesMut::from(first);
        all.extend_from_slice(&second);
        while let Some(piece) = self.chunk().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    /// Returns the body as JSON.
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes) with the client's own limit, or it is not the JSON expected.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let url = self.url.to_string();
        let bytes = self.bytes(u64::MAX).await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::Json { url, message: error.to_string() })
    }

    /// Gives the connection back for the next request, if it can carry one.
    async fn finish(&mut self) {
        if let Some((mut session, destination)) = self.live.take()
            && session.is_usable().await
        {
            self.shared.keep(destination, session);
        }
        self.permit = None;
    }

    fn timeout(&mut self) -> Error {
        let (stage, after) = match self.deadline {
            Some((end, total)) if end <= Instant::now() => (Stage::Total, total),
            _ => (Stage::Idle, self.idle),
        };
        self.fail(|_, it| Error::Timeout { host: authority(&it.url), stage, after })
    }

    /// Closes the connection: its further bytes cannot be trusted.
    fn fail(&mut self, error: impl FnOnce(String, &Self) -> Error) -> Error {
        self.live = None;
        self.permit = None;
        error(self.url.to_string(), self)
    }
}

/// Reads an HTTP date (RFC 9110 §5.6.7). Returns Unix seconds.
pub fn http_date(text: &str) -> Option<u64> {
    let at = httpdate::parse_http_date(text.trim()).ok()?;
    at.duration_since(std::time::UNIX_EPOCH).ok().map(|it| it.as_secs())
}

/// Returns the HTTP date of a time in Unix seconds (RFC 9110 §5.6.7).
pub fn http_date_of(seconds: u64) -> String {
    // The year 9999 is the last that a date can name.
    let seconds = seconds.min(253_402_300_799);
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Reads `Retry-After`: seconds or a date (RFC 9110 §10.2.3). At most a day. `None`: it is missing,
/// or neither.
pub fn retry_after(headers: &HeaderMap, now_ms: u64) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let after = if is_number {
        // What does not fit is long, too.
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        Duration::from_secs(http_date(text)?).saturating_sub(Duration::from_millis(now_ms))
    };
    Some(after.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(text: &'static str, expected: Option<u64>) {
        let headers = HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(text))]);
        // One minute before the date below.
        let now_ms = 784_111_717_000;
        assert_eq!(retry_after(&headers, now_ms), expected.map(Duration::from_secs), "{text}");
    }

    #[test]
    fn reads_retry_after_as_seconds_or_date_and_believes_a_day() {
        check("120", Some(120));
        check("Sun, 06 Nov 1994 08:49:37 GMT", Some(60));
        check("Wed, 06 Nov 1974 08:49:37 GMT", Some(0));
        check("99999999", Some(86_400));
        check("99999999999999999999999", Some(86_400));
        check("-1", None);
        check("1.5", None);
        check("", None);
        check("soon", None);
        assert_eq!(retry_after(&HeaderMap::new(), 0), None);
    }
}
