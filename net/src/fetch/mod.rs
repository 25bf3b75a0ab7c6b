//! Parts that the clients of line protocols (Gopher, NNTP, FTP) share: bounds, errors, lines,
//! connections, and the hosts and escapes of their URLs.

mod connection;
mod error;
mod lines;

pub(crate) use connection::{Connection, Watch};
pub use error::{Fault, FetchError};
pub(crate) use lines::{Dots, Lines, shown};
pub use lines::{TooLong, decode};

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::{Host, Url};

use crate::client::settings::Timeouts;
use crate::guard::Policy;

/// Bounds of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Largest object that is taken whole, in bytes; of a larger one the beginning is taken.
    /// Default 64 MiB.
    pub bytes_max: usize,
    /// Time-outs; `header` is for each reply, `idle` for data. With NNTP and FTP `total` is for
    /// each object or list.
    pub timeouts: Timeouts,
    /// Whether hosts of private networks and this machine may be reached. Default `false`.
    pub allow_private: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { bytes_max: 64 << 20, timeouts: Timeouts::default(), allow_private: false }
    }
}

impl Bounds {
    pub(crate) fn policy(&self) -> Policy {
        Policy::from_allow_private(self.allow_private)
    }
}

/// A name and password.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Login {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
}

impl Login {
    /// Returns the value of a field that sends it in HTTP: `Basic …` (RFC 7617 §2).
    pub fn basic(&self) -> String {
        format!("Basic {}", STANDARD.encode(format!("{}:{}", self.name, self.password)))
    }

    /// Reads the value of such a field; `None`: it has none in UTF-8.
    pub fn of_basic(value: &[u8]) -> Option<Self> {
        let (scheme, encoded) = str::from_utf8(value).ok()?.split_once(' ')?;
        let decoded = STANDARD.decode(encoded.trim()).ok()?;
        let (name, password) = str::from_utf8(&decoded).ok()?.split_once(':')?;
        let is_basic = scheme.eq_ignore_ascii_case("basic");
        is_basic.then(|| Self { name: name.to_owned(), password: password.to_owned() })
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("name", &self.name).field("password", &"…").finish()
    }
}

/// A server: a host as DNS knows it, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Server {
    /// Returns the server of a URL whose port may be left out.
    pub(crate) fn of(url: &Url, port: u16) -> Result<Self, Fault> {
        let host = url.host_str().filter(|it| !it.is_empty());
        let host = host.ok_or_else(|| Fault::url("it names no host"))?;
        // The parser of URLs reads hosts of schemes that browsers do not know only in part.
        let host = Host::parse(host).map_err(|error| Fault::url(format!("{host}: {error}")))?;
        Ok(Self { host, port: url.port().unwrap_or(port) })
    }

    pub(crate) fn host(&self) -> Host<&str> {
        match &self.host {
            Host::Domain(name) => Host::Domain(name),
            Host::Ipv4(address) => Host::Ipv4(*address),
            Host::Ipv6(address) => Host::Ipv6(*address),
        }
    }
}

/// Returns the bytes that part of a URL stands for (RFC 3986 §2.1); `%` without two digits stands
/// for itself.
pub fn unescaped(text: &str) -> Vec<u8> {
    let digit =
        |it: Option<&u8>| char::from(*it?).to_digit(16).and_then(|it| u8::try_from(it).ok());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        match (first, digit(after.first()), digit(after.get(1))) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(high << 4 | low);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// Returns bytes as part of a URL's path: all but letters, digits and `-._~/` are escaped.
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'-' | b'.' | b'_' | b'~' | b'/' => text.push(char::from(*byte)),
            it if it.is_ascii_alphanumeric() => text.push(char::from(*it)),
            it => text.push_str(&format!("%{it:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_are_read_as_dns_knows_them() {
        let of = |url: &str| Server::of(&Url::parse(url).unwrap(), 70);
        let host = Host::Domain("example.org".to_owned());
        assert_eq!(of("gopher://EXAMPLE.org/1").unwrap(), Server { host, port: 70 });
        let host = Host::Ipv4([127, 0, 0, 1].into());
        assert_eq!(of("gopher://0x7f.1:7/1").unwrap(), Server { host, port: 7 });
        assert!(matches!(of("gopher:1").unwrap_err(), Fault::Url { .. }));
        assert!(matches!(of("gopher://a%20b/").unwrap_err(), Fault::Url { .. }));
    }

    #[test]
    fn names_and_passwords_are_read_as_they_are_sent() {
        let login = Login { name: "a".to_owned(), password: "b:c".to_owned() };
        assert_eq!(Login::of_basic(login.basic().as_bytes()), Some(login));
        for bad in ["Bearer YTpi", "Basic", "Basic YQ==", "Basic !", "Basic /zph"] {
            assert_eq!(Login::of_basic(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_lone_percent_sign_stands_for_itself() {
        assert_eq!(unescaped("%41%4a%zz%4"), b"AJ%zz%4");
    }

    proptest! {
        #[test]
        fn escapes_are_undone(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(unescaped(&escaped(&bytes)), bytes);
        }
    }
}
