//! The decoder of a stream of members, in pieces of any size.
//!
//! Sans-I/O.

use super::{Frame, Header, Member, Unpacker};
use crate::error::{Damage, Error};

/// Incremental decoder: takes bytes in pieces of any size, returns verified members.
#[derive(Debug)]
pub struct Decoder {
    /// The bytes fed so far; those before `done` are decoded and are dropped at the next feed.
    buffer: Vec<u8>,
    done: usize,
    offset: u64,
    /// Number of bytes from `done` that the next step needs.
    wanted: usize,
    unpacker: Unpacker,
}

impl Decoder {
    /// Makes a decoder that refuses members above `member_bytes_max` bytes, packed or plain.
    #[must_use]
    pub fn new(member_bytes_max: usize) -> Self {
        Self {
            buffer: Vec::new(),
            done: 0,
            offset: 0,
            wanted: 1,
            unpacker: Unpacker::new(member_bytes_max),
        }
    }

    /// Adds bytes of the stream, in stream order.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.done != 0 {
            self.buffer.drain(..self.done);
            self.done = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next whole member, or `None` when more bytes are needed.
    ///
    /// # Errors
    ///
    /// [`Error::Stream`]: the stream is damaged at the offset that the error names; the decoder
    /// cannot be used any more. Drop the connection and fetch again from the last whole member.
    pub fn next_member(&mut self) -> Result<Option<Member>, Error> {
        Ok(self.next_at()?.map(|(member, _)| member))
    }

    /// Returns the next whole member and its bytes as received; `None` when more bytes are needed.
    pub(crate) fn next_with_bytes(&mut self) -> Result<Option<(Member, Vec<u8>)>, Error> {
        let Some((member, at)) = self.next_at()? else { return Ok(None) };
        let bytes = self.buffer.get(at..self.done).unwrap_or_default().to_vec();
        Ok(Some((member, bytes)))
    }

    /// Returns the next whole member and its start in the buffer; `None` when more bytes are
    /// needed.
    fn next_at(&mut self) -> Result<Option<(Member, usize)>, Error> {
        let rest = &self.buffer[self.done..];
        if rest.len() < self.wanted {
            return Ok(None);
        }
        let offset = self.offset;
        let damaged = |what| Error::Stream { offset, what };
        let layout = match Header::read(rest).map_err(damaged)? {
            Frame::More(bytes) => {
                self.wanted = bytes;
                return Ok(None);
            }
            Frame::Whole(layout) => layout,
        };
        if self.unpacker.bytes_max < layout.member_bytes() {
            return Err(damaged(Damage::TooLarge));
        }
        if rest.len() < layout.member_bytes() {
            self.wanted = layout.member_bytes();
            return Ok(None);
        }
        let member = self.unpacker.unpack(layout, rest, offset).map_err(damaged)?;
        let at = self.done;
        self.done += usize::try_from(member.length).unwrap_or(usize::MAX);
        self.offset += member.length;
        self.wanted = 1;
        Ok(Some((member, at)))
    }

    /// Returns the offset of the next member in the stream, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Ends the stream.
    ///
    /// # Errors
    ///
    /// [`Error::Stream`]: the stream ends inside a member ([`Damage::Truncated`]), or with bytes
    /// that are not a member.
    pub fn finish(&self) -> Result<(), Error> {
        let rest = &self.buffer[self.done..];
        if rest.is_empty() {
            return Ok(());
        }
        // The remaining bytes may be unchecked, because the decoder was waiting for more. They are
        // checked now, so that the error does not depend on the sizes of the pieces.
        let what = Header::read(rest).err().unwrap_or(Damage::Truncated);
        Err(Error::Stream { offset: self.offset, what })
    }
}
