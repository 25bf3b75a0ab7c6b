//! Bodies of the server's requests and answers, with bounds on sizes and waits.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::Limited;
use hyper::body::Incoming;

use super::Limits;
use crate::admission::AddressSlot;
use crate::body::{self, Body};
use crate::error::BoxError;
use crate::tally::{Event, Tally};
use crate::wire::{Meter, OpenExchange};

/// A request's body, bounded in size and in waiting time.
pub(super) struct Inbound {
    body: Limited<Incoming>,
    meter: Meter,
    tally: Tally,
}

impl Inbound {
    pub(super) fn body(body: Incoming, limits: &Limits) -> Body {
        if http_body::Body::is_end_stream(&body) {
            return body::empty();
        }
        let meter = Meter::new(limits.body_timeout);
        let tally = limits.tally.clone();
        body::boxed(Self { body: Limited::new(body, limits.body_bytes_max), meter, tally })
    }
}

impl http_body::Body for Inbound {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => {
                let data = frame.as_ref().and_then(|it| it.as_ref().ok()?.data_ref());
                self.meter.moved(data.map_or(0, Bytes::len));
                Poll::Ready(frame)
            }
            Poll::Pending => {
                let error = ready!(self.meter.poll_too_long(cx));
                self.tally.add(Event::Slow);
                Poll::Ready(Some(Err(error.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body; while it lives, the connection is not idle.
pub(super) struct Answer {
    body: Body,
    _open: OpenExchange,
    _slot: Option<AddressSlot>,
}

impl Answer {
    pub(super) fn new(body: Body, open: OpenExchange, slot: Option<AddressSlot>) -> Self {
        Self { body, _open: open, _slot: slot }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
