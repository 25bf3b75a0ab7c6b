//! Frames of a link: messages, and what the two ends report about the link itself.
//!
//! A frame is a header of four bytes and a body. The header is little-endian: its lower 24 bits are
//! the length of the body in bytes, its upper eight the kind. Kind 0 is a message, whose body is
//! opaque here. So a link that sends only messages is a sequence of messages, each after its length
//! as a u32.
//!
//! Sans-I/O.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The longest message, in bytes: a charter of 272 KiB and the fields around it.
pub const MESSAGE_BYTES_MAX: usize = (272 << 10) + (4 << 10);
/// The longest piece of a block, in bytes.
pub const PIECE_BYTES_MAX: usize = 16 << 10;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 4;
/// Bytes of free space that the decoder reserves when less than a quarter of them is left.
const SPACE_BYTES: usize = 64 << 10;

/// Marks a pressed frame: it was ready as soon as the frame before had been sent, so the link was
/// not idle between the two.
const PRESSED: u8 = 0x80;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message, whose content is opaque here.
    Message(Bytes),
    /// A ping, to be answered by [`Pong`](Self::Pong) to show that the link lives.
    Ping(u64),
    /// The answer to [`Ping`](Self::Ping), with the same number.
    Pong(u64),
    /// A piece of a block of a probe.
    Piece {
        /// Bytes of the block that come after this piece.
        left: u32,
        /// Bytes of this piece, including the four of `left`; the other bytes have no meaning.
        bytes: u32,
    },
    /// The last piece of a block has been received.
    Taken,
    /// A goodput sample, as the sender of this frame measured it on received bytes.
    Goodput {
        /// Received bytes.
        bytes: u64,
        /// Microseconds in which the bytes came.
        micros: u64,
    },
    /// The sender closes the link.
    Bye(Reason),
}

/// Reason why an end closes a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The closing end no longer needs the link.
    Unwanted,
    /// The closing end does not know the key of the other.
    Unknown,
    /// The closing end has another link to the same member.
    Duplicate,
    /// The daemon of the closing end stops.
    Stopping,
    /// The closing end has too many links.
    Full,
    /// The closing end received an invalid frame or message.
    Malformed,
    /// The leader of a group of the closing end denies the other end.
    Denied,
}

impl Reason {
    /// All reasons, at their numbers on the wire.
    const ALL: [Self; 7] = [
        Self::Unwanted,
        Self::Unknown,
        Self::Duplicate,
        Self::Stopping,
        Self::Full,
        Self::Malformed,
        Self::Denied,
    ];

    /// Returns the reason as text, worded from the point of view of the closing end.
    pub fn text(self) -> &'static str {
        match self {
            Self::Unwanted => "it no longer needs the link",
            Self::Unknown => "it does not know this member's key",
            Self::Duplicate => "it has another link to this member",
            Self::Stopping => "it stops",
            Self::Full => "it has too many links",
            Self::Malformed => "it received an invalid message",
            Self::Denied => "its group's access list denies this member: ask the group's leader",
        }
    }
}

/// The received bytes are not a frame. Close the link, because no later frame can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The body is longer than any valid one.
    #[error("a frame of {0} bytes is longer than the most, {1}")]
    TooLong(usize, usize),
    /// The kind is unknown.
    #[error("a frame of an unknown kind, {0}")]
    Kind(u8),
    /// The body does not fit its kind.
    #[error("the body of a frame of kind {0} is invalid")]
    Body(u8),
}

impl Frame {
    /// Appends the frame. A message of more than [`MESSAGE_BYTES_MAX`] bytes, or a piece of more
    /// than [`PIECE_BYTES_MAX`], is cut to this length; callers must not make such frames.
    pub fn encode(&self, pressed: bool, out: &mut BytesMut) {
        match self {
            Self::Message(body) => {
                let body = body.get(..MESSAGE_BYTES_MAX).unwrap_or(body);
                header(0, pressed, body.len(), out);
                out.put_slice(body);
            }
            Self::Ping(nonce) => {
                header(1, pressed, 8, out);
                out.put_u64_le(*nonce);
            }
            Self::Pong(nonce) => {
                header(2, pressed, 8, out);
                out.put_u64_le(*nonce);
            }
            Self::Piece { left, bytes } => {
                let bytes = usize::try_from(*bytes).unwrap_or(0).clamp(4, PIECE_BYTES_MAX);
                header(3, pressed, bytes, out);
                out.put_u32_le(*left);
                out.put_bytes(0, bytes - 4);
            }
            Self::Taken => header(4, pressed, 0, out),
            Self::Goodput { bytes, micros } => {
                header(5, pressed, 16, out);
                out.put_u64_le(*bytes);
                out.put_u64_le(*micros);
            }
            Self::Bye(reason) => {
                header(6, pressed, 1, out);
                out.put_u8(*reason as u8);
            }
        }
    }

    fn parse(kind: u8, mut body: Bytes) -> Result<Self, Error> {
        let wrong = Error::Body(kind);
        let length = body.len();
        Ok(match kind {
            0 => Self::Message(body),
            1 => Self::Ping(body.try_get_u64_le().map_err(|_short| wrong)?),
            2 => Self::Pong(body.try_get_u64_le().map_err(|_short| wrong)?),
            3 => {
                let left = body.try_get_u32_le().map_err(|_short| wrong)?;
                Self::Piece { left, bytes: u32::try_from(length).unwrap_or(u32::MAX) }
            }
            4 => Self::Taken,
            5 => Self::Goodput {
                bytes: body.try_get_u64_le().map_err(|_short| wrong)?,
                micros: body.try_get_u64_le().map_err(|_short| wrong)?,
            },
            6 => {
                let number = body.try_get_u8().map_err(|_short| wrong)?;
                Self::Bye(*Reason::ALL.get(usize::from(number)).ok_or(wrong)?)
            }
            _ => return Err(Error::Kind(kind)),
        })
    }
}

fn header(kind: u8, pressed: bool, length: usize, out: &mut BytesMut) {
    let kind = if pressed { kind | PRESSED } else { kind };
    // Bodies are shorter than 2^24 bytes.
    let length = u32::try_from(length).unwrap_or(0);
    out.reserve(HEADER_BYTES + usize::try_from(length).unwrap_or(0));
    out.put_u32_le(length | u32::from(kind) << 24);
}

/// Returns the shortest and the greatest length of a body of this kind.
fn lengths(kind: u8) -> Result<(usize, usize), Error> {
    Ok(match kind {
        0 => (0, MESSAGE_BYTES_MAX),
        1 | 2 => (8, 8),
        3 => (4, PIECE_BYTES_MAX),
        4 => (0, 0),
        5 => (16, 16),
        6 => (1, 1),
        _ => return Err(Error::Kind(kind)),
    })
}

/// Finds frames in received bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
}

impl Decoder {
    /// Returns the buffer for reading without a copy, with room for at least 16 KiB.
    pub fn space(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < SPACE_BYTES / 4 {
            self.buffer.reserve(SPACE_BYTES);
        }
        &mut self.buffer
    }

    /// Returns the next whole frame, and whether it was pressed; `None` until more bytes come.
    /// Bodies of messages share the memory of the received bytes: to keep a short one for long,
    /// copy it.
    ///
    /// # Errors
    ///
    /// The bytes are not a frame. Close the link. The header alone shows a wrong length or kind.
    pub fn next_frame(&mut self) -> Result<Option<(Frame, bool)>, Error> {
        let Some(first) = self.buffer.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let [a, b, c, kind] = *first;
        let (kind, pressed) = (kind & !PRESSED, kind & PRESSED != 0);
        let length = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        let (bytes_min, bytes_max) = lengths(kind)?;
        if bytes_max < length {
            return Err(Error::TooLong(length, bytes_max));
        }
        if length < bytes_min {
            return Err(Error::Body(kind));
        }
        if self.buffer.len() < HEADER_BYTES + length {
            return Ok(None);
        }
        self.buffer.advance(HEADER_BYTES);
        let body = self.buffer.split_to(length).freeze();
        Frame::parse(kind, body).map(|frame| Some((frame, pressed)))
    }

    /// Returns the length of the frame that has begun to come, its header included; `None` between
    /// two frames. Until the header is whole, the length is that of the header.
    pub fn begun(&self) -> Option<usize> {
        if self.buffer.is_empty() {
            return None;
        }
        let length = match self.buffer.first_chunk::<HEADER_BYTES>() {
            Some([a, b, c, _]) => usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16,
            None => 0,
        };
        Some(HEADER_BYTES + length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(bytes: &[u8], step: usize) -> Result<Vec<(Frame, bool)>, Error> {
        let (mut decoder, mut found) = (Decoder::default(), Vec::new());
        for part in bytes.chunks(step) {
            decoder.space().extend_from_slice(part);
            while let Some(frame) = decoder.next_frame()? {
                found.push(frame);
            }
            assert!(decoder.begun().unwrap_or(0) <= HEADER_BYTES + MESSAGE_BYTES_MAX);
        }
        Ok(found)
    }

    fn check_error(bytes: &[u8], expected: Error) {
        assert_eq!(decode(bytes, 1), Err(expected), "{bytes:?}");
    }

    #[test]
    fn a_message_is_framed_by_its_length() {
        let mut out = BytesMut::new();
        Frame::Message(Bytes::from_static(b"hello")).encode(false, &mut out);
        assert_eq!(&out[..], b"\x05\0\0\0hello");
        Frame::Bye(Reason::Unknown).encode(true, &mut out);
        assert_eq!(&out[9..], [1, 0, 0, 0x86, 1]);
        let mut decoder = Decoder::default();
        assert_eq!(decoder.begun(), None);
        decoder.space().extend_from_slice(&out[..3]);
        assert_eq!(decoder.begun(), Some(HEADER_BYTES));
        decoder.space().extend_from_slice(&out[3..6]);
        assert_eq!(decoder.begun(), Some(9));
    }

    #[test]
    fn too_long_frames_are_refused_by_their_first_bytes() {
        let bytes_max = MESSAGE_BYTES_MAX;
        let long = u32::try_from(bytes_max + 1).unwrap().to_le_bytes();
        check_error(&long, Error::TooLong(bytes_max + 1, bytes_max));
        check_error(&[0xff, 0xff, 0xff, 0], Error::TooLong(0xff_ffff, bytes_max));
        check_error(&[1, 0, 0, 4], Error::TooLong(1, 0));
        check_error(&[7, 0, 0, 1], Error::Body(1));
        check_error(&[0, 0, 0, 7], Error::Kind(7));
        check_error(&[1, 0, 0, 6, 99], Error::Body(6));
        check_error(b"GET / HTTP/1.1", Error::Kind(b' '));
    }

    fn frames() -> impl Strategy<Value = Frame> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300).prop_map(|it| Frame::Message(it.into())),
            Just(Frame::Message(Bytes::from_static(&[7; MESSAGE_BYTES_MAX]))),
            any::<u64>().prop_map(Frame::Ping),
            any::<u64>().prop_map(Frame::Pong),
            (any::<u32>(), 4..=16_384u32).prop_map(|(left, bytes)| Frame::Piece { left, bytes }),
            Just(Frame::Taken),
            any::<(u64, u64)>().prop_map(|(bytes, micros)| Frame::Goodput { bytes, micros }),
            prop::sample::select(Reason::ALL.to_vec()).prop_map(Frame::Bye),
        ]
    }

    proptest! {
        #[test]
        fn frames_are_read_as_they_were_sent(
            sent in prop::collection::vec((frames(), any::<bool>()), 0..9),
            step in 1usize..5_000,
        ) {
            let mut out = BytesMut::new();
            for (frame, pressed) in &sent {
                frame.encode(*pressed, &mut out);
            }
            prop_assert_eq!(decode(&out, step), Ok(sent));
        }

        #[test]
        fn random_bytes_are_frames_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..2_000),
            step in 1usize..100,
        ) {
            // The result does not depend on how the bytes are cut.
            prop_assert_eq!(decode(&bytes, step), decode(&bytes, 2_000));
        }
    }
}
