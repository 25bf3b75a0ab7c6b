//! `harvest freshness report`: Liu's study over logs of ours.

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

use self::read::{Logged, Taking};
use super::{STANDARD_OUTPUT, different, write};
use crate::{output, settings};

/// Acceptable latency of a source for which the settings have none, in seconds: a day, as in the paper's
/// example of scholarly publications.
const LATENCY_SECS: f64 = 86_400.0;

/// Period over which requests are predicted, in seconds: a day.
const PERIOD_SECS: f64 = 86_400.0;

/// Latencies that are accepted, in seconds: those that the settings accept.
const LATENCIES_SECS: std::ops::RangeInclusive<f64> = 0.1..=365.0 * 86_400.0;

/// What is predicted, the costliest first. The only place that names the study's models.
const MODELS: [Synchronization; 3] =
    [Synchronization::Uniform, Synchronization::Latency, Synchronization::Adaptive];

/// Which log, and how to look at it.
#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    #[command(flatten)]
    of: Of,
    /// Write CSV to this file, or to standard output: one table, whose column `section` says of what a
    /// line is (total, month, class, model, source, source_month).
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STANDARD_OUTPUT)]
    csv: Option<PathBuf>,
    /// Draw the distribution of sources by mean update interval to this file, or to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STANDARD_OUTPUT)]
    svg: Option<PathBuf>,
    /// Leave out what was before this day, or day and time, in UTC: 2026-01-31 or 2026-01-31T12:00.
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<i64>,
    /// Changes within one granule of so many seconds are one update; the paper has 86400, a day.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    granularity: u32,
    /// Acceptable latency of the sources for which the settings have no latency_seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = LATENCY_SECS, value_parser = latency)]
    latency: f64,
    /// List all sources, not only the most active ones.
    #[arg(long)]
    all: bool,
}

/// What is studied.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Of {
    /// Study the pulls of the broker with this settings file, whether it runs or not.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Study the log of pulls in this folder: DATA/pulls of a broker, or a copy.
    #[arg(long, value_name = "DIR")]
    pulls: Option<PathBuf>,
    /// Study a log of changes: a line has time, source and, if it is known, element, with tabs in
    /// between; the time in Unix seconds or as 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Does what the command says.
pub(super) fn run(asked: &Report) -> anyhow::Result<ExitCode> {
    different(asked.csv.as_deref(), asked.svg.as_deref())?;
    let config = asked.of.config.as_deref().map(|path| {
        let mut config = settings::load(path, Config::parse)?;
        config.daemon.data = settings::beside(path, &config.daemon.data);
        anyhow::Ok(config)
    });
    let config = config.transpose()?;
    let taking = Taking { since_secs: asked.since, granularity_secs: asked.granularity };
    let logged = match (&asked.of.trace, &asked.of.pulls, &config) {
        (Some(file), _, _) => read::changes(file, taking)?,
        (None, Some(folder), _) => read::pulls(folder, taking)?,
        (None, None, Some(config)) => {
            read::pulls(&config.daemon.data.join(pull_log::FOLDER), taking)?
        }
        (None, None, None) => anyhow::bail!("say what to study: --config, --pulls or --trace"),
    };
    if let Some(note) = logged.left_out() {
        output::note(&output::harmless(&note));
    }
    let report = logged.study.report(logged.until_secs);
    let predictions =
        predictions(&demands(&logged, config.as_ref(), asked.latency), config.as_ref());
    if let Some(file) = &asked.csv {
        write(file, &csv::report(&report, &predictions))?;
    }
    if let Some(file) = &asked.svg {
        write(file, &show::chart(&report.classes).standalone())?;
    }
    if asked.csv.is_none() && asked.svg.is_none() {
        let shown = show::Shown { logged: &logged, report: &report, predictions: &predictions };
        output::line(&output::harmless(&shown.text(asked.all)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the models need of each source: its latency by the settings, or else `latency`.
fn demands(logged: &Logged, config: Option<&Config>, latency: f64) -> Vec<Demand> {
    let sources = config.iter().flat_map(|it| &it.sources);
    let own: std::collections::BTreeMap<&str, f64> =
        sources.filter_map(|it| Some((it.name.as_str(), it.latency_secs?))).collect();
    let of = |name: &String| own.get(name.as_str()).copied().unwrap_or(latency);
    logged.study.demands(logged.until_secs, of)
}

/// What each model would ask in a day.
fn predictions(demands: &[Demand], config: Option<&Config>) -> Vec<Prediction> {
    let interval_min = config.map_or(Freshness::INTERVAL_MIN, |it| it.freshness.interval_min);
    MODELS.into_iter().map(|it| predict(demands, it, PERIOD_SECS, interval_min)).collect()
}

fn date(text: &str) -> Result<i64, String> {
    parse_date_time(text)
        .ok_or_else(|| "a date is as in 2026-01-31 or 2026-01-31T12:00:00Z".to_owned())
}

fn latency(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|it| LATENCIES_SECS.contains(it));
    found.ok_or_else(|| {
        let (least, most) = (LATENCIES_SECS.start(), LATENCIES_SECS.end());
        format!("a latency is a number of seconds from {least} to {most}")
    })
}

/// Whether observations are requests.
fn is_of_pulls(logged: &Logged) -> bool {
    logged.study.settings().log == Log::Pulls
}

#[cfg(test)]
mod tests;
