//! The HTTP/1.1 server of all daemons, with its limits in one place.
//!
//! Source: RFC 9112 as implemented by hyper, which parses. This module does what hyper leaves to
//! its user: exactly one `Host`, unambiguous framing (framing.rs), bounds on heads, bodies,
//! connections and waits (wire.rs), and an end within a bounded time.
//!
//! At [`Limits::connections_max`] the server asks idle connections to close and accepts no new ones
//! until a slot is free; new connections wait in the system's queue. One address gets at most
//! [`Limits::peer_connections_max`] of the slots, so it cannot take them all.

mod bodies;
mod objection;
mod tunnel;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tower::{Service, ServiceExt};

use crate::address::{self, Network};
use crate::admission::{self, AddressSlot, AddressSlots, Admission, ConnectionSlot};
use crate::body::{self, Body};
use crate::clock;
use crate::error::{BoxError, Error};
use crate::framing::Verdict;
use crate::host::{self, HostPort};
use crate::shutdown::Shutdown;
use crate::stream::{self, Stream};
use crate::tally::{Event, Tally};
use crate::tls::{self, ClientCertificate};
use crate::wire::{Exchange, Wire};

use bodies::{Answer, Inbound};
use objection::Objection;
pub use tunnel::{OpenTunnel, Tunnel};

/// Time limit for requests in progress after the shutdown starts.
pub const DRAIN: Duration = Duration::from_millis(1_500);

/// Age below which a connection without a request is not closed to make room.
const GRACE: Duration = Duration::from_millis(500);

/// Read and write buffer of a connection, in bytes; above the largest head.
const BUFFER_BYTES: usize = 64 * 1024;

/// Largest head of a request, in bytes.
pub(crate) const HEADER_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of headers of a request.
const HEADERS_MAX: usize = 100;

/// The first byte of a connection that begins TLS: RFC 8446 §5.1.
const HANDSHAKE: u8 = 22;

/// The client of a request, seen through trusted proxies; an extension of every request. If the
/// peer of the connection has shown a certificate, [`ClientCertificate`] is an extension, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

impl Peer {
    /// Returns the part of the address that belongs to one subscriber: the whole address of IPv4,
    /// the /64 prefix of IPv6.
    pub fn subscriber(self) -> IpAddr {
        admission::subscriber(self.0)
    }
}

/// The other end of the connection of a request: an extension of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket(pub SocketAddr);

/// The kind of requests that a server takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Requests for this server: RFC 9112 §3.2.1, and whole URLs that name it.
    #[default]
    Origin,
    /// Requests for other hosts as well: whole URLs of any host, and CONNECT (RFC 9112 §3.2.2 and
    /// §3.2.3, RFC 9110 §9.3.6). A request for CONNECT has a [`Tunnel`] as an extension. The service
    /// checks the host of a request with a path alone, which a page may have made (DNS rebinding).
    Proxy,
}

/// Limits on the peers of a server. [`Default`] suits a public listener.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time for a TLS handshake, and for a whole head from its first byte. Default 10 s.
    pub header_timeout: Duration,
    /// Longest total time of waiting for each 16 KiB of a request's body. Default 30 s.
    pub body_timeout: Duration,
    /// Maximum number of connections at once; further ones wait to be accepted. Default 1,024.
    pub connections_max: usize,
    /// Maximum number of connections of one address (of one /64 for IPv6) at once; further ones are
    /// closed. Default 256. If [`host`](Self::host) names a proxy and there is no TLS, a peer on
    /// this machine may have more: it is that proxy. A proxy on another machine may have more if it
    /// is one of [`proxies`](Self::proxies).
    pub peer_connections_max: usize,
    /// Longest time that a connection may be without a request. Default 60 s.
    pub idle_timeout: Duration,
    /// Longest total time that the peer may take to receive each 16 KiB of an answer. Default 60 s.
    pub write_timeout: Duration,
    /// Time limit for requests in progress after the shutdown starts. Default [`DRAIN`].
    pub drain: Duration,
    /// Host for which a listener on a loopback address answers in addition to the names of the
    /// machine itself: that of a proxy in front of it. Requests for all other hosts are refused
    /// there. Otherwise a web page whose name was made to resolve to this machine (DNS rebinding)
    /// could read what its user can. Default none.
    pub host: Option<String>,
    /// Proxies whose `Forwarded` and `X-Forwarded-For` are believed. The bound of one address then
    /// holds for their clients, and the proxies may have any number of connections. Default none.
    pub proxies: Vec<Network>,
    /// The kind of requests that the server takes. Default [`Mode::Origin`].
    pub mode: Mode,
    /// Largest body of a request, in bytes. Default 1 MiB.
    pub body_bytes_max: usize,
    /// TLS of the listener. Default none: plain HTTP.
    pub tls: Option<tls::Server>,
    /// Counters of events.
    pub tally: Tally,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            connections_max: 1_024,
            peer_connections_max: 256,
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            drain: DRAIN,
            host: None,
            proxies: Vec::new(),
            mode: Mode::Origin,
            body_bytes_max: 1 << 20,
            tls: None,
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
    TcpListener::bind(address).await.map_err(|error| Error::Bind { address, error })
}

/// Serves HTTP/1.1 until the shutdown starts, then lets requests in progress go on for at most
/// [`Limits::drain`]. An axum `Router` is such a service.
///
/// # Errors
///
/// The listener has failed: the caller binds again or stops.
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
    let admission = Admission::new(Arc::clone(&limits));
    let mut connections = JoinSet::new();
    let outcome = loop {
        let (stream, peer, slot) = tokio::select! {
            biased;
            () = shutdown.started() => break Ok(()),
            Some(ended) = connections.join_next() => {
                report(ended);
                continue;
            }
            accepted = admission.accept(&listener) => match accepted {
                Ok(accepted) => accepted,
                // The advice for listening would be wrong here.
                Err(error) => break Err(Error::Bind { address, error: io::Error::other(error) }),
            },
        };
        let connection = Connection {
            peer,
            loopback: address.ip().is_loopback(),
            limits: Arc::clone(&limits),
            exchange: Arc::default(),
            shed: Arc::clone(&admission.shed),
            address_slots: Arc::clone(&admission.slots),
            slot: Arc::new(slot),
            shutdown: shutdown.clone(),
            shown: None,
            is_secure: false,
        };
        let service = service.clone();
        connections.spawn(async move {
            connection.serve(stream, service).await;
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
    /// Whether the listener is on a loopback address.
    loopback: bool,
    limits: Arc<Limits>,
    exchange: Arc<Exchange>,
    shed: Arc<Notify>,
    address_slots: Arc<AddressSlots>,
    /// Shared with a tunnel, which keeps the slot.
    slot: Arc<ConnectionSlot>,
    shutdown: Shutdown,
    /// The certificate that the peer has shown.
    shown: Option<ClientCertificate>,
    is_secure: bool,
}

impl Connection {
    async fn serve<S, B>(mut self, socket: TcpStream, service: S)
    where
        S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Clone + Send,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // Small answers should not wait for an acknowledgment.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(peer = %self.peer, %error, "connection lost");
            return;
        }
        let Some(stream) = self.secure(socket).await else { return };
        let wire = Wire::new(stream, Arc::clone(&self.exchange), &self.limits);
        let this = &self;
        let answer = service_fn(move |request| this.answer(request, service.clone()));
        let mut connection = pin!(
            http1::Builder::new()
                .max_buf_size(BUFFER_BYTES)
                .max_header_size(HEADER_BYTES_MAX)
                .max_headers(HEADERS_MAX)
                .header_read_timeout(None)
                .serve_connection(TokioIo::new(wire), answer)
                .with_upgrades()
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
                    // A new connection may be about to send its first request.
                    let is_settled = || GRACE <= clock::monotonic().duration_since(began);
                    if self.exchange.has_served() || self.exchange.is_idle() && is_settled() {
                        closing = true;
                        connection.as_mut().graceful_shutdown();
                    }
                }
            }
        }
    }

    /// Does the TLS handshake if this listener has TLS. A plain client is refused later, by
    /// [`objection`](Self::objection).
    async fn secure(&mut self, socket: TcpStream) -> Option<Stream> {
        let Some(tls) = &self.limits.tls else { return Some(Stream::Left(socket)) };
        let mut opening = pin!(timeout(self.limits.header_timeout, async {
            let mut first = [0];
            socket.peek(&mut first).await?;
            if first != [HANDSHAKE] {
                return Ok(Stream::Left(socket));
            }
            tls.acceptor().accept(socket).await.map(|it| Stream::Right(Box::new(it.into())))
        }));
        let began = clock::monotonic();
        let opened = loop {
            tokio::select! {
                () = self.shutdown.started() => return None,
                () = self.shed.notified() => {
                    // A peer that has not begun TLS is cut off, to make room for a waiting one.
                    if GRACE <= clock::monotonic().duration_since(began) {
                        break Err(io::ErrorKind::TimedOut.into());
                    }
                }
                opened = opening.as_mut() => {
                    break opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
                }
            }
        };
        match opened {
            Ok(stream) => {
                self.is_secure = stream::plain(&stream).is_none();
                self.shown = stream::shown(&stream);
                Some(stream)
            }
            Err(error) => {
                let is_slow = error.kind() == io::ErrorKind::TimedOut;
                self.limits.tally.add(if is_slow { Event::Slow } else { Event::Malformed });
                tracing::debug!(peer = %self.peer, %error, "no secure connection");
                None
            }
        }
    }

    async fn answer<S, B>(
        &self,
        mut request: Request<Incoming>,
        service: S,
    ) -> Result<Response<Answer>, Infallible>
    where
        S: Service<Request<Body>, Response = Response<B>, Error = Infallible> + Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (verdict, open) = self.exchange.begin();
        let (response, slot, close) = match self.admit(&request, verdict) {
            Err(objection) => {
                tracing::debug!(peer = %self.peer, %objection, "request refused");
                self.limits.tally.add(objection.event);
                self.exchange.linger();
                (objection.response(), None, true)
            }
            Ok((client, slot)) => {
                let tunnel = (*request.method() == Method::CONNECT)
                    .then(|| Tunnel::new(&mut request, Arc::clone(&self.slot)));
                let is_tunnel = tunnel.is_some();
                let mut request = request.map(|it| Inbound::body(it, &self.limits));
                self.describe(client, request.extensions_mut());
                if let Some(tunnel) = tunnel {
                    request.extensions_mut().insert(tunnel);
                }
                name_host(&mut request);
                let Ok(response) = service.oneshot(request).await;
                let mut response = response.map(body::boxed);
                if is_tunnel && response.status().is_success() {
                    self.exchange.tunnel();
                }
                // The kernel cannot send files over an encrypted connection.
                if !self.is_secure {
                    self.exchange.outbox.body(&mut response);
                }
                (response, slot, verdict.chunked)
            }
        };
        let mut response = response.map(|body| Answer::new(body, open, slot));
        if close {
            let value = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, value);
        }
        Ok(response)
    }

    /// Adds the client's address and the peer's certificate to a request.
    fn describe(&self, client: IpAddr, extensions: &mut Extensions) {
        extensions.insert(Peer(client));
        extensions.insert(Socket(self.peer));
        if let Some(shown) = &self.shown {
            extensions.insert(shown.clone());
        }
    }

    /// Returns the client of the request and, if a proxy sent it, a slot of the client's address.
    fn admit(
        &self,
        request: &Request<Incoming>,
        verdict: Verdict,
    ) -> Result<(IpAddr, Option<AddressSlot>), Objection> {
        if let Some(objection) = self.objection(request, verdict) {
            return Err(objection);
        }
        let (peer, proxies) = (self.peer.ip(), &self.limits.proxies);
        let client = address::client(peer, request.headers(), proxies)
            .map_err(|problem| Objection::new(StatusCode::BAD_REQUEST, problem))?;
        if client == peer {
            return Ok((client, None));
        }
        let slot = self.address_slots.take(client, self.limits.peer_connections_max);
        slot.map(|slot| (client, Some(slot))).ok_or_else(|| {
            let message =
                "your address has too many requests under way: come again in some seconds";
            let event = Event::Crowding;
            Objection { event, ..Objection::new(StatusCode::TOO_MANY_REQUESTS, message) }
        })
    }

    /// Returns whether requests for `host` are answered here.
    fn serves(&self, host: &HostPort) -> bool {
        let proxy = self.limits.host.as_deref();
        !self.loopback
            || host.is_loopback()
            || proxy.is_some_and(|it| it.eq_ignore_ascii_case(&host.host))
    }

    /// Returns the reason to refuse a request before the service sees it.
    fn objection(&self, request: &Request<Incoming>, verdict: Verdict) -> Option<Objection> {
        if let Some(flaw) = verdict.flaw {
            return Some(Objection::new(StatusCode::BAD_REQUEST, flaw));
        }
        if self.limits.tls.is_some() && !self.is_secure {
            let message = "this listener speaks TLS: use https:// instead of http://";
            return Some(Objection::new(StatusCode::BAD_REQUEST, message));
        }
        let is_proxy = self.limits.mode == Mode::Proxy;
        if request.method() == Method::CONNECT {
            let message = "this server is not a proxy";
            let objection = Objection::new(StatusCode::NOT_IMPLEMENTED, message);
            return (!is_proxy).then_some(objection);
        }
        let host = match host::of_request(request.uri(), request.headers(), request.version()) {
            Ok(host) => host,
            Err(problem) => return Some(Objection::new(StatusCode::BAD_REQUEST, problem)),
        };
        // A proxy knows itself the hosts in whose name it answers.
        if let Some(host) = host.filter(|it| !is_proxy && !self.serves(it)) {
            let message = format!(
                "{host} is not a name of this machine, and this listener serves it alone; for a proxy \
                 in front of it, set base_url to the URL that users see"
            );
            return Some(Objection::new(StatusCode::MISDIRECTED_REQUEST, message));
        }
        let body_bytes_max = self.limits.body_bytes_max;
        if (body_bytes_max as u64) < request.body().size_hint().lower() {
            let message = format!("the body is larger than {body_bytes_max} bytes");
            return Some(Objection::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        None
    }
}

/// Sets `Host` to the host of a target that is a whole URL, so that no handler uses another one.
fn name_host<T>(request: &mut Request<T>) {
    let named = host::of_target(request.uri()).map(HeaderValue::from_str);
    if let Some(Ok(host)) = named {
        request.headers_mut().insert(header::HOST, host);
    }
}
