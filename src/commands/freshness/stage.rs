//! What `harvest freshness simulate` plays: a log of changes, or a simulated world.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::ValueEnum as _;
use freshness::interval::{Bounds, Model, Policy};
use freshness::rate::Method;
use freshness::schedule::{Rules, Settings};
use study::simulate::trace::{BYTES_MAX, Trace};
use study::simulate::world::{Burst, Detail, Process, Repository};
use study::simulate::{KINDS, Mix, PULLS_MAX, REPOSITORIES_MAX, Run, Tells};

use super::contest::{Asked, DAY_SECS, MethodName, ModelName, THETA_DEFAULT, WorldName};
use super::simulate::Simulate;
use crate::output;

/// Repositories of a world where no number is given.
const REPOSITORIES_DEFAULT: usize = 100;
/// Days of a world that do not count where none are given, and the part of a log that does not.
const WARM_DAYS: f64 = 10.0;
const WARM_SHARE: f64 = 0.1;
/// Most pulls of a play of a comparison: one that asks for more asks for too much.
const COMPARED_PULLS_MAX: u64 = 20_000_000;
/// Where a FILE stands for standard input.
const STANDARD_INPUT: &str = "-";

/// What there is to play.
pub(super) struct Stage {
    /// In one line.
    pub(super) title: String,
    /// What is pulled, and by which rules.
    pub(super) repositories: Vec<(Repository, Rules)>,
    /// How it is played.
    pub(super) run: Run,
}

/// Sets up what is asked for.
pub(super) fn stage(asked: &Simulate) -> anyhow::Result<Stage> {
    let Asked { min, max, warm, compare, .. } = asked.played;
    if max < min {
        bail!("--max ({max} s) is below --min ({min} s)");
    }
    let rules = Rules::new(Bounds { interval_min: min, interval_max: max });
    let settings = Settings {
        policy: Policy::Optimal { theta: THETA_DEFAULT },
        model: match asked.played.model {
            ModelName::Printed => Model::Printed,
            ModelName::Linear => Model::Linear,
            ModelName::Poisson => Model::Poisson,
        },
        method: match asked.played.estimator {
            MethodName::Ewma => Method::Ewma,
            MethodName::BiasReduced => Method::BiasReduced,
            MethodName::Datestamps => Method::Datestamps,
        },
        gain: asked.g,
        pulls_per_minute_max: broker::config::Freshness::PULLS_PER_MINUTE_MAX,
    };
    let warm_secs = warm.unwrap_or(WARM_DAYS) * DAY_SECS;
    let run = Run {
        settings,
        tells: Tells::Elements,
        seed: asked.seed,
        detail: Detail::Expected,
        start: 0.0,
        warm_secs,
        secs: asked.days * DAY_SECS,
        pulls_max: if compare { COMPARED_PULLS_MAX } else { PULLS_MAX },
    };
    let Some(file) = &asked.played.trace else { return world(asked, rules, run) };
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

fn world(asked: &Simulate, rules: Rules, run: Run) -> anyhow::Result<Stage> {
    let Some(name) = asked.played.world else { bail!("give --figure, --trace or --world") };
    let mix = match asked.mix.as_deref() {
        None => Mix::EVEN,
        Some([mix]) => *mix,
        Some(_) => bail!("a world has one --mix"),
    };
    let count = asked.repos.unwrap_or(REPOSITORIES_DEFAULT);
    let process = |rate| match name {
        WorldName::Poisson => Process::Poisson { rate },
        WorldName::Bursty => Process::Bursty { rate, burst: Burst::Geometric(20.0) },
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
        asked.days,
        run.warm_secs / DAY_SECS
    );
    Ok(Stage { title, repositories, run })
}

/// What a file is called.
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
    // One byte more than may be, so that what is too large is known to be.
    let most = BYTES_MAX as u64 + 1;
    if file == Path::new(STANDARD_INPUT) {
        io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|it| it.take(most).read_to_end(&mut bytes))
    }
    .with_context(|| format!("{name} cannot be read"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let sound = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = sound.iter().filter(|it| **it == b'\n').count() + 1;
        anyhow::anyhow!("{name}, line {line}: this is no UTF-8; a log of changes is text")
    })?;
    Trace::parse(&text).map_err(|error| anyhow::anyhow!("{name}, {error}"))
}
