//! The one binary, `harvest`: arguments, settings files, logs, signals and terminals.
//!
//! The other crates do the work; this one only puts them together.

mod admin;
mod cli;
mod commands;
mod output;
mod process;
mod runtime;
mod settings;
mod telemetry;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Summarizing allocates on all CPUs at once, and glibc keeps what each thread has freed.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
