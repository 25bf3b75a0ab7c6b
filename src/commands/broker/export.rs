//! `harvest broker export`: all that a broker has, or what a query selects of it, as SOIF.
//!
//! Source: TR §5.2, the bulk transfer from one broker to another.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use broker::source::Part;
use broker::status::Status;
use collection::pull::{FeedClient, PullLimits, Puller};
use collection::{Collection, Error, Options, Stamp};
use net::client::{Client, Settings};
use net::clock;
use tokio::time::sleep;
use url::Url;

use crate::commands::collection as command;
use crate::output;
use crate::settings::File;

/// How long a broker may take to put together what is asked for.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// Pause until it is asked again meanwhile.
const PAUSE: Duration = Duration::from_secs(2);

/// What is written, and where.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest broker export -c broker.toml --query 'type:PDF AND subject:physics' -o physics.soif
  harvest broker export --url https://search.example.org/ --view physics | harvest soif check -")]
pub(crate) struct Export {
    /// The settings file of the broker.
    #[arg(
        short,
        long,
        value_name = "FILE",
        required_unless_present = "url",
        conflicts_with = "url"
    )]
    config: Option<PathBuf>,
    /// The address of a broker, or of a gatherer, in place of its settings.
    #[arg(long)]
    url: Option<Url>,
    /// Only what this query selects.
    #[arg(long)]
    query: Option<String>,
    /// Only what this view has.
    #[arg(long, conflicts_with = "query")]
    view: Option<String>,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn run(args: Export) -> anyhow::Result<ExitCode> {
    let url = match (&args.url, &args.config) {
        (Some(url), _) => url.clone(),
        (None, Some(config)) => own_address(config).await?,
        (None, None) => bail!("name the broker: --config FILE or --url URL"),
    };
    let part = match (&args.query, args.view) {
        (Some(text), _) => {
            let query = query::parse(text)
                .map_err(|error| anyhow::anyhow!("{error}\n{}", error.caret(text)))?;
            query.check_standing().map_err(anyhow::Error::msg)?;
            Some(Part::Query(query))
        }
        (None, view) => view.map(Part::View),
    };
    // What broke off is gone on with by the folder that a broker has, too.
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let now = Stamp(clock::now_ms());
    let opened = Collection::open(folder.path(), Options::default(), now)?;
    let client = Client::new(Settings { allow_private: true, ..Settings::default() });
    let feed = FeedClient::new(client, url.clone(), url.as_str());
    let feed = feed.allow_private(true).part(part.as_ref().map(Part::parameter));
    let puller = Puller::new(feed, opened.0.clone(), PullLimits::default());
    let began = clock::monotonic();
    while let Err(error) = puller.pull(None).await {
        if !is_being_made(&error) || PATIENCE < began.elapsed() {
            return Err(error.into());
        }
        output::note("the broker is putting it together; asking again");
        sleep(PAUSE).await;
    }
    command::export(&opened, args.output.as_deref())
}

/// Returns the address of the public listener of a running broker.
async fn own_address(config: &std::path::Path) -> anyhow::Result<Url> {
    let admin = super::admin(&File { config: config.to_owned() })?;
    let status: Status = serde_json::from_slice(&admin.get("status").await?)?;
    Ok(Url::parse(&super::public_url(&status))?)
}

/// Returns whether a feed has said that what is asked for is still being put together.
fn is_being_made(error: &Error) -> bool {
    let Error::Source { error, .. } = error else { return false };
    matches!(error, net::Error::Status { status, .. } if status.as_u16() == 503)
}
