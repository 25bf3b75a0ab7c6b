//! The stage of a play for `harvest freshness simulate`: a log of changes, or a simulated world.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::ValueEnum as _;
use freshness::interval::{Bounds, Model, Policy};
use freshness::rate::Method;
use freshness::schedule::{Rules, Settings};
use study::simulate::trace::{BYTES_MAX, Trace};
use study::simulate::world::{Process, Repository};
use study::simulate::{KINDS, Listing, Mix, PULLS_MAX, REPOSITORIES_MAX, Run};

use super::contest::{DAY_SECS, MethodName, ModelName, PlayArgs, THETA_DEFAULT, WorldName};
use super::simulate::Simulate;
use crate::output;

/// Number of repositories of a world by default.
const REPOSITORIES_DEFAULT: usize = 100;
/// Days of a world that results leave out by default.
const WARM_DAYS: f64 = 10.0;
/// Share of a log's time that results leave out by default.
const WARM_SHARE: f64 = 0.1;
/// Maximum number of pulls in one play of a comparison.
const COMPARED_PULLS_MAX: u64 = 20_000_000;
/// The FILE argument for standard input.
const STANDARD_INPUT: &str = "-";

/// The setup of a play.
pub(super) struct Stage {
    /// Description in one line.
    pub(super) title: String,
    /// Repositories to pull, with their rules.
    pub(super) repositories: Vec<(Repository, Rules)>,
    /// Parameters of the play.
    pub(super) run: Run,
}

/// Sets up the play that the options describe.
pub(super) fn stage(args: &Simulate) -> anyhow::Result<Stage> {
    let PlayArgs { min, max, warm, compare, .. } = args.played;
    if max < min {
        bail!("--max ({max} s) is below --min ({min} s)");
    }
    let rules = Rules::new(Bounds { interval_min: min, interval_max: max });
    let settings = Settings {
        policy: Policy::Optimal { theta: THETA_DEFAULT },
        model: match args.played.model {
            ModelName::Printed => Model::Printed,
            ModelName::Linear => Model::Linear,
            ModelName::Poisson => Model::Poisson,
        },
        method: match args.played.estimator {
            MethodName::Ewma => Method::Ewma,
            MethodName::BiasReduced => Method::BiasReduced,
            MethodName::Datestamps => Method::Datestamps,
        },
        gain: args.g,
        pulls_per_minute_max: broker::config::Freshness::PULLS_PER_MINUTE_MAX,
    };
    let warm_secs = warm.unwrap_or(WARM_DAYS) * DAY_SECS;
    let run = Run {
        settings,
        listing: Listing::Elements,
        seed: args.seed,
        start: 0.0,
        warm_secs,
        secs: args.days * DAY_SECS,
        pulls_max: if compare { COMPARED_PULLS_MAX } else { PULLS_MAX },
    };
    let Some(file) = &args.played.trace else { return world(args, rules, run) };
    let trace = read_trace(file)?;
    let name = name(file);
    if REPOSITORIES_MAX < trace.sources() {
        bail!("{name} has {} sources; play {REPOSITORIES_MAX} at most", trace.sources());
    }
    let Some((first, last)) = trace.span().filter(|(first, last)| first < last) else {
        bail!("{name} has no two changes at different times: there is nothing to play");
    };
    let span = last - first;
    let warm_secs = warm.map_or(WARM_SHARE * span, |it| it * DAY_SECS);
    let run = Run { start: first, warm_secs, secs: span - warm_secs, ..run };
    let title = format!(
        "{name}: {} and {} in {:.1} days, of which the first {:.1} do not count",
        output::counted(trace.sources() as u64, "source"),
        output::counted(trace.changes() as u64, "change"),
        span / DAY_SECS,
        warm_secs / DAY_SECS
    );
    let repositories = trace.repositories().map(|(_, it)| (it, rules)).collect();
    Ok(Stage { title, repositories, run })
}

fn world(args: &Simulate, rules: Rules, run: Run) -> anyhow::Result<Stage> {
    let Some(name) = args.played.world else { bail!("give --figure, --trace or --world") };
    let mix = match args.mix.as_deref() {
        None => Mix::EVEN,
        Some([mix]) => *mix,
        Some(_) => bail!("a world has one --mix"),
    };
    let count = args.repos.unwrap_or(REPOSITORIES_DEFAULT);
    let process = |rate| match name {
        WorldName::Poisson => Process::Poisson { rate },
        WorldName::Bursty => Process::Bursty { rate, burst: 20.0 },
        WorldName::Daily => {
            Process::Daily { rate, share: 0.9, hours: 10.0, begin_secs: 8.0 * 3_600.0 }
        }
        WorldName::Drifting => {
            Process::Drifting { rate, factor: 3.0, from: run.warm_secs, over_secs: run.secs }
        }
        WorldName::Even => Process::Even { rate },
    };
    let of = |((rate, elements), count): (&(f64, u64), usize)| {
        let repository = Repository::new(*elements, process(rate / DAY_SECS));
        std::iter::repeat_n((repository, rules), count)
    };
    let repositories = KINDS.iter().zip(mix.counts(count)).flat_map(of).collect();
    let title = format!(
        "{count} repositories, mix {mix}, {}: {} days, after {} that do not count",
        name.to_possible_value().map_or_else(String::new, |it| it.get_name().to_owned()),
        args.days,
        run.warm_secs / DAY_SECS
    );
    Ok(Stage { title, repositories, run })
}

/// Returns the name of a file for messages.
fn name(file: &Path) -> String {
    if file == Path::new(STANDARD_INPUT) {
        return "standard input".to_owned();
    }
    file.display().to_string()
}

/// Reads a log from a file, or from standard input.
pub(super) fn read_trace(file: &Path) -> anyhow::Result<Trace> {
    let name = name(file);
    let mut bytes = Vec::new();
    // One byte over the limit, so that a file that is too large is detected.
    let bytes_max = BYTES_MAX as u64 + 1;
    if file == Path::new(STANDARD_INPUT) {
        io::stdin().lock().take(bytes_max).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|it| it.take(bytes_max).read_to_end(&mut bytes))
    }
    .with_context(|| format!("{name} cannot be read"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let sound = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = sound.iter().filter(|it| **it == b'\n').count() + 1;
        anyhow::anyhow!("{name}, line {line}: this is no UTF-8; a log of changes is text")
    })?;
    Trace::parse(&text).map_err(|error| anyhow::anyhow!("{name}, {error}"))
}
