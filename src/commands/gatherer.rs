//! `harvest gatherer`: the daemon that summarizes data close to it, and the commands to it.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;
use essence::annotations::sources::Sources;
use essence::chain::unused_programs;
use essence::config::{Files, list_folder};
use gatherer::crawls::Explanation;
use gatherer::progress::{AnnotationCounts, CrawlStatus};
use gatherer::spec::{Repository, Root, Web};
use gatherer::{Config, Handle, Server, Status};
use indicatif::HumanCount;
use jiff::Timestamp;
use net::clock;
use net::shutdown::Shutdown;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{push, takedown};
use crate::admin::Admin;
use crate::commands::worker;
use crate::settings::{self, File, StatusArgs};
use crate::{output, process};

/// Run a gatherer: summarize trees and serve every change as one stream.
#[derive(Debug, Subcommand)]
#[command(after_help = "Example of a gatherer.toml:
  name = \"Docs of the Institute\"
  listen = \"0.0.0.0:8500\"
  data = \"/var/lib/harvest/gatherer\"

  [[root]]
  url = \"file:///srv/docs\"

  [[root]]
  url = \"https://archive.example.org/oai\"
  access = \"oai\"

  [[map]]
  url_prefix = \"https://docs.example.org/\"
  directory = \"/srv/docs\"")]
pub(crate) enum GathererCommand {
    /// Run the gatherer until SIGTERM or Ctrl-C; SIGHUP reads the settings again.
    Run(File),
    /// Print every mistake in the settings and in their annotation files as FILE:LINE:COL; exit
    /// with 1 if there is any. Programs that are not used are named as well.
    Check(File),
    /// Show the status of a running gatherer.
    Status(StatusArgs),
    /// Have a running gatherer gather all its roots now.
    Gather {
        #[command(flatten)]
        file: File,
        /// Print the gatherer's answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say why a page of a web site is in, out, waiting, done or failed.
    Explain {
        #[command(flatten)]
        file: File,
        /// The page's address.
        url: Url,
        /// Print the gatherer's answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Ask a host for nothing more until it is resumed or the gatherer is started again.
    Pause {
        #[command(flatten)]
        file: File,
        /// The host's name, without a port.
        host: String,
    },
    /// Ask a paused host again, whatever it was paused for.
    Resume {
        #[command(flatten)]
        file: File,
        /// The host's name, without a port.
        host: String,
    },
    /// Confirm deletions that are held back because suspiciously many objects are gone.
    Confirm {
        #[command(flatten)]
        file: File,
        /// Only below this root; its URL as `status` shows it.
        #[arg(long, value_name = "URL")]
        root: Option<String>,
        /// Print the gatherer's answer as JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(command: GathererCommand) -> anyhow::Result<ExitCode> {
    match command {
        GathererCommand::Run(File { config }) => serve(&config).await,
        GathererCommand::Check(file) => check(&file),
        GathererCommand::Status(StatusArgs { file, json }) => {
            let admin = admin(&file)?;
            admin.print(&admin.get("status").await?, json, render)
        }
        GathererCommand::Gather { file, json } => {
            let admin = admin(&file)?;
            let answer = admin.post("gather", &[]).await?;
            admin.print(&answer, json, |_: &Value| "all roots are gathered now".to_owned())
        }
        GathererCommand::Explain { file, url, json } => {
            let admin = admin(&file)?;
            let query = url::form_urlencoded::Serializer::new(String::new())
                .append_pair("url", url.as_str())
                .finish();
            let answer = admin.get(&format!("explain?{query}")).await?;
            admin.print(&answer, json, |answer: &Vec<Explanation>| explained(answer))
        }
        GathererCommand::Pause { file, host } => {
            let admin = admin(&file)?;
            let answer = admin.post("pause", &[("host", Some(&host))]).await?;
            admin.print(&answer, false, |_: &Value| format!("{host} is paused"))
        }
        GathererCommand::Resume { file, host } => {
            let admin = admin(&file)?;
            let answer = admin.post("resume", &[("host", Some(&host))]).await?;
            admin.print(&answer, false, |_: &Value| format!("{host} is resumed"))
        }
        GathererCommand::Confirm { file, root, json } => {
            let admin = admin(&file)?;
            let answer = admin.post("confirm", &[("root", root.as_deref())]).await?;
            admin.print(&answer, json, |answer: &ConfirmAnswer| answer.to_string())
        }
    }
}

/// The answer to `confirm`.
#[derive(Debug, Deserialize)]
pub(super) struct ConfirmAnswer {
    /// URLs of the roots.
    confirmed: Vec<String>,
}

impl fmt::Display for ConfirmAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the held deletions are made in {}", self.confirmed.join(", "))
    }
}

/// Returns Unix seconds as a time of the day, UTC.
fn time(secs: u64) -> String {
    let at = i64::try_from(secs).ok().and_then(|it| Timestamp::from_second(it).ok());
    at.map_or_else(String::new, |it| it.to_string())
}

/// Returns explanations as text.
fn explained(all: &[Explanation]) -> String {
    if all.is_empty() {
        return "no root is a web site".to_owned();
    }
    let mut lines = Vec::new();
    for it in all {
        lines.push(format!("{}: {}", it.root, it.state));
        lines.extend(it.robots.as_ref().map(|robots| format!("  {robots}")));
        if let Some(at) = it.answered {
            let (records, links) = (
                output::counted(it.records as u64, "record"),
                output::counted(it.links as u64, "link"),
            );
            lines.push(format!("  last answered {}: {records}, {links}", time(at)));
        }
        let stands = |of: &String| format!("  the same page as {of}, whose record stands for it");
        lines.extend(it.same_as.as_ref().map(stands));
        lines.extend(it.gone_since.map(|at| format!("  seems to be gone since {}", time(at))));
        lines.extend(it.problem.as_ref().map(|problem| format!("  {problem}")));
    }
    lines.join("\n")
}

/// Returns the crawl of a root as lines of the status.
fn crawl_lines(crawl: &CrawlStatus) -> Vec<String> {
    let CrawlStatus { waiting, done, failed, refused, hosts, traps } = crawl;
    let mut lines = vec![format!(
        "  {done} answered, {waiting} waiting, {failed} failed, {refused} kept out by robots.txt"
    )];
    for host in hosts {
        let answer = host.answer_ms.map(|it| format!(", {it} ms an answer")).unwrap_or_default();
        let why = host.why.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
        lines.push(format!("  {}: {} waiting{answer}{why}", host.host, host.waiting));
    }
    let slowest = hosts.iter().filter_map(|it| Some((it.answer_ms?, &it.host))).max();
    lines.extend(slowest.map(|(ms, host)| format!("  slowest: {host}, {ms} ms an answer")));
    lines.extend(traps.iter().map(|it| format!("  trap {it}")));
    lines
}

/// Reads the settings; relative paths in them start at the file's folder.
pub(crate) fn load(path: &Path) -> anyhow::Result<Config> {
    let read = |file: &Path| std::fs::read_to_string(settings::beside(path, file));
    let list = |folder: &Path| list_folder(&settings::beside(path, folder));
    let files = Files { read: &read, list: &list };
    let mut config = settings::load(path, |text| Config::parse_with(text, files))?;
    for it in &mut config.essence.annotations {
        *it = settings::beside(path, it);
    }
    config.daemon.resolve(&settings::folder(path));
    for root in &mut config.roots {
        if let Root::Repository(Repository { certificate: Some(files), .. })
        | Root::Web(Web { certificate: Some(files), .. }) = root
        {
            files.resolve(&settings::folder(path));
        }
    }
    if let Some(programs) = &mut config.essence.programs {
        programs.folder = settings::beside(path, &programs.folder);
    }
    for read in &mut config.essence.programs_read {
        *read = settings::beside(path, read);
    }
    config.worker = Some(worker::program());
    Ok(config)
}

fn admin(file: &File) -> anyhow::Result<Admin> {
    let config = load(&file.config)?;
    Admin::new("gatherer", &config.daemon.admin_address(), &config.daemon.data)
}

/// Prints the mistakes in the settings and in the annotation files.
fn check(file: &File) -> anyhow::Result<ExitCode> {
    let config = load(&file.config)?;
    let outcome = Sources::default().look(&config.essence.annotations, clock::now_ms());
    for it in &outcome.problems {
        output::note(&format!("harvest: {}: {}", it.path.display(), it.message));
    }
    for (path, why) in unused_programs(&config.essence).context("the settings cannot be used")? {
        output::note(&format!("harvest: {} is not used: {why}", path.display()));
    }
    settings::check_daemon(&file.config, &config.daemon)?;
    if outcome.problems.is_empty() { file.check(|_| Ok(())) } else { Ok(ExitCode::FAILURE) }
}

async fn serve(path: &Path) -> anyhow::Result<ExitCode> {
    let mut signals = process::Signals::listen()?;
    let config = load(path)?;
    let scheme = config.daemon.scheme();
    let opening = async { Ok(Server::bind(config).await?) };
    let Some(server) = signals.during(opening).await? else { return Ok(ExitCode::SUCCESS) };
    let (public, admin) = (server.local_addr(), server.admin_addr());
    tracing::info!(%admin, "gatherer runs: its feed at {scheme}://{public}/");
    let handle = server.handle();
    let shutdown = Shutdown::new();
    let serving = server.run(shutdown.clone());
    let serving = async { serving.await.context("the gatherer stopped") };
    let reload = async || process::log_reload(reload(&handle, path));
    process::run(signals, serving, shutdown, reload).await
}

/// Applies the settings as they are now in the file.
fn reload(handle: &Handle, path: &Path) -> anyhow::Result<Vec<&'static str>> {
    handle.reload(load(path)?)?;
    Ok(Vec::new())
}

/// Returns the line about annotations; `None` without any.
fn annotations_line(annotations: &AnnotationCounts) -> Option<String> {
    let AnnotationCounts { files, annotations, with_mistakes, unmatched } = *annotations;
    if files + with_mistakes == 0 {
        return None;
    }
    let mut text = output::counted(annotations as u64, "annotation");
    text.push_str(&format!(" in {}", output::counted(files as u64, "file")));
    if 0 < with_mistakes {
        text.push_str(&format!(", {with_mistakes} with mistakes"));
    }
    if 0 < unmatched {
        text.push_str(&format!(", {unmatched} about no object"));
    }
    Some(text)
}

fn render(status: &Status) -> String {
    let progress = &status.progress;
    let mut lines = vec![
        format!("{} ({}), harvest {}", status.name, status.id, status.software),
        format!("{} at {}", output::counted(status.objects, "object"), status.version),
        format!(
            "{}: {} of {}, {} done, watching: {}",
            progress.phase.name(),
            HumanCount(progress.files_done),
            output::counted(progress.files_seen, "file"),
            output::counted(progress.passes_done, "pass"),
            status.watch,
        ),
    ];
    lines.extend(status.ready.faults());
    lines.extend(push::status_lines(&status.push));
    lines.extend(annotations_line(&status.annotations));
    lines.extend(takedown::status_text(&status.takedowns));
    let missing = status.fences_missing.iter();
    lines.extend(missing.map(|it| format!("objects are read with one fence less: {it}")));
    if 0 < status.workers_ended {
        let ended = output::counted(status.workers_ended, "process");
        lines.push(format!("{ended} that read objects had to be ended: see the problems"));
    }
    for (kind, count) in &status.problems {
        lines.push(format!("{kind}: {}", output::counted(*count, "problem")));
    }
    for root in &status.roots {
        let noun = if root.url.starts_with("file:") { "file" } else { "record" };
        lines.push(format!("{}: {}", root.url, output::counted(root.files, noun)));
        lines.extend(root.crawl.iter().flat_map(crawl_lines));
        lines.extend(root.harvest.iter().map(|it| format!("  its harvest {it}")));
        if let Some(hold) = &root.hold {
            let hold = serde_json::to_value(hold).unwrap_or_default();
            let why = hold.get("why").and_then(Value::as_str).unwrap_or("unknown");
            lines.push(format!(
                "  HELD ({why}): {} would go; `harvest gatherer confirm --root {}` lets them go",
                output::counted(root.held, noun),
                root.url,
            ));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use collection::Takedowns;
    use daemon::health::{Check, Readiness};
    use gatherer::progress::{Hold, HostStatus, Progress, RootStatus};

    use super::*;

    fn crawl() -> CrawlStatus {
        let host = |name: &str, waiting, answer_ms, why: Option<&str>| HostStatus {
            host: name.to_owned(),
            waiting,
            answer_ms,
            why: why.map(str::to_owned),
        };
        CrawlStatus {
            waiting: 9,
            done: 30,
            failed: 2,
            refused: 1,
            hosts: vec![
                host("http://a", 8, Some(20), None),
                host("http://b", 1, Some(900), Some("an administrator paused the host")),
            ],
            traps: vec!["http://a/cal/…: a calendar without end".to_owned()],
        }
    }

    /// The status is serialized as by the gatherer, and read back.
    #[test]
    fn a_status_shows_what_an_administrator_needs() {
        let root = RootStatus {
            url: "file:///srv".to_owned(),
            files: 1_200,
            confirmed: None,
            hold: Some(Hold::Missing),
            held: 12,
            crawl: Some(crawl()),
            harvest: Some("asks for its sets".to_owned()),
        };
        let full = Some("no space on /srv".to_owned());
        let status = Status {
            name: "Docs".to_owned(),
            id: "0".repeat(16),
            software: "0".to_owned(),
            started: 0,
            version: "v".to_owned(),
            objects: 1,
            watch: "notify".to_owned(),
            listening: daemon::ListenerStatus::default(),
            ready: Readiness::new([Check::new("takes-changes", "free some space", full)]),
            collection_problem: None,
            damaged: Vec::new(),
            damaged_total: 0,
            fences_missing: vec!["no landlock".to_owned()],
            workers_ended: 2,
            push: exchange::push::Status {
                hub: "self".to_owned(),
                subscriptions: 3,
                ..exchange::push::Status::default()
            },
            annotations: AnnotationCounts {
                files: 2,
                annotations: 1_000,
                with_mistakes: 1,
                unmatched: 3,
            },
            takedowns: Takedowns::default(),
            progress: Progress { passes_done: 2, ..Progress::default() },
            problems: BTreeMap::from([("unreadable".to_owned(), 3)]),
            roots: vec![root],
        };
        let json = serde_json::to_string(&status).unwrap();
        let text = render(&serde_json::from_str(&json).unwrap());
        for part in [
            "Docs",
            "1 object at v",
            "2 passes",
            "NOT READY: takes-changes: free some space (no space on /srv)",
            "push by self: 3 subscriptions",
            "objects are read with one fence less: no landlock",
            "2 processes that read objects had to be ended: see the problems",
            "1,000 annotations in 2 files, 1 with mistakes, 3 about no object",
            "unreadable: 3 problems",
            "1,200 files",
            "its harvest asks for its sets",
            "  30 answered, 9 waiting, 2 failed, 1 kept out by robots.txt",
            "  http://a: 8 waiting, 20 ms an answer",
            "  http://b: 1 waiting, 900 ms an answer, an administrator paused the host",
            "  slowest: http://b, 900 ms an answer",
            "  trap http://a/cal/…: a calendar without end",
            "HELD (missing): 12 files",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
