//! `harvest essence`: what the gatherer makes of objects, shown in the shell.

mod kind;

use std::process::ExitCode;

use clap::Subcommand;

/// Show what the gatherer makes of a file.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  harvest essence type *
  harvest essence type --rules types.toml minutes/2024-05.txt
  harvest essence type -c gatherer.toml --json report.dat | jq .type")]
pub(crate) enum Command {
    /// Say what type files have, and which rule decided.
    ///
    /// A rule of a file is named with its line; of what is built in the reason is told. The URL that
    /// rules see is that of the file on this machine.
    #[command(after_help = "Examples:
  harvest essence type paper.txt ChangeLog.gz
  harvest essence type --rules types.toml minutes/2024-05.txt

A file of rules:
  [[type]]
  name = \"Minutes\"
  by_url = '/minutes/\\d{4}'
  by_content = '(?i)^minutes of'")]
    Type(kind::Args),
}

/// Does what the command says.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Type(args) => kind::run(&args),
    }
}
