//! The guard: the addresses to which a request may go.
//!
//! A URL may come from a stranger: a redirect, a registration, a link in a document. It must not
//! make the client send a request to a service that only this machine or its network can reach. So
//! the client vets every address on every hop *after* the name has been resolved, and connects to
//! exactly that address. A name that later resolves to another address (DNS rebinding) gains
//! nothing.
//!
//! Source: the IANA special-purpose address registries (RFC 6890 and its updates), and the
//! spellings of an IPv4 address inside IPv6: mapped (RFC 4291 §2.5.5.2), compatible (§2.5.5.1),
//! 6to4 (RFC 3056), NAT64 (RFC 6052, RFC 8215), Teredo (RFC 4380), ISATAP (RFC 5214). An address
//! that carries another counts as the worse of the two. Names of private networks: RFC 6761 §6.3,
//! RFC 6762 §3 and appendix G, RFC 8375, and `internal`, which ICANN keeps for them.
//!
//! Sans-I/O.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

/// Last labels of names that only a private network has.
const PRIVATE_LABELS: [&str; 9] =
    ["local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa"];

/// The hosts that a request may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Hosts of the public internet only: for URLs from strangers.
    Public,
    /// Private networks and this machine too: for URLs from an administrator.
    AllowPrivate,
}

impl Policy {
    /// Returns the policy for a source's setting `allow_private`.
    pub fn from_allow_private(allow_private: bool) -> Self {
        if allow_private { Self::AllowPrivate } else { Self::Public }
    }
}

/// Reason to refuse an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Refusal {
    /// Inside a site: RFC 1918, shared, unique-local. Allowed by [`Policy::AllowPrivate`].
    Private,
    /// This machine. Allowed by [`Policy::AllowPrivate`].
    Loopback,
    /// This link only; cloud machines keep their credentials there. Never allowed.
    LinkLocal,
    /// Reserved, documentation, benchmarking and the like. Never allowed.
    Reserved,
    /// Many hosts at once. Never allowed.
    Multicast,
    /// The unspecified address, which systems take for this machine. Never allowed.
    Unspecified,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Private => "an address of a private network",
            Self::Loopback => "an address of this machine itself",
            Self::LinkLocal => "a link-local address, which is never asked",
            Self::Reserved => "a reserved address, which is never asked",
            Self::Multicast => "a multicast address, which is never asked",
            Self::Unspecified => "the unspecified address, which is never asked",
        })
    }
}

/// Checks that a request may go to `address`.
///
/// # Errors
///
/// The policy forbids it. The caller tries the host's next address, or gives up.
pub fn vet(address: IpAddr, policy: Policy) -> Result<(), Refusal> {
    permit(classify(address), policy)
}

/// Checks that a request for `host` may go to a proxy, which resolves the name out of our sight.
///
/// # Errors
///
/// The policy forbids what the name itself tells. The caller gives up.
pub(crate) fn vet_host(host: &Host<&str>, policy: Policy) -> Result<(), Refusal> {
    permit(classify_host(host), policy)
}

fn permit(found: Option<Refusal>, policy: Policy) -> Result<(), Refusal> {
    match found {
        None => Ok(()),
        Some(Refusal::Private | Refusal::Loopback) if policy == Policy::AllowPrivate => Ok(()),
        Some(refusal) => Err(refusal),
    }
}

/// Returns the reason why `address` is not on the public internet; `None` if it is.
pub fn classify(address: IpAddr) -> Option<Refusal> {
    match address {
        IpAddr::V4(v4) => classify_v4(v4),
        IpAddr::V6(v6) => classify_v6(v6),
    }
}

/// Returns the reason why `host` is not on the public internet, as far as its name tells. A name
/// without a dot is looked up in the domains of a private network.
pub(crate) fn classify_host(host: &Host<&str>) -> Option<Refusal> {
    let name = match host {
        Host::Ipv4(address) => return classify_v4(*address),
        Host::Ipv6(address) => return classify_v6(*address),
        Host::Domain(name) => name.strip_suffix('.').unwrap_or(name),
    };
    let is_below = |last: &str| {
        let before = name.len().checked_sub(last.len()).and_then(|it| name.split_at_checked(it));
        before.is_some_and(|(before, end)| {
            end.eq_ignore_ascii_case(last) && (before.is_empty() || before.ends_with('.'))
        })
    };
    if is_below("localhost") {
        return Some(Refusal::Loopback);
    }
    let is_private = !name.contains('.') || PRIVATE_LABELS.into_iter().any(is_below);
    is_private.then_some(Refusal::Private)
}

/// Returns whether an answer came from a private network or this machine: by the address of the
/// peer, or behind a proxy by the name of the host.
pub(crate) fn is_inside(address: Option<IpAddr>, host: Option<Host<&str>>) -> bool {
    match address {
        Some(address) => classify(address).is_some(),
        None => host.is_some_and(|it| classify_host(&it).is_some()),
    }
}

fn classify_v4(address: Ipv4Addr) -> Option<Refusal> {
    let refusal = match address.octets() {
        [0, 0, 0, 0] => Refusal::Unspecified,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Refusal::Private,
        [127, ..] => Refusal::Loopback,
        [169, 254, ..] => Refusal::LinkLocal,
        [224..=239, ..] => Refusal::Multicast,
        // "This network", IETF protocols, documentation, 6to4 relays, benchmarking, AS112, future.
        [0, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [192, 31, 196, _]
        | [192, 52, 193, _]
        | [192, 175, 48, _]
        | [240..=255, ..] => Refusal::Reserved,
        _ => return None,
    };
    Some(refusal)
}

fn classify_v6(address: Ipv6Addr) -> Option<Refusal> {
    let own = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => return Some(Refusal::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => return Some(Refusal::Loopback),
        // Mapped, and translated (RFC 2765): wholly an IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            return classify_v4(v4_of(high, low));
        }
        // Compatible: deprecated and not routed; the address inside may be worse.
        [0, 0, 0, 0, 0, 0, high, low] => {
            return worse(Some(Refusal::Reserved), classify_v4(v4_of(high, low)));
        }
        // Local-use NAT64 (RFC 8215): the site decides on the position of the IPv4 address.
        [0x64, 0xff9b, 1, ..] => Some(Refusal::Reserved),
        [0xfc00..=0xfdff, ..] => Some(Refusal::Private),
        [0xfe80..=0xfebf, ..] => Some(Refusal::LinkLocal),
        // Site-local: deprecated, but some systems still route it.
        [0xfec0..=0xfeff, ..] => Some(Refusal::Private),
        [0xff00..=0xffff, ..] => Some(Refusal::Multicast),
        // Discard-only, ORCHID, documentation, segment routing.
        [0x100, 0, 0, 0 | 1, ..]
        | [0x2001, 0x10..=0x3f, ..]
        | [0x2001, 0xdb8, ..]
        | [0x3fff, 0..=0xfff, ..]
        | [0x5f00, ..] => Some(Refusal::Reserved),
        // Benchmarking, and IETF protocols besides Teredo.
        [0x2001, 1..=0x1ff, ..] => Some(Refusal::Reserved),
        // Only the global unicast block is in use; the rest is for the future.
        [0x2000..=0x3fff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => None,
        _ => Some(Refusal::Reserved),
    };
    carried(address).into_iter().fold(own, |worst, v4| worse(worst, classify_v4(v4)))
}

/// Returns the IPv4 addresses inside `address`; a gateway may send to each of them.
fn carried(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let [s0, s1, s2, s3, s4, s5, s6, s7] = address.segments();
    let mut found = Vec::new();
    match [s0, s1] {
        [0x2002, _] => found.push(v4_of(s1, s2)),
        [0x64, 0xff9b] if [s2, s3, s4, s5] == [0; 4] => found.push(v4_of(s6, s7)),
        // Teredo: the server, and the client with its bits inverted.
        [0x2001, 0] => found.extend([v4_of(s2, s3), v4_of(!s6, !s7)]),
        _ => {}
    }
    // ISATAP: any prefix, then 0000:5efe or 0200:5efe.
    if s5 == 0x5efe && matches!(s4, 0 | 0x200) {
        found.push(v4_of(s6, s7));
    }
    found
}

fn v4_of(high: u16, low: u16) -> Ipv4Addr {
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}

fn worse(a: Option<Refusal>, b: Option<Refusal>) -> Option<Refusal> {
    a.max(b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(address: &str, expected: Option<Refusal>) {
        assert_eq!(classify(address.parse().unwrap()), expected, "{address}");
    }

    #[test]
    fn classifies_the_blocks_of_the_registries() {
        use Refusal::{LinkLocal, Loopback, Multicast, Private, Reserved, Unspecified};
        for (address, expected) in [
            ("8.8.8.8", None),
            ("172.15.255.255", None),
            ("172.32.0.0", None),
            ("100.63.255.255", None),
            ("192.0.1.1", None),
            ("223.255.255.255", None),
            ("0.0.0.0", Some(Unspecified)),
            ("0.1.2.3", Some(Reserved)),
            ("10.0.0.1", Some(Private)),
            ("100.64.0.1", Some(Private)),
            ("127.0.0.1", Some(Loopback)),
            ("127.255.255.254", Some(Loopback)),
            ("169.254.169.254", Some(LinkLocal)),
            ("172.16.0.1", Some(Private)),
            ("172.31.255.255", Some(Private)),
            ("192.0.0.1", Some(Reserved)),
            ("192.88.99.1", Some(Reserved)),
            ("192.168.1.1", Some(Private)),
            ("198.18.0.1", Some(Reserved)),
            ("224.0.0.1", Some(Multicast)),
            ("240.0.0.1", Some(Reserved)),
            ("255.255.255.255", Some(Reserved)),
            ("2606:4700::1111", None),
            ("::", Some(Unspecified)),
            ("::1", Some(Loopback)),
            ("::7f00:1", Some(Reserved)),
            ("fd00:ec2::254", Some(Private)),
            ("fe80::1", Some(LinkLocal)),
            ("febf::1", Some(LinkLocal)),
            ("fec0::1", Some(Private)),
            ("ff02::1", Some(Multicast)),
            ("2001:db8::1", Some(Reserved)),
            ("2001:2::1", Some(Reserved)),
            ("3fff::1", Some(Reserved)),
            ("100::1", Some(Reserved)),
            ("4000::1", Some(Reserved)),
            ("64:ff9b:1::1", Some(Reserved)),
            ("64:ff9b:0:1::808:808", Some(Reserved)),
        ] {
            check(address, expected);
        }
    }

    #[test]
    fn classifies_an_address_inside_another_by_the_inner_one() {
        use Refusal::{LinkLocal, Loopback, Private};
        for (address, expected) in [
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("::ffff:8.8.8.8", None),
            ("::ffff:0:10.0.0.1", Some(Private)),
            ("64:ff9b::127.0.0.1", Some(Loopback)),
            ("64:ff9b::8.8.8.8", None),
            ("2002:7f00:1::", Some(Loopback)),
            ("2002:808:808::1", None),
            ("2002:a9fe:a9fe::1", Some(LinkLocal)),
            // Teredo: server 10.0.0.1; client 192.168.0.1, inverted.
            ("2001:0:a00:1::ffff:ffff", Some(Refusal::Unspecified)),
            ("2001:0:808:808:0:0:3f57:fffe", Some(Private)),
            ("2606:4700::5efe:10.0.0.1", Some(Private)),
            ("2606:4700::200:5efe:127.0.0.1", Some(Loopback)),
        ] {
            check(address, expected);
        }
    }

    #[test]
    fn settings_can_allow_private_and_loopback_addresses_only() {
        for (address, expected) in [
            ("10.1.2.3", Ok(())),
            ("127.0.0.1", Ok(())),
            ("::1", Ok(())),
            ("8.8.8.8", Ok(())),
            ("169.254.169.254", Err(Refusal::LinkLocal)),
            ("0.0.0.0", Err(Refusal::Unspecified)),
            ("::ffff:0.0.0.0", Err(Refusal::Unspecified)),
        ] {
            assert_eq!(vet(address.parse().unwrap(), Policy::AllowPrivate), expected, "{address}");
        }
        assert_eq!(vet("10.1.2.3".parse().unwrap(), Policy::Public), Err(Refusal::Private));
    }

    #[test]
    fn names_of_private_networks_are_known() {
        use Refusal::{Loopback, Private};
        for (host, expected) in [
            ("localhost", Some(Loopback)),
            ("LOCALHOST.", Some(Loopback)),
            ("a.localhost", Some(Loopback)),
            ("127.0.0.1", Some(Loopback)),
            ("2130706433", Some(Loopback)),
            ("[::ffff:10.0.0.1]", Some(Private)),
            ("wiki", Some(Private)),
            ("printer.local", Some(Private)),
            ("nas.home.arpa.", Some(Private)),
            ("localhost.localdomain", Some(Private)),
            ("metadata.google.internal", Some(Private)),
            ("www.example.org", None),
            ("notlocalhost.example", None),
            ("mylocal.example.", None),
            ("8.8.8.8", None),
        ] {
            let parsed = Host::parse(host).unwrap();
            let as_text = match &parsed {
                Host::Domain(_) => Host::Domain(host),
                Host::Ipv4(address) => Host::Ipv4(*address),
                Host::Ipv6(address) => Host::Ipv6(*address),
            };
            assert_eq!(classify_host(&as_text), expected, "{host}");
        }
        let name = || Some(Host::Domain("wiki"));
        assert!(is_inside(None, name()) && !is_inside(Some([8, 8, 8, 8].into()), name()));
    }

    /// Returns every spelling of an IPv4 address as an address.
    fn spellings(v4: Ipv4Addr) -> Vec<IpAddr> {
        let [a, b, c, d] = v4.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        [
            v4.to_ipv6_mapped(),
            v4.to_ipv6_compatible(),
            Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 0, 0x808, 0x808, 0, 0, !high, !low),
            Ipv6Addr::new(0x2001, 0, high, low, 0, 0, !0x808, !0x808),
            Ipv6Addr::new(0x2606, 0x4700, 0, 0, 0, 0x5efe, high, low),
        ]
        .map(IpAddr::V6)
        .into()
    }

    /// Returns the spellings that a URL may use for one IPv4 address.
    fn url_spellings(v4: Ipv4Addr) -> Vec<String> {
        let [a, b, c, d] = v4.octets();
        let number = u32::from(v4);
        let low = u16::from_be_bytes([c, d]);
        vec![
            format!("http://{v4}/"),
            format!("http://{v4}./"),
            format!("http://{number}/"),
            format!("http://{number:#x}/"),
            format!("http://0{number:o}/"),
            format!("http://{a:#x}.{b}.{low}/"),
            format!("http://{a}.{:#o}/", number & 0xff_ffff).replace("0o", "0"),
            format!("http://{a:#x}.{b:#x}.{c:#x}.{d:#X}/").replace("0X", "0x"),
            format!("http://[::ffff:{v4}]/"),
        ]
    }

    proptest! {
        #[test]
        fn no_spelling_of_a_refused_address_passes(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let refused = classify(v4.into());
            for spelling in spellings(v4) {
                prop_assert!(refused.is_none() || classify(spelling).is_some(), "{} {}", v4, spelling);
            }
        }

        #[test]
        fn a_number_as_host_is_classified_as_its_address(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            for spelling in url_spellings(v4) {
                let url = url::Url::parse(&spelling).unwrap();
                let address = match url.host().unwrap() {
                    Host::Ipv4(found) => IpAddr::V4(found),
                    Host::Ipv6(found) => IpAddr::V6(found),
                    Host::Domain(name) => panic!("{spelling} names {name}"),
                };
                prop_assert_eq!(classify(address), classify(v4.into()), "{}", spelling);
            }
        }

        #[test]
        fn every_private_network_is_refused_in_every_spelling(
            block in prop::sample::select(vec!["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
                "127.0.0.0/8", "169.254.0.0/16", "100.64.0.0/10", "0.0.0.0/8", "224.0.0.0/4",
                "240.0.0.0/4", "198.18.0.0/15"]),
            host: u32,
        ) {
            let block: ipnet::Ipv4Net = block.parse().unwrap();
            let v4 = Ipv4Addr::from(u32::from(block.network()) | host & u32::from(block.hostmask()));
            prop_assert!(vet(v4.into(), Policy::Public).is_err());
            for spelling in spellings(v4) {
                prop_assert!(vet(spelling, Policy::Public).is_err(), "{}", spelling);
            }
        }
    }
}
