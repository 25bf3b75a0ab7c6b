//! The member codec: changes to gzip members and back.

use crate::change::{Epoch, Note, Scanned, Stamp, Version};
use crate::error::{Damage, Error};

/// What the extra field of a member's gzip header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whether a commit ends with this member.
    pub end_of_commit: bool,
    /// Whether the member holds notes (local state) and is never served.
    pub local: bool,
    /// Whether the member ends a feed or a snapshot: it holds no changes, `base` is the serial
    /// reached.
    pub end_mark: bool,
    /// The epoch it was written in; a collection may have begun a newer one since.
    pub epoch: Epoch,
    /// The number of the commit it belongs to.
    pub commit: u64,
    /// The last serial before the member.
    pub base: u64,
    /// Serial and stamp of every change, ascending.
    pub entries: Vec<(u64, Stamp)>,
}

/// One verified member.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its header.
    pub header: Header,
    /// Its plain bytes: a SOIF update stream.
    pub plain: Vec<u8>,
    /// Where it starts in the stream, in bytes.
    pub offset: u64,
    /// How long it is, in bytes, header and trailer included.
    pub length: u64,
}

impl Member {
    /// Returns the changes, in serial order; none for a local member or an end mark.
    ///
    /// # Errors
    ///
    /// The plain bytes are not what the header announces: treat the member as damaged.
    pub fn changes(&self) -> Result<Vec<Scanned>, Damage> {
        unimplemented!()
    }

    /// Returns the notes; none unless the member is local.
    ///
    /// # Errors
    ///
    /// The plain bytes are no notes: treat the member as damaged.
    pub fn notes(&self) -> Result<Vec<Note>, Damage> {
        unimplemented!()
    }
}

/// Incremental decoder: bytes of members in pieces of any size, verified members out.
#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
}

impl Decoder {
    /// Makes a decoder that refuses members above `member_bytes_max` bytes, packed or plain.
    #[must_use]
    pub fn new(member_bytes_max: usize) -> Self {
        let _ = member_bytes_max;
        Self { buffer: Vec::new() }
    }

    /// Adds bytes of the stream, in stream order.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next whole member, or `None` when more bytes are needed.
    ///
    /// # Errors
    ///
    /// [`Error::Stream`]: the stream is damaged at that offset; the decoder is of no further use.
    /// Drop the connection and fetch again from the last whole member.
    pub fn next_member(&mut self) -> Result<Option<Member>, Error> {
        unimplemented!()
    }

    /// Returns where the next member starts, in bytes of the stream.
    #[must_use]
    pub fn offset(&self) -> u64 {
        unimplemented!()
    }

    /// Ends the stream.
    ///
    /// # Errors
    ///
    /// [`Error::Stream`] with [`Damage::Truncated`]: the stream ends inside a member.
    pub fn finish(&self) -> Result<(), Error> {
        unimplemented!()
    }
}

/// Makes the member that ends a feed or a snapshot that reaches `version`.
#[must_use]
pub fn end_mark(version: Version) -> Vec<u8> {
    let _ = version;
    unimplemented!()
}
