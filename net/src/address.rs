//! Client addresses: networks that settings name, and the client on whose behalf a trusted proxy
//! sends a request.
//!
//! Source: RFC 4632 (prefixes), RFC 7239 (`Forwarded`). `X-Forwarded-For` is the older header; most
//! proxies still send it. To either list each proxy appends the address from which it got the
//! request. So only the end of a list can be trusted, back to the first entry that is not a trusted
//! proxy.
//!
//! # Differences from RFC 7239
//!
//! A proxy appends to one of the two headers and passes the other on as the client sent it. If both
//! are present and name different clients, nobody can tell which one the proxy wrote: the request
//! is refused. A request whose `Forwarded` cannot be read is refused too.
//!
//! Sans-I/O.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::{HeaderMap, HeaderName, header};
use ipnet::{IpNet, Ipv4Net};

/// The older of the two headers.
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Maximum number of entries of a list that are read, from its end.
const HOPS_MAX: usize = 32;

/// A network: an address and the number of its bits that count. A single address is a network with
/// one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = || text.parse().map(|it: IpAddr| IpNet::from(it.to_canonical()));
        let network = text.parse::<IpNet>().or_else(|_| one());
        let network =
            network.map_err(|_neither| format!("{text:?} is no address and no network"))?;
        Ok(Self(canonical(network).trunc()))
    }
}

/// Returns the IPv4 network that an IPv4-mapped IPv6 network represents; returns other networks
/// unchanged.
fn canonical(network: IpNet) -> IpNet {
    let IpNet::V6(long) = network else { return network };
    let short = long.addr().to_ipv4_mapped().zip(long.prefix_len().checked_sub(96));
    short.and_then(|(it, bits)| Ipv4Net::new(it, bits).ok()).map_or(network, IpNet::V4)
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns whether one of `networks` contains `address`. An IPv4-mapped IPv6 address counts as its
/// IPv4 address.
pub fn contains(networks: &[Network], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|it| it.0.contains(&address))
}

/// Reason why the client behind a proxy is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForwardedProblem {
    /// The two headers name different clients.
    Twice,
    /// `Forwarded` cannot be read, so the proxy's own entry cannot be found in it.
    Unreadable,
}

impl fmt::Display for ForwardedProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Twice => {
                "Forwarded and X-Forwarded-For name different clients: the proxy in front has to remove the one \
                 that it does not set"
            }
            Self::Unreadable => "the Forwarded header does not follow RFC 7239",
        })
    }
}

/// Returns the client of a request from `peer`: `peer` itself, unless it is one of `proxies` and
/// names another client.
///
/// # Errors
///
/// The headers contradict each other or cannot be read.
pub(crate) fn client(
    peer: IpAddr,
    headers: &HeaderMap,
    proxies: &[Network],
) -> Result<IpAddr, ForwardedProblem> {
    if !contains(proxies, peer) {
        return Ok(peer);
    }
    let values = |name| {
        // The bytes before the proxy's own entry may be of any kind; that entry stays readable.
        let values = headers.get_all(name).iter().map(|it| String::from_utf8_lossy(it.as_bytes()));
        values.collect::<Vec<_>>().join(",")
    };
    let is_there = |name: &HeaderName| headers.contains_key(name);
    let forwarded = match is_there(&header::FORWARDED) {
        true => {
            let value = values(header::FORWARDED);
            let hops: Option<Vec<_>> = split(&value, ',').into_iter().flatten().map(node).collect();
            let hops = hops.filter(|it| !it.is_empty()).ok_or(ForwardedProblem::Unreadable)?;
            Some(last_untrusted(peer, hops.into_iter().rev(), proxies))
        }
        false => None,
    };
    let older = is_there(&X_FORWARDED_FOR)
        .then(|| last_untrusted(peer, values(X_FORWARDED_FOR).rsplit(',').map(address), proxies));
    match (forwarded, older) {
        (Some(one), Some(other)) if one != other => Err(ForwardedProblem::Twice),
        (one, other) => Ok(one.or(other).unwrap_or(peer)),
    }
}

/// Goes back from `peer` through `hops`, last first, to the first address that is not a proxy.
fn last_untrusted(
    peer: IpAddr,
    hops: impl Iterator<Item = Option<IpAddr>>,
    proxies: &[Network],
) -> IpAddr {
    let mut client = peer;
    for hop in hops.take(HOPS_MAX) {
        // A proxy that does not name its client counts as the client.
        let Some(hop) = hop else { break };
        client = hop;
        if !contains(proxies, client) {
            break;
        }
    }
    client
}

/// Reads one element of `Forwarded` (RFC 7239 §4): its `for` address, if it has one. `None` if the
/// element cannot be read.
fn node(element: &str) -> Option<Option<IpAddr>> {
    let pairs = split(element, ';')?.into_iter().filter_map(|it| it.split_once('='));
    let mut all = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    let named = all.next().map(|(_, value)| address(value.trim().trim_matches('"')));
    all.next().is_none().then_some(named.flatten())
}

/// Splits `text` at `at` outside quotes; `None` if a quote stays open.
fn split(text: &str, at: char) -> Option<Vec<&str>> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = text.split(|it: char| {
        let was_escaped = is_escaped;
        is_escaped = is_quoted && !was_escaped && it == '\\';
        is_quoted ^= !was_escaped && it == '"';
        !is_quoted && it == at
    });
    let parts = parts.collect();
    (!is_quoted).then_some(parts)
}

/// Reads an address, with or without a port and brackets (RFC 7239 §6); `None` if it is malformed.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(text);
    let parsed = bare.parse().or_else(|_| text.parse().map(|it: SocketAddr| it.ip()));
    parsed.ok().map(|it: IpAddr| it.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn networks(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|it| it.parse().unwrap()).collect()
    }

    #[test]
    fn a_network_has_its_addresses_and_no_others() {
        let all = networks(&["10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "::ffff:198.51.100.1"]);
        for (address, expected) in [
            ("10.255.0.1", true),
            ("11.0.0.1", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("::ffff:192.0.2.7", true),
            ("2001:db8:1::1", true),
            ("2001:db9::1", false),
            ("198.51.100.1", true),
        ] {
            assert_eq!(contains(&all, address.parse().unwrap()), expected, "{address}");
        }
        assert_eq!("10.1.2.3/8".parse::<Network>().unwrap().to_string(), "10.0.0.0/8");
        let mapped = networks(&["::ffff:192.0.2.0/120"]);
        assert!(contains(&mapped, "192.0.2.9".parse().unwrap()), "{mapped:?}");
        for wrong in ["", "10.0.0.0/33", "host.example", "10.0.0.0-10.0.0.9", "fe80::1%eth0"] {
            assert!(wrong.parse::<Network>().unwrap_err().contains(wrong), "{wrong}");
        }
    }

    fn check(peer: &str, headers: &[(&str, &str)], expected: Result<&str, ForwardedProblem>) {
        let proxies = networks(&["10.0.0.0/24", "::1"]);
        let named = headers.iter().map(|(name, value)| {
            (HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap())
        });
        let mut map = HeaderMap::new();
        for (name, value) in named {
            map.append(name, value);
        }
        let expected = expected.map(|it| it.parse().unwrap());
        assert_eq!(client(peer.parse().unwrap(), &map, &proxies), expected, "{headers:?}");
    }

    #[test]
    fn only_a_trusted_proxy_is_believed_and_only_what_it_added() {
        let old = "X-Forwarded-For";
        check("192.0.2.1", &[(old, "203.0.113.9")], Ok("192.0.2.1"));
        check("192.0.2.1", &[("Forwarded", "for=1.1.1.1"), (old, "2.2.2.2")], Ok("192.0.2.1"));
        check("10.0.0.1", &[], Ok("10.0.0.1"));
        check("10.0.0.1", &[(old, "203.0.113.9")], Ok("203.0.113.9"));
        check("10.0.0.1", &[(old, "1.1.1.1, 203.0.113.9")], Ok("203.0.113.9"));
        check("10.0.0.1", &[(old, "1.1.1.1, 203.0.113.9, 10.0.0.2")], Ok("203.0.113.9"));
        check("10.0.0.1", &[(old, "1.1.1.1"), (old, "203.0.113.9")], Ok("203.0.113.9"));
        check("10.0.0.1", &[(old, "10.0.0.3, 10.0.0.2")], Ok("10.0.0.3"));
        check("::1", &[(old, "203.0.113.9:4711")], Ok("203.0.113.9"));
        check("10.0.0.1", &[(old, "1.1.1.1, unknown, 10.0.0.2")], Ok("10.0.0.2"));
        check("10.0.0.1", &[(old, "")], Ok("10.0.0.1"));
    }

    #[test]
    fn forwarded_is_read_as_rfc_7239_says() {
        let check = |value, expected| check("10.0.0.1", &[("Forwarded", value)], Ok(expected));
        check("for=192.0.2.43", "192.0.2.43");
        check("For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17");
        check("for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60");
        check("for=192.0.2.43, for=198.51.100.17", "198.51.100.17");
        check("proto=https; for=192.0.2.43, for=10.0.0.9", "192.0.2.43");
        check("for=_hidden", "10.0.0.1");
        check("for=unknown, for=\"10.0.0.7:_x\"", "10.0.0.1");
        // Quoted text is not a pair.
        check("proto=https;host=\"a,for=10.0.0.9;x\";for=192.0.2.9", "192.0.2.9");
        check("host=\"a\\\",for=1.1.1.1\";for=192.0.2.9", "192.0.2.9");
    }

    #[test]
    fn headers_that_disagree_are_refused() {
        let both = |one, other| [("Forwarded", one), ("X-Forwarded-For", other)];
        check("10.0.0.1", &both("for=1.1.1.1", "1.1.1.1"), Ok("1.1.1.1"));
        check("10.0.0.1", &both("for=1.1.1.1", "2.2.2.2"), Err(ForwardedProblem::Twice));
        check("10.0.0.1", &both("for=10.0.0.8", "2.2.2.2"), Err(ForwardedProblem::Twice));
        for unreadable in ["for=1.1.1.1;for=2.2.2.2", "host=\"a, for=1.1.1.1"] {
            check("10.0.0.1", &[("Forwarded", unreadable)], Err(ForwardedProblem::Unreadable));
        }
    }

    proptest! {
        #[test]
        fn text_before_the_proxys_entry_never_changes_the_client(
            before in prop::collection::vec(0x20_u8..=0xFF, 0..60),
        ) {
            let mut headers = HeaderMap::new();
            let value = [&*before, b", 203.0.113.9"].concat();
            let Ok(value) = HeaderValue::from_bytes(&value) else { return Ok(()) };
            headers.insert(X_FORWARDED_FOR, value);
            let proxies = networks(&["10.0.0.0/24"]);
            let found = client("10.0.0.1".parse().unwrap(), &headers, &proxies);
            prop_assert_eq!(found, Ok("203.0.113.9".parse().unwrap()));
        }
    }
}
