//! `harvest oai`: asks, harvests and checks repositories of OAI-PMH.

mod harvest;
mod list;
mod output;
mod show;
mod validate;

use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;
use exchange::harvester::{Access, Repository};
use indicatif::MultiProgress;
use net::client::Credentials;
use oai::Datestamp;
use url::Url;

use crate::admin;

/// Ask, harvest and check repositories of OAI-PMH.
///
/// BASEURL is a repository's address, as `http://127.0.0.1:8501/oai` is that of a broker of ours.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  harvest oai identify https://repository.example/oai
  harvest oai list https://repository.example/oai --from 2026-01-01 --set physics
  harvest oai harvest https://repository.example/oai -o records.soif --checkpoint records.cursor
  harvest oai validate http://127.0.0.1:8501/oai")]
pub(crate) enum Command {
    /// Show who a repository is, what becomes of its deleted records, and how fine its dates are.
    Identify(show::Identify),
    /// Show the metadata formats of a repository, or of one of its items.
    Formats(show::Formats),
    /// Show the sets of a repository.
    Sets(show::Sets),
    /// Print the headers of records: datestamp, identifier and sets, one a line.
    #[command(after_help = list::EXAMPLES)]
    List(list::List),
    /// Harvest records into a stream of SOIF, or as they are; again and again from where it came to.
    #[command(after_help = harvest::EXAMPLES)]
    Harvest(harvest::Harvest),
    /// Check that a repository answers as OAI-PMH has it; exit with 1 if it does not.
    #[command(after_help = validate::EXAMPLES)]
    Validate(validate::Validate),
}

/// Which repository.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// The repository's address, without a query.
    #[arg(value_name = "BASEURL")]
    base: Url,
    /// Bearer token that the repository asks for.
    #[arg(long, value_name = "TOKEN", env = "HARVEST_OAI_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl Place {
    /// The repository; it may be anywhere, this machine included.
    fn repository(&self) -> anyhow::Result<Repository> {
        if self.base.query_pairs().any(|(name, _)| name == "verb") {
            bail!("{} is a request: name the address alone, without ?verb=…", self.base);
        }
        if !matches!(self.base.scheme(), "http" | "https") {
            bail!(
                "{} is no address of a repository: it begins with http:// or https://",
                self.base
            );
        }
        let credentials = Credentials { token: self.token.clone(), ..Credentials::default() };
        let access = Access { credentials, allow_private: true, ..Access::default() };
        Ok(Repository::new(admin::client(), self.base.clone(), access))
    }
}

/// Which records.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// Changed on this day (2026-01-31) or in this second (2026-01-31T12:00:00Z), or later.
    #[arg(long, value_name = "DATE", value_parser = datestamp)]
    from: Option<Datestamp>,
    /// Changed on this day or in this second, or before.
    #[arg(long, value_name = "DATE", value_parser = datestamp)]
    until: Option<Datestamp>,
    /// Metadata format.
    #[arg(long, value_name = "PREFIX", default_value = "oai_dc")]
    prefix: String,
}

fn datestamp(text: &str) -> Result<Datestamp, String> {
    let advice = || "write a day as 2026-01-31, or a second as 2026-01-31T12:00:00Z".to_owned();
    Datestamp::parse(text).ok_or_else(advice)
}

/// Does what the command says.
pub(crate) async fn run(command: Command, bars: MultiProgress) -> anyhow::Result<ExitCode> {
    match command {
        Command::Identify(asked) => show::identify(&asked).await,
        Command::Formats(asked) => show::formats(&asked).await,
        Command::Sets(asked) => show::sets(&asked).await,
        Command::List(asked) => list::run(&asked).await,
        Command::Harvest(asked) => harvest::run(&asked, &bars).await,
        Command::Validate(asked) => validate::run(&asked).await,
    }
}

/// Text of a repository, for a person: in one line, and nothing in it that commands the terminal.
fn plain(text: &str) -> String {
    crate::output::harmless(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}
