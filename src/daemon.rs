//! A daemon's process: signals in, an orderly end out.
//!
//! SIGINT and SIGTERM drain and stop; a second one stops at once. SIGHUP reads the settings again.

use std::process::ExitCode;

use anyhow::Context as _;
use net::shutdown::Shutdown;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that a process listens to.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To stop.
    Stop,
    /// To read the settings again (a daemon), or to stop (a command whose terminal is gone).
    HangUp,
}

impl Signals {
    /// Listens from now on: to be called before anybody is told that the daemon runs, since until
    /// then SIGHUP ends the process.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one. Cancel safe.
    pub(crate) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.hang_up.recv() => Asked::HangUp,
        }
    }
}

/// Runs a server until it ends, passing signals on.
///
/// # Errors
///
/// The server failed, or was stopped before it had drained.
pub(crate) async fn run(
    mut signals: Signals,
    server: impl Future<Output = anyhow::Result<()>>,
    shutdown: Shutdown,
    mut reload: impl AsyncFnMut(),
) -> anyhow::Result<ExitCode> {
    let mut server = std::pin::pin!(server);
    loop {
        let asked = tokio::select! {
            outcome = &mut server => return outcome.map(|()| ExitCode::SUCCESS),
            asked = signals.next() => asked,
        };
        match asked {
            Asked::HangUp => reload().await,
            Asked::Stop if shutdown.is_started() => {
                anyhow::bail!("stopped at the second signal, before everything was drained");
            }
            Asked::Stop => {
                tracing::info!("stopping");
                shutdown.start();
            }
        }
    }
}
