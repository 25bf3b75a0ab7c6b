//! `harvest freshness report`: Liu's study over our own logs.

mod read;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use broker::config::{Config, Freshness};
use broker::pull_log;
use freshness::date::parse_date_time;
use freshness::history::Log;
use study::csv;
use study::model::{Demand, Prediction, Synchronization, predict};
use web::foreign::harmless;

use self::read::{ReadOptions, StudiedLog};
use super::{STANDARD_OUTPUT, check_different, write};
use crate::{output, settings};

/// Acceptable latency of a source without one in the settings, in seconds: a day, as in the paper's
/// example of scholarly publications.
const LATENCY_SECS: f64 = 86_400.0;

/// Period over which requests are predicted, in seconds: a day.
const PERIOD_SECS: f64 = 86_400.0;

/// Accepted latencies, in seconds: the same as in the settings.
const LATENCIES_SECS: std::ops::RangeInclusive<f64> = 0.1..=365.0 * 86_400.0;

/// The models to predict requests with, the costliest first.
const MODELS: [Synchronization; 3] =
    [Synchronization::Uniform, Synchronization::Latency, Synchronization::Adaptive];

/// The options: a log, how to read it, and the output.
#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    #[command(flatten)]
    log: LogArgs,
    /// Write CSV to this file, or to standard output: one table, whose column `section` names the
    /// kind of a line (total, month, class, model, source, source_month).
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STANDARD_OUTPUT)]
    csv: Option<PathBuf>,
    /// Draw the sources by mean update interval to this file, or to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STANDARD_OUTPUT)]
    svg: Option<PathBuf>,
    /// Leave out entries before this day, or day and time, in UTC: 2026-01-31 or 2026-01-31T12:00.
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<i64>,
    /// Length of a granule: all changes within one are one update; the paper's is 86400, a day.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    granularity: u32,
    /// Acceptable latency of the sources for which the settings have no latency_seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = LATENCY_SECS, value_parser = latency)]
    latency: f64,
    /// List all sources, not only the most active ones.
    #[arg(long)]
    all: bool,
}

/// The log to study.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct LogArgs {
    /// Study the pulls of the broker with this settings file; it need not run.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Study the log of pulls in this folder: DATA/pulls of a broker, or a copy.
    #[arg(long, value_name = "DIR")]
    pulls: Option<PathBuf>,
    /// Study a log of changes: a line has time, source and, if known, element, separated by tabs;
    /// the time in Unix seconds or as 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Reads the log, and writes the report.
pub(super) fn run(args: &Report) -> anyhow::Result<ExitCode> {
    check_different(args.csv.as_deref(), args.svg.as_deref())?;
    let config = args.log.config.as_deref().map(|path| {
        let mut config = settings::load(path, Config::parse)?;
        config.daemon.data = settings::beside(path, &config.daemon.data);
        anyhow::Ok(config)
    });
    let config = config.transpose()?;
    let options = ReadOptions { since_secs: args.since, granularity_secs: args.granularity };
    let log = match (&args.log.trace, &args.log.pulls, &config) {
        (Some(file), _, _) => read::changes(file, options)?,
        (None, Some(folder), _) => read::pulls(folder, options)?,
        (None, None, Some(config)) => {
            read::pulls(&config.daemon.data.join(pull_log::FOLDER), options)?
        }
        (None, None, None) => anyhow::bail!("say what to study: --config, --pulls or --trace"),
    };
    if let Some(note) = log.left_out() {
        output::note(&harmless(&note));
    }
    let report = log.study.report(log.until_secs);
    let predictions = predictions(&demands(&log, config.as_ref(), args.latency), config.as_ref());
    if let Some(file) = &args.csv {
        write(file, &csv::report(&report, &predictions))?;
    }
    if let Some(file) = &args.svg {
        write(file, &show::chart(&report.classes).standalone())?;
    }
    if args.csv.is_none() && args.svg.is_none() {
        let view = show::ReportView { log: &log, report: &report, predictions: &predictions };
        output::line(&harmless(&view.text(args.all)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the input of the models: each source with its latency from the settings, or else
/// `latency`.
fn demands(log: &StudiedLog, config: Option<&Config>, latency: f64) -> Vec<Demand> {
    let sources = config.iter().flat_map(|it| &it.sources);
    let own: std::collections::BTreeMap<&str, f64> =
        sources.filter_map(|it| Some((it.name.as_str(), it.latency_secs?))).collect();
    let of = |name: &String| own.get(name.as_str()).copied().unwrap_or(latency);
    log.study.demands(log.until_secs, of)
}

/// Predicts the requests of each model in a day.
fn predictions(demands: &[Demand], config: Option<&Config>) -> Vec<Prediction> {
    let interval_min = config.map_or(Freshness::INTERVAL_MIN, |it| it.freshness.interval_min);
    MODELS.into_iter().map(|it| predict(demands, it, PERIOD_SECS, interval_min)).collect()
}

fn date(text: &str) -> Result<i64, String> {
    parse_date_time(text)
        .ok_or_else(|| "write a date as 2026-01-31 or 2026-01-31T12:00:00Z".to_owned())
}

fn latency(text: &str) -> Result<f64, String> {
    let secs = text.parse().ok().filter(|it| LATENCIES_SECS.contains(it));
    secs.ok_or_else(|| {
        let (least, most) = (LATENCIES_SECS.start(), LATENCIES_SECS.end());
        format!("a latency is a number of seconds from {least} to {most}")
    })
}

/// Returns whether the log is one of pulls.
fn is_of_pulls(log: &StudiedLog) -> bool {
    log.study.settings().log == Log::Pulls
}

#[cfg(test)]
mod tests;
