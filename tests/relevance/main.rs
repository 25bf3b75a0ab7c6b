//! Tests of how well `harvest up` and its search answer, measured by `harvest bench relevance`.
//!
//! Known items: what people look for in the documents of Debian that `prepare` unpacks (known_items.tsv), and the
//! objects that are right (known_items.qrels). The questions were written from the documents, not from answers.
//! A made tree (made.rs) adds what real documents have too little of.
//!
//! The floors are a little below what was measured: who improves the ranking raises them, and who lowers them says
//! why. The goal is the right object first for 65 % of the known items, and among the first ten for 90 %.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "shows the figures to who asks with --nocapture")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Running, harvest, run_ok, write};

#[allow(dead_code, reason = "the other tests of processes need the rest")]
#[path = "../end_to_end/harness.rs"]
mod harness;
mod made;
mod route;

/// Lowest measures with which a test passes.
struct Floors {
    /// Share of questions with a right object first.
    first: f64,
    /// Share of questions with a right object among the first ten.
    in_ten: f64,
    /// Mean nDCG@10.
    ndcg: f64,
}

/// Measured: 0.703, 0.903, 0.743.
const KNOWN_ITEMS: Floors = Floors { first: 0.67, in_ten: 0.90, ndcg: 0.71 };

/// Measured: 0.981, 1.000, 0.990.
const MADE: Floors = Floors { first: 0.95, in_ten: 0.98, ndcg: 0.96 };

/// Lowest number of known items.
const QUESTIONS_MIN: u64 = 100;

/// Starts gatherer and broker over the folders, and waits until everything is indexed; returns the search page, too.
fn serve(data: &Path, folders: &[&Path]) -> (Running, String) {
    let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(data).args(folders);
    let mut running = Running::start(command);
    let page = running.search_url();
    // A line every few seconds says how far it is.
    while !running.line_with("gather").starts_with("gathered") {}
    running.line_with("indexed ");
    (running, page)
}

/// Measures, prints the figures, and checks them.
fn check(page: &str, queries: &Path, qrels: &Path, floors: &Floors) -> Value {
    let files = [queries, qrels].map(|it| it.to_str().unwrap());
    let args = ["bench", "relevance", "--json", "--broker", page, "--queries", files[0]];
    let json = run_ok(args.into_iter().chain(["--qrels", files[1]]));
    let report: Value = serde_json::from_str(&json).unwrap();
    for asked in report["each"].as_array().unwrap().iter().filter(|it| it["first"] != 1.0) {
        println!("rank {}: {} {}", asked["first_relevant"], asked["query"], asked["text"]);
    }
    println!("{} queries, {} without a hit", report["queries"], report["no_hit"]);
    println!("{:#}", report["mean"]);
    for (name, floor) in
        [("first", floors.first), ("in_ten", floors.in_ten), ("ndcg_10", floors.ndcg)]
    {
        let value = report["mean"][name].as_f64().unwrap();
        assert!(floor <= value, "{name} is {value:.3}, below {floor}; see the questions above");
    }
    report
}

/// Returns the documents of the judgments that are not exactly one file below `folder`.
fn unclear(qrels: &str, folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut ahead = vec![folder.to_owned()];
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                ahead.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    let lines = qrels.lines().filter(|line| !line.starts_with('#'));
    let documents = lines.map(|line| line.split(' ').nth(2).unwrap());
    let is_unclear = |it: &&str| files.iter().filter(|file| file.ends_with(it)).count() != 1;
    documents.filter(is_unclear).map(str::to_owned).collect()
}

#[test]
fn known_items_are_found_among_documents_of_debian() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let here = root.join("tests/relevance");
    let prepared = Command::new(here.join("prepare")).status().unwrap();
    assert!(prepared.success(), "the documents are missing; see above");
    let documents = root.join("target/relevance/documents");
    let (queries, qrels) = (here.join("known_items.tsv"), here.join("known_items.qrels"));
    let judgments = fs::read_to_string(&qrels).unwrap();
    assert_eq!(unclear(&judgments, &documents), [""; 0], "judged, but no one document");

    let data = tempfile::tempdir().unwrap();
    let (mut running, page) = serve(data.path(), &[&documents.join("doc"), &documents.join("man")]);
    let report = check(&page, &queries, &qrels, &KNOWN_ITEMS);
    assert!(QUESTIONS_MIN <= report["queries"].as_u64().unwrap(), "{}", report["queries"]);
    // Once a tool, a fixture and a change log were the first.
    for text in ["git", "bash", "list comprehension"] {
        let asked = report["each"].as_array().unwrap().iter().find(|it| it["text"] == text);
        assert_eq!(asked.unwrap()["first"], 1.0, "{text}");
    }
    assert!(running.stop("INT").success());
}

#[test]
fn what_a_made_tree_is_asked_is_found() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (queries, judgments) = made::make(tree.path(), made::SEED);
    assert_eq!(unclear(&judgments, tree.path()), [""; 0]);
    let queries = write(data.path(), "queries", queries);
    let qrels = write(data.path(), "qrels", judgments);
    let (mut running, page) = serve(&data.path().join("data"), &[tree.path()]);
    let report = check(&page, &queries, &qrels, &MADE);

    // The figures for each kind of question show what to improve.
    let mut kinds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for asked in report["each"].as_array().unwrap() {
        let kind = asked["query"].as_str().unwrap().split_once('-').unwrap().1;
        kinds.entry(kind).or_default().push(asked["first"].as_f64().unwrap());
    }
    for (kind, firsts) in kinds {
        let share = firsts.iter().sum::<f64>() / firsts.len() as f64;
        println!("{kind:<10} {share:.3} first of {}", firsts.len());
    }
    assert!(running.stop("INT").success());
}
