//! Errors of connections between daemons, and whether to try again.

use std::io;

use rustls::{AlertDescription, Error as Tls};

use crate::error::{RETRY_DEFAULT, Retry};

/// Failure to connect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// TLS cannot be set up here.
    #[error("cannot set up TLS: {source}")]
    Setup {
        /// The error of rustls.
        source: Tls,
    },
    /// Nothing answers at the address in time, or the connection broke.
    #[error(transparent)]
    Net(#[from] crate::Error),
    /// A daemon with another key is there.
    #[error(
        "{peer} shows the key {}, not {}: another daemon is there, or it has lost its identity.key",
        digits(found),
        digits(expected)
    )]
    WrongKey {
        /// Host and port.
        peer: String,
        /// The key that was expected.
        expected: [u8; 32],
        /// The key that was shown.
        found: [u8; 32],
    },
    /// The other end shows no key of its own.
    #[error("{peer} shows no ed25519 key: it is not a Harvest daemon")]
    NoKey {
        /// Host and port.
        peer: String,
    },
    /// The address is our own.
    #[error("{peer} is this daemon itself: correct the address")]
    Ourselves {
        /// Host and port.
        peer: String,
    },
    /// The other end speaks TLS, but not our protocol, or not this version of it.
    #[error(
        "{peer} does not speak harvest-replicator/1: is it another service, or another version?"
    )]
    Protocol {
        /// Host and port.
        peer: String,
    },
    /// The other end refused this daemon.
    #[error("{peer} refused the connection ({alert}): does it expect another key here?")]
    Rejected {
        /// Host and port.
        peer: String,
        /// The alert that it sent.
        alert: String,
    },
    /// The other end speaks something else, or broke off.
    #[error("no secure connection to {peer}: {source}")]
    Handshake {
        /// Host and port.
        peer: String,
        /// The fault.
        source: io::Error,
    },
}

fn digits(key: &[u8; 32]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Error {
    /// Returns the error of a failed handshake.
    pub(super) fn of_handshake(peer: &str, source: io::Error) -> Self {
        let peer = peer.to_owned();
        let tls = source.get_ref().and_then(|it| it.downcast_ref::<Tls>());
        match tls {
            Some(
                Tls::NoCertificatesPresented
                | Tls::InvalidCertificate(_)
                | Tls::PeerIncompatible(_),
            ) => Self::NoKey { peer },
            Some(
                Tls::NoApplicationProtocol
                | Tls::AlertReceived(AlertDescription::NoApplicationProtocol),
            ) => Self::Protocol { peer },
            Some(Tls::AlertReceived(alert)) => Self::Rejected { peer, alert: format!("{alert:?}") },
            _ => Self::Handshake { peer, source },
        }
    }

    /// Returns whether to try again, and when at the earliest.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Setup { .. } | Self::Ourselves { .. } => Retry::No,
            // The right daemon may run there later.
            _ => Retry::After(RETRY_DEFAULT),
        }
    }
}
