//! Transfers: the body of one answer on its way to all who want it.
//!
//! One writer appends what comes from the origin; any number of readers follow, each at its own pace
//! from any place. The first [`MEMORY_BYTES_MAX`] stay in memory, all further bytes go through an
//! unnamed file, so that a slow reader costs no memory and slows nobody. Where the file cannot be
//! written, all files together have taken their [`Quota`], or the body is too long to be stored, what
//! comes then is passed on to those who read it, and not kept.

mod filling;
mod quota;
mod window;

use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_blocking};

pub use quota::Quota;
use window::{Room, Window};

/// Bytes of a body that are kept in memory, and the largest body that is stored there.
pub const MEMORY_BYTES_MAX: usize = 1 << 20;

/// Bytes that a reader takes from the file at once.
const PIECE_BYTES: u64 = 256 << 10;

/// Bytes that are still to come, up to which a transfer that nobody waits for is finished.
const REST_BYTES_MAX: u64 = 64 << 10;

/// A body on its way.
#[derive(Debug)]
pub struct Transfer {
    state: Mutex<State>,
    /// Folder for the file, and the room that it shares with others.
    folder: PathBuf,
    quota: Arc<Quota>,
    /// Told when the last reader leaves.
    left: Notify,
    /// Told when a reader has taken something, or leaves.
    taken: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The bytes in memory, in pieces with their places.
    pieces: Vec<(u64, Bytes)>,
    /// Number of bytes in memory, and of all.
    in_memory: u64,
    length: u64,
    /// All further bytes, and how many of the quota they have taken.
    file: Option<Arc<File>>,
    on_disk: u64,
    /// The newest of them, once they are not kept.
    window: Option<Window>,
    /// The length that the origin has promised, in bytes.
    promised: Option<u64>,
    end: Option<End>,
    /// Whether the body is longer than what is stored.
    is_too_long: bool,
    /// The next byte of each reader.
    readers: Vec<Arc<AtomicU64>>,
    waiting: Vec<Waker>,
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The body is whole.
    Whole,
    /// It came whole, and is not kept: it is too long, or the disk is full or broken.
    Passed,
    /// It broke off.
    Broken,
}

impl Transfer {
    /// Returns a transfer whose file, if there is one, is in `folder`, with the room of `quota`.
    pub fn new(folder: PathBuf, quota: Arc<Quota>) -> Arc<Self> {
        let [left, taken] = [Notify::new(), Notify::new()];
        Arc::new(Self { state: Mutex::default(), folder, quota, left, taken })
    }

    /// Sets the length that the origin promises, in bytes.
    pub fn promise(&self, length: Option<u64>) {
        self.state().promised = length;
    }

    /// Returns the length that the origin promises, in bytes.
    pub fn promised(&self) -> Option<u64> {
        self.state().promised
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// They cannot be written: the disk is full or broken, or all bodies on their way have taken what room they
    /// have. Pass them on, and all that follows.
    pub async fn append(self: &Arc<Self>, bytes: Bytes) -> io::Result<()> {
        let (at, is_in_memory) = {
            let state = self.state();
            let is_first = state.in_memory == state.length;
            (state.length, is_first && state.length + bytes.len() as u64 <= MEMORY_BYTES_MAX as u64)
        };
        let count = bytes.len() as u64;
        if is_in_memory {
            let mut state = self.state();
            state.pieces.push((at, bytes));
            state.in_memory += count;
        } else {
            if !self.quota.take(count) {
                let why = "bodies on their way fill the part of disk_bytes that they have together";
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, why));
            }
            self.state().on_disk += count;
            let this = Arc::clone(self);
            let written = spawn_blocking(move || {
                let file = this.file()?;
                let in_memory = this.state().in_memory;
                file.write_all_at(&bytes, at - in_memory)
            });
            written.await.map_err(io::Error::other)??;
        }
        let mut state = self.state();
        state.length += count;
        state.wake();
        Ok(())
    }

    /// Returns the file, which is made when it is first needed. Blocks.
    fn file(&self) -> io::Result<Arc<File>> {
        if let Some(file) = &self.state().file {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(tempfile::tempfile_in(&self.folder)?);
        self.state().file = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Returns whether more of the body has come than is stored.
    pub fn is_too_long(&self) -> bool {
        self.state().is_too_long
    }

    /// Waits until it has ended, or is not kept any more.
    pub async fn settled(&self) {
        poll_fn(|cx| {
            let mut state = self.state();
            if state.end.is_some() || state.window.is_some() {
                return Poll::Ready(());
            }
            state.wait(cx);
            Poll::Pending
        })
        .await;
    }

    /// Ends the transfer.
    pub fn end(&self, end: End) {
        let mut state = self.state();
        state.end = Some(end);
        state.wake();
    }

    /// Ends the transfer as [`End::Broken`] unless it has ended.
    pub fn end_if_open(&self) {
        if self.state().end.is_none() {
            self.end(End::Broken);
        }
    }

    /// Returns a copy of the body as one piece, if it is whole and in memory. The pieces that came may keep
    /// larger buffers from being freed.
    pub fn whole(&self) -> Option<Bytes> {
        let state = self.state();
        if state.end != Some(End::Whole) || state.in_memory != state.length {
            return None;
        }
        let mut whole = BytesMut::with_capacity(usize::try_from(state.length).ok()?);
        state.pieces.iter().for_each(|(_, piece)| whole.extend_from_slice(piece));
        Some(whole.freeze())
    }

    /// Fills `bytes` with those from a place on. Blocks.
    ///
    /// # Errors
    ///
    /// They have not come, or the file cannot be read.
    pub fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let (piece, file, in_memory) = {
                let state = self.state();
                (state.piece(at), state.file.clone(), state.in_memory)
            };
            let Some(piece) = piece else {
                let file = file.ok_or(io::ErrorKind::UnexpectedEof)?;
                return file.read_exact_at(rest, at.saturating_sub(in_memory));
            };
            let count = piece.len().min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(piece.get(..count).unwrap_or_default());
            (at, rest) = (at + count as u64, later);
        }
        Ok(())
    }

    /// Returns how much has come, in bytes.
    pub fn arrived(&self) -> u64 {
        self.state().length
    }

    /// Waits until nobody reads and the rest is not worth finishing: less than 90 % is there, and
    /// more than 64 KiB are to come; or it is not kept.
    pub async fn abandoned(&self) {
        loop {
            let left = self.left.notified();
            if self.is_abandoned() {
                return;
            }
            left.await;
        }
    }

    /// Returns whether nobody reads and the rest is not worth finishing.
    pub fn is_abandoned(&self) -> bool {
        let state = self.state();
        let rest = state.promised.map(|it| it.saturating_sub(state.length));
        let is_nearly_done = rest.is_some_and(|it| it <= REST_BYTES_MAX || 9 * it <= state.length);
        state.readers.is_empty() && !(is_nearly_done && state.window.is_none())
    }

    /// Returns how many read it.
    pub fn readers(&self) -> usize {
        self.state().readers.len()
    }

    /// Returns a reader of the whole body. As long as there is one, the transfer is not abandoned.
    pub fn read(self: &Arc<Self>) -> Reader {
        let place = Arc::<AtomicU64>::default();
        self.state().readers.push(Arc::clone(&place));
        Reader { transfer: Arc::clone(self), place, to: None, reading: None }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.quota.give_back(self.state().on_disk);
    }
}

impl State {
    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }

    /// Has a task woken when more has come, or the end.
    fn wait(&mut self, cx: &Context<'_>) {
        if !self.waiting.iter().any(|it| it.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
    }

    /// Returns the window; it begins where the file ends.
    fn window(&mut self) -> &mut Window {
        self.window.get_or_insert_with(|| Window::new(self.length))
    }

    /// Makes room for more bytes in the window.
    fn room(&mut self, count: usize) -> Room {
        let readers = self.readers.iter().map(|it| it.load(Ordering::Relaxed));
        let readers: Vec<u64> = readers.filter(|it| *it != DONE).collect();
        self.window().room(count, readers.into_iter())
    }

    /// Returns the number of bytes that are kept.
    fn kept(&self) -> u64 {
        self.window.as_ref().map_or(self.length, Window::from)
    }

    /// Returns the bytes in memory at a place.
    fn piece(&self, at: u64) -> Option<Bytes> {
        let index = self.pieces.partition_point(|(start, _)| *start <= at).checked_sub(1)?;
        let (start, piece) = self.pieces.get(index)?;
        let skipped = usize::try_from(at - start).ok()?;
        (skipped < piece.len()).then(|| piece.slice(skipped..))
    }
}

/// The place of a reader that has all that it wants.
const DONE: u64 = u64::MAX;

/// A reader of a transfer: the body of an answer.
#[derive(Debug)]
pub struct Reader {
    transfer: Arc<Transfer>,
    /// The next byte.
    place: Arc<AtomicU64>,
    /// The first byte that is not to be read; `None`: at the body's end.
    to: Option<u64>,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Reader {
    /// Reads from byte `from` to before `to` alone.
    #[must_use]
    pub fn part(mut self, from: u64, to: u64) -> Self {
        self.place.store(from, Ordering::Relaxed);
        self.to = Some(to);
        self
    }

    /// Returns the place of the next byte.
    fn at(&self) -> u64 {
        self.place.load(Ordering::Relaxed)
    }

    /// Returns whether what it is to begin with is gone already.
    pub(crate) fn is_too_late(&self) -> bool {
        let at = self.at();
        self.transfer.state().window.as_ref().and_then(Window::gone).is_some_and(|it| at < it)
    }

    /// Returns how many bytes are still to be read, as far as that is known.
    fn left(&self) -> Option<u64> {
        let to = self.to.or_else(|| self.transfer.promised());
        to.map(|it| it.saturating_sub(self.at()))
    }

    fn take(&mut self, mut bytes: Bytes) -> Frame<Bytes> {
        if let Some(left) = self.left().and_then(|it| usize::try_from(it).ok()) {
            bytes.truncate(left);
        }
        self.place.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if self.left() == Some(0) {
            self.place.store(DONE, Ordering::Relaxed);
        }
        self.transfer.taken.notify_one();
        Frame::data(bytes)
    }

    /// Returns the next frame that is in memory; or begins to read one from the file; or waits.
    fn poll_next(&mut self, cx: &Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let left = self.left();
        if left == Some(0) {
            return Poll::Ready(None);
        }
        let (transfer, at) = (Arc::clone(&self.transfer), self.at());
        let mut state = transfer.state();
        if at < state.length {
            let passed = || state.window.as_ref()?.piece(at);
            if let Some(piece) = state.piece(at).or_else(passed) {
                drop(state);
                return Poll::Ready(Some(Ok(self.take(piece))));
            }
            if state.kept() <= at {
                let error = io::Error::other("a slow client lost what is not kept");
                return Poll::Ready(Some(Err(error)));
            }
            let Some(file) = state.file.clone() else {
                let error = io::Error::other("the file of the transfer is gone");
                return Poll::Ready(Some(Err(error)));
            };
            let count = (state.kept() - at).min(PIECE_BYTES);
            let from = at - state.in_memory;
            self.reading = Some(spawn_blocking(move || {
                let mut bytes = BytesMut::zeroed(usize::try_from(count).unwrap_or_default());
                file.read_exact_at(&mut bytes, from)?;
                Ok(bytes.freeze())
            }));
            return Poll::Pending;
        }
        match state.end {
            // Who waits for more than came would wait for ever.
            Some(End::Whole | End::Passed) if left.is_none() => Poll::Ready(None),
            Some(_) => {
                let kind = io::ErrorKind::UnexpectedEof;
                Poll::Ready(Some(Err(io::Error::new(kind, "the origin broke off"))))
            }
            None => {
                state.wait(cx);
                Poll::Pending
            }
        }
    }
}

impl http_body::Body for Reader {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.reading.is_none() {
            let next = self.poll_next(cx);
            if next.is_ready() || self.reading.is_none() {
                return next;
            }
        }
        let Some(reading) = &mut self.reading else { return Poll::Pending };
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        let bytes = read.map_err(io::Error::other).flatten();
        Poll::Ready(Some(bytes.map(|it| self.take(it))))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left().map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.transfer.state();
        state.readers.retain(|it| !Arc::ptr_eq(it, &self.place));
        self.transfer.taken.notify_one();
        if state.readers.is_empty() {
            self.transfer.left.notify_waiters();
            self.transfer.left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
