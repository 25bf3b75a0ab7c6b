//! Who may come in, and when: connections are bounded in all and for each address.
//!
//! Source: ours.

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

/// How long to wait when the system has no more sockets to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often idle connections are asked to make room while there is none.
const SHED_EVERY: Duration = Duration::from_secs(1);

/// Who may come in.
pub(crate) struct Room {
    permits: Arc<Semaphore>,
    pub(crate) seats: Arc<Seats>,
    /// Asks idle connections to close.
    pub(crate) shed: Arc<Notify>,
    limits: Arc<Limits>,
}

/// How many connections each address has, and requests by way of a proxy.
#[derive(Debug, Default)]
pub(crate) struct Seats(Mutex<HashMap<IpAddr, usize>>);

impl Seats {
    /// Counts one more for `address`, unless it has `most`.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<Seat> {
        let (mut taken, address) = (self.lock(), neighborhood(address));
        // The last one out removes it; here at least one is in.
        let count = taken.entry(address).or_default();
        if most.max(1) <= *count {
            return None;
        }
        *count += 1;
        Some(Seat { seats: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place in the room.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    _seat: Seat,
}

/// One of those that an address may have.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    address: IpAddr,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut peers = self.seats.lock();
        if let Entry::Occupied(mut count) = peers.entry(self.address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Room {
    pub(crate) fn new(limits: Arc<Limits>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(limits.connections_max)),
            seats: Arc::default(),
            shed: Arc::new(Notify::new()),
            limits,
        }
    }

    /// Accepts the next connection as soon as there is room for it.
    pub(crate) async fn accept(
        &self,
        listener: &TcpListener,
    ) -> io::Result<(TcpStream, SocketAddr, Place)> {
        let permit = self.permit().await?;
        if self.permits.available_permits() == 0 {
            self.shed.notify_waiters();
        }
        loop {
            let tally = &self.limits.tally;
            match listener.accept().await {
                Ok((stream, peer)) => match self.enter(peer.ip()) {
                    Some(seat) => {
                        tally.add(Event::Accepted);
                        return Ok((stream, peer, Place { _permit: permit, _seat: seat }));
                    }
                    None => {
                        tracing::debug!(%peer, "connection refused: its address has enough");
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

    /// Waits until there is room for one more.
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

    /// Counts a peer in, unless its address has enough connections.
    fn enter(&self, peer: IpAddr) -> Option<Seat> {
        let limits = &self.limits;
        // Where TLS is spoken, the host is our own name.
        let is_named = limits.host.is_some() && limits.tls.is_none();
        let is_proxy = is_named && peer.to_canonical().is_loopback()
            || address::contains(&limits.proxies, peer);
        let most = match is_proxy {
            // All come from the proxy's address, long polls too: the bound is the proxy's to set.
            true => usize::MAX,
            false => limits.peer_connections_max,
        };
        self.seats.take(peer, most)
    }
}

/// What one subscriber has to itself: an address, of IPv6 the first half.
fn neighborhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// A peer gave up before we accepted it.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Open files or memory ran out; that passes.
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errnos = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|it| errnos.contains(&it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(one: &str, other: &str, are_one: bool) {
        let [one, other] = [one, other].map(|it| neighborhood(it.parse().unwrap()));
        assert_eq!(one == other, are_one, "{one} {other}");
    }

    #[test]
    fn a_proxy_on_this_machine_may_have_more_and_nobody_else() {
        let host = Some("docs.example".to_owned());
        let proxies = vec!["192.0.2.0/24".parse().unwrap()];
        let limits = Limits { host, proxies, peer_connections_max: 1, ..Limits::default() };
        let room = Room::new(Arc::new(limits));
        let check = |peer: &str, expected| {
            let seats = [(); 2].map(|()| room.enter(peer.parse().unwrap()));
            assert_eq!(seats.each_ref().map(Option::is_some), expected, "{peer}");
        };
        check("127.0.0.1", [true, true]);
        check("::ffff:127.0.0.1", [true, true]);
        check("::1", [true, true]);
        check("192.0.2.7", [true, true]);
        check("10.0.0.1", [true, false]);
        check("2001:db8::1", [true, false]);
    }

    #[test]
    fn a_subscriber_is_one_address_or_half_of_a_long_one() {
        check("10.0.0.1", "10.0.0.1", true);
        check("10.0.0.1", "::ffff:10.0.0.1", true);
        check("10.0.0.1", "10.0.0.2", false);
        check("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true);
        check("2001:db8:0:1::1", "2001:db8:0:2::1", false);
    }
}
