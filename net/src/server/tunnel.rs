//! Tunnels: connections that a client requests from a proxy by CONNECT and that carry any bytes
//! after that.
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

use crate::admission::ConnectionSlot;

/// A requested tunnel; it opens when the request is answered with success.
#[derive(Clone)]
pub struct Tunnel(Arc<Mutex<Option<Pending>>>);

/// The connection that becomes a tunnel, and its slot among the connections of its peer.
type Pending = (OnUpgrade, Arc<ConnectionSlot>);

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tunnel(…)")
    }
}

impl Tunnel {
    pub(super) fn new(
        request: &mut Request<Incoming>,
        connection_slot: Arc<ConnectionSlot>,
    ) -> Self {
        Self(Arc::new(Mutex::new(Some((hyper::upgrade::on(request), connection_slot)))))
    }

    /// Waits until the answer is sent, and returns the open tunnel. Call it in a task of its own,
    /// which ends the tunnel: nothing else does, however long the peer is silent.
    ///
    /// # Errors
    ///
    /// The peer is gone, the request was refused, or the tunnel was already opened.
    pub async fn open(self) -> io::Result<OpenTunnel> {
        let pending = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (upgrade, connection_slot) =
            pending.ok_or_else(|| io::Error::other("the tunnel is taken"))?;
        let stream = TokioIo::new(upgrade.await.map_err(io::Error::other)?);
        Ok(OpenTunnel { stream, _slot: connection_slot })
    }
}

/// An open tunnel. It counts among the connections of its peer until it is dropped.
pub struct OpenTunnel {
    stream: TokioIo<Upgraded>,
    _slot: Arc<ConnectionSlot>,
}

impl fmt::Debug for OpenTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpenTunnel(…)")
    }
}

impl AsyncRead for OpenTunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for OpenTunnel {
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
