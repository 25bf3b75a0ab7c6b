//! Message bodies: one boxed type for all, and files sent as they lie on the disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use tokio::task::JoinHandle;

use crate::error::BoxError;

/// The body of any message of ours.
#[derive(Debug)]
pub struct Body(UnsyncBoxBody<Bytes, BoxError>);

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl Default for Body {
    fn default() -> Self {
        empty()
    }
}

/// Most bytes of a file read at once. One such piece is read ahead, so a transfer holds two.
const PIECE_BYTES_MAX: u64 = 128 * 1024;

/// Returns a body without bytes.
pub fn empty() -> Body {
    boxed(Empty::new())
}

/// Returns a body that holds `bytes`.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    boxed(Full::new(bytes.into()))
}

/// Returns any body of bytes as ours.
pub fn boxed<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Body(body.map_err(Into::into).boxed_unsync())
}

/// Returns a body of unknown length that sends what `stream` brings. An error aborts the transfer,
/// which the peer sees as a body cut short.
pub fn from_stream<S, E>(stream: S) -> Body
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: Into<BoxError> + 'static,
{
    boxed(StreamBody::new(stream.map(|piece| piece.map(Frame::data).map_err(Into::into))))
}

/// A part of a file, to be sent as it is.
#[derive(Clone, Debug)]
pub struct Extent {
    /// The file; it stays open for as long as the extent lives, even when it is unlinked.
    pub file: Arc<File>,
    /// The part's first byte.
    pub offset: u64,
    /// The part's length, in bytes.
    pub len: u64,
}

/// Returns how many bytes the extents hold together.
pub fn extents_len(extents: &[Extent]) -> u64 {
    extents.iter().map(|it| it.len).sum()
}

/// Returns the extents' bytes `offset..offset + len`, counted as if they were one file. What lies
/// past the end is left out.
pub fn extents_slice(extents: &[Extent], mut offset: u64, mut len: u64) -> Vec<Extent> {
    let mut slice = Vec::new();
    for extent in extents {
        if extent.len <= offset {
            offset -= extent.len;
            continue;
        }
        let take = len.min(extent.len - offset);
        if take == 0 {
            break;
        }
        slice.push(Extent {
            file: Arc::clone(&extent.file),
            offset: extent.offset + offset,
            len: take,
        });
        offset = 0;
        len -= take;
    }
    slice
}

/// Returns a body that sends the extents one after the other and then `tail`, its exact length
/// known. It reads on the blocking pool, 128 KiB at a time with one such piece read ahead. A file
/// that turns out shorter than its extent aborts the transfer. Must be polled on a tokio runtime.
pub fn extents(extents: Vec<Extent>, tail: Bytes) -> Body {
    let left = extents_len(&extents) + u64::try_from(tail.len()).unwrap_or(0);
    boxed(Extents { waiting: extents.into(), read: None, tail, left })
}

struct Extents {
    /// Parts of which no read has begun.
    waiting: std::collections::VecDeque<Extent>,
    /// The read that has begun.
    read: Option<JoinHandle<io::Result<Bytes>>>,
    /// What comes after the files.
    tail: Bytes,
    /// Bytes not handed out yet.
    left: u64,
}

impl Extents {
    /// Begins the next read, if there is anything left to read.
    fn read_ahead(&mut self) {
        while let Some(extent) = self.waiting.front_mut() {
            let take = extent.len.min(PIECE_BYTES_MAX);
            let (file, offset) = (Arc::clone(&extent.file), extent.offset);
            extent.offset += take;
            extent.len -= take;
            if extent.len == 0 {
                self.waiting.pop_front();
            }
            if take != 0 {
                self.read = Some(tokio::task::spawn_blocking(move || read(&file, offset, take)));
                return;
            }
        }
    }
}

fn read(file: &File, offset: u64, len: u64) -> io::Result<Bytes> {
    let mut piece = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read_exact_at(&mut piece, offset)?;
    Ok(piece.into())
}

impl http_body::Body for Extents {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.read.is_none() {
            self.read_ahead();
        }
        let Some(read) = &mut self.read else {
            self.left = 0;
            let tail = std::mem::take(&mut self.tail);
            return Poll::Ready((!tail.is_empty()).then(|| Ok(Frame::data(tail))));
        };
        let piece = match Pin::new(read).poll(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(Ok(piece))) => piece,
            Poll::Ready(Ok(Err(error))) => return self.abort(error.into()),
            Poll::Ready(Err(error)) => return self.abort(error.into()),
        };
        self.read = None;
        self.left -= u64::try_from(piece.len()).unwrap_or(self.left).min(self.left);
        self.read_ahead();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

impl Extents {
    fn abort(&mut self, error: BoxError) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.read = None;
        self.waiting.clear();
        self.tail = Bytes::new();
        Poll::Ready(Some(Err(error)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use http_body::Body as _;
    use proptest::prelude::*;

    use super::*;

    fn file_of(bytes: &[u8]) -> Arc<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Arc::new(file)
    }

    async fn bytes_of(body: Body) -> Bytes {
        body.collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn sends_extents_in_order_with_their_exact_length() {
        let large = vec![7; 300_000];
        let (a, b) = (file_of(b"0123456789"), file_of(&large));
        let parts = vec![
            Extent { file: Arc::clone(&a), offset: 8, len: 2 },
            Extent { file: Arc::clone(&a), offset: 0, len: 0 },
            Extent { file: b, offset: 0, len: 300_000 },
            Extent { file: a, offset: 0, len: 3 },
        ];
        let body = extents(parts, Bytes::from_static(b"end"));
        assert_eq!(body.size_hint().exact(), Some(300_008));
        let expected = [b"89".as_slice(), &large, b"012end"].concat();
        assert_eq!(bytes_of(body).await, expected);
    }

    #[tokio::test]
    async fn a_file_that_is_too_short_is_an_error() {
        let body = extents(vec![Extent { file: file_of(b"abc"), offset: 1, len: 3 }], Bytes::new());
        assert!(body.collect().await.is_err());
    }

    #[tokio::test]
    async fn a_stream_is_sent_piece_by_piece() {
        let pieces = ["one", "two"].map(|it| Ok::<_, io::Error>(Bytes::from_static(it.as_bytes())));
        assert_eq!(bytes_of(from_stream(futures_util::stream::iter(pieces))).await, "onetwo");
        assert_eq!(bytes_of(full("x")).await, "x");
        assert!(empty().is_end_stream());
    }

    proptest! {
        #[test]
        fn a_slice_of_extents_is_the_slice_of_their_bytes(
            lens in prop::collection::vec(0_usize..9, 0..6), offset in 0_usize..50, len in 0_usize..50,
        ) {
            let all: Vec<u8> = (0..50).collect();
            let file = file_of(&all);
            let mut parts = Vec::new();
            let mut whole = Vec::new();
            for (n, len) in lens.iter().enumerate() {
                parts.push(Extent { file: Arc::clone(&file), offset: n as u64, len: *len as u64 });
                whole.extend_from_slice(&all[n..n + len]);
            }
            let mut sliced = Vec::new();
            for part in extents_slice(&parts, offset as u64, len as u64) {
                sliced.extend_from_slice(&read(&part.file, part.offset, part.len).unwrap());
            }
            let from = offset.min(whole.len());
            prop_assert_eq!(&sliced, &whole[from..(offset + len).min(whole.len())]);
            prop_assert_eq!(extents_len(&parts), whole.len() as u64);
        }
    }
}
