//! Which machine a callback's name leads to, for what is bounded by host.
//!
//! # Differences from the standard
//!
//! * Names cost nothing, so what is bounded by host is bounded by address; of IPv6, by network.

use std::net::{IpAddr, Ipv6Addr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::{Host, Url};

/// Most names that are looked up at once.
const LOOKUPS_MAX: usize = 16;

/// How long looking up may take.
const LOOKUP_MAX: Duration = Duration::from_secs(2);

/// What all names count as that nobody knows in time.
const UNKNOWN: &str = "?";

/// Looks up names.
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
    /// What a callback's host counts as.
    pub(super) async fn named(&self, callback: &Url) -> String {
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
            // Until it has ended, whoever waits for it.
            let _turn = turn;
            (name.as_str(), 0).to_socket_addrs().ok()?.map(|it| it.ip()).min()
        };
        timeout(LOOKUP_MAX, tokio::task::spawn_blocking(look)).await.ok()?.ok()?
    }
}

/// What is given to one customer: an address, of IPv6 a network of 64 bits.
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
    async fn a_host_is_what_its_name_leads_to() {
        let hosts = Hosts::default();
        for (callback, expected) in [
            ("http://127.0.0.1:1/", "127.0.0.1"),
            ("http://localhost/", "127.0.0.1"),
            ("http://[::ffff:127.0.0.1]/", "127.0.0.1"),
            ("http://[2001:db8:1:2:3::4]/", "2001:db8:1:2::/64"),
            ("http://nobody.invalid/", UNKNOWN),
        ] {
            assert_eq!(hosts.named(&Url::parse(callback).unwrap()).await, expected, "{callback}");
        }
        let _turns = hosts.turns.acquire_many(LOOKUPS_MAX.try_into().unwrap()).await.unwrap();
        assert_eq!(hosts.named(&Url::parse("http://localhost/").unwrap()).await, UNKNOWN);
    }
}
