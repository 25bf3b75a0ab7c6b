//! Codec of NNTP: bytes in, replies and blocks out.
//!
//! The code of a reply says whether a block follows: of the replies that a reader of news gets, no
//! code is used both with and without one but 211, whose block (LISTGROUP) is never requested.
//!
//! Source: RFC 3977 §3.1 to §3.2 and appendix C.
//!
//! Sans-I/O.

use crate::fetch::{Dots, Lines, TooLong, shown};

/// Longest line of a reply, in bytes. The RFC allows 512; servers send longer greetings.
const REPLY_BYTES_MAX: usize = 4 * 1024;

/// Number of bytes of a block that are skipped, beyond those kept, before the connection is given
/// up.
const SKIPPED_BYTES_MAX: u64 = 64 << 20;

/// A server's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its code, of three digits.
    pub code: u16,
    /// What follows the code, as it came.
    pub text: Vec<u8>,
}

impl Reply {
    /// Returns the reply as errors quote it.
    pub fn shown(&self) -> String {
        format!("{} {}", self.code, shown(&self.text))
    }

    /// Returns whether a block follows.
    fn has_block(&self) -> bool {
        matches!(self.code, 100 | 101 | 215 | 220..=222 | 224 | 225 | 230 | 231)
    }
}

/// The lines that follow a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its content, without the final dot and with dots as they were before sending.
    pub bytes: Vec<u8>,
    /// Whether it is larger than allowed, so that only its beginning is here.
    pub truncated: bool,
}

/// What a server has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A reply without a block.
    Reply(Reply),
    /// A reply with its block.
    Block(Reply, Block),
}

/// The reason why a connection cannot be used further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A line of a reply is too long.
    #[error("{0}")]
    Line(TooLong),
    /// A line is no reply.
    #[error("the server sent a line that is no reply of NNTP")]
    Reply,
    /// A block does not end.
    #[error("the server sent more than 64 MiB beyond what was accepted")]
    Endless,
}

/// Reader of what a server sends.
#[derive(Debug)]
pub struct Codec {
    lines: Lines,
    block_bytes_max: usize,
    /// The reply whose block is being read.
    reading: Option<Reading>,
}

#[derive(Debug)]
struct Reading {
    reply: Reply,
    dots: Dots,
    block: Block,
    skipped: u64,
}

impl Codec {
    /// Returns a reader that keeps up to `block_bytes_max` bytes of each block.
    pub fn new(block_bytes_max: usize) -> Self {
        Self { lines: Lines::new(REPLY_BYTES_MAX), block_bytes_max, reading: None }
    }

    /// Sets the number of bytes that are kept of the next block.
    pub fn keep(&mut self, block_bytes_max: usize) {
        self.block_bytes_max = block_bytes_max;
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.lines.feed(bytes);
    }

    /// Returns whether a reply has come whose block is still to come.
    pub fn is_in_block(&self) -> bool {
        self.reading.is_some()
    }

    /// Returns whether bytes were fed that belong to no event yet.
    pub fn has_rest(&self) -> bool {
        self.reading.is_some() || !self.lines.rest().is_empty()
    }

    /// Returns what the server has sent next; `None` if more bytes are needed.
    ///
    /// # Errors
    ///
    /// The caller closes the connection.
    pub fn next_event(&mut self) -> Result<Option<Event>, Flaw> {
        if self.reading.is_none() {
            let Some(line) = self.lines.next_line().map_err(Flaw::Line)? else { return Ok(None) };
            let reply = parse(&line).ok_or(Flaw::Reply)?;
            if !reply.has_block() {
                return Ok(Some(Event::Reply(reply)));
            }
            let (dots, block) = (Dots::new(), Block::default());
            self.reading = Some(Reading { reply, dots, block, skipped: 0 });
        }
        let Some(reading) = &mut self.reading else { return Ok(None) };
        let rest = self.lines.rest();
        let end = reading.dots.feed(rest, &mut reading.block.bytes);
        let count = end.unwrap_or(rest.len());
        self.lines.consume(count);
        reading.cut(self.block_bytes_max)?;
        if end.is_none() {
            return Ok(None);
        }
        Ok(self.reading.take().map(|it| Event::Block(it.reply, it.block)))
    }
}

impl Reading {
    /// Leaves out what is beyond the first `bytes_max` bytes.
    fn cut(&mut self, bytes_max: usize) -> Result<(), Flaw> {
        let Some(over) = self.block.bytes.len().checked_sub(bytes_max).filter(|it| 0 < *it) else {
            return Ok(());
        };
        self.block.bytes.truncate(bytes_max);
        self.block.truncated = true;
        self.skipped += over as u64;
        if SKIPPED_BYTES_MAX < self.skipped { Err(Flaw::Endless) } else { Ok(()) }
    }
}

fn parse(line: &[u8]) -> Option<Reply> {
    let (code, text) = line.split_at_checked(3)?;
    if !code.iter().all(u8::is_ascii_digit) || !matches!(text.first(), None | Some(b' ')) {
        return None;
    }
    let code = str::from_utf8(code).ok()?.parse().ok()?;
    Some(Reply { code, text: text.trim_ascii().to_vec() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the events of a dialog, each in one line, and the fault that ended it.
    fn read(bytes: &[u8], piece: usize, block_bytes_max: usize) -> String {
        let mut codec = Codec::new(block_bytes_max);
        let mut found = Vec::new();
        for part in bytes.chunks(piece) {
            codec.feed(part);
            loop {
                match codec.next_event() {
                    Ok(None) => break,
                    Ok(Some(Event::Reply(reply))) => found.push(reply.shown()),
                    Ok(Some(Event::Block(reply, block))) => {
                        let cut = if block.truncated { "…" } else { "" };
                        let text = String::from_utf8_lossy(&block.bytes).into_owned();
                        found.push(format!("{} [{text:?}{cut}]", reply.shown()));
                    }
                    Err(flaw) => {
                        found.push(flaw.to_string());
                        return found.join("; ");
                    }
                }
            }
        }
        found.join("; ")
    }

    fn check(bytes: &[u8], expected: &str) {
        for piece in 1..=bytes.len() {
            assert_eq!(read(bytes, piece, 8), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn dialogs_are_read_in_pieces_of_any_size() {
        check(
            b"200 hi\r\n101 list:\r\nOVER\r\n..x\r\n.\r\n211 3 1 3 a.b\r\n223\r\n",
            r#"200 hi; 101 list: ["OVER\r\n.x"…]; 211 3 1 3 a.b; 223 "#,
        );
        check(b"222 0 <a>\n.\n430 no\n", r#"222 0 <a> [""]; 430 no"#);
    }

    #[test]
    fn hostile_servers_are_given_up() {
        check(b"200-hi\r\n", "the server sent a line that is no reply of NNTP");
        check(b"+20 hi\r\n", "the server sent a line that is no reply of NNTP");
        let endless = [b'2'; 2 * REPLY_BYTES_MAX];
        assert_eq!(read(&endless, 999, 8), "the server sent a line of more than 4096 bytes");
        let mut codec = Codec::new(8);
        codec.feed(b"222 0 <a>\r\n");
        let piece = vec![b'a'; 16 << 20];
        for _ in 0..4 {
            assert_eq!(codec.next_event(), Ok(None));
            codec.feed(&piece);
        }
        assert_eq!(codec.next_event(), Ok(None));
        codec.feed(&piece);
        assert_eq!(codec.next_event(), Err(Flaw::Endless));
    }

    proptest! {
        #[test]
        fn any_bytes_in_pieces_of_any_size_give_the_same(
            bytes in prop::collection::vec(prop::sample::select(b"12 .a\r\n".to_vec()), 0..80),
            piece in 1_usize..9,
        ) {
            prop_assert_eq!(read(&bytes, piece, 4), read(&bytes, 80, 4));
        }
    }
}
