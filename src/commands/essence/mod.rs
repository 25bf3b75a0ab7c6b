//! `harvest essence`: what the gatherer makes of objects, shown in the shell.

mod chain;
mod kind;

use std::process::ExitCode;

use clap::Subcommand;

/// Show what the gatherer makes of a file.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  harvest essence summarize paper.pdf
  harvest essence type *
  harvest essence type --rules types.toml minutes/2024-05.txt
  harvest essence type -c gatherer.toml --json report.dat | jq .type")]
pub(crate) enum Command {
    /// Say what type files have, and which rule decided.
    ///
    /// A rule of a file is named with its line; of what is built in the reason is told. The URL that
    /// rules see is that of the file on this machine, or with -c the one that it is published under.
    #[command(after_help = "Examples:
  harvest essence type paper.txt ChangeLog.gz
  harvest essence type --rules types.toml minutes/2024-05.txt

A file of rules:
  [[type]]
  name = \"Minutes\"
  by_url = '/minutes/\\d{4}'
  by_content = '(?i)^minutes of'")]
    Type(kind::Args),
    /// Print what a gatherer would publish of files.
    ///
    /// Everything happens as in a gatherer: types, selection, opening what is packed, summaries, rules,
    /// annotations; what belongs to one gatherer (its name, times to live) is left out. Problems, and what is
    /// left out by the settings, go to standard error. What .gitignore files leave out is printed.
    #[command(after_help = "Examples:
  harvest essence summarize paper.pdf
  harvest essence summarize --to json ~/Documents | jq -r .url
  harvest essence summarize -c gatherer.toml docs.tar.gz | harvest soif check")]
    Summarize(chain::Summarize),
    /// Say which of the site's rules and annotations hold for files, and what they do.
    #[command(after_help = "Examples:
  harvest essence explain -c gatherer.toml report.html

In gatherer.toml:
  [essence]
  rules = \"rules\"

In the file rules:
  Type == 'HTML' && URL ~ /users/
      Time-to-Live = \"86400\"")]
    Explain(chain::Explain),
}

/// Does what the command says.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Type(args) => kind::run(&args),
        Command::Summarize(args) => chain::summarize(&args),
        Command::Explain(args) => chain::explain(&args),
    }
}
