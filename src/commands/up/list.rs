//! `harvest up --list` and `harvest up --remove`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use indicatif::HumanBytes;
use jiff::{Timestamp, tz::TimeZone};
use web::foreign::{harmless, visible};

use super::records::{self, Seen};
use super::targets;
use crate::output;

/// Prints a line for each `harvest up`, running or stopped. Blocks.
pub(super) fn list() -> anyhow::Result<ExitCode> {
    let mut table = output::table(["ROOT", "ADDRESS", "ON DISK", "LAST USED", "DATA"]);
    let all = records::all();
    if all.is_empty() {
        output::note("nothing was gathered by `harvest up` yet");
        return Ok(ExitCode::SUCCESS);
    }
    for seen in &all {
        let data = seen.record.data();
        table.add_row([
            root(seen),
            address(seen),
            HumanBytes(targets::bytes_in(&data)).to_string(),
            used(seen),
            visible(&data.display().to_string()),
        ]);
    }
    output::line(&harmless(&table.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

fn root(seen: &Seen) -> String {
    let roots = seen.record.roots();
    // An earlier version wrote no record.
    let roots: Vec<String> = roots.iter().map(|it| visible(it)).collect();
    if roots.is_empty() { "?".to_owned() } else { roots.join("\n") }
}

fn address(seen: &Seen) -> String {
    match &seen.record.page {
        Some(page) if seen.is_running => page.to_string(),
        None if seen.is_running => "starting".to_owned(),
        _ => "stopped".to_owned(),
    }
}

fn used(seen: &Seen) -> String {
    if seen.is_running {
        return "now".to_owned();
    }
    let used = seen.used.and_then(|it| Timestamp::try_from(it).ok());
    let used =
        used.map(|it| it.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string());
    used.unwrap_or_default()
}

/// Removes what was gathered of `paths`: folders, repositories, or data folders. What was gathered
/// together is removed only if all of it is named. Blocks.
pub(super) fn remove(paths: &[PathBuf]) -> anyhow::Result<ExitCode> {
    if paths.is_empty() {
        bail!("name the folder to forget, as `harvest up --list` shows it");
    }
    let mut all: Vec<Seen> = Vec::new();
    for path in paths {
        let seen = named(path)?;
        if all.iter().all(|it| it.record.data() != seen.record.data()) {
            all.push(seen);
        }
    }
    for seen in all {
        let data = seen.record.data();
        let is_named = |root: &str| {
            paths.iter().any(|it| means(it, root) || means(it, &data.display().to_string()))
        };
        if let Some(other) = seen.record.roots().into_iter().find(|it| !is_named(it)) {
            bail!(
                "{other} was gathered together with it: name all of them, or the data folder {}",
                data.display()
            );
        }
        let bytes = records::remove(&seen)?;
        let (root, data) = (root(&seen).replace('\n', " "), seen.record.data());
        output::line(&format!(
            "removed   {} in {}: {root} is gathered anew by the next `harvest up`",
            HumanBytes(bytes),
            data.display()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the one record that `path` means.
fn named(path: &Path) -> anyhow::Result<Seen> {
    let is_meant = |it: &Seen| {
        let data = it.record.data().display().to_string();
        it.record.roots().iter().chain([&data]).any(|it| means(path, it))
    };
    let mut found: Vec<Seen> = records::all().into_iter().filter(is_meant).collect();
    match (found.pop(), found.is_empty()) {
        (Some(seen), true) => Ok(seen),
        (Some(_), false) => bail!(
            "{} was gathered more than once: name one of the data folders of `harvest up --list`",
            path.display()
        ),
        (None, _) => bail!(
            "`harvest up` has nothing of {}: `harvest up --list` shows what it has",
            path.display()
        ),
    }
}

/// Returns whether `path` is `name`, as typed or as a path of what may be gone.
fn means(path: &Path, name: &str) -> bool {
    let absolute = std::fs::canonicalize(path).or_else(|_gone| std::path::absolute(path));
    path.to_string_lossy() == name || absolute.is_ok_and(|it| it.display().to_string() == name)
}
