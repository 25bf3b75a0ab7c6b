//! Connections of the client: hyper's two halves, driven by the future that uses them.
//!
//! No task runs a connection: the future that waits for an answer or its body drives it. A
//! connection in the pool therefore makes no progress, and is checked when it is taken out.

use std::fmt;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use crate::body::Body;
use crate::error::BoxError;
use crate::stream::Line;

/// Largest head of an answer, in bytes.
const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Maximum number of headers of an answer.
const HEADERS_MAX: usize = 200;

/// Read buffer, in bytes: the largest piece of a body.
const BUFFER_BYTES_MAX: usize = 256 * 1024;

/// Maximum number of interim responses (1xx) before an answer.
const INTERIM_MAX: usize = 100;

/// Why a request has no answer.
pub(crate) struct Unanswered {
    /// The request, if nothing of it was sent.
    pub(crate) unsent: Option<Request<Body>>,
    pub(crate) source: BoxError,
}

impl From<TrySendError<Request<Body>>> for Unanswered {
    fn from(mut error: TrySendError<Request<Body>>) -> Self {
        Self { unsent: error.take_message(), source: error.into_error().into() }
    }
}

/// A connection that can carry one request at a time.
pub(crate) struct Session {
    sender: http1::SendRequest<Body>,
    connection: Pin<Box<http1::Connection<TokioIo<Line>, Body>>>,
    closed: bool,
    /// The address of the host that it leads to; `None` behind a proxy.
    pub(crate) address: Option<IpAddr>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) async fn new(stream: Line, address: Option<IpAddr>) -> hyper::Result<Self> {
        let (sender, connection) = bounded().handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, connection: Box::pin(connection), closed: false, address })
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, Unanswered> {
        let interim = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&interim);
        hyper::ext::on_informational(&mut request, move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let mut answer = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer.map_err(Unanswered::from));
            }
            drive(&mut self.connection, &mut self.closed, cx);
            if INTERIM_MAX < interim.load(Ordering::Relaxed) {
                self.closed = true;
                let source = format!("it sends more than {INTERIM_MAX} interim responses").into();
                return Poll::Ready(Err(Unanswered { unsent: None, source }));
            }
            answer.as_mut().poll(cx).map_err(Unanswered::from)
        })
        .await
    }

    /// Returns the next frame of the body of an answer that came over this connection.
    pub(crate) fn poll_frame(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        if let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        drive(&mut self.connection, &mut self.closed, cx);
        Pin::new(body).poll_frame(cx)
    }

    /// Returns whether the connection can carry another request, as far as this end knows.
    pub(crate) async fn is_usable(&mut self) -> bool {
        poll_fn(|cx| {
            drive(&mut self.connection, &mut self.closed, cx);
            Poll::Ready(!self.closed && self.sender.is_ready())
        })
        .await
    }
}

/// Returns how connections begin: with bounds on what the peer sends.
pub(crate) fn bounded() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.max_header_size(HEADER_BYTES_MAX).max_headers(HEADERS_MAX);
    builder.max_buf_size(BUFFER_BYTES_MAX);
    builder
}

/// Moves a connection on. Its error reaches the caller that waits for the answer.
fn drive(
    connection: &mut Pin<Box<http1::Connection<TokioIo<Line>, Body>>>,
    closed: &mut bool,
    cx: &mut Context<'_>,
) {
    if !*closed && connection.as_mut().poll(cx).is_ready() {
        *closed = true;
    }
}
