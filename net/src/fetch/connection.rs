//! A connection of a line protocol: vetted, timed, plain or TLS.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::either::Either;

use super::{Bounds, Fault, Server};
use crate::client::Timeouts;
use crate::connect::names::Names;
use crate::connect::{Connector, dial};
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
    /// The vetted address of the other end.
    pub(crate) address: IpAddr,
    timeouts: Timeouts,
    /// When the connection was last used.
    pub(crate) used: Instant,
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
        let (names, policy) = (Names::default(), bounds.policy());
        let dialed = dial(&names, server.host(), server.port, policy, timeouts.connect).await?;
        let host = format!("{}:{}", server.host, server.port);
        let (stream, address) = (Either::Left(dialed.stream), dialed.address);
        Ok(Self { stream, host, address, timeouts, used: Instant::now() })
    }

    /// Makes a plain connection to `server` secure.
    pub(crate) async fn secure(self, tls: &Connector, server: &Server) -> Result<Self, Error> {
        let Self { stream: Either::Left(stream), host, timeouts, .. } = self else {
            return Ok(self);
        };
        let secured = tls.secure(server.host(), &host, stream);
        let Ok(secured) = timeout(timeouts.connect, secured).await else {
            return Err(Error::Timeout { host, stage: Stage::Connect, after: timeouts.connect });
        };
        let stream = Either::Right(Box::new(secured?.into()));
        Ok(Self { stream, host, ..self })
    }

    /// Returns whether a password may be sent: over TLS, to this machine, or where that is allowed.
    pub(crate) fn may_carry_password(&self, unencrypted: bool) -> bool {
        unencrypted || keeps_secrets(self.is_secure(), self.address)
    }

    pub(crate) fn is_secure(&self) -> bool {
        matches!(self.stream, Either::Right(_))
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
        self.used = Instant::now();
        watch.waited += begun.elapsed();
        watch.moved += count as u64;
        if watch.stage == Stage::Idle && PROGRESS_BYTES_MIN <= watch.moved {
            (watch.moved, watch.waited) = (0, Duration::ZERO);
        }
        Ok(count)
    }
}

/// Returns whether nobody on the way to an address can read what is sent.
fn keeps_secrets(secure: bool, address: IpAddr) -> bool {
    secure || address.is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_over_tls_or_to_this_machine() {
        let (own, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([192, 0, 2, 1]));
        assert!(keeps_secrets(true, other) && keeps_secrets(false, own));
        assert!(!keeps_secrets(false, other));
    }
}
