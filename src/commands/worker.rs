//! `harvest worker`: the process in which a gatherer reads untrusted bytes. It is not for people.

use std::process::ExitCode;

/// Returns the program of a gatherer's workers: the running program itself, even if its file has
/// been replaced since.
pub(crate) fn program() -> essence::worker::Program {
    essence::worker::Program { path: "/proc/self/exe".into(), arguments: vec!["worker".to_owned()] }
}

/// Serves objects on standard input, which is a socket.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    essence::worker::serve::serve(net::clock::monotonic)?;
    Ok(ExitCode::SUCCESS)
}
