//! `harvest replicator`: the daemon that keeps trees and collections equal at all members of a group, and what is asked
//! of it.

mod answers;
mod settings;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use net::shutdown::Shutdown;
use replicator::config::TreeConfig;
use replicator::group::charter::Address;
use replicator::group::invited::VALID_RANGE;
use replicator::group::join::Invitation;
use replicator::id::InvitationId;
use replicator::status::{Report, Status};
use replicator::version::Name;
use replicator::{Config, Handle, Server, drawing};
use serde::Deserialize;
use url::Url;

use self::answers::{render, said, verified};
pub(crate) use self::settings::load;
use self::settings::{check, keyless, make, written};
use crate::admin::Admin;
use crate::settings::File;
use crate::{cli, output, process};

/// Run a replicator: keep trees and collections equal at all members of a group, each change sent once over each slow
/// link.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  harvest replicator init boulder --group papers --address a.example.org:4000 --tree papers=/srv/papers
  harvest replicator run -c boulder/replicator.toml
  harvest replicator publish -c boulder/replicator.toml papers
  harvest replicator init golden --group catalogs --address a.example.org:4000 \
    --collection catalog=http://127.0.0.1:8501/
  harvest replicator join paris --address b.example.org:4000 --site paris 'harvest-group-1,…'
  harvest replicator topology -c boulder/replicator.toml --svg topology.svg")]
pub(crate) enum Command {
    /// Found a group: write the settings and keys of its first member, and print the invitation for others.
    Init {
        /// The folder to make, with replicator.toml and all data in it.
        directory: PathBuf,
        /// The group's name.
        #[arg(long, value_parser = Name::new)]
        group: Name,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        publishing: Publishing,
    },
    /// Join a group: write the settings and keys of a new member.
    Join {
        /// The folder to make, with replicator.toml and all data in it.
        directory: PathBuf,
        /// The line that `init` and `invite` print.
        invitation: Invitation,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        publishing: Publishing,
    },
    /// Run the member until SIGTERM or Ctrl-C; SIGHUP reads the settings again.
    Run {
        #[command(flatten)]
        file: File,
        /// Make a key if the data directory has none: as another member, then.
        #[arg(long)]
        new_identity: bool,
    },
    /// Name every mistake of the settings as FILE:LINE:COL, and what they name that is not on this machine; exit with 1
    /// if there is any.
    Check(File),
    /// Show what a running member says of itself.
    Status {
        #[command(flatten)]
        file: File,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Publish a tree: all of it, or nothing; prints the version that readers see then. Of a collection the feed is asked
    /// at once what is new.
    Publish {
        #[command(flatten)]
        file: File,
        /// The tree's name or directory, or the collection's name; may be left out if there is one alone.
        tree: Option<String>,
        /// Publish also if much that was there is gone.
        #[arg(long)]
        accept_loss: bool,
        /// Print the member's answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Read all that readers see, of one tree or of all; what is damaged is fetched again. Exit with 1 if anything is.
    Verify {
        #[command(flatten)]
        file: File,
        /// The tree's name, or NAME@WRITER as `status` has it.
        tree: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a new invitation, by which one member can join: the first who has the line, until it ends. That of a member
    /// that does not lead the group serves those alone that the access list lets in.
    Invite {
        #[command(flatten)]
        file: File,
        /// Of which group, if there are several.
        #[arg(long, value_parser = Name::new)]
        group: Option<Name>,
        /// How long it is valid, from "1 min" to "30 days"; a day if nothing is said.
        #[arg(long, value_name = "DURATION", value_parser = validity)]
        valid: Option<Duration>,
        /// Withdraw this one instead: `status` lists their ids. Who came by it stays.
        #[arg(long, value_name = "ID", conflicts_with = "valid")]
        revoke: Option<InvitationId>,
        /// Print the member's answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Have this member lead the group, if it founded it or is a deputy.
    Lead {
        #[command(flatten)]
        file: File,
        /// Which group, if there are several.
        #[arg(long, value_parser = Name::new)]
        group: Option<Name>,
    },
    /// Show the links of a group, and what they cost.
    Topology {
        #[command(flatten)]
        file: File,
        /// Of which group, if there are several.
        #[arg(long, value_parser = Name::new)]
        group: Option<Name>,
        /// As JSON.
        #[arg(long)]
        json: bool,
        /// Draw them into this file.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
}

/// What a new member publishes.
#[derive(Debug, clap::Args)]
pub(crate) struct Publishing {
    /// A tree to publish, as NAME=DIRECTORY; may be given several times.
    #[arg(long, value_name = "NAME=DIRECTORY", value_parser = tree)]
    tree: Vec<(Name, PathBuf)>,
    /// A collection to publish as it changes, as NAME=URL of the gatherer or broker that has it; may be given several
    /// times.
    #[arg(long, value_name = "NAME=URL", value_parser = collection)]
    collection: Vec<(Name, Url)>,
}

/// Where a member is.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// Where the other members reach this one: HOST:PORT.
    #[arg(long, value_parser = Address::new)]
    address: Address,
    /// Its site: between members of one site are good links.
    #[arg(long, default_value = replicator::config::SITE, value_parser = Name::new)]
    site: Name,
}

impl Command {
    /// Whether this runs until it is stopped.
    pub(crate) fn is_daemon(&self) -> bool {
        matches!(self, Self::Run { .. })
    }
}

/// How long an invitation is to be valid.
fn validity(text: &str) -> Result<Duration, String> {
    let found = ::settings::parse_duration(text);
    found
        .filter(|it| VALID_RANGE.contains(it))
        .ok_or_else(|| format!("{text:?} is none from \"1 min\" to \"30 days\", such as \"2 h\""))
}

fn collection(text: &str) -> Result<(Name, Url), String> {
    let (name, feed) = text.split_once('=').ok_or("it has to be NAME=URL")?;
    let feed = feed.parse().map_err(|error| format!("{feed} is no URL: {error}"))?;
    Ok((Name::new(name).map_err(|error| error.to_string())?, feed))
}

fn tree(text: &str) -> Result<(Name, PathBuf), String> {
    let (name, directory) = text.split_once('=').ok_or("it has to be NAME=DIRECTORY")?;
    Ok((Name::new(name).map_err(|error| error.to_string())?, directory.into()))
}

/// Does what the command says.
pub(crate) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Init { directory, group, place, publishing } => {
            init(&directory, &group, &place, &publishing)
        }
        Command::Join { directory, invitation, place, publishing } => {
            join(&directory, &invitation, &place, &publishing)
        }
        Command::Run { file, new_identity } => serve(&file.config, new_identity).await,
        Command::Check(file) => file.check(|path| check(path, &load(path)?)),
        Command::Status { file, json } => {
            let admin = admin(&load(&file.config)?)?;
            admin.tell(&admin.get("status").await?, json, render)
        }
        Command::Publish { file, tree, accept_loss, json } => {
            let config = load(&file.config)?;
            let tree = chosen(&config, tree)?;
            let loss = accept_loss.to_string();
            let admin = admin(&config)?.patient();
            let query = [("tree", tree.as_str()), ("accept_loss", &loss)];
            admin.tell(&admin.post("publish", &query).await?, json, said)
        }
        Command::Verify { file, tree, json } => {
            let admin = admin(&load(&file.config)?)?.patient();
            let query: Vec<_> = tree.iter().map(|it| ("tree", it.as_str())).collect();
            let answer = admin.post("verify", &query).await?;
            admin.tell(&answer, json, |it: &Vec<Report>| verified(it))?;
            let found: Vec<Report> = serde_json::from_slice(&answer)?;
            let is_whole = found.iter().all(|it| it.damaged_total == 0);
            Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Invite { file, group, valid, revoke: None, json } => {
            let admin = admin(&load(&file.config)?)?;
            let valid = valid.map(|it| it.as_secs().to_string());
            let mut query = named(group.as_ref());
            query.extend(valid.iter().map(|it| ("valid", it.as_str())));
            let answer = admin.post("invite", &query).await?;
            let invited: Invited = serde_json::from_slice(&answer)?;
            output::note(&noted(&invited));
            admin.tell(&answer, json, |it: &Invited| it.invitation.clone())
        }
        Command::Invite { file, group, revoke: Some(id), json, .. } => {
            let admin = admin(&load(&file.config)?)?;
            let id = id.to_string();
            let mut query = named(group.as_ref());
            query.push(("revoke", &id));
            admin.tell(&admin.post("invite", &query).await?, json, |it: &Revoked| {
                format!(
                    "invitation {} is withdrawn; who came by it stays until it is denied",
                    it.revoked
                )
            })
        }
        Command::Lead { file, group } => {
            let admin = admin(&load(&file.config)?)?;
            let answer = admin.post("lead", &named(group.as_ref())).await?;
            admin.tell(&answer, false, |it: &Leads| format!("this member leads {} now", it.leads))
        }
        Command::Topology { file, group, json, svg } => {
            let admin = admin(&load(&file.config)?)?;
            let status: Status = serde_json::from_slice(&admin.get("status").await?)
                .context("the replicator is of another version than this command")?;
            topology(&status, group.as_ref(), json, svg.as_deref())
        }
    }
}

/// The answer to `invite`.
#[derive(Debug, Deserialize)]
struct Invited {
    invitation: String,
    /// None if it is no pass.
    id: Option<String>,
    ends: Option<u64>,
}

/// The answer to `invite` with `revoke`.
#[derive(Debug, Deserialize)]
struct Revoked {
    revoked: String,
}

/// What there is to say of an invitation.
fn noted(invited: &Invited) -> String {
    match invited {
        Invited { id: Some(id), ends: Some(ends), .. } => {
            let left = ends.saturating_sub(net::clock::now_ms() / 1_000);
            format!(
                "invitation {id}: for the first who joins by it, within {}; keep it secret until then",
                answers::span(left)
            )
        }
        _ => "this line is no pass, since another member leads the group: who joins by it has to be on the access list \
              (`allow`)"
            .to_owned(),
    }
}

/// The answer to `lead`.
#[derive(Debug, Deserialize)]
struct Leads {
    leads: String,
}

fn named(group: Option<&Name>) -> Vec<(&'static str, &str)> {
    group.iter().map(|it| ("group", it.as_str())).collect()
}

fn admin(config: &Config) -> anyhow::Result<Admin> {
    Admin::new("replicator", &config.daemon.whereabouts(), &config.daemon.data)
}

/// The name of the tree, or of the collection, that is meant.
fn chosen(config: &Config, tree: Option<String>) -> anyhow::Result<String> {
    let names = || {
        let trees = config.trees.iter().map(|it| it.name.as_str());
        trees.chain(config.collections.iter().map(|it| it.name.as_str())).collect::<Vec<_>>()
    };
    if names().is_empty() {
        bail!(
            "this member publishes nothing: the settings have no [[tree]] or [[collection]]; what `status` shows of \
             others is published where its writer runs"
        );
    }
    let Some(tree) = tree else {
        return match names().as_slice() {
            [only] => Ok((*only).to_owned()),
            several => bail!("there are several: name one of {}", several.join(", ")),
        };
    };
    if config.collections.iter().any(|it| it.name.as_str() == tree) {
        return Ok(tree);
    }
    let given = fs::canonicalize(&tree).ok();
    let is_it = |it: &&TreeConfig| {
        it.name.as_str() == tree || given.is_some() && fs::canonicalize(&it.directory).ok() == given
    };
    match config.trees.iter().find(is_it) {
        Some(found) => Ok(found.name.to_string()),
        None => bail!(
            "no [[tree]] or [[collection]] has the name {tree:?}, and no [[tree]] that directory; there are: {}",
            names().join(", ")
        ),
    }
}

fn init(
    directory: &Path,
    group: &Name,
    place: &Place,
    publishing: &Publishing,
) -> anyhow::Result<ExitCode> {
    let text = written(&format!("name = \"{group}\""), place, publishing)?;
    let path = make(directory, &text, publishing)?;
    let data = load(&path)?.daemon.data;
    let (id, printed) = replicator::node::invitation(&data, group, &place.address)?;
    let shown = path.display();
    output::line(&format!(
        "{shown} is written; this member is {id}.\n\n\
         Start it:\n  harvest replicator run -c {shown}\n\n\
         Another joins with this line, within a day; keep it secret, the first who has it may join:\n  {}\n\n\
         There is a new one for each:\n  harvest replicator invite -c {shown}",
        printed.invitation
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn join(
    directory: &Path,
    invitation: &Invitation,
    place: &Place,
    publishing: &Publishing,
) -> anyhow::Result<ExitCode> {
    let text = written(&format!("join = \"{invitation}\""), place, publishing)?;
    let path = make(directory, &text, publishing)?;
    let id = replicator::node::identity(&load(&path)?.daemon.data)?;
    let shown = path.display();
    output::line(&format!(
        "{shown} is written; this member is {id}.\n\nStart it:\n  harvest replicator run -c {shown}"
    ))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(path: &Path, new_identity: bool) -> anyhow::Result<ExitCode> {
    let mut signals = process::Signals::listen()?;
    let config = load(path)?;
    if let Some(wrong) = keyless(&config.daemon.data).filter(|_| !new_identity) {
        bail!(wrong);
    }
    let opening = async { Ok(Server::bind(config).await?) };
    let Some(server) = signals.during(opening).await? else { return Ok(ExitCode::SUCCESS) };
    let (links, admin, id) = (server.local_addr()?, server.admin_addr(), server.id());
    tracing::info!(%links, %admin, "replicator {id} runs");
    let handle = server.handle();
    let shutdown = Shutdown::new();
    let serving = Box::pin(server.run(shutdown.clone()));
    let serving = async { serving.await.context("the replicator stopped") };
    let reload = async || {
        let outcome = reload(&handle, path).await;
        if let Err(error) = &outcome {
            let why = cli::said(error);
            let said = format!("other settings were not taken over, the old ones stay: {why}");
            // Who has stopped has no need of it.
            drop(handle.note(said).await);
        }
        process::reloaded(outcome);
    };
    process::run(signals, serving, shutdown, reload).await
}

/// Takes over the settings as they are now.
async fn reload(handle: &Handle, path: &Path) -> anyhow::Result<Vec<&'static str>> {
    handle.reload(load(path)?).await?;
    Ok(Vec::new())
}

fn topology(
    status: &Status,
    group: Option<&Name>,
    json: bool,
    svg: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let found = match group {
        Some(name) => status.groups.iter().find(|it| it.name == name.as_str()),
        None => status.groups.first(),
    };
    let Some(group) = found else { bail!("there is no such group; see `status`") };
    if let Some(path) = svg {
        fs::write(path, drawing::standalone(group))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if json {
        output::line(&serde_json::to_string_pretty(group)?)?;
    } else if svg.is_none() {
        let mut lines = Vec::new();
        for (links, what) in [(&group.topology, ""), (&group.measured, "not used")] {
            for it in links {
                let what = match (it.is_tree, what) {
                    (true, _) => "tree",
                    (false, "") => "beside",
                    (false, what) => what,
                };
                lines.push(format!("{} {} {what}: {}", it.a, it.b, drawing::cost(it)));
            }
        }
        output::line(&lines.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
