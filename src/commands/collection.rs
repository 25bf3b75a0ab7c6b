//! `harvest collection`: maintenance of a collection, mostly while no daemon has it open.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use collection::{
    Collection, Error, Oid, Options, Problem, Recovery, Report, SUPPRESSED_FILE, Stamp,
};
use indicatif::{HumanBytes, HumanCount};

use super::takedown;
use crate::output;

/// Check, repair, export and measure a collection.
///
/// DIR is a collection's folder, or the data folder of a daemon. The daemon must not be running,
/// except for `suppress` and `purge`. `verify`, `export` and `stats` change nothing in it, and work
/// on a disk that can only be read.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  harvest collection verify /var/lib/harvest/broker
  harvest collection repair /var/lib/harvest/broker
  harvest collection export /var/lib/harvest/gatherer | harvest soif convert --to json")]
pub(crate) enum CollectionCommand {
    /// Check every checksum, the order of the log, and the key index against the log. Prints the
    /// damage, the objects that a daemon heals by itself, and the lost ones; exits with 1 if
    /// anything is wrong. Changes nothing: a second key index is made below TMPDIR.
    Verify(CollectionArgs),
    /// Show the damage and its repair; with --yes, delete objects that cannot be fetched or
    /// gathered again. A daemon heals by itself all that its files or sources still have.
    #[command(visible_alias = "drop-damaged")]
    Repair {
        #[command(flatten)]
        target: CollectionArgs,
        /// Make the repair, without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Begin a new epoch and rebuild the key index. Use it after a folder was restored from a
    /// backup, if its consumers have seen changes that the backup lacks.
    Rebuild(CollectionArgs),
    /// Take objects down: delete them, refuse them from every source, and tell consumers.
    Suppress(takedown::Suppress),
    /// Remove the bytes of suppressed objects from the disk now, and say where copies may remain.
    Purge(takedown::Purge),
    /// Write all live objects as SOIF.
    Export {
        #[command(flatten)]
        target: CollectionArgs,
        /// Write to this file instead of standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Show the size of a collection.
    Stats {
        #[command(flatten)]
        target: CollectionArgs,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// The argument that names the collection.
#[derive(Debug, clap::Args)]
pub(crate) struct CollectionArgs {
    /// The collection's folder, or the data folder of a daemon.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

pub(crate) async fn run(command: CollectionCommand) -> anyhow::Result<ExitCode> {
    match command {
        CollectionCommand::Verify(target) => verify(&target),
        CollectionCommand::Rebuild(target) => {
            let (collection, _) = target.open_by(Collection::rebuild)?;
            let objects = output::counted(collection.len(), "object");
            output::line(&format!("the key index is rebuilt: {objects}"))?;
            Ok(ExitCode::SUCCESS)
        }
        CollectionCommand::Suppress(args) => takedown::suppress(args).await,
        CollectionCommand::Purge(args) => takedown::purge(args).await,
        CollectionCommand::Repair { target, yes } => repair(&target, yes),
        CollectionCommand::Export { target, output } => {
            export(&target.open_to_read()?, output.as_deref())
        }
        CollectionCommand::Stats { target, json } => stats(&target.open_to_read()?.0, json),
    }
}

impl CollectionArgs {
    /// Opens the collection for reading.
    fn open_to_read(&self) -> anyhow::Result<(Collection, Recovery)> {
        self.open_by(Collection::open_to_read)
    }

    /// Opens the collection, and prints the findings of its recovery.
    pub(crate) fn open_by(
        &self,
        open: impl FnOnce(&Path, Options, Stamp) -> Result<(Collection, Recovery), Error>,
    ) -> anyhow::Result<(Collection, Recovery)> {
        let (collection, recovery) = self.open_quietly(open)?;
        for note in repairs(&recovery) {
            output::note(&note);
        }
        Ok((collection, recovery))
    }

    /// Opens the collection for reading, and checks all of it.
    fn check(&self) -> anyhow::Result<(Collection, Report)> {
        let (collection, recovery) = self.open_quietly(Collection::open_to_read)?;
        let mut report = collection.verify()?;
        // `verify` does not read the list of segments again; the recovery has its damage.
        let is_listed = |it: &Problem| report.problems.iter().any(|other| other.file == it.file);
        let more: Vec<_> = recovery.damaged.into_iter().filter(|it| !is_listed(it)).collect();
        report.problems.extend(more);
        Ok((collection, report))
    }

    fn open_quietly(
        &self,
        open: impl FnOnce(&Path, Options, Stamp) -> Result<(Collection, Recovery), Error>,
    ) -> anyhow::Result<(Collection, Recovery)> {
        let inside = self.dir.join("collection");
        let dir = if inside.is_dir() { &inside } else { &self.dir };
        if !dir.is_dir() {
            bail!("there is no folder {}", dir.display());
        }
        if !looks_like_collection(dir) {
            bail!("{} holds no collection: name a daemon's data folder", dir.display());
        }
        let now = Stamp(net::clock::now_ms());
        // The list lies outside the collection's folder: a restore of the folder keeps it.
        let places = [Some(self.dir.as_path()), self.dir.parent()].into_iter().flatten();
        let suppressed =
            places.map(|it| it.join(SUPPRESSED_FILE)).find(|list| collection::has_list(list));
        Ok(open(dir, Options { suppressed, ..Options::default() }, now)?)
    }
}

/// Returns whether `dir` holds a collection, so that opening it does not make a new one.
fn looks_like_collection(dir: &Path) -> bool {
    let Ok(entries) = dir.read_dir() else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("MANIFEST") || (name.starts_with("segment-") && name.ends_with(".gz"))
    })
}

/// Returns the findings and repairs of an opening, one line each.
fn repairs(recovery: &Recovery) -> Vec<String> {
    let mut lines: Vec<String> = recovery
        .cut
        .iter()
        .map(|cut| {
            let (file, bytes) = (cut.file.display(), HumanBytes(cut.bytes));
            format!("{file}: an unfinished commit: {bytes} from byte {}: {}", cut.offset, cut.why)
        })
        .collect();
    lines.extend(recovery.damaged.iter().map(|it| format!("damaged: {it}")));
    if let Some(why) = &recovery.keys_rebuilt {
        lines.push(format!("the key index is unusable and is rebuilt: {why}"));
    }
    lines
}

fn verify(target: &CollectionArgs) -> anyhow::Result<ExitCode> {
    let (_, report) = target.check()?;
    for problem in &report.problems {
        let (file, offset) = (problem.file.display(), problem.offset);
        output::line(&format!("{file}: byte {offset}: {}", problem.message))?;
    }
    for line in losses(&report) {
        output::line(&line)?;
    }
    let problems = u64::try_from(report.problems.len()).unwrap_or(u64::MAX);
    output::line(&format!(
        "{}, {}, {}, {}, {}: {}",
        output::counted(report.segments, "segment"),
        output::counted(report.members, "member"),
        HumanBytes(report.bytes),
        output::counted(report.changes, "change"),
        output::counted(report.objects, "object"),
        output::counted(problems, "problem"),
    ))?;
    if problems != 0 {
        let gone = (report.healable.len() + report.lost.len()) as u64;
        let whole = output::counted(report.objects.saturating_sub(gone), "object");
        let healable = report.healable.len();
        let lost = match report.unknown {
            true => "number of lost objects unknown".to_owned(),
            false => format!("{} lost", report.lost.len()),
        };
        output::line(&format!("{whole} whole, {healable} healable, {lost}"))?;
    }
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the objects that the damage hit, one line each.
fn losses(report: &Report) -> Vec<String> {
    let listed = |label: &str, list: &[Oid]| -> Vec<String> {
        list.iter().map(|oid| format!("{label}: {oid}")).collect()
    };
    let mut lines = listed("healable", &report.healable);
    lines.extend(listed("lost", &report.lost));
    if report.unknown {
        lines.push(
            "the damaged objects are unknown, since the key index is gone too: \
             the daemon fetches or gathers everything again when it runs"
                .to_owned(),
        );
    }
    lines
}

/// Prints the repair of the damage, and makes it if `yes`.
fn repair(target: &CollectionArgs, yes: bool) -> anyhow::Result<ExitCode> {
    let listed = match target.check() {
        Ok((_, report)) => Some(report),
        Err(error) => match error.downcast_ref() {
            Some(Error::Manifest { .. }) => {
                output::line(&format!("{error:#}"))?;
                None
            }
            _ => return Err(error),
        },
    };
    match &listed {
        Some(report) if report.problems.is_empty() => {
            output::line("nothing is damaged")?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(report) => {
            for problem in &report.problems {
                output::line(&format!("damaged: {problem}"))?;
            }
            losses(report).iter().try_for_each(|it| output::line(it))?;
            if !report.healable.is_empty() {
                let healable = output::counted(report.healable.len() as u64, "object");
                output::line(&format!(
                    "the daemon heals {healable} from files or sources: start it, and wait"
                ))?;
            }
            let lost = output::counted(report.lost.len() as u64, "object");
            output::line(&format!(
                "a repair deletes what cannot be healed, here and for consumers: {lost}; all else stays"
            ))?;
        }
        None => output::line(
            "a repair rebuilds the list of segments from the files that exist, and begins a new epoch: \
             consumers read everything again, and the daemon gathers or pulls everything again",
        )?,
    }
    if !yes {
        output::line("nothing was changed; add --yes to make the repair")?;
        return Ok(ExitCode::FAILURE);
    }
    let open = if listed.is_some() { Collection::open } else { Collection::rebuild };
    let (collection, _) = target.open_by(open)?;
    if listed.is_some() {
        collection.scrub(u64::MAX)?;
        let dropped = collection.drop_damaged(Stamp(net::clock::now_ms()))?;
        output::line(&format!("{} given up", output::counted(dropped, "object")))?;
        let is_sound = collection.health().damaged.is_empty();
        if is_sound && !collection.verify()?.problems.is_empty() {
            collection.remake_keys()?;
            output::line("the key index did not belong to the log: it is rebuilt")?;
        }
    } else {
        output::line(&format!("{} left", output::counted(collection.len(), "object")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes all live objects to a file, or to standard output.
pub(super) fn export(
    (collection, recovery): &(Collection, Recovery),
    output: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let objects = match output {
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            let objects = collection.export(&mut out)?;
            out.flush()?;
            objects
        }
        Some(path) => {
            let cannot = || format!("cannot write {}", path.display());
            let mut out = BufWriter::new(File::create(path).with_context(cannot)?);
            let objects = collection.export(&mut out)?;
            let file = out.into_inner().map_err(io::IntoInnerError::into_error);
            file.and_then(|file| file.sync_all()).with_context(cannot)?;
            objects
        }
    };
    output::note(&output::counted(objects, "object"));
    let damaged = collection.len().saturating_sub(objects);
    if damaged != 0 {
        let damaged = output::counted(damaged, "object");
        output::note(&format!(
            "{damaged} damaged and left out: `harvest collection verify` names them"
        ));
    }
    // Without a key index, the number of missing objects is unknown.
    let is_unknown = recovery.lost || collection.aftermath()?.is_some();
    if is_unknown {
        output::note("more may be missing: `harvest collection verify` says why");
    }
    Ok(if damaged == 0 && !is_unknown { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn stats(collection: &Collection, json: bool) -> anyhow::Result<ExitCode> {
    let stats = collection.stats();
    let sources = collection.sources()?;
    if json {
        let sources: Vec<_> = sources
            .iter()
            .map(|it| serde_json::json!({ "name": it.source, "objects": it.objects }))
            .collect();
        return output::json(&serde_json::json!({
            "epoch": stats.version.epoch.to_string(),
            "serial": stats.version.serial,
            "objects": stats.objects,
            "changes": stats.changes,
            "members": stats.members,
            "segments": stats.segments,
            "bytes": stats.bytes,
            "horizon": stats.horizon,
            "compaction_due": stats.compaction_due,
            "sources": sources,
        }));
    }
    let rows = [
        ("epoch", stats.version.epoch.to_string()),
        ("serial", HumanCount(stats.version.serial).to_string()),
        ("objects", HumanCount(stats.objects).to_string()),
        ("changes", HumanCount(stats.changes).to_string()),
        ("members", HumanCount(stats.members).to_string()),
        ("segments", HumanCount(stats.segments).to_string()),
        ("size", HumanBytes(stats.bytes).to_string()),
        ("horizon", HumanCount(stats.horizon).to_string()),
        ("compaction", if stats.compaction_due { "due" } else { "not due" }.to_owned()),
    ];
    for (name, value) in rows {
        output::line(&format!("{name:<12}{value}"))?;
    }
    for source in sources {
        let objects = output::counted(source.objects, "object");
        output::line(&format!("source      {}: {objects}", source.source))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_collection_is_refused_and_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("letter.txt"), "Dear").unwrap();
        let target = CollectionArgs { dir: dir.path().to_owned() };
        let message = target.open_to_read().unwrap_err().to_string();
        assert!(message.contains("holds no collection"), "{message}");
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
        let target = CollectionArgs { dir: dir.path().join("none") };
        assert!(target.open_to_read().unwrap_err().to_string().contains("there is no folder"));
    }

    #[test]
    fn damaged_objects_are_deleted_only_with_yes() {
        let dir = tempfile::tempdir().unwrap();
        let now = Stamp(net::clock::now_ms());
        {
            let (collection, _) = Collection::open(dir.path(), Options::default(), now).unwrap();
            let mut record = soif::Record::new("FILE", "http://h/1");
            record.push(collection::GATHERER_ID, "g");
            let changes = vec![collection::Change::Update(record)];
            collection.commit(collection::Batch { changes, notes: Vec::new() }, now).unwrap();
            collection.compact(now).unwrap();
        }
        let target = CollectionArgs { dir: dir.path().to_owned() };
        assert_eq!(verify(&target).unwrap(), ExitCode::SUCCESS);
        let segment = dir.path().join("segment-00000003.gz");
        let mut bytes = std::fs::read(&segment).unwrap();
        let last = bytes.len() - 12;
        bytes[last] ^= 1;
        std::fs::write(&segment, bytes).unwrap();
        assert_eq!(verify(&target).unwrap(), ExitCode::FAILURE);
        assert_eq!(repair(&target, false).unwrap(), ExitCode::FAILURE);
        assert_eq!(target.open_to_read().unwrap().0.len(), 1, "nothing is given up unasked");
        assert_eq!(repair(&target, true).unwrap(), ExitCode::SUCCESS);
        assert_eq!(verify(&target).unwrap(), ExitCode::SUCCESS);
        assert_eq!(repair(&target, false).unwrap(), ExitCode::SUCCESS);
        assert_eq!(target.open_to_read().unwrap().0.len(), 0);
        for list in ["MANIFEST", "MANIFEST.copy"] {
            std::fs::write(dir.path().join(list), "nonsense").unwrap();
        }
        assert_eq!(repair(&target, false).unwrap(), ExitCode::FAILURE);
        assert_eq!(repair(&target, true).unwrap(), ExitCode::SUCCESS);
        assert_eq!(verify(&target).unwrap(), ExitCode::SUCCESS);
    }

    #[test]
    fn a_missing_list_of_takedowns_is_read_from_its_copy() {
        let dir = tempfile::tempdir().unwrap();
        let now = Stamp(net::clock::now_ms());
        let list = dir.path().join(SUPPRESSED_FILE);
        let options = Options { suppressed: Some(list.clone()), ..Options::default() };
        let inside = dir.path().join("collection");
        let (collection, _) = Collection::open(&inside, options, now).unwrap();
        let identity = net::identity::Identity::of(&[1; 32]).unwrap();
        let author = collection::Author { id: identity.id(), identity };
        let subject = collection::Subject::parse("http://h/1").unwrap();
        collection.suppress(&author, subject, "by mistake", now).unwrap();
        drop(collection);
        std::fs::remove_file(&list).unwrap();
        let target = CollectionArgs { dir: dir.path().to_owned() };
        assert_eq!(target.open_to_read().unwrap().0.suppressions().len(), 1);
    }

    #[test]
    fn a_key_index_of_another_log_is_rebuilt() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let now = Stamp(net::clock::now_ms());
        let add = |dir: &Path, url: &str| {
            let (collection, _) = Collection::open(dir, Options::default(), now).unwrap();
            let mut record = soif::Record::new("FILE", url);
            record.push(collection::GATHERER_ID, "g");
            let changes = vec![collection::Change::Update(record)];
            collection.commit(collection::Batch { changes, notes: Vec::new() }, now).unwrap();
            collection.close();
        };
        let copy = |from: &Path, to: &Path| {
            let all = format!("{}/.", from.display());
            let copied = std::process::Command::new("cp").args(["-a", &all]).arg(to).status();
            assert!(copied.unwrap().success());
        };
        add(one.path(), "http://h/1");
        copy(one.path(), other.path());
        add(one.path(), "http://h/2");
        add(other.path(), "http://h/3");
        std::fs::remove_dir_all(one.path().join("keys")).unwrap();
        std::fs::create_dir(one.path().join("keys")).unwrap();
        copy(&other.path().join("keys"), &one.path().join("keys"));
        let target = CollectionArgs { dir: one.path().to_owned() };
        assert_eq!(verify(&target).unwrap(), ExitCode::FAILURE);
        assert_eq!(repair(&target, true).unwrap(), ExitCode::SUCCESS);
        assert_eq!(verify(&target).unwrap(), ExitCode::SUCCESS);
        assert_eq!(target.open_to_read().unwrap().0.len(), 2);
    }

    #[test]
    fn the_data_folder_of_a_daemon_is_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("collection");
        let now = Stamp(net::clock::now_ms());
        drop(Collection::open(&inside, Options::default(), now).unwrap());
        for dir in [inside.as_path(), dir.path()] {
            let target = CollectionArgs { dir: dir.to_owned() };
            assert_eq!(target.open_to_read().unwrap().0.len(), 0);
            assert_eq!(verify(&target).unwrap(), ExitCode::SUCCESS);
        }
    }
}
