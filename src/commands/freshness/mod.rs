//! `harvest freshness`: the experiments with pull policies, and the study of how sources change.

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

/// The FILE argument for standard output.
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
pub(crate) enum FreshnessCommand {
    /// Compute a figure of Adly's paper from its equations, or play the scheduler against a log of
    /// real changes or a simulated world.
    #[command(after_help = "A play is shown in columns: freshness, as measured in the simulated \
sources; pulls, in all and
a day; found, changes that pulls brought; missed, changes that no pull had brought by the end;
minute_max, the most pulls that began within a minute. The first days (--warm) do not count.")]
    Simulate(Simulate),
    /// Study how often sources really change and the cost of following them, from a broker's log of
    /// pulls or from a log of changes.
    #[command(
        after_help = "Without --csv and --svg, tables for a person are printed. Rates and predicted \
requests are a day,
intervals go from update to update. Models: uniform pulls every source at the least latency of all,
latency pulls each at its own, adaptive pulls right after each update, but at most once in a latency.

Examples:
  harvest freshness report -c broker.toml
  harvest freshness report -c broker.toml --since 2026-01-01 --granularity 86400 --all
  harvest freshness report --pulls /var/lib/harvest/broker/pulls --csv report.csv --svg report.svg
  harvest freshness report --trace releases.tsv --latency 3600"
    )]
    Report(Report),
}

pub(crate) fn run(command: FreshnessCommand) -> anyhow::Result<ExitCode> {
    match command {
        FreshnessCommand::Simulate(args) => simulate::run(&args),
        FreshnessCommand::Report(args) => report::run(&args),
    }
}

/// Checks that `--csv` and `--svg` name different files.
fn check_different(csv: Option<&Path>, svg: Option<&Path>) -> anyhow::Result<()> {
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
