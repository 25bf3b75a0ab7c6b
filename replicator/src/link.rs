//! Links between members: what goes over one, in which order, and how fast.
//!
//! A link is one connection ([`net::peer`]) between two members. [`Hub`] keeps them: it connects, accepts, and
//! sees to it that there is one between two members. Whoever decides what is said has a [`Link`] in hand and
//! gets [`Event`]s.

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
pub use hub::{Command, EVENTS_MAX, Hub, Known, LINKS_MAX, Neighbor};

use crate::id::MemberId;
use crate::limit::{Bucket, Share};
use frame::{Frame, Reason};
use goodput::Sample;
use probing::Probing;
use pulse::Pulse;
use queue::Queue;

/// A bucket that several links may share.
pub type Limit = Arc<Mutex<Bucket>>;

/// Most answers about the link itself that wait to be sent; who asks for more gets none.
const REPLIES_MAX: usize = 64;

/// Something happened on a link, or was tried to be one.
#[derive(Debug)]
pub enum Event {
    /// A link is up. If there was another one to the same member, that one goes down.
    Up(Link),
    /// Something came over a link.
    Message(Link, Bytes),
    /// How fast the link was while it was busy, in either direction.
    Goodput(Link, Sample),
    /// A probe is over: bytes a second, or nothing that could be said.
    Probed(Link, Option<u64>),
    /// A null call and its answer took so long.
    RoundTrip(MemberId, Duration),
    /// There is room again on a link that was full.
    Room(Link),
    /// A link is down: this one, whatever other there may be to the same member.
    Down(Link, End),
    /// A member cannot be connected to; it is tried again after so long, or not at all.
    Unreachable {
        /// Whose address this is.
        neighbor: Neighbor,
        /// Why.
        error: net::peer::Error,
        /// The next attempt.
        again: Option<Duration>,
    },
    /// Somebody came in and was not let in.
    Refused {
        /// From where.
        address: SocketAddr,
        /// The key that was shown.
        key: [u8; 32],
        /// What it was told.
        reason: Reason,
    },
}

/// Why a link is down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum End {
    /// This end closed it.
    #[error("closed here: {}", .0.text())]
    Here(Reason),
    /// The other end closed it, and said why.
    #[error("closed by {}: {}", .member, .reason.text())]
    There {
        /// Who closed it.
        member: MemberId,
        /// Why.
        reason: Reason,
    },
    /// The connection broke, or the other end closed it without a word.
    #[error("the connection to {member} broke: {source}")]
    Broken {
        /// To whom.
        member: MemberId,
        /// What the system said.
        source: std::io::Error,
    },
    /// Nothing came for [`pulse::DEAD`].
    #[error("nothing came from {member} for {} s", pulse::DEAD.as_secs())]
    Dead {
        /// From whom.
        member: MemberId,
    },
    /// It sends or takes less than [`pulse::SLOW_BYTES`] in [`pulse::SLOW`].
    #[error("{member} sends or takes less than 16 KiB in {} s", pulse::SLOW.as_secs())]
    Slow {
        /// Who does.
        member: MemberId,
    },
    /// What came was no frame.
    #[error("{member} sent what is no frame: {source}")]
    Frame {
        /// Who did.
        member: MemberId,
        /// What is wrong with it.
        source: frame::Error,
    },
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// There is no room; an [`Event::Room`] will say when there is.
    #[error("the link has more to send than it can hold")]
    Full,
    /// It would be longer than [`frame::MESSAGE_BYTES_MAX`].
    #[error("a message of {0} bytes is too long for a link")]
    TooLong(usize),
    /// The link is down.
    #[error("the link is down")]
    Down,
}

/// Bytes that have gone over a link, frames included and TLS not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Received.
    pub bytes_in: u64,
    /// Sent.
    pub bytes_out: u64,
}

/// This member's end of a link; clones are the same.
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
    /// When this member started: what all times count from.
    started: Instant,
    since: Duration,
    state: Mutex<State>,
    /// There is something to send.
    wake: Notify,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

struct State {
    queue: Queue,
    /// What this end has to say about the link itself.
    replies: Vec<Frame>,
    limits: Vec<(Limit, Share)>,
    probing: Option<Probing>,
    pulse: Pulse,
    closing: Option<Reason>,
    /// Whether somebody has been told that there is no room, and not yet that there is.
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
        let state = State {
            queue: Queue::new(),
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

    /// Who is at the other end.
    #[must_use]
    pub fn member(&self) -> MemberId {
        self.shared.member
    }

    /// The public key of the other end.
    #[must_use]
    pub fn key(&self) -> [u8; 32] {
        self.shared.key
    }

    /// Where the other end is; if it has dialed, its port is of no use.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Whether this end has connected, and not accepted.
    #[must_use]
    pub fn is_dialed(&self) -> bool {
        self.shared.is_dialed
    }

    /// The key for null calls that both ends have from this link.
    #[must_use]
    pub fn call_key(&self) -> Option<[u8; 32]> {
        self.shared.call_key
    }

    /// When it came up, on the member's own clock since its start.
    #[must_use]
    pub fn since(&self) -> Duration {
        self.shared.since
    }

    /// Whether messages are still taken.
    #[must_use]
    pub fn is_up(&self) -> bool {
        let state = self.state();
        !state.is_down && state.closing.is_none()
    }

    /// Sends a message that is no chunk; it goes before all chunks.
    ///
    /// # Errors
    ///
    /// There is no room, or the link is down. Say it again later, or give the link up.
    pub fn send(&self, message: Bytes) -> Result<(), SendError> {
        self.push(message, Queue::push)
    }

    /// Sends the message that brings the chunk of this hash; of smaller `class` first, and of one class in order.
    ///
    /// # Errors
    ///
    /// There is no room in this class, or the link is down. Send it when there is.
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

    /// Takes back a chunk that has not gone yet. Returns whether it has not.
    pub fn cancel(&self, hash: &[u8; 32]) -> bool {
        self.state().queue.cancel(hash)
    }

    /// Bytes that wait to be sent.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state().queue.bytes()
    }

    /// Sets the buckets that what is sent is paid from.
    pub fn set_limits(&self, limits: Vec<Limit>) {
        self.state().limits = limits.into_iter().map(|it| (it, Share::default())).collect();
        self.shared.wake.notify_one();
    }

    /// Begins to probe the bandwidth, unless that is being done; the answer is an [`Event::Probed`].
    pub fn probe(&self, round_trip: Duration) {
        self.state().probing.get_or_insert_with(|| Probing::new(round_trip));
        self.shared.wake.notify_one();
    }

    /// Closes the link; the other end is told why. What waits is not sent.
    pub fn close(&self, reason: Reason) {
        self.state().closing.get_or_insert(reason);
        self.shared.wake.notify_one();
    }

    /// What has gone over the link so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        Traffic {
            bytes_in: self.shared.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.shared.bytes_out.load(Ordering::Relaxed),
        }
    }

    fn now(&self) -> Duration {
        net::clock::monotonic().saturating_duration_since(self.shared.started)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked while it had the lock left each part as it was.
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

/// What the key for null calls is taken from the connection as.
const CALL_LABEL: &str = "EXPORTER-harvest-null-call";
