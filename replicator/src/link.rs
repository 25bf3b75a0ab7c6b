//! Links between members: frames, their order and their pace.
//!
//! A link is one connection ([`net::peer`]) between two members. [`Hub`] keeps the links: it
//! connects, accepts, and makes sure that there is only one between two members. Its user sends
//! over a [`Link`] and receives [`Event`]s.

pub mod call;
mod caller;
pub mod dial;
pub mod frame;
pub mod goodput;
mod hub;
pub mod probing;
pub mod pulse;
pub mod queue;
mod run;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;

pub use caller::Caller;
pub use hub::{Command, EVENTS_MAX, Hub, KeyCheck, LINKS_MAX, Neighbor};

use crate::id::MemberId;
use crate::limit::{Bucket, Share};
use frame::{Frame, Reason};
use goodput::Sample;
use probing::Probing;
use pulse::Pulse;
use queue::Queue;

/// A token bucket for a rate limit, which several links may share.
pub type Limit = Arc<Mutex<Bucket>>;

/// Maximum number of replies about the link itself that wait to be sent. While so many wait,
/// further requests get no reply.
const REPLIES_MAX: usize = 64;

/// An event on a link, or in making one.
#[derive(Debug)]
pub enum Event {
    /// A link is up. If there was another link to the same member, the other one goes down.
    Up(Link),
    /// A message came over a link.
    Message(Link, Bytes),
    /// The rate of the link while it was busy, in either direction.
    Goodput(Link, Sample),
    /// A probe has ended: bytes a second, or no result.
    Probed(Link, Option<u64>),
    /// The time between a null call to a member and its answer.
    RoundTrip(MemberId, Duration),
    /// There is room again on a link that was full.
    Room(Link),
    /// This link is down; there may be another one to the same member.
    Down(Link, End),
    /// A member cannot be connected to.
    Unreachable {
        /// The member and its address.
        neighbor: Neighbor,
        /// The reason.
        error: net::peer::Error,
        /// Time until the next attempt; `None` if there will be none.
        again: Option<Duration>,
    },
    /// An incoming connection was refused.
    Refused {
        /// The address of the other end.
        address: SocketAddr,
        /// The key that the other end showed.
        key: [u8; 32],
        /// The reason that was sent to the other end.
        reason: Reason,
    },
}

/// Reason why a link is down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum End {
    /// This end closed it.
    #[error("closed here: {}", .0.text())]
    Here(Reason),
    /// This member closed it, with a reason.
    #[error("closed by {0}: {reason}", reason = .1.text())]
    There(MemberId, Reason),
    /// The connection to this member broke, or the member closed it without a reason.
    #[error("the connection to {0} broke: {1}")]
    Broken(MemberId, #[source] std::io::Error),
    /// Nothing came from this member for [`pulse::DEAD`].
    #[error("nothing came from {0} for {dead} s", dead = pulse::DEAD.as_secs())]
    Dead(MemberId),
    /// This member sends or reads less than [`pulse::SLOW_BYTES`] in [`pulse::SLOW`].
    #[error("{0} sends or takes less than 16 KiB in {slow} s", slow = pulse::SLOW.as_secs())]
    Slow(MemberId),
    /// The bytes that this member sent are not a frame.
    #[error("{0} sent an invalid frame: {1}")]
    Frame(MemberId, #[source] frame::Error),
}

/// The reason why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// There is no room; [`Event::Room`] reports when there is room again.
    #[error("the link has more to send than it can hold")]
    Full,
    /// The message is longer than [`frame::MESSAGE_BYTES_MAX`].
    #[error("a message of {0} bytes is too long for a link")]
    TooLong(usize),
    /// The link is down.
    #[error("the link is down")]
    Down,
}

/// Bytes sent and received over a link, including frame headers, but not the overhead of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Received.
    pub bytes_in: u64,
    /// Sent.
    pub bytes_out: u64,
}

/// This member's end of a link; all clones are the same link.
#[derive(Clone)]
pub struct Link {
    shared: Arc<Shared>,
}

struct Shared {
    member: MemberId,
    key: [u8; 32],
    address: SocketAddr,
    is_dialed: bool,
    call_key: Option<[u8; 32]>,
    /// Start of this member: all times on the link are counted from it.
    started: Instant,
    since: Duration,
    state: Mutex<LinkState>,
    /// Notified when there is something to send.
    wake: Notify,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

struct LinkState {
    queue: Queue,
    /// Replies of this end about the link itself.
    replies: Vec<Frame>,
    limits: Vec<(Limit, Share)>,
    probing: Option<Probing>,
    pulse: Pulse,
    closing: Option<Reason>,
    /// Whether a message was refused for lack of room, and no `Room` was reported since.
    is_full: bool,
    is_down: bool,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({} at {})", self.shared.member, self.shared.address)
    }
}

impl PartialEq for Link {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Link {}

impl Link {
    fn new(stream: &net::peer::Stream, started: Instant) -> Self {
        let now = net::clock::monotonic().saturating_duration_since(started);
        let state = LinkState {
            queue: Queue::default(),
            replies: Vec::new(),
            limits: Vec::new(),
            probing: None,
            pulse: Pulse::new(now),
            closing: None,
            is_full: false,
            is_down: false,
        };
        let shared = Shared {
            member: MemberId::of(&stream.key()),
            key: stream.key(),
            address: stream.address(),
            is_dialed: stream.is_dialed(),
            call_key: stream.secret(CALL_LABEL).ok(),
            started,
            since: now,
            state: Mutex::new(state),
            wake: Notify::new(),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the id of the other end.
    pub fn member(&self) -> MemberId {
        self.shared.member
    }

    /// Returns the public key of the other end.
    pub fn key(&self) -> [u8; 32] {
        self.shared.key
    }

    /// Returns the address of the other end. If that end has dialed, its port cannot be dialed.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Returns whether this end has dialed the link, and not accepted it.
    pub fn is_dialed(&self) -> bool {
        self.shared.is_dialed
    }

    /// Returns the key for null calls that both ends derive from this link, if TLS gives one.
    pub fn call_key(&self) -> Option<[u8; 32]> {
        self.shared.call_key
    }

    /// Returns when the link came up, as the time since this member's start.
    pub fn since(&self) -> Duration {
        self.shared.since
    }

    /// Returns whether the link still accepts messages.
    pub fn is_up(&self) -> bool {
        let state = self.state();
        !state.is_down && state.closing.is_none()
    }

    /// Queues a message that is not a chunk; it is sent before all chunks.
    ///
    /// # Errors
    ///
    /// There is no room, or the link is down. Send the message again later, or close the link.
    pub fn send(&self, message: Bytes) -> Result<(), SendError> {
        self.push(message, Queue::push)
    }

    /// Queues a message with the chunk of this hash. Chunks of smaller classes are sent first; each
    /// class keeps its order.
    ///
    /// # Errors
    ///
    /// There is no room in this class, or the link is down. Send the message again when there is
    /// room.
    pub fn send_chunk(&self, class: u8, hash: [u8; 32], message: Bytes) -> Result<(), SendError> {
        self.push(message, |queue, message| queue.push_chunk(class, hash, message))
    }

    fn push(
        &self,
        message: Bytes,
        into: impl FnOnce(&mut Queue, Bytes) -> Result<(), queue::Full>,
    ) -> Result<(), SendError> {
        if frame::MESSAGE_BYTES_MAX < message.len() {
            return Err(SendError::TooLong(message.len()));
        }
        let mut state = self.state();
        if state.is_down || state.closing.is_some() {
            return Err(SendError::Down);
        }
        if let Err(queue::Full) = into(&mut state.queue, message) {
            state.is_full = true;
            return Err(SendError::Full);
        }
        drop(state);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Cancels a chunk. Returns true if it was still waiting.
    pub fn cancel(&self, hash: &[u8; 32]) -> bool {
        self.state().queue.cancel(hash)
    }

    /// Returns how many bytes wait to be sent.
    pub fn waiting(&self) -> usize {
        self.state().queue.bytes()
    }

    /// Sets the rate limits, in place of the present ones. Each of them is charged for sent bytes.
    pub fn set_limits(&self, limits: Vec<Limit>) {
        self.state().limits = limits.into_iter().map(|it| (it, Share::default())).collect();
        self.shared.wake.notify_one();
    }

    /// Starts a probe of the bandwidth, unless one is under way. It ends with [`Event::Probed`].
    pub fn probe(&self, round_trip: Duration) {
        self.state().probing.get_or_insert_with(|| Probing::new(round_trip));
        self.shared.wake.notify_one();
    }

    /// Closes the link, and sends the reason to the other end. Waiting messages are not sent.
    pub fn close(&self, reason: Reason) {
        self.state().closing.get_or_insert(reason);
        self.shared.wake.notify_one();
    }

    /// Returns the traffic so far.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            bytes_in: self.shared.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.shared.bytes_out.load(Ordering::Relaxed),
        }
    }

    fn now(&self) -> Duration {
        net::clock::monotonic().saturating_duration_since(self.shared.started)
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        // Each field is valid even if a thread panicked while it held the lock.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, frame: Frame) {
        let mut state = self.state();
        if state.replies.len() < REPLIES_MAX {
            state.replies.push(frame);
            drop(state);
            self.shared.wake.notify_one();
        }
    }
}

/// TLS exporter label of the key for null calls.
const CALL_LABEL: &str = "EXPORTER-harvest-null-call";
