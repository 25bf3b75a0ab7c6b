//! `harvest essence`: types, summaries and rules of files, shown in the shell.

mod chain;
mod kind;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use crate::output;

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

/// Returns the named files, and those in the named folders. Reports the others, and sets the exit
/// code.
fn files(paths: &[PathBuf], code: &mut ExitCode) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        if let Err(error) = collect(path, &mut files) {
            note_unreadable(path, &error);
            *code = ExitCode::FAILURE;
        }
    }
    files
}

/// Adds a file; or of a folder its files by name, then those of its folders, without links.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_file() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    if !kind.is_dir() {
        // A pipe may have no writer, and a device no end.
        return Err(io::Error::other("it is neither a regular file nor a folder"));
    }
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let mut entries = fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let at = folders.len();
        for entry in entries {
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.insert(at, entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    Ok(())
}

fn note_unreadable(path: &Path, error: &io::Error) {
    output::note(&format!("harvest: cannot read {}: {error}", path.display()));
}
