//! The process of a daemon: its signals, its orderly end, its limit of open files.
//!
//! SIGINT and SIGTERM drain and stop; a second one stops at once. SIGHUP reads the settings again.

use std::process::ExitCode;

use anyhow::Context as _;
use net::shutdown::Shutdown;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli;

/// Number of files that a process may need open at once: connections, segments, the index.
const FILES: u64 = 65_536;

/// Raises the limit of open files to [`FILES`], or as far as the system allows. The connections of
/// a server alone can use up the usual 1,024, and none would be left for files.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(FILES, |maximum| maximum.min(FILES));
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(wanted);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "the limit of open files stays as it is");
        }
    }
}

/// The signals that a process handles.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// The request that a signal stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    /// To stop.
    Stop,
    /// To read the settings again (a daemon), or to stop (a command that has lost its terminal).
    HangUp,
}

impl Signals {
    /// Starts to listen. Call it before the daemon announces that it runs: until then SIGHUP ends
    /// the process.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal. Cancel safe.
    pub(crate) async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.interrupt.recv() => SignalRequest::Stop,
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.hang_up.recv() => SignalRequest::HangUp,
        }
    }

    /// Waits for a signal to stop; a SIGHUP stays pending. Cancel safe.
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for a daemon to open, which takes longer when its data must be repaired. Returns
    /// `None` if a signal to stop comes first; the data are then whole, as after a kill.
    pub(crate) async fn during<T>(
        &mut self,
        opening: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<Option<T>> {
        tokio::select! {
            opened = opening => opened.map(Some),
            () = self.stop() => Ok(None),
        }
    }
}

/// Runs a server until it ends. The first signal to stop starts `shutdown`; SIGHUP calls `reload`.
/// Fails if the server fails, or a second signal to stop comes before it has drained.
pub(crate) async fn run(
    mut signals: Signals,
    server: impl Future<Output = anyhow::Result<()>>,
    shutdown: Shutdown,
    mut reload: impl AsyncFnMut(),
) -> anyhow::Result<ExitCode> {
    let mut server = std::pin::pin!(server);
    loop {
        let request = tokio::select! {
            outcome = &mut server => return outcome.map(|()| ExitCode::SUCCESS),
            request = signals.next() => request,
        };
        if request == SignalRequest::HangUp {
            // Releasing the records of a removed source can take long.
            tokio::select! {
                outcome = &mut server => return outcome.map(|()| ExitCode::SUCCESS),
                () = reload() => continue,
                () = signals.stop() => {}
            }
        }
        if shutdown.is_started() {
            anyhow::bail!("stopped at the second signal, before everything was drained");
        }
        tracing::info!("stopping");
        shutdown.start();
    }
}

/// Logs the outcome of reading the settings again: which keys take effect at the next start, or why
/// the old settings stay.
pub(crate) fn log_reload(outcome: anyhow::Result<Vec<&'static str>>) {
    match outcome {
        Ok(later) if later.is_empty() => tracing::info!("settings read again"),
        Ok(later) => {
            let keys = later.join(", ");
            tracing::warn!(keys, "settings read again; these take effect at the next start");
        }
        Err(error) => {
            for line in cli::error_text(&error).lines() {
                tracing::error!("{line}");
            }
            tracing::error!("the old settings stay");
        }
    }
}
