//! `harvest freshness simulate`: the experiments of Adly's paper, and plays of the scheduler.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, ValueEnum};
use study::simulate::{
    Cell, Costs, Engine, Experiment, Figure, Mix, REPOSITORIES_MAX, Settings, Table,
};
use web::chart::{Axis, Chart, Series};
use web::foreign::harmless;

use super::contest::{self, PlayArgs};
use super::{STANDARD_OUTPUT, check_different, write};
use crate::output;

/// The options: a figure or a play, its parameters and its output.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("what").required(true).args(["figure", "trace", "world"]))]
pub(crate) struct Simulate {
    /// adly3 to adly9: figures 3 to 9 of the paper.
    #[arg(long, value_name = "FIGURE")]
    figure: Option<Figure>,
    #[command(flatten)]
    pub(super) played: PlayArgs,
    /// Write CSV to this file, or to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STANDARD_OUTPUT)]
    csv: Option<PathBuf>,
    /// Write a chart to this file, or to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STANDARD_OUTPUT)]
    svg: Option<PathBuf>,
    /// Cost C_P of a pull.
    #[arg(long, value_name = "COST", default_value_t = 50.0, value_parser = cost)]
    pub(super) cp: f64,
    /// Cost C_U of an update (with --figure).
    #[arg(long, value_name = "COST", default_value_t = 0.1, value_parser = cost,
        conflicts_with_all = ["trace", "world"])]
    cu: f64,
    /// Number of repositories; default: 1000 for a figure, 100 for a world.
    #[arg(long, value_name = "NUMBER", value_parser = repositories, conflicts_with = "trace")]
    pub(super) repos: Option<usize>,
    /// Values of θ, from 0 to below 1; default: those of the figure, or 0.9 for a play.
    #[arg(long, value_name = "THETA", value_delimiter = ',', value_parser = theta)]
    pub(super) theta: Option<Vec<f64>>,
    /// Mixes of the types T1 to T4: even; one of T1 to T4, for 70 % of that type; or shares such as
    /// 75:0:0:25. Default: those of the figure, or even for a world.
    #[arg(long, value_name = "MIX", value_delimiter = ',', conflicts_with = "trace")]
    pub(super) mix: Option<Vec<Mix>>,
    /// Values of a, the cost of staleness a day, for adly7 to adly9 (default: those of the figure)
    /// and for the policy combined_cost.
    #[arg(long, value_name = "COST", value_delimiter = ',', value_parser = cost)]
    pub(super) a: Option<Vec<f64>>,
    /// Source of the results: the paper's equations, or plays of the brokers' scheduler over
    /// simulated repositories, whose rates it has to learn.
    #[arg(long, value_name = "ENGINE", default_value = "equation",
        conflicts_with_all = ["trace", "world"])]
    engine: EngineName,
    /// Least gain of the scheduler's rate estimator, from 0.001 to 1 (for plays).
    #[arg(long, value_name = "GAIN", default_value_t = 0.25, value_parser = gain)]
    pub(super) g: f64,
    /// Days after the warm-up, which the results cover (with --world or --engine event).
    #[arg(long, value_name = "DAYS", default_value_t = 30.0, value_parser = days,
        conflicts_with = "trace")]
    pub(super) days: f64,
    /// Seed of the simulated repositories (with --world or --engine event).
    #[arg(long, value_name = "NUMBER", default_value_t = 1, conflicts_with = "trace")]
    pub(super) seed: u64,
}

/// Source of the results for a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// The paper's equations.
    Equation,
    /// Plays of the scheduler.
    Event,
}

/// Number of repositories of a figure by default, as in the paper.
const REPOSITORIES_DEFAULT: usize = 1_000;

/// Runs the experiment, and writes its results.
pub(super) fn run(args: &Simulate) -> anyhow::Result<ExitCode> {
    check_different(args.csv.as_deref(), args.svg.as_deref())?;
    let Some(figure) = args.figure else {
        let results = contest::play_all(args)?;
        let mut text = format!("{}\n", harmless(&results.title));
        for (heading, table) in &results.tables {
            let heading = if heading.is_empty() { String::new() } else { format!("{heading}\n") };
            let _ = write!(text, "\n{heading}{}", aligned(table));
        }
        return show(args, &results.table(), || results.chart(), text.trim_end());
    };
    let engine = match args.engine {
        EngineName::Equation => Engine::Equation,
        EngineName::Event => {
            Engine::Event(Experiment { days: args.days, seed: args.seed, gain: args.g })
        }
    };
    let settings = Settings {
        engine,
        costs: Costs { update: args.cu, pull: args.cp },
        repositories: args.repos.unwrap_or(REPOSITORIES_DEFAULT),
        thetas: args.theta.clone(),
        mixes: args.mix.clone(),
        prices: args.a.clone(),
    };
    let table = figure.table(&settings);
    let text = format!("{}\n\n{}", figure.title(), aligned(&table));
    show(args, &table, || chart(figure, &table), &text)
}

/// Writes CSV and the chart as requested, or else prints the text.
fn show(
    args: &Simulate,
    table: &Table,
    chart: impl FnOnce() -> Chart,
    text: &str,
) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.csv {
        write(file, &table.to_csv())?;
    }
    if let Some(file) = &args.svg {
        write(file, &chart().standalone())?;
    }
    if args.csv.is_none() && args.svg.is_none() {
        output::line(text)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn cost(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|it| (0.0..=1e12).contains(it));
    number.ok_or_else(|| "a cost is a number from 0 to 1e12".to_owned())
}

fn gain(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|it| (0.001..=1.0).contains(it));
    number.ok_or_else(|| "a gain is a number from 0.001 to 1".to_owned())
}

fn days(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|it| (0.1..=1e4).contains(it));
    number.ok_or_else(|| "days are a number from 0.1 to 10000".to_owned())
}

fn theta(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|it| (0.0..1.0).contains(it));
    number.ok_or_else(|| "θ is a number from 0 up to but not including 1".to_owned())
}

fn repositories(text: &str) -> Result<usize, String> {
    let count = text.parse().unwrap_or_default();
    let message = format!("the number of repositories is from 1 to {REPOSITORIES_MAX}");
    if (1..=REPOSITORIES_MAX).contains(&count) { Ok(count) } else { Err(message) }
}

/// Formats the table for a terminal, with columns as wide as their cells.
fn aligned(table: &Table) -> String {
    let shown = |cell: &Cell| match cell {
        // For example, the ratio of two costs of 0.
        Cell::Number(number) if !number.is_finite() => "none".to_owned(),
        Cell::Number(number) => format!("{}", (number * 1e6).round() / 1e6),
        Cell::Name(name) => name.clone(),
    };
    let head = table.columns.iter().map(|it| (*it).to_owned()).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(shown).collect());
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|it| it[column].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        for (cell, width) in line.iter().zip(&widths) {
            let _ = write!(text, "{cell:>width$}  ");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Draws the figure as the paper does.
fn chart(figure: Figure, table: &Table) -> Chart {
    let (x, y, split) = match figure {
        Figure::Adly3 | Figure::Adly5 => {
            (Axis::new("share of T1").percent(), Axis::new("cost, of OAP(θ)'s"), "theta")
        }
        Figure::Adly4 => {
            (Axis::new("share of T1").percent(), Axis::new("freshness").percent(), "theta")
        }
        Figure::Adly6 => {
            (Axis::new("freshness θ").percent(), Axis::new("cost, of OAP(θ)'s"), "majority")
        }
        Figure::Adly7 => {
            (Axis::new("freshness θ").percent(), Axis::new("combined cost"), "majority")
        }
        Figure::Adly8 | Figure::Adly9 => {
            return costs_by_price(figure, table);
        }
    };
    let x_column = if split == "theta" { "t1_share" } else { "theta" };
    let mut series: Vec<Series> = Vec::new();
    let mut names = Vec::new();
    for name in table.rows.iter().map(|row| series_name(table, row, split)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let of = table.rows.iter().filter(|row| series_name(table, row, split) == name);
        let y_column = table.columns.last().copied().unwrap_or_default();
        let points = of.map(|row| (number(table, row, x_column), number(table, row, y_column)));
        let points = points.collect();
        series.push(Series::line(name, points));
    }
    let description = format!("{} points, computed from the paper's equations.", table.rows.len());
    Chart { title: figure.title().to_owned(), description, x, y, series }
}

/// Draws figures 8 and 9: the combined cost and the cost of harvesting, by the price of staleness.
fn costs_by_price(figure: Figure, table: &Table) -> Chart {
    let line = |name: &str, column| {
        let point = |row: &Vec<Cell>| (number(table, row, "a"), number(table, row, column));
        Series::line(name, table.rows.iter().map(point).collect())
    };
    let mut description = String::from("Freshness at the least combined cost:");
    for row in &table.rows {
        let (price, fresh) = (number(table, row, "a"), number(table, row, "freshness"));
        let _ = write!(description, " {:.1} % at a = {price};", fresh * 100.0);
    }
    Chart {
        title: figure.title().to_owned(),
        description,
        x: Axis::new("price of staleness a").logarithmic(),
        y: Axis::new("cost a day"),
        series: vec![line("combined", "min_combined_cost"), line("harvesting", "cost")],
    }
}

pub(super) fn series_name(table: &Table, row: &[Cell], split: &str) -> String {
    let at = table.columns.iter().position(|it| *it == split);
    match at.and_then(|at| row.get(at)) {
        Some(Cell::Number(number)) => format!("θ = {number}"),
        Some(Cell::Name(name)) => name.clone(),
        None => String::new(),
    }
}

pub(super) fn number(table: &Table, row: &[Cell], column: &str) -> f64 {
    let at = table.columns.iter().position(|it| *it == column);
    at.and_then(|at| row.get(at)).and_then(Cell::number).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_a_table_and_a_chart() {
        for figure in Figure::ALL {
            let table = figure.table(&Settings::paper());
            let text = aligned(&table);
            assert_eq!(text.lines().count(), table.rows.len() + 1);
            assert!(text.lines().all(|it| it == it.trim_end()), "{text}");
            let drawn = chart(figure, &table);
            let series = match figure {
                Figure::Adly8 | Figure::Adly9 => 2,
                Figure::Adly6 | Figure::Adly7 => 5,
                Figure::Adly3 | Figure::Adly4 | Figure::Adly5 => 4,
            };
            assert_eq!(drawn.series.len(), series, "{figure}");
            assert!(drawn.standalone().contains(figure.title()));
        }
    }
}
