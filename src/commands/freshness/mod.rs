//! `harvest freshness`: the experiments on when to pull whom, and the study of how sources change.

mod contest;
mod report;
mod simulate;
mod stage;

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Subcommand;

use report::Report;
use simulate::Simulate;

/// Where a FILE stands for standard output.
const STANDARD_OUTPUT: &str = "-";

/// Compute how fresh sources can be kept, and at what cost.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  harvest freshness simulate --figure adly3
  harvest freshness simulate --figure adly6 --svg adly6.svg
  harvest freshness simulate --figure adly6 --engine event --repos 100 --theta 0.9
  harvest freshness simulate --figure adly3 --mix 90:0:0:10 --theta 0.9,0.99 --cp 10 --csv
  harvest freshness simulate --world bursty --policy oap,uap,fixed --theta 0.8,0.9,0.95
  harvest freshness simulate --trace releases.tsv --compare
  harvest freshness report -c broker.toml
  harvest freshness report --pulls DATA/pulls --csv report.csv --svg report.svg")]
pub(crate) enum Command {
    /// Compute a figure of Adly's paper from its equations, or play the scheduler against a log of real
    /// changes or a simulated world.
    #[command(
        after_help = "What is played is told in columns: freshness, as it was in the simulated \
sources; pulls, and how many
a day; found, changes that pulls brought; missed, changes that none had brought by the end;
minute_max, the most pulls that began within a minute. What is learned first (--warm) does not count."
    )]
    Simulate(Simulate),
    /// Study how often sources really change and what it costs to follow them, from the log of pulls that
    /// a broker keeps, or from a log of changes.
    #[command(
        after_help = "Without --csv and --svg, tables for a person are printed. Rates and predicted \
requests are a day,
intervals from update to update; models: uniform asks every source at the least latency of all,
latency each at its own, adaptive right after each update, but no more than once in a latency.

Examples:
  harvest freshness report -c broker.toml
  harvest freshness report -c broker.toml --since 2026-01-01 --granularity 86400 --all
  harvest freshness report --pulls /var/lib/harvest/broker/pulls --csv report.csv --svg report.svg
  harvest freshness report --trace releases.tsv --latency 3600"
    )]
    Report(Report),
}

/// Does what the command says.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Simulate(asked) => simulate::run(&asked),
        Command::Report(asked) => report::run(&asked),
    }
}

/// Makes sure that one option does not write over what the other has written.
fn different(csv: Option<&Path>, svg: Option<&Path>) -> anyhow::Result<()> {
    match (csv, svg) {
        (Some(csv), Some(svg)) if csv == svg => {
            anyhow::bail!("--csv and --svg name the same file, {}", csv.display())
        }
        _ => Ok(()),
    }
}

/// Writes a text to the file that an option names.
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    if file == Path::new(STANDARD_OUTPUT) {
        io::stdout().lock().write_all(text.as_bytes())?;
        return Ok(());
    }
    fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))
}
