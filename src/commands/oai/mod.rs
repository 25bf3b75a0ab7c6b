//! `harvest oai`: requests to, harvests of and checks of OAI-PMH repositories.

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
use web::foreign::harmless;

use crate::admin;

/// Query, harvest and check OAI-PMH repositories.
///
/// BASEURL is a repository's address; that of a Harvest broker is `http://127.0.0.1:8501/oai`.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  harvest oai identify https://repository.example/oai
  harvest oai list https://repository.example/oai --from 2026-01-01 --set physics
  harvest oai harvest https://repository.example/oai -o records.soif --checkpoint records.cursor
  harvest oai validate http://127.0.0.1:8501/oai")]
pub(crate) enum OaiCommand {
    /// Show a repository's identity, its treatment of deleted records, and its date granularity.
    Identify(show::Identify),
    /// Show the metadata formats of a repository, or of one of its items.
    Formats(show::Formats),
    /// Show the sets of a repository.
    Sets(show::Sets),
    /// Print the headers of records: datestamp, identifier and sets, one a line.
    #[command(after_help = list::EXAMPLES)]
    List(list::List),
    /// Harvest records into a stream of SOIF, or as they came; a later run goes on from there.
    #[command(after_help = harvest::EXAMPLES)]
    Harvest(harvest::Harvest),
    /// Check that a repository follows OAI-PMH; exit with 1 if it does not.
    #[command(after_help = validate::EXAMPLES)]
    Validate(validate::Validate),
}

/// Arguments for the repository.
#[derive(Debug, clap::Args)]
pub(crate) struct RepositoryArgs {
    /// The repository's address, without a query.
    #[arg(value_name = "BASEURL")]
    base: Url,
    /// Bearer token that the repository requires.
    #[arg(long, value_name = "TOKEN", env = "HARVEST_OAI_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl RepositoryArgs {
    /// Returns the repository; it may be on any host, this machine included.
    fn open(&self) -> anyhow::Result<Repository> {
        if self.base.query_pairs().any(|(name, _)| name == "verb") {
            bail!("{} is a request: give the address only, without ?verb=…", self.base);
        }
        if !matches!(self.base.scheme(), "http" | "https") {
            bail!(
                "{} is no address of a repository: an address begins with http:// or https://",
                self.base
            );
        }
        let credentials = Credentials { token: self.token.clone(), ..Credentials::default() };
        let access = Access { credentials, allow_private: true, ..Access::default() };
        Ok(Repository::new(admin::client(), self.base.clone(), access))
    }
}

/// Arguments that select records.
#[derive(Debug, clap::Args)]
pub(crate) struct SelectionArgs {
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

impl SelectionArgs {
    /// Fails if no record can match.
    fn check(&self) -> anyhow::Result<()> {
        match (self.from, self.until) {
            (Some(from), Some(until)) if until.last_secs() < from.secs() => {
                bail!("--from {from} is later than --until {until}: no record can match");
            }
            _ => Ok(()),
        }
    }
}

fn datestamp(text: &str) -> Result<Datestamp, String> {
    let advice = || "write a day as 2026-01-31, or a second as 2026-01-31T12:00:00Z".to_owned();
    Datestamp::parse(text).ok_or_else(advice)
}

pub(crate) async fn run(command: OaiCommand, bars: MultiProgress) -> anyhow::Result<ExitCode> {
    match command {
        OaiCommand::Identify(args) => show::identify(&args).await,
        OaiCommand::Formats(args) => show::formats(&args).await,
        OaiCommand::Sets(args) => show::sets(&args).await,
        OaiCommand::List(args) => list::run(&args).await,
        OaiCommand::Harvest(args) => harvest::run(&args, &bars).await,
        OaiCommand::Validate(args) => validate::run(&args).await,
    }
}

/// Returns a repository's text for a person: in one line, and without control characters.
fn plain(text: &str) -> String {
    harmless(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}
