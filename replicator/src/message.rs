//! What members say to each other about content, and how it is written.
//!
//! Source: TR §8; the forms are ours (docs/replication.md, "Messages").
//!
//! A message begins with a byte that says which it is; numbers have their greatest byte first, texts and lists
//! their length before them. Everything is bounded, and what has bytes left over is refused: whoever sends it is
//! broken, or lies.
//!
//! Sans-I/O.

mod wire;

#[cfg(test)]
mod tests;

use crate::id::{GroupId, MemberId};
use crate::version::{Hash, Namespace, Number, Version};

pub use wire::ParseError;

/// Most chunks that one message asks for, or takes back.
pub const CHUNKS_MAX: usize = 256;
/// Longest chunk, in bytes.
pub const CHUNK_BYTES_MAX: usize = 64 << 10;
/// Most namespaces of a group.
pub const NAMESPACES_MAX: usize = 1_024;
/// Longest message between the machines of a group, in bytes.
pub const GROUP_BYTES_MAX: usize = 272 << 10;

/// What one member says to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// To the machine of that group: charters, joins, estimates.
    Group {
        /// Which group.
        group: GroupId,
        /// What it says, at most [`GROUP_BYTES_MAX`] bytes.
        bytes: Vec<u8>,
    },
    /// There is a new version.
    Announce(Announcement),
    /// An origin has said two things of one version: both of them.
    Evidence {
        /// Where it is a matter.
        group: GroupId,
        /// One of them, as [`Version::to_bytes`].
        first: Vec<u8>,
        /// The other.
        second: Vec<u8>,
    },
    /// What the sender knows of a group's versions, in short.
    Digest {
        /// Of which group.
        group: GroupId,
        /// Over all [`Known`], in order.
        digest: [u8; 16],
    },
    /// What the sender knows of a group's versions, one by one.
    Versions {
        /// Of which group.
        group: GroupId,
        /// Whether the sender asks for the receiver's in return.
        asks: bool,
        /// At most [`NAMESPACES_MAX`], in the order of their namespaces.
        known: Vec<Known>,
    },
    /// The sender has a version whole, and readers see it.
    Held {
        /// Of what.
        namespace: Namespace,
        /// Which one.
        number: Number,
    },
    /// Send these chunks, as soon as they are there.
    Request(Request),
    /// Do not send these any more.
    Cancel(Vec<Hash>),
    /// A chunk, at most [`CHUNK_BYTES_MAX`] bytes; it says itself which one.
    Chunk(Vec<u8>),
    /// The sender has none of these, nor does it expect them.
    Gone(Vec<Hash>),
}

/// A version, and how it came into a group. At most 200 bytes with the length before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The group through which it goes.
    pub group: GroupId,
    /// How far that group is from the origin.
    pub route: Route,
    /// The version as [`Version::to_bytes`]: whoever hears of it checks it first.
    pub version: Vec<u8>,
}

/// How a version came into a group: the smaller is the better, everywhere the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    /// Groups between the origin's and this one: 0 in the origin's own.
    pub distance: u8,
    /// The member that brought it: the origin itself in its own.
    pub entry: MemberId,
}

/// What a member knows of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Of which.
    pub namespace: Namespace,
    /// The newest version that it has heard of.
    pub number: Number,
    /// The first half of that version's root, by which different versions of one number are found.
    pub root: [u8; 16],
    /// The number that two versions have, if there are any.
    pub contradicted: Option<Number>,
}

/// Which chunks are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Of which namespace they are.
    pub namespace: Namespace,
    /// Of which version.
    pub number: Number,
    /// The smaller ones go first.
    pub priority: u8,
    /// At most [`CHUNKS_MAX`], in the order in which they are needed.
    pub chunks: Vec<Hash>,
}

impl Announcement {
    /// Announces a version that came on this route.
    pub fn new(group: GroupId, route: Route, version: &Version) -> Self {
        Self { group, route, version: version.to_bytes() }
    }
}

impl Message {
    /// Writes it; lists that are too long are cut.
    pub fn to_bytes(&self) -> Vec<u8> {
        wire::write(self)
    }

    /// Writes the [`Message::Chunk`] of these bytes, with one copy of them.
    pub fn chunk(bytes: &[u8]) -> Vec<u8> {
        wire::write_chunk(bytes)
    }

    /// Reads what [`Message::to_bytes`] writes, and nothing else.
    ///
    /// # Errors
    ///
    /// The bytes are no message: close the link, and say who sent it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ParseError> {
        wire::read(bytes)
    }
}
