//! The tasks of one link: reading, writing, and watching the clock.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use net::peer::Stream;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::frame::{Decoder, Frame, HEADER_BYTES, Reason};
use super::goodput::{Goodput, Sample};
use super::probing::Progress;
use super::pulse::Verdict;
use super::{End, Event, Link, LinkState};

/// Bytes from which on a batch of frames gets no further message: those of one record of TLS.
const BATCH_BYTES: usize = 16 << 10;
/// Longest time that sending a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);
/// Maximum number of reads after a goodbye.
const GOODBYE_READS_MAX: usize = 1_024;

/// The next step of writing.
enum Next {
    /// Write the buffer.
    Write,
    /// Write the goodbye that is in the buffer, and end.
    Close(Reason),
    /// Wait until something is to be sent.
    Sleep,
    /// Wait until this time, because the rate limits allow nothing before.
    Pay(Duration),
}

impl Link {
    /// Does the work of the link until it is down. If the future is dropped, the link breaks
    /// without a goodbye.
    pub(super) async fn run(&self, stream: Stream, events: &mpsc::Sender<Event>) -> End {
        let (mut from, mut to) = tokio::io::split(stream);
        let end = {
            let mut writing = pin!(self.write(&mut to, events));
            let end = tokio::select! {
                end = self.read(&mut from, events) => match end {
                    Ok(never) => match never {},
                    Err(end) => end,
                },
                end = &mut writing => end,
                end = self.watch(events) => end,
            };
            if let End::Frame(..) = end {
                self.close(Reason::Malformed);
                let _ = timeout(GOODBYE, writing).await;
            }
            end
        };
        self.state().is_down = true;
        if let Ok(Ok(())) = timeout(GOODBYE, to.shutdown()).await {
            linger(&mut from).await;
        }
        end
    }

    async fn read(
        &self,
        from: &mut ReadHalf<Stream>,
        events: &mpsc::Sender<Event>,
    ) -> Result<Infallible, End> {
        let member = self.member();
        let mut decoder = Decoder::default();
        let mut goodput = Goodput::default();
        loop {
            let came = from.read_buf(decoder.space()).await.map_err(|it| self.broken(it))?;
            if came == 0 {
                return Err(self.broken(io::ErrorKind::UnexpectedEof.into()));
            }
            let now = self.now();
            self.shared.bytes_in.fetch_add(came as u64, Ordering::Relaxed);
            let mut pressed = None;
            let mut held = false;
            loop {
                let next = decoder.next_frame().map_err(|error| End::Frame(member, error))?;
                let Some((frame, is_pressed)) = next else { break };
                pressed = Some(is_pressed && pressed != Some(false));
                held |= self.handle(frame, events).await?;
            }
            let mut sample = goodput.handle_read(came as u64, pressed, now);
            if held {
                sample = sample.or_else(|| goodput.interrupt());
            }
            self.state().pulse.handle_received(pressed.is_some(), decoder.begun(), self.now());
            if let Some(Sample { bytes, took }) = sample {
                let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
                self.reply(Frame::Goodput { bytes, micros });
                self.hand_on(Event::Goodput(self.clone(), Sample { bytes, took }), events).await;
            }
        }
    }

    /// Handles one frame. Returns whether its event had to wait for the receiver.
    async fn handle(&self, frame: Frame, events: &mpsc::Sender<Event>) -> Result<bool, End> {
        let event = match frame {
            Frame::Message(message) => Event::Message(self.clone(), message),
            Frame::Ping(nonce) => {
                self.reply(Frame::Pong(nonce));
                return Ok(false);
            }
            Frame::Pong(_) | Frame::Piece { left: 1.., .. } => return Ok(false),
            Frame::Piece { left: 0, .. } => {
                self.reply(Frame::Taken);
                return Ok(false);
            }
            Frame::Taken => match self.take() {
                Some(found) => Event::Probed(self.clone(), found),
                None => return Ok(false),
            },
            Frame::Goodput { bytes, micros } => {
                let took = Duration::from_micros(micros);
                Event::Goodput(self.clone(), Sample { bytes, took })
            }
            Frame::Bye(reason) => return Err(End::There(self.member(), reason)),
        };
        Ok(self.hand_on(event, events).await)
    }

    /// Passes an event to the receiver. Returns whether it had to wait.
    async fn hand_on(&self, event: Event, events: &mpsc::Sender<Event>) -> bool {
        let event = match events.try_send(event) {
            Ok(()) => return false,
            Err(mpsc::error::TrySendError::Full(event)) => event,
            // The receiver no longer exists, so this link will be dropped too.
            Err(mpsc::error::TrySendError::Closed(_)) => return false,
        };
        self.state().pulse.handle_delivering(true, self.now());
        let _ = events.send(event).await;
        self.state().pulse.handle_delivering(false, self.now());
        true
    }

    /// Records that the other end has received a block. Returns the probe's result if this was the
    /// last block.
    fn take(&self) -> Option<Option<u64>> {
        let now = self.now();
        let mut state = self.state();
        let progress = state.probing.as_mut()?.handle_taken(now);
        let Progress::Done(found) = progress else {
            drop(state);
            self.shared.wake.notify_one();
            return None;
        };
        state.probing = None;
        Some(found)
    }

    async fn write(&self, to: &mut WriteHalf<Stream>, events: &mpsc::Sender<Event>) -> End {
        let mut buffer = BytesMut::with_capacity(2 * BATCH_BYTES);
        // Whether the link has not been idle since the last frame.
        let mut pressed = false;
        loop {
            match self.next(&mut buffer, pressed) {
                Next::Write => {
                    if let Err(error) = send(to, &buffer).await {
                        return self.broken(error);
                    }
                    pressed = true;
                    if self.written(buffer.len()) {
                        let _ = events.send(Event::Room(self.clone())).await;
                    }
                }
                Next::Close(reason) => {
                    let _ = timeout(GOODBYE, send(to, &buffer)).await;
                    return End::Here(reason);
                }
                Next::Sleep => {
                    pressed = false;
                    self.shared.wake.notified().await;
                }
                Next::Pay(until) => {
                    pressed = false;
                    let wait = until.saturating_sub(self.now());
                    let _ = timeout(wait, self.shared.wake.notified()).await;
                }
            }
            buffer.clear();
        }
    }

    /// Fills the buffer with the next frames.
    fn next(&self, buffer: &mut BytesMut, pressed: bool) -> Next {
        let now = self.now();
        let mut state = self.state();
        if let Some(reason) = state.closing {
            Frame::Bye(reason).encode(false, buffer);
            return Next::Close(reason);
        }
        // Replies about the link itself are small. Rate limits do not hold them back.
        for reply in std::mem::take(&mut state.replies) {
            reply.encode(pressed || !buffer.is_empty(), buffer);
        }
        match state.pay(now) {
            Some(until) if buffer.is_empty() => return Next::Pay(until),
            Some(_) => {}
            None => state.fill(buffer, pressed, now),
        }
        if buffer.is_empty() {
            return Next::Sleep;
        }
        state.pulse.handle_writing(buffer.len(), now);
        for (_, share) in &mut state.limits {
            share.handle_sent(buffer.len() as u64);
        }
        Next::Write
    }

    /// Records sent bytes. Returns whether there is room again for a message that was refused.
    fn written(&self, bytes: usize) -> bool {
        self.shared.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
        let mut state = self.state();
        state.pulse.handle_written();
        let has_room = state.is_full && state.queue.has_room();
        state.is_full &= !has_room;
        has_room
    }

    /// Watches the clock until the link has to end, and returns the reason.
    async fn watch(&self, events: &mpsc::Sender<Event>) -> End {
        let member = self.member();
        loop {
            let now = self.now();
            let (late, verdict) = {
                let mut state = self.state();
                let late = state.probing.take_if(|it| it.is_late(now)).is_some();
                (late, state.pulse.poll(now))
            };
            if late {
                let _ = events.send(Event::Probed(self.clone(), None)).await;
            }
            match verdict {
                Verdict::Ping(number) => self.reply(Frame::Ping(number)),
                Verdict::Dead => return End::Dead(member),
                Verdict::Slow => return End::Slow(member),
                Verdict::Wait(until) => sleep(until.saturating_sub(now)).await,
            }
        }
    }

    fn broken(&self, error: io::Error) -> End {
        End::Broken(self.member(), error)
    }
}

impl LinkState {
    /// Charges sent bytes to the rate limits. Returns the time until which to wait, if at all.
    fn pay(&mut self, now: Duration) -> Option<Duration> {
        let until = self.limits.iter_mut().filter_map(|(bucket, share)| {
            share.poll(&mut bucket.lock().unwrap_or_else(PoisonError::into_inner), now)
        });
        until.max()
    }

    /// Appends messages until the buffer has [`BATCH_BYTES`] or more (the last one may be long), or
    /// if there is nothing to send, a piece of a probe.
    fn fill(&mut self, buffer: &mut BytesMut, pressed: bool, now: Duration) {
        while buffer.len() < BATCH_BYTES {
            let Some(message) = self.queue.next() else { break };
            let length = HEADER_BYTES + message.len();
            Frame::Message(message).encode(pressed || !buffer.is_empty(), buffer);
            if let Some(probing) = &mut self.probing {
                probing.handle_others(length);
            }
        }
        if buffer.is_empty()
            && let Some(piece) = self.probing.as_mut().and_then(|it| it.next_piece(now))
        {
            piece.encode(pressed, buffer);
        }
    }
}

/// Reads on for a while, so that the goodbye is not lost: closing a socket with unread bytes resets
/// it.
pub(super) async fn linger(from: &mut (impl AsyncRead + Unpin)) {
    let mut unread = vec![0; BATCH_BYTES];
    let rest = async {
        for _ in 0..GOODBYE_READS_MAX {
            if !matches!(from.read(&mut unread).await, Ok(1..)) {
                break;
            }
        }
    };
    let _ = timeout(GOODBYE, rest).await;
}

async fn send(to: &mut WriteHalf<Stream>, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).await?;
    to.flush().await
}
