//! A daemon's process: signals in, an orderly end out.
//!
//! SIGINT and SIGTERM drain and stop; a second one stops at once. SIGHUP reads the settings again.

use std::process::ExitCode;

use anyhow::Context as _;
use net::shutdown::Shutdown;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli;

/// Most files that a process of ours needs open at once: connections, segments, the index.
const FILES: u64 = 65_536;

/// Lets this process open more files than the usual 1,024, which are for programs that cannot do with
/// more: our servers alone take up to as many connections, and there must be some left to write to.
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

    /// Waits until a signal asks to stop; SIGHUP stays to be heard. Cancel safe.
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for a daemon to open, which may take as long as its data needs to be repaired; `None`
    /// if a signal asks to stop first. What is left behind then is as after a kill: whole.
    ///
    /// # Errors
    ///
    /// Those of `opening`.
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
        if asked == Asked::HangUp {
            // Releasing what a source brought that is gone can take long.
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

/// Logs how taking over the settings went: which of them take effect at the next start, or why the
/// old ones stay.
pub(crate) fn reloaded(outcome: anyhow::Result<Vec<&'static str>>) {
    match outcome {
        Ok(later) if later.is_empty() => tracing::info!("settings read again"),
        Ok(later) => {
            let keys = later.join(", ");
            tracing::warn!(keys, "settings read again; these take effect at the next start");
        }
        Err(error) => {
            for line in cli::said(&error).lines() {
                tracing::error!("{line}");
            }
            tracing::error!("the old settings stay");
        }
    }
}
