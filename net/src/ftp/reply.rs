//! Codec of FTP replies: bytes in, replies of one or many lines out; and what they say of ports,
//! paths, sizes and times.
//!
//! Source: RFC 959 §4.2 and §5.4, RFC 1123 §4.1.2.6, RFC 2428 §3, RFC 3659 §2.3.
//!
//! Sans-I/O.

use super::list::{EntryKind, Facts, read_facts};
use super::time::Moment;
use crate::fetch::{Lines, TooLong, shown};

/// Longest line of a reply, in bytes.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// Largest reply, in bytes.
const REPLY_BYTES_MAX: usize = 256 * 1024;

/// A server's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its code, of three digits.
    pub code: u16,
    /// Its lines as they came, the first and the last without the code.
    pub lines: Vec<Vec<u8>>,
}

/// The reason why a connection cannot be used further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A line is too long.
    #[error("{0}")]
    Line(TooLong),
    /// A line is no reply.
    #[error("the server sent a line that is no reply of FTP")]
    Reply,
    /// A reply does not end.
    #[error("the server sent a reply of more than 256 KiB")]
    Endless,
}

/// Reader of replies.
#[derive(Debug)]
pub struct Replies {
    lines: Lines,
    /// A reply whose last line is still to come, and its number of bytes.
    reading: Option<(Reply, usize)>,
}

impl Default for Replies {
    fn default() -> Self {
        Self { lines: Lines::new(LINE_BYTES_MAX), reading: None }
    }
}

impl Replies {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.lines.feed(bytes);
    }

    /// Returns whether bytes were fed that belong to no reply yet.
    pub fn has_rest(&self) -> bool {
        self.reading.is_some() || !self.lines.rest().is_empty()
    }

    /// Returns the next reply; `None` if more bytes are needed.
    ///
    /// # Errors
    ///
    /// The caller closes the connection.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, Flaw> {
        while let Some(line) = self.lines.next_line().map_err(Flaw::Line)? {
            let parsed = parse(&line);
            let Some((mut reply, mut bytes)) = self.reading.take() else {
                let (code, is_last, text) = parsed.ok_or(Flaw::Reply)?;
                let reply = Reply { code, lines: vec![text.to_vec()] };
                if is_last {
                    return Ok(Some(reply));
                }
                self.reading = Some((reply, line.len()));
                continue;
            };
            if let Some((code, true, text)) = parsed
                && code == reply.code
            {
                reply.lines.push(text.to_vec());
                return Ok(Some(reply));
            }
            // An empty line takes room, too.
            bytes += line.len() + size_of::<Vec<u8>>();
            if REPLY_BYTES_MAX < bytes {
                return Err(Flaw::Endless);
            }
            reply.lines.push(line);
            self.reading = Some((reply, bytes));
        }
        Ok(None)
    }
}

impl Reply {
    /// Returns the reply as errors quote it: its last line, which has the meaning.
    pub fn shown(&self) -> String {
        format!("{} {}", self.code, shown(self.text()))
    }

    /// Returns the last line.
    fn text(&self) -> &[u8] {
        self.lines.last().map_or(&[], Vec::as_slice)
    }

    /// Returns the port of a reply to EPSV, `229 … (|||port|)`.
    pub fn extended_port(&self) -> Option<u16> {
        let (_, rest) = split(self.text(), b'(')?;
        let (mark, rest) = rest.split_first()?;
        let rest = rest.strip_prefix(&[*mark, *mark])?;
        number(split(rest, *mark)?.0).filter(|it| 0 < *it)
    }

    /// Returns the port of a reply to PASV, `227 … h1,h2,h3,h4,p1,p2`. The address is not read:
    /// data connections go to the other end of the control connection alone.
    pub fn passive_port(&self) -> Option<u16> {
        // Not all servers have the parentheses (RFC 1123 §4.1.2.6).
        let is_part = |it: &u8| it.is_ascii_digit() || *it == b',';
        let mut parts = self.text().split(|it| !is_part(it));
        let numbers = parts.find(|it| it.iter().filter(|it| **it == b',').count() == 5)?;
        let numbers: Vec<u8> =
            numbers.split(|it| *it == b',').map(number).collect::<Option<_>>()?;
        let [.., high, low] = numbers[..] else { return None };
        Some(u16::from_be_bytes([high, low])).filter(|it| 0 < *it)
    }

    /// Returns the path of a reply to PWD, `257 "path" …`.
    pub fn path(&self) -> Option<Vec<u8>> {
        let (_, mut rest) = split(self.text(), b'"')?;
        let mut path = Vec::new();
        loop {
            let (part, after) = split(rest, b'"')?;
            path.extend_from_slice(part);
            match after.strip_prefix(b"\"") {
                Some(after) => {
                    path.push(b'"');
                    rest = after;
                }
                None => return Some(path),
            }
        }
    }

    /// Returns the number of a reply to SIZE, in bytes.
    pub fn size(&self) -> Option<u64> {
        number(self.text().trim_ascii())
    }

    /// Returns the time of a reply to MDTM.
    pub fn moment(&self) -> Option<Moment> {
        Moment::of_digits(self.text().trim_ascii())
    }

    /// Returns the facts of a reply to MLST about a file: its second line, `fact=value;… path`.
    pub fn facts(&self) -> Option<Facts> {
        let (facts, _) = split(self.lines.get(1)?.trim_ascii_start(), b' ')?;
        read_facts(facts).filter(|it| it.0 != EntryKind::Folder).map(|it| it.1)
    }

    /// Returns whether a reply to FEAT names a feature.
    pub fn has_feature(&self, name: &str) -> bool {
        let words = self
            .lines
            .iter()
            .filter_map(|it| it.trim_ascii_start().split(|it| matches!(it, b' ' | b'\t')).next());
        words.into_iter().any(|it| it.eq_ignore_ascii_case(name.as_bytes()))
    }
}

/// Reads a line that begins with a code; returns it, whether the line is a reply's last, and the
/// rest.
fn parse(line: &[u8]) -> Option<(u16, bool, &[u8])> {
    let (code, text) = line.split_at_checked(3)?;
    let is_last = match text.first() {
        None | Some(b' ') => true,
        Some(b'-') => false,
        Some(_) => return None,
    };
    Some((number(code)?, is_last, text.get(1..).unwrap_or_default()))
}

/// Splits at the first `mark`.
pub(super) fn split(bytes: &[u8], mark: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|it| *it == mark)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

/// Reads a number of digits only.
pub(super) fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    let all = digits.iter().all(u8::is_ascii_digit);
    str::from_utf8(digits).ok().filter(|_| all)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the replies in `bytes`, each in one line, and the fault that ended them.
    fn read(bytes: &[u8], piece: usize) -> String {
        let mut replies = Replies::default();
        let mut found = Vec::new();
        for part in bytes.chunks(piece) {
            replies.feed(part);
            loop {
                match replies.next_reply() {
                    Ok(Some(it)) => found.push(format!("{} {}", it.lines.len(), it.shown())),
                    Ok(None) => break,
                    Err(flaw) => {
                        found.push(flaw.to_string());
                        return found.join("; ");
                    }
                }
            }
        }
        found.join("; ")
    }

    fn one(text: &str) -> Reply {
        let mut replies = Replies::default();
        replies.feed(text.as_bytes());
        replies.next_reply().unwrap().unwrap()
    }

    #[test]
    fn replies_have_one_line_or_many() {
        let bytes = b"220-hi\r\n 220 not yet\r\n230 nor now\r\n220-\r\n\r\n220 ready\r\n200\r\n";
        for piece in 1..=bytes.len() {
            assert_eq!(read(bytes, piece), "6 220 ready; 1 200 ", "in pieces of {piece}");
        }
    }

    #[test]
    fn hostile_replies_are_bounded() {
        assert_eq!(read(b"hello\r\n", 99), "the server sent a line that is no reply of FTP");
        assert_eq!(read(b"+20 a\r\n", 99), "the server sent a line that is no reply of FTP");
        let long = [b'2'; 2 * LINE_BYTES_MAX];
        assert_eq!(read(&long, 999), "the server sent a line of more than 8192 bytes");
        let endless = [&b"220-\n"[..], &[b'\n'; 1 << 20]].concat();
        assert_eq!(read(&endless, 9_999), "the server sent a reply of more than 256 KiB");
    }

    #[test]
    fn ports_paths_and_sizes_are_read() {
        let extended = |text: &str| one(&format!("229 {text}\r\n")).extended_port();
        assert_eq!(extended("Entering Extended Passive Mode (|||6446|)"), Some(6_446));
        assert_eq!(extended("ok (!!!1!)"), Some(1));
        for bad in ["(|||0|)", "(|||70000|)", "(|1|h|5|)", "|||5|", "(|||+5|)"] {
            assert_eq!(extended(bad), None, "{bad}");
        }
        let passive = |text: &str| one(&format!("227 {text}\r\n")).passive_port();
        assert_eq!(passive("Entering Passive Mode (10,0,0,1,4,1)."), Some(1_025));
        assert_eq!(passive("=10,0,0,1,0,21"), Some(21));
        for bad in ["(1,2,3,4,5)", "(1,2,3,4,256,1)", "(1,2,3,4,0,0)", "(1,2,3,4,,1)"] {
            assert_eq!(passive(bad), None, "{bad}");
        }
        assert_eq!(one("257 \"/a \"\"b\"\"\" is it\r\n").path(), Some(b"/a \"b\"".to_vec()));
        assert_eq!(one("257 no\r\n").path(), None);
        assert_eq!(one("213 1234\r\n").size(), Some(1_234));
        assert_eq!(one("213 -1\r\n").size(), None);
        let facts =
            one("250-\r\n size=7;modify=19700101000001; /a b\r\n250 end\r\n").facts().unwrap();
        assert_eq!((facts.size, facts.modified.map(|it| it.seconds)), (Some(7), Some(1)));
        assert_eq!(one("250 no\r\n").facts(), None);
        assert_eq!(one("250-\r\n type=dir;size=7; /a\r\n250 end\r\n").facts(), None);
        let features = one("211-Features:\r\n EPSV\r\n MLST type*;size*;\r\n211 End\r\n");
        assert!(features.has_feature("mlst") && !features.has_feature("MLSD"));
    }

    proptest! {
        #[test]
        fn any_bytes_in_pieces_of_any_size_give_the_same(
            bytes in prop::collection::vec(prop::sample::select(b"12 -\r\n".to_vec()), 0..80),
            piece in 1_usize..9,
        ) {
            prop_assert_eq!(read(&bytes, piece), read(&bytes, 80));
        }
    }
}
