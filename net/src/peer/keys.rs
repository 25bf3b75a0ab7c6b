//! Raw public keys for rustls: an identity as a key without a certificate, and the verifiers of the
//! other end's key.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureAlgorithm,
    SignatureScheme,
};

use crate::identity::{self, Identity};

/// The bytes before the 32 bytes of an ed25519 key: RFC 8410 §4.
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];

/// Returns the ed25519 key in a SubjectPublicKeyInfo; `None` for anything else.
pub(super) fn of_spki(der: &[u8]) -> Option<[u8; 32]> {
    der.strip_prefix(&SPKI_PREFIX)?.try_into().ok()
}

fn spki(key: [u8; 32]) -> Vec<u8> {
    [SPKI_PREFIX.as_slice(), &key].concat()
}

/// Returns the key in the form that is shown in place of a certificate.
pub(super) fn certified(identity: Arc<Identity>) -> Arc<CertifiedKey> {
    let shown = CertificateDer::from(spki(identity.public()));
    Arc::new(CertifiedKey::new(vec![shown], Arc::new(IdentitySigner(identity))))
}

/// A signer with an identity, which does not reveal its secret.
#[derive(Clone, Debug)]
struct IdentitySigner(Arc<Identity>);

impl SigningKey for IdentitySigner {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let is_offered = offered.contains(&SignatureScheme::ED25519);
        is_offered.then(|| Box::new(self.clone()) as Box<dyn Signer>)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(SubjectPublicKeyInfoDer::from(spki(self.0.public())))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ED25519
    }
}

impl Signer for IdentitySigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.0.sign_raw(message).to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ED25519
    }
}

/// Checks that the other end has the secret to the key that it shows.
fn check(
    message: &[u8],
    shown: &[u8],
    signed: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let signature = <[u8; 64]>::try_from(signed.signature()).ok();
    let is_right = signed.scheme == SignatureScheme::ED25519
        && of_spki(shown)
            .zip(signature)
            .is_some_and(|(key, signature)| identity::verify_raw(&key, message, &signature));
    if is_right { Ok(HandshakeSignatureValid::assertion()) } else { Err(SIGNATURE) }
}

const ENCODING: Error = Error::InvalidCertificate(CertificateError::BadEncoding);
/// Error for a wrong signature, or one of TLS 1.2, which is not spoken here.
const SIGNATURE: Error = Error::InvalidCertificate(CertificateError::BadSignature);

/// The part of a verifier that is the same at both ends: TLS 1.3 alone, ed25519 alone, raw keys
/// alone.
macro_rules! signed_by_raw_keys {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _shown: &CertificateDer<'_>,
            _signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(SIGNATURE)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            shown: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            check(message, shown, signed)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

/// Verifier of the accepting end: takes any key.
#[derive(Debug)]
pub(super) struct ClientKeyVerifier;

impl ClientCertVerifier for ClientKeyVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        of_spki(shown).map(|_key| ClientCertVerified::assertion()).ok_or(ENCODING)
    }

    signed_by_raw_keys!();
}

/// Verifier of the connecting end: takes the expected key, or any if none is expected, and
/// remembers the shown key.
#[derive(Debug)]
pub(super) struct ServerKeyVerifier {
    expected: Option<[u8; 32]>,
    found: OnceLock<[u8; 32]>,
}

impl ServerKeyVerifier {
    pub(super) fn new(expected: Option<[u8; 32]>) -> Self {
        Self { expected, found: OnceLock::new() }
    }

    /// Returns the expected and the shown key if they differ.
    pub(super) fn mismatch(&self) -> Option<([u8; 32], [u8; 32])> {
        let (expected, found) = (self.expected?, *self.found.get()?);
        (expected != found).then_some((expected, found))
    }
}

impl ServerCertVerifier for ServerKeyVerifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let key = of_spki(shown).ok_or(ENCODING)?;
        let found = *self.found.get_or_init(|| key);
        if self.expected.is_some_and(|it| it != found) {
            let why = CertificateError::ApplicationVerificationFailure;
            return Err(Error::InvalidCertificate(why));
        }
        Ok(ServerCertVerified::assertion())
    }

    signed_by_raw_keys!();
}
