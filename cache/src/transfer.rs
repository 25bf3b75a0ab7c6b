//! Transfers: the body of one answer on its way to all who want it.
//!
//! One writer appends what comes from the origin; any number of readers follow, each at its own pace
//! from any place. The first [`MEMORY_BYTES_MAX`] stay in memory, all further bytes go through an
//! unnamed file, so that a slow reader costs no memory and slows nobody.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::fetch::coming::Coming;

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
    /// Folder for the file.
    folder: PathBuf,
    /// Told when the last reader leaves.
    left: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The bytes in memory, in pieces with their places.
    pieces: Vec<(u64, Bytes)>,
    /// Number of bytes in memory, and of all.
    in_memory: u64,
    length: u64,
    /// All further bytes.
    file: Option<Arc<File>>,
    /// The length that the origin has promised, in bytes.
    promised: Option<u64>,
    end: Option<End>,
    readers: usize,
    waiting: Vec<Waker>,
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The body is whole.
    Whole,
    /// It broke off.
    Broken,
}

impl Transfer {
    /// Returns a transfer whose file, if there is one, is in `folder`.
    pub fn new(folder: PathBuf) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), folder, left: Notify::new() })
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
    /// They cannot be written: the disk is full or broken. End the transfer as [`End::Broken`].
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

    /// Carries the whole body of an answer after what is there of it already, and ends.
    pub(crate) async fn fill(
        self: &Arc<Self>,
        mut start: Option<Bytes>,
        response: &mut Coming,
    ) -> End {
        let end = loop {
            let next = match start.take() {
                Some(it) => Ok(Some(it)),
                None => response.chunk().await,
            };
            match next {
                Ok(Some(bytes)) => {
                    if let Err(error) = self.append(bytes).await {
                        let url = &response.url;
                        tracing::warn!(%url, %error, "a transfer was cut off: it cannot be written");
                        break End::Broken;
                    }
                }
                Ok(None) => break End::Whole,
                Err(error) => {
                    tracing::debug!(%error, "an origin broke off");
                    break End::Broken;
                }
            }
        };
        self.end(end);
        end
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
    /// more than 64 KiB are to come.
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
        state.readers == 0 && !is_nearly_done
    }

    /// Returns how many read it.
    pub fn readers(&self) -> usize {
        self.state().readers
    }

    /// Returns a reader of the whole body. As long as there is one, the transfer is not abandoned.
    pub fn read(self: &Arc<Self>) -> Reader {
        self.state().readers += 1;
        Reader { transfer: Arc::clone(self), at: 0, to: None, reading: None }
    }
}

impl State {
    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }

    /// Returns the bytes in memory at a place.
    fn piece(&self, at: u64) -> Option<Bytes> {
        let index = self.pieces.partition_point(|(start, _)| *start <= at).checked_sub(1)?;
        let (start, piece) = self.pieces.get(index)?;
        let skipped = usize::try_from(at - start).ok()?;
        (skipped < piece.len()).then(|| piece.slice(skipped..))
    }
}

/// A reader of a transfer: the body of an answer.
#[derive(Debug)]
pub struct Reader {
    transfer: Arc<Transfer>,
    /// The next byte.
    at: u64,
    /// The first byte that is not to be read; `None`: at the body's end.
    to: Option<u64>,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Reader {
    /// Reads from byte `from` to before `to` alone.
    #[must_use]
    pub fn part(mut self, from: u64, to: u64) -> Self {
        (self.at, self.to) = (from, Some(to));
        self
    }

    /// Returns how many bytes are still to be read, as far as that is known.
    fn left(&self) -> Option<u64> {
        let to = self.to.or_else(|| self.transfer.promised());
        to.map(|it| it.saturating_sub(self.at))
    }

    fn take(&mut self, mut bytes: Bytes) -> Frame<Bytes> {
        if let Some(left) = self.left().and_then(|it| usize::try_from(it).ok()) {
            bytes.truncate(left);
        }
        self.at += bytes.len() as u64;
        Frame::data(bytes)
    }

    /// Returns the next frame that is in memory; or begins to read one from the file; or waits.
    fn poll_next(&mut self, cx: &Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let left = self.left();
        if left == Some(0) {
            return Poll::Ready(None);
        }
        let transfer = Arc::clone(&self.transfer);
        let mut state = transfer.state();
        if self.at < state.length {
            if let Some(piece) = state.piece(self.at) {
                drop(state);
                return Poll::Ready(Some(Ok(self.take(piece))));
            }
            let Some(file) = state.file.clone() else {
                let error = io::Error::other("the file of the transfer is gone");
                return Poll::Ready(Some(Err(error)));
            };
            let count = (state.length - self.at).min(PIECE_BYTES);
            let from = self.at - state.in_memory;
            self.reading = Some(spawn_blocking(move || {
                let mut bytes = BytesMut::zeroed(usize::try_from(count).unwrap_or_default());
                file.read_exact_at(&mut bytes, from)?;
                Ok(bytes.freeze())
            }));
            return Poll::Pending;
        }
        match state.end {
            // Who waits for more than came would wait for ever.
            Some(End::Whole) if left.is_none() => Poll::Ready(None),
            Some(_) => {
                let kind = io::ErrorKind::UnexpectedEof;
                Poll::Ready(Some(Err(io::Error::new(kind, "the origin broke off"))))
            }
            None => {
                if !state.waiting.iter().any(|it| it.will_wake(cx.waker())) {
                    state.waiting.push(cx.waker().clone());
                }
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
        state.readers -= 1;
        if state.readers == 0 {
            self.transfer.left.notify_waiters();
            self.transfer.left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn transfer(length: Option<u64>) -> Arc<Transfer> {
        let transfer = Transfer::new(std::env::temp_dir());
        transfer.promise(length);
        transfer
    }

    fn bytes(from: usize, to: usize) -> Bytes {
        (from..to).map(|it| u8::try_from(it % 251).unwrap()).collect()
    }

    async fn all(reader: Reader) -> io::Result<Bytes> {
        Ok(reader.collect().await?.to_bytes())
    }

    #[tokio::test]
    async fn readers_follow_from_any_place_at_their_own_pace() {
        let count = 3 * MEMORY_BYTES_MAX + 17;
        for length in [Some(count as u64), None] {
            let transfer = transfer(length);
            let early = tokio::spawn(all(transfer.read()));
            let idle = transfer.read();
            for at in (0..count).step_by(100_000) {
                transfer.append(bytes(at, (at + 100_000).min(count))).await.unwrap();
            }
            let part =
                all(transfer.read().part(MEMORY_BYTES_MAX as u64 - 5, MEMORY_BYTES_MAX as u64 + 5));
            let around = MEMORY_BYTES_MAX - 5..MEMORY_BYTES_MAX + 5;
            assert_eq!(
                part.await.unwrap(),
                bytes(around.start, around.end),
                "it need not end first"
            );
            transfer.end(End::Whole);
            assert_eq!(early.await.unwrap().unwrap(), bytes(0, count));
            assert_eq!(all(idle).await.unwrap(), bytes(0, count));
            assert_eq!(transfer.whole(), None, "it is not in memory");
            let held: usize = transfer.state().pieces.iter().map(|it| it.1.len()).sum();
            assert!(held <= MEMORY_BYTES_MAX);
        }
    }

    #[tokio::test]
    async fn a_small_body_is_in_memory_as_one_piece() {
        let transfer = transfer(None);
        transfer.append(bytes(0, 10)).await.unwrap();
        assert_eq!(transfer.whole(), None);
        transfer.append(bytes(10, 20)).await.unwrap();
        transfer.end(End::Whole);
        assert_eq!(transfer.whole(), Some(bytes(0, 20)));
        assert_eq!(all(transfer.read().part(5, 15)).await.unwrap(), bytes(5, 15));
        assert!(transfer.state().file.is_none());
    }

    #[tokio::test]
    async fn all_are_cut_off_where_the_origin_breaks_off() {
        for (length, end) in [(Some(30), End::Broken), (None, End::Broken), (Some(30), End::Whole)]
        {
            let transfer = transfer(length);
            let mut reader = transfer.read();
            transfer.append(bytes(0, 20)).await.unwrap();
            transfer.end(end);
            let first = reader.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(first, bytes(0, 20));
            assert!(reader.frame().await.unwrap().is_err(), "{length:?} {end:?}");
        }
    }

    #[tokio::test]
    async fn what_nobody_reads_is_finished_only_near_its_end() {
        let length: usize = 10 << 20;
        let transfer = transfer(Some(length as u64));
        let reader = transfer.read();
        transfer.append(bytes(0, 1_000)).await.unwrap();
        assert!(!transfer.is_abandoned());
        drop(reader);
        assert!(transfer.is_abandoned());
        transfer.abandoned().await;
        let early = self::transfer(Some(1_000 + REST_BYTES_MAX));
        early.append(bytes(0, 1_000)).await.unwrap();
        assert!(!early.is_abandoned(), "64 KiB are left");
        let late = self::transfer(Some(length as u64));
        late.append(bytes(0, length / 10 * 9 + 9)).await.unwrap();
        assert!(!late.is_abandoned(), "90 % is there");
    }
}
