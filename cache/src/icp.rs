//! ICP: the questions that caches put to each other, version 2 of the Internet Cache Protocol.
//!
//! A datagram has a front of 20 bytes, big-endian: opcode, version, length, number of the request,
//! options, option data, address of the sender. A query goes on with the address of the requester
//! and a URL that ends with a zero byte; answers with the URL of their query.
//!
//! Source: RFC 2186; TR §9.
//!
//! Sans-I/O.

use std::fmt;

/// Version that is spoken.
const VERSION: u8 = 2;

/// Length of the front, in bytes.
const FRONT_BYTES: usize = 20;

/// Longest datagram that is read or written, in bytes; it bounds URLs, too.
pub const DATAGRAM_BYTES_MAX: usize = 8 << 10;

/// What a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Have you an object?
    Query,
    /// Yes.
    Hit,
    /// No.
    Miss,
    /// The query cannot be read.
    Error,
    /// No, and do not ask me to fetch it.
    MissNoFetch,
    /// You may not ask.
    Denied,
}

impl Opcode {
    /// All that are read, with their numbers.
    const ALL: [(Self, u8); 6] = [
        (Self::Query, 1),
        (Self::Hit, 2),
        (Self::Miss, 3),
        (Self::Error, 4),
        (Self::MissNoFetch, 21),
        (Self::Denied, 22),
    ];

    fn number(self) -> u8 {
        Self::ALL.iter().find(|(it, _)| *it == self).map_or(0, |(_, number)| *number)
    }
}

/// A datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// What it says.
    pub opcode: Opcode,
    /// Number of the request, which its answer repeats.
    pub number: u32,
    /// The URL.
    pub url: String,
}

/// Why a datagram is not read; nothing is answered to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Its length is not the one that it names, or too short or too long.
    Length,
    /// It is of another version.
    Version,
    /// Its opcode is unknown.
    Opcode,
    /// It has no URL, or one that is no text.
    Url,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "its length is wrong",
            Self::Version => "it is of another version than 2",
            Self::Opcode => "its opcode is unknown",
            Self::Url => "it has no URL",
        })
    }
}

impl Datagram {
    /// Reads a datagram.
    ///
    /// # Errors
    ///
    /// It is malformed: count it, and answer nothing, since its sender may not be who it says.
    pub fn read(bytes: &[u8]) -> Result<Self, Flaw> {
        let (front, rest) = bytes.split_first_chunk::<FRONT_BYTES>().ok_or(Flaw::Length)?;
        let [opcode, version, length @ ..] = front;
        let [high, low, number @ ..] = length;
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if length != bytes.len() || DATAGRAM_BYTES_MAX < bytes.len() {
            return Err(Flaw::Length);
        }
        if *version != VERSION {
            return Err(Flaw::Version);
        }
        let known = Opcode::ALL.iter().find(|(_, it)| it == opcode);
        let (opcode, _) = *known.ok_or(Flaw::Opcode)?;
        let number = number.first_chunk().map_or(0, |it| u32::from_be_bytes(*it));
        let rest = match opcode {
            // The requester's address says nothing: the datagram's sender gets the answer.
            Opcode::Query => rest.get(4..).ok_or(Flaw::Length)?,
            _ => rest,
        };
        // Nothing but zeros may follow the URL.
        let end = rest.iter().position(|it| *it == 0).ok_or(Flaw::Url)?;
        let (url, zeros) = rest.split_at(end);
        let url = std::str::from_utf8(url).ok().filter(|it| !it.is_empty()).ok_or(Flaw::Url)?;
        if zeros.iter().any(|it| *it != 0) {
            return Err(Flaw::Url);
        }
        Ok(Self { opcode, number, url: url.to_owned() })
    }

    /// Returns the datagram; `None`: its URL is too long for one.
    pub fn write(&self) -> Option<Vec<u8>> {
        let requester: &[u8] = if self.opcode == Opcode::Query { &[0; 4] } else { &[] };
        let length = FRONT_BYTES + requester.len() + self.url.len() + 1;
        let named = u16::try_from(length).ok().filter(|_| length <= DATAGRAM_BYTES_MAX)?;
        let mut out = Vec::with_capacity(length);
        out.extend([self.opcode.number(), VERSION]);
        out.extend(named.to_be_bytes());
        out.extend(self.number.to_be_bytes());
        // Options, their data, and the sender's address, which none of us reads.
        out.extend([0; 12]);
        out.extend(requester);
        out.extend(self.url.as_bytes());
        out.push(0);
        Some(out)
    }

    /// Returns the answer to this query. It is never longer than the query.
    pub fn answer(&self, opcode: Opcode) -> Self {
        Self { opcode, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A query as Squid sends it: number 7, for `http://h/`.
    const QUERY: &[u8] =
        b"\x01\x02\x00\x22\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x00\x00\x02\
                           \x7f\x00\x00\x02http://h/\x00";

    #[test]
    fn a_query_is_read_and_answered_without_growing() {
        let query = Datagram::read(QUERY).unwrap();
        let expected = Datagram { opcode: Opcode::Query, number: 7, url: "http://h/".to_owned() };
        assert_eq!(query, expected);
        let hit = query.answer(Opcode::Hit).write().unwrap();
        assert_eq!(hit.get(..8), Some(&b"\x02\x02\x00\x1e\x00\x00\x00\x07"[..]));
        assert!(hit.ends_with(b"http://h/\0") && hit.len() < QUERY.len());
    }

    #[test]
    fn what_is_malformed_is_not_read() {
        let changed = |at: usize, to: u8| {
            let mut bytes = QUERY.to_vec();
            bytes[at] = to;
            Datagram::read(&bytes)
        };
        assert_eq!(changed(1, 3), Err(Flaw::Version));
        assert_eq!(changed(0, 99), Err(Flaw::Opcode));
        assert_eq!(changed(3, 0x23), Err(Flaw::Length));
        assert_eq!(changed(24, 0), Err(Flaw::Url));
        assert_eq!(changed(30, 0), Err(Flaw::Url), "something follows the URL");
        assert_eq!(changed(33, b'x'), Err(Flaw::Url), "it does not end");
        assert_eq!(changed(25, 0xff), Err(Flaw::Url));
        for end in 0..QUERY.len() {
            assert_eq!(Datagram::read(&QUERY[..end]), Err(Flaw::Length));
        }
        let long =
            Datagram { url: "x".repeat(DATAGRAM_BYTES_MAX), ..Datagram::read(QUERY).unwrap() };
        assert_eq!(long.write(), None);
    }

    proptest! {
        #[test]
        fn a_datagram_is_read_as_it_was_written(
            which in 0..Opcode::ALL.len(), number: u32, url in "[!-~]{1,200}"
        ) {
            let it = Datagram { opcode: Opcode::ALL[which].0, number, url };
            prop_assert_eq!(Datagram::read(&it.write().unwrap()), Ok(it));
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Datagram::read(&bytes);
        }
    }
}
