//! Messages between members about content, and their wire forms.
//!
//! Source: TR §8. The wire forms are Harvest's own (docs/links.md, "Frames").
//!
//! A message begins with a byte for its kind. Numbers are big-endian; texts and lists follow their
//! length. All lengths are bounded. A message with bytes left over is refused: its sender is faulty
//! or lies.
//!
//! Sans-I/O.

mod wire;

#[cfg(test)]
mod tests;

use crate::id::{GroupId, MemberId};
use crate::version::{Hash, Namespace, Number, Version};

pub use wire::MessageError;

/// Maximum number of chunks that one message requests or cancels.
pub const CHUNKS_MAX: usize = 256;
/// Longest chunk, in bytes.
pub const CHUNK_BYTES_MAX: usize = 64 << 10;
/// Maximum number of namespaces of a group.
pub const NAMESPACES_MAX: usize = 1_024;
/// Longest message between the state machines of a group, in bytes.
pub const GROUP_BYTES_MAX: usize = 272 << 10;

/// A message from one member to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// For the group's state machine: charters, joins, estimates.
    Group {
        /// The group.
        group: GroupId,
        /// The state machine's own message, at most [`GROUP_BYTES_MAX`] bytes.
        bytes: Vec<u8>,
    },
    /// There is a new version.
    Announce(Announcement),
    /// Two different versions of one number that an origin has signed.
    Evidence {
        /// The group of the namespace.
        group: GroupId,
        /// One version, as [`Version::to_bytes`].
        first: Vec<u8>,
        /// The other.
        second: Vec<u8>,
    },
    /// A digest of the versions of a group that the sender knows.
    Digest {
        /// The group.
        group: GroupId,
        /// The digest over all [`VersionSummary`], in order.
        digest: [u8; 16],
    },
    /// The versions of a group that the sender knows, one by one.
    Versions {
        /// The group.
        group: GroupId,
        /// Whether the sender asks for the receiver's list in return.
        asks: bool,
        /// At most [`NAMESPACES_MAX`] versions, in the order of their namespaces.
        known: Vec<VersionSummary>,
    },
    /// The sender has a version whole, and readers see it.
    Held {
        /// The namespace.
        namespace: Namespace,
        /// The version's number.
        number: Number,
    },
    /// Send these chunks as soon as you have them.
    Request(Request),
    /// Do not send these chunks any more.
    Cancel(Vec<Hash>),
    /// A chunk, at most [`CHUNK_BYTES_MAX`] bytes; its hash identifies it.
    Chunk(Vec<u8>),
    /// The sender neither has these chunks nor expects them.
    Gone(Vec<Hash>),
}

/// A version and its route into a group. At most 200 bytes with the length before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The group through which it goes.
    pub group: GroupId,
    /// The way into that group.
    pub route: Route,
    /// The version as [`Version::to_bytes`], not checked yet.
    pub version: Vec<u8>,
}

/// The way of a version into a group. All members prefer the smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    /// Number of groups that the version came through before this one: 0 in the origin's own.
    pub distance: u8,
    /// The member that brought it into this group: in the origin's own groups the origin.
    pub entry: MemberId,
}

/// The newest version of a namespace that a member knows, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSummary {
    /// The namespace.
    pub namespace: Namespace,
    /// The number of the newest version.
    pub number: Number,
    /// The first half of that version's root. It reveals different versions of one number.
    pub root: [u8; 16],
    /// The number that two different versions have, if such versions are known.
    pub contradicted: Option<Number>,
}

/// A request for chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The namespace of the chunks.
    pub namespace: Namespace,
    /// The version's number.
    pub number: Number,
    /// Smaller priorities go first.
    pub priority: u8,
    /// At most [`CHUNKS_MAX`] chunks, in the order in which they are needed.
    pub chunks: Vec<Hash>,
}

impl Announcement {
    /// Makes the announcement of a version that came on this route.
    pub fn new(group: GroupId, route: Route, version: &Version) -> Self {
        Self { group, route, version: version.to_bytes() }
    }
}
