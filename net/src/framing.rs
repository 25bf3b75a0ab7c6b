//! Where one request ends and the next begins: the checks that hyper leaves to its user.
//!
//! Two parties that disagree about a request's end let one client speak in another's name
//! (request smuggling). The scanner reads along with hyper and objects to what hyper takes in
//! silence: a transfer encoding and a length together, an encoding other than one `chunked`,
//! repeated lengths, lines that end in a line feed alone.
//!
//! Source: RFC 9112 §2.2, §6.1, §6.3 and §11.2. It is stricter than §6.3 asks for: what the RFC
//! lets a server repair, it refuses. After a chunked body it follows no further, so the server
//! closes the connection behind the answer to such a request.
//!
//! Sans-I/O.

use std::fmt;

/// What is wrong with a request's framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    LineFeed,
    Encoding,
    EncodingAndLength,
    Length,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LineFeed => "a line of the request does not end in CR LF",
            Self::Encoding => "the only Transfer-Encoding understood is one \"chunked\"",
            Self::EncodingAndLength => "the request has Content-Length and Transfer-Encoding",
            Self::Length => "the request has no single valid Content-Length",
        })
    }
}

/// What the scanner found in one head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Why to refuse the request.
    pub(crate) flaw: Option<Flaw>,
    /// The body is chunked: the connection ends with this exchange.
    pub(crate) chunked: bool,
}

/// Reads along with the bytes of one connection.
#[derive(Debug)]
pub(crate) struct Scanner {
    state: State,
    head_bytes_max: usize,
}

#[derive(Debug)]
enum State {
    /// Between requests.
    Idle,
    Head(Head),
    /// Bytes left of a body.
    Body(u64),
    /// Not followed any more.
    Lost,
}

#[derive(Debug, Default)]
struct Head {
    /// The line being read, its line feed included.
    line: Vec<u8>,
    /// Bytes read of the head.
    bytes: usize,
    /// Whether the request line has been read.
    begun: bool,
    length: Option<u64>,
    verdict: Verdict,
}

impl Scanner {
    /// Returns a scanner that follows heads of up to `head_bytes_max` bytes; hyper refuses others.
    pub(crate) fn new(head_bytes_max: usize) -> Self {
        Self { state: State::Idle, head_bytes_max }
    }

    /// Returns whether a head has begun and not ended.
    pub(crate) fn is_in_head(&self) -> bool {
        matches!(self.state, State::Head(_))
    }

    /// Takes the connection's next bytes and tells `found` the verdict on each head that ends.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut found: impl FnMut(Verdict)) {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Idle => match bytes {
                    // Empty lines before a request are skipped (RFC 9112 §2.2).
                    [b'\r' | b'\n', rest @ ..] => bytes = rest,
                    _ => self.state = State::Head(Head::default()),
                },
                State::Head(head) => {
                    let line_end = bytes.iter().position(|it| *it == b'\n');
                    let (line, rest) = bytes.split_at(line_end.map_or(bytes.len(), |it| it + 1));
                    bytes = rest;
                    head.line.extend_from_slice(line);
                    head.bytes += line.len();
                    if self.head_bytes_max < head.bytes {
                        self.state = State::Lost;
                    } else if line_end.is_some() && head.end_line() {
                        found(head.verdict);
                        self.state = match head.length {
                            _ if head.verdict.chunked || head.verdict.flaw.is_some() => State::Lost,
                            None | Some(0) => State::Idle,
                            Some(length) => State::Body(length),
                        };
                    }
                }
                State::Body(left) => {
                    let skip = usize::try_from(*left).map_or(bytes.len(), |it| it.min(bytes.len()));
                    bytes = bytes.get(skip..).unwrap_or_default();
                    *left -= u64::try_from(skip).unwrap_or(*left);
                    if *left == 0 {
                        self.state = State::Idle;
                    }
                }
                State::Lost => return,
            }
        }
    }
}

impl Head {
    /// Reads the line that is complete now; returns whether it ends the head.
    fn end_line(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        let line = match line.as_slice() {
            [line @ .., b'\r', b'\n'] => line,
            [line @ .., b'\n'] => {
                self.object(Flaw::LineFeed);
                line
            }
            line => line,
        };
        if line.is_empty() {
            return true;
        }
        let is_field = std::mem::replace(&mut self.begun, true);
        if let Some(colon) = line.iter().position(|it| *it == b':').filter(|_| is_field) {
            let (name, value) = line.split_at(colon);
            self.read_field(name, value.get(1..).unwrap_or_default().trim_ascii());
        }
        false
    }

    fn read_field(&mut self, name: &[u8], value: &[u8]) {
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.length.is_some() {
                self.object(Flaw::EncodingAndLength);
            }
            if self.verdict.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                self.object(Flaw::Encoding);
            }
            self.verdict.chunked = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            if self.verdict.chunked {
                self.object(Flaw::EncodingAndLength);
            }
            let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
            let length = std::str::from_utf8(value).ok().and_then(|it| it.parse().ok());
            if self.length.is_some() || !digits || length.is_none() {
                self.object(Flaw::Length);
            }
            self.length = length.or(Some(0));
        }
    }

    /// The first objection stays.
    fn object(&mut self, flaw: Flaw) {
        self.verdict.flaw.get_or_insert(flaw);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

    fn scan(pieces: &[&[u8]]) -> Vec<Verdict> {
        let mut scanner = Scanner::new(1_000);
        let mut verdicts = Vec::new();
        for piece in pieces {
            scanner.feed(piece, |it| verdicts.push(it));
        }
        verdicts
    }

    fn check(fields: &str, flaw: Option<Flaw>) {
        let text = format!("POST / HTTP/1.1\r\n{fields}\r\n");
        let verdicts = scan(&[text.as_bytes()]);
        assert_eq!(verdicts.iter().map(|it| it.flaw).collect::<Vec<_>>(), [flaw], "{fields:?}");
    }

    #[test]
    fn objects_to_what_lets_two_readers_disagree() {
        check("Content-Length: 5\r\n", None);
        check("transfer-encoding:chunked\r\n", None);
        check("Transfer-Encoding: chunked, chunked\r\n", Some(Flaw::Encoding));
        check("Transfer-Encoding: gzip, chunked\r\n", Some(Flaw::Encoding));
        check("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Some(Flaw::Encoding));
        check("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", Some(Flaw::EncodingAndLength));
        check("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", Some(Flaw::EncodingAndLength));
        check("Content-Length: 5\r\nContent-Length: 5\r\n", Some(Flaw::Length));
        check("Content-Length: +5\r\n", Some(Flaw::Length));
        check("Content-Length: 99999999999999999999\r\n", Some(Flaw::Length));
        check("A: b\n", Some(Flaw::LineFeed));
    }

    #[test]
    fn follows_requests_behind_each_other() {
        let post = "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n\n\n\n\n";
        let text = [GET, "\r\n", post, GET, post, GET].concat();
        assert_eq!(scan(&[text.as_bytes()]), [Verdict::default(); 5]);
    }

    #[test]
    fn follows_no_further_than_a_chunked_or_a_flawed_request() {
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let text = [chunked, GET].concat();
        assert_eq!(scan(&[text.as_bytes()]), [Verdict { flaw: None, chunked: true }]);
        assert_eq!(scan(&[b"GET / HTTP/1.1\n\n", GET.as_bytes()]).len(), 1);
    }

    #[test]
    fn a_head_without_end_is_not_kept() {
        let mut scanner = Scanner::new(100);
        scanner.feed(&[b'a'; 101], |_| panic!("no head ends here"));
        assert!(!scanner.is_in_head());
    }

    proptest! {
        #[test]
        fn every_split_gives_the_same_verdicts(
            requests in prop::collection::vec(prop::sample::select(vec![
                GET, "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "\r\n",
                "GET / HTTP/1.1\nA: b\n\n",
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            ]), 0..6),
            sizes in prop::collection::vec(1_usize..20, 1..20),
        ) {
            let text = requests.concat();
            let mut pieces = Vec::new();
            let mut rest = text.as_bytes();
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, later) = rest.split_at((*size).min(rest.len()));
                pieces.push(piece);
                rest = later;
            }
            prop_assert_eq!(scan(&pieces), scan(&[text.as_bytes()]));
        }
    }
}
