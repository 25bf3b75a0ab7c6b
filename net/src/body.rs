//! Message bodies: one boxed type for all bodies, and bodies that are read while they are sent.

use std::any::Any;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use tokio::task::JoinHandle;

use crate::error::BoxError;

/// The body of any message. A type of its own: in place of an alias, it keeps the lifetime in
/// [`BoxError`] out of the types of tasks, which the compiler could not prove `Send` otherwise.
#[derive(Debug)]
pub struct Body {
    body: UnsyncBoxBody<Bytes, BoxError>,
    /// An error that is still to be told: what came before it is sent first, so that the peer sees a
    /// body cut short, and not no answer at all.
    error: Option<BoxError>,
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        let Poll::Ready(Some(Err(error))) = frame else { return frame };
        // Whoever sends it flushes while it waits.
        self.error = Some(error);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.error.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Default for Body {
    fn default() -> Self {
        empty()
    }
}

/// Returns a body without bytes.
pub fn empty() -> Body {
    boxed(Empty::new())
}

/// Returns a body that holds `bytes`.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    boxed(Full::new(bytes.into()))
}

/// Boxes any body of bytes that is not boxed yet.
pub fn boxed<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut body = Some(body);
    if let Some(boxed) = (&mut body as &mut dyn Any).downcast_mut::<Option<Body>>()
        && let Some(boxed) = boxed.take()
    {
        return boxed;
    }
    let Some(body) = body else { return empty() };
    Body { body: body.map_err(Into::into).boxed_unsync(), error: None }
}

/// Returns a body of `len` bytes that sends the pieces that `read` returns until `None`. `read` is
/// called on the blocking pool, one piece ahead of the sending. Its error aborts the transfer,
/// which the peer sees as a body cut short. Must be polled on a tokio runtime.
pub fn pieces<R>(read: R, len: u64) -> Body
where
    R: FnMut() -> io::Result<Option<Bytes>> + Send + Unpin + 'static,
{
    boxed(Pieces { next: Next::Idle(read), left: len })
}

/// Returns a body that sends the pieces that `next` returns until `None`. `next` gets the state that it
/// returned last, at first `state`, and is called when the piece before has been taken.
pub fn unfold<S, E, F, N>(state: S, next: F) -> Body
where
    S: Send + Unpin + 'static,
    E: Into<BoxError> + 'static,
    F: FnMut(S) -> N + Send + Unpin + 'static,
    N: Future<Output = (S, Result<Option<Bytes>, E>)> + Send + 'static,
{
    boxed(Unfold { next, step: Step::Idle(state) })
}

struct Unfold<S, N, F> {
    next: F,
    step: Step<S, N>,
}

/// Where a body is that is unfolded.
enum Step<S, N> {
    Idle(S),
    Reading(Pin<Box<N>>),
    Ended,
}

impl<S, E, F, N> http_body::Body for Unfold<S, N, F>
where
    S: Unpin,
    F: FnMut(S) -> N + Unpin,
    N: Future<Output = (S, Result<Option<Bytes>, E>)>,
{
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        let mut reading = match std::mem::replace(&mut self.step, Step::Ended) {
            Step::Idle(state) => Box::pin((self.next)(state)),
            Step::Reading(reading) => reading,
            Step::Ended => return Poll::Ready(None),
        };
        let Poll::Ready((state, piece)) = reading.as_mut().poll(cx) else {
            self.step = Step::Reading(reading);
            return Poll::Pending;
        };
        if matches!(piece, Ok(Some(_))) {
            self.step = Step::Idle(state);
        }
        Poll::Ready(piece.transpose().map(|it| it.map(Frame::data)))
    }
}

/// State of the read of the next piece.
enum Next<R> {
    Idle(R),
    Reading(JoinHandle<(R, io::Result<Option<Bytes>>)>),
    Ended,
}

struct Pieces<R> {
    next: Next<R>,
    /// Bytes not handed out yet.
    left: u64,
}

impl<R: FnMut() -> io::Result<Option<Bytes>> + Send + 'static> Next<R> {
    fn begin(mut read: R) -> Self {
        Self::Reading(tokio::task::spawn_blocking(move || {
            let piece = read();
            (read, piece)
        }))
    }
}

impl<R> http_body::Body for Pieces<R>
where
    R: FnMut() -> io::Result<Option<Bytes>> + Send + Unpin + 'static,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut reading = match std::mem::replace(&mut self.next, Next::Ended) {
            Next::Idle(read) => Next::begin(read),
            next => next,
        };
        let Next::Reading(handle) = &mut reading else { return Poll::Ready(None) };
        match Pin::new(handle).poll(cx) {
            Poll::Pending => {
                self.next = reading;
                Poll::Pending
            }
            Poll::Ready(Ok((read, Ok(Some(piece))))) => {
                self.left = self.left.saturating_sub(u64::try_from(piece.len()).unwrap_or(0));
                // A finished body is not read again.
                self.next = if self.left == 0 { Next::Ended } else { Next::begin(read) };
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Poll::Ready(Ok((_, Ok(None)))) if self.left == 0 => Poll::Ready(None),
            Poll::Ready(Ok((_, Ok(None)))) => {
                let error = io::Error::from(io::ErrorKind::UnexpectedEof);
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(Ok((_, Err(error)))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;

    use super::*;

    async fn bytes_of(body: Body) -> Bytes {
        body.collect().await.unwrap().to_bytes()
    }

    /// Returns a body of `len` bytes made of these pieces.
    fn of(made: Vec<io::Result<&'static str>>, len: u64) -> Body {
        let mut made = made.into_iter();
        pieces(move || made.next().transpose().map(|it| it.map(Bytes::from)), len)
    }

    #[tokio::test]
    async fn pieces_are_sent_in_order_with_their_exact_length() {
        let body = of(vec![Ok("one"), Ok("two"), Ok("end")], 9);
        assert_eq!(body.size_hint().exact(), Some(9));
        assert_eq!(bytes_of(body).await, "onetwoend");
        assert!(of(Vec::new(), 0).is_end_stream());
    }

    #[tokio::test]
    async fn a_failed_or_short_read_is_an_error() {
        let failed = || Err(io::Error::other("no"));
        assert!(of(vec![Ok("one"), failed(), Ok("two")], 6).collect().await.is_err());
        assert!(of(vec![Ok("one")], 6).collect().await.is_err());
    }

    #[tokio::test]
    async fn pieces_that_have_to_be_waited_for_come_whole_and_in_order() {
        let unfolded = |last: Result<Option<Bytes>, &'static str>| {
            let pieces = [Ok(Some(Bytes::from("one"))), Ok(Some(Bytes::from("two"))), last];
            unfold(pieces.into_iter(), |mut pieces| async {
                tokio::task::yield_now().await;
                let piece = pieces.next().unwrap_or(Ok(None));
                (pieces, piece)
            })
        };
        assert_eq!(bytes_of(unfolded(Ok(None))).await, "onetwo");
        assert!(unfolded(Err("broken")).collect().await.is_err());
    }

    #[tokio::test]
    async fn a_body_is_full_or_empty() {
        assert_eq!(bytes_of(full("x")).await, "x");
        assert!(empty().is_end_stream());
    }
}
