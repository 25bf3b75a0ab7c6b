//! A connection's byte stream, plain or TLS, for servers and clients.

use tokio::net::TcpStream;
use tokio_rustls::{TlsStream, client};
use tokio_util::either::Either;

use crate::tls::ClientCertificate;

/// A connection: plain on the left, TLS on the right.
pub(crate) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// A connection of the client. On the left it ends at the next peer, a host or a proxy; on the right
/// it is TLS with a host, through the tunnel of a proxy.
pub(crate) type Line = Either<Stream, Box<client::TlsStream<Stream>>>;

/// Returns the certificate that the other end has shown.
pub(crate) fn shown(stream: &Stream) -> Option<ClientCertificate> {
    let Stream::Right(stream) = stream else { return None };
    let shown = stream.get_ref().1.peer_certificates()?.first()?;
    Some(ClientCertificate(shown.clone().into_owned()))
}

/// Returns the socket of a plain connection, to which the kernel may write by itself.
pub(crate) fn plain(stream: &Stream) -> Option<&TcpStream> {
    match stream {
        Stream::Left(stream) => Some(stream),
        Stream::Right(_) => None,
    }
}
