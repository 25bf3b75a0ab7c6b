//! `harvest completions` and `harvest man`: files that a package installs beside the binary.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap_complete::Shell;

use crate::cli;

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  harvest completions bash > ~/.local/share/bash-completion/completions/harvest")]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

/// Print the manual page, or write all of them to a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest man | man -l -
  harvest man --dir /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// Write a page for each subcommand to this folder.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(args: &Completions) -> anyhow::Result<ExitCode> {
    // The generator panics when it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "harvest", &mut script);
    io::Write::write_all(&mut io::stdout().lock(), &script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(args: &Man) -> anyhow::Result<ExitCode> {
    match &args.dir {
        None => clap_mangen::Man::new(cli::command()).render(&mut io::stdout().lock())?,
        Some(dir) => {
            let cannot = || format!("cannot write manual pages to {}", dir.display());
            fs::create_dir_all(dir).with_context(cannot)?;
            clap_mangen::generate_to(cli::command(), dir).with_context(cannot)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
