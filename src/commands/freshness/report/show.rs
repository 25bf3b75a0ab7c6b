//! The view of a study: tables for a terminal, and the paper's figure.

use comfy_table::{CellAlignment, Table, presets};
use freshness::date::date_time;
use freshness::history::Moments;
use indicatif::{HumanBytes, HumanCount, HumanFloatCount};
use study::model::Prediction;
use study::report::{Class, ClassRow, Report, SourceRow};
use web::chart::{Axis, Chart, Series};

use super::is_of_pulls;
use super::read::StudiedLog;
use crate::output;

/// Number of the most active sources that are listed without `--all`.
const SOURCES_SHOWN: usize = 20;

const DAY_SECS: f64 = 86_400.0;

pub(super) struct ReportView<'a> {
    pub(super) log: &'a StudiedLog,
    pub(super) report: &'a Report<String>,
    pub(super) predictions: &'a [Prediction],
}

impl ReportView<'_> {
    /// Writes all tables for a person; `all` lists every source.
    pub(super) fn text(&self, all: bool) -> String {
        let sources = &self.report.sources;
        let count = if all { sources.len() } else { sources.len().min(SOURCES_SHOWN) };
        let listed = if count < sources.len() {
            format!("The {count} most active of {} sources (--all lists them all)", sources.len())
        } else {
            "Sources, the most active first".to_owned()
        };
        let parts = [
            ("Totals", self.totals()),
            ("Record update rate by month", self.months()),
            ("Sources by mean update interval", self.classes()),
            (
                "Requests a day, as predicted from update frequency and acceptable latency",
                self.costs(),
            ),
            (listed.as_str(), self.sources(&sources[..count])),
        ];
        parts.map(|(heading, table)| format!("{heading}\n{}", table.trim_fmt())).join("\n\n")
    }

    fn totals(&self) -> Table {
        let all = &self.report.overall;
        let (first, last) = self.log.span_secs;
        let a_day = |rate: Option<f64>| or_dash(rate, |it| number(it * DAY_SECS));
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let mut row = |name: &str, text: String| {
            table.add_row([name.to_owned(), text]);
        };
        let changed = HumanCount(all.sources_changed);
        row("sources", format!("{}, {changed} of them changed", HumanCount(all.sources)));
        let span = duration((last - first) as f64);
        row("observed", format!("{} to {}, {span}", date_time(first), date_time(last)));
        let (updates, records) = (HumanCount(all.updates), HumanCount(all.records));
        row("updates", format!("{updates}; {} a day and source", a_day(all.frequency)));
        row("records updated", format!("{records}; {} a day and source", a_day(all.record_rate)));
        row("update interval", moments(all.intervals));
        row("sources' means", moments(all.means));
        if is_of_pulls(self.log) {
            row("fresh as a whole", or_dash(all.freshness, |it| format!("{it:.3}")));
            let requests = all.cost.requests.saturating_add(all.traffic.requests_failed);
            let empty = HumanCount(all.cost.requests_empty);
            let failed = HumanCount(all.traffic.requests_failed);
            row("requests", format!("{}, {empty} empty, {failed} failed", HumanCount(requests)));
            let bytes = HumanBytes(all.traffic.bytes);
            let took = duration(all.traffic.took_ms as f64 / 1_000.0);
            let brought = output::counted(all.cost.records, "record");
            row("brought", format!("{brought}, {bytes} compressed, in {took}"));
        }
        table
    }

    fn months(&self) -> Table {
        let mut table = headed(["month", "updates", "records", "records a day"]);
        for row in &self.report.months {
            table.add_row([
                row.month.to_string(),
                HumanCount(row.updates).to_string(),
                HumanCount(row.records).to_string(),
                number(row.record_rate * DAY_SECS),
            ]);
        }
        table
    }

    fn classes(&self) -> Table {
        let mut table = headed(["class", "interval", "sources", "share", "together"]);
        let mut longer = None;
        for row in &self.report.classes {
            let max = row.class.interval_max();
            let interval = match (row.class, max) {
                (_, Some(max)) => format!("up to {}", duration(max)),
                (Class::Never, None) => dash(),
                (_, None) => or_dash(longer, |it| format!("over {}", duration(it))),
            };
            longer = max.or(longer);
            table.add_row([
                row.class.name().to_owned(),
                interval,
                HumanCount(row.sources).to_string(),
                percent(row.share),
                percent(row.share_up_to),
            ]);
        }
        table
    }

    fn costs(&self) -> Table {
        let mut table = headed(["model", "harvester", "a source", "late, at most"]);
        let sources = self.report.overall.sources.max(1) as f64;
        for row in self.predictions {
            table.add_row([
                row.model.name().to_owned(),
                number(row.total),
                number(row.total / sources),
                percent(row.late_share_max),
            ]);
        }
        let (first, last) = self.log.span_secs;
        if is_of_pulls(self.log) && first < last {
            let all = &self.report.overall;
            let requests = all.cost.requests.saturating_add(all.traffic.requests_failed);
            let a_day = requests as f64 / ((last - first) as f64 / DAY_SECS);
            table.add_row(["as logged".to_owned(), number(a_day), number(a_day / sources), dash()]);
        }
        table
    }

    fn sources(&self, rows: &[SourceRow<String>]) -> Table {
        let names = [
            "source",
            "class",
            "updates",
            "records",
            "a day",
            "mean interval",
            "deviation",
            "variation",
        ];
        let of_pulls = ["as a whole", "requests", "empty", "failed", "brought"];
        let is_of_pulls = is_of_pulls(self.log);
        let mut table =
            headed(names.into_iter().chain(of_pulls.into_iter().filter(|_| is_of_pulls)));
        for row in rows {
            let mut cells = vec![
                row.source.clone(),
                row.class.name().to_owned(),
                HumanCount(row.updates).to_string(),
                HumanCount(row.records).to_string(),
                or_dash(row.record_rate, |it| number(it * DAY_SECS)),
                or_dash(row.intervals.mean(), duration),
                or_dash(row.intervals.deviation(), duration),
                or_dash(row.intervals.variation(), |it| format!("{it:.2}")),
            ];
            if is_of_pulls {
                let requests = row.cost.requests.saturating_add(row.traffic.requests_failed);
                cells.extend([
                    or_dash(row.freshness, |it| format!("{it:.3}")),
                    HumanCount(requests).to_string(),
                    HumanCount(row.cost.requests_empty).to_string(),
                    HumanCount(row.traffic.requests_failed).to_string(),
                    HumanBytes(row.traffic.bytes).to_string(),
                ]);
            }
            table.add_row(cells);
        }
        table
    }
}

/// Draws the paper's figure: the number of sources by their mean update interval.
pub(super) fn chart(classes: &[ClassRow]) -> Chart {
    let at = |(index, row): (u32, &ClassRow)| (f64::from(index), row.share);
    let shares: Vec<String> = classes
        .iter()
        .map(|row| format!("{} {} ({})", row.class.name(), row.sources, percent(row.share)))
        .collect();
    Chart {
        title: "Sources by mean update interval".to_owned(),
        description: format!(
            "Number and share of the sources in each class: {}.",
            shares.join(", ")
        ),
        x: Axis::new("mean update interval").categories(classes.iter().map(|it| label(it.class))),
        y: Axis::new("share of sources").percent(),
        series: vec![Series::bars("", (0..).zip(classes).map(at).collect())],
    }
}

/// Returns the label of a class on the figure's axis, which has no room for the full names.
fn label(class: Class) -> &'static str {
    match class {
        Class::Daily => "day",
        Class::Weekly => "week",
        Class::Monthly => "month",
        Class::Quarterly => "¼ year",
        Class::Yearly => "year",
        Class::Longer => "longer",
        Class::Never => "never",
    }
}

/// Returns a table with its first column aligned left and the others right.
fn headed<'a>(names: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = output::table(names);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn dash() -> String {
    "–".to_owned()
}

fn or_dash<T>(value: Option<T>, shown: impl FnOnce(T) -> String) -> String {
    value.map_or_else(dash, shown)
}

fn moments(of: Moments) -> String {
    let (mean, deviation) = (or_dash(of.mean(), duration), or_dash(of.deviation(), duration));
    let variation = or_dash(of.variation(), |it| format!("{it:.2}"));
    format!("mean {mean}, deviation {deviation}, variation {variation}")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Writes a number with few digits.
fn number(number: f64) -> String {
    match number {
        100.0.. => HumanFloatCount(number.round()).to_string(),
        1.0.. => format!("{number:.1}"),
        0.001.. => format!("{number:.3}"),
        _ if number <= 0.0 => "0".to_owned(),
        _ => format!("{number:.1e}"),
    }
}

/// Writes a duration in its best unit.
pub(super) fn duration(secs: f64) -> String {
    match secs {
        ..120.0 => format!("{secs:.1} s"),
        ..7_200.0 => format!("{:.1} min", secs / 60.0),
        ..DAY_SECS => format!("{:.1} hours", secs / 3_600.0),
        ..63_072_000.0 => format!("{:.1} days", secs / DAY_SECS),
        _ => format!("{:.1} years", secs / (365.25 * DAY_SECS)),
    }
}
