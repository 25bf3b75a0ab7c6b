//! `harvest replicator`: the daemon that keeps trees and collections equal at all members of a
//! group, and the commands to it.

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

use self::answers::{render, render_published, render_reports};
pub(crate) use self::settings::load;
use self::settings::{check, create, missing_key, settings_text};
use crate::admin::Admin;
use crate::settings::{File, StatusArgs};
use crate::{cli, output, process};

/// Run a replicator: keep trees and collections equal at all members of a group, each change sent
/// once over each slow link.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  harvest replicator init boulder --group papers --address a.example.org:4000 --tree papers=/srv/papers
  harvest replicator run -c boulder/replicator.toml
  harvest replicator publish -c boulder/replicator.toml papers
  harvest replicator init golden --group catalogs --address a.example.org:4000 \
    --collection catalog=http://127.0.0.1:8501/
  harvest replicator join paris --address b.example.org:4000 --site paris 'harvest-group-1,…'
  harvest replicator topology -c boulder/replicator.toml --svg topology.svg")]
pub(crate) enum ReplicatorCommand {
    /// Found a group: write settings and keys of its first member; print the invitation for others.
    Init {
        /// The folder to create, with replicator.toml and all data in it.
        directory: PathBuf,
        /// The group's name.
        #[arg(long, value_parser = Name::new)]
        group: Name,
        #[command(flatten)]
        location: MemberLocation,
        #[command(flatten)]
        publishing: Publishing,
    },
    /// Join a group: write the settings and keys of a new member.
    Join {
        /// The folder to create, with replicator.toml and all data in it.
        directory: PathBuf,
        /// The line that `init` and `invite` print.
        invitation: Invitation,
        #[command(flatten)]
        location: MemberLocation,
        #[command(flatten)]
        publishing: Publishing,
    },
    /// Run the member until SIGTERM or Ctrl-C; SIGHUP reads the settings again.
    Run {
        #[command(flatten)]
        file: File,
        /// Make a key if the data directory has none: the member is then a new one.
        #[arg(long)]
        new_identity: bool,
    },
    /// Print every mistake in the settings as FILE:LINE:COL, and folders and keys that are missing
    /// on this machine; exit with 1 if there is any.
    Check(File),
    /// Show the status of a running member.
    Status(StatusArgs),
    /// Publish a tree as a whole, and print the version that readers then see. For a collection,
    /// its feed is read at once.
    Publish {
        #[command(flatten)]
        file: File,
        /// The tree's name or directory, or the collection's name; optional if there is only one.
        tree: Option<String>,
        /// Publish even if many files are gone.
        #[arg(long)]
        accept_loss: bool,
        /// Print the member's answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Read all files that readers see, of one tree or of all. Damaged files are fetched again;
    /// exits with 1 if there are any.
    Verify {
        #[command(flatten)]
        file: File,
        /// The tree's name, or NAME@WRITER as in `status`.
        tree: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a new invitation for one member: the first that joins with it before it ends. One from
    /// a member that does not lead the group works only for members on the access list.
    Invite {
        #[command(flatten)]
        file: File,
        /// The group, if there are several.
        #[arg(long, value_parser = Name::new)]
        group: Option<Name>,
        /// Time for which it is valid, from "1 min" to "30 days"; default: a day.
        #[arg(long, value_name = "DURATION", value_parser = validity)]
        valid: Option<Duration>,
        /// Withdraw this invitation instead; `status` lists the ids. A member that used it stays.
        #[arg(long, value_name = "ID", conflicts_with = "valid")]
        revoke: Option<InvitationId>,
        /// Print the member's answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make this member the leader, if it is the founder or a deputy.
    Lead {
        #[command(flatten)]
        file: File,
        /// The group, if there are several.
        #[arg(long, value_parser = Name::new)]
        group: Option<Name>,
    },
    /// Show the links of a group with their costs.
    Topology {
        #[command(flatten)]
        file: File,
        /// The group, if there are several.
        #[arg(long, value_parser = Name::new)]
        group: Option<Name>,
        /// As JSON.
        #[arg(long)]
        json: bool,
        /// Draw the links into this file.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
}

/// Trees and collections that a new member publishes.
#[derive(Debug, clap::Args)]
pub(crate) struct Publishing {
    /// A tree to publish, as NAME=DIRECTORY; may be given several times.
    #[arg(long, value_name = "NAME=DIRECTORY", value_parser = tree)]
    tree: Vec<(Name, PathBuf)>,
    /// A collection to publish as it changes, as NAME=URL of the gatherer or broker that has it;
    /// may be given several times.
    #[arg(long, value_name = "NAME=URL", value_parser = collection)]
    collection: Vec<(Name, Url)>,
}

/// Address and site of a new member.
#[derive(Debug, clap::Args)]
pub(crate) struct MemberLocation {
    /// Where the other members reach this one: HOST:PORT.
    #[arg(long, value_parser = Address::new)]
    address: Address,
    /// Its site; members of one site have good links to each other.
    #[arg(long, default_value = replicator::config::SITE, value_parser = Name::new)]
    site: Name,
}

/// Parses the time for which an invitation is valid.
fn validity(text: &str) -> Result<Duration, String> {
    ::settings::parse_duration(text).filter(|it| VALID_RANGE.contains(it)).ok_or_else(|| {
        format!("{text:?} is no time from \"1 min\" to \"30 days\", such as \"2 h\"")
    })
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

pub(crate) async fn run(command: ReplicatorCommand) -> anyhow::Result<ExitCode> {
    match command {
        ReplicatorCommand::Init { directory, group, location, publishing } => {
            init(&directory, &group, &location, &publishing)
        }
        ReplicatorCommand::Join { directory, invitation, location, publishing } => {
            join(&directory, &invitation, &location, &publishing)
        }
        ReplicatorCommand::Run { file, new_identity } => serve(&file.config, new_identity).await,
        ReplicatorCommand::Check(file) => file.check(|path| check(path, &load(path)?)),
        ReplicatorCommand::Status(StatusArgs { file, json }) => {
            let admin = admin(&load(&file.config)?)?;
            admin.print(&admin.get("status").await?, json, render)
        }
        ReplicatorCommand::Publish { file, tree, accept_loss, json } => {
            let config = load(&file.config)?;
            let tree = tree_name(&config, tree)?;
            let loss = accept_loss.to_string();
            let admin = admin(&config)?.patient();
            let query = [("tree", Some(tree.as_str())), ("accept_loss", Some(loss.as_str()))];
            admin.print(&admin.post("publish", &query).await?, json, render_published)
        }
        ReplicatorCommand::Verify { file, tree, json } => {
            let admin = admin(&load(&file.config)?)?.patient();
            let answer = admin.post("verify", &[("tree", tree.as_deref())]).await?;
            admin.print(&answer, json, |it: &Vec<Report>| render_reports(it))?;
            let reports: Vec<Report> = serde_json::from_slice(&answer)?;
            let is_whole = reports.iter().all(|it| it.damaged_total == 0);
            Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        ReplicatorCommand::Invite { file, group, valid, revoke: None, json } => {
            let admin = admin(&load(&file.config)?)?;
            let valid = valid.map(|it| it.as_secs().to_string());
            let query = [group_parameter(group.as_ref()), ("valid", valid.as_deref())];
            let answer = admin.post("invite", &query).await?;
            let invited: InviteAnswer = serde_json::from_slice(&answer)?;
            output::note(&invitation_note(&invited));
            admin.print(&answer, json, |it: &InviteAnswer| it.invitation.clone())
        }
        ReplicatorCommand::Invite { file, group, revoke: Some(id), json, .. } => {
            let admin = admin(&load(&file.config)?)?;
            let id = id.to_string();
            let query = [group_parameter(group.as_ref()), ("revoke", Some(id.as_str()))];
            admin.print(&admin.post("invite", &query).await?, json, |it: &RevokeAnswer| {
                format!(
                    "invitation {} is withdrawn; a member that joined with it stays until it is denied",
                    it.revoked
                )
            })
        }
        ReplicatorCommand::Lead { file, group } => {
            let admin = admin(&load(&file.config)?)?;
            let answer = admin.post("lead", &[group_parameter(group.as_ref())]).await?;
            admin.print(&answer, false, |it: &LeadAnswer| {
                format!("this member leads {} now", it.leads)
            })
        }
        ReplicatorCommand::Topology { file, group, json, svg } => {
            let admin = admin(&load(&file.config)?)?;
            let status: Status = serde_json::from_slice(&admin.get("status").await?)
                .context("the replicator is of another version than this command")?;
            topology(&status, group.as_ref(), json, svg.as_deref())
        }
    }
}

/// The answer to `invite`.
#[derive(Debug, Deserialize)]
struct InviteAnswer {
    invitation: String,
    /// `None` if the invitation alone does not admit a member.
    id: Option<String>,
    ends: Option<u64>,
}

/// The answer to `invite` with `revoke`.
#[derive(Debug, Deserialize)]
struct RevokeAnswer {
    revoked: String,
}

/// Returns the remark about a new invitation.
fn invitation_note(invited: &InviteAnswer) -> String {
    match invited {
        InviteAnswer { id: Some(id), ends: Some(ends), .. } => {
            let left = ends.saturating_sub(net::clock::now_ms() / 1_000);
            format!(
                "invitation {id}: for the first who joins by it, within {}; keep it secret until then",
                answers::span(left)
            )
        }
        _ => "another member leads the group: this invitation works only for members on the access list (`allow`)"
            .to_owned(),
    }
}

/// The answer to `lead`.
#[derive(Debug, Deserialize)]
struct LeadAnswer {
    leads: String,
}

fn group_parameter(group: Option<&Name>) -> (&'static str, Option<&str>) {
    ("group", group.map(Name::as_str))
}

fn admin(config: &Config) -> anyhow::Result<Admin> {
    Admin::new("replicator", &config.daemon.admin_address(), &config.daemon.data)
}

/// Returns the name of the selected tree or collection.
fn tree_name(config: &Config, tree: Option<String>) -> anyhow::Result<String> {
    let names = || {
        let trees = config.trees.iter().map(|it| it.name.as_str());
        trees.chain(config.collections.iter().map(|it| it.name.as_str())).collect::<Vec<_>>()
    };
    if names().is_empty() {
        bail!(
            "this member publishes nothing: the settings have no [[tree]] or [[collection]]; trees of others are \
             published by their writers"
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
        Some(tree) => Ok(tree.name.to_string()),
        None => bail!(
            "no [[tree]] or [[collection]] has the name {tree:?}, and no [[tree]] that directory; there are: {}",
            names().join(", ")
        ),
    }
}

fn init(
    directory: &Path,
    group: &Name,
    location: &MemberLocation,
    publishing: &Publishing,
) -> anyhow::Result<ExitCode> {
    let text = settings_text(&format!("name = \"{group}\""), location, publishing)?;
    let path = create(directory, &text, publishing)?;
    let data = load(&path)?.daemon.data;
    let (id, printed) = replicator::node::invitation(&data, group, &location.address)?;
    let shown = path.display();
    output::line(&format!(
        "{shown} is written; this member is {id}.\n\n\
         Start it:\n  harvest replicator run -c {shown}\n\n\
        Another member joins with this line, within a day; keep it secret, as the first one to use it may join:\n  {}\n\n\
         Make a new line for each further member:\n  harvest replicator invite -c {shown}",
        printed.invitation
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn join(
    directory: &Path,
    invitation: &Invitation,
    location: &MemberLocation,
    publishing: &Publishing,
) -> anyhow::Result<ExitCode> {
    let text = settings_text(&format!("join = \"{invitation}\""), location, publishing)?;
    let path = create(directory, &text, publishing)?;
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
    if let Some(message) = missing_key(&config.daemon.data).filter(|_| !new_identity) {
        bail!(message);
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
            let why = cli::error_text(error);
            let text = format!("the new settings were not accepted, the old ones stay: {why}");
            // A daemon that has stopped does not need the note.
            drop(handle.note(text).await);
        }
        process::log_reload(outcome);
    };
    process::run(signals, serving, shutdown, reload).await
}

/// Applies the settings as they are now in the file.
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
    let selected = match group {
        Some(name) => status.groups.iter().find(|it| it.name == name.as_str()),
        None => status.groups.first(),
    };
    let Some(group) = selected else { bail!("there is no such group; see `status`") };
    if let Some(path) = svg {
        fs::write(path, drawing::standalone(group))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if json {
        output::json(group)?;
    } else if svg.is_none() {
        let mut lines = Vec::new();
        for (links, role) in [(&group.topology, ""), (&group.measured, "not used")] {
            for it in links {
                let role = match (it.is_tree, role) {
                    (true, _) => "tree",
                    (false, "") => "beside",
                    (false, role) => role,
                };
                lines.push(format!("{} {} {role}: {}", it.a, it.b, drawing::cost(it)));
            }
        }
        output::line(&lines.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
