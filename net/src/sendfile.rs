//! Bodies that the kernel sends from a file in memory, without a copy through this process.
//!
//! hyper does not know of such files. It gets a *placeholder* as long as the file. When the
//! connection finds the placeholder in the bytes to write, it sends the file instead. So an answer
//! that many clients request costs as much as a file costs a file server (`docs/measurements.md`).
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

/// Maximum number of bytes that hyper gets, and the kernel sends, at once.
const PLACEHOLDER_BYTES: usize = 1 << 20;
/// Bytes read at once where the kernel does not send the file.
const PIECE_BYTES: usize = 128 << 10;

/// Count of the memory that files take while any clone of them exists. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<AtomicU64>);

impl Memory {
    /// Returns how much the files take, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A file in memory that never changes. Cheap to clone. It is freed with its last clone, or after
/// the last byte of an answer from it.
#[derive(Clone, Debug)]
pub struct MemoryFile {
    file: Arc<CountedFile>,
    len: u64,
}

/// A file, and the count of its bytes.
#[derive(Debug)]
struct CountedFile {
    file: File,
    len: u64,
    memory: Memory,
}

impl Drop for CountedFile {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.len, Ordering::Relaxed);
    }
}

impl MemoryFile {
    /// Makes a file of the pieces that `read` returns until `None`, and counts its bytes in
    /// `memory`.
    ///
    /// # Errors
    ///
    /// An error of `read` or of the system; send the bytes in another way then.
    pub fn of(
        memory: &Memory,
        mut read: impl FnMut() -> io::Result<Option<Bytes>>,
    ) -> io::Result<Self> {
        let file = File::from(memfd_create("answer", MemfdFlags::CLOEXEC)?);
        let mut counted = CountedFile { file, len: 0, memory: memory.clone() };
        while let Some(piece) = read()? {
            counted.file.write_all(&piece)?;
            let len = piece.len() as u64;
            counted.len += len;
            memory.0.fetch_add(len, Ordering::Relaxed);
        }
        Ok(Self { len: counted.len, file: Arc::new(counted) })
    }

    /// Returns the length, in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the file has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether this is a clone of `other`.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }

    /// Makes the file the body of an answer. Our server lets the kernel send the file; any other
    /// reader of the body reads the file piece by piece.
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

/// Files that a connection still has to send.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Takes the place of bytes of files; its content is never read.
    placeholder: OnceLock<Bytes>,
    /// Files whose placeholders hyper has got, and the number of bytes of each that have been sent.
    files: Mutex<VecDeque<(MemoryFile, u64)>>,
}

impl Outbox {
    /// Replaces the body of an answer from a file by a placeholder.
    pub(crate) fn body(self: &Arc<Self>, response: &mut Response<Body>) {
        let Some(file) = response.extensions_mut().remove::<MemoryFile>() else { return };
        // The answer to a HEAD has no body.
        if response.body().size_hint().exact() == Some(file.len) && file.len != 0 {
            let left = file.len;
            *response.body_mut() =
                body::boxed(Placeholder { outbox: Arc::clone(self), file: Some(file), left });
        }
    }

    fn placeholder(&self) -> &Bytes {
        // Zeros that are never touched take no memory.
        self.placeholder.get_or_init(|| Bytes::from(vec![0; PLACEHOLDER_BYTES]))
    }

    fn files(&self) -> MutexGuard<'_, VecDeque<(MemoryFile, u64)>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether bytes to be written are a placeholder for those of a file.
    pub(crate) fn is_placeholder(&self, piece: &[u8]) -> bool {
        self.placeholder.get().is_some_and(|it| it.as_ptr_range().contains(&piece.as_ptr()))
    }

    /// Sends at most `most` bytes of the next file.
    pub(crate) fn poll_send(
        &self,
        stream: &TcpStream,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let mut files = self.files();
        let Some((file, sent)) = files.front_mut() else {
            return Poll::Ready(Err(io::Error::other("no file left to send")));
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

/// A body that is a placeholder for a file.
struct Placeholder {
    outbox: Arc<Outbox>,
    /// The file; taken when hyper asks for the first bytes.
    file: Option<MemoryFile>,
    left: u64,
}

impl http_body::Body for Placeholder {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(file) = self.file.take() {
            self.outbox.files().push_back((file, 0));
        }
        let take = usize::try_from(self.left).unwrap_or(PLACEHOLDER_BYTES).min(PLACEHOLDER_BYTES);
        self.left -= take as u64;
        let piece = (take != 0).then(|| self.outbox.placeholder().slice(..take));
        Poll::Ready(piece.map(|it| Ok(Frame::data(it))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
