//! Tokens and client certificates of the settings.

use std::fmt;

use net::tls::ClientFiles;
use settings::Table;
use subtle::ConstantTimeEq as _;

/// A secret in the settings; its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Reads `token`, which is one word.
    pub fn read(table: &Table<'_>) -> Option<Self> {
        let text = table.string("token")?;
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            table.mistake("token", "the token is not one word", "visible ASCII without spaces");
        }
        Some(Self(text))
    }

    /// Returns the secret, for the request that sends it.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Returns whether `shown` is the secret. The time does not depend on the position at which a
    /// wrong one differs.
    pub(crate) fn is(&self, shown: &[u8]) -> bool {
        shown.ct_eq(self.0.as_bytes()).into()
    }
}

/// Reads the certificate and key for a source that asks for a certificate; `None` without them.
pub fn client_certificate(table: &Table<'_>) -> Option<ClientFiles> {
    let [certificate, key] = ["client_certificate", "client_key"].map(|it| table.path(it));
    if certificate.is_some() != key.is_some() {
        table.require("client_certificate", "the file of the certificate, in PEM");
        table.require("client_key", "the file of its key, in PEM");
    }
    let (certificate, key) = certificate.zip(key)?;
    Some(ClientFiles { certificate, key })
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
