//! Errors of the clients of line protocols, each with its URL and a remedy.

use std::io;

use crate::error::{Error, RETRY_DEFAULT, Retry};

/// A failed exchange.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {fault}")]
pub struct FetchError {
    /// The URL, without a password.
    pub url: String,
    /// The fault.
    pub fault: Fault,
}

impl FetchError {
    pub(crate) fn new(url: impl ToString, fault: impl Into<Fault>) -> Self {
        Self { url: url.to_string(), fault: fault.into() }
    }
}

/// The fault of a failed exchange.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The URL or name cannot be sent.
    #[error("{message}; correct the URL")]
    Url {
        /// The fault.
        message: String,
    },
    /// The host was not reached, or took too long.
    #[error(transparent)]
    Net(#[from] Error),
    /// The connection broke.
    #[error("the connection broke: {source}; try again later")]
    Cut {
        /// The system's error.
        source: io::Error,
    },
    /// The object is not there, or not for everybody.
    #[error("the server says \"{reply}\"; check the name and who may read it")]
    Refused {
        /// The server's words, in one line.
        reply: String,
    },
    /// The server cannot serve now.
    #[error("the server says \"{reply}\"; try again later")]
    Busy {
        /// The server's words, in one line.
        reply: String,
    },
    /// The server wants a name and password, or others than those given.
    #[error("the server says \"{reply}\"; check the name and password for this host")]
    Login {
        /// The server's words, in one line.
        reply: String,
    },
    /// The password would be sent for all to read.
    #[error(
        "the password would be sent unencrypted; use TLS, or allow unencrypted passwords for this host"
    )]
    Unencrypted,
    /// The server breaks the rules of the protocol.
    #[error("{message}; check that this port is the right one")]
    Protocol {
        /// The fault.
        message: String,
    },
}

impl Fault {
    pub(crate) fn url(message: impl Into<String>) -> Self {
        Self::Url { message: message.into() }
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::Protocol { message: message.into() }
    }

    /// Returns whether to try again, and when at the earliest.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Net(error) => error.retry(),
            Self::Cut { .. } | Self::Busy { .. } | Self::Protocol { .. } => {
                Retry::After(RETRY_DEFAULT)
            }
            Self::Url { .. } | Self::Refused { .. } | Self::Login { .. } | Self::Unencrypted => {
                Retry::No
            }
        }
    }
}

impl From<io::Error> for Fault {
    fn from(source: io::Error) -> Self {
        Self::Cut { source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_url_and_a_remedy() {
        let error = FetchError::new("ftp://h/a", Fault::Busy { reply: "421 full".to_owned() });
        assert_eq!(error.to_string(), "ftp://h/a: the server says \"421 full\"; try again later");
        assert_eq!(error.fault.retry(), Retry::After(RETRY_DEFAULT));
        assert_eq!(Fault::Unencrypted.retry(), Retry::No);
    }
}
