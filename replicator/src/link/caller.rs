//! Null calls on a socket, in the protocol of [`call`](super::call).

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::call::{Calls, Outcome, PACKET_BYTES};
use super::{Event, Link};
use crate::id::MemberId;

/// Pause after a failed receive.
const PAUSE: Duration = Duration::from_millis(100);

/// Calls members, and answers their calls.
#[derive(Debug)]
pub struct Caller {
    socket: UdpSocket,
    calls: Mutex<Calls>,
    started: Instant,
}

impl Caller {
    /// Returns a caller on this socket, whose port is that of the links; times count from
    /// `started`.
    pub fn new(socket: UdpSocket, started: Instant) -> Self {
        Self { socket, calls: Mutex::new(Calls::default()), started }
    }

    /// Takes the key from a link that is up: from then on its member can be called, even after the
    /// link is down.
    pub fn handle_up(&self, link: &Link) {
        if let Some(key) = link.call_key() {
            self.calls().handle_key(link.member(), key, link.is_dialed(), self.now());
        }
    }

    /// Calls a member at this address; an answer becomes an [`Event::RoundTrip`]. Returns whether
    /// there was a key for the call; if not, a link has to come up first.
    ///
    /// # Errors
    ///
    /// The system cannot send to this address, for example because there is no route. Call again
    /// later.
    pub async fn call(&self, member: MemberId, address: SocketAddr) -> io::Result<bool> {
        let Some(packet) = self.calls().call(member, self.now()) else { return Ok(false) };
        self.socket.send_to(&packet, address).await?;
        Ok(true)
    }

    /// Answers calls and reports round trips, until the future is dropped.
    pub async fn run(&self, events: &mpsc::Sender<Event>) {
        // One byte more than a packet: longer ones are invalid.
        let mut packet = [0; PACKET_BYTES + 1];
        loop {
            let (bytes, from) = match self.socket.recv_from(&mut packet).await {
                Ok(came) => came,
                Err(error) => {
                    tracing::debug!(%error, "cannot receive a null call");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let came = packet.get(..bytes).unwrap_or_default();
            let outcome = self.calls().handle_packet(came, self.now());
            match outcome {
                Outcome::Answer(answer) => {
                    // If the answer is lost, the caller calls again.
                    let _ = self.socket.try_send_to(&answer, from);
                }
                Outcome::RoundTrip(member, took) => {
                    // If the channel is full, the round trip is dropped.
                    let _ = events.try_send(Event::RoundTrip(member, took));
                }
                Outcome::Ignore => {}
            }
        }
    }

    fn now(&self) -> Duration {
        net::clock::monotonic().saturating_duration_since(self.started)
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
