//! The one binary, `harvest`: arguments, settings files, logs, signals and terminals.
//!
//! How anything works is the crates' business; this one only puts them together.

mod admin;
mod cli;
mod commands;
mod daemon;
mod output;
mod settings;
mod telemetry;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
