//! What can go wrong on the network: whose fault it is, and whether to try again.

use std::error;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::guard::Refusal;

/// Any error, as hyper and body streams hand it on.
pub type BoxError = Box<dyn error::Error + Send + Sync>;

/// How long to wait before a try that may succeed by itself, where the peer does not say.
pub const RETRY_DEFAULT: Duration = Duration::from_secs(30);

/// An error of a server's socket or of a client's request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another program listens there.
    #[error(
        "{address} is in use; stop what listens there or choose another address with --listen (`listen` in the settings file)"
    )]
    AddressInUse {
        /// Where we were to listen.
        address: SocketAddr,
    },
    /// The system does not let this user listen there.
    #[error(
        "not allowed to listen on {address}; ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher port or put a reverse proxy in front"
    )]
    AddressDenied {
        /// Where we were to listen.
        address: SocketAddr,
    },
    /// The address is none of this machine's.
    #[error(
        "{address} is not an address of this machine; listen on one that `ip address` shows, or on 0.0.0.0 or [::] for all of them"
    )]
    AddressNotLocal {
        /// Where we were to listen.
        address: SocketAddr,
    },
    /// Listening failed in another way.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// Where we were to listen.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A URL that the client cannot fetch.
    #[error("cannot fetch {url}: {message}")]
    Url {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        message: String,
    },
    /// The guard refused an address.
    #[error("{host} is at {address}, {refusal}{}", allowing(*refusal))]
    Refused {
        /// The host named by the URL.
        host: String,
        /// What it resolved to.
        address: IpAddr,
        /// Why not.
        refusal: Refusal,
    },
    /// A redirect of a host of the public internet leads into a private network, or to this machine, which
    /// nothing allows: whoever owns that host would choose what is asked there. Correct the URL.
    #[error(
        "{from} redirects to {host}, which is at {address}, {refusal}: a public host is not followed \
         there, whatever `allow_private` says; name the URL itself if that is meant"
    )]
    LedInside {
        /// The public host.
        from: String,
        /// The host that it leads to.
        host: String,
        /// What that resolved to.
        address: IpAddr,
        /// What that is.
        refusal: Refusal,
    },
    /// The host's name has no address.
    #[error("cannot resolve {host}: {source}; check the name and this machine's DNS")]
    Resolve {
        /// The host.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing answers at the host.
    #[error("cannot connect to {host}: {source}; is it running and reachable?")]
    Connect {
        /// Host and port.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// No secure connection, often because of a certificate.
    #[error(
        "no secure connection to {host}: {source}; check its certificate and this machine's clock"
    )]
    Tls {
        /// Host and port.
        host: String,
        /// What TLS said.
        source: io::Error,
    },
    /// The system's certificates could not be read.
    #[error(
        "cannot set up TLS: {message}; install the system's CA certificates (Debian: ca-certificates)"
    )]
    TlsSetup {
        /// What was wrong.
        message: String,
    },
    /// A certificate or key that was to be used cannot be.
    #[error("{path}: {message}; put a certificate or key in PEM there", path = .path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The peer took too long.
    #[error("{host} took more than {} s {stage}", after.as_secs_f64())]
    Timeout {
        /// Host and port.
        host: String,
        /// In doing what.
        stage: Stage,
        /// How long we waited.
        after: Duration,
    },
    /// The peer does not speak HTTP, or broke off before its answer.
    #[error("no valid HTTP answer from {host}: {source}")]
    Protocol {
        /// Host and port.
        host: String,
        /// What was wrong.
        source: BoxError,
    },
    /// The answer broke off before its announced end.
    #[error("the answer of {url} broke off after {received} bytes: {source}")]
    Cut {
        /// What was fetched.
        url: String,
        /// Body bytes that came, before decoding.
        received: u64,
        /// What was wrong.
        source: BoxError,
    },
    /// The answer is larger than the caller takes.
    #[error("the answer of {url} is larger than {bytes_max} bytes")]
    TooLarge {
        /// What was fetched.
        url: String,
        /// The limit, in bytes.
        bytes_max: u64,
    },
    /// Redirected too often.
    #[error("{url} redirects more than {redirects_max} times")]
    Redirects {
        /// Where it began.
        url: String,
        /// The limit.
        redirects_max: u32,
    },
    /// The answer says that the request failed.
    #[error("{url} answered {status}{}", explain(message))]
    Status {
        /// What was fetched.
        url: String,
        /// Its status.
        status: http::StatusCode,
        /// The beginning of what it said, in one line; may be empty.
        message: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The answer is not the JSON that was expected.
    #[error("the answer of {url} is not the JSON expected: {message}")]
    Json {
        /// What was fetched.
        url: String,
        /// What was wrong, with line and column.
        message: String,
    },
}

/// What allows an address that may be allowed.
fn allowing(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Private | Refusal::Loopback => {
            "; set `allow_private` for this source if that is meant"
        }
        _ => "",
    }
}

fn explain(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// What a peer took too long for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Waiting for one of our own connections to be free.
    Queue,
    /// Resolving and connecting, TLS included.
    Connect,
    /// The answer's head.
    Header,
    /// The next 16 KiB of the body.
    Idle,
    /// The whole exchange.
    Total,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "of waiting for a free connection",
            Self::Connect => "to connect",
            Self::Header => "to answer",
            Self::Idle => "without sending anything to speak of",
            Self::Total => "in all",
        })
    }
}

/// Whose fault an error is: who has to change something before it goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This machine or its settings.
    Ours,
    /// The peer.
    Theirs,
    /// What lies between.
    Network,
}

/// Whether the same request may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not unless something is changed by hand.
    No,
    /// Perhaps, after so long.
    After(Duration),
}

impl Error {
    /// Returns whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::AddressInUse { .. }
            | Self::AddressDenied { .. }
            | Self::AddressNotLocal { .. }
            | Self::Bind { .. }
            | Self::Url { .. }
            | Self::Refused { .. }
            | Self::TlsSetup { .. }
            | Self::Certificate { .. }
            | Self::Timeout { stage: Stage::Queue, .. } => Fault::Ours,
            Self::Status { status, .. } if is_our_mistake(*status) => Fault::Ours,
            Self::Tls { .. }
            | Self::Protocol { .. }
            | Self::TooLarge { .. }
            | Self::Redirects { .. }
            | Self::LedInside { .. }
            | Self::Status { .. }
            | Self::Json { .. } => Fault::Theirs,
            Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::Cut { .. }
            | Self::Timeout { .. } => Fault::Network,
        }
    }

    /// Returns whether to try again, and when at the earliest.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Status { retry_after: Some(after), .. } => Retry::After(*after),
            Self::Status { status, .. } if status.is_client_error() => match status.as_u16() {
                408 | 425 | 429 => Retry::After(RETRY_DEFAULT),
                _ => Retry::No,
            },
            Self::Status { .. }
            | Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Protocol { .. }
            | Self::Cut { .. }
            | Self::Timeout { .. } => Retry::After(RETRY_DEFAULT),
            Self::AddressInUse { .. }
            | Self::AddressDenied { .. }
            | Self::AddressNotLocal { .. }
            | Self::Bind { .. }
            | Self::Url { .. }
            | Self::Refused { .. }
            | Self::LedInside { .. }
            | Self::TlsSetup { .. }
            | Self::Certificate { .. }
            | Self::TooLarge { .. }
            | Self::Redirects { .. }
            | Self::Json { .. } => Retry::No,
        }
    }
}

/// Of the 4xx, 408 and 429 say something about the peer's state, the others about our request.
fn is_our_mistake(status: http::StatusCode) -> bool {
    status.is_client_error() && !matches!(status.as_u16(), 408 | 425 | 429)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, retry_after: Option<Duration>) -> Error {
        Error::Status {
            url: "http://h/".to_owned(),
            status: http::StatusCode::from_u16(code).unwrap(),
            message: String::new(),
            retry_after,
        }
    }

    fn check(error: &Error, fault: Fault, retry: Retry) {
        assert_eq!((error.fault(), error.retry()), (fault, retry), "{error}");
    }

    #[test]
    fn says_whose_fault_it_is_and_whether_to_try_again() {
        let later = Retry::After(RETRY_DEFAULT);
        check(&status(404, None), Fault::Ours, Retry::No);
        check(&status(401, None), Fault::Ours, Retry::No);
        check(&status(429, None), Fault::Theirs, later);
        check(&status(503, None), Fault::Theirs, later);
        let soon = Duration::from_secs(7);
        check(&status(503, Some(soon)), Fault::Theirs, Retry::After(soon));
        let cut = Error::Cut { url: String::new(), received: 9, source: "end".into() };
        check(&cut, Fault::Network, later);
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        check(&Error::AddressDenied { address }, Fault::Ours, Retry::No);
    }

    #[test]
    fn messages_say_what_to_do() {
        let address = SocketAddr::from(([127, 0, 0, 1], 8501));
        let message = Error::AddressInUse { address }.to_string();
        assert!(message.contains("127.0.0.1:8501 is in use") && message.contains("--listen"));
        assert_eq!(status(404, None).to_string(), "http://h/ answered 404 Not Found");
        let refused = |refusal| {
            let host = "h:1".to_owned();
            Error::Refused { host, address: IpAddr::from([127, 0, 0, 1]), refusal }.to_string()
        };
        assert!(refused(Refusal::Private).ends_with("if that is meant"));
        assert!(refused(Refusal::LinkLocal).ends_with("which is never asked"));
    }
}
