//! `harvest oai harvest`: a repository's records, from the checkpoint of the last harvest on.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use exchange::harvester::{Bounds, Running, Step};
use indicatif::{HumanBytes, HumanCount, MultiProgress, ProgressBar, ProgressStyle};
use net::shutdown::Shutdown;
use oai::Datestamp;
use oai::crosswalk::{Problem, ProblemKind, SourceIdentity};
use oai::harvest::{CHECKPOINT_BYTES_MAX, Checkpoint, Failure, Report, Settings, Warning};
use oai::response::Record;
use serde_json::json;

use super::output::{Output, RecordForm};
use super::{RepositoryArgs, SelectionArgs, plain};
use crate::{output, process};

pub(super) const EXAMPLES: &str = "\
With --checkpoint the same command goes on after a stop of any kind; after a complete harvest it fetches the
changes since. Output to a file is then continued, and names the deleted records.
Exits with 1 unless every record came and could be read. Lists with fewer records than announced, lists that
went on with records of other sets, and records without a name (which are not written) count as failures too.
Missing records are named on standard error.

Examples:
  harvest oai harvest https://repository.example/oai | harvest soif print | less
  harvest oai harvest https://repository.example/oai -o all.soif --checkpoint all.cursor
  harvest oai harvest https://repository.example/oai --original --prefix marc21 -o folder/";

/// Number of problems with records that are named; the others are counted.
const PROBLEMS_SHOWN: usize = 20;

/// Time after which the bar shows again what the harvest does.
const BAR_EVERY: Duration = Duration::from_millis(500);

/// The same for lines, where there is no bar.
const NOTE_EVERY: Duration = Duration::from_secs(30);

/// First word of a checkpoint's file.
const MARK: &str = "harvest-oai-1";

#[derive(Debug, clap::Args)]
pub(crate) struct Harvest {
    #[command(flatten)]
    repository: RepositoryArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Only records in this set or in a set below it; may be given several times.
    #[arg(long = "set", value_name = "SET")]
    sets: Vec<String>,
    /// Write the records as they came, in XML, instead of summaries in SOIF.
    #[arg(long)]
    original: bool,
    /// Write to this file, or into this folder a file for each record; default: standard output.
    #[arg(short, long, value_name = "FILE|DIR/")]
    output: Option<PathBuf>,
    /// Keep the harvest's progress in this file, and go on from there.
    #[arg(long, value_name = "FILE", requires = "output")]
    checkpoint: Option<PathBuf>,
    /// Pause between requests.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    delay: u64,
    /// Print the summary as JSON.
    #[arg(long, requires = "output")]
    json: bool,
}

/// The content of a checkpoint's file.
#[derive(Debug, Default, PartialEq, Eq)]
struct SavedHarvest {
    checkpoint: Checkpoint,
    /// Length of the output at the checkpoint, in bytes; `None` if the harvest has not begun.
    written: Option<u64>,
}

/// Counts in addition to those of the report.
#[derive(Debug, Default)]
struct Tally {
    /// Records after `--until`.
    left_out: u64,
    problems: u64,
    named: Vec<(String, Problem)>,
    /// Records without a name, which cannot be written.
    nameless: u64,
}

/// Harvests. The exit code is 1 when the harvest broke off, or records are missing.
pub(crate) async fn run(args: &Harvest, bars: &MultiProgress) -> anyhow::Result<ExitCode> {
    let repository = args.repository.open()?;
    args.selection.check()?;
    if let Some(path) = args.output.as_deref()
        && path.as_os_str().to_string_lossy().ends_with('/')
    {
        fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
    }
    let saved = args.saved()?;
    let source = SourceIdentity::new(args.repository.base.as_str());
    let mut out = Output::open(args.output.as_deref(), args.form(), source, saved.written)?;
    let mut signals = process::Signals::listen()?;
    let shutdown = Shutdown::new();
    let is_again = saved.checkpoint.reached().is_some();
    let (settings, bounds) = (args.settings(), Bounds::default());
    let mut running =
        Running::new(repository, settings, saved.checkpoint, bounds, shutdown.clone());
    let bar = args.bar(bars);
    let activity = running.activity();
    let every = if bar.is_hidden() { NOTE_EVERY } else { BAR_EVERY };
    let mut ticks = tokio::time::interval(every);
    ticks.reset();
    let mut tally = Tally::default();
    let outcome = loop {
        let step = tokio::select! {
            step = running.next() => step,
            _ = signals.next() => Step::Stopped,
            _ = ticks.tick() => {
                args.tell(&bar, running.report(), &activity.borrow());
                continue;
            }
        };
        match step {
            Step::Batch(part) => {
                let records = args.wanted(part.records, &mut tally);
                let prefix = part.checkpoint.prefix().to_owned();
                if part.release && is_again {
                    output::note(
                        "the repository reports no deletions: records that were written before and did not \
                         come again are deleted there; remove the checkpoint to write all anew",
                    );
                }
                (out, tally) = blocking(move || store(out, &records, &prefix, tally)).await?;
                args.save(out.written(), &part.checkpoint)?;
            }
            Step::End(end) => {
                args.save(out.written(), &end.checkpoint)?;
                break Some(end);
            }
            Step::Stopped => break None,
        }
    };
    bar.finish_and_clear();
    out.finish()?;
    match outcome {
        Some(end) => args.report(&end.report, &tally, end.outcome.as_ref().err()),
        None => {
            args.report(running.report(), &tally, None)?;
            bail!("stopped{}", args.advice());
        }
    }
}

fn store(
    mut out: Output,
    records: &[Record],
    prefix: &str,
    mut tally: Tally,
) -> anyhow::Result<(Output, Tally)> {
    let problems = out.store(records, prefix)?;
    tally.problems += u64::try_from(problems.len()).unwrap_or(u64::MAX);
    let nameless = problems.iter().filter(|(_, it)| it.kind == ProblemKind::Nameless).count();
    tally.nameless += u64::try_from(nameless).unwrap_or(u64::MAX);
    let room = PROBLEMS_SHOWN.saturating_sub(tally.named.len());
    tally.named.extend(problems.into_iter().take(room));
    Ok((out, tally))
}

/// Runs work that would hold an async thread for too long.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await.context("writing the records failed")?
}

impl Harvest {
    fn form(&self) -> RecordForm {
        if self.original { RecordForm::Original } else { RecordForm::Soif }
    }

    fn settings(&self) -> Settings {
        Settings {
            prefixes: vec![self.selection.prefix.clone()],
            sets: self.sets.clone(),
            from: self.selection.from,
            until: self.selection.until,
            strict: true,
            delay_ms: self.delay,
            ..Settings::new(self.repository.base.as_str())
        }
    }

    /// Returns the records up to `--until` or without a datestamp; some repositories send others.
    fn wanted(&self, records: Vec<Record>, tally: &mut Tally) -> Vec<Record> {
        let Some(until) = self.selection.until.map(Datestamp::last_secs) else { return records };
        let count = records.len();
        let is_wanted = |it: &Record| it.header.datestamp.is_none_or(|stamp| stamp.secs() <= until);
        let wanted: Vec<Record> = records.into_iter().filter(is_wanted).collect();
        tally.left_out += u64::try_from(count - wanted.len()).unwrap_or(u64::MAX);
        wanted
    }

    /// Returns a hash of the selection and the output: the checkpoint of another harvest is
    /// refused. Other options may change between runs.
    fn fingerprint(&self) -> u64 {
        let date = |it: Option<Datestamp>| it.map(|it| it.to_string());
        let selected = json!([
            self.repository.base.as_str(),
            self.selection.prefix,
            self.sets,
            date(self.selection.from),
            date(self.selection.until),
            self.original,
            self.output.as_ref().map(|it| it.to_string_lossy()),
        ]);
        xxhash_rust::xxh3::xxh3_64(selected.to_string().as_bytes())
    }

    /// Reads the checkpoint's file; without a file, the harvest starts at the beginning.
    fn saved(&self) -> anyhow::Result<SavedHarvest> {
        let Some(path) = &self.checkpoint else { return Ok(SavedHarvest::default()) };
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(SavedHarvest::default());
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let (fingerprint, saved) = read_saved(&bytes)
            .with_context(|| format!("{} is no checkpoint of a harvest", path.display()))?;
        if fingerprint != self.fingerprint() {
            bail!(
                "{} is the checkpoint of another harvest: repeat its options, or name another file",
                path.display()
            );
        }
        Ok(saved)
    }

    fn save(&self, written: u64, checkpoint: &Checkpoint) -> anyhow::Result<()> {
        let Some(path) = &self.checkpoint else { return Ok(()) };
        let mut bytes = format!("{MARK} {:016x} {written}\n", self.fingerprint()).into_bytes();
        bytes.extend_from_slice(&checkpoint.to_bytes());
        replace(path, &bytes).with_context(|| format!("cannot write {}", path.display()))
    }

    fn bar(&self, bars: &MultiProgress) -> ProgressBar {
        let to_terminal = self.output.is_none() && io::stdout().is_terminal();
        if to_terminal || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = bars.add(ProgressBar::new_spinner());
        let style = ProgressStyle::with_template("{spinner} {elapsed_precise}  {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }

    /// Says what the harvest does: on the bar, or else in a line, unless records are written there.
    fn tell(&self, bar: &ProgressBar, report: &Report, activity: &str) {
        let activity = plain(activity);
        if !bar.is_hidden() {
            bar.set_message(format!("{}; {activity}", progress(report)));
        } else if self.output.is_some() || !io::stdout().is_terminal() {
            output::note(&format!("{} {activity}", self.repository.base));
        }
    }

    fn advice(&self) -> &'static str {
        match &self.checkpoint {
            Some(_) => "; the same command goes on from there",
            None => "; with --checkpoint it could go on from there",
        }
    }

    fn report(
        &self,
        report: &Report,
        tally: &Tally,
        failure: Option<&Failure>,
    ) -> anyhow::Result<ExitCode> {
        for bad in &report.quarantine {
            let name = plain(bad.identifier.as_deref().unwrap_or("?"));
            let problem = plain(&bad.problem);
            output::note(&format!("{name} cannot be read (byte {}): {problem}", bad.offset));
        }
        for (identifier, problem) in &tally.named {
            output::note(&plain(&format!("{identifier}: {problem}")));
        }
        for (warning, count) in &report.warnings {
            let times = if *count == 1 { String::new() } else { format!(" ({count} times)") };
            output::note(&plain(&format!("{warning}{times}")));
        }
        if self.json {
            output::line(&summary_json(report, tally, failure).to_string())?;
        }
        output::note(&summary_text(report, tally));
        if let Some(failure) = failure {
            let (base, reason) = (&self.repository.base, plain(&failure.to_string()));
            match failure {
                Failure::NoSet { .. } => {
                    bail!("{base}: {reason}; `harvest oai sets {base}` shows its sets")
                }
                Failure::NoFormat { .. } => {
                    bail!("{base}: {reason}; name one of these with --prefix")
                }
                // Nothing has come from which a harvest could go on.
                _ if report.records == 0 && self.checkpoint.is_none() => bail!("{base}: {reason}"),
                _ => bail!("{base}: {reason}{}", self.advice()),
            }
        }
        Ok(if is_complete(report, tally) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Returns whether every record came and was written.
fn is_complete(report: &Report, tally: &Tally) -> bool {
    let is_short = |(warning, count): &(Warning, u64)| match warning {
        // With several lists, the warning has the numbers of the first only.
        Warning::ListSize { announced, found } => found < announced || 1 < *count,
        Warning::SetLost(_) => true,
        _ => false,
    };
    report.quarantined == 0 && tally.nameless == 0 && !report.warnings.iter().any(is_short)
}

/// Parses a checkpoint's file into its fingerprint and content.
fn read_saved(bytes: &[u8]) -> Option<(u64, SavedHarvest)> {
    let bytes_max = CHECKPOINT_BYTES_MAX + 100;
    let at = bytes.iter().position(|it| *it == b'\n').filter(|_| bytes.len() <= bytes_max)?;
    let (head, rest) = bytes.split_at(at + 1);
    let mut words = std::str::from_utf8(head).ok()?.split_whitespace();
    words.next().filter(|it| *it == MARK)?;
    let fingerprint = u64::from_str_radix(words.next()?, 16).ok()?;
    let written = words.next()?.parse().ok()?;
    let checkpoint = Checkpoint::from_bytes(rest)?;
    Some((fingerprint, SavedHarvest { checkpoint, written: Some(written) }))
}

/// Replaces a file durably, whole or not at all.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder =
        path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder)?.sync_all()
}

fn progress(report: &Report) -> String {
    format!(
        "{} records, {} deleted; {} requests, {}",
        HumanCount(report.records),
        HumanCount(report.deleted),
        HumanCount(report.requests),
        HumanBytes(report.bytes)
    )
}

fn summary_text(report: &Report, tally: &Tally) -> String {
    let records = output::counted(report.records, "record");
    let requests = output::counted(report.requests, "request");
    let (deleted, bytes) = (HumanCount(report.deleted), HumanBytes(report.bytes));
    let mut text = format!("{records}, {deleted} of them deleted, in {requests} and {bytes}");
    let mut add = |count: u64, what: &str| {
        if 0 < count {
            text.push_str(&format!("; {} {what}", HumanCount(count)));
        }
    };
    add(report.duplicates, "came again and were dropped");
    add(tally.left_out, "are later than --until");
    add(tally.problems, "problems with their metadata");
    add(report.repaired, "responses had to be repaired");
    add(report.quarantined, "could not be read");
    add(tally.nameless, "without a name were left out");
    text
}

fn summary_json(report: &Report, tally: &Tally, failure: Option<&Failure>) -> serde_json::Value {
    let quarantined = report.quarantine.iter().map(
        |it| json!({ "identifier": it.identifier, "offset": it.offset, "problem": it.problem }),
    );
    json!({
        "records": report.records,
        "deleted": report.deleted,
        "duplicates": report.duplicates,
        "later": tally.left_out,
        "problems": tally.problems,
        "requests": report.requests,
        "bytes": report.bytes,
        "repaired": report.repaired,
        "unreadable": report.quarantined,
        "nameless": tally.nameless,
        "complete": failure.is_none() && is_complete(report, tally),
        "quarantined": quarantined.collect::<serde_json::Value>(),
        "warnings": report.warnings.iter().map(|(it, _)| it.to_string()).collect::<Vec<_>>(),
        "full": report.full,
        "failure": failure.map(ToString::to_string),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_belongs_to_one_harvest() {
        let folder = tempfile::tempdir().unwrap();
        let harvest = |set: &str, delay: &str| {
            use clap::Parser;
            #[derive(Debug, Parser)]
            struct TestCli {
                #[command(flatten)]
                harvest: Harvest,
            }
            let file = folder.path().join("cursor");
            let line = ["x", "http://a.example/oai", "--set", set, "-o", "f", "--delay", delay];
            let line = line.iter().map(|it| (*it).to_owned());
            let file = ["--checkpoint".to_owned(), file.display().to_string()];
            TestCli::parse_from(line.chain(file)).harvest
        };
        let first = harvest("a", "0");
        assert_eq!(first.saved().unwrap(), SavedHarvest::default());
        first.save(17, &Checkpoint::default()).unwrap();
        let saved = SavedHarvest { checkpoint: Checkpoint::default(), written: Some(17) };
        assert_eq!(first.saved().unwrap(), saved);
        assert_eq!(harvest("a", "500").saved().unwrap(), saved);
        assert!(harvest("b", "0").saved().unwrap_err().to_string().contains("another"));
        fs::write(folder.path().join("cursor"), "junk\n").unwrap();
        assert!(first.saved().unwrap_err().to_string().contains("no checkpoint"));
    }

    #[test]
    fn the_summary_counts_records_and_failures() {
        let report = Report {
            records: 1_234,
            deleted: 3,
            requests: 1,
            bytes: 2_048,
            quarantined: 2,
            ..Report::default()
        };
        let tally = Tally { nameless: 1, ..Tally::default() };
        assert_eq!(
            summary_text(&report, &tally),
            "1,234 records, 3 of them deleted, in 1 request and 2.00 KiB; 2 could not be read; \
             1 without a name were left out"
        );
    }

    #[test]
    fn a_harvest_is_complete_if_every_record_came() {
        let none = Tally::default();
        let check = |warning: Option<(Warning, u64)>, expected: bool| {
            let warnings = warning.into_iter().collect();
            let report = Report { warnings, ..Report::default() };
            assert_eq!(is_complete(&report, &none), expected, "{report:?}");
        };
        check(None, true);
        check(Some((Warning::DaysOnly, 1)), true);
        check(Some((Warning::ListSize { announced: 3, found: 2 }, 1)), false);
        check(Some((Warning::ListSize { announced: 2, found: 3 }, 1)), true);
        check(Some((Warning::ListSize { announced: 2, found: 3 }, 2)), false);
        check(Some((Warning::SetLost("a".to_owned()), 1)), false);
        assert!(!is_complete(&Report { quarantined: 1, ..Report::default() }, &none));
        assert!(!is_complete(&Report::default(), &Tally { nameless: 1, ..Tally::default() }));
    }
}
