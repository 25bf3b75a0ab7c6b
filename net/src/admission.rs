//! Admission of connections: limits on their total number and on the number from each address.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::address;
use crate::server::Limits;
use crate::tally::Event;

/// Pause after the system has run out of sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Interval at which idle connections are asked to close while all slots are taken.
const SHED_EVERY: Duration = Duration::from_secs(1);

/// Admission of one listener's connections.
pub(crate) struct Admission {
    permits: Arc<Semaphore>,
    pub(crate) slots: Arc<AddressSlots>,
    /// Asks idle connections to close.
    pub(crate) shed: Arc<Notify>,
    limits: Arc<Limits>,
}

/// Number of connections, and of requests through a proxy, of each address (for IPv6, of each /64).
#[derive(Debug, Default)]
pub(crate) struct AddressSlots(Mutex<HashMap<IpAddr, usize>>);

impl AddressSlots {
    /// Takes a slot for `address`; `None` if it has `most` slots already. One slot is always given.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<AddressSlot> {
        let (mut taken, address) = (self.lock(), subscriber(address));
        // The drop of the last slot removes the entry.
        let count = taken.entry(address).or_default();
        if most.max(1) <= *count {
            return None;
        }
        *count += 1;
        Some(AddressSlot { slots: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of one connection.
pub(crate) struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    _slot: AddressSlot,
}

/// One of the slots that an address may have.
#[derive(Debug)]
pub(crate) struct AddressSlot {
    slots: Arc<AddressSlots>,
    address: IpAddr,
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let mut peers = self.slots.lock();
        if let Entry::Occupied(mut count) = peers.entry(self.address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Admission {
    pub(crate) fn new(limits: Arc<Limits>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(limits.connections_max)),
            slots: Arc::default(),
            shed: Arc::new(Notify::new()),
            limits,
        }
    }

    /// Accepts the next connection as soon as a slot is free.
    pub(crate) async fn accept(
        &self,
        listener: &TcpListener,
    ) -> io::Result<(TcpStream, SocketAddr, ConnectionSlot)> {
        let permit = self.permit().await?;
        if self.permits.available_permits() == 0 {
            self.shed.notify_waiters();
        }
        loop {
            let tally = &self.limits.tally;
            match listener.accept().await {
                Ok((stream, peer)) => match self.enter(peer.ip()) {
                    Some(slot) => {
                        tally.add(Event::Accepted);
                        return Ok((stream, peer, ConnectionSlot { _permit: permit, _slot: slot }));
                    }
                    None => {
                        tracing::debug!(%peer, "connection refused: its address has too many");
                        tally.add(Event::Crowding);
                    }
                },
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) if is_shortage(&error) => {
                    tracing::warn!(%error, "cannot accept connections; raise the limit of open files");
                    tally.add(Event::Shortage);
                    self.shed.notify_waiters();
                    sleep(ACCEPT_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for a free slot.
    async fn permit(&self) -> io::Result<OwnedSemaphorePermit> {
        let mut waited = false;
        loop {
            let permit = Arc::clone(&self.permits).acquire_owned();
            match timeout(SHED_EVERY, permit).await {
                Ok(permit) => return permit.map_err(io::Error::other),
                Err(_) => self.shed.notify_waiters(),
            }
            if !std::mem::replace(&mut waited, true) {
                self.limits.tally.add(Event::Waited);
            }
        }
    }

    /// Takes a slot of the peer's address; `None` if that address already has the maximum number of
    /// connections.
    fn enter(&self, peer: IpAddr) -> Option<AddressSlot> {
        let limits = &self.limits;
        // With TLS, `host` is this server's own name, not a proxy's.
        let is_named = limits.host.is_some() && limits.tls.is_none();
        let is_proxy = is_named && peer.to_canonical().is_loopback()
            || address::contains(&limits.proxies, peer);
        let most = match is_proxy {
            // All clients, long polls included, come from the proxy's address, so limiting them is
            // left to the proxy.
            true => usize::MAX,
            false => limits.peer_connections_max,
        };
        self.slots.take(peer, most)
    }
}

/// Returns the part of an address that belongs to one subscriber: the whole address of IPv4, the
/// /64 prefix of IPv6.
pub(crate) fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Returns whether the error concerns only one connection, whose peer gave up before it was
/// accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Returns whether the error is a lack of file descriptors or memory, which is temporary.
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errnos = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|it| errnos.contains(&it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(one: &str, other: &str, are_one: bool) {
        let [one, other] = [one, other].map(|it| subscriber(it.parse().unwrap()));
        assert_eq!(one == other, are_one, "{one} {other}");
    }

    #[test]
    fn only_proxies_may_exceed_the_bound_of_an_address() {
        let host = Some("docs.example".to_owned());
        let proxies = vec!["192.0.2.0/24".parse().unwrap()];
        let limits = Limits { host, proxies, peer_connections_max: 1, ..Limits::default() };
        let room = Admission::new(Arc::new(limits));
        let check = |peer: &str, expected| {
            let slots = [(); 2].map(|()| room.enter(peer.parse().unwrap()));
            assert_eq!(slots.each_ref().map(Option::is_some), expected, "{peer}");
        };
        check("127.0.0.1", [true, true]);
        check("::ffff:127.0.0.1", [true, true]);
        check("::1", [true, true]);
        check("192.0.2.7", [true, true]);
        check("10.0.0.1", [true, false]);
        check("2001:db8::1", [true, false]);
    }

    #[test]
    fn a_subscriber_is_one_ipv4_address_or_one_64_of_ipv6() {
        check("10.0.0.1", "10.0.0.1", true);
        check("10.0.0.1", "::ffff:10.0.0.1", true);
        check("10.0.0.1", "10.0.0.2", false);
        check("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true);
        check("2001:db8:0:1::1", "2001:db8:0:2::1", false);
    }
}
