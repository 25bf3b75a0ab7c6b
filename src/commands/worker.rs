//! `harvest worker`: the process in which a gatherer reads bytes that it does not trust. Not for people.

use std::process::ExitCode;

/// Returns how a gatherer starts its workers: as the program that it is itself, even if another has
/// been put in its place since.
pub(crate) fn program() -> essence::worker::Program {
    essence::worker::Program { path: "/proc/self/exe".into(), arguments: vec!["worker".to_owned()] }
}

/// Reads objects from standard input, a socket, and answers there.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    essence::worker::serve::serve(net::clock::monotonic)?;
    Ok(ExitCode::SUCCESS)
}
