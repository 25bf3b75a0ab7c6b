//! `harvest registry discover`: servers that others name, each probed before it is listed.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use daemon::describe::Description as Described;
use exchange::discovery::{Candidate, Walk};
use exchange::harvester::{Access, Repository};
use net::client::{Client, Request};
use oai::repository::description::Description;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;
use web::foreign::visible;

use crate::{admin, output};

/// Number of servers that are probed at a time, and in all.
const AT_A_TIME: usize = 16;
const SERVERS_MAX: usize = 1_000;
/// Time that a server has.
const PATIENCE: Duration = Duration::from_secs(15);
/// Longest description, in bytes.
const DESCRIPTION_BYTES_MAX: u64 = 1 << 20;

/// Find servers without a registry: whom a server names, whom those name, and who of them answers.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest registry discover https://repository.example/oai
  harvest registry discover https://broker.example/ --depth 3 --json | jq -r '.[] | select(.problem == null).url'

What answers as a broker can be a [[peer]] of yours, a gatherer or a repository a [[source]].")]
pub(crate) struct Discover {
    /// Servers to begin with: daemons of Harvest, or repositories of OAI-PMH.
    #[arg(value_name = "URL", required = true)]
    servers: Vec<Url>,
    /// How far to go from them.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=10))]
    depth: u32,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// What a probe has found.
#[derive(Debug, Default, Serialize)]
struct Found {
    url: String,
    /// `broker`, `gatherer` … or `oai`; empty if nothing of this kind answers.
    kind: String,
    name: String,
    id: String,
    depth: u32,
    /// Why it is not listed.
    problem: Option<String>,
    #[serde(skip)]
    names: Vec<String>,
}

pub(crate) async fn run(args: &Discover) -> anyhow::Result<ExitCode> {
    let client = admin::client();
    let mut is_private = false;
    for it in &args.servers {
        is_private |= client.is_private(it).await;
    }
    let mut walk = Walk::new(args.servers.iter().cloned(), args.depth, SERVERS_MAX);
    let (mut running, mut all) = (JoinSet::new(), Vec::new());
    loop {
        while running.len() < AT_A_TIME
            && let Some(candidate) = walk.take()
        {
            // Whom a stranger names may not lead into a private network.
            let allow_private = is_private || candidate.depth == 0;
            let client = client.clone();
            running.spawn(async move {
                let probed = timeout(PATIENCE, probe(&client, &candidate.url, allow_private)).await;
                let late = || Err(format!("no answer within {} s", PATIENCE.as_secs()));
                (candidate, probed.unwrap_or_else(|_late| late()))
            });
        }
        let Some(ended) = running.join_next().await else { break };
        let (candidate, probed) = ended?;
        let found = found(&candidate, probed);
        walk.hear(&candidate, found.names.iter().map(String::as_str));
        // A daemon may have several addresses.
        if found.id.is_empty() || all.iter().all(|it: &Found| it.id != found.id) {
            all.push(found);
        }
    }
    all.sort_by(|a, b| {
        (a.problem.is_some(), a.depth, &a.url).cmp(&(b.problem.is_some(), b.depth, &b.url))
    });
    show(&all, args.json)
}

fn found(candidate: &Candidate, probed: Result<Found, String>) -> Found {
    let (url, depth) = (candidate.url.to_string(), candidate.depth);
    match probed {
        Ok(found) if found.url.is_empty() => Found { url, depth, ..found },
        Ok(found) => Found { depth, ..found },
        Err(problem) => Found { url, depth, problem: Some(problem), ..Found::default() },
    }
}

fn show(all: &[Found], json: bool) -> anyhow::Result<ExitCode> {
    if json {
        return output::json(&all);
    }
    let (alive, dead): (Vec<_>, Vec<_>) = all.iter().partition(|it| it.problem.is_none());
    if !alive.is_empty() {
        let mut table = output::table(["name", "kind", "address", "id"]);
        for it in &alive {
            table.add_row([&it.name, &it.kind, &it.url, &it.id].map(|it| visible(it)));
        }
        output::line(&table.to_string())?;
    }
    for it in &dead {
        let problem = it.problem.as_deref().unwrap_or_default();
        output::note(&format!("{}: {}", visible(&it.url), visible(problem)));
    }
    output::line(&output::counted(alive.len() as u64, "server"))?;
    if alive.is_empty() {
        bail!("nothing answers as a daemon of Harvest or a repository of OAI-PMH");
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks a server what it is, and whom it names. The error says why it is nothing of this kind.
async fn probe(client: &Client, url: &Url, allow_private: bool) -> Result<Found, String> {
    let described = describe(client, url, allow_private).await;
    // A daemon of Harvest is a repository below its address.
    let oai = match &described {
        Some(_) => address(url).join("oai").map_err(|it| it.to_string())?,
        None => url.clone(),
    };
    let access = Access { allow_private, ..Access::default() };
    let identified = Repository::new(client.clone(), oai, access).identify().await;
    let friends = identified.as_ref().map_or(Vec::new(), |(it, _)| {
        let read = it.descriptions.iter().filter_map(Description::read);
        let friends = read.filter_map(|it| match it {
            Description::Friends(friends) => Some(friends),
            _ => None,
        });
        friends.flatten().collect()
    });
    if let Some(Described { id, kind, facts, .. }) = described {
        let url = facts.base_url.map(String::from).unwrap_or_default();
        return Ok(Found { url, kind, name: facts.name, id, names: friends, ..Found::default() });
    }
    let (identify, _) = identified.map_err(|it| it.to_string())?;
    let (url, kind, name) = (String::new(), "oai".to_owned(), identify.repository_name);
    Ok(Found { url, kind, name, names: friends, ..Found::default() })
}

/// Reads the description of a daemon; `None`: there is none.
async fn describe(client: &Client, url: &Url, allow_private: bool) -> Option<Described> {
    let url = address(url).join(".well-known/harvest").ok()?;
    let request = Request {
        response_bytes_max: Some(DESCRIPTION_BYTES_MAX),
        ..Request::get(url).allow_private(allow_private)
    };
    let response = client.send(request).await.ok()?;
    let is_found = response.status.is_success();
    let bytes = response.bytes(DESCRIPTION_BYTES_MAX).await.ok()?;
    serde_json::from_slice(&bytes).ok().filter(|_| is_found)
}

/// Returns the address below which a daemon answers: without the path of its repository.
fn address(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.join(".").unwrap_or(url)
}
