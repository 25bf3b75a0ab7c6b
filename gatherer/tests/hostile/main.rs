//! The hostile set: generated objects that try to harm a gatherer. Each goes alone through the
//! chain of a gatherer, and most go through one run beside good files.
//!
//! Each becomes a record within the promised time and memory, with a problem if a part was left
//! out, and the run goes on. The maker and the reader of an object are processes of their own (this
//! program, started anew), so that nothing else is in the measured memory.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests may panic and print")]

mod archives;
mod binaries;
mod bombs;
mod documents;
mod pages;
mod peak;
mod pictures;
mod programs;
mod sheets;
mod texts;

#[path = "../../../essence/tests/made/mod.rs"]
mod made;
#[path = "../support/mod.rs"]
mod support;

mod run;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use essence::chain::{Chain, Host};
use essence::worker::{Program, serve};
use formats::object::{Object, ProblemKind, Summary};
use gatherer::config::READ_BYTES_MAX;
use gatherer::tree::file;
use gatherer::{Config, spec};
use net::clock;
use peak::{Peak, Watch};
use soif::Record;
use url::Url;

/// The allocator of `harvest` and its workers, since it determines time and memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Maximum time for an object: five times the promised 10 s, since the machine may be busy.
const TIME_MAX: Duration = Duration::from_secs(5 * 10);
/// Maximum resident memory of the gatherer, in bytes, with the pages of its program; those of a debug build are more.
const OWN_BYTES_MAX: u64 = if cfg!(debug_assertions) { 300 << 20 } else { 250 << 20 };
/// Maximum resident memory of a worker, in bytes: its limit and growth between two checks.
const WORKER_BYTES_MAX: u64 = (256 + 64) << 20;
/// Time between two checks of the workers.
pub(crate) const LOOK: Duration = Duration::from_millis(2);
/// Maximum length of a record, in bytes.
const RECORD_BYTES_MAX: usize = 1 << 20;
const VALUE_BYTES_MAX: usize = 128 << 10;
/// Maximum length of all records of one object together, in bytes.
const ANSWER_BYTES_MAX: usize = 128 << 20;
const RECORDS_MAX: usize = 1 + 10_000;

#[derive(Clone, Copy)]
pub(crate) struct Case {
    /// Its file's name.
    name: &'static str,
    /// Kinds of problems, by `|`; one of them is expected unless time is up. May be empty.
    problems: &'static str,
    make: fn() -> Vec<u8>,
}

pub(crate) const fn case(
    name: &'static str,
    problems: &'static str,
    make: fn() -> Vec<u8>,
) -> Case {
    Case { name, problems, make }
}

fn all() -> impl Iterator<Item = Case> {
    let sets = [
        bombs::CASES,
        archives::CASES,
        pages::CASES,
        texts::CASES,
        documents::CASES,
        sheets::CASES,
        pictures::CASES,
        binaries::CASES,
        programs::CASES,
    ];
    sets.into_iter().flatten().copied()
}

/// Is a worker if standard input is a socket; does nothing in a usual run.
#[test]
fn a_worker() {
    let input = std::fs::read_link("/proc/self/fd/0").unwrap_or_default();
    if input.to_string_lossy().starts_with("socket:") {
        serve::serve(clock::monotonic).unwrap();
        // Other calls at the end of a test program are not allowed here.
        std::process::exit(0);
    }
}

/// Returns the command that starts this test program as a worker.
pub(crate) fn worker() -> Program {
    Program {
        path: std::fs::read_link("/proc/self/exe").unwrap(),
        arguments: ["a_worker", "--exact", "-q"].map(str::to_owned).to_vec(),
    }
}

/// Variable with the name of the child process's object; empty for all objects of a run.
const CASE: &str = "HARVEST_HOSTILE_CASE";
/// Variable with the folder of the object.
const FOLDER: &str = "HARVEST_HOSTILE_FOLDER";
/// Name of the file that the child writes there: a line about the object, and one for each fault.
const VERDICT: &str = "verdict";

/// Runs `a_maker` or `a_gatherer` in a process of its own.
///
/// # Errors
///
/// Returns the output if it has failed.
pub(crate) fn apart(test: &str, folder: &Path, case: &str) -> Result<(), String> {
    let Program { path, .. } = worker();
    let mut command = std::process::Command::new(path);
    command.args([test, "--exact", "-q", "--nocapture"]).env(FOLDER, folder).env(CASE, case);
    // Freed memory goes back at once: what is asked here is how much is in use, not how long the allocator keeps it.
    command.env("MIMALLOC_PURGE_DELAY", "0");
    let output = command.output().unwrap();
    let text = || String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(()) } else { Err(text()) }
}

/// Returns the folder and object of this child process; `None` in a usual run.
fn assignment() -> Option<(PathBuf, String)> {
    let folder = std::env::var_os(FOLDER)?;
    Some((folder.into(), std::env::var(CASE).unwrap()))
}

/// Makes the assigned objects; does nothing in a usual run.
#[test]
fn a_maker() {
    let Some((folder, name)) = assignment() else { return };
    match all().find(|it| it.name == name) {
        Some(case) => std::fs::write(folder.join(case.name), (case.make)()).unwrap(),
        None => run::make(&folder),
    }
}

/// Reads the assigned object, or gathers the tree of the run; does nothing in a usual run.
#[test]
fn a_gatherer() {
    let Some((folder, name)) = assignment() else { return };
    match all().find(|it| it.name == name) {
        Some(case) => std::fs::write(folder.join(VERDICT), read(&case, &folder)).unwrap(),
        None => run::run(),
    }
}

/// Lets only one test at a time measure time and memory.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn names_are_unique() {
    let mut names: Vec<&str> = all().map(|it| it.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn bombs_end() {
    check(bombs::CASES);
}

#[test]
fn archives_that_lie_end() {
    check(archives::CASES);
}

#[test]
fn pages_without_end_end() {
    check(pages::CASES);
}

#[test]
fn texts_without_end_end() {
    check(texts::CASES);
}

#[test]
fn documents_that_lie_end() {
    check(documents::CASES);
}

#[test]
fn pictures_that_lie_end() {
    check(pictures::CASES);
}

#[test]
fn sounds_and_fonts_that_lie_end() {
    check(binaries::CASES);
}

#[test]
fn programs_that_lie_end() {
    check(programs::CASES);
}

/// Reads each object, and checks its records, time and memory.
fn check(cases: &[Case]) {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    let mut failed = Vec::new();
    for case in cases {
        let done = apart("a_maker", &root, case.name)
            .and_then(|()| apart("a_gatherer", &root, case.name))
            .map(|()| std::fs::read_to_string(root.join(VERDICT)).unwrap());
        let verdict = done.unwrap_or_else(|text| format!("{}\n{text}", case.name));
        std::fs::remove_file(root.join(case.name)).unwrap();
        let (line, faults) = verdict.split_once('\n').unwrap_or((&verdict, ""));
        println!("{line}");
        failed.extend((!faults.is_empty()).then(|| verdict.clone()));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Types, opens and summarizes the object like a gatherer; returns the text of [`VERDICT`].
fn read(case: &Case, root: &Path) -> String {
    let config = Config::for_paths(&[root.to_owned()], &root.join("data"));
    let config = Config { worker: Some(worker()), ..config };
    let host = Host {
        starter: config.worker.clone(),
        scratch: root.join("scratch"),
        clock: clock::monotonic,
        now_ms: clock::now_ms(),
    };
    let chain = Chain::new(&config.essence, &config.full_text, host).unwrap();
    let object = fetched(root, &root.join(case.name));
    let (url, size) = (object.url.clone(), object.size);
    let (began, watch) = (clock::monotonic(), Watch::start(LOOK));
    let found = chain.extract(object, &mut |_, _| ());
    let (took, peak) = (clock::monotonic() - began, watch.stop());
    let mut faults = faults_of(case, &url, &found);
    faults.extend(overdone(took, peak));
    let problems: Vec<String> = found
        .iter()
        .flat_map(|it| &it.problems)
        .take(3)
        .map(|it| format!("{}: {}", it.kind, it.message.chars().take(200).collect::<String>()))
        .collect();
    let line = format!(
        "{} of {size} bytes: {} records, {took:?}, {peak:?}, {problems:?}",
        case.name,
        found.len()
    );
    [vec![line], faults].concat().join("\n")
}

/// Reads the file like a gatherer.
fn fetched(root: &Path, path: &Path) -> Object {
    let nowhere = Path::new("/nowhere");
    let read = file::read(path, (root, nowhere), READ_BYTES_MAX, false, u64::MAX, &|| false);
    let content = read.unwrap();
    Object {
        url: spec::file_url(path),
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        modified: None,
        size: content.stat.size,
        truncated: content.truncated,
        rest: content.rest(),
        md5: (!content.truncated).then_some(content.md5),
        bytes: content.bytes,
    }
}

fn overdone(took: Duration, peak: Peak) -> Vec<String> {
    let mut faults = Vec::new();
    if TIME_MAX < took {
        faults.push("takes too long".to_owned());
    }
    if OWN_BYTES_MAX < peak.own || WORKER_BYTES_MAX < peak.workers {
        faults.push("takes too much memory".to_owned());
    }
    faults
}

fn faults_of(case: &Case, url: &str, found: &[Summary]) -> Vec<String> {
    let mut faults = Vec::new();
    if found.first().map(|it| it.record.url.as_str()) != Some(url) {
        faults.push("has no record of its own first".to_owned());
    }
    let problems = || found.iter().flat_map(|it| &it.problems);
    if let Some(fault) = problems().find(|it| it.kind == ProblemKind::Fault) {
        faults.push(format!("meets a fault of ours: {fault}"));
    }
    let has_problem = |kind: &str| problems().any(|it| it.kind.name() == kind);
    // On a busy machine, time may be up before another problem is found.
    if !case.problems.is_empty() && !case.problems.split('|').chain(["time"]).any(has_problem) {
        faults.push(format!("has no problem of kind {}", case.problems));
    }
    let sizes = found.iter().map(|it| size(&it.record));
    if RECORDS_MAX < found.len() || ANSWER_BYTES_MAX < sizes.sum() {
        faults.push("gives too many records".to_owned());
    }
    faults.extend(found.iter().filter_map(|it| fault_of(url, &it.record)));
    faults.truncate(5);
    faults
}

fn size(record: &Record) -> usize {
    record.attributes().iter().map(|it| it.name.len() + it.value.len()).sum()
}

/// Returns the fault of a record of the object at `url`, or of one of its members.
fn fault_of(url: &str, record: &Record) -> Option<String> {
    let attributes = record.attributes();
    if RECORD_BYTES_MAX < size(record) {
        return Some(format!("the record of {} is too long", record.url));
    }
    if let Some(it) = attributes.iter().find(|it| VALUE_BYTES_MAX < it.value.len()) {
        return Some(format!("{} of {} is too long", it.name, record.url));
    }
    if let Some(it) = attributes.iter().find(|it| std::str::from_utf8(&it.value).is_err()) {
        return Some(format!("{} of {} is not UTF-8", it.name, record.url));
    }
    // A member stays in its container, whatever its name.
    let member = record.url.strip_prefix(url);
    let is_within = member.is_some_and(|it| it.is_empty() || it.starts_with('#'));
    let is_there = Url::parse(&record.url).is_ok_and(|it| it.path() == path_of(url));
    (!is_within || !is_there).then(|| format!("{} leads elsewhere", record.url))
}

fn path_of(url: &str) -> String {
    Url::parse(url).unwrap().path().to_owned()
}
