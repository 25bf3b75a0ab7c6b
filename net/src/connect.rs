//! Outgoing connections: resolving, vetting and connecting; for the HTTP client with TLS, and
//! through proxies.

pub mod distance;
pub(crate) mod names;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::HeaderValue;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::{Host, Url};

use names::Names;

use crate::client::proxy::Proxy;
use crate::clock::monotonic;
use crate::error::{BoxError, Error, Stage};
use crate::guard::{self, Policy};
use crate::session;
use crate::stream::{Line, Stream};
use crate::tls::{self, ClientFiles, Pinned};
use distance::Distances;

/// Maximum number of addresses of one host that are tried.
pub(crate) const ADDRESSES_MAX: usize = 8;

/// Opens connections.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    extra_roots: Arc<[Vec<u8>]>,
    pinned: Option<Vec<u8>>,
    /// Distances of the hosts that it has connected to.
    pub(crate) distances: Distances,
    /// The TLS settings; made when first needed, since reading the system's certificates takes a
    /// while.
    tls: Arc<OnceLock<Result<Arc<ClientConfig>, String>>>,
    names: Arc<Names>,
}

/// Where a connection leads, and on what way.
pub(crate) struct Route<'a> {
    /// A URL of the host; `http` or `https`.
    pub(crate) url: &'a Url,
    pub(crate) policy: Policy,
    /// The certificate for the host, if it requests one.
    pub(crate) shown: Option<&'a ClientFiles>,
    /// The proxy in between.
    pub(crate) proxy: Option<&'a Proxy>,
    /// Our name for the proxy.
    pub(crate) user_agent: &'a HeaderValue,
}

/// A connection and its address.
pub(crate) struct Connected {
    pub(crate) line: Line,
    /// The vetted address of the host; `None` behind a proxy.
    pub(crate) address: Option<IpAddr>,
}

impl Connector {
    pub(crate) fn new(extra_roots: Vec<Vec<u8>>, pinned: Option<Vec<u8>>) -> Self {
        let (tls, names, distances) = (Arc::default(), Arc::default(), Distances::default());
        Self { extra_roots: extra_roots.into(), pinned, distances, tls, names }
    }

    /// Connects to `port` of `host`, as [`dial`] does.
    pub(crate) async fn dial(
        &self,
        host: Host<&str>,
        port: u16,
        policy: Policy,
        patience: Duration,
    ) -> Result<Dialed, Error> {
        dial(&self.names, host, port, policy, patience).await
    }

    /// Returns the addresses of a host, as far as they are known or can be looked up.
    pub(crate) async fn addresses(
        &self,
        host: Host<&str>,
        port: u16,
    ) -> Result<Vec<SocketAddr>, Error> {
        let named = format!("{host}:{port}");
        resolve(&self.names, &host, port, &named).await
    }

    /// Takes what came of an attempt to reach a URL's host. What the guard refuses is no attempt.
    fn note(&self, url: &Url, dialed: &Result<Dialed, Error>) {
        if !matches!(dialed, Err(Error::Refused { .. })) {
            self.distances.tried(url, dialed.as_ref().ok().map(|it| it.took), monotonic());
        }
    }

    /// Connects to a URL's host and no more, to know its distance.
    pub(crate) async fn measure(
        &self,
        url: &Url,
        policy: Policy,
        patience: Duration,
    ) -> Result<(), Error> {
        let (host, port) =
            url.host().zip(url.port_or_known_default()).ok_or_else(|| nameless(url))?;
        let dialed = dial(&self.names, host, port, policy, patience).await;
        self.note(url, &dialed);
        dialed.map(drop)
    }

    /// Connects to the host of a route (`host` in errors) within `patience`; of `http`, to the proxy
    /// alone if there is one.
    pub(crate) async fn connect(
        &self,
        route: &Route<'_>,
        host: &str,
        patience: Duration,
    ) -> Result<Connected, Error> {
        let connected = async {
            match route.proxy {
                Some(proxy) => self.connect_through(proxy, route, host, patience).await,
                None => self.connect_directly(route, host, patience).await,
            }
        };
        match timeout(patience, connected).await {
            Ok(connected) => connected,
            Err(_) => {
                let host = host.to_owned();
                Err(Error::Timeout { host, stage: Stage::Connect, after: patience })
            }
        }
    }

    async fn connect_directly(
        &self,
        route: &Route<'_>,
        host: &str,
        patience: Duration,
    ) -> Result<Connected, Error> {
        let url = route.url;
        let named = url.host().ok_or_else(|| nameless(url))?;
        let port = url.port_or_known_default().unwrap_or(0);
        let dialed = dial_known(&self.names, named, port, host, route.policy, patience).await;
        self.note(url, &dialed);
        let Dialed { stream, address, .. } = dialed?;
        let address = Some(address);
        if url.scheme() != "https" {
            return Ok(Connected { line: Line::Left(Stream::Left(stream)), address });
        }
        let stream = self.secured(server_name(url)?, host, stream, route.shown).await?;
        Ok(Connected { line: Line::Left(Stream::Right(Box::new(stream.into()))), address })
    }

    async fn connect_through(
        &self,
        proxy: &Proxy,
        route: &Route<'_>,
        host: &str,
        patience: Duration,
    ) -> Result<Connected, Error> {
        let shown = proxy.to_string();
        let wrong = |message: String| Error::Url { url: shown.clone(), message };
        let named = proxy.host().ok_or_else(|| wrong("it names no host".to_owned()))?;
        // Whoever wrote the settings has named the proxy, so that it may be inside.
        let policy = Policy::AllowPrivate;
        let dialed =
            dial_known(&self.names, named.clone(), proxy.port(), &shown, policy, patience).await?;
        let stream = if proxy.is_secure() {
            let name = name_of(named).map_err(wrong)?;
            let stream = self.secured(name, &shown, dialed.stream, None).await?;
            Stream::Right(Box::new(stream.into()))
        } else {
            Stream::Left(dialed.stream)
        };
        if !proxy.tunnels(route.url) {
            return Ok(Connected { line: Line::Left(stream), address: None });
        }
        let stream = open_tunnel(stream, proxy, route).await?;
        let stream = self.secured(server_name(route.url)?, host, stream, route.shown).await?;
        Ok(Connected { line: Line::Right(Box::new(stream)), address: None })
    }

    /// Begins TLS with the peer `name` (`host` in errors), which gets the certificate in `shown` if
    /// it requests one.
    async fn secured<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        name: ServerName<'static>,
        host: &str,
        stream: S,
        shown: Option<&ClientFiles>,
    ) -> Result<TlsStream<S>, Error> {
        let connector = TlsConnector::from(self.tls(shown).await?);
        let secured = connector.connect(name, stream).await;
        secured.map_err(|source| Error::Tls { host: host.to_owned(), source })
    }

    /// Makes a socket to `host` (`named` in errors) secure, for a protocol other than HTTP.
    pub(crate) async fn secure(
        &self,
        host: Host<&str>,
        named: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, Error> {
        let mut config = ClientConfig::clone(&*self.shared_tls().await?);
        config.alpn_protocols.clear();
        let name =
            name_of(host).map_err(|message| Error::Url { url: named.to_owned(), message })?;
        let secured = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        secured.map_err(|source| Error::Tls { host: named.to_owned(), source })
    }

    async fn tls(&self, shown: Option<&ClientFiles>) -> Result<Arc<ClientConfig>, Error> {
        let config = self.shared_tls().await?;
        let Some(shown) = shown.cloned() else { return Ok(config) };
        let resolver = tokio::task::spawn_blocking(move || shown.resolver()).await;
        let resolver = resolver.map_err(|it| Error::TlsSetup { message: it.to_string() })??;
        let mut config = ClientConfig::clone(&config);
        config.client_auth_cert_resolver = resolver;
        // A resumed session keeps the client certificate that it began with.
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }

    async fn shared_tls(&self) -> Result<Arc<ClientConfig>, Error> {
        let config = match self.tls.get() {
            Some(config) => config.clone(),
            None => {
                let (tls, roots) = (Arc::clone(&self.tls), Arc::clone(&self.extra_roots));
                let pinned = self.pinned.clone();
                let made = move || tls.get_or_init(|| tls_config(&roots, pinned)).clone();
                let made = tokio::task::spawn_blocking(made).await;
                made.unwrap_or_else(|error| Err(error.to_string()))
            }
        };
        config.map_err(|message| Error::TlsSetup { message })
    }
}

fn tls_config(
    extra_roots: &[Vec<u8>],
    pinned: Option<Vec<u8>>,
) -> Result<Arc<ClientConfig>, String> {
    let provider = tls::provider();
    let verifier: Arc<dyn ServerCertVerifier> = match pinned {
        Some(certificate) => Arc::new(Pinned::new(certificate.into())),
        None => {
            let roots = extra_roots.iter().map(|it| CertificateDer::from(it.clone()));
            let verifier = Verifier::new_with_extra_roots(roots, Arc::clone(&provider));
            Arc::new(verifier.map_err(|error| error.to_string())?)
        }
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![tls::ALPN.to_vec()];
    Ok(Arc::new(config))
}

/// A socket to a host, and the vetted address of its other end.
#[derive(Debug)]
pub struct Dialed {
    /// The socket; small writes are sent at once.
    pub stream: TcpStream,
    /// The address.
    pub address: IpAddr,
    /// Time that it took to connect to it, without the look-up of its name.
    pub took: Duration,
}

/// Connects to `port` of `host` within `patience`, for any protocol. The name is resolved, the
/// guard vets each address, and connections are made only to addresses that it allows. `names` are
/// those that are known.
///
/// # Errors
///
/// [`Error::Resolve`], [`Error::Refused`], [`Error::Connect`] or [`Error::Timeout`].
pub(crate) async fn dial(
    names: &Names,
    host: Host<&str>,
    port: u16,
    policy: Policy,
    patience: Duration,
) -> Result<Dialed, Error> {
    let named = format!("{host}:{port}");
    match timeout(patience, dial_known(names, host, port, &named, policy, patience)).await {
        Ok(dialed) => dialed,
        Err(_) => Err(Error::Timeout { host: named, stage: Stage::Connect, after: patience }),
    }
}

/// Connects without a time limit of its own.
async fn dial_known(
    names: &Names,
    host: Host<&str>,
    port: u16,
    named: &str,
    policy: Policy,
    patience: Duration,
) -> Result<Dialed, Error> {
    let addresses = vetted(resolve(names, &host, port, named).await?, named, policy)?;
    let begun = monotonic();
    let stream = connect_first(&addresses, named, patience, TcpStream::connect::<SocketAddr>);
    let stream = stream.await.inspect_err(|_| {
        if let Host::Domain(name) = host {
            names.forget(name);
        }
    })?;
    let took = begun.elapsed();
    let lost = |source| connect_error(named, source);
    let address = stream.peer_addr().map_err(lost)?.ip();
    stream.set_nodelay(true).map_err(lost)?;
    Ok(Dialed { stream, address, took })
}

/// Has the proxy at the other end of `stream` open a tunnel to the host of a route. hyper bounds
/// the head of the answer; the caller bounds the time.
///
/// Source: RFC 9110 §9.3.6. Whatever follows the head of a success is the host's. In TLS the client
/// speaks first, so that bytes which came with the head are no TLS.
async fn open_tunnel(stream: Stream, proxy: &Proxy, route: &Route<'_>) -> Result<Stream, Error> {
    let host = authority(route.url);
    let invalid = |source: BoxError| Error::Protocol { host: proxy.to_string(), source };
    let request = proxy.connect_request(&host, route.user_agent)?;
    let begun = session::bounded().handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = begun.map_err(|error| invalid(error.into()))?;
    let mut answered = pin!(sender.send_request(request));
    let mut driven = pin!(connection.without_shutdown());
    let (answer, parts) = tokio::select! {
        biased;
        answer = &mut answered => (answer, None),
        // The connection may end with the answer, which then is there already.
        parts = &mut driven => (answered.await, Some(parts)),
    };
    let status = answer.map_err(|error| invalid(error.into()))?.status();
    if !status.is_success() {
        return Err(proxy.refusal(host, status));
    }
    // Without its sender, the connection ends in any case.
    drop(sender);
    let parts = match parts {
        Some(parts) => parts,
        None => driven.await,
    };
    let parts = parts.map_err(|error| invalid(error.into()))?;
    if !parts.read_buf.is_empty() {
        return Err(invalid("its tunnel begins with bytes that are no TLS".into()));
    }
    Ok(parts.io.into_inner())
}

/// Returns host and port as errors name them.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

async fn resolve(
    names: &Names,
    host: &Host<&str>,
    port: u16,
    named: &str,
) -> Result<Vec<SocketAddr>, Error> {
    let failed = |source| Error::Resolve { host: named.to_owned(), source };
    let found: Vec<IpAddr> = match host {
        Host::Ipv4(address) => vec![IpAddr::from(*address)],
        Host::Ipv6(address) => vec![IpAddr::from(*address)],
        Host::Domain(name) => match names.get(name, monotonic()) {
            Some(known) => known.map_err(failed)?,
            None => {
                let looked_up = lookup_host((*name, port)).await;
                let found = looked_up.map(|it| it.map(|it| it.ip()).collect());
                names.put(name, &found, monotonic());
                found.map_err(failed)?
            }
        },
    };
    if found.is_empty() {
        return Err(failed(io::Error::new(io::ErrorKind::NotFound, "it has no address")));
    }
    Ok(found.into_iter().map(|it| SocketAddr::from((it, port))).collect())
}

fn nameless(url: &Url) -> Error {
    Error::Url { url: url.to_string(), message: "it names no host".to_owned() }
}

fn vetted(found: Vec<SocketAddr>, host: &str, policy: Policy) -> Result<Vec<SocketAddr>, Error> {
    let mut refused = None;
    let mut addresses = Vec::new();
    for it in found {
        match guard::vet(it.ip(), policy) {
            Ok(()) => addresses.push(it),
            Err(refusal) => {
                refused.get_or_insert_with(|| (it.ip(), refusal));
            }
        }
    }
    addresses.truncate(ADDRESSES_MAX);
    match refused {
        Some((address, refusal)) if addresses.is_empty() => {
            Err(Error::Refused { host: host.to_owned(), address, refusal })
        }
        _ => Ok(addresses),
    }
}

/// Tries the addresses of `host` in turn with `connect`; each gets an equal share of `patience`.
pub(crate) async fn connect_first<F: Future<Output = io::Result<TcpStream>>>(
    addresses: &[SocketAddr],
    host: &str,
    patience: Duration,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<TcpStream, Error> {
    let share = patience / u32::try_from(addresses.len().max(1)).unwrap_or(1);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in addresses {
        last = match timeout(share, connect(*address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error,
            Err(_) => io::ErrorKind::TimedOut.into(),
        };
    }
    Err(connect_error(host, last))
}

pub(crate) fn connect_error(host: &str, source: io::Error) -> Error {
    Error::Connect { host: host.to_owned(), source }
}

fn server_name(url: &Url) -> Result<ServerName<'static>, Error> {
    let host = url.host().ok_or_else(|| nameless(url))?;
    name_of(host).map_err(|message| Error::Url { url: url.to_string(), message })
}

/// Returns the name that a host's certificate must have.
fn name_of(host: Host<&str>) -> Result<ServerName<'static>, String> {
    match host {
        Host::Ipv4(address) => Ok(ServerName::from(IpAddr::V4(address))),
        Host::Ipv6(address) => Ok(ServerName::from(IpAddr::V6(address))),
        Host::Domain(name) => {
            ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::guard::Refusal;

    #[tokio::test]
    async fn a_host_is_vetted_and_reached_at_the_vetted_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let patience = Duration::from_secs(20);
        let names = Names::default();
        let by_address = Host::Ipv4([127, 0, 0, 1].into());
        for host in [by_address.clone(), Host::Domain("localhost")] {
            let dialed =
                dial(&names, host.clone(), port, Policy::AllowPrivate, patience).await.unwrap();
            assert!(dialed.address.is_loopback() && dialed.took < patience);
            let refused = dial(&names, host, port, Policy::Public, patience).await.unwrap_err();
            let is_loopback = matches!(refused, Error::Refused { refusal: Refusal::Loopback, .. });
            assert!(is_loopback, "{refused}");
        }
        drop(listener);
        let gone =
            dial(&names, by_address, port, Policy::AllowPrivate, patience).await.unwrap_err();
        assert!(matches!(gone, Error::Connect { .. }), "{gone}");
    }
}
