//! The HTTP/1.1 server that every daemon listens with: one place for its limits.
//!
//! Source: RFC 9112 by way of hyper, which parses. What hyper leaves to its user is here: exactly
//! one `Host`, unambiguous framing (framing.rs), bounds on heads, bodies, connections and patience
//! (wire.rs), and an end within a bounded time.
//!
//! At [`Limits::connections_max`] the server asks idle connections to close and accepts no other
//! until one is free; the newcomers wait in the system's queue. One address gets
//! [`Limits::peer_connections_max`] of them at most, so that it cannot take them all.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::Limited;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tower::{Service, ServiceExt};

use crate::body::{self, Body};
use crate::clock;
use crate::error::{BoxError, Error};
use crate::framing::Verdict;
use crate::host::{self, HostPort};
use crate::room::Room;
use crate::shutdown::Shutdown;
use crate::tally::{Event, Tally};
use crate::wire::{Exchange, Meter, Open, Wire};

/// How long requests in progress may go on after the shutdown starts.
pub const DRAIN: Duration = Duration::from_millis(1_500);

/// How long a connection on which nothing has been asked yet is not closed to make room.
const GRACE: Duration = Duration::from_millis(500);

/// Read and write buffer of a connection, in bytes; above the largest head.
const BUFFER_BYTES_MIN: usize = 64 * 1024;

/// Where a request comes from; an extension of every request that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// What a peer may ask of the server. [`Default`] suits a public listener.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest head of a request, in bytes. Default 16 KiB.
    pub header_bytes_max: usize,
    /// Most headers of a request. Default 100.
    pub headers_max: usize,
    /// Time for a whole head, from its first byte. Default 10 s.
    pub header_timeout: Duration,
    /// Largest body of a request, in bytes. Default 1 MiB.
    pub body_bytes_max: usize,
    /// Longest wait for each 16 KiB of a request's body. Default 30 s.
    pub body_timeout: Duration,
    /// Most connections at once; further ones wait to be accepted. Default 1,024.
    pub connections_max: usize,
    /// Most connections of one address (of one /64 for IPv6) at once; further ones are closed.
    /// Default 256. Where [`host`](Self::host) names a proxy, whoever comes from this machine may have
    /// more: that is the proxy. One on another machine may not.
    pub peer_connections_max: usize,
    /// Longest that a connection without a request stays open. Default 60 s.
    pub idle_timeout: Duration,
    /// A reader that keeps us waiting longer for each 16 KiB of an answer is cut off. Default 60 s.
    pub write_timeout: Duration,
    /// How long requests in progress may go on after the shutdown starts. Default [`DRAIN`].
    pub drain: Duration,
    /// A host that a listener on a loopback address answers for beside the names of the machine
    /// itself: that of a proxy in front of it. All others are refused there, so that no web page
    /// whose name was made to resolve to this machine (DNS rebinding) can read what its user can.
    /// Default none.
    pub host: Option<String>,
    /// Counts what peers do.
    pub tally: Tally,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes_max: 16 * 1024,
            headers_max: 100,
            header_timeout: Duration::from_secs(10),
            body_bytes_max: 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            connections_max: 1_024,
            peer_connections_max: 256,
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            drain: DRAIN,
            host: None,
            tally: Tally::default(),
        }
    }
}

/// Listens on `address`; port 0 takes a free one.
///
/// # Errors
///
/// The address is in use, forbidden or not this machine's; the error says what to do.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => Error::AddressInUse { address },
        io::ErrorKind::PermissionDenied => Error::AddressDenied { address },
        io::ErrorKind::AddrNotAvailable => Error::AddressNotLocal { address },
        _ => Error::Bind { address, source },
    })
}

/// Serves HTTP/1.1 until the shutdown starts, then lets requests in progress go on for at most
/// [`Limits::drain`]. An axum `Router` is such a service.
///
/// # Errors
///
/// The listener is of no further use: the caller binds anew or stops.
pub async fn serve<S, B>(
    listener: TcpListener,
    service: S,
    limits: Limits,
    shutdown: Shutdown,
) -> Result<(), Error>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let address = listener.local_addr().unwrap_or_else(|_| SocketAddr::from(([0; 4], 0)));
    let limits = Arc::new(limits);
    let room = Room::new(Arc::clone(&limits));
    let mut connections = JoinSet::new();
    let outcome = loop {
        let (stream, peer, place) = tokio::select! {
            biased;
            () = shutdown.started() => break Ok(()),
            Some(ended) = connections.join_next() => {
                report(ended);
                continue;
            }
            accepted = room.accept(&listener) => match accepted {
                Ok(accepted) => accepted,
                Err(source) => break Err(Error::Bind { address, source }),
            },
        };
        let connection = Connection {
            peer,
            loopback: address.ip().is_loopback(),
            limits: Arc::clone(&limits),
            exchange: Arc::default(),
            shed: Arc::clone(&room.shed),
            shutdown: shutdown.clone(),
        };
        let service = service.clone();
        connections.spawn(async move {
            connection.serve(stream, service).await;
            drop(place);
        });
    };
    drop(listener);
    shutdown_connections(connections, limits.drain).await;
    outcome
}

async fn shutdown_connections(mut connections: JoinSet<()>, drain: Duration) {
    let drained = timeout(drain, async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    });
    if drained.await.is_err() {
        tracing::info!(connections = connections.len(), "connections cut off at shutdown");
    }
    connections.shutdown().await;
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a request handler panicked; its connection is closed");
    }
}

struct Connection {
    peer: SocketAddr,
    /// Whether the listener is for this machine only.
    loopback: bool,
    limits: Arc<Limits>,
    exchange: Arc<Exchange>,
    shed: Arc<Notify>,
    shutdown: Shutdown,
}

impl Connection {
    async fn serve<S, B>(self, stream: TcpStream, service: S)
    where
        S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // Answers leave whole; small ones should not wait for an acknowledgment.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(peer = %self.peer, %error, "connection lost");
            return;
        }
        let wire = Wire::new(stream, Arc::clone(&self.exchange), &self.limits);
        let this = &self;
        let answer = service_fn(move |request| this.answer(request, service.clone()));
        let mut connection = pin!(
            http1::Builder::new()
                .max_buf_size(self.limits.header_bytes_max.max(BUFFER_BYTES_MIN))
                .max_header_size(self.limits.header_bytes_max)
                .max_headers(self.limits.headers_max)
                .header_read_timeout(None)
                .serve_connection(TokioIo::new(wire), answer)
        );
        let (began, mut closing) = (clock::monotonic(), false);
        loop {
            tokio::select! {
                done = connection.as_mut() => {
                    if let Err(error) = done {
                        if error.is_parse() {
                            self.limits.tally.add(Event::Malformed);
                        }
                        tracing::debug!(peer = %self.peer, %error, "connection ended");
                    }
                    return;
                }
                () = self.shutdown.started(), if !closing => {
                    closing = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = self.shed.notified(), if !closing => {
                    // Who has only just come in is about to ask something.
                    let is_settled = || GRACE <= clock::monotonic().duration_since(began);
                    if self.exchange.has_served() || self.exchange.is_idle() && is_settled() {
                        closing = true;
                        connection.as_mut().graceful_shutdown();
                    }
                }
            }
        }
    }

    async fn answer<S, B>(
        &self,
        request: Request<Incoming>,
        service: S,
    ) -> Result<Response<Answer>, Infallible>
    where
        S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (verdict, open) = self.exchange.begin();
        let (response, close) = match self.objection(&request, verdict) {
            Some(objection) => {
                tracing::debug!(peer = %self.peer, %objection, "request refused");
                self.limits.tally.add(Event::Refused);
                self.exchange.linger();
                (objection.response(), true)
            }
            None => {
                let mut request = request.map(|it| Inbound::body(it, &self.limits));
                request.extensions_mut().insert(Peer(self.peer.ip()));
                name_host(&mut request);
                let Ok(response) = service.oneshot(request).await;
                let mut response = response.map(body::boxed);
                self.exchange.outbox.body(&mut response);
                (response, verdict.chunked)
            }
        };
        let mut response = response.map(|body| Answer { body, _open: open });
        if close {
            let value = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, value);
        }
        Ok(response)
    }

    /// Whether requests for `host` are answered here.
    fn serves(&self, host: &HostPort) -> bool {
        let proxy = self.limits.host.as_deref();
        !self.loopback
            || host.is_loopback()
            || proxy.is_some_and(|it| it.eq_ignore_ascii_case(&host.host))
    }

    /// Returns why to refuse a request before anybody sees it.
    fn objection(&self, request: &Request<Incoming>, verdict: Verdict) -> Option<Objection> {
        if let Some(flaw) = verdict.flaw {
            return Some(Objection::new(StatusCode::BAD_REQUEST, flaw));
        }
        if request.method() == Method::CONNECT {
            return Some(Objection::new(StatusCode::NOT_IMPLEMENTED, "this server is no proxy"));
        }
        let host = match host::of_request(request.uri(), request.headers(), request.version()) {
            Ok(host) => host,
            Err(problem) => return Some(Objection::new(StatusCode::BAD_REQUEST, problem)),
        };
        if let Some(host) = host.filter(|it| !self.serves(it)) {
            let message = format!(
                "{host} is no name of this machine, and this listener is for it alone; for a proxy \
                 in front of it, set base_url to the URL that users see"
            );
            return Some(Objection::new(StatusCode::MISDIRECTED_REQUEST, message));
        }
        let bytes_max = self.limits.body_bytes_max;
        if u64::try_from(bytes_max).unwrap_or(u64::MAX) < request.body().size_hint().lower() {
            let message = format!("the body is larger than {bytes_max} bytes");
            return Some(Objection::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        None
    }
}

/// Has the header say the host of a target that is a whole URL, so that nobody goes by another one.
fn name_host<T>(request: &mut Request<T>) {
    let named = request.uri().authority().map(|it| HeaderValue::from_str(it.as_str()));
    if let Some(Ok(host)) = named {
        request.headers_mut().insert(header::HOST, host);
    }
}

/// An answer that refuses a request.
struct Objection {
    status: StatusCode,
    message: String,
}

impl Objection {
    fn new(status: StatusCode, message: impl fmt::Display) -> Self {
        Self { status, message: format!("{message}\n") }
    }

    fn response(self) -> Response<Body> {
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

/// A request's body: bounded in size, and in how long it keeps us waiting.
struct Inbound {
    body: Limited<Incoming>,
    meter: Meter,
    tally: Tally,
}

impl Inbound {
    fn body(body: Incoming, limits: &Limits) -> Body {
        let meter = Meter::new(limits.body_timeout);
        let tally = limits.tally.clone();
        body::boxed(Self { body: Limited::new(body, limits.body_bytes_max), meter, tally })
    }
}

impl http_body::Body for Inbound {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => {
                let data = frame.as_ref().and_then(|it| it.as_ref().ok()?.data_ref());
                self.meter.moved(data.map_or(0, Bytes::len));
                Poll::Ready(frame)
            }
            Poll::Pending => {
                let error = ready!(self.meter.poll_too_long(cx));
                self.tally.add(Event::Slow);
                Poll::Ready(Some(Err(error.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body; while it lives, the connection is not idle.
struct Answer {
    body: Body,
    _open: Open,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
