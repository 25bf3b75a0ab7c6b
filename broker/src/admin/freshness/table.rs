//! The table of sources: the facts of `harvest broker status`, each in a column.
//!
//! Sans-I/O.

use serde::Serialize;
use web::templates::{grouped, size};

use super::format::{instant, moment, number, percent, span};
use crate::page::shortened;
use crate::status::SourceStatus;

/// Maximum length of a source's message, in characters; the rest is not shown.
const MESSAGE_CHARS_MAX: usize = 300;
/// Maximum length of a source's name, in characters; the rest is not shown.
pub(super) const NAME_CHARS_MAX: usize = 200;

/// One source, with a cell for each of [`COLUMNS`].
#[derive(Debug, Serialize)]
pub(super) struct Row {
    name: String,
    cells: Vec<Cell>,
}

#[derive(Debug, Default, Serialize)]
struct Cell {
    label: &'static str,
    text: String,
    /// The moment that the text describes, RFC 3339.
    time: Option<String>,
    /// A problem, shown below the text.
    wrong: String,
    /// Further facts, shown below the text.
    more: String,
}

type Column = (&'static str, fn(&SourceStatus, u64) -> Cell);

const COLUMNS: [Column; 9] = [
    ("Changes a day", |it, _| plain(it.rate_per_day.map(number))),
    ("Updated every", updated),
    ("Objects", |it, _| plain(it.elements.map(grouped))),
    ("Interval", interval),
    ("Next due", next_due),
    ("Freshness", |it, _| plain(it.freshness.map(percent))),
    ("Pulls", pulls),
    ("Trouble", trouble),
    ("Last pull", last_pull),
];

pub(super) fn columns() -> Vec<&'static str> {
    COLUMNS.iter().map(|(label, _)| *label).collect()
}

impl Row {
    pub(super) fn new(source: &SourceStatus, now_ms: u64) -> Self {
        let cell = |(label, cell): &Column| Cell { label, ..cell(source, now_ms) };
        Self {
            name: shortened(&source.name, NAME_CHARS_MAX),
            cells: COLUMNS.iter().map(cell).collect(),
        }
    }
}

fn plain(text: Option<String>) -> Cell {
    Cell { text: text.unwrap_or_else(|| "–".to_owned()), ..Cell::default() }
}

fn time(at_ms: Option<u64>, now_ms: u64) -> Cell {
    Cell { time: at_ms.and_then(instant), ..plain(at_ms.map(|at_ms| moment(at_ms, now_ms))) }
}

/// Returns the mean and the standard deviation of the intervals between updates (Liu §3).
fn updated(source: &SourceStatus, _now_ms: u64) -> Cell {
    let updates = &source.updates;
    let deviation = updates.interval_deviation_seconds;
    let more = deviation.map(|it| format!("± {}", span(it))).unwrap_or_default();
    Cell { more, ..plain(updates.interval_mean_seconds.map(span)) }
}

/// Returns the update cost of the source, including the time before restarts (Liu §3).
fn pulls(source: &SourceStatus, _now_ms: u64) -> Cell {
    let cost = &source.updates.cost;
    let dear = source.pull_cost.filter(|it| 1.05 < *it);
    let dear = dear.map(|it| format!(", each as {} requests", number(it))).unwrap_or_default();
    let more = format!("{} empty{dear}", grouped(cost.requests_empty));
    Cell { more, ..plain(Some(grouped(cost.requests))) }
}

fn interval(source: &SourceStatus, _now_ms: u64) -> Cell {
    let more = if source.follow { "followed" } else { "" }.to_owned();
    Cell { more, ..plain(source.interval_seconds.map(span)) }
}

fn next_due(source: &SourceStatus, now_ms: u64) -> Cell {
    if source.pulling {
        return plain(Some("being pulled".to_owned()));
    }
    time(source.next_due_ms, now_ms)
}

fn trouble(source: &SourceStatus, _now_ms: u64) -> Cell {
    let errors = &source.errors;
    let failed = || errors.last.as_ref().filter(|_| 0 < errors.in_a_row);
    let message = source.held.as_ref().or_else(failed);
    let text = match (&source.held, errors.in_a_row) {
        (Some(_), _) => "held".to_owned(),
        (None, 0) => "none".to_owned(),
        (None, 1) => "1 failure".to_owned(),
        (None, many) => format!("{} failures in a row", grouped(u64::from(many))),
    };
    let wrong = message.map(|it| shortened(it, MESSAGE_CHARS_MAX)).unwrap_or_default();
    Cell { text, wrong, ..Cell::default() }
}

fn last_pull(source: &SourceStatus, now_ms: u64) -> Cell {
    let Some(last) = &source.last_pull else { return plain(None) };
    let changes = if last.changes == 1 { "change" } else { "changes" };
    let (count, bytes, took) = (grouped(last.changes), size(last.bytes), span(last.took_seconds));
    Cell {
        more: format!("{count} {changes}, {bytes}, took {took}"),
        ..time(Some(last.at_ms), now_ms)
    }
}
