//! Tunnels: a connection that a proxy was asked for by CONNECT, and that carries whatever from then on.
//!
//! Source: RFC 9110 §9.3.6.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::Request;
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::room::Place;

/// A tunnel that was asked for; it is there once the request is answered with success.
#[derive(Clone)]
pub struct Tunnel(Arc<Mutex<Option<Asked>>>);

/// What becomes a tunnel, and its place among the connections of its peer.
type Asked = (OnUpgrade, Arc<Place>);

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tunnel(…)")
    }
}

impl Tunnel {
    pub(super) fn new(request: &mut Request<Incoming>, place: Arc<Place>) -> Self {
        Self(Arc::new(Mutex::new(Some((hyper::upgrade::on(request), place)))))
    }

    /// Waits until the answer is sent, and returns what the peer sends and reads. To be called by a task of its
    /// own, which sees to the tunnel's end: nothing else does, however long the peer is silent.
    ///
    /// # Errors
    ///
    /// The peer is gone, the request was refused, or the tunnel is somebody else's already.
    pub async fn open(self) -> io::Result<Open> {
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (upgrade, place) = asked.ok_or_else(|| io::Error::other("the tunnel is taken"))?;
        let stream = TokioIo::new(upgrade.await.map_err(io::Error::other)?);
        Ok(Open { stream, _place: place })
    }
}

/// An open tunnel. It counts among the connections of its peer until it is dropped.
pub struct Open {
    stream: TokioIo<Upgraded>,
    _place: Arc<Place>,
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Open(…)")
    }
}

impl AsyncRead for Open {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Open {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
