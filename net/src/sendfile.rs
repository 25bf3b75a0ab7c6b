//! Bodies that the kernel sends from a file in memory, without a copy through this process.
//!
//! hyper knows nothing of it: it is given as many bytes of a *hole* as the file has, and where the
//! connection meets the hole in what it is to write, it sends the file instead. So answers that many
//! ask for cost what a file server pays for a file (`docs/measurements.md`).
//!
//! Source: sendfile(2), memfd_create(2).

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body::{Body as _, Frame, SizeHint};
use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::body::{self, Body};
use crate::error::BoxError;

/// Most bytes that hyper is handed, and the kernel sends, at once.
const HOLE_BYTES: usize = 1 << 20;
/// Bytes that are read at once where the kernel does not send.
const PIECE_BYTES: usize = 128 << 10;

/// Memory that files take, for as long as any clone of them is about. Clones count as one.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<AtomicU64>);

impl Memory {
    /// Returns how much the files take, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A file in memory that never changes. Cheap to clone; it goes with its last clone, or when what is
/// on its way has arrived.
#[derive(Clone, Debug)]
pub struct MemoryFile {
    file: Arc<Counted>,
    len: u64,
}

/// A file, and where its bytes are counted.
#[derive(Debug)]
struct Counted {
    file: File,
    len: u64,
    memory: Memory,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.len, Ordering::Relaxed);
    }
}

impl MemoryFile {
    /// Makes a file of what `read` gives, until it gives nothing more, in this memory.
    ///
    /// # Errors
    ///
    /// That of `read`; or the system's: send the bytes in another way.
    pub fn of(
        memory: &Memory,
        mut read: impl FnMut() -> io::Result<Option<Bytes>>,
    ) -> io::Result<Self> {
        let file = File::from(memfd_create("answer", MemfdFlags::CLOEXEC)?);
        let mut counted = Counted { file, len: 0, memory: memory.clone() };
        while let Some(piece) = read()? {
            counted.file.write_all(&piece)?;
            let len = piece.len() as u64;
            counted.len += len;
            memory.0.fetch_add(len, Ordering::Relaxed);
        }
        Ok(Self { len: counted.len, file: Arc::new(counted) })
    }

    /// Its length, in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether this is a clone of `other`.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }

    /// Makes it the body of an answer: sent by the kernel if our server sends it, and read piece by
    /// piece by whoever else takes the body.
    pub fn answer(&self, response: &mut Response<Body>) {
        let (file, len, mut at) = (Arc::clone(&self.file), self.len, 0);
        let read = move || {
            let size = usize::try_from(len - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let mut piece = vec![0; size];
            file.file.read_exact_at(&mut piece, at)?;
            at += size as u64;
            Ok((size != 0).then(|| piece.into()))
        };
        *response.body_mut() = body::pieces(read, len);
        response.extensions_mut().insert(self.clone());
    }
}

/// What a connection is to send from files.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Stands for bytes of files; nobody looks at what is in it.
    hole: OnceLock<Bytes>,
    /// Files whose bytes hyper was promised, and how much of each has been sent.
    files: Mutex<VecDeque<(MemoryFile, u64)>>,
}

impl Outbox {
    /// Returns the body of an answer, as the connection is to be given it.
    pub(crate) fn body(self: &Arc<Self>, response: &mut Response<Body>) {
        let Some(file) = response.extensions_mut().remove::<MemoryFile>() else { return };
        // The answer to a HEAD has no body.
        if response.body().size_hint().exact() == Some(file.len) && file.len != 0 {
            let left = file.len;
            *response.body_mut() =
                body::boxed(Hole { outbox: Arc::clone(self), file: Some(file), left });
        }
    }

    fn hole(&self) -> &Bytes {
        // Zeros that are never touched take no memory.
        self.hole.get_or_init(|| Bytes::from(vec![0; HOLE_BYTES]))
    }

    fn files(&self) -> MutexGuard<'_, VecDeque<(MemoryFile, u64)>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether bytes that are to be written stand for those of a file.
    pub(crate) fn is_hole(&self, piece: &[u8]) -> bool {
        self.hole.get().is_some_and(|it| it.as_ptr_range().contains(&piece.as_ptr()))
    }

    /// Sends at most `most` bytes of the file that is next.
    pub(crate) fn poll_send(
        &self,
        stream: &TcpStream,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let mut files = self.files();
        let Some((file, sent)) = files.front_mut() else {
            return Poll::Ready(Err(io::Error::other("no file is to be sent")));
        };
        let left = usize::try_from(file.len - *sent).unwrap_or(most);
        loop {
            match stream.poll_write_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
            let send = || Ok(sendfile(stream, &file.file.file, Some(sent), left.min(most))?);
            match stream.try_io(Interest::WRITABLE, send) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => {
                    if *sent == file.len {
                        files.pop_front();
                    }
                    return Poll::Ready(Ok(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// A body that stands for a file.
struct Hole {
    outbox: Arc<Outbox>,
    /// Until hyper is promised its first byte.
    file: Option<MemoryFile>,
    left: u64,
}

impl http_body::Body for Hole {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(file) = self.file.take() {
            self.outbox.files().push_back((file, 0));
        }
        let take = usize::try_from(self.left).unwrap_or(HOLE_BYTES).min(HOLE_BYTES);
        self.left -= take as u64;
        let piece = (take != 0).then(|| self.outbox.hole().slice(..take));
        Poll::Ready(piece.map(|it| Ok(Frame::data(it))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
