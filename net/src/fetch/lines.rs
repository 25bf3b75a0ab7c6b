//! Lines and dot-terminated blocks of text protocols.
//!
//! A block ends in a line that is a lone dot; the sender doubles the dot of every other line that
//! begins with one. Lines end in CR LF; a lone LF is taken for it.
//!
//! Source: RFC 3977 §3.1.1, RFC 1436 §3.8, RFC 959 §3.1.1.5.2.
//!
//! Sans-I/O.

use std::fmt;

/// Maximum number of characters of a server's words that an error quotes.
const SHOWN_CHARS_MAX: usize = 200;

/// Buffer that gives out complete lines.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// Number of bytes of `buffer` that were given out.
    parsed: usize,
    /// Number of bytes of `buffer` without the end of a line.
    scanned: usize,
    line_bytes_max: usize,
}

/// A line is longer than allowed; the connection is of no further use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The limit, in bytes.
    pub line_bytes_max: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server sent a line of more than {} bytes", self.line_bytes_max)
    }
}

impl Lines {
    /// Returns a buffer that refuses lines of more than `line_bytes_max` bytes.
    pub(crate) fn new(line_bytes_max: usize) -> Self {
        Self { buffer: Vec::new(), parsed: 0, scanned: 0, line_bytes_max }
    }

    /// Takes the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.parsed);
        self.scanned = self.scanned.saturating_sub(self.parsed);
        self.parsed = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next line without its end; `None` if more bytes are needed.
    ///
    /// # Errors
    ///
    /// The line is too long.
    pub(crate) fn next_line(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let start = self.scanned.max(self.parsed);
        let found = self.buffer.get(start..).unwrap_or_default().iter().position(|it| *it == b'\n');
        let end = found.map_or(self.buffer.len(), |it| start + it);
        let line = self.buffer.get(self.parsed..end).unwrap_or_default();
        if self.line_bytes_max < line.len() {
            return Err(TooLong { line_bytes_max: self.line_bytes_max });
        }
        self.scanned = end;
        if found.is_none() {
            return Ok(None);
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
        self.parsed = end + 1;
        Ok(Some(line))
    }

    /// Returns the bytes that were not given out.
    pub(crate) fn rest(&self) -> &[u8] {
        self.buffer.get(self.parsed..).unwrap_or_default()
    }

    /// Gives out the next `count` bytes of [`rest`](Self::rest).
    pub(crate) fn consume(&mut self, count: usize) {
        self.parsed = self.buffer.len().min(self.parsed + count);
    }
}

/// Reader of the bytes of one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dots {
    place: Place,
    keeps: bool,
}

/// The place of the next byte in its line.
#[derive(Clone, Copy, Debug)]
enum Place {
    Start,
    AfterDot,
    AfterDotCr,
    Middle,
}

impl Dots {
    /// Returns a reader that takes away the dots that the sender has added.
    pub(crate) fn new() -> Self {
        Self { place: Place::Start, keeps: false }
    }

    /// Returns a reader that keeps them.
    pub(crate) fn keeping() -> Self {
        Self { place: Place::Start, keeps: true }
    }

    /// Appends the content of `bytes` to `content`. Returns the number of bytes up to the block's
    /// end, its last line included; `None` if more bytes are needed.
    pub(crate) fn feed(&mut self, bytes: &[u8], content: &mut Vec<u8>) -> Option<usize> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            self.place = match (self.place, byte) {
                (Place::Start, b'.') => Place::AfterDot,
                (Place::AfterDot, b'\r') => Place::AfterDotCr,
                (Place::AfterDot | Place::AfterDotCr, b'\n') => return Some(at + 1),
                (place, _) => {
                    match place {
                        Place::AfterDot if *byte != b'.' || self.keeps => content.push(b'.'),
                        Place::AfterDotCr => content.extend_from_slice(b".\r"),
                        _ => {}
                    }
                    let rest = bytes.get(at..).unwrap_or_default();
                    let end = rest.iter().position(|it| *it == b'\n').map(|it| it + 1);
                    let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                    content.extend_from_slice(line);
                    at += line.len();
                    self.place = if end.is_some() { Place::Start } else { Place::Middle };
                    continue;
                }
            };
            at += 1;
        }
        None
    }
}

/// Returns text in UTF-8 or else Latin-1.
pub fn decode(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|it| char::from(*it)).collect(),
    }
}

/// Returns the beginning of a server's words as errors quote them.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = decode(bytes.get(..4 * SHOWN_CHARS_MAX).unwrap_or(bytes));
    let visible: String = text.chars().filter(|it| !it.is_control()).collect();
    visible.trim().chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the content of a block that comes in pieces of `piece` bytes, and what follows it.
    fn read(mut dots: Dots, bytes: &[u8], piece: usize) -> (Vec<u8>, Option<Vec<u8>>) {
        let (mut content, mut at) = (Vec::new(), 0);
        for part in bytes.chunks(piece) {
            if let Some(end) = dots.feed(part, &mut content) {
                return (content, Some(bytes[at + end..].to_vec()));
            }
            at += part.len();
        }
        (content, None)
    }

    /// Returns a text as a block.
    fn block(text: &[u8]) -> Vec<u8> {
        let mut block = Vec::new();
        for line in text.split_inclusive(|it| *it == b'\n') {
            if line.starts_with(b".") {
                block.push(b'.');
            }
            block.extend_from_slice(line);
        }
        block.extend_from_slice(b".\r\n");
        block
    }

    #[test]
    fn a_block_ends_in_a_lone_dot() {
        let check = |bytes: &[u8], content: &[u8], after: Option<&[u8]>| {
            for piece in 1..=bytes.len() {
                let read = read(Dots::new(), bytes, piece);
                assert_eq!(read, (content.to_vec(), after.map(<[u8]>::to_vec)), "{piece}");
            }
        };
        check(b"a\r\n..b\r\n.\r\n200 next", b"a\r\n.b\r\n", Some(b"200 next"));
        check(b"a\n.\nx", b"a\n", Some(b"x"));
        check(b".\r\n", b"", Some(b""));
        check(b".a\r\n.\ra\n..", b".a\r\n.\ra\n.", None);
        assert_eq!(read(Dots::keeping(), b"..a\n.b\n.\n", 3).0, b"..a\n.b\n");
    }

    #[test]
    fn lines_are_bounded() {
        let mut lines = Lines::new(4);
        lines.feed(b"ab\r\n\ncd");
        assert_eq!(lines.next_line(), Ok(Some(b"ab".to_vec())));
        assert_eq!(lines.next_line(), Ok(Some(Vec::new())));
        assert_eq!(lines.next_line(), Ok(None));
        lines.feed(b"ef\nrest");
        assert_eq!(lines.next_line(), Ok(Some(b"cdef".to_vec())));
        assert_eq!(lines.rest(), b"rest");
        lines.consume(1);
        lines.feed(b"12");
        assert_eq!(lines.next_line(), Err(TooLong { line_bytes_max: 4 }));
    }

    #[test]
    fn words_are_shown_in_one_short_line() {
        assert_eq!(shown(b" caf\xe9\r\n\x1b[1mx "), "café[1mx");
        assert_eq!(shown(&[b'a'; 9_999]).len(), SHOWN_CHARS_MAX);
    }

    proptest! {
        #[test]
        fn blocks_are_read_as_they_were_written(
            lines in prop::collection::vec("[.a\r]{0,4}", 0..9),
            piece in 1_usize..9,
        ) {
            let text: String = lines.iter().map(|it| format!("{it}\r\n")).collect();
            let read = read(Dots::new(), &block(text.as_bytes()), piece);
            prop_assert_eq!(read, (text.into_bytes(), Some(Vec::new())));
        }

        #[test]
        fn pieces_of_any_size_give_the_same_lines(
            bytes in prop::collection::vec(prop::sample::select(b"ab\r\n".to_vec()), 0..60),
            piece in 1_usize..9,
        ) {
            let mut lines = Lines::new(100);
            let mut found = Vec::new();
            for part in bytes.chunks(piece) {
                lines.feed(part);
                while let Some(line) = lines.next_line().unwrap() {
                    found.push(line);
                }
            }
            let mut expected: Vec<&[u8]> = bytes.split(|it| *it == b'\n').collect();
            prop_assert_eq!(Some(lines.rest()), expected.pop());
            let expected = expected.iter().map(|it| it.strip_suffix(b"\r").unwrap_or(it).to_vec());
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }
}
