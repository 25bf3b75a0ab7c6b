//! A connection of a line protocol: vetted, timed, plain or TLS.

use std::fmt;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::either::Either;

use super::{Bounds, Fault, Server};
use crate::client::Timeouts;
use crate::connect::dial;
use crate::error::{Error, Stage};
use crate::stream::Stream;
use crate::wire::PROGRESS_BYTES_MIN;

/// Number of bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// A connection.
pub(crate) struct Connection {
    stream: Stream,
    /// Host and port, as errors name them.
    host: String,
    timeouts: Timeouts,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("host", &self.host).finish_non_exhaustive()
    }
}

/// The patience with what the other end sends next.
#[derive(Debug)]
pub(crate) struct Watch {
    stage: Stage,
    after: Duration,
    /// Time waited for the present 16 KiB of data, or for the reply.
    waited: Duration,
    moved: u64,
    deadline: Option<(Instant, Duration)>,
}

impl Watch {
    /// Returns the patience with one reply.
    pub(crate) fn reply(timeouts: &Timeouts) -> Self {
        Self::new(Stage::Header, timeouts.header, None)
    }

    /// Returns the patience with an object or list.
    pub(crate) fn data(timeouts: &Timeouts) -> Self {
        Self::new(Stage::Idle, timeouts.idle, timeouts.total)
    }

    fn new(stage: Stage, after: Duration, total: Option<Duration>) -> Self {
        let deadline = total.map(|it| (Instant::now() + it, it));
        Self { stage, after, waited: Duration::ZERO, moved: 0, deadline }
    }
}

impl Connection {
    /// Connects to a server.
    pub(crate) async fn open(server: &Server, bounds: &Bounds) -> Result<Self, Error> {
        let Bounds { timeouts, .. } = *bounds;
        let dialed = dial(server.host(), server.port, bounds.policy(), timeouts.connect).await?;
        let host = format!("{}:{}", server.host, server.port);
        Ok(Self { stream: Either::Left(dialed.stream), host, timeouts })
    }

    /// Sends bytes, within the time for a reply.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let after = self.timeouts.header;
        let sent = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        match timeout(after, sent).await {
            Ok(sent) => Ok(sent?),
            Err(_) => {
                let host = self.host.clone();
                Err(Error::Timeout { host, stage: Stage::Header, after }.into())
            }
        }
    }

    /// Appends what comes next to `bytes`; returns the number of bytes, 0 at the end.
    pub(crate) async fn read(
        &mut self,
        watch: &mut Watch,
        bytes: &mut Vec<u8>,
    ) -> Result<usize, Fault> {
        let begun = Instant::now();
        let end = begun + watch.after.saturating_sub(watch.waited);
        let end = watch.deadline.map_or(end, |(deadline, _)| deadline.min(end));
        bytes.reserve(READ_BYTES);
        let Ok(read) = timeout_at(end, self.stream.read_buf(bytes)).await else {
            let (stage, after) = match watch.deadline {
                Some((deadline, total)) if deadline <= Instant::now() => (Stage::Total, total),
                _ => (watch.stage, watch.after),
            };
            return Err(Error::Timeout { host: self.host.clone(), stage, after }.into());
        };
        let count = read?;
        watch.waited += begun.elapsed();
        watch.moved += count as u64;
        if watch.stage == Stage::Idle && PROGRESS_BYTES_MIN <= watch.moved {
            (watch.moved, watch.waited) = (0, Duration::ZERO);
        }
        Ok(count)
    }
}
