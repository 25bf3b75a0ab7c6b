//! Logs: what is said while a daemon works, to standard error, as text or as JSON lines.
//!
//! `HARVEST_LOG` takes a filter (`info,broker=debug`) in the place of `-v`.

use std::env;
use std::io::{self, IsTerminal as _, Write};

use anyhow::{Context as _, anyhow};
use clap::{ArgAction, ValueEnum};
use indicatif::MultiProgress;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// The variable that holds a filter.
const VARIABLE: &str = "HARVEST_LOG";

/// Our crates: `-v` speaks of them, and of others only from `-vvv` on.
const OURS: [&str; 19] = [
    "soif",
    "oai",
    "query",
    "freshness",
    "study",
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
    "harvest",
];

/// Crates that log what they also return as an error, which ours then report with what to do, or
/// what is as it should be (a merge that came too late): they speak from `-v` on.
const QUIET: [&str; 2] = ["sled", "tantivy"];

/// How much is said, and how.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Say more; -vv and -vvv say even more; HARVEST_LOG=info,broker=debug picks.
    #[arg(short, long, action = ArgAction::Count, global = true)]
    verbose: u8,
    /// Write logs as text, or as one JSON object a line.
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true)]
    log: Format,
}

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// What a command says when nothing is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Usual {
    /// Only what is wrong: a person reads along.
    Warnings,
    /// What happens, too: a daemon's log.
    Events,
}

/// Starts logging. Progress bars belong into what is returned, so that lines appear above them.
///
/// # Errors
///
/// `HARVEST_LOG` is not a filter.
pub(crate) fn start(options: &Options, usual: Usual) -> anyhow::Result<MultiProgress> {
    let bars = MultiProgress::new();
    let filter = match env::var(VARIABLE) {
        Ok(text) => EnvFilter::try_new(&text).with_context(|| {
            format!("{VARIABLE}={text} is not a filter such as info,broker=debug")
        })?,
        Err(_) => EnvFilter::try_new(filter(options.verbose, usual))?,
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(AboveBars(bars.clone()));
    match options.log {
        Format::Text => builder.try_init(),
        Format::Json => builder.json().flatten_event(true).try_init(),
    }
    .map_err(|error| anyhow!("logging cannot start: {error}"))?;
    Ok(bars)
}

/// The filter for so many `-v`.
fn filter(verbose: u8, usual: Usual) -> String {
    let levels = ["warn", "info", "debug", "trace"];
    let from = match usual {
        Usual::Warnings => 0,
        Usual::Events => 1,
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
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { bars: self.0.clone(), text: Vec::new() }
    }
}

/// One event's text, written when it is whole.
struct Line {
    bars: MultiProgress,
    text: Vec<u8>,
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // A log that cannot be written is not worth dying for.
        let _ = self.bars.suspend(|| io::stderr().lock().write_all(&self.text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_crates_of_the_workspace_speak() {
        let manifest = include_str!("../Cargo.toml");
        let members = manifest.lines().find_map(|it| it.strip_prefix("members = [")).unwrap();
        let members = members.trim_end_matches(']').split(", ").map(|it| it.trim_matches('"'));
        let all: Vec<&str> = members.chain(["harvest"]).collect();
        assert_eq!(all, OURS);
    }

    #[test]
    fn more_v_say_more() {
        let of = |verbose, usual| filter(verbose, usual).replace("net=", "broker=");
        assert!(of(0, Usual::Warnings).starts_with("warn,soif=warn"));
        assert!(of(0, Usual::Events).starts_with("warn,soif=info"));
        assert!(of(2, Usual::Warnings).starts_with("warn,soif=debug"));
        assert!(of(200, Usual::Events).starts_with("trace,soif=trace"));
        assert!(of(0, Usual::Events).ends_with(",sled=off,tantivy=off"));
        assert!(of(1, Usual::Events).ends_with(",sled=warn,tantivy=warn"));
        assert!(of(3, Usual::Events).ends_with(",sled=info,tantivy=info"));
        for verbose in 0..5 {
            assert!(EnvFilter::try_new(filter(verbose, Usual::Events)).is_ok());
        }
    }
}
