//! `harvest registry`: the daemon that lists the servers of a community, and the commands to it.

mod deciding;
mod discover;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use broker::answer::Answer;
use broker::server::Handle;
use clap::Subcommand;
use daemon::announce::address;
use net::shutdown::Shutdown;
use registry::answer::{Listed, Overview};
use registry::config::Config;
use registry::divide::{Proposal, divided};
use registry::server::Server;
use serde_json::Value;
use url::Url;
use web::foreign::{harmless, visible};
use web::templates::ago;

use super::broker::{check_files, render, resolved};
use crate::admin::{self, Admin, Places};
use crate::settings::{self, File, StatusArgs};
use crate::{cli, output, process};

/// The registry that is asked if none is named, as `harvest registry run` listens there.
const REGISTRY: &str = "http://127.0.0.1:8502/";

/// Run a registry: list the gatherers, brokers, caches and replicators of a community.
#[derive(Debug, Subcommand)]
#[command(after_help = "Example of a registry.toml:
  name = \"Libraries of the mountains\"
  listen = \"0.0.0.0:8502\"
  base_url = \"https://registry.example/\"
  data = \"/var/lib/harvest/registry\"

A daemon announces itself with these lines in its settings:
  [registry]
  url = \"https://registry.example/\"")]
pub(crate) enum RegistryCommand {
    /// Run the registry until SIGTERM or Ctrl-C; SIGHUP reads the settings again.
    Run(File),
    /// Print every mistake in the settings as FILE:LINE:COL; exit with 1 if there is any.
    Check(File),
    /// Show the status of a running registry.
    Status(StatusArgs),
    /// List the servers.
    #[command(after_help = "Examples:
  harvest registry list --registry https://registry.example/
  harvest registry list --registry https://a.example/ --registry https://b.example/
  harvest registry list --kind broker --json | jq -r '.[].url'
  harvest registry list -c registry.toml            with those that wait for approval")]
    List {
        #[command(flatten)]
        asked: Asked,
        /// Of this kind alone: gatherer, broker, cache, replicator or registry.
        #[arg(long)]
        kind: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Find servers by a query.
    #[command(after_help = "Examples:
  harvest registry find 'type:Broker geology'
  harvest registry find 'gathers:orchard.example'")]
    Find {
        #[command(flatten)]
        asked: Asked,
        /// The query.
        query: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show all that is known of a server.
    Show {
        #[command(flatten)]
        asked: Asked,
        /// The server's id.
        id: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    Discover(discover::Discover),
    /// Propose which gatherer gathers which site: who has it already, or else the nearest.
    #[command(after_help = "Examples:
  harvest registry divide https://www.example.org/ https://www.example.net/
  harvest registry divide --file sites.txt --registry https://registry.example/")]
    Divide {
        #[command(flatten)]
        asked: Asked,
        /// The sites.
        #[arg(value_name = "URL", required_unless_present = "file")]
        sites: Vec<Url>,
        /// A file of more of them, one a line.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    Approve(deciding::Approve),
    Revoke(deciding::Revoke),
}

/// The registry that is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Asked {
    /// The registry's address. Several have the same, as registries that pull each other do: the nearest is
    /// asked, and the next one if that does not answer.
    #[arg(long, value_name = "URL", env = "HARVEST_REGISTRY", default_value = REGISTRY, value_parser = places)]
    registry: Vec<Places>,
    /// The settings file of a registry on this machine, whose administration is asked.
    #[arg(short, long = "config", value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Asked {
    /// Returns the addresses at which the registry answers everybody.
    fn public(&self) -> anyhow::Result<Vec<Url>> {
        let Some(path) = &self.config else { return Ok(Places::all(&self.registry)) };
        let daemon = load(path)?.broker.daemon;
        let mut listen = daemon.listen;
        match listen.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => listen.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => listen.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        Ok(vec![Url::parse(&format!("{}://{listen}/", daemon.scheme()))?])
    }
}

/// Reads the addresses of registries.
pub(super) fn places(text: &str) -> Result<Places, String> {
    Places::read(text, address_of)
}

/// Reads the address of a registry.
fn address_of(text: &str) -> Result<Url, String> {
    address(text)
        .ok_or_else(|| "no address of a registry, such as https://registry.example/".to_owned())
}

pub(crate) async fn run(command: RegistryCommand) -> anyhow::Result<ExitCode> {
    match command {
        RegistryCommand::Run(File { config }) => serve(&config).await,
        RegistryCommand::Check(file) => file.check(|path| check_files(path, &load(path)?.broker)),
        RegistryCommand::Status(StatusArgs { file, json }) => {
            let admin = admin_of(&file.config)?;
            let now_ms = net::clock::now_ms();
            admin.print(&admin.get("status").await?, json, |status| render(status, now_ms))
        }
        RegistryCommand::List { asked, kind, json } => list(&asked, kind.as_deref(), json).await,
        RegistryCommand::Find { asked, query, json } => find(&asked, &query, json).await,
        RegistryCommand::Show { asked, id, json } => show(&asked, &id, json).await,
        RegistryCommand::Discover(args) => discover::run(&args).await,
        RegistryCommand::Divide { asked, sites, file, json } => {
            divide(&asked, sites, file.as_deref(), json).await
        }
        RegistryCommand::Approve(asked) => deciding::approve(asked).await,
        RegistryCommand::Revoke(asked) => deciding::revoke(asked).await,
    }
}

/// Reads the settings; relative paths in them start at the file's folder.
fn load(path: &Path) -> anyhow::Result<Config> {
    let config = settings::load(path, Config::parse)?;
    Ok(Config { broker: resolved(config.broker, path), ..config })
}

fn admin_of(path: &Path) -> anyhow::Result<Admin> {
    let config = load(path)?.broker;
    Admin::new("registry", &config.daemon.admin_address(), &config.daemon.data)
}

async fn serve(path: &Path) -> anyhow::Result<ExitCode> {
    let mut signals = process::Signals::listen()?;
    let config = load(path)?;
    let scheme = config.broker.daemon.scheme();
    let opening = Box::pin(async { Ok(Server::bind(config).await?) });
    let Some(server) = signals.during(opening).await? else { return Ok(ExitCode::SUCCESS) };
    let (public, admin) = (server.local_addr(), server.admin_addr());
    tracing::info!(%admin, "registry runs: servers at {scheme}://{public}/servers");
    let handle = server.handle();
    // Symbolic links are not resolved: they may point elsewhere at the next reading.
    let file = std::path::absolute(path)?;
    server.read_settings_by(&file.clone(), move || {
        load(&file).map_err(|error| cli::error_text(&error))
    });
    let shutdown = Shutdown::new();
    let serving = Box::pin(server.run(shutdown.clone()));
    let serving = async { serving.await.context("the registry stopped") };
    let reload = async || process::log_reload(reload(&handle, path).await);
    process::run(signals, serving, shutdown, reload).await
}

/// Applies the settings as they are now in the file.
async fn reload(handle: &Handle, path: &Path) -> anyhow::Result<Vec<&'static str>> {
    Ok(handle.reload(load(path)?.broker).await?)
}

/// Requests a path below a registry's address; returns that address, and the answer in JSON.
async fn get(asked: &Asked, path: &str, query: &[(&str, &str)]) -> anyhow::Result<(Url, Vec<u8>)> {
    let registries = asked.public()?;
    let asking = admin::ask_nearest(&registries, |registry| {
        let mut url = registry.join(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    });
    let (registry, status, body) = asking.await.with_context(|| {
        let places = admin::either(&registries);
        format!("no registry answers at {places}; name one with --registry")
    })?;
    if !status.is_success() {
        let why = admin::failure_message(&body);
        bail!("the registry at {registry} answers {status}: {}", harmless(&why));
    }
    Ok((registry, body))
}

/// Returns the servers that are listed, or of the administration all.
async fn servers(asked: &Asked, query: &[(&str, &str)]) -> anyhow::Result<Vec<Listed>> {
    let Some(path) = &asked.config else { return listed(asked, query).await };
    let answer = admin_of(path)?.get("servers").await?;
    let overview: Overview = serde_json::from_slice(&answer)
        .context("the registry is of another version than this command")?;
    Ok(overview.servers)
}

/// Returns the servers that are listed for everybody, with all that is known of them.
async fn listed(asked: &Asked, query: &[(&str, &str)]) -> anyhow::Result<Vec<Listed>> {
    let (registry, answer) = get(asked, "api/servers", query).await?;
    serde_json::from_slice(&answer)
        .with_context(|| format!("what is at {registry} is no registry of this version"))
}

async fn list(asked: &Asked, kind: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let query: Vec<(&str, &str)> = kind.map(|it| ("kind", it)).into_iter().collect();
    let mut servers = servers(asked, &query).await?;
    servers.retain(|it| kind.is_none_or(|kind| it.kind == kind));
    if json {
        return output::json(&servers);
    }
    let mut table = output::table(["name", "kind", "state", "last seen", "address", "id"]);
    let now = net::clock::now_ms() / 1_000;
    for it in &servers {
        let seen = format!("{} ago", ago(now.saturating_sub(it.last_seen)));
        let cells = [&it.name, &it.kind, &it.state, &seen, &it.url, &it.id];
        table.add_row(cells.map(|it| visible(it)));
    }
    output::line(&table.to_string())?;
    Ok(ExitCode::SUCCESS)
}

async fn find(asked: &Asked, query: &str, json: bool) -> anyhow::Result<ExitCode> {
    let more = [("q", query), ("facets", "false"), ("limit", "100")];
    let (registry, answer) = get(asked, "api/search", &more).await?;
    let other = || format!("what is at {registry} is no registry of this version");
    if json {
        return output::json(&serde_json::from_slice::<Value>(&answer).with_context(other)?);
    }
    let answer: Answer = serde_json::from_slice(&answer).with_context(other)?;
    let mut table = output::table(["name", "kind", "address", "id"]);
    for it in &answer.hits {
        table.add_row([&it.title, &it.r#type, &it.url, &it.gatherer_id].map(|it| visible(it)));
    }
    output::line(&table.to_string())?;
    output::line(&output::counted(answer.total, "server"))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads addresses, one a line; empty lines and those that begin with # say nothing.
fn sites_of(path: &Path) -> anyhow::Result<Vec<Url>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let mut sites = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if !line.is_empty() && !line.starts_with('#') {
            let site = Url::parse(line);
            sites.push(site.with_context(|| format!("{shown}:{number}: {line:?} is no address"))?);
        }
    }
    Ok(sites)
}

async fn divide(
    asked: &Asked,
    mut sites: Vec<Url>,
    file: Option<&Path>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    sites.extend(file.map(sites_of).transpose()?.unwrap_or_default());
    // Who gathers what is in the records of those that are listed, not in an administrator's list.
    let mut gatherers = listed(asked, &[("kind", "gatherer")]).await?;
    gatherers.retain(|it| matches!(&*it.state, "alive" | "relayed"));
    if gatherers.is_empty() {
        bail!("no gatherer is listed: one announces itself with [registry] in its settings");
    }
    let proposals = divided(&sites, &gatherers);
    let rows = proposals.iter().filter_map(|it| Some((it, gatherers.get(it.gatherer)?)));
    if json {
        let of = |(it, gatherer): (&Proposal, &Listed)| {
            serde_json::json!({
                "site": it.site,
                "gatherer": gatherer.name,
                "id": gatherer.id,
                "url": gatherer.url,
                "already": it.already,
            })
        };
        return output::json(&rows.map(of).collect::<Vec<_>>());
    }
    let mut table = output::table(["site", "gatherer", "address", ""]);
    for (it, gatherer) in rows {
        let already = if it.already { "has it already" } else { "" };
        let cells = [it.site.as_str(), &gatherer.name, &gatherer.url, already];
        table.add_row(cells.map(visible));
    }
    output::line(&table.to_string())?;
    Ok(ExitCode::SUCCESS)
}

async fn show(asked: &Asked, id: &str, json: bool) -> anyhow::Result<ExitCode> {
    let servers = servers(asked, &[("id", id)]).await?;
    let Some(server) = servers.into_iter().find(|it| it.id == id) else {
        bail!("no server of the id {id} is listed; `harvest registry list` names them");
    };
    if json {
        return output::json(&server);
    }
    let now = net::clock::now_ms() / 1_000;
    let objects = server.objects.map(|it| indicatif::HumanCount(it).to_string());
    let lines = [
        ("name", server.name.clone()),
        ("kind", server.kind.clone()),
        ("address", server.url.clone()),
        ("id", server.id.clone()),
        (
            "state",
            format!(
                "{}, last seen {} ago",
                server.state,
                ago(now.saturating_sub(server.last_seen))
            ),
        ),
        ("objects", objects.unwrap_or_default()),
        ("gathers", server.gathers.join(", ")),
    ];
    for (name, value) in lines.iter().filter(|it| !it.1.is_empty()) {
        output::line(&visible(&format!("{name:<9} {value}")))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_reached_at_the_address_that_is_meant() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.toml");
        let registry = address_of("https://x.example/registry").unwrap();
        assert_eq!(registry.join("api/servers").unwrap().path(), "/registry/api/servers");
        assert!(address_of("ftp://x.example/").is_err());
        let places = || vec![places("https://x.example/registry http://y.example").unwrap()];
        let named = Asked { registry: places(), config: None };
        let expected = vec![registry, address_of("http://y.example").unwrap()];
        assert_eq!(named.public().unwrap(), expected);
        for (listen, expected) in [
            ("0.0.0.0:8502", "http://127.0.0.1:8502/"),
            ("[::]:8502", "http://[::1]:8502/"),
            ("10.0.0.1:8502", "http://10.0.0.1:8502/"),
        ] {
            std::fs::write(&path, format!("name = 'n'\ndata = 'd'\nlisten = '{listen}'\n"))
                .unwrap();
            let asked = Asked { registry: places(), config: Some(path.clone()) };
            assert_eq!(asked.public().unwrap(), [Url::parse(expected).unwrap()]);
        }
    }
}
