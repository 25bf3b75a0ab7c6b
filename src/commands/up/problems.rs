//! The problems of `harvest up` in words: failures, and apart from them notes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use gatherer::problems::{Entry, FILE, PROBLEMS_MAX, is_note};
use gatherer::spec;
use serde::Deserialize;
use web::foreign::{harmless, visible};

use super::records;
use super::targets::Targets;
use crate::admin::Admin;
use crate::output;

/// Number of failures that are printed.
const SHOWN: usize = 3;

/// What both the answer to `GET /problems` and the gatherer's file have.
#[derive(Debug, Deserialize)]
struct Problems {
    newest: Vec<Entry>,
}

/// Prints the first failures in words and counts the others; counts the notes by kind. The rest is
/// printed by `command`.
pub(super) fn print(gatherer: &gatherer::Handle, command: &str) -> anyhow::Result<()> {
    for line in summary(&gatherer.status().problems, &gatherer.problems(), command) {
        output::line(&harmless(&line))?;
    }
    Ok(())
}

fn summary(by_kind: &BTreeMap<String, u64>, newest: &[Entry], command: &str) -> Vec<String> {
    let count = |wanted: bool| -> u64 {
        by_kind.iter().filter(|(kind, _)| is_note(kind) == wanted).map(|(_, it)| it).sum()
    };
    let (failures, notes) = (count(false), count(true));
    let mut lines = Vec::new();
    if 0 < failures {
        let named = newest.iter().rev().filter(|it| !is_note(&it.kind)).take(SHOWN);
        let named: Vec<String> = named.map(words).collect();
        lines.push(format!("problems  {}:", output::counted(failures, "failure")));
        lines.extend(named.iter().map(|it| format!("          {it}")));
        let more = failures.saturating_sub(named.len() as u64);
        if 0 < more {
            lines.push(format!("          {more} more: {command}"));
        }
    }
    if 0 < notes {
        let kinds = by_kind.iter().filter(|(kind, _)| is_note(kind));
        let kinds: Vec<String> = kinds.map(|(kind, count)| format!("{kind} {count}")).collect();
        lines.push(format!(
            "notes     {} ({}): {command}",
            output::counted(notes, "note"),
            kinds.join(", ")
        ));
    }
    lines
}

/// Returns a problem as one line: the path of a local file, and what is the matter.
fn words(problem: &Entry) -> String {
    let object = if problem.object.starts_with("file://") {
        spec::file_path(&problem.object).display().to_string()
    } else {
        problem.object.clone()
    };
    let message = problem.message.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}: {message}", visible(&object))
}

/// Prints the problems with `targets`, all that are kept: of the running `harvest up`, or of the
/// last one that ran on the data folder.
pub(super) async fn command(targets: &Targets, data: &Path) -> anyhow::Result<ExitCode> {
    let all = records::all().into_iter().map(|it| (it.is_running, it.record));
    let running = all.filter(|(is_running, it)| *is_running && it.is_of(targets)).map(|it| it.1);
    let running = running.filter_map(|it| Some((it.admin?, it.data()))).next();
    let bytes = match running {
        Some((address, data)) => {
            let at = daemon::auth::AdminAddress { address, is_secure: false };
            Admin::of_data(&at, &data.join("gatherer"))?.get("problems").await?
        }
        None => match fs::read(data.join("gatherer").join(FILE)) {
            Ok(bytes) => bytes,
            Err(_) => {
                bail!("`harvest up` has not gathered this yet: {} is not there", data.display())
            }
        },
    };
    let problems: Problems =
        serde_json::from_slice(&bytes).context("the list is of another version")?;
    for (title, wanted) in [("failures", false), ("notes", true)] {
        let listed: Vec<&Entry> =
            problems.newest.iter().rev().filter(|it| is_note(&it.kind) == wanted).collect();
        if !listed.is_empty() {
            output::line(title)?;
        }
        for problem in listed {
            output::line(&harmless(&format!("  {}  [{}]", words(problem), problem.kind)))?;
        }
    }
    match problems.newest.len() {
        0 => output::note("no problems"),
        PROBLEMS_MAX.. => {
            output::note(&format!("these are the newest {PROBLEMS_MAX}; older ones are not kept"));
        }
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_are_named_and_notes_counted_apart() {
        let entry = |name: &str, kind: &str| Entry {
            object: format!("file:///a%20b/{name}"),
            kind: kind.to_owned(),
            message: "is\nodd".to_owned(),
            at: 0,
        };
        // The newest are first.
        let newest: Vec<Entry> = (0..5).rev().map(|it| entry(&it.to_string(), "broken")).collect();
        let newest = [vec![entry("n", "limit")], newest].concat();
        let by_kind = BTreeMap::from([
            ("broken".to_owned(), 5),
            ("limit".to_owned(), 1),
            ("link-loop".to_owned(), 2),
        ]);
        let expected = [
            "problems  5 failures:",
            "          /a b/0: is odd",
            "          /a b/1: is odd",
            "          /a b/2: is odd",
            "          2 more: ask",
            "notes     3 notes (limit 1, link-loop 2): ask",
        ];
        assert_eq!(summary(&by_kind, &newest, "ask"), expected);
        assert_eq!(summary(&BTreeMap::new(), &[], "ask"), [] as [&str; 0]);
    }
}
