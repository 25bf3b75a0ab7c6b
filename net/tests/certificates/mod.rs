//! Certificates for tests: an authority, and the certificates that it signs.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// An authority that nobody else trusts.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, in PEM.
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Returns a certificate for these names, and its key, in PEM.
    pub(crate) fn sign(&self, names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(names).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// Writes `NAME.pem` and `NAME.key` for these names; returns their paths.
    pub(crate) fn write(&self, folder: &Path, name: &str, names: &[&str]) -> (PathBuf, PathBuf) {
        let (certificate, key) = self.sign(names);
        let [at, key_at] = ["pem", "key"].map(|it| folder.join(format!("{name}.{it}")));
        fs::write(&at, certificate).unwrap();
        fs::write(&key_at, key).unwrap();
        (at, key_at)
    }
}
