//! The hostile set: objects that are made to hurt a gatherer, made by code, each by itself through the
//! chain as a gatherer runs it, and all of them beside good files in one run.
//!
//! Each becomes a record, with a problem by name where something of it was left out, within the time and
//! the memory that are promised; and the run goes on. What makes an object, and what reads it, are
//! processes of their own: this program, started anew. So nothing else is in the memory that is measured.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests may panic and print")]

mod archives;
mod binaries;
mod bombs;
mod documents;
mod pages;
mod peak;
mod pictures;
mod programs;
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

/// As in `harvest`, and so in its workers: it decides over time and memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is promised of every object is 10 s, here on a machine that may be busy, without optimization.
const TIME_MAX: Duration = Duration::from_secs(5 * 10);
/// Most resident memory of the gatherer, in bytes.
const OWN_BYTES_MAX: u64 = 250 << 20;
/// Most resident memory of a worker, in bytes, and what it may take beyond it between two looks of the
/// gatherer's.
const WORKER_BYTES_MAX: u64 = (256 + 64) << 20;
/// How often workers are looked at.
pub(crate) const LOOK: Duration = Duration::from_millis(2);
/// Longest record, in bytes: no attribute is longer than the keywords, nor are there many.
const RECORD_BYTES_MAX: usize = 1 << 20;
const VALUE_BYTES_MAX: usize = 128 << 10;
/// Most bytes of all records of one object, and most of them.
const ANSWER_BYTES_MAX: usize = 128 << 20;
const RECORDS_MAX: usize = 1 + 10_000;

/// A hostile object.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    /// Its file's name, by which it is met.
    name: &'static str,
    /// Kinds of problems, one of which is to be said of it unless it runs out of time; none where nothing
    /// of it is lost.
    said: &'static str,
    make: fn() -> Vec<u8>,
}

pub(crate) const fn case(name: &'static str, said: &'static str, make: fn() -> Vec<u8>) -> Case {
    Case { name, said, make }
}

/// Every one of them.
fn all() -> impl Iterator<Item = Case> {
    let sets = [
        bombs::CASES,
        archives::CASES,
        pages::CASES,
        texts::CASES,
        documents::CASES,
        pictures::CASES,
        binaries::CASES,
        programs::CASES,
    ];
    sets.into_iter().flatten().copied()
}

/// Is a worker where standard input is a socket; ends at once in a usual run.
#[test]
fn a_worker() {
    let input = std::fs::read_link("/proc/self/fd/0").unwrap_or_default();
    if input.to_string_lossy().starts_with("socket:") {
        serve::serve(clock::monotonic).unwrap();
        // What else a test program does at its end is not allowed here.
        std::process::exit(0);
    }
}

/// Starts this test program as a worker.
pub(crate) fn worker() -> Program {
    Program {
        path: std::fs::read_link("/proc/self/exe").unwrap(),
        arguments: ["a_worker", "--exact", "-q"].map(str::to_owned).to_vec(),
    }
}

/// Tells a process of ours which object it is about, by its name; none for all of a run.
const CASE: &str = "HARVEST_HOSTILE_CASE";
/// Tells it where the object is, or shall be.
const FOLDER: &str = "HARVEST_HOSTILE_FOLDER";
/// What it writes there: a line about the object, and a line for each fault.
const VERDICT: &str = "verdict";

/// Has this program run one of the three tests that are no tests, in a process of its own.
///
/// # Errors
///
/// It has failed: what it said.
pub(crate) fn apart(test: &str, folder: &Path, case: &str) -> Result<(), String> {
    let Program { path, .. } = worker();
    let mut command = std::process::Command::new(path);
    command.args([test, "--exact", "-q", "--nocapture"]).env(FOLDER, folder).env(CASE, case);
    let output = command.output().unwrap();
    let said = || String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(()) } else { Err(said()) }
}

/// Returns what this process is told to do.
fn told() -> Option<(PathBuf, String)> {
    let folder = std::env::var_os(FOLDER)?;
    Some((folder.into(), std::env::var(CASE).unwrap()))
}

/// Makes objects where it is told to; ends at once in a usual run.
#[test]
fn a_maker() {
    let Some((folder, name)) = told() else { return };
    match all().find(|it| it.name == name) {
        Some(case) => std::fs::write(folder.join(case.name), (case.make)()).unwrap(),
        None => run::make(&folder),
    }
}

/// Reads the object that it is told to, or all of them; ends at once in a usual run.
#[test]
fn a_gatherer() {
    let Some((folder, name)) = told() else { return };
    match all().find(|it| it.name == name) {
        Some(case) => std::fs::write(folder.join(VERDICT), read(&case, &folder)).unwrap(),
        None => run::run(),
    }
}

/// Time and memory are measured by one test at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn names_are_met_once() {
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

/// Has each object read, and holds what comes of it against what is promised.
fn check(cases: &[Case]) {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    let mut failed = Vec::new();
    for case in cases {
        let done = apart("a_maker", &root, case.name)
            .and_then(|()| apart("a_gatherer", &root, case.name))
            .map(|()| std::fs::read_to_string(root.join(VERDICT)).unwrap());
        let verdict = done.unwrap_or_else(|said| format!("{}\n{said}", case.name));
        std::fs::remove_file(root.join(case.name)).unwrap();
        let (line, faults) = verdict.split_once('\n').unwrap_or((&verdict, ""));
        println!("{line}");
        failed.extend((!faults.is_empty()).then(|| verdict.clone()));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Has the object typed, opened and summarized as a gatherer does it; returns what is to be said of it in
/// a line, and every fault in a line of its own.
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

/// Reads the file as a gatherer does.
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

/// Returns what is wrong with what was made of an object.
fn faults_of(case: &Case, url: &str, found: &[Summary]) -> Vec<String> {
    let mut faults = Vec::new();
    if found.first().map(|it| it.record.url.as_str()) != Some(url) {
        faults.push("has no record of its own first".to_owned());
    }
    let problems = || found.iter().flat_map(|it| &it.problems);
    if let Some(fault) = problems().find(|it| it.kind == ProblemKind::Fault) {
        faults.push(format!("meets a fault of ours: {fault}"));
    }
    let is_said = |kind: &str| problems().any(|it| it.kind.name() == kind);
    // On a machine that is busy, time may be up before anything else is found.
    if !case.said.is_empty() && !case.said.split('|').chain(["time"]).any(is_said) {
        faults.push(format!("is not said to be {}", case.said));
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

/// Returns what is wrong with a record of the object at `url`, or of one of its members.
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
    // Wherever a member says that it lies, it lies in its container.
    let member = record.url.strip_prefix(url);
    let is_within = member.is_some_and(|it| it.is_empty() || it.starts_with('#'));
    let is_there = Url::parse(&record.url).is_ok_and(|it| it.path() == path_of(url));
    (!is_within || !is_there).then(|| format!("{} leads elsewhere", record.url))
}

fn path_of(url: &str) -> String {
    Url::parse(url).unwrap().path().to_owned()
}
