//! Hosts of callbacks: finds the machine to which a name resolves, for limits by host.
//!
//! # Differences from the standard
//!
//! * Anybody can make any number of names, so limits by host count addresses (for IPv6, networks).

use std::net::{IpAddr, Ipv6Addr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::{Host, Url};

/// Maximum number of lookups at once.
const LOOKUPS_MAX: usize = 16;

/// Time limit of a lookup.
const LOOKUP_MAX: Duration = Duration::from_secs(2);

/// The host of all names that do not resolve in time, or while too many lookups are under way.
const UNKNOWN: &str = "?";

#[derive(Debug)]
pub(super) struct Hosts {
    turns: Arc<Semaphore>,
}

impl Default for Hosts {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

impl Hosts {
    /// Returns the key under which a callback's host is counted.
    pub(super) async fn key(&self, callback: &Url) -> String {
        let address = match callback.host() {
            Some(Host::Ipv4(it)) => Some(it.into()),
            Some(Host::Ipv6(it)) => Some(it.into()),
            Some(Host::Domain(name)) => self.look_up(name.to_owned()).await,
            None => None,
        };
        address.map_or_else(|| UNKNOWN.to_owned(), network)
    }

    async fn look_up(&self, name: String) -> Option<IpAddr> {
        let turn = Arc::clone(&self.turns).try_acquire_owned().ok()?;
        let look = move || {
            // The turn lasts until the lookup ends, even if nobody waits for its result any more.
            let _turn = turn;
            (name.as_str(), 0).to_socket_addrs().ok()?.map(|it| it.ip()).min()
        };
        timeout(LOOKUP_MAX, tokio::task::spawn_blocking(look)).await.ok()?.ok()?
    }
}

/// Returns the unit that a provider usually gives to one customer: an IPv4 address, or an IPv6
/// network of 64 bits.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(it) => it.to_string(),
        IpAddr::V6(it) => format!("{}/64", Ipv6Addr::from_bits(it.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_host_is_the_address_of_its_name() {
        let hosts = Hosts::default();
        for (callback, expected) in [
            ("http://127.0.0.1:1/", "127.0.0.1"),
            ("http://localhost/", "127.0.0.1"),
            ("http://[::ffff:127.0.0.1]/", "127.0.0.1"),
            ("http://[2001:db8:1:2:3::4]/", "2001:db8:1:2::/64"),
            ("http://nobody.invalid/", UNKNOWN),
        ] {
            assert_eq!(hosts.key(&Url::parse(callback).unwrap()).await, expected, "{callback}");
        }
        let _turns = hosts.turns.acquire_many(LOOKUPS_MAX.try_into().unwrap()).await.unwrap();
        assert_eq!(hosts.key(&Url::parse("http://localhost/").unwrap()).await, UNKNOWN);
    }
}
