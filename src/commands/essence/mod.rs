//! `harvest essence`: types, summaries and rules of files, shown in the shell.

mod chain;
mod kind;

use std::process::ExitCode;

use clap::Subcommand;

/// Show types, summaries and rules of files as a gatherer makes them.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  harvest essence summarize paper.pdf
  harvest essence type *
  harvest essence type --rules types.toml minutes/2024-05.txt
  harvest essence type -c gatherer.toml --json report.dat | jq .type")]
pub(crate) enum EssenceCommand {
    /// Show the type of files, and the rule that decided.
    ///
    /// A rule from a file is named with its line; for a built-in rule the reason is shown. Rules
    /// see the URL of the file on this machine, or with -c its published URL.
    #[command(after_help = "Examples:
  harvest essence type paper.txt ChangeLog.gz
  harvest essence type --rules types.toml minutes/2024-05.txt

A file of rules:
  [[type]]
  name = \"Minutes\"
  by_url = '/minutes/\\d{4}'
  by_content = '(?i)^minutes of'")]
    Type(kind::Args),
    /// Print the records that a gatherer would publish for files.
    ///
    /// All steps are a gatherer's: types, selection, unnesting, summaries, rules, annotations.
    /// Attributes of one gatherer (its name, times to live) are left out. Problems, and objects
    /// that settings leave out, go to standard error. Files that a .gitignore names are printed.
    #[command(after_help = "Examples:
  harvest essence summarize paper.pdf
  harvest essence summarize --to json ~/Documents | jq -r .url
  harvest essence summarize -c gatherer.toml docs.tar.gz | harvest soif check")]
    Summarize(chain::Summarize),
    /// Show which of the site's rules and annotations hold for files, and their effects.
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

pub(crate) fn run(command: EssenceCommand) -> anyhow::Result<ExitCode> {
    match command {
        EssenceCommand::Type(args) => kind::run(&args),
        EssenceCommand::Summarize(args) => chain::summarize(&args),
        EssenceCommand::Explain(args) => chain::explain(&args),
    }
}
