//! Connections between daemons that know each other by key: mutual TLS 1.3 without certificates.
//!
//! Each end shows its [`Identity`]'s public key and proves that it has the secret key. There is no
//! authority, no name, no expiry and nothing to renew. The connecting end names the key that it
//! expects. The accepting end learns the key and decides on the peer's rights.
//!
//! Source: RFC 8446 (TLS 1.3), RFC 7250 (raw public keys), RFC 8410 (ed25519 in such keys), RFC
//! 9266 (secrets exported from a connection); by rustls.

mod error;
mod keys;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::pki_types::ServerName;
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

pub use error::Error;

use crate::connect::{ADDRESSES_MAX, connect_error, connect_first};
use crate::error::Stage;
use crate::identity::Identity;
use crate::tls::provider;
use keys::{ClientKeyVerifier, ServerKeyVerifier};

/// The ALPN protocol that both ends must name.
pub const PROTOCOL: &[u8] = b"harvest-replicator/1";
/// Time limit for a new connection: name, TCP and TLS together.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit for TCP alone, part of [`PATIENCE`]. It is long enough for two SYNs of the system, a
/// second apart. The system's later pauses grow, and would delay the connection once the line is up
/// again.
pub const CONNECT_PATIENCE: Duration = Duration::from_millis(2_500);

/// Maximum number of bytes that are written to a socket and not yet sent. The rest waits in this
/// process, where urgent data can still overtake it.
const UNSENT_BYTES_MAX: u32 = 32 << 10;
/// Maximum number of encrypted bytes that wait for the socket.
const ENCRYPTED_BYTES_MAX: usize = 32 << 10;

/// One daemon's end of all its connections.
#[derive(Clone)]
pub struct Endpoint {
    identity: Arc<Identity>,
    accepting: Arc<ServerConfig>,
    /// Time limit for a new connection.
    patience: Duration,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.identity.key())
    }
}

impl Endpoint {
    /// Returns the endpoint of this identity.
    ///
    /// # Errors
    ///
    /// TLS cannot be set up; the daemon should not start.
    pub fn new(identity: Arc<Identity>) -> Result<Self, Error> {
        let key = keys::certified(Arc::clone(&identity));
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(|source| Error::Setup { source })?
            .with_client_cert_verifier(Arc::new(ClientKeyVerifier))
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.max_early_data_size = 0;
        Ok(Self { identity, accepting: Arc::new(config), patience: PATIENCE })
    }

    /// Returns the identity of this end.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Accepts an incoming connection with any key; the caller decides by the key.
    ///
    /// # Errors
    ///
    /// The other end shows no key, speaks something else or takes too long. Nothing is left open.
    pub async fn accept(&self, tcp: TcpStream) -> Result<Stream, Error> {
        let peer = tcp.peer_addr().map_or_else(|_| "a stranger".to_owned(), |it| it.to_string());
        let made = timeout(self.patience, async {
            prepare(&tcp).map_err(|source| connect_error(&peer, source))?;
            let tls = TlsAcceptor::from(Arc::clone(&self.accepting)).accept(tcp).await;
            tls.map_err(|source| Error::of_handshake(&peer, source))
        });
        let tls = made.await.map_err(|_elapsed| self.too_slow(&peer))??;
        self.finish(tls.into(), &peer)
    }

    /// Connects to `address`, as `host:port`. If a key is expected, a peer with another key is
    /// refused.
    ///
    /// # Errors
    ///
    /// Nobody answers, or a peer with another key does. The error says whether to try
    /// again.
    pub async fn connect(
        &self,
        address: &str,
        expected: Option<[u8; 32]>,
    ) -> Result<Stream, Error> {
        let made = timeout(self.patience, async {
            let tcp = self.open(address).await?;
            let expecting = Arc::new(ServerKeyVerifier::new(expected));
            let connector = TlsConnector::from(self.connecting(&expecting)?);
            // The name has no effect: keys have no names, and none is sent.
            let name = ServerName::from(IpAddr::from([0; 4]));
            let tls = connector.connect(name, tcp).await;
            tls.map_err(|source| match expecting.mismatch() {
                Some((expected, found)) => {
                    Error::WrongKey { peer: address.to_owned(), expected, found }
                }
                None => Error::of_handshake(address, source),
            })
        });
        let tls = made.await.map_err(|_elapsed| self.too_slow(address))??;
        self.finish(tls.into(), address)
    }

    fn too_slow(&self, peer: &str) -> Error {
        let (host, after) = (peer.to_owned(), self.patience);
        crate::Error::Timeout { host, stage: Stage::Connect, after }.into()
    }

    fn connecting(&self, expecting: &Arc<ServerKeyVerifier>) -> Result<Arc<ClientConfig>, Error> {
        let key = keys::certified(Arc::clone(&self.identity));
        let verifier = Arc::clone(expecting);
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(|source| Error::Setup { source })?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.enable_sni = false;
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Arc::new(config))
    }

    /// Tries the addresses in turn; each gets an equal share of the time limit for TCP.
    async fn open(&self, peer: &str) -> Result<TcpStream, Error> {
        let unresolved = |source| crate::Error::Resolve { host: peer.to_owned(), source };
        let addresses = lookup_host(peer).await.map_err(unresolved)?;
        let addresses: Vec<SocketAddr> = addresses.take(ADDRESSES_MAX).collect();
        let patience = self.patience.min(CONNECT_PATIENCE);
        let opened = connect_first(&addresses, peer, patience, open_one);
        Ok(opened.await?)
    }

    fn finish(&self, mut tls: TlsStream<TcpStream>, peer: &str) -> Result<Stream, Error> {
        match &mut tls {
            TlsStream::Client(it) => it.get_mut().1.set_buffer_limit(Some(ENCRYPTED_BYTES_MAX)),
            TlsStream::Server(it) => it.get_mut().1.set_buffer_limit(Some(ENCRYPTED_BYTES_MAX)),
        }
        let (tcp, state) = tls.get_ref();
        if state.alpn_protocol() != Some(PROTOCOL) {
            return Err(Error::Protocol { peer: peer.to_owned() });
        }
        let shown = state.peer_certificates().unwrap_or_default().first();
        let key = shown.and_then(|it| keys::of_spki(it));
        let key = key.ok_or_else(|| Error::NoKey { peer: peer.to_owned() })?;
        if key == self.identity.public() {
            return Err(Error::Ourselves { peer: peer.to_owned() });
        }
        let address = tcp.peer_addr().map_err(|source| connect_error(peer, source))?;
        Ok(Stream { tls, key, address })
    }
}

async fn open_one(address: SocketAddr) -> io::Result<TcpStream> {
    let tcp = TcpStream::connect(address).await?;
    prepare(&tcp)?;
    Ok(tcp)
}

/// Sets the socket up: small writes are sent at once, and unsent data waits where urgent data can
/// overtake it.
fn prepare(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    socket2::SockRef::from(tcp).set_tcp_notsent_lowat(UNSENT_BYTES_MAX)
}

/// A connection to the peer with [`key`](Self::key). Written bytes are sent at the flush.
#[derive(Debug)]
pub struct Stream {
    tls: TlsStream<TcpStream>,
    key: [u8; 32],
    address: SocketAddr,
}

impl Stream {
    /// Returns the public key of the other end.
    #[must_use]
    pub fn key(&self) -> [u8; 32] {
        self.key
    }

    /// Returns the address of the other end.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether this end made the connection (otherwise it accepted it).
    #[must_use]
    pub fn is_dialed(&self) -> bool {
        matches!(self.tls, TlsStream::Client(_))
    }

    /// Returns a secret that only the two ends of this connection have; each label gives a
    /// different secret.
    ///
    /// # Errors
    ///
    /// The connection is already broken.
    pub fn secret(&self, label: &str) -> Result<[u8; 32], Error> {
        let made = match &self.tls {
            TlsStream::Client(it) => {
                it.get_ref().1.export_keying_material([0; 32], label.as_bytes(), None)
            }
            TlsStream::Server(it) => {
                it.get_ref().1.export_keying_material([0; 32], label.as_bytes(), None)
            }
        };
        made.map_err(|source| Error::Setup { source })
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tls).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tls).poll_shutdown(cx)
    }
}
