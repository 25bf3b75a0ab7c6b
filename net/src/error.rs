//! Errors of the network, and whether to try again.

use std::error;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::guard::Refusal;

/// Any error, in the form in which hyper and body streams pass it on.
pub type BoxError = Box<dyn error::Error + Send + Sync>;

/// Time until the next attempt, if the peer does not name one.
pub const RETRY_DEFAULT: Duration = Duration::from_secs(30);

/// An error of a server's socket or of a client's request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Listening failed.
    #[error("{}", cannot_listen(*address, error))]
    Bind {
        /// The address to listen on.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// A URL that the client cannot fetch.
    #[error("cannot fetch {url}: {message}")]
    Url {
        /// The URL as given.
        url: String,
        /// The fault.
        message: String,
    },
    /// The guard refused an address.
    #[error("{host} is at {address}, {refusal}{}", allowing(*refusal))]
    Refused {
        /// The host named by the URL.
        host: String,
        /// The address that it resolved to.
        address: IpAddr,
        /// The reason.
        refusal: Refusal,
    },
    /// A host of the public internet redirects into a private network, or to this machine. That is
    /// never allowed: the owner of that host would choose the requests that are sent there. Correct
    /// the URL.
    #[error(
        "{from} redirects to {host}, which is at {address}, {refusal}: a public host is not followed \
         there, even with `allow_private`; name the URL itself if that is meant"
    )]
    PrivateRedirect {
        /// The public host.
        from: String,
        /// The host that it leads to.
        host: String,
        /// The address that it resolved to.
        address: IpAddr,
        /// The kind of address.
        refusal: Refusal,
    },
    /// The guard refused a name of a private network, which a proxy would look up there. Set
    /// `allow_private` if that is meant; where a public host redirects to it, name the URL itself.
    #[error("{}", private_name(host, proxy, from.as_deref()))]
    PrivateName {
        /// Host and port.
        host: String,
        /// The proxy.
        proxy: String,
        /// The public host that redirects there, if one does.
        from: Option<String>,
    },
    /// A proxy refused to pass the request on, or could not: nothing is known of the host. The
    /// message says what to do.
    #[error("{proxy} answered {status} for {host}; {}", advice_on_proxy(*status))]
    Proxy {
        /// The proxy.
        proxy: String,
        /// Host and port that were asked for.
        host: String,
        /// The proxy's status.
        status: http::StatusCode,
    },
    /// The host's name has no address.
    #[error("cannot resolve {host}: {source}; check the name and this machine's DNS")]
    Resolve {
        /// The host.
        host: String,
        /// The system's error.
        source: io::Error,
    },
    /// Nothing answers at the host.
    #[error("cannot connect to {host}: {source}; is it running and reachable?")]
    Connect {
        /// Host and port.
        host: String,
        /// The system's error.
        source: io::Error,
    },
    /// A secure connection cannot be made, often because of a certificate.
    #[error(
        "no secure connection to {host}: {source}; check its certificate and this machine's clock"
    )]
    Tls {
        /// Host and port.
        host: String,
        /// The error of TLS.
        source: io::Error,
    },
    /// The system's certificates could not be read.
    #[error(
        "cannot set up TLS: {message}; install the system's CA certificates (Debian: ca-certificates)"
    )]
    TlsSetup {
        /// The fault.
        message: String,
    },
    /// A certificate or key cannot be used.
    #[error("{path}: {message}; put a certificate or key in PEM there", path = .path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The fault.
        message: String,
    },
    /// The peer took too long.
    #[error("{host} took more than {} s {stage}", after.as_secs_f64())]
    Timeout {
        /// Host and port.
        host: String,
        /// The stage that took too long.
        stage: Stage,
        /// The time-out.
        after: Duration,
    },
    /// The peer does not speak HTTP, or broke off before the end of its head.
    #[error("no valid HTTP answer from {host}: {source}")]
    Protocol {
        /// Host and port.
        host: String,
        /// The fault.
        source: BoxError,
    },
    /// The answer broke off before its announced end.
    #[error("the answer of {url} broke off after {received} bytes: {source}")]
    Cut {
        /// The URL that was fetched.
        url: String,
        /// Number of bytes of the body that came.
        received: u64,
        /// The fault.
        source: BoxError,
    },
    /// The answer is larger than the caller accepts.
    #[error("the answer of {url} is larger than {bytes_max} bytes")]
    TooLarge {
        /// The URL that was fetched.
        url: String,
        /// The limit, in bytes.
        bytes_max: u64,
    },
    /// There are too many redirects.
    #[error("{url} redirects more than {redirects_max} times")]
    Redirects {
        /// The first URL.
        url: String,
        /// The limit.
        redirects_max: u32,
    },
    /// The answer says that the request failed.
    #[error("{url} answered {status}{}", explain(message))]
    Status {
        /// The URL that was fetched.
        url: String,
        /// Its status.
        status: http::StatusCode,
        /// The beginning of the answer's text, in one line; may be empty.
        message: String,
        /// The time after which the peer wants the next request, if it names one.
        retry_after: Option<Duration>,
    },
    /// The answer is not the JSON that was expected.
    #[error("the answer of {url} is not the JSON expected: {message}")]
    Json {
        /// The URL that was fetched.
        url: String,
        /// The fault, with line and column.
        message: String,
    },
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "{address} is in use; stop the program that listens there or choose another address with --listen \
             (`listen` in the settings file)"
        ),
        io::ErrorKind::PermissionDenied => format!(
            "not allowed to listen on {address}; ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher port or \
             put a reverse proxy in front"
        ),
        io::ErrorKind::AddrNotAvailable => format!(
            "{address} is not an address of this machine; listen on one that `ip address` shows, or on 0.0.0.0 or \
             [::] for all of them"
        ),
        _ => format!("cannot listen on {address}: {error}"),
    }
}

/// Returns advice on addresses that settings can allow.
fn allowing(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Private | Refusal::Loopback => {
            "; set `allow_private` for this source if that is meant"
        }
        _ => "",
    }
}

fn private_name(host: &str, proxy: &str, from: Option<&str>) -> String {
    let is = format!("{host}, a name of a private network, which {proxy} would look up there");
    match from {
        Some(from) => format!(
            "{from} redirects to {is}: a public host is not followed there, even with \
             `allow_private`; name the URL itself if that is meant"
        ),
        None => {
            format!("{}{}", is.replacen(", a name", " is a name", 1), allowing(Refusal::Private))
        }
    }
}

/// Returns what to do about a proxy's refusal.
fn advice_on_proxy(status: http::StatusCode) -> &'static str {
    match status.as_u16() {
        // Some say 401 of a wrong password.
        401 | 407 => {
            "it wants a name and password: set or correct `proxy_user` and `proxy_password`"
        }
        403 | 451 => "its rules forbid this host or port: ask its administrator",
        408 | 429 | 500..=599 => {
            "it cannot reach the host now: see whether the name is right, and the proxy's log"
        }
        _ => "it opens no tunnel to it: is this the address of an HTTP proxy that knows CONNECT?",
    }
}

fn explain(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// The stage of a request that took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Waiting for a free connection of the client.
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

/// Advice on whether the same request may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not unless something is changed by hand.
    No,
    /// Perhaps, after this time.
    After(Duration),
}

impl Error {
    /// Returns whether to try again, and when at the earliest.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Status { retry_after: Some(after), .. } => Retry::After(*after),
            // 408, 425 and 429 are about the peer's state; the other 4xx are about our request.
            Self::Status { status, .. }
                if status.is_client_error() && !matches!(status.as_u16(), 408 | 425 | 429) =>
            {
                Retry::No
            }
            Self::Proxy { status, .. }
                if !status.is_server_error() && !matches!(status.as_u16(), 408 | 429) =>
            {
                Retry::No
            }
            Self::Status { .. }
            | Self::Proxy { .. }
            | Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Protocol { .. }
            | Self::Cut { .. }
            | Self::Timeout { .. } => Retry::After(RETRY_DEFAULT),
            Self::Bind { .. }
            | Self::Url { .. }
            | Self::Refused { .. }
            | Self::PrivateRedirect { .. }
            | Self::PrivateName { .. }
            | Self::TlsSetup { .. }
            | Self::Certificate { .. }
            | Self::TooLarge { .. }
            | Self::Redirects { .. }
            | Self::Json { .. } => Retry::No,
        }
    }
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

    fn check(error: &Error, retry: Retry) {
        assert_eq!(error.retry(), retry, "{error}");
    }

    #[test]
    fn errors_say_whether_to_try_again() {
        let later = Retry::After(RETRY_DEFAULT);
        check(&status(404, None), Retry::No);
        check(&status(401, None), Retry::No);
        check(&status(429, None), later);
        check(&status(503, None), later);
        let soon = Duration::from_secs(7);
        check(&status(503, Some(soon)), Retry::After(soon));
        let cut = Error::Cut { url: String::new(), received: 9, source: "end".into() };
        check(&cut, later);
        let proxy = |code| Error::Proxy {
            proxy: "the proxy p:1".to_owned(),
            host: "h:443".to_owned(),
            status: http::StatusCode::from_u16(code).unwrap(),
        };
        check(&proxy(407), Retry::No);
        check(&proxy(403), Retry::No);
        check(&proxy(502), later);
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let error = io::ErrorKind::PermissionDenied.into();
        check(&Error::Bind { address, error }, Retry::No);
    }

    #[test]
    fn messages_say_what_to_do() {
        let address = SocketAddr::from(([127, 0, 0, 1], 8501));
        let error = io::ErrorKind::AddrInUse.into();
        let message = Error::Bind { address, error }.to_string();
        assert!(message.contains("127.0.0.1:8501 is in use") && message.contains("--listen"));
        assert_eq!(status(404, None).to_string(), "http://h/ answered 404 Not Found");
        let refused = |refusal| {
            let host = "h:1".to_owned();
            Error::Refused { host, address: IpAddr::from([127, 0, 0, 1]), refusal }.to_string()
        };
        assert!(refused(Refusal::Private).ends_with("if that is meant"));
        assert!(refused(Refusal::LinkLocal).ends_with("which is never asked"));
        let named = |from: Option<&str>| {
            let (host, proxy) = ("wiki:80".to_owned(), "the proxy p:1".to_owned());
            Error::PrivateName { host, proxy, from: from.map(str::to_owned) }.to_string()
        };
        assert_eq!(
            named(None),
            "wiki:80 is a name of a private network, which the proxy p:1 would look up there; set \
             `allow_private` for this source if that is meant"
        );
        assert!(named(Some("w.example")).starts_with("w.example redirects to wiki:80, a name of"));
    }
}
