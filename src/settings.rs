//! Settings files: reading one, and reporting all its mistakes.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use settings::Mistake;

use crate::output;

/// The option that names the settings file.
#[derive(Debug, clap::Args)]
pub(crate) struct File {
    /// The settings file.
    #[arg(short, long = "config", value_name = "FILE")]
    pub(crate) config: PathBuf,
}

/// The arguments of the command that shows a running daemon's status.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) file: File,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl File {
    /// Loads the settings, and prints that they have no mistakes.
    pub(crate) fn check<T>(
        &self,
        load: impl FnOnce(&Path) -> anyhow::Result<T>,
    ) -> anyhow::Result<ExitCode> {
        load(&self.config)?;
        output::line(&format!("{}: no mistakes", self.config.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A rejected settings file: every mistake with its line.
#[derive(Debug)]
pub(crate) struct Rejected {
    path: PathBuf,
    mistakes: Vec<Mistake>,
}

impl fmt::Display for Rejected {
    /// One mistake a line, `FILE:LINE:COL: message; expected …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{}", mistake.with_file(&self.path))?;
        }
        Ok(())
    }
}

impl std::error::Error for Rejected {}

/// Reads a settings file.
pub(crate) fn load<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Vec<Mistake>>,
) -> anyhow::Result<T> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read the settings file {}", path.display()))?;
    accepted(path, parse(&text))
}

/// Returns the result of reading the file at `path`, with its mistakes as one error.
pub(crate) fn accepted<T>(path: &Path, read: Result<T, Vec<Mistake>>) -> anyhow::Result<T> {
    read.map_err(|mistakes| Rejected { path: path.to_owned(), mistakes }.into())
}

/// Checks the files that a daemon's settings name, and says what may be meant otherwise.
pub(crate) fn check_daemon(path: &Path, daemon: &daemon::Settings) -> anyhow::Result<()> {
    daemon.check_files()?;
    for warning in daemon.warnings() {
        output::note(&format!("{}: {warning}", path.display()));
    }
    Ok(())
}

/// Resolves a path of a settings file relative to the file's folder.
pub(crate) fn beside(file: &Path, path: &Path) -> PathBuf {
    // An absolute path replaces the folder.
    folder(file).join(path)
}

/// Returns the folder of a settings file.
pub(crate) fn folder(file: &Path) -> PathBuf {
    file.parent().unwrap_or_else(|| Path::new("")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_is_a_line_with_file_and_position() {
        let mistake = |line, file: Option<&str>| Mistake {
            file: file.map(PathBuf::from),
            line,
            column: 3,
            message: "no".to_owned(),
            expected: "yes".to_owned(),
        };
        let path = PathBuf::from("a.toml");
        let rejected =
            Rejected { path, mistakes: vec![mistake(1, None), mistake(2, Some("b.toml"))] };
        assert_eq!(
            rejected.to_string(),
            "a.toml:1:3: no; expected yes\nb.toml:2:3: no; expected yes"
        );
    }

    #[test]
    fn relative_paths_start_at_the_settings_folder() {
        let check = |file: &str, path: &str, expected: &str| {
            assert_eq!(beside(Path::new(file), Path::new(path)), Path::new(expected));
        };
        check("/etc/harvest/b.toml", "data", "/etc/harvest/data");
        check("b.toml", "data", "data");
        check("/etc/b.toml", "/var/data", "/var/data");
    }
}
