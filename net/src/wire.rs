//! A server's connection as hyper sees it: a socket with time limits on its peer.
//!
//! There are four time limits: on idle connections, on heads, and on bodies in each direction. For
//! each direction only one of them runs at a time. The limit on bodies applies to each 16 KiB, so a
//! peer that moves only a byte now and then is cut off too.
//!
//! A client of a proxy may end its side when it has sent its request, as old programs do. Only what is
//! then sent to it tells it from one that has left. So it gets its answer if that has not begun.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::framing::{Scanner, Verdict};
use crate::refusal;
use crate::sendfile::Outbox;
use crate::server::{HEADER_BYTES_MAX, Limits, Mode};
use crate::stream::{self, Stream};
use crate::tally::{Event, Tally};

/// Number of bytes that a slow peer must move within its time limit; then the time begins anew.
pub(crate) const PROGRESS_BYTES_MIN: u64 = 16 * 1024;

/// Time for which the server goes on reading after it refused a request: closing a socket with
/// unread bytes can destroy the answer on its way.
const LINGER: Duration = Duration::from_millis(500);
/// Number of bytes after which it stops reading before that.
const LINGER_BYTES_MAX: usize = 2 * 1024 * 1024;

/// State shared by the socket and the service of one connection.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    /// Verdicts on heads that came in and are not served yet.
    verdicts: Mutex<VecDeque<Verdict>>,
    /// Number of requests that came in and whose answers are not yet handed to hyper in full.
    open: AtomicUsize,
    /// Whether a head has begun but has not ended.
    reading: AtomicBool,
    /// Whether a request has been served.
    served: AtomicBool,
    /// Whether a request was refused before it was read.
    linger: AtomicBool,
    /// Whether the connection has become a tunnel and carries no more HTTP.
    tunnel: AtomicBool,
    /// Files that answers are sent from.
    pub(crate) outbox: Arc<Outbox>,
}

impl Exchange {
    /// Begins to serve the next request.
    pub(crate) fn begin(self: &Arc<Self>) -> (Verdict, OpenExchange) {
        let verdict = self.verdicts().pop_front().unwrap_or_default();
        self.served.store(true, Ordering::Release);
        (verdict, OpenExchange(Arc::clone(self)))
    }

    /// Returns whether the connection is idle and has served a request.
    pub(crate) fn has_served(&self) -> bool {
        self.served.load(Ordering::Acquire) && self.is_idle()
    }

    /// Returns whether no request is being read, served or answered.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_open() && !self.reading.load(Ordering::Acquire)
    }

    /// Returns whether a request is being served or answered.
    fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire) != 0
    }

    /// Makes the connection continue to read for a moment before it closes.
    pub(crate) fn linger(&self) {
        self.linger.store(true, Ordering::Release);
    }

    /// Makes a tunnel of the connection; its user ends it.
    pub(crate) fn tunnel(&self) {
        self.tunnel.store(true, Ordering::Release);
    }

    fn is_tunnel(&self) -> bool {
        self.tunnel.load(Ordering::Acquire)
    }

    fn push_verdict(&self, verdict: Verdict) {
        self.open.fetch_add(1, Ordering::AcqRel);
        self.verdicts().push_back(verdict);
    }

    fn verdicts(&self) -> MutexGuard<'_, VecDeque<Verdict>> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in progress; it ends when this is dropped, after the answer's last byte.
#[derive(Debug)]
pub(crate) struct OpenExchange(Arc<Exchange>);

impl Drop for OpenExchange {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Sum of the time that a peer kept us waiting.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Longest total time of waiting for each [`PROGRESS_BYTES_MIN`].
    wait_max: Duration,
    waited: Duration,
    moved: u64,
    since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Meter {
    pub(crate) fn new(wait_max: Duration) -> Self {
        Self { wait_max, waited: Duration::ZERO, moved: 0, since: None, timer: None }
    }

    /// Records that the peer moved `bytes` bytes.
    pub(crate) fn moved(&mut self, bytes: usize) {
        if let Some(since) = self.since.take() {
            self.waited += since.elapsed();
        }
        self.moved = self.moved.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if PROGRESS_BYTES_MIN <= self.moved {
            (self.moved, self.waited) = (0, Duration::ZERO);
        }
    }

    /// Records that the peer keeps us waiting; ready when the wait is too long.
    pub(crate) fn poll_too_long(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.since.is_none() {
            let now = Instant::now();
            self.since = Some(now);
            reset(&mut self.timer, now + self.wait_max.saturating_sub(self.waited));
        }
        match &mut self.timer {
            Some(timer) => timer.as_mut().poll(cx).map(|()| io::ErrorKind::TimedOut.into()),
            None => Poll::Pending,
        }
    }
}

fn reset(timer: &mut Option<Pin<Box<Sleep>>>, deadline: Instant) {
    match timer {
        Some(timer) => timer.as_mut().reset(deadline),
        None => *timer = Some(Box::pin(sleep_until(deadline))),
    }
}

/// The event for which a connection without bytes to read waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Our own answer, or the rest of a body; other timers cover those.
    Nothing,
    Head,
    Request,
}

/// A connection of the server.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: Stream,
    exchange: Arc<Exchange>,
    scanner: Scanner,
    header_timeout: Duration,
    idle_timeout: Duration,
    wait: Wait,
    timer: Option<Pin<Box<Sleep>>>,
    write: Meter,
    lingered: usize,
    /// hyper's refusal of a head, with a text, and how much of it is written.
    refusal: Option<(Vec<u8>, usize)>,
    tally: Tally,
    /// Whether peers may end their side before their answers.
    takes_half_closed: bool,
    /// Whether this one has.
    is_half_closed: bool,
    /// Whether a part of the present answer is sent.
    has_answered: bool,
}

impl Wire {
    pub(crate) fn new(stream: Stream, exchange: Arc<Exchange>, limits: &Limits) -> Self {
        Self {
            stream,
            exchange,
            scanner: Scanner::new(HEADER_BYTES_MAX),
            header_timeout: limits.header_timeout,
            idle_timeout: limits.idle_timeout,
            wait: Wait::Nothing,
            timer: None,
            write: Meter::new(limits.write_timeout),
            lingered: 0,
            refusal: None,
            tally: limits.tally.clone(),
            takes_half_closed: limits.mode == Mode::Proxy,
            is_half_closed: false,
            has_answered: false,
        }
    }

    /// Records that there is nothing to read; ready when the silence is too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.exchange.is_tunnel() {
            return Poll::Pending;
        }
        // The end of an answer may still be on its way after hyper has taken it.
        let is_sending = self.write.since.is_some();
        let (wait, timeout) = if is_sending || self.exchange.is_open() {
            (Wait::Nothing, Duration::MAX)
        } else if self.scanner.is_in_head() {
            (Wait::Head, self.header_timeout)
        } else {
            (Wait::Request, self.idle_timeout)
        };
        if self.wait != wait {
            self.wait = wait;
            if wait != Wait::Nothing {
                reset(&mut self.timer, Instant::now() + timeout);
            }
        }
        match &mut self.timer {
            Some(timer) if wait != Wait::Nothing => {
                ready!(timer.as_mut().poll(cx));
                if wait == Wait::Head {
                    self.tally.add(Event::Slow);
                }
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            _ => Poll::Pending,
        }
    }

    /// Returns whether a peer that has ended its side still wants its answer.
    fn is_half_closed(&mut self) -> bool {
        let is_waiting = self.scanner.is_between() && !self.has_answered;
        self.is_half_closed |= self.takes_half_closed && is_waiting && self.exchange.is_open();
        self.is_half_closed && self.exchange.is_open()
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingered == 0 {
            reset(&mut self.timer, Instant::now() + LINGER);
        }
        let mut scratch = [0; 4096];
        while self.lingered < LINGER_BYTES_MAX {
            let mut rest = ReadBuf::new(&mut scratch);
            match Pin::new(&mut self.stream).poll_read(cx, &mut rest) {
                Poll::Ready(Ok(())) if !rest.filled().is_empty() => {
                    self.lingered += rest.filled().len();
                }
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    self.lingered = self.lingered.max(1);
                    let Some(timer) = &mut self.timer else { return Poll::Ready(Ok(())) };
                    return timer.as_mut().poll(cx).map(Ok);
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Returns whether a head was read, or a part of one, that the service never sees.
    fn has_unread_head(&self) -> bool {
        let is_in_head = self.scanner.is_in_head() || self.scanner.is_too_long();
        !self.exchange.is_tunnel() && (is_in_head || !self.exchange.verdicts().is_empty())
    }

    /// Writes hyper's refusal of a head with a text instead of `bytes`; `None` if they are no such.
    fn poll_refusal(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Option<Poll<io::Result<usize>>> {
        if self.refusal.is_none() && self.has_unread_head() {
            self.refusal = refusal::with_text(bytes, HEADER_BYTES_MAX).map(|it| (it, 0));
        }
        let (text, sent) = self.refusal.as_mut()?;
        while let Some(rest) = text.get(*sent..).filter(|it| !it.is_empty()) {
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => {
                    return Some(Poll::Ready(Err(io::ErrorKind::WriteZero.into())));
                }
                Poll::Ready(Ok(count)) => *sent += count,
                other => return Some(other),
            }
        }
        self.refusal = None;
        Some(Poll::Ready(Ok(bytes.len())))
    }

    fn watch_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(written) => {
                let count = *written.as_ref().unwrap_or(&0);
                self.has_answered |= count != 0;
                self.write.moved(count);
                Poll::Ready(written)
            }
            Poll::Pending => {
                let error = ready!(self.write.poll_too_long(cx));
                self.tally.add(Event::Slow);
                Poll::Ready(Err(error))
            }
        }
    }

    /// Watches as [`watch_write`](Self::watch_write) does, for encrypted bytes not yet sent.
    fn watch_end(
        &mut self,
        cx: &mut Context<'_>,
        ended: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let written = ended.map(|it| it.map(|()| 0));
        self.watch_write(cx, written).map(|it| it.map(drop))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wire = &mut *self;
        let before = buffer.filled().len();
        let Poll::Ready(read) = Pin::new(&mut wire.stream).poll_read(cx, buffer) else {
            return wire.poll_silence(cx);
        };
        if wire.exchange.is_tunnel() {
            return Poll::Ready(read);
        }
        let was_in_head = wire.scanner.is_in_head();
        let bytes = buffer.filled().get(before..).unwrap_or_default();
        if bytes.is_empty() && read.is_ok() && wire.is_half_closed() {
            // Its end is told when the answer is sent.
            return Poll::Pending;
        }
        if !wire.exchange.is_open() {
            wire.has_answered = false;
        }
        let mut ended = false;
        wire.scanner.feed(bytes, |verdict| {
            ended = true;
            wire.exchange.push_verdict(verdict);
        });
        let is_in_head = wire.scanner.is_in_head();
        wire.exchange.reading.store(is_in_head, Ordering::Release);
        // The time limit of a head runs from its first byte, in however many pieces it comes. Empty
        // lines are not a request.
        if ended || was_in_head != is_in_head {
            wire.wait = Wait::Nothing;
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(written) = self.poll_refusal(cx, bytes) {
            return self.watch_write(cx, written);
        }
        let outbox = &self.exchange.outbox;
        let written = match stream::plain(&self.stream).filter(|_| outbox.is_placeholder(bytes)) {
            Some(stream) => outbox.poll_send(stream, cx, bytes.len()),
            None => Pin::new(&mut self.stream).poll_write(cx, bytes),
        };
        self.watch_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [piece] = pieces
            && let Some(written) = self.poll_refusal(cx, piece)
        {
            return self.watch_write(cx, written);
        }
        let outbox = &self.exchange.outbox;
        let Some(stream) = stream::plain(&self.stream) else {
            let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
            return self.watch_write(cx, written);
        };
        let first = pieces.iter().position(|it| outbox.is_placeholder(it)).unwrap_or(pieces.len());
        let (before, rest) = pieces.split_at(first);
        let written = if before.iter().all(|it| it.is_empty()) && !rest.is_empty() {
            let placeholders = rest.iter().take_while(|it| outbox.is_placeholder(it));
            let most = placeholders.map(|it| it.len()).sum();
            outbox.poll_send(stream, cx, most)
        } else {
            Pin::new(&mut self.stream).poll_write_vectored(cx, before)
        };
        self.watch_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        ready!(self.watch_end(cx, flushed))?;
        if self.is_half_closed && !self.exchange.is_open() {
            cx.waker().wake_by_ref();
        }
        // hyper does not read again once it has found no bytes, so the idle time after a sent
        // answer must begin here.
        match self.poll_silence(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(cx);
        ready!(self.watch_end(cx, ended))?;
        // The service never begins a request whose head hyper refused.
        if self.has_unread_head() || self.exchange.linger.load(Ordering::Acquire) {
            return self.poll_linger(cx);
        }
        Poll::Ready(Ok(()))
    }
}
