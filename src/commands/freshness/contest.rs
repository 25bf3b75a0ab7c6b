//! The plays of `harvest freshness simulate`: the scheduler against a log of real changes
//! (`--trace`) or a simulated world (`--world`), alone or in comparison with rivals.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use broker::config::PolicyName;
use clap::ValueEnum;
use freshness::interval::Policy;
use freshness::schedule::{Pace, Rules, Settings};
use settings::parse_duration;
use study::simulate::contest::Contest;
use study::simulate::{Cell, PULLS_MAX, PlayResult, Run, Table, play};
use web::chart::{Axis, Chart, Series};

use super::simulate::{Simulate, cost, number, series_name};
use super::stage::{Stage, stage};

pub(super) const DAY_SECS: f64 = 86_400.0;
/// θ without `--theta`.
pub(super) const THETA_DEFAULT: f64 = 0.9;

/// The options of a play: its changes, and the policies.
#[derive(Debug, clap::Args)]
pub(crate) struct PlayArgs {
    /// Play a log of real changes, one a line: TIME, SOURCE and, if known, ELEMENT, separated by
    /// tabs or commas; - for standard input.
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Play simulated repositories of the paper's types T1 to T4, which change in this pattern.
    #[arg(long, value_name = "WORLD")]
    pub(super) world: Option<WorldName>,
    /// Compare the pulls that our scheduler, OAP as printed, UAP and a fixed interval need to be
    /// equally fresh: as fresh as with a daily pull, then with each --theta. The column `asked` has
    /// the θ, or the interval in days, with which a policy comes to that freshness.
    #[arg(long, conflicts_with_all = ["figure", "policy", "model", "estimator"])]
    pub(super) compare: bool,
    /// Policies to play, by their names in broker.toml, each with every value of its option: oap,
    /// uap and ioap with --theta, fixed with --interval, combined_cost with --a (and --cp), budget
    /// with --pulls-per-hour, best_estimation with none.
    #[arg(
        long,
        value_name = "POLICY",
        value_delimiter = ',',
        default_value = "oap",
        value_parser = policy_name,
        conflicts_with = "figure"
    )]
    policy: Vec<PolicyName>,
    /// Intervals of the policy fixed.
    #[arg(long, value_name = "TIME", value_delimiter = ',', default_value = "1 day",
        value_parser = seconds, conflicts_with_all = ["figure", "compare"])]
    interval: Vec<f64>,
    /// Pulls an hour of the policy budget.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "60",
        value_parser = cost, conflicts_with_all = ["figure", "compare"])]
    pulls_per_hour: Vec<f64>,
    /// Model of how a copy becomes stale between pulls.
    #[arg(long, value_name = "MODEL", default_value = "poisson", conflicts_with = "figure")]
    pub(super) model: ModelName,
    /// Estimator of the change rate.
    #[arg(long, value_name = "ESTIMATOR", default_value = "datestamps", conflicts_with = "figure")]
    pub(super) estimator: MethodName,
    /// Shortest interval.
    #[arg(long, value_name = "TIME", default_value = "10 s", value_parser = seconds,
        conflicts_with = "figure")]
    pub(super) min: f64,
    /// Longest interval.
    #[arg(long, value_name = "TIME", default_value = "365 days", value_parser = seconds,
        conflicts_with = "figure")]
    pub(super) max: f64,
    /// Days of learning at the start, which results leave out; default: 10, or a tenth of a log.
    #[arg(long, value_name = "DAYS", value_parser = warm_days, conflicts_with = "figure")]
    pub(super) warm: Option<f64>,
}

/// Pattern of changes in a simulated world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorldName {
    /// Changes at random.
    Poisson,
    /// Bursts of changes at one moment, at random; twenty changes on average.
    Bursty,
    /// Nine changes of ten come within ten hours of each day.
    Daily,
    /// Changes come three times as fast at the end as at the beginning.
    Drifting,
    /// Changes at equal intervals, as in the paper.
    Even,
}

/// Model of how a copy becomes stale between pulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelName {
    /// Eq. 1 of the paper as printed.
    Printed,
    /// Eq. 1 up to the point at which everything is stale.
    Linear,
    /// Changes come at random.
    Poisson,
}

/// Estimator of the change rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum MethodName {
    /// The paper's estimator: updates over time.
    Ewma,
    /// From the number of unchanged elements.
    BiasReduced,
    /// From the last change of each element.
    Datestamps,
}

/// The results of a play.
pub(super) struct Results {
    /// The play, in one line.
    pub(super) title: String,
    /// The tables, all with the same columns, under their headings; a single heading is empty.
    pub(super) tables: Vec<(String, Table)>,
}

/// Plays all policies, or the comparison.
pub(super) fn play_all(args: &Simulate) -> anyhow::Result<Results> {
    let stage = stage(args)?;
    if stage.run.secs <= 0.0 {
        bail!("nothing is left to count after --warm; give fewer days");
    }
    let title = stage.title.clone();
    if !args.played.compare {
        return Ok(Results { title, tables: vec![(String::new(), policies(args, &stage)?)] });
    }
    let contest = Contest { repositories: &stage.repositories, run: stage.run };
    let secs = stage.run.secs;
    let daily = contest.against_daily();
    let heading = format!("As fresh as a daily pull keeps everything, {:.4}:", daily.target);
    let mut tables = vec![(heading, daily.table(secs))];
    for theta in args.theta.as_deref().unwrap_or(&[THETA_DEFAULT]) {
        let heading = format!("At a measured freshness of {theta}:");
        tables.push((heading, contest.at_freshness(*theta).table(secs)));
    }
    Ok(Results { title, tables })
}

impl Results {
    /// Returns all tables as one.
    pub(super) fn table(&self) -> Table {
        let columns = self.tables.first().map(|(_, it)| it.columns.clone()).unwrap_or_default();
        let rows = self.tables.iter().flat_map(|(_, it)| it.rows.iter().cloned()).collect();
        Table { columns, rows }
    }

    /// Draws the pulls a day by measured freshness, a line for each policy.
    pub(super) fn chart(&self) -> Chart {
        let table = self.table();
        let mut series: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for row in &table.rows {
            let point = (number(&table, row, "freshness"), number(&table, row, "a_day"));
            let name = series_name(&table, row, "policy");
            match series.iter_mut().find(|it| it.0 == name) {
                Some((_, points)) => points.push(point),
                None => series.push((name, vec![point])),
            }
        }
        Chart {
            title: self.title.clone(),
            description: "Pulls a day by the freshness that was measured.".to_owned(),
            x: Axis::new("measured freshness").percent(),
            y: Axis::new("pulls a day").logarithmic(),
            series: series.into_iter().map(|(name, points)| Series::line(name, points)).collect(),
        }
    }
}

/// Plays each policy, with every value of its option.
fn policies(args: &Simulate, stage: &Stage) -> anyhow::Result<Table> {
    let mut table = Table {
        columns: vec![
            "policy",
            "asked",
            "freshness",
            "pulls",
            "a_day",
            "sources",
            "found",
            "missed",
            "minute_max",
        ],
        rows: Vec::new(),
    };
    for name in &args.played.policy {
        for value in values(*name, args)? {
            let policy = policy(*name, value, args.cp);
            let settings = Settings { policy, ..stage.run.settings };
            let pace = match name {
                PolicyName::BestEstimation => Pace::BestEstimation,
                _ => Pace::Planned,
            };
            let paced =
                stage.repositories.iter().map(|(it, rules)| (it.clone(), Rules { pace, ..*rules }));
            let repositories: Vec<_> = paced.collect();
            let played = play(&repositories, &Run { settings, ..stage.run });
            if played.cut {
                bail!("{name:?} at {value} takes more than {PULLS_MAX} pulls; give a longer --min");
            }
            let unit = if *name == PolicyName::Fixed { DAY_SECS } else { 1.0 };
            let asked_for = match name {
                PolicyName::BestEstimation => Cell::from("nothing".to_owned()),
                _ => Cell::from(value / unit),
            };
            let mut row = vec![Cell::from(name.name().to_owned()), asked_for];
            row.extend(results(&played, stage).map(Cell::from));
            table.rows.push(row);
        }
    }
    Ok(table)
}

fn results(played: &PlayResult, stage: &Stage) -> [f64; 7] {
    let totals = played.totals;
    [
        totals.freshness(),
        totals.pulls as f64,
        totals.pulls as f64 * DAY_SECS / stage.run.secs,
        stage.repositories.len() as f64,
        totals.changes as f64,
        played.missed as f64,
        played.pulls_per_minute_max as f64,
    ]
}

/// Returns the values of a policy's option, one for each play; infinity if it has no option.
fn values(name: PolicyName, args: &Simulate) -> anyhow::Result<Vec<f64>> {
    Ok(match name {
        PolicyName::Oap | PolicyName::Uap | PolicyName::Ioap => {
            args.theta.clone().unwrap_or_else(|| vec![THETA_DEFAULT])
        }
        PolicyName::Fixed => args.played.interval.clone(),
        PolicyName::CombinedCost => {
            args.a.clone().context("combined_cost needs --a, the cost of staleness a day")?
        }
        PolicyName::Budget => args.played.pulls_per_hour.clone(),
        PolicyName::BestEstimation => vec![f64::INFINITY],
    })
}

fn policy(name: PolicyName, value: f64, pull_cost: f64) -> Policy {
    match name {
        PolicyName::Oap => Policy::Optimal { theta: value },
        PolicyName::Uap => Policy::Uniform { theta: value },
        PolicyName::Ioap => Policy::Individual { theta: value },
        // With best_estimation, each source sets its own pace, and the policy is not used.
        PolicyName::Fixed | PolicyName::BestEstimation => Policy::Fixed { interval: value },
        // `value` is a cost a day, in the unit of `--cp`; the price is in pulls a second.
        PolicyName::CombinedCost => {
            Policy::CombinedCost { price: value / DAY_SECS / pull_cost.max(f64::MIN_POSITIVE) }
        }
        PolicyName::Budget => Policy::Budget { pulls: value / 3_600.0 },
    }
}

fn policy_name(text: &str) -> Result<PolicyName, String> {
    let names = || format!("a policy is one of {}", PolicyName::NAMES.join(", "));
    PolicyName::by_name(text).ok_or_else(names)
}

fn seconds(text: &str) -> Result<f64, String> {
    let secs = parse_duration(text).map(|it| it.as_secs_f64());
    let secs = secs.filter(|it| (0.1..=1e9).contains(it));
    let expected =
        "a time is from 0.1 s to 30 years, with its unit, as in 30 s, 10 min, 6 hours or 1 day";
    secs.ok_or_else(|| expected.to_owned())
}

fn warm_days(text: &str) -> Result<f64, String> {
    let days = text.parse().ok().filter(|it| (0.0..=1e5).contains(it));
    days.ok_or_else(|| "days are a number from 0 to 100000".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct TestCli {
        #[command(flatten)]
        args: Simulate,
    }

    fn parsed(line: &str) -> Result<Simulate, clap::Error> {
        TestCli::try_parse_from(line.split_whitespace()).map(|it| it.args)
    }

    fn played(line: &str) -> anyhow::Result<Results> {
        play_all(&parsed(line)?)
    }

    #[test]
    fn every_world_and_policy_has_a_row() {
        let line = "x --repos 4 --days 3 --warm 1 --theta 0.8,0.9 --a 1000 \
                    --policy oap,uap,ioap,fixed,combined_cost,budget,best_estimation --world";
        for world in ["poisson", "bursty", "daily", "drifting", "even"] {
            let results = played(&format!("{line} {world}")).unwrap();
            let table = results.table();
            assert_eq!(table.rows.len(), 10, "{world}");
            for row in &table.rows {
                assert_eq!(row.len(), table.columns.len());
                let fresh = number(&table, row, "freshness");
                assert!(0.5 < fresh && fresh <= 1.0, "{world} {row:?}");
            }
            assert!(results.chart().standalone().contains("combined_cost"));
        }
    }

    #[test]
    fn a_comparison_has_a_table_for_each_freshness() {
        let line = "x --repos 4 --days 20 --world even --compare --theta 0.8,0.9";
        let results = played(line).unwrap();
        assert_eq!(results.tables.len(), 3);
        assert_eq!(results.table().rows.len(), 12);
        assert_eq!(results.chart().series.len(), 4);
    }

    fn check_refused(line: &str, expected: &str) {
        let message = match parsed(line) {
            Ok(args) => play_all(&args).err().map(|it| format!("{it:#}")),
            Err(error) => Some(error.to_string()),
        };
        let message = message.unwrap_or_default();
        assert!(message.contains(expected), "{line}: {message}");
    }

    #[test]
    fn contradictory_options_are_refused() {
        check_refused("x", "required");
        check_refused("x --figure adly3 --world even", "cannot be used with");
        check_refused("x --figure adly3 --compare", "cannot be used with");
        check_refused("x --world even --compare --policy oap", "cannot be used with");
        check_refused("x --world even --mix even,T1", "one --mix");
        check_refused("x --world even --min 9s --max 8s", "below --min");
        check_refused("x --world even --min 9", "a time is from");
        check_refused("x --world even --policy combined_cost", "needs --a");
        check_refused("x --trace /nowhere/at/all", "/nowhere/at/all cannot be read");
    }

    #[test]
    fn a_log_is_read_or_its_first_wrong_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log.tsv");
        let play = |text: &[u8], more: &str| {
            std::fs::write(&file, text).unwrap();
            played(&format!("x --trace {} {more}", file.display()))
        };
        let log = b"2020-01-01\ta\tx\n2020-01-03\tb\n2020-01-21\ta\ty\n";
        let results = play(log, "--policy fixed --warm 0").unwrap();
        assert!(
            results.title.contains("2 sources and 3 changes in 20.0 days"),
            "{}",
            results.title
        );
        // Each source is pulled at its first change. The play ends with the last, which is missed.
        let table = results.table();
        let found = ["found", "missed"].map(|it| number(&table, &table.rows[0], it));
        assert_eq!(found.map(|it| it.to_string()), ["2", "1"]);
        let refused = |text: &[u8], more: &str, expected: &str| {
            let message = format!("{:#}", play(text, more).err().unwrap());
            assert!(message.contains(expected), "{message}");
        };
        refused(b"1\ta\nyesterday\ta\n", "", "log.tsv, line 2: \"yesterday\" is no time");
        refused(b"1\ta\n2\t\xff\n", "", "log.tsv, line 2: this is no UTF-8");
        refused(b"1\ta\n1\tb\n", "", "nothing to play");
        refused(log, "--warm 20", "nothing is left to count");
    }
}
