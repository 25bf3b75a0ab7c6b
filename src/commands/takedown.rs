//! `harvest collection suppress` and `purge`: what an administrator takes down.
//!
//! A running daemon does it itself, told over its admin listener; otherwise the collection is opened
//! here.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use collection::{
    Author, Collection, Error, Notice, Options, PurgeReport, SUPPRESSED_FILE, Stamp, Subject,
    Suppression, Takedowns, TakenDown,
};
use daemon::auth::Whereabouts;
use indicatif::HumanBytes;
use net::identity::Identity;

use super::collection::Place;
use crate::admin::Admin;
use crate::output;

/// Folder of a broker's full-text index in its data folder.
const INDEX: &str = "index";

/// What to suppress, and where.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest collection suppress /var/lib/harvest/gatherer https://docs.example.org/secret.html --reason 'published by mistake'
  harvest collection suppress /var/lib/harvest/broker 'https://docs.example.org/people/*' --reason 'request of 3 May'
  harvest collection suppress /var/lib/harvest/broker 'http://h/a 0123456789abcdef' --reason 'one gatherer only'
  harvest collection suppress /var/lib/harvest/broker --list
  harvest collection suppress /var/lib/harvest/broker 'https://docs.example.org/people/*' --lift

What is suppressed is deleted, refused from every source from then on, and named to consumers by a
signed tombstone; it stays suppressed when the collection's folder is restored from a backup. Its
bytes leave the disk with `harvest collection purge`.")]
pub(crate) struct Suppress {
    #[command(flatten)]
    place: Place,
    /// A URL, a pattern of URLs (* stands for any letters), or an object identifier: the URL and,
    /// after a space, the id of its gatherer.
    #[arg(value_name = "OID|URL-PATTERN", required_unless_present = "list")]
    subject: Option<String>,
    /// Why; it is shown to whoever asks, here and at consumers.
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["list", "lift"])]
    reason: Option<String>,
    /// Take back what was suppressed in just these words: it is gathered or pulled again.
    #[arg(long, conflicts_with_all = ["list", "reason"])]
    lift: bool,
    /// Show what is suppressed.
    #[arg(long, conflicts_with_all = ["subject", "reason"])]
    list: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// What to purge, and where.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest collection purge /var/lib/harvest/broker
  harvest collection purge /var/lib/harvest/broker 'https://docs.example.org/people/*'

Rewrites the log, the key index and the full-text index without what is suppressed, looks whether
anything is left, and names where copies may remain. Exits with 1 if anything is left.")]
pub(crate) struct Purge {
    #[command(flatten)]
    place: Place,
    /// Only what was suppressed in just these words; otherwise all that is suppressed.
    #[arg(value_name = "OID|URL-PATTERN")]
    subject: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Who does what is asked.
enum Hands {
    /// The daemon that has the collection open.
    Daemon(Box<Admin>),
    /// We, with the collection open.
    Ours(Collection),
}

impl Place {
    /// Returns the data folder of the daemon whose collection this is.
    fn data(&self) -> anyhow::Result<PathBuf> {
        let above = std::path::absolute(&self.dir)?.parent().map(Path::to_path_buf);
        let known = [Some(self.dir.clone()), above].into_iter().flatten();
        let mut known = known.filter(|it| it.join("id").is_file());
        known.next().with_context(|| {
            format!(
                "{} is no data folder of a daemon: what is suppressed is signed with its key",
                self.dir.display()
            )
        })
    }

    fn hands(&self) -> anyhow::Result<Hands> {
        let data = self.data()?;
        let error = match self.open_with(&data) {
            Ok(collection) => return Ok(Hands::Ours(collection)),
            Err(error) => error,
        };
        let Some(Error::InUse { pid, .. }) = error.downcast_ref() else { return Err(error) };
        let found = Whereabouts::read(&data);
        let (at, daemon) = found.context("a daemon has the collection open, and must do it")?;
        // The lock's file may be empty if the disk is full.
        if pid.parse::<u32>().is_ok_and(|it| it != daemon) {
            bail!("process {pid} has the collection open, and is no daemon: wait until it ends");
        }
        Ok(Hands::Daemon(Box::new(Admin::of_data(&at, &data)?)))
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

/// The author of what is said here.
fn author(data: &Path) -> anyhow::Result<Author> {
    let id = std::fs::read_to_string(data.join("id"))?.trim().to_owned();
    Ok(Author { id, identity: Identity::load_or_create(data)? })
}

fn now() -> Stamp {
    Stamp(net::clock::now_ms())
}

/// What a status says of takedowns; nothing if there are none.
pub(crate) fn said(takedowns: &Takedowns) -> Option<String> {
    let Takedowns { active, refused, forged, last_forged, damaged, .. } = takedowns;
    let mut text = (active + refused != 0).then(|| {
        let records = output::counted(*refused, "record");
        format!("{} in force, {records} refused", output::counted(*active, "takedown"))
    });
    if *forged != 0 {
        let notices = output::counted(*forged, "notice");
        let last = last_forged.as_deref().unwrap_or_default();
        let line = format!("PROBLEM: {notices} of takedown not genuine; the last: {last}");
        text = Some(text.into_iter().chain([line]).collect::<Vec<_>>().join("\n"));
    }
    if takedowns.surplus != 0 {
        let notices = output::counted(takedowns.surplus, "notice");
        let last = takedowns.last_surplus.as_deref().unwrap_or_default();
        let line = format!("PROBLEM: {notices} of takedown not taken; the last: {last}");
        text = Some(text.into_iter().chain([line]).collect::<Vec<_>>().join("\n"));
    }
    if *damaged != 0 {
        let parts = output::counted(*damaged, "part");
        let line = format!("PROBLEM: {parts} of {SUPPRESSED_FILE} damaged; restore it");
        text = Some(text.into_iter().chain([line]).collect::<Vec<_>>().join("\n"));
    }
    text
}

/// Suppresses, lifts or lists.
pub(crate) async fn suppress(asked: Suppress) -> anyhow::Result<ExitCode> {
    let hands = asked.place.hands()?;
    if asked.list {
        let list = match &hands {
            Hands::Ours(collection) => collection.suppressions(),
            Hands::Daemon(admin) => read(&admin.get("suppressed").await?)?,
        };
        return tell(&list, asked.json, |list| listed(list));
    }
    let subject = Subject::parse(asked.subject.as_deref().unwrap_or_default())?;
    let text = subject.to_string();
    let query = [("subject", text.as_str()), ("reason", asked.reason.as_deref().unwrap_or(""))];
    if asked.lift {
        let notice: Notice = match &hands {
            Hands::Ours(collection) => {
                collection.lift(&author(&asked.place.data()?)?, subject, now())?
            }
            Hands::Daemon(admin) => read(&admin.post("lift", &query).await?)?,
        };
        return tell(&notice, asked.json, |it| {
            format!("{} is no longer suppressed; it comes with the next pass or pull", it.subject)
        });
    }
    let done: TakenDown = match &hands {
        Hands::Ours(collection) => {
            let reason = asked.reason.unwrap_or_default();
            collection.suppress(&author(&asked.place.data()?)?, subject, &reason, now())?
        }
        Hands::Daemon(admin) => read(&admin.post("suppress", &query).await?)?,
    };
    tell(&done, asked.json, taken_down)
}

/// Purges.
pub(crate) async fn purge(asked: Purge) -> anyhow::Result<ExitCode> {
    let only = asked.subject.as_deref().map(Subject::parse).transpose()?;
    let report = match asked.place.hands()? {
        Hands::Ours(collection) => {
            let purged = collection.purge(only.as_ref(), now())?;
            let index = asked.place.data()?.join(INDEX);
            if index.is_dir() {
                // The broker makes it anew when it starts.
                std::fs::remove_dir_all(&index)
                    .with_context(|| format!("cannot remove {}", index.display()))?;
            }
            PurgeReport { purged, ..PurgeReport::default() }
        }
        Hands::Daemon(admin) => {
            let text = only.map(|it| it.to_string());
            let query: Vec<_> = text.iter().map(|it| ("subject", it.as_str())).collect();
            read(&admin.post("purge", &query).await?)?
        }
    };
    tell(&report, asked.json, remaining)?;
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

fn tell<T: serde::Serialize>(
    what: &T,
    json: bool,
    say: impl FnOnce(&T) -> String,
) -> anyhow::Result<ExitCode> {
    let text =
        if json { serde_json::to_string_pretty(what)? } else { output::harmless(&say(what)) };
    output::line(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn taken_down(done: &TakenDown) -> String {
    let objects = output::counted(done.objects, "object");
    let mut text = format!("{} is suppressed: {objects} deleted", done.notice.subject);
    if !done.held_by.is_empty() {
        text.push_str(&format!("; held until now by {}", done.held_by.join(", ")));
    }
    if done.objects == 0 {
        text.push_str(
            "\nnothing here has that URL: letters, %XX and ports count just as they are written",
        );
    }
    if !done.notice.is_of_signer() {
        let by = &done.notice.by;
        text.push_str(&format!(
            "\nthe id {by} is not made of this daemon's identity.key: other brokers take down what they \
             have from others only with `takedowns = \"all\"` for this source"
        ));
    }
    text.push_str("\n`harvest collection purge` takes the bytes off the disk");
    text
}

fn listed(list: &[Suppression]) -> String {
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

/// What was done, and where copies may remain.
fn remaining(report: &PurgeReport) -> String {
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
        lines.push(format!("STILL HERE: {file}, until who reads it now is done; run this again"));
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
    lines.push(
        "  in backups, and snapshots of the file system: delete them or make them anew".to_owned(),
    );
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use collection::{Consumer, Purged};

    use super::*;

    #[test]
    fn a_status_names_what_is_not_genuine() {
        assert_eq!(said(&Takedowns::default()), None);
        let takedowns = Takedowns {
            active: 1,
            refused: 1_200,
            forged: 1,
            last_forged: Some("http://h/a: its signature is wrong".to_owned()),
            surplus: 2,
            last_surplus: Some("source s: too many".to_owned()),
            damaged: 0,
        };
        let text = said(&takedowns).unwrap();
        assert_eq!(
            text,
            "1 takedown in force, 1,200 records refused\nPROBLEM: 1 notice of takedown not genuine; \
             the last: http://h/a: its signature is wrong\nPROBLEM: 2 notices of takedown not \
             taken; the last: source s: too many"
        );
    }

    #[test]
    fn what_a_suppression_does_not_do_is_said() {
        let identity = Identity::of(&[1; 32]).unwrap();
        let said = |id: &str, objects| {
            let author = Author { id: id.to_owned(), identity: Identity::of(&[1; 32]).unwrap() };
            let subject = Subject::parse("http://h/A").unwrap();
            let notice = Notice::sign(&author, subject, false, "", Stamp(1));
            taken_down(&TakenDown { notice, objects, held_by: Vec::new() })
        };
        let text = said(&identity.id(), 1);
        assert_eq!(text.lines().count(), 2, "{text}");
        let text = said("0123456789abcdef", 0);
        assert!(text.contains("nothing here has that URL"), "{text}");
        assert!(text.contains("0123456789abcdef is not made of"), "{text}");
    }

    #[test]
    fn a_purge_says_where_copies_remain() {
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
        let text = remaining(&report);
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
