//! The access log: one line an answer, in Squid's format or the common one, when its last byte is sent.
//!
//! An answer that broke off, whoever broke it off, has `_ABORTED` after its code in Squid's format.
//!
//! Lines go to a thread that writes them. If it falls behind by 10,000 lines, further ones are
//! dropped and counted: no client waits for the log. SIGHUP opens the file anew, for programs that
//! rotate logs.
//!
//! Source: the native log format of Squid, and the Common Log Format of the NCSA server.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use std::{fmt, io};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use http_body::{Body as _, Frame, SizeHint};
use jiff::Timestamp;
use net::body::{self, Body};
use net::clock;
use net::error::BoxError;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::counts::From;
use crate::fetch::giver::Giver;

/// Number of lines that may wait to be written.
const LINES_MAX: usize = 10_000;

/// Longest time that a line waits.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Longest URL in a line, in bytes; the rest is left out.
const URL_BYTES_MAX: usize = 2_000;

/// The format of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Squid's.
    #[default]
    Squid,
    /// The Common Log Format.
    Common,
}

/// An answer, as its line tells of it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) client: IpAddr,
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) status: StatusCode,
    pub(crate) from: From,
    /// Who gave it, if somebody was asked for it.
    pub(crate) giver: Option<Giver>,
    pub(crate) content_type: String,
    /// When the request came, in Unix milliseconds.
    pub(crate) came_ms: u64,
}

impl Entry {
    /// Returns the type of an answer as a line tells it.
    pub(crate) fn type_of(headers: &HeaderMap) -> String {
        let value = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let value = value.and_then(|it| it.split([';', ' ']).next()).unwrap_or_default();
        if value.is_empty() { "-".to_owned() } else { value.to_owned() }
    }

    /// Returns the line for an answer of which so many bytes were sent, the last after `took`.
    fn line(&self, format: Format, (bytes, is_whole): (u64, bool), took: Duration) -> String {
        let Self { client, method, status, content_type, came_ms, .. } = self;
        let status = status.as_u16();
        let end = self.url.floor_char_boundary(URL_BYTES_MAX.min(self.url.len()));
        let url: String = self
            .url
            .chars()
            .take(end)
            .filter(|it| !it.is_control() && ![' ', '"'].contains(it))
            .collect();
        match format {
            Format::Squid => {
                let took = took.as_millis();
                let at = came_ms + u64::try_from(took).unwrap_or_default();
                let code = code(self.from);
                let giver = self.giver.as_ref();
                let giver = giver.map_or_else(|| "HIER_NONE/-".to_owned(), Giver::in_log);
                let end = if is_whole { "" } else { "_ABORTED" };
                format!(
                    "{}.{:03} {took:6} {client} {code}{end}/{status:03} {bytes} {method} {url} - {giver} {content_type}",
                    at / 1_000,
                    at % 1_000
                )
            }
            Format::Common => {
                let at = i64::try_from(*came_ms)
                    .ok()
                    .and_then(|it| Timestamp::from_millisecond(it).ok());
                let at = at.unwrap_or_default().strftime("%d/%b/%Y:%H:%M:%S +0000").to_string();
                format!("{client} - - [{at}] \"{method} {url} HTTP/1.1\" {status} {bytes}")
            }
        }
    }
}

/// Returns Squid's word for where an answer came from.
fn code(from: From) -> &'static str {
    match from {
        From::Hit => "TCP_HIT",
        From::Joined => "TCP_CF_HIT",
        From::Validated => "TCP_REFRESH_UNMODIFIED",
        From::Stale => "TCP_REFRESH_FAIL_OLD",
        From::Miss | From::Passed => "TCP_MISS",
        From::Own => "NONE_NONE",
        From::Tunnel => "TCP_TUNNEL",
    }
}

/// The log. Clones share it.
#[derive(Clone)]
pub(crate) struct AccessLog(Arc<Sink>);

struct Sink {
    path: PathBuf,
    format: Format,
    lines: Mutex<Option<SyncSender<Message>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    dropped: AtomicU64,
}

enum Message {
    Line(String),
    Reopen,
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").field("path", &self.0.path).finish_non_exhaustive()
    }
}

impl AccessLog {
    /// Opens the log; it is appended to. Must be called on a runtime.
    ///
    /// # Errors
    ///
    /// The file cannot be made or written.
    pub(crate) fn open(path: &Path, format: Format) -> io::Result<Self> {
        let file = append_to(path)?;
        let (lines, receiver) = mpsc::sync_channel(LINES_MAX);
        let named = path.to_owned();
        let writer = spawn_blocking(move || write(&named, file, &receiver));
        Ok(Self(Arc::new(Sink {
            path: path.to_owned(),
            format,
            lines: Mutex::new(Some(lines)),
            writer: Mutex::new(Some(writer)),
            dropped: AtomicU64::new(0),
        })))
    }

    /// Returns the body of an answer, which is noted once it is sent or dropped. `length` is that of the body, as
    /// its head says it.
    pub(crate) fn watch(&self, entry: Entry, length: Option<u64>, body: Body) -> Body {
        let (log, began) = (self.clone(), clock::monotonic());
        body::boxed(Watched { body, length, entry, log, began, bytes: 0, is_whole: false })
    }

    /// Notes an answer of which so many bytes were sent, and whether those are all.
    fn note(&self, entry: &Entry, sent: (u64, bool), took: Duration) {
        self.send(Message::Line(entry.line(self.0.format, sent, took)));
    }

    /// Opens the file anew.
    pub(crate) fn reopen(&self) {
        self.send(Message::Reopen);
    }

    /// Returns the number of lines that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    fn send(&self, message: Message) {
        let lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(TrySendError::Full(_))) = lines.as_ref().map(|it| it.try_send(message)) {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes what waits, and ends the writer.
    pub(crate) async fn close(&self) {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writer = self.0.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer
            && writer.await.is_err()
        {
            tracing::error!("the writer of the access log has failed");
        }
    }
}

fn append_to(path: &Path) -> io::Result<BufWriter<File>> {
    Ok(BufWriter::new(OpenOptions::new().create(true).append(true).mode(0o640).open(path)?))
}

/// Writes lines until nobody can send any more. A failure is logged once, until a line is written again.
fn write(path: &Path, mut file: BufWriter<File>, lines: &mpsc::Receiver<Message>) {
    let (mut fails, mut flushed) = (false, clock::monotonic());
    loop {
        let outcome = match lines.recv_timeout(FLUSH_EVERY) {
            Ok(Message::Line(line)) => writeln!(file, "{line}"),
            Ok(Message::Reopen) => append_to(path).map(|it| file = it),
            Err(RecvTimeoutError::Timeout) => file.flush(),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let now = clock::monotonic();
        let is_late = FLUSH_EVERY <= now.duration_since(flushed);
        let outcome = if is_late && outcome.is_ok() { file.flush() } else { outcome };
        if is_late {
            flushed = now;
        }
        if let Err(error) = &outcome
            && !fails
        {
            tracing::warn!(path = %path.display(), %error, "the access log is not written");
        }
        fails = outcome.is_err();
    }
    if let Err(error) = file.flush() {
        tracing::warn!(path = %path.display(), %error, "the access log has lost its last lines");
    }
}

/// A body that is noted when it is dropped.
struct Watched {
    body: Body,
    length: Option<u64>,
    entry: Entry,
    log: AccessLog,
    began: Instant,
    bytes: u64,
    is_whole: bool,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let data = frame.as_ref().and_then(|it| it.as_ref().ok()?.data_ref());
        self.bytes += data.map_or(0, |it| it.len() as u64);
        self.is_whole = frame.is_none();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let took = clock::monotonic().duration_since(self.began);
        // Who knows the length does not look for the end, and not every body knows that it is there.
        let is_whole =
            self.is_whole || self.body.is_end_stream() || self.length == Some(self.bytes);
        self.log.note(&self.entry, (self.bytes, is_whole), took);
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::resolution::Code;

    fn entry(url: &str) -> Entry {
        Entry {
            client: IpAddr::from([192, 0, 2, 7]),
            method: Method::GET,
            url: url.to_owned(),
            status: StatusCode::OK,
            from: From::Hit,
            giver: None,
            content_type: "text/html".to_owned(),
            came_ms: 784_111_777_250,
        }
    }

    #[test]
    fn a_line_has_one_of_two_formats() {
        let line = |format| entry("http://h/a").line(format, (512, true), Duration::from_millis(3));
        let squid =
            "784111777.253      3 192.0.2.7 TCP_HIT/200 512 GET http://h/a - HIER_NONE/- text/html";
        assert_eq!(line(Format::Squid), squid);
        let giver = Some(Giver::new(Code::NeighborHit, "192.0.2.9"));
        let missed = Entry { from: From::Miss, giver, ..entry("http://h/a") };
        let missed = missed.line(Format::Squid, (512, true), Duration::ZERO);
        assert!(
            missed.contains(" TCP_MISS/200 512 GET http://h/a - SIBLING_HIT/192.0.2.9 "),
            "{missed}"
        );
        let common =
            "192.0.2.7 - - [06/Nov/1994:08:49:37 +0000] \"GET http://h/a HTTP/1.1\" 200 512";
        assert_eq!(line(Format::Common), common);
        let odd = entry(&format!("http://h/\n 1{}", "é".repeat(2_000)));
        let odd = odd.line(Format::Common, (0, false), Duration::ZERO);
        assert!(odd.contains("http://h/1é") && odd.lines().count() == 1, "{odd}");
    }

    #[tokio::test]
    async fn an_answer_is_noted_once_it_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let log = AccessLog::open(&path, Format::Squid).unwrap();
        let body = log.watch(entry("http://h/a"), None, body::full("12345"));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "12345");
        std::fs::rename(&path, folder.path().join("access.log.1")).unwrap();
        log.reopen();
        drop(log.watch(entry("http://h/b"), Some(5), body::full("12345")));
        // All of it is taken, and its end is not looked for.
        for (url, length) in [("http://h/c", 5), ("http://h/d", 6)] {
            let next = |mut pieces: Vec<Bytes>| async move {
                let piece = pieces.pop();
                (pieces, Ok::<_, io::Error>(piece))
            };
            let body = body::unfold(vec![Bytes::from("45"), Bytes::from("123")], next);
            let mut body = log.watch(entry(url), Some(length), body);
            for _ in 0..2 {
                assert!(body.frame().await.unwrap().is_ok());
            }
        }
        log.close().await;
        let read = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(read("access.log.1").contains(" TCP_HIT/200 5 GET http://h/a "));
        let later = read("access.log");
        for line in [
            "_ABORTED/200 0 GET http://h/b",
            "/200 5 GET http://h/c",
            "_ABORTED/200 5 GET http://h/d",
        ] {
            assert!(later.contains(&format!(" TCP_HIT{line} ")), "{later}");
        }
        assert_eq!(log.dropped(), 0);
    }
}
