//! Destinations: the hosts to which requests may go, as the settings list them.
//!
//! A host counts as the request names it: a name is that of a domain, and an address in a network. What
//! a name resolves to makes no difference, so that whoever may change that gains nothing.
//!
//! Sans-I/O.

use std::net::IpAddr;
use std::str::FromStr;

use net::address::{self, Network};
use url::Host;

/// Hosts to which requests may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Those of a domain.
    Domain(String),
    /// Those that are named by their addresses, in a network.
    Network(Network),
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(network) = text.parse() {
            return Ok(Self::Network(network));
        }
        match Host::parse(text.trim_start_matches('.')) {
            Ok(Host::Domain(domain)) if !domain.contains('*') => Ok(Self::Domain(domain)),
            _ => Err(format!("{text:?} is no domain, no address and no network")),
        }
    }
}

impl Destination {
    /// Returns whether a host, as a URL names it, is one of them.
    pub fn has(&self, host: &str) -> bool {
        let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
        match (self, host.parse::<IpAddr>()) {
            (Self::Network(network), Ok(address)) => address::contains(&[*network], address),
            (Self::Domain(domain), Err(_)) => is_in_domain(&host.to_ascii_lowercase(), domain),
            _ => false,
        }
    }
}

/// Returns whether requests may go to a host; if none are listed, to all.
pub(crate) fn allows(listed: &[Destination], host: &str) -> bool {
    listed.is_empty() || listed.iter().any(|it| it.has(host))
}

/// Returns whether a host is that of a domain, or below it. Both are in lower case.
pub(crate) fn is_in_domain(host: &str, domain: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let front = host.strip_suffix(domain.trim_start_matches('.'));
    front.is_some_and(|it| it.is_empty() || it.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_in_a_domain_or_an_address_in_a_network() {
        let has = |rule: &str, host: &str| rule.parse::<Destination>().unwrap().has(host);
        for rule in ["example.org", ".example.org", "EXAMPLE.org"] {
            for (host, expected) in [
                ("example.org", true),
                ("www.Example.org.", true),
                ("myexample.org", false),
                ("example.org.evil", false),
                ("org", false),
                ("192.0.2.7", false),
            ] {
                assert_eq!(has(rule, host), expected, "{rule} {host}");
            }
        }
        for (rule, host, expected) in [
            ("192.0.2.0/24", "192.0.2.7", true),
            ("192.0.2.0/24", "192.0.3.7", false),
            ("192.0.2.7", "[::ffff:192.0.2.7]", true),
            ("2001:db8::/32", "[2001:db8::1]", true),
            ("2001:db8::/32", "2001:db8::1", true),
            // Names are not looked up, and other spellings of addresses are none.
            ("0.0.0.0/0", "www.example.org", false),
            ("127.0.0.0/8", "0x7f.1", false),
            ("b\u{fc}cher.example", "xn--bcher-kva.example", true),
        ] {
            assert_eq!(has(rule, host), expected, "{rule} {host}");
        }
        for wrong in ["", ".", "*.example.org", "http://h/", "a b", "192.0.2.0/33"] {
            assert!(wrong.parse::<Destination>().is_err(), "{wrong:?}");
        }
    }
}
