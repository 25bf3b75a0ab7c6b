//! Request framing: checks of the boundary between two requests that hyper leaves to its user.
//!
//! If two parties disagree about a request's end, one client can speak in another's name (request
//! smuggling). The scanner reads the same bytes as hyper and refuses four things that hyper
//! accepts: a transfer encoding together with a length, any encoding other than a single `chunked`,
//! repeated lengths, and lines that end in a line feed alone.
//!
//! Source: RFC 9112 §2.2, §6.1, §6.3 and §11.2. The scanner is stricter than §6.3: it refuses
//! messages that the RFC lets a server repair. It does not follow a connection beyond a chunked
//! body, so the server closes the connection after the answer to such a request.
//!
//! Sans-I/O.

use std::fmt;

/// Fault of a request's framing.
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

/// Result of the scan of one head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The reason to refuse the request.
    pub(crate) flaw: Option<Flaw>,
    /// Whether the body is chunked; the connection ends after this exchange.
    pub(crate) chunked: bool,
}

/// Scanner of the bytes of one connection.
#[derive(Debug)]
pub(crate) struct Scanner {
    state: ScanState,
    head_bytes_max: usize,
}

#[derive(Debug)]
enum ScanState {
    /// Between requests.
    Idle,
    Head(Head),
    /// The number of bytes left of a body.
    Body(u64),
    /// In a head that is too long.
    TooLong,
    /// The scanner no longer knows where messages begin.
    Lost,
}

#[derive(Debug, Default)]
struct Head {
    /// The present line, its line feed included.
    line: Vec<u8>,
    /// Number of bytes of the head that have been read.
    bytes: usize,
    /// Whether the request line has been read.
    begun: bool,
    length: Option<u64>,
    verdict: Verdict,
}

impl Scanner {
    /// Returns a scanner that follows heads of up to `head_bytes_max` bytes; hyper refuses others.
    pub(crate) fn new(head_bytes_max: usize) -> Self {
        Self { state: ScanState::Idle, head_bytes_max }
    }

    /// Returns whether a head has begun but has not ended.
    pub(crate) fn is_in_head(&self) -> bool {
        matches!(self.state, ScanState::Head(_))
    }

    /// Returns whether the last request has come in full, and no other has begun.
    pub(crate) fn is_between(&self) -> bool {
        matches!(self.state, ScanState::Idle)
    }

    /// Returns whether a head was longer than allowed; then nothing is read after it.
    pub(crate) fn is_too_long(&self) -> bool {
        matches!(self.state, ScanState::TooLong)
    }

    /// Takes the connection's next bytes and passes the verdict on each complete head to `on_head`.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut on_head: impl FnMut(Verdict)) {
        while !bytes.is_empty() {
            match &mut self.state {
                ScanState::Idle => match bytes {
                    // Empty lines before a request are skipped (RFC 9112 §2.2).
                    [b'\r' | b'\n', rest @ ..] => bytes = rest,
                    _ => self.state = ScanState::Head(Head::default()),
                },
                ScanState::Head(head) => {
                    let line_end = bytes.iter().position(|it| *it == b'\n');
                    let (line, rest) = bytes.split_at(line_end.map_or(bytes.len(), |it| it + 1));
                    bytes = rest;
                    head.line.extend_from_slice(line);
                    head.bytes += line.len();
                    if self.head_bytes_max < head.bytes {
                        self.state = ScanState::TooLong;
                    } else if line_end.is_some() && head.end_line() {
                        on_head(head.verdict);
                        self.state = match head.length {
                            _ if head.verdict.chunked || head.verdict.flaw.is_some() => {
                                ScanState::Lost
                            }
                            None | Some(0) => ScanState::Idle,
                            Some(length) => ScanState::Body(length),
                        };
                    }
                }
                ScanState::Body(left) => {
                    let skip = usize::try_from(*left).map_or(bytes.len(), |it| it.min(bytes.len()));
                    bytes = bytes.get(skip..).unwrap_or_default();
                    *left -= u64::try_from(skip).unwrap_or(*left);
                    if *left == 0 {
                        self.state = ScanState::Idle;
                    }
                }
                ScanState::TooLong | ScanState::Lost => return,
            }
        }
    }
}

impl Head {
    /// Reads the complete line; returns whether it ends the head.
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

    /// Records a flaw; the first one stays.
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
    fn objects_to_ambiguous_framing() {
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
    fn follows_pipelined_requests() {
        let post = "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n\n\n\n\n";
        let text = [GET, "\r\n", post, GET, post, GET].concat();
        assert_eq!(scan(&[text.as_bytes()]), [Verdict::default(); 5]);
    }

    #[test]
    fn stops_after_a_chunked_or_flawed_request() {
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let text = [chunked, GET].concat();
        assert_eq!(scan(&[text.as_bytes()]), [Verdict { flaw: None, chunked: true }]);
        assert_eq!(scan(&[b"GET / HTTP/1.1\n\n", GET.as_bytes()]).len(), 1);
    }

    #[test]
    fn a_head_without_end_is_not_kept() {
        let mut scanner = Scanner::new(100);
        scanner.feed(&[b'a'; 101], |_| panic!("no head ends here"));
        assert!(!scanner.is_in_head() && scanner.is_too_long());
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
