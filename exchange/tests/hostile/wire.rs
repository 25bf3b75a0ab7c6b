//! HTTP on a raw socket, so that each layer of an answer can be wrong.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Duration, sleep};

/// Longest request, in bytes.
const REQUEST_BYTES_MAX: usize = 256 * 1024;
/// Maximum length of an endless answer, in bytes.
const STREAM_BYTES_MAX: u64 = 1 << 30;
/// Pause between two bytes of a dripping answer.
const DRIP: Duration = Duration::from_millis(20);

#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) arguments: Vec<(String, String)>,
    pub(crate) target_bytes: usize,
    pub(crate) gzip: bool,
}

impl Request {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) manner: Manner,
}

/// Manner in which an answer is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Correctly.
    Sound,
    /// Correctly, but the connection is closed without announcement.
    Closes,
    /// In chunks.
    Chunked,
    /// In chunks, the last one missing.
    ChunkedEarly,
    /// In chunks, one with an invalid length.
    ChunkedBad,
    /// Without length, to the end of the connection.
    Unframed,
    /// With a length that is off by this much.
    LengthOff(i64),
    /// With its length, but only this many bytes.
    Cut(usize),
    /// The same, and the connection is reset.
    Reset(usize),
    /// After `100 Continue`.
    Continued,
    /// These bytes alone.
    Raw(Vec<u8>),
    /// The body, and then this piece without end.
    Endless(Vec<u8>),
    /// A byte of the head now and then, for ever.
    HeadDrips,
    /// The body, then a space now and then, for ever.
    BodyDrips,
    /// Nothing, with the connection open.
    Silent,
}

impl Answer {
    pub(crate) fn xml(body: Vec<u8>) -> Self {
        let headers = vec![("Content-Type", "text/xml; charset=utf-8".to_owned())];
        Self { status: 200, headers, body, manner: Manner::Sound }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), manner: Manner::Sound }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn manner(mut self, manner: Manner) -> Self {
        self.manner = manner;
        self
    }

    fn head(&self, framing: &str) -> Vec<u8> {
        let version = if self.manner == Manner::Unframed { "1.0" } else { "1.1" };
        let mut head = format!("HTTP/{version} {} Answer\r\n{framing}", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

/// Reads a request; `None` at the end of the connection, or if it is not HTTP.
pub(crate) async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes: Vec<u8> = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break at + 4;
        }
        // Other protocols, such as TLS, do not begin with a capital letter.
        let other = bytes.first().is_some_and(|it| !it.is_ascii_uppercase());
        if other || REQUEST_BYTES_MAX < bytes.len() || stream.read_buf(&mut bytes).await.ok()? == 0
        {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let header = |name: &str| {
        let named = |line: &str| {
            let (it, value) = line.split_once(':')?;
            it.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        };
        head.lines().find_map(named)
    };
    let length: usize = header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    while bytes.len() < head_end + length {
        if REQUEST_BYTES_MAX < bytes.len() || stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let mut words = head.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, in_target) = target.split_once('?').unwrap_or((&target, ""));
    let query = match method.as_str() {
        "POST" => String::from_utf8_lossy(&bytes[head_end..]).into_owned(),
        _ => in_target.to_owned(),
    };
    let arguments = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let gzip = header("accept-encoding").is_some_and(|it| it.contains("gzip"));
    Some(Request {
        method,
        path: path.to_owned(),
        arguments,
        target_bytes: target.len(),
        query,
        gzip,
    })
}

/// Sends an answer; returns the connection if reusable, and the bytes sent of an endless answer.
pub(crate) async fn send(mut stream: TcpStream, answer: Answer) -> (Option<TcpStream>, u64) {
    let body = &answer.body;
    let length = |off: i64| {
        let length = i64::try_from(body.len()).unwrap() + off;
        format!("Content-Length: {length}\r\n")
    };
    let chunked = || answer.head("Transfer-Encoding: chunked\r\n");
    let mut whole = match &answer.manner {
        Manner::Raw(bytes) => bytes.clone(),
        Manner::Silent | Manner::HeadDrips => Vec::new(),
        Manner::Unframed => answer.head(""),
        Manner::LengthOff(off) => answer.head(&length(*off)),
        Manner::Continued => [b"HTTP/1.1 100 Continue\r\n\r\n", &*answer.head(&length(0))].concat(),
        Manner::Chunked | Manner::ChunkedEarly | Manner::ChunkedBad => chunked(),
        Manner::Endless(_) | Manner::BodyDrips => chunked(),
        Manner::Sound | Manner::Closes | Manner::Cut(_) | Manner::Reset(_) => {
            answer.head(&length(0))
        }
    };
    match &answer.manner {
        Manner::Raw(_) | Manner::Silent | Manner::HeadDrips => {}
        Manner::Cut(at) | Manner::Reset(at) => whole.extend_from_slice(&body[..*at]),
        Manner::Chunked => {
            // In two chunks, so that a boundary is within the text.
            let (first, second) = body.split_at(body.len() / 2);
            whole.extend(chunk(first));
            whole.extend(chunk(second));
            whole.extend_from_slice(b"0\r\n\r\n");
        }
        Manner::ChunkedEarly | Manner::BodyDrips | Manner::Endless(_) => whole.extend(chunk(body)),
        Manner::ChunkedBad => {
            whole.extend(chunk(&body[..body.len() / 2]));
            whole.extend_from_slice(b"many\r\n");
        }
        _ => whole.extend_from_slice(body),
    }
    if stream.write_all(&whole).await.is_err() {
        return (None, 0);
    }
    match answer.manner {
        Manner::Sound | Manner::Chunked | Manner::Continued => (Some(stream), 0),
        Manner::Reset(_) => {
            let _ = stream.set_zero_linger();
            (None, 0)
        }
        Manner::Endless(piece) => (None, endless(&mut stream, &piece).await),
        Manner::HeadDrips => (None, drip(&mut stream, b"HTTP/1.1 200 OK\r\nX-More: ", b"y").await),
        Manner::BodyDrips => (None, drip(&mut stream, b"", &chunk(b" ")).await),
        Manner::Silent => {
            // Until the other side closes.
            let _ = stream.read(&mut [0; 1]).await;
            (None, 0)
        }
        _ => {
            let _ = stream.shutdown().await;
            (None, 0)
        }
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

async fn endless(stream: &mut TcpStream, piece: &[u8]) -> u64 {
    let piece = chunk(piece);
    let mut sent = 0;
    while sent < STREAM_BYTES_MAX {
        if stream.write_all(&piece).await.is_err() {
            break;
        }
        sent += u64::try_from(piece.len()).unwrap();
    }
    sent
}

async fn drip(stream: &mut TcpStream, begin: &[u8], drop: &[u8]) -> u64 {
    if stream.write_all(begin).await.is_err() {
        return 0;
    }
    let mut sent = 0;
    while stream.write_all(drop).await.is_ok() {
        sent += 1;
        sleep(DRIP).await;
    }
    sent
}
