//! `harvest collection`: looks after a collection that no daemon has open.

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
/// DIR is a collection's folder, or the data folder of a daemon. The daemon must not be running, except
/// for `suppress` and `purge`. `verify`, `export` and `stats` change nothing in it, and work on a disk that
/// can only be read.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  harvest collection verify /var/lib/harvest/broker
  harvest collection repair /var/lib/harvest/broker
  harvest collection export /var/lib/harvest/gatherer | harvest soif convert --to json")]
pub(crate) enum Command {
    /// Check every checksum, the order of the log, and the key index against the log; name what is
    /// damaged, what of it is healed by itself, and what is lost; exit with 1 if anything is wrong.
    /// Nothing is changed: a second key index is made in a temporary folder (TMPDIR).
    Verify(Place),
    /// Say what is damaged and what becomes of it, and with --yes give up what nobody can bring again. A
    /// daemon heals by itself whatever its files or sources still have: this is for the rest.
    #[command(visible_alias = "drop-damaged")]
    Repair {
        #[command(flatten)]
        place: Place,
        /// Do what is said, without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Begin a new epoch and make the key index anew: for a folder that was restored from a backup, whose
    /// consumers have seen more of it than it has.
    Rebuild(Place),
    /// Take objects down: delete them, refuse them from every source, and tell consumers.
    Suppress(takedown::Suppress),
    /// Take the bytes of what is suppressed off the disk now, and say where copies remain.
    Purge(takedown::Purge),
    /// Write all live objects as SOIF.
    Export {
        #[command(flatten)]
        place: Place,
        /// Write to this file instead of standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Show how large it is.
    Stats {
        #[command(flatten)]
        place: Place,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Where the collection is.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// The collection's folder, or the data folder of a daemon.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// Does what the command says.
pub(crate) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Verify(place) => verify(&place),
        Command::Rebuild(place) => {
            let (collection, _) = place.open_by(Collection::rebuild)?;
            let objects = output::counted(collection.len(), "object");
            output::line(&format!("the key index is made anew: {objects}"))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Suppress(asked) => takedown::suppress(asked).await,
        Command::Purge(asked) => takedown::purge(asked).await,
        Command::Repair { place, yes } => repair(&place, yes),
        Command::Export { place, output } => export(&place.look()?, output.as_deref()),
        Command::Stats { place, json } => stats(&place.look()?.0, json),
    }
}

impl Place {
    /// Opens the collection to look at it.
    fn look(&self) -> anyhow::Result<(Collection, Recovery)> {
        self.open_by(Collection::open_to_read)
    }

    /// Opens the collection, and says what was found.
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

    /// Opens the collection to check all of it.
    fn check(&self) -> anyhow::Result<(Collection, Report)> {
        let (collection, recovery) = self.open_quietly(Collection::open_to_read)?;
        let mut report = collection.verify()?;
        // The list of segments is not read again.
        let is_known = |it: &Problem| report.problems.iter().any(|known| known.file == it.file);
        let more: Vec<_> = recovery.damaged.into_iter().filter(|it| !is_known(it)).collect();
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
        // Beside the folder, so that it is not set back with it.
        let places = [Some(self.dir.as_path()), self.dir.parent()].into_iter().flatten();
        let suppressed =
            places.map(|it| it.join(SUPPRESSED_FILE)).find(|list| collection::has_list(list));
        Ok(open(dir, Options { suppressed, ..Options::default() }, now)?)
    }
}

/// Whether opening `dir` would find a collection rather than make one.
fn looks_like_collection(dir: &Path) -> bool {
    let Ok(entries) = dir.read_dir() else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("MANIFEST") || (name.starts_with("segment-") && name.ends_with(".gz"))
    })
}

/// What an opening found and did, one line each.
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
        lines.push(format!("the key index is of no use and is made anew: {why}"));
    }
    lines
}

fn verify(place: &Place) -> anyhow::Result<ExitCode> {
    let (_, report) = place.check()?;
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
            true => "how many lost is not known".to_owned(),
            false => format!("{} lost", report.lost.len()),
        };
        output::line(&format!("{whole} whole, {healable} healable, {lost}"))?;
    }
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What damage has cost, one line an object.
fn losses(report: &Report) -> Vec<String> {
    let named = |what: &str, list: &[Oid]| -> Vec<String> {
        list.iter().map(|oid| format!("{what}: {oid}")).collect()
    };
    let mut lines = named("healable", &report.healable);
    lines.extend(named("lost", &report.lost));
    if report.unknown {
        lines.push(
            "what was damaged is not known, since the key index is gone too: \
             the daemon fetches or gathers everything again when it runs"
                .to_owned(),
        );
    }
    lines
}

/// Says what is to be done about damage, and does it if it may.
fn repair(place: &Place, yes: bool) -> anyhow::Result<ExitCode> {
    let listed = match place.check() {
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
                    "the daemon brings {healable} again from files or sources: start it, and wait"
                ))?;
            }
            let lost = output::counted(report.lost.len() as u64, "object");
            output::line(&format!(
                "a repair deletes what nobody can bring again, here and for consumers: {lost}; all else stays"
            ))?;
        }
        None => output::line(
            "a repair makes the list of segments anew from those that there are, and begins a new epoch: \
             consumers read all again, and so does the daemon of its files or sources",
        )?,
    }
    if !yes {
        output::line("nothing was changed; with --yes it is done")?;
        return Ok(ExitCode::FAILURE);
    }
    let open = if listed.is_some() { Collection::open } else { Collection::rebuild };
    let (collection, _) = place.open_by(open)?;
    if listed.is_some() {
        collection.scrub(u64::MAX)?;
        let dropped = collection.drop_damaged(Stamp(net::clock::now_ms()))?;
        output::line(&format!("{} given up", output::counted(dropped, "object")))?;
        let is_sound = collection.health().damaged.is_empty();
        if is_sound && !collection.verify()?.problems.is_empty() {
            collection.remake_keys()?;
            output::line("the key index was not that of the log: it is made anew")?;
        }
    } else {
        output::line(&format!("{} there", output::counted(collection.len(), "object")))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn export(
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
    // Without a key index nobody knows how many there are.
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
        output::line(&serde_json::to_string_pretty(&serde_json::json!({
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
        }))?)?;
        return Ok(ExitCode::SUCCESS);
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
    fn a_folder_that_is_no_collection_is_not_made_one() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("letter.txt"), "Dear").unwrap();
        let place = Place { dir: dir.path().to_owned() };
        let message = place.look().unwrap_err().to_string();
        assert!(message.contains("holds no collection"), "{message}");
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
        let place = Place { dir: dir.path().join("none") };
        assert!(place.look().unwrap_err().to_string().contains("there is no folder"));
    }

    #[test]
    fn what_is_damaged_is_dropped_by_a_word() {
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
        let place = Place { dir: dir.path().to_owned() };
        assert_eq!(verify(&place).unwrap(), ExitCode::SUCCESS);
        let segment = dir.path().join("segment-00000003.gz");
        let mut bytes = std::fs::read(&segment).unwrap();
        let last = bytes.len() - 12;
        bytes[last] ^= 1;
        std::fs::write(&segment, bytes).unwrap();
        assert_eq!(verify(&place).unwrap(), ExitCode::FAILURE);
        assert_eq!(repair(&place, false).unwrap(), ExitCode::FAILURE);
        assert_eq!(place.look().unwrap().0.len(), 1, "nothing is given up unasked");
        assert_eq!(repair(&place, true).unwrap(), ExitCode::SUCCESS);
        assert_eq!(verify(&place).unwrap(), ExitCode::SUCCESS);
        assert_eq!(repair(&place, false).unwrap(), ExitCode::SUCCESS);
        assert_eq!(place.look().unwrap().0.len(), 0);
        for list in ["MANIFEST", "MANIFEST.copy"] {
            std::fs::write(dir.path().join(list), "nonsense").unwrap();
        }
        assert_eq!(repair(&place, false).unwrap(), ExitCode::FAILURE);
        assert_eq!(repair(&place, true).unwrap(), ExitCode::SUCCESS);
        assert_eq!(verify(&place).unwrap(), ExitCode::SUCCESS);
    }

    #[test]
    fn a_list_of_takedowns_that_is_gone_is_found_by_its_copy() {
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
        let place = Place { dir: dir.path().to_owned() };
        assert_eq!(place.look().unwrap().0.suppressions().len(), 1);
    }

    #[test]
    fn a_key_index_that_is_not_that_of_the_log_is_made_anew() {
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
        let place = Place { dir: one.path().to_owned() };
        assert_eq!(verify(&place).unwrap(), ExitCode::FAILURE);
        assert_eq!(repair(&place, true).unwrap(), ExitCode::SUCCESS);
        assert_eq!(verify(&place).unwrap(), ExitCode::SUCCESS);
        assert_eq!(place.look().unwrap().0.len(), 2);
    }

    #[test]
    fn the_data_folder_of_a_daemon_will_do() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("collection");
        let now = Stamp(net::clock::now_ms());
        drop(Collection::open(&inside, Options::default(), now).unwrap());
        for dir in [inside.as_path(), dir.path()] {
            let place = Place { dir: dir.to_owned() };
            assert_eq!(place.look().unwrap().0.len(), 0);
            assert_eq!(verify(&place).unwrap(), ExitCode::SUCCESS);
        }
    }
}
