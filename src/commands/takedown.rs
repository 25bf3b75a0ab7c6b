//! `harvest collection suppress` and `purge`: takedowns by an administrator.
//!
//! A running daemon does the work at a request to its admin listener; else this process does.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use collection::{
    Author, Collection, Error, Notice, Options, PurgeReport, SUPPRESSED_FILE, Stamp, Subject,
    Suppression, Takedowns, TakenDown,
};
use daemon::auth::AdminAddress;
use indicatif::HumanBytes;
use net::identity::Identity;
use web::foreign::harmless;

use super::collection::CollectionArgs;
use crate::admin::Admin;
use crate::output;

/// Folder of a broker's full-text index in its data folder.
const INDEX: &str = "index";

/// Suppress objects of a collection.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest collection suppress /var/lib/harvest/gatherer https://docs.example.org/secret.html --reason 'published by mistake'
  harvest collection suppress /var/lib/harvest/broker 'https://docs.example.org/people/*' --reason 'request of 3 May'
  harvest collection suppress /var/lib/harvest/broker 'http://h/a 0123456789abcdef' --reason 'one gatherer only'
  harvest collection suppress /var/lib/harvest/broker --list
  harvest collection suppress /var/lib/harvest/broker 'https://docs.example.org/people/*' --lift

A suppressed object is deleted, refused from every source from then on, and named to consumers by a
signed tombstone; it stays suppressed when the collection's folder is restored from a backup. Its
bytes leave the disk with `harvest collection purge`.")]
pub(crate) struct Suppress {
    #[command(flatten)]
    target: CollectionArgs,
    /// A URL, a pattern of URLs (* stands for any letters), or an object identifier: the URL and,
    /// after a space, the id of its gatherer.
    #[arg(value_name = "OID|URL-PATTERN", required_unless_present = "list")]
    subject: Option<String>,
    /// The reason; it is shown with the takedown, here and at consumers.
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["list", "lift"])]
    reason: Option<String>,
    /// Lift the takedown with exactly this subject: its objects are gathered or pulled again.
    #[arg(long, conflicts_with_all = ["list", "reason"])]
    lift: bool,
    /// Show all takedowns.
    #[arg(long, conflicts_with_all = ["subject", "reason"])]
    list: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Purge the bytes of suppressed objects.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest collection purge /var/lib/harvest/broker
  harvest collection purge /var/lib/harvest/broker 'https://docs.example.org/people/*'

Rewrites the log, the key index and the full-text index without the suppressed objects, checks that
nothing is left, and names where copies may remain. Exits with 1 if anything is left.")]
pub(crate) struct Purge {
    #[command(flatten)]
    target: CollectionArgs,
    /// Purge the takedown with exactly this subject only; default: all suppressed objects.
    #[arg(value_name = "OID|URL-PATTERN")]
    subject: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The process that carries out a command.
enum Executor {
    /// The daemon that has the collection open.
    Daemon(Box<Admin>),
    /// This process, with the collection open.
    Here(Collection),
}

impl CollectionArgs {
    /// Returns the data folder of the daemon whose collection this is.
    fn data(&self) -> anyhow::Result<PathBuf> {
        let above = std::path::absolute(&self.dir)?.parent().map(Path::to_path_buf);
        let mut folders = [Some(self.dir.clone()), above].into_iter().flatten();
        folders.find(|it| it.join("id").is_file()).with_context(|| {
            format!(
                "{} is no data folder of a daemon: a takedown is signed with the daemon's key",
                self.dir.display()
            )
        })
    }

    /// Opens the collection, or finds the daemon that has it open.
    fn executor(&self) -> anyhow::Result<Executor> {
        let data = self.data()?;
        let error = match self.open_with(&data) {
            Ok(collection) => return Ok(Executor::Here(collection)),
            Err(error) => error,
        };
        let Some(Error::InUse { pid, .. }) = error.downcast_ref() else { return Err(error) };
        let listener = AdminAddress::read(&data);
        let (at, daemon) = listener.context(
            "a daemon has the collection open and must do it, but its admin listener is unknown",
        )?;
        // The lock's file may be empty if the disk is full.
        if pid.parse::<u32>().is_ok_and(|it| it != daemon) {
            bail!("process {pid} has the collection open, and is no daemon: wait until it ends");
        }
        Ok(Executor::Daemon(Box::new(Admin::of_data(&at, &data)?)))
    }

    fn open_with(&self, data: &Path) -> anyhow::Result<Collection> {
        let list = data.join(SUPPRESSED_FILE);
        Ok(self
            .open_by(|dir, options, now| {
                Collection::open(dir, Options { suppressed: Some(list), ..options }, now)
            })?
            .0)
    }
}

/// Returns the author of takedowns made here: the daemon that owns the data folder `data`.
fn author(data: &Path) -> anyhow::Result<Author> {
    let id = std::fs::read_to_string(data.join("id"))?.trim().to_owned();
    Ok(Author { id, identity: Identity::load_or_create(data)? })
}

fn now() -> Stamp {
    Stamp(net::clock::now_ms())
}

/// Returns the lines about takedowns for a status; `None` without any.
pub(crate) fn status_text(takedowns: &Takedowns) -> Option<String> {
    let Takedowns { active, refused, forged, last_forged, surplus, last_surplus, damaged } =
        takedowns;
    let mut lines = Vec::new();
    if active + refused != 0 {
        let records = output::counted(*refused, "record");
        lines.push(format!("{} in force, {records} refused", output::counted(*active, "takedown")));
    }
    for (count, state, last) in [(forged, "genuine", last_forged), (surplus, "taken", last_surplus)]
    {
        if *count != 0 {
            let notices = output::counted(*count, "notice");
            let last = last.as_deref().unwrap_or_default();
            lines.push(format!("PROBLEM: {notices} of takedown not {state}; the last: {last}"));
        }
    }
    if *damaged != 0 {
        let parts = output::counted(*damaged, "part");
        lines.push(format!("PROBLEM: {parts} of {SUPPRESSED_FILE} damaged; restore it"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Suppresses objects, or lifts or lists takedowns.
pub(crate) async fn suppress(args: Suppress) -> anyhow::Result<ExitCode> {
    let executor = args.target.executor()?;
    if args.list {
        let list = match &executor {
            Executor::Here(collection) => collection.suppressions(),
            Executor::Daemon(admin) => read(&admin.get("suppressed").await?)?,
        };
        return print(&list, args.json, |list| render_list(list));
    }
    let subject = Subject::parse(args.subject.as_deref().unwrap_or_default())?;
    let text = subject.to_string();
    let reason = args.reason.as_deref().unwrap_or("");
    let query = [("subject", Some(text.as_str())), ("reason", Some(reason))];
    if args.lift {
        let notice: Notice = match &executor {
            Executor::Here(collection) => {
                collection.lift(&author(&args.target.data()?)?, subject, now())?
            }
            Executor::Daemon(admin) => read(&admin.post("lift", &query).await?)?,
        };
        return print(&notice, args.json, |it| {
            format!("{} is no longer suppressed; it comes with the next pass or pull", it.subject)
        });
    }
    let done: TakenDown = match &executor {
        Executor::Here(collection) => {
            collection.suppress(&author(&args.target.data()?)?, subject, reason, now())?
        }
        Executor::Daemon(admin) => read(&admin.post("suppress", &query).await?)?,
    };
    print(&done, args.json, render_taken_down)
}

/// Purges suppressed objects, and prints where copies may remain.
pub(crate) async fn purge(args: Purge) -> anyhow::Result<ExitCode> {
    let only = args.subject.as_deref().map(Subject::parse).transpose()?;
    let report = match args.target.executor()? {
        Executor::Here(collection) => {
            let purged = collection.purge(only.as_ref(), now())?;
            let index = args.target.data()?.join(INDEX);
            if index.is_dir() {
                // The broker rebuilds its index when it starts.
                std::fs::remove_dir_all(&index)
                    .with_context(|| format!("cannot remove {}", index.display()))?;
            }
            PurgeReport { purged, ..PurgeReport::default() }
        }
        Executor::Daemon(admin) => {
            let text = only.map(|it| it.to_string());
            read(&admin.post("purge", &[("subject", text.as_deref())]).await?)?
        }
    };
    print(&report, args.json, render_purge)?;
    let clean = report.purged.left == 0
        && report.purged.still_read.is_empty()
        && report.index_left.unwrap_or(0) == 0;
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read<T: serde::de::DeserializeOwned>(answer: &[u8]) -> anyhow::Result<T> {
    match serde_json::from_slice(answer) {
        Ok(answer) => Ok(answer),
        Err(error) => bail!("the daemon is of another version than this command: {error}"),
    }
}

fn print<T: serde::Serialize>(
    answer: &T,
    json: bool,
    render: impl FnOnce(&T) -> String,
) -> anyhow::Result<ExitCode> {
    if json {
        return output::json(answer);
    }
    output::line(&harmless(&render(answer)))?;
    Ok(ExitCode::SUCCESS)
}

fn render_taken_down(done: &TakenDown) -> String {
    let objects = output::counted(done.objects, "object");
    let mut text = format!("{} is suppressed: {objects} deleted", done.notice.subject);
    if !done.held_by.is_empty() {
        text.push_str(&format!("; held until now by {}", done.held_by.join(", ")));
    }
    if done.objects == 0 {
        text.push_str(
            "\nno object here has that URL: case, %XX and ports must be exactly the same",
        );
    }
    if !done.notice.is_of_signer() {
        let by = &done.notice.by;
        text.push_str(&format!(
            "\nthe id {by} does not belong to this daemon's identity.key: other brokers apply it to objects \
             from other sources only with `takedowns = \"all\"` for this source"
        ));
    }
    text.push_str("\n`harvest collection purge` removes the bytes from the disk");
    text
}

fn render_list(list: &[Suppression]) -> String {
    if list.is_empty() {
        return "nothing is suppressed".to_owned();
    }
    let line = |it: &Suppression| {
        let state = match (it.active, it.notice.lifted) {
            (true, _) => "suppressed",
            (false, true) => "lifted",
            (false, false) => "overruled",
        };
        let Notice { subject, reason, by, at, .. } = &it.notice;
        let at = jiff::Timestamp::from_millisecond(i64::try_from(at.0).unwrap_or(0));
        let at = at.map_or_else(|_late| "?".to_owned(), |it| it.strftime("%F %R UTC").to_string());
        format!("{state:<11}{at}  {subject}  by {by} ({}): {reason}", it.scope.name())
    };
    list.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Writes the result of a purge, and where copies may remain.
fn render_purge(report: &PurgeReport) -> String {
    let purged = &report.purged;
    let (before, after) = (HumanBytes(purged.bytes.0), HumanBytes(purged.bytes.1));
    let mut lines = vec![format!(
        "purged: {}; the log had {before}, has {after}",
        if purged.subjects.is_empty() { "nothing".to_owned() } else { purged.subjects.join(", ") },
    )];
    if purged.left != 0 {
        let records = output::counted(purged.left, "record");
        lines.push(format!("STILL HERE: {records} in the log; run this again"));
    }
    for file in &purged.still_read {
        let file = file.display();
        lines.push(format!("STILL HERE: {file}, which is being read; run this again"));
    }
    match report.index_left {
        Some(0) | None => {}
        Some(left) => {
            let parts = output::counted(left, "document or file");
            lines.push(format!("STILL HERE: {parts} in the full-text index; run this again"));
        }
    }
    lines.push("copies may remain:".to_owned());
    for holder in &purged.held_by {
        lines.push(format!("  where it came from: {holder}"));
    }
    for consumer in &report.consumers {
        let (name, version) = (&consumer.name, &consumer.version);
        lines.push(format!("  at consumer {name}, which has come to {version} only"));
    }
    match report.since_ms.and_then(|it| jiff::Timestamp::from_millisecond(it.try_into().ok()?).ok())
    {
        Some(since) => lines.push(format!(
            "  at consumers that have not asked since {}",
            since.strftime("%F %R UTC")
        )),
        None => lines.push("  at consumers, until they have pulled the tombstone".to_owned()),
    }
    lines.push("  in backups, and snapshots of the file system: delete or replace them".to_owned());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use collection::{Consumer, Purged};

    use super::*;

    #[test]
    fn a_status_names_notices_that_are_not_genuine() {
        assert_eq!(status_text(&Takedowns::default()), None);
        let takedowns = Takedowns {
            active: 1,
            refused: 1_200,
            forged: 1,
            last_forged: Some("http://h/a: its signature is wrong".to_owned()),
            surplus: 2,
            last_surplus: Some("source s: too many".to_owned()),
            damaged: 0,
        };
        let text = status_text(&takedowns).unwrap();
        assert_eq!(
            text,
            "1 takedown in force, 1,200 records refused\nPROBLEM: 1 notice of takedown not genuine; \
             the last: http://h/a: its signature is wrong\nPROBLEM: 2 notices of takedown not \
             taken; the last: source s: too many"
        );
    }

    #[test]
    fn a_takedown_names_its_limits() {
        let identity = Identity::of(&[1; 32]).unwrap();
        let rendered = |id: &str, objects| {
            let author = Author { id: id.to_owned(), identity: Identity::of(&[1; 32]).unwrap() };
            let subject = Subject::parse("http://h/A").unwrap();
            let notice = Notice::sign(&author, subject, false, "", Stamp(1));
            render_taken_down(&TakenDown { notice, objects, held_by: Vec::new() })
        };
        let text = rendered(&identity.id(), 1);
        assert_eq!(text.lines().count(), 2, "{text}");
        let text = rendered("0123456789abcdef", 0);
        assert!(text.contains("no object here has that URL"), "{text}");
        assert!(text.contains("0123456789abcdef does not belong to"), "{text}");
    }

    #[test]
    fn a_purge_names_where_copies_may_remain() {
        let consumer = Consumer { name: "b at ::1".into(), version: "v-3".into(), asked_ms: 1 };
        let purged = Purged {
            subjects: vec!["http://h/*".to_owned()],
            held_by: vec!["/srv/a".to_owned()],
            left: 1,
            ..Purged::default()
        };
        let report = PurgeReport {
            purged,
            index_left: Some(0),
            consumers: vec![consumer],
            since_ms: Some(1_767_225_600_000),
        };
        let text = render_purge(&report);
        for part in [
            "purged: http://h/*",
            "STILL HERE: 1 record in the log",
            "came from: /srv/a",
            "consumer b at ::1, which has come to v-3 only",
            "not asked since 2026-01-01 00:00 UTC",
            "in backups",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("full-text"));
    }
}
