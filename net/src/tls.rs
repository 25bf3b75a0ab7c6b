//! Certificates: those that a listener shows and requests, and those that a client shows and
//! trusts.
//!
//! All are PEM files, as the usual tools write them. A listener reads its files again when they
//! change and keeps the old ones if the new ones are wrong. A client reads its own for each new
//! connection.
//!
//! Source: RFC 8446, RFC 9110 §4.3.4 (names of certificates), RFC 7468 (PEM).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
};
use tokio_rustls::TlsAcceptor;

use crate::error::Error;

/// The only protocol that is spoken over TLS here.
pub(crate) const ALPN: &[u8] = b"http/1.1";

/// PEM label of an encrypted key.
const ENCRYPTED: &[u8] = b"ENCRYPTED PRIVATE KEY";

/// Returns the only cryptography provider of this build.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The files of a listener that speaks TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFiles {
    /// Its certificate, followed by the chain to an authority.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
    /// Certificates of authorities. If given, clients are asked for a certificate of one of them; a
    /// client without one is still accepted.
    pub client_ca: Option<PathBuf>,
}

impl ServerFiles {
    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca)
    }

    /// Returns the stamps of the files, which change when a file is written.
    fn stamps(&self) -> Vec<Option<Stamp>> {
        let stamp = |it: fs::Metadata| (it.len(), it.ino(), it.mtime(), it.mtime_nsec());
        self.paths().map(|path| fs::metadata(path).ok().map(stamp)).collect()
    }

    fn config(&self) -> Result<(Arc<ServerConfig>, CertificateDer<'static>), Error> {
        let key = certified_key(&self.certificate, &self.key)?;
        let wrong = |error: rustls::Error| wrong(&self.certificate, error);
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(wrong)?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider())
                        .allow_unauthenticated()
                        .build()
                        .map_err(|error| self::wrong(path, error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        // A certified key has at least one certificate.
        let shown = key.cert.first().cloned().unwrap_or_else(|| Vec::new().into());
        let mut config =
            builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::new(key))));
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok((Arc::new(config), shown))
    }
}

/// Length, inode, and time of the last write in seconds and nanoseconds.
type Stamp = (u64, u64, i64, i64);

/// TLS of a listener. Clones share it.
#[derive(Clone, Debug)]
pub struct Server(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    files: ServerFiles,
    current: RwLock<Current>,
}

#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    /// The certificate that is shown.
    shown: CertificateDer<'static>,
    /// The stamps of the files when they were last checked.
    stamps: Vec<Option<Stamp>>,
    /// The reason why the files, as last checked, are not in use.
    problem: Option<String>,
}

impl Server {
    /// Reads the files. Blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Certificate`]: one of them is missing or wrong, or they do not belong together.
    pub fn open(files: ServerFiles) -> Result<Self, Error> {
        let stamps = files.stamps();
        let (config, shown) = files.config()?;
        let current = RwLock::new(Current { config, shown, stamps, problem: None });
        Ok(Self(Arc::new(Shared { files, current })))
    }

    /// Reads the files again if one was written since; new connections use them. If they are wrong,
    /// the old ones stay, and [`problem`](Self::problem) says why. Returns whether a file was
    /// written. Blocks.
    pub fn refresh(&self) -> bool {
        let stamps = self.0.files.stamps();
        if stamps == self.current().stamps {
            return false;
        }
        let config = self.0.files.config();
        let mut current = self.0.current.write().unwrap_or_else(|it| it.into_inner());
        current.stamps = stamps;
        current.problem = match config {
            Ok((config, shown)) => {
                (current.config, current.shown) = (config, shown);
                None
            }
            Err(error) => Some(format!("{error}; the certificate read before stays in use")),
        };
        true
    }

    /// Returns the certificate that is shown, as DER.
    pub fn certificate(&self) -> Vec<u8> {
        self.current().shown.to_vec()
    }

    /// Returns the fault of the present files; `None` if they have none.
    pub fn problem(&self) -> Option<String> {
        self.current().problem.clone()
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current().config))
    }

    fn current(&self) -> std::sync::RwLockReadGuard<'_, Current> {
        self.0.current.read().unwrap_or_else(|it| it.into_inner())
    }
}

/// The certificate that a client has shown, signed by an authority that the listener trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate(pub(crate) CertificateDer<'static>);

impl ClientCertificate {
    /// Returns whether the certificate is for `name`: a host's name or an address.
    pub fn is_for(&self, name: &str) -> bool {
        let Ok(name) = ServerName::try_from(name) else { return false };
        ParsedCertificate::try_from(&self.0)
            .is_ok_and(|certificate| verify_server_name(&certificate, &name).is_ok())
    }
}

/// Returns whether a certificate can be for `name`.
pub fn is_name(name: &str) -> bool {
    ServerName::try_from(name).is_ok()
}

/// The certificate of a client, for servers that ask for one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientFiles {
    /// Its certificate, followed by the chain to an authority.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
}

impl ClientFiles {
    /// Reads the files. Blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Certificate`]: one of them is missing or wrong, or they do not belong together.
    pub fn check(&self) -> Result<(), Error> {
        certified_key(&self.certificate, &self.key).map(drop)
    }

    /// Makes relative paths relative to `folder`.
    pub fn resolve(&mut self, folder: &Path) {
        for path in [&mut self.certificate, &mut self.key] {
            *path = folder.join(&path);
        }
    }

    pub(crate) fn resolver(&self) -> Result<Arc<SingleCertAndKey>, Error> {
        let key = certified_key(&self.certificate, &self.key)?;
        Ok(Arc::new(SingleCertAndKey::from(Arc::new(key))))
    }
}

/// Verifier that trusts one certificate only, under any name and signed by anybody.
#[derive(Debug)]
pub(crate) struct Pinned {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    pub(crate) fn new(certificate: CertificateDer<'static>) -> Self {
        Self { certificate, provider: provider() }
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if *shown == self.certificate {
            Ok(ServerCertVerified::assertion())
        } else {
            let why = CertificateError::ApplicationVerificationFailure;
            Err(rustls::Error::InvalidCertificate(why))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, shown, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, shown, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Reads certificates, as DER. Blocks.
///
/// # Errors
///
/// [`Error::Certificate`]: the file is missing, holds none, or is malformed.
pub fn certificates(path: &Path) -> Result<Vec<Vec<u8>>, Error> {
    Ok(read_certificates(path)?.into_iter().map(|it| it.to_vec()).collect())
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let found = read.map_err(|error| wrong(path, error))?;
    if found.is_empty() {
        return Err(wrong(path, "it holds no certificate (-----BEGIN CERTIFICATE-----)"));
    }
    Ok(found)
}

fn roots(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        roots.add(certificate).map_err(|error| wrong(path, error))?;
    }
    Ok(roots)
}

fn certified_key(certificate: &Path, key: &Path) -> Result<CertifiedKey, Error> {
    let chain = read_certificates(certificate)?;
    let text = read(key)?;
    let secret = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        _ if text.windows(ENCRYPTED.len()).any(|it| it == ENCRYPTED) => {
            wrong(key, "the key is encrypted (openssl pkey -in KEY -out KEY decrypts it)")
        }
        rustls::pki_types::pem::Error::NoItemsFound => {
            wrong(key, "it holds no private key (-----BEGIN PRIVATE KEY-----)")
        }
        error => wrong(key, error),
    })?;
    CertifiedKey::from_der(chain, secret, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            wrong(key, format!("it is not the key of {}", certificate.display()))
        }
        error @ rustls::Error::InvalidCertificate(_) => wrong(certificate, error),
        error => wrong(key, error),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|error: io::Error| wrong(path, error))
}

fn wrong(path: &Path, message: impl ToString) -> Error {
    Error::Certificate { path: path.to_owned(), message: message.to_string() }
}
