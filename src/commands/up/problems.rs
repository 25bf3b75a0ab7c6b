//! The problems of `harvest up` in words: failures, and apart from them notes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use gatherer::problems::{Entry, is_note};
use gatherer::spec;
use serde::{Deserialize, Serialize};
use web::foreign::{harmless, visible};

use super::records;
use super::targets::Targets;
use crate::admin::Admin;
use crate::output;

/// File of the problems in the data folder.
pub(super) const FILE: &str = "problems.json";

/// Number of failures that are printed.
const SHOWN: usize = 3;

/// The answer to `GET /problems`, and the file.
#[derive(Debug, Deserialize, Serialize)]
struct Problems {
    by_kind: BTreeMap<String, u64>,
    newest: Vec<Entry>,
}

/// Prints the first failures in words and counts the others; counts the notes by kind. The rest is
/// printed by `command`. Writes all to a file in `data` for it.
pub(super) fn print(gatherer: &gatherer::Handle, data: &Path, command: &str) -> anyhow::Result<()> {
    let problems = Problems { by_kind: gatherer.status().problems, newest: gatherer.problems() };
    write(data, &problems).with_context(|| format!("cannot write to {}", data.display()))?;
    for line in summary(&problems, command) {
        output::line(&harmless(&line))?;
    }
    Ok(())
}

/// Writes the file. It names private files, so that only its owner may read it, wherever the data
/// folder is.
fn write(data: &Path, problems: &Problems) -> anyhow::Result<()> {
    let file = tempfile::NamedTempFile::new_in(data)?;
    serde_json::to_writer(&file, problems)?;
    file.persist(data.join(FILE))?;
    Ok(())
}

fn summary(problems: &Problems, command: &str) -> Vec<String> {
    let count = |wanted: bool| -> u64 {
        problems.by_kind.iter().filter(|(kind, _)| is_note(kind) == wanted).map(|(_, it)| it).sum()
    };
    let (failures, notes) = (count(false), count(true));
    let mut lines = Vec::new();
    if 0 < failures {
        let named = problems.newest.iter().rev().filter(|it| !is_note(&it.kind)).take(SHOWN);
        let named: Vec<String> = named.map(words).collect();
        lines.push(format!("problems  {}:", output::counted(failures, "failure")));
        lines.extend(named.iter().map(|it| format!("          {it}")));
        let more = failures.saturating_sub(named.len() as u64);
        if 0 < more {
            lines.push(format!("          {more} more: {command}"));
        }
    }
    if 0 < notes {
        let kinds = problems.by_kind.iter().filter(|(kind, _)| is_note(kind));
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

/// Prints all problems with `targets`: of the running `harvest up`, or of the last one that ran on
/// the data folder.
pub(super) async fn command(targets: &Targets, data: &Path) -> anyhow::Result<ExitCode> {
    let all = records::all().into_iter().map(|it| (it.is_running, it.record));
    let running = all.filter(|(is_running, it)| *is_running && it.is_of(targets)).map(|it| it.1);
    let running = running.filter_map(|it| Some((it.admin?, it.data()))).next();
    let bytes = match running {
        Some((address, data)) => {
            let at = daemon::auth::AdminAddress { address, is_secure: false };
            Admin::of_data(&at, &data.join("gatherer"))?.get("problems").await?
        }
        None => match fs::read(data.join(FILE)) {
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
    if problems.newest.is_empty() {
        output::note("no problems");
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
        assert_eq!(summary(&Problems { by_kind, newest }, "ask"), expected);
        let none = Problems { by_kind: BTreeMap::new(), newest: Vec::new() };
        assert_eq!(summary(&none, "ask"), [] as [&str; 0]);
    }

    #[test]
    fn only_the_owner_reads_the_list() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            write(dir.path(), &Problems { by_kind: BTreeMap::new(), newest: Vec::new() }).unwrap();
        }
        let mode = fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
