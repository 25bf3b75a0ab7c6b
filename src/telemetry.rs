//! The log: events on standard error while a command works, as text or as JSON lines.
//!
//! `HARVEST_LOG` takes a filter (`info,broker=debug`) instead of `-v`.

use std::env;
use std::io::{self, IsTerminal as _, Write};

use anyhow::{Context as _, anyhow};
use clap::{ArgAction, ValueEnum};
use indicatif::MultiProgress;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// The environment variable with a filter.
const VARIABLE: &str = "HARVEST_LOG";

/// Our crates: `-v` shows their events; events of others appear only from `-vvv` on.
const OURS: [&str; 22] = [
    "soif",
    "oai",
    "query",
    "freshness",
    "study",
    "crawl",
    "net",
    "settings",
    "watcher",
    "disk",
    "formats",
    "essence",
    "web",
    "daemon",
    "collection",
    "exchange",
    "gatherer",
    "broker",
    "replicator",
    "cache",
    "registry",
    "harvest",
];

/// Crates that log the errors that they return, though our crates report those with advice. They
/// log harmless events too (a merge that came too late). Their events appear from `-v` on.
const QUIET: [&str; 2] = ["sled", "tantivy"];

/// Options for the level and the format of the log.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Log more; -vv and -vvv log even more; HARVEST_LOG=info,broker=debug selects by crate.
    #[arg(short, long, action = ArgAction::Count, global = true)]
    verbose: u8,
    /// Write logs as text, or as one JSON object a line.
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true)]
    log: LogFormat,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

/// Level of the log without `-v`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DefaultLevel {
    /// Only warnings and errors: a person reads along.
    Warnings,
    /// Ordinary events too: a daemon's log.
    Events,
}

/// Starts logging. Add progress bars to the returned value, so that log lines appear above them.
/// Fails if `HARVEST_LOG` is not a filter.
pub(crate) fn start(options: &Options, default: DefaultLevel) -> anyhow::Result<MultiProgress> {
    let bars = MultiProgress::new();
    let filter = match env::var(VARIABLE) {
        Ok(text) => EnvFilter::try_new(&text).with_context(|| {
            format!("{VARIABLE}={text} is not a filter such as info,broker=debug")
        })?,
        Err(_) => EnvFilter::try_new(filter(options.verbose, default))?,
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(AboveBars(bars.clone()));
    match options.log {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    }
    .map_err(|error| anyhow!("logging cannot start: {error}"))?;
    Ok(bars)
}

/// Returns the filter for this number of `-v`.
fn filter(verbose: u8, default: DefaultLevel) -> String {
    let levels = ["warn", "info", "debug", "trace"];
    let from = match default {
        DefaultLevel::Warnings => 0,
        DefaultLevel::Events => 1,
    };
    let level = |step: usize| levels.get(step).copied().unwrap_or("trace");
    let ours = level(from + usize::from(verbose));
    let others = level(usize::from(verbose).saturating_sub(2));
    let quiet = if verbose == 0 { "off" } else { others };
    let named = OURS.iter().map(|name| (name, ours)).chain(QUIET.iter().map(|name| (name, quiet)));
    named.fold(others.to_owned(), |filter, (name, level)| format!("{filter},{name}={level}"))
}

/// Standard error, above the progress bars.
struct AboveBars(MultiProgress);

impl<'a> MakeWriter<'a> for AboveBars {
    type Writer = EventWriter;

    fn make_writer(&'a self) -> EventWriter {
        EventWriter { bars: self.0.clone(), text: Vec::new() }
    }
}

/// The text of one event, written when it is complete.
struct EventWriter {
    bars: MultiProgress,
    text: Vec<u8>,
}

impl Write for EventWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        // A failed log line must not end the command.
        let _ = self.bars.suspend(|| io::stderr().lock().write_all(&self.text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_crates_of_the_workspace_are_logged() {
        let manifest = include_str!("../Cargo.toml");
        let members = manifest.lines().find_map(|it| it.strip_prefix("members = [")).unwrap();
        let members = members.trim_end_matches(']').split(", ").map(|it| it.trim_matches('"'));
        let all: Vec<&str> = members.chain(["harvest"]).collect();
        assert_eq!(all, OURS);
    }

    #[test]
    fn each_v_raises_the_level() {
        let of = |verbose, default| filter(verbose, default).replace("net=", "broker=");
        assert!(of(0, DefaultLevel::Warnings).starts_with("warn,soif=warn"));
        assert!(of(0, DefaultLevel::Events).starts_with("warn,soif=info"));
        assert!(of(2, DefaultLevel::Warnings).starts_with("warn,soif=debug"));
        assert!(of(200, DefaultLevel::Events).starts_with("trace,soif=trace"));
        assert!(of(0, DefaultLevel::Events).ends_with(",sled=off,tantivy=off"));
        assert!(of(1, DefaultLevel::Events).ends_with(",sled=warn,tantivy=warn"));
        assert!(of(3, DefaultLevel::Events).ends_with(",sled=info,tantivy=info"));
        for verbose in 0..5 {
            assert!(EnvFilter::try_new(filter(verbose, DefaultLevel::Events)).is_ok());
        }
    }
}
