//! `harvest essence summarize` and `harvest essence explain`: the records that a gatherer would
//! publish for files, and the site's rules that apply.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use clap::ValueEnum;
use essence::chain::{Chain, Host};
use essence::rules::{AppliedRule, Verdict};
use essence::select::LeftOut;
use formats::object::{Object, Rest, Summary};
use gatherer::Config;
use gatherer::spec::{self, Map};
use gatherer::tree::file::{OpenFile, stat_of};
use gatherer::tree::selection::FileSelection;
use net::clock;
use soif::json;
use soif::writer::write_record;

use super::{files, note_unreadable};
use crate::commands::gatherer::load;
use crate::commands::worker;
use crate::output;

/// Files to summarize, and the settings to use.
#[derive(Debug, clap::Args)]
pub(crate) struct Summarize {
    /// Files, and folders with all files below them.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Summarize as the gatherer with these settings does.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Format of the records.
    #[arg(long, value_enum, default_value = "soif")]
    to: RecordFormat,
}

/// Format of printed records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RecordFormat {
    /// SOIF.
    Soif,
    /// One JSON object a line.
    Json,
}

/// Files to explain, and the settings with the rules.
#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// Files, and folders with all files below them.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// The gatherer's settings, which name the rules.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

/// Prints the records of files; the exit code is 1 if a file cannot be read.
pub(super) fn summarize(args: &Summarize) -> anyhow::Result<ExitCode> {
    let working = WorkingChain::new(args.config.as_deref())?;
    let mut code = ExitCode::SUCCESS;
    for path in files(&args.paths, &mut code) {
        let summaries = match working.read(&path) {
            Ok(FileResult::Summarized(summaries)) => summaries,
            Ok(FileResult::LeftOut(why)) => {
                output::note(&format!("harvest: {} is left out: {why}", path.display()));
                continue;
            }
            Err(error) => {
                note_unreadable(&path, &error);
                code = ExitCode::FAILURE;
                continue;
            }
        };
        for mut summary in summaries {
            note_problems(&summary);
            let (verdict, applied) = working.chain.tune(&mut summary.record);
            for why in applied.iter().flat_map(AppliedRule::failures) {
                output::note(&format!("harvest: {}: {why}", summary.record.url));
            }
            if verdict == Verdict::Deleted {
                continue;
            }
            working.chain.annotate(&mut summary.record);
            let mut text = Vec::new();
            match args.to {
                RecordFormat::Soif => write_record(&mut text, &summary.record),
                RecordFormat::Json => {
                    text = serde_json::to_vec(&json::to_json(&summary.record))?;
                    text.push(b'\n');
                }
            }
            io::stdout().lock().write_all(&text)?;
        }
    }
    Ok(code)
}

/// Prints the rules and annotations that hold for files, with their effects; the exit code is 1 if
/// a file cannot be read, or an instruction fails.
pub(super) fn explain(args: &Explain) -> anyhow::Result<ExitCode> {
    let working = WorkingChain::new(Some(&args.config))?;
    let mut code = ExitCode::SUCCESS;
    for path in files(&args.paths, &mut code) {
        let summaries = match working.read(&path) {
            Ok(FileResult::Summarized(summaries)) => summaries,
            Ok(FileResult::LeftOut(why)) => {
                output::line(&path.display().to_string())?;
                output::line(&format!("  it is left out: {why}"))?;
                continue;
            }
            Err(error) => {
                note_unreadable(&path, &error);
                code = ExitCode::FAILURE;
                continue;
            }
        };
        for mut summary in summaries {
            note_problems(&summary);
            let kind = summary.record.text("Type").unwrap_or_default().into_owned();
            output::line(&format!("{} ({kind})", summary.record.url))?;
            let (verdict, applied) = working.chain.tune(&mut summary.record);
            if applied.is_empty() {
                output::line("  no rule holds for it")?;
            }
            for rule in applied {
                output::line(&format!("  line {}: {}", rule.line, rule.condition))?;
                for (action, outcome) in rule.done {
                    let failed = outcome.err().map(|why| format!("   FAILED: {why}"));
                    code = if failed.is_some() { ExitCode::FAILURE } else { code };
                    output::line(&format!("    {action}{}", failed.unwrap_or_default()))?;
                }
            }
            if verdict == Verdict::Deleted {
                output::line("  it is left out")?;
                continue;
            }
            for (position, statements) in working.chain.annotate(&mut summary.record) {
                output::line(&format!("  {position}: annotation"))?;
                for it in statements {
                    output::line(&format!("    {it}"))?;
                }
            }
        }
    }
    Ok(code)
}

/// Result of reading a file.
enum FileResult {
    /// Summaries of the file and of the objects in it.
    Summarized(Vec<Summary>),
    /// The gatherer leaves the file out, for this reason.
    LeftOut(&'static str),
}

/// The steps of Essence with a site's settings, and a temporary folder for the site's programs.
struct WorkingChain {
    chain: Chain,
    gathered: FileSelection,
    maps: Vec<Map>,
    read_bytes_max: u64,
    /// Removed last.
    _folder: Folder,
}

/// A folder made by this process. It is removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            output::note(&format!("harvest: cannot remove {}: {error}", self.0.display()));
        }
    }
}

impl Folder {
    /// Makes a folder that only its owner can read. Others can write to the parent: an existing
    /// entry at `path` is foreign, so it is neither read nor removed.
    fn new(path: PathBuf) -> anyhow::Result<Self> {
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl WorkingChain {
    fn new(config: Option<&Path>) -> anyhow::Result<Self> {
        let name = format!("harvest-{}-{}", std::process::id(), clock::now_ms());
        Self::new_in(std::env::temp_dir().join(name), config)
    }

    /// Makes `folder`, and returns the chain for `config` that works in it.
    fn new_in(folder: PathBuf, config: Option<&Path>) -> anyhow::Result<Self> {
        let config = match config {
            Some(path) => load(path)?,
            None => Config { worker: Some(worker::program()), ..Config::new(&folder) },
        };
        let folder = Folder::new(folder)?;
        let gathered = FileSelection::new(&config).context("the settings cannot be used")?;
        let host = Host {
            starter: config.worker.clone(),
            scratch: folder.0.join("scratch"),
            clock: clock::monotonic,
            now_ms: clock::now_ms(),
        };
        let chain = Chain::new(&config.essence, &config.full_text, host);
        let chain = chain.context("the settings cannot be used")?;
        for it in chain.annotation_problems() {
            output::note(&format!("harvest: {}: {}", it.path.display(), it.message));
        }
        let read_bytes_max = config.read_bytes_max;
        Ok(Self { chain, gathered, maps: config.maps, read_bytes_max, _folder: folder })
    }

    /// Returns the summaries of a file and of the objects in it, or why the gatherer leaves the
    /// file out. Objects that are left out by type, or in an archive, are printed as notes.
    fn read(&self, path: &Path) -> io::Result<FileResult> {
        let path = std::path::absolute(path)?;
        if let Some(why) = self.gathered.leaves_out(&path, fs::metadata(&path)?.len()) {
            return Ok(FileResult::LeftOut(why));
        }
        let object = object(&path, &self.maps, self.read_bytes_max)?;
        let mut left_out = BTreeMap::<&str, u64>::new();
        let mut count = |why: LeftOut, objects| *left_out.entry(why.name()).or_default() += objects;
        let summaries = self.chain.extract(object, &mut count);
        for (why, objects) in left_out {
            output::note(&format!("harvest: {}: {objects} left out: {why}", path.display()));
        }
        Ok(FileResult::Summarized(summaries))
    }
}

/// Reads the first `bytes_max` bytes of a file, and the rest on demand, as a gatherer does.
fn object(path: &Path, maps: &[Map], bytes_max: u64) -> io::Result<Object> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut bytes = Vec::new();
    (&file).take(bytes_max).read_to_end(&mut bytes)?;
    let modified = metadata.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
    let truncated = (bytes.len() as u64) < metadata.len();
    let size = metadata.len().max(bytes.len() as u64);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let modified = modified.map(|it| it.as_secs());
    let rest = || Rest::new(Arc::new(OpenFile::new(file, stat_of(&metadata))));
    Ok(Object {
        name,
        modified,
        size,
        truncated,
        rest: truncated.then(rest),
        ..Object::whole(spec::public_url(maps, path), bytes)
    })
}

fn note_problems(summary: &Summary) {
    for problem in &summary.problems {
        output::note(&format!("harvest: {problem}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_folder_is_new_and_is_removed() {
        let outer = tempfile::tempdir().unwrap();
        let [theirs, ours] = ["theirs", "ours"].map(|it| outer.path().join(it));
        fs::create_dir_all(theirs.join("scratch")).unwrap();
        fs::write(theirs.join("scratch/kept"), "").unwrap();
        std::os::unix::fs::symlink(&theirs, &ours).unwrap();
        assert!(WorkingChain::new_in(ours.clone(), None).is_err());
        assert!(theirs.join("scratch/kept").exists());
        fs::remove_file(&ours).unwrap();
        drop(WorkingChain::new_in(ours.clone(), None).unwrap());
        let settings = outer.path().join("gatherer.toml");
        fs::write(&settings, "name = 'a'\ndata = 'd'\n[[root]]\nurl = 'file:///srv'\n[essence]\nprograms_read = ['/nowhere']\n")
            .unwrap();
        let refused = WorkingChain::new_in(ours.clone(), Some(&settings)).map(drop).unwrap_err();
        assert!(format!("{refused:#}").contains("/nowhere"), "{refused:#}");
        assert!(!ours.exists());
    }
}
