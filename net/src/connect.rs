//! Opening a connection: resolve, vet, connect to what was vetted, TLS.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::error::{Error, Stage};
use crate::guard::{self, Policy};
use crate::stream::Stream;
use crate::tls::{self, ClientFiles, Pinned};

/// Most addresses of one host that are tried.
const ADDRESSES_MAX: usize = 8;

/// Opens connections.
#[derive(Debug)]
pub(crate) struct Connector {
    extra_roots: Arc<[Vec<u8>]>,
    pinned: Option<Vec<u8>>,
    /// Made when first needed: reading the system's certificates takes a while.
    tls: Arc<OnceLock<Result<Arc<ClientConfig>, String>>>,
}

/// A connection and what it leads to.
pub(crate) struct Connected {
    pub(crate) stream: Stream,
    /// The vetted address.
    pub(crate) address: IpAddr,
}

impl Connector {
    pub(crate) fn new(extra_roots: Vec<Vec<u8>>, pinned: Option<Vec<u8>>) -> Self {
        Self { extra_roots: extra_roots.into(), pinned, tls: Arc::default() }
    }

    /// Connects to the host of `url`, which is `http` or `https`, within `patience`; shows it what is in `shown`
    /// if it asks for a certificate.
    pub(crate) async fn connect(
        &self,
        url: &Url,
        policy: Policy,
        patience: Duration,
        shown: Option<&ClientFiles>,
    ) -> Result<Connected, Error> {
        let host = authority(url);
        let connected = self.connect_at_leisure(url, &host, policy, patience, shown);
        match timeout(patience, connected).await {
            Ok(connected) => connected,
            Err(_) => Err(Error::Timeout { host, stage: Stage::Connect, after: patience }),
        }
    }

    async fn connect_at_leisure(
        &self,
        url: &Url,
        host: &str,
        policy: Policy,
        patience: Duration,
        shown: Option<&ClientFiles>,
    ) -> Result<Connected, Error> {
        let addresses = vetted(resolve(url, host).await?, host, policy)?;
        let stream = connect_first(&addresses, host, patience).await?;
        let address = stream.peer_addr().map_err(|source| connect_error(host, source))?.ip();
        stream.set_nodelay(true).map_err(|source| connect_error(host, source))?;
        if url.scheme() != "https" {
            return Ok(Connected { stream: Stream::Plain(stream), address });
        }
        let name = server_name(url)?;
        let connector = TlsConnector::from(self.tls(shown).await?);
        let stream = connector
            .connect(name, stream)
            .await
            .map_err(|source| Error::Tls { host: host.to_owned(), source })?;
        Ok(Connected { stream: Stream::Tls(Box::new(stream.into())), address })
    }

    async fn tls(&self, shown: Option<&ClientFiles>) -> Result<Arc<ClientConfig>, Error> {
        let config = self.tls_for_anybody().await?;
        let Some(shown) = shown.cloned() else { return Ok(config) };
        let resolver = tokio::task::spawn_blocking(move || shown.resolver()).await;
        let resolver = resolver.map_err(|it| Error::TlsSetup { message: it.to_string() })??;
        let mut config = ClientConfig::clone(&config);
        config.client_auth_cert_resolver = resolver;
        // A session that is gone on with is that of whoever began it.
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }

    async fn tls_for_anybody(&self) -> Result<Arc<ClientConfig>, Error> {
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

/// Returns host and port as errors name them.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

async fn resolve(url: &Url, host: &str) -> Result<Vec<SocketAddr>, Error> {
    let port = url.port_or_known_default().unwrap_or(0);
    let found = match url.host() {
        Some(Host::Ipv4(address)) => vec![SocketAddr::from((address, port))],
        Some(Host::Ipv6(address)) => vec![SocketAddr::from((address, port))],
        Some(Host::Domain(name)) => lookup_host((name, port))
            .await
            .map_err(|source| Error::Resolve { host: host.to_owned(), source })?
            .collect(),
        None => Vec::new(),
    };
    if found.is_empty() {
        let source = io::Error::new(io::ErrorKind::NotFound, "it has no address");
        return Err(Error::Resolve { host: host.to_owned(), source });
    }
    Ok(found)
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

/// Tries one address after the other; each gets its share of the time.
async fn connect_first(
    addresses: &[SocketAddr],
    host: &str,
    patience: Duration,
) -> Result<TcpStream, Error> {
    let share = patience / u32::try_from(addresses.len().max(1)).unwrap_or(1);
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        last = match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error,
            Err(_) => io::ErrorKind::TimedOut.into(),
        };
    }
    Err(connect_error(host, last))
}

fn connect_error(host: &str, source: io::Error) -> Error {
    Error::Connect { host: host.to_owned(), source }
}

fn server_name(url: &Url) -> Result<ServerName<'static>, Error> {
    match url.host() {
        Some(Host::Ipv4(address)) => Ok(ServerName::from(IpAddr::V4(address))),
        Some(Host::Ipv6(address)) => Ok(ServerName::from(IpAddr::V6(address))),
        Some(Host::Domain(name)) => ServerName::try_from(name.to_owned())
            .map_err(|error| Error::Url { url: url.to_string(), message: error.to_string() }),
        None => Err(Error::Url { url: url.to_string(), message: "it names no host".to_owned() }),
    }
}
