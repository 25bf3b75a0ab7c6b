//! Measurement of the losses and savings of summaries against full texts. `benches/essence` runs it.
//!
//! `tradeoff TREE WORK` gathers TREE once for each [`Point`], with the real gatherer, from full
//! text down to names alone. For each point it prints the sizes of feed and index, their CPU costs,
//! and how well the index answers the same questions.
//!
//! Source: TR §4: Essence against WAIS, and the reduction of network traffic.
//!
//! # What is measured
//!
//! * **Questions**: sentences of documents, drawn uniformly among all documents with a suitable one
//!   ([`questions`]). The right answer is the document, by its URL, or another document with the same text.
//! * **any**: the words of the sentence joined by OR, so that rank decides, as in WAIS. **all**: the words as
//!   typed into the box, which this query language joins by AND. **either**: all words; if no document has
//!   them all, any of them, as a person would try next.
//! * **recall**: the share of questions for which the document is among the first ten hits. **precision**: the
//!   share of those (at most) ten hits that are the document; 0 where there is no hit; the mean over all
//!   questions. **MRR**: the mean of 1/rank, 0 where it is not among the ten.
//! * **wire**: bytes that the feed sends to a new consumer after the pass, and again after a compaction.
//!   **reduction**: bytes of all files over these.
//! * **CPU**: user and system, of all threads, of gathering (reading, summarizing, committing) and of
//!   indexing.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints its results")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails may panic")]

mod measure;
mod questions;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use formats::{Detail, FullText};
use net::clock;

/// The allocator of `harvest`: the times depend on it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Time after which no further point is begun.
const TIME_MAX: Duration = Duration::from_secs(26 * 60);

/// One point of the curve: how much text records have.
struct Point {
    name: &'static str,
    detail: Detail,
    full_text: FullText,
}

/// Returns all points: first the reference, then those with names in the settings, then points between.
fn points() -> Vec<Point> {
    let summary = |name, detail| Point { name, detail, full_text: FullText::None };
    let full = |name, detail| Point { name, detail, full_text: FullText::All };
    let words = |name, words| summary(name, Detail { keywords_max: words, ..Detail::BRIEF });
    let described = Detail { description_bytes_max: 200, ..Detail::BRIEF };
    vec![
        full("full text", Detail::RICH),
        full("full text, no keywords", Detail { keywords_max: Some(0), ..Detail::RICH }),
        summary("rich", Detail::RICH),
        summary("brief", Detail::BRIEF),
        summary("terse", Detail::TERSE),
        summary("names", Detail::NAMES),
        words("60 words", Some(60)),
        words("160 words", Some(160)),
        words("all words", None),
        summary("brief, described", described),
    ]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [tree, work] = arguments.as_slice() else {
        panic!("usage: tradeoff TREE WORK; benches/essence has more");
    };
    let (tree, work) = (PathBuf::from(tree), PathBuf::from(work));
    let began = clock::monotonic();
    let files = sizes(&tree);
    let mut report = report::Report::new(&files);
    let mut questions = questions::Questions::default();
    for point in points() {
        if TIME_MAX < began.elapsed() {
            eprintln!("{}: left out, since the time is up", point.name);
            continue;
        }
        let log_step = |step: &str| {
            eprintln!("{:6.0} s  {}: {step}", began.elapsed().as_secs_f64(), point.name);
        };
        let (data, index) = (work.join("data"), work.join("index"));
        log_step("gathering");
        let gathering = measure::gather(&tree, &data, &point);
        let collection = measure::open(&data);
        log_step("weighing");
        let wire = measure::wire(&collection);
        let types = report::types(&collection, &files);
        if questions.is_empty() {
            questions = questions::draw(&collection);
        }
        log_step("indexing");
        let (indexing, engine) = measure::index(&collection, &index);
        log_step("asking");
        let scores = measure::ask(&engine, &questions);
        engine.close();
        drop(engine);
        log_step("compacting");
        let compacted = measure::compact(&collection);
        report.add(report::Row {
            name: point.name,
            records: collection.len(),
            gathering,
            indexing: indexing.cpu,
            index_bytes: indexing.bytes,
            wire,
            compacted,
            scores,
            types,
        });
        collection.close();
        drop(collection);
        fs::remove_dir_all(&data).unwrap();
        fs::remove_dir_all(&index).unwrap();
    }
    report.print(questions.len());
}

/// Returns the path and size of every file below `tree` that a gatherer takes.
fn sizes(tree: &Path) -> Vec<(PathBuf, u64)> {
    let (mut files, mut directories) = (Vec::new(), vec![tree.to_path_buf()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                files.push((entry.path(), entry.metadata().unwrap().len()));
            }
        }
    }
    files.sort();
    files
}
