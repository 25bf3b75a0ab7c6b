//! `harvest freshness simulate`: the experiments of Adly's paper, and the scheduler at play.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, ValueEnum};
use study::simulate::{
    Cell, Costs, Engine, Experiment, Figure, Mix, REPOSITORIES_MAX, Settings, Table,
};
use web::chart::{Axis, Chart, Series};

use super::contest::{self, Asked};
use super::{STANDARD_OUTPUT, different, write};
use crate::output;

/// Which figure, or what is played; and of what.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("what").required(true).args(["figure", "trace", "world"]))]
pub(crate) struct Simulate {
    /// adly3 to adly9: figures 3 to 9 of the paper.
    #[arg(long, value_name = "FIGURE")]
    figure: Option<Figure>,
    #[command(flatten)]
    pub(super) played: Asked,
    /// Write CSV to this file, or to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STANDARD_OUTPUT)]
    csv: Option<PathBuf>,
    /// Draw it to this file, or to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STANDARD_OUTPUT)]
    svg: Option<PathBuf>,
    /// Cost C_P of a pull.
    #[arg(long, value_name = "COST", default_value_t = 50.0, value_parser = cost)]
    pub(super) cp: f64,
    /// Cost C_U of an update (with --figure).
    #[arg(long, value_name = "COST", default_value_t = 0.1, value_parser = cost,
        conflicts_with_all = ["trace", "world"])]
    cu: f64,
    /// How many repositories there are: 1000 of a figure, 100 of a world.
    #[arg(long, value_name = "NUMBER", value_parser = repositories, conflicts_with = "trace")]
    pub(super) repos: Option<usize>,
    /// Values of θ, 0 up to but not including 1, instead of the figure's own, or 0.9.
    #[arg(long, value_name = "THETA", value_delimiter = ',', value_parser = theta)]
    pub(super) theta: Option<Vec<f64>>,
    /// Mixes of the types T1 to T4 instead of the figure's own: even, T1 to T4 for 70 % of one, or shares
    /// as in 75:0:0:25.
    #[arg(long, value_name = "MIX", value_delimiter = ',', conflicts_with = "trace")]
    pub(super) mix: Option<Vec<Mix>>,
    /// Values of a, what staleness costs a day, instead of the figure's own (adly7 to adly9), or for the
    /// policy combined_cost.
    #[arg(long, value_name = "COST", value_delimiter = ',', value_parser = cost)]
    pub(super) a: Option<Vec<f64>>,
    /// How it is found out: computed from the paper's equations, or played by the scheduler that brokers
    /// run, over simulated repositories whose rates it has to learn.
    #[arg(long, value_name = "ENGINE", default_value = "equation",
        conflicts_with_all = ["trace", "world"])]
    engine: EngineName,
    /// Least gain of the scheduler's rate estimator, above 0 and up to 1 (where it plays).
    #[arg(long, value_name = "GAIN", default_value_t = 0.25, value_parser = gain)]
    pub(super) g: f64,
    /// Days that are played and count (with --world or --engine event).
    #[arg(long, value_name = "DAYS", default_value_t = 30.0, value_parser = days,
        conflicts_with = "trace")]
    pub(super) days: f64,
    /// Seed of the simulated repositories (with --world or --engine event).
    #[arg(long, value_name = "NUMBER", default_value_t = 1, conflicts_with = "trace")]
    pub(super) seed: u64,
}

/// What finds out what comes of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// The paper's equations.
    Equation,
    /// The scheduler.
    Event,
}

/// Repositories of a figure where no number is given, as in the paper.
const REPOSITORIES_DEFAULT: usize = 1_000;

/// Does what the command says.
pub(super) fn run(asked: &Simulate) -> anyhow::Result<ExitCode> {
    different(asked.csv.as_deref(), asked.svg.as_deref())?;
    let Some(figure) = asked.figure else {
        let results = contest::play_all(asked)?;
        let mut text = format!("{}\n", output::harmless(&results.title));
        for (heading, table) in &results.tables {
            let heading = if heading.is_empty() { String::new() } else { format!("{heading}\n") };
            let _ = write!(text, "\n{heading}{}", aligned(table));
        }
        return show(asked, &results.table(), || results.chart(), text.trim_end());
    };
    let engine = match asked.engine {
        EngineName::Equation => Engine::Equation,
        EngineName::Event => {
            Engine::Event(Experiment { days: asked.days, seed: asked.seed, gain: asked.g })
        }
    };
    let settings = Settings {
        engine,
        costs: Costs { update: asked.cu, pull: asked.cp },
        repositories: asked.repos.unwrap_or(REPOSITORIES_DEFAULT),
        thetas: asked.theta.clone(),
        mixes: asked.mix.clone(),
        prices: asked.a.clone(),
    };
    let table = figure.table(&settings);
    let text = format!("{}\n\n{}", figure.title(), aligned(&table));
    show(asked, &table, || chart(figure, &table), &text)
}

/// Writes what is asked for: CSV, a chart, or else the text.
fn show(
    asked: &Simulate,
    table: &Table,
    chart: impl FnOnce() -> Chart,
    text: &str,
) -> anyhow::Result<ExitCode> {
    if let Some(file) = &asked.csv {
        write(file, &table.to_csv())?;
    }
    if let Some(file) = &asked.svg {
        write(file, &chart().standalone())?;
    }
    if asked.csv.is_none() && asked.svg.is_none() {
        output::line(text)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn cost(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|it| (0.0..=1e12).contains(it));
    found.ok_or_else(|| "a cost is a number from 0 to 1e12".to_owned())
}

fn gain(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|it| (0.001..=1.0).contains(it));
    found.ok_or_else(|| "a gain is a number from 0.001 to 1".to_owned())
}

fn days(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|it| (0.1..=1e4).contains(it));
    found.ok_or_else(|| "days are a number from 0.1 to 10000".to_owned())
}

fn theta(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|it| (0.0..1.0).contains(it));
    found.ok_or_else(|| "θ is a number from 0 up to but not including 1".to_owned())
}

fn repositories(text: &str) -> Result<usize, String> {
    let count = text.parse().unwrap_or_default();
    let message = format!("the number of repositories is from 1 to {REPOSITORIES_MAX}");
    if (1..=REPOSITORIES_MAX).contains(&count) { Ok(count) } else { Err(message) }
}

/// The table for a terminal: columns as wide as what is in them.
fn aligned(table: &Table) -> String {
    let said = |cell: &Cell| match cell {
        // As a ratio of two costs of 0.
        Cell::Number(number) if !number.is_finite() => "none".to_owned(),
        Cell::Number(number) => format!("{}", (number * 1e6).round() / 1e6),
        Cell::Name(name) => name.clone(),
    };
    let head = table.columns.iter().map(|it| (*it).to_owned()).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(said).collect());
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

/// The figure as the paper draws it.
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

/// Figures 8 and 9: what is paid in all and for harvesting, by the price of staleness.
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

/// What the series of a row is called.
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
