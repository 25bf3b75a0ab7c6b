//! The numbers of the page: the JSON of `GET /freshness`, which [`super::template_data`] puts into
//! words.
//!
//! Source: Adly §3.1 (measured freshness), eq. 3 (intervals), §6 (the tool for administrators).
//!
//! # Differences from the paper
//!
//! * Every policy can be tried on the present sources, not only the combined cost.
//!
//! Sans-I/O.

use freshness::interval::{self, Model};
use freshness::schedule::Expected;
use serde::Serialize;

use super::curve::{Curve, CurvePoint};
use super::parameters::{Aim, Field, Parameters, Sort};
use crate::config::Freshness;
use crate::schedule::Planned;
use crate::status::forecast::{Forecast, HOUR_SECS, hourly};
use crate::status::{self, SourceStatus};

/// Maximum number of sources on one page, of the preview and of the list.
pub(super) const ROWS_MAX: usize = 100;
/// Share of an interval by which it must change to be called sooner or later.
const CHANGE_SHARE_MIN: f64 = 0.01;

/// The sources at one moment, and the settings of their pulls.
#[derive(Clone, Debug)]
pub(super) struct Present {
    pub(super) settings: Freshness,
    pub(super) expected: Expected,
    pub(super) measured: Option<f64>,
    pub(super) planned: Vec<Planned>,
    pub(super) sources: Vec<SourceStatus>,
    /// Names of sources that stay below θ even at their shortest interval.
    pub(super) held_back: Vec<String>,
}

/// All data of the page. Shares are from 0 to 1; an interval of `null` means that the source would
/// not be pulled again.
#[derive(Clone, Debug, Serialize)]
pub(super) struct View {
    pub(super) policy: &'static str,
    pub(super) aim: Option<status::Aim>,
    pub(super) model: &'static str,
    /// Measured freshness of all sources; `None` before any is measured.
    pub(super) measured_freshness: Option<f64>,
    /// Expected freshness at the present intervals, of the sources with a known rate.
    pub(super) expected_freshness: f64,
    /// `met`, `all_longest`, `all_shortest` or `partly`: whether the aim can be met within the
    /// bounds.
    pub(super) outcome: &'static str,
    /// Names of sources that stay below θ even at their shortest interval.
    pub(super) held_back: Vec<String>,
    /// Pulls at the present intervals, of the sources with a known rate.
    pub(super) pulls_per_hour: f64,
    /// Freshness and pulls of the plan; the intervals are the plan's once every source has been
    /// watched long enough.
    pub(super) planned: CurvePoint,
    pub(super) pulls_per_hour_max: f64,
    pub(super) sources_total: usize,
    /// Number of sources with a known rate; the others are in no plan yet.
    pub(super) sources_planned: usize,
    pub(super) sources_followed: usize,
    pub(super) curve: Option<Curve>,
    /// The curve's mark for now: the present pulls with the measured freshness, or with the
    /// expected one if none is measured.
    pub(super) today: CurvePoint,
    pub(super) preview: Option<Preview>,
    /// Page number and number of pages of the sources.
    pub(super) list: Pages,
    /// In the order of the settings.
    pub(super) sources: Vec<SourceStatus>,
}

/// The effect of other settings on the sources.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Preview {
    pub(super) policy: &'static str,
    pub(super) aim: Option<status::Aim>,
    pub(super) outcome: &'static str,
    pub(super) expected_freshness: f64,
    pub(super) pulls_per_hour: f64,
    /// Number of sources that would be pulled more often.
    pub(super) sooner: usize,
    /// Number of sources that would be pulled less often.
    pub(super) later: usize,
    pub(super) same: usize,
    pub(super) settings: String,
    pub(super) pages: Pages,
    pub(super) sources: Vec<Change>,
}

/// One source under the present and under the new settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Change {
    pub(super) name: String,
    pub(super) interval_seconds: f64,
    pub(super) new_interval_seconds: f64,
    pub(super) pulls_per_hour: f64,
    pub(super) new_pulls_per_hour: f64,
    pub(super) expected_freshness: f64,
    pub(super) new_expected_freshness: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Pages {
    /// Number of this page, from 1.
    pub(super) page: usize,
    /// Number of pages, at least 1.
    pub(super) of: usize,
    pub(super) rows: usize,
}

impl Pages {
    /// Returns the page with the number `asked`, or the last page if there are fewer.
    fn new(asked: usize, rows: usize) -> Self {
        let of = rows.div_ceil(ROWS_MAX).max(1);
        Self { page: asked.clamp(1, of), of, rows }
    }

    fn cut<T>(self, mut all: Vec<T>) -> Vec<T> {
        all.truncate(self.page * ROWS_MAX);
        all.split_off(((self.page - 1) * ROWS_MAX).min(all.len()))
    }
}

impl View {
    /// Returns the view of the sources and of the preview. Computes about 40 plans.
    pub(super) fn new(present: Present, asked: &Parameters) -> Self {
        let Present { settings, expected, measured, planned, sources, held_back } = present;
        let weighed: Vec<interval::Source> = planned.iter().map(|it| it.source).collect();
        let Forecast { pulls_per_hour, freshness: expected_freshness } =
            Forecast::new(&planned, settings.model);
        let preview =
            asked.settings(settings).map(|then| Preview::new(settings, then, &planned, asked));
        let then = preview.as_ref().map_or(0.0, |it| it.expected_freshness);
        let model = settings.model;
        let list = Pages::new(asked.list, sources.len());
        Self {
            policy: settings.policy.name(),
            aim: settings.aim(),
            model: if model == Model::Poisson { "poisson" } else { "linear" },
            measured_freshness: measured,
            expected_freshness,
            outcome: status::outcome_name(expected.outcome),
            held_back,
            pulls_per_hour,
            planned: CurvePoint {
                pulls_per_hour: expected.pulls * HOUR_SECS,
                freshness: expected.freshness,
            },
            pulls_per_hour_max: f64::from(settings.pulls_per_minute_max) * 60.0,
            sources_total: sources.len(),
            sources_planned: planned.len(),
            sources_followed: sources.iter().filter(|it| it.follow).count(),
            curve: Curve::new(&weighed, model, expected_freshness.max(then)),
            today: CurvePoint { pulls_per_hour, freshness: measured.unwrap_or(expected_freshness) },
            preview,
            list,
            sources: list.cut(sources),
        }
    }
}

impl Preview {
    fn new(now: Freshness, then: Freshness, planned: &[Planned], asked: &Parameters) -> Self {
        let weighed: Vec<interval::Source> =
            planned.iter().map(|it| it.under(then.policy)).collect();
        let plan = interval::plan(&weighed, then.settings().policy, then.model);
        let mut changes: Vec<Change> = planned
            .iter()
            .zip(&plan.intervals)
            // A followed source has no finite interval.
            .filter(|(it, _)| it.interval_secs.is_finite())
            .map(|(it, interval)| Change::new(it, *interval, then.model))
            .collect();
        let count =
            |counted: fn(f64) -> bool| changes.iter().filter(|it| counted(it.log())).count();
        let sooner = count(|log| log < -CHANGE_SHARE_MIN);
        let later = count(|log| CHANGE_SHARE_MIN < log);
        let by_name = |a: &Change, b: &Change| a.name.cmp(&b.name);
        match asked.sort {
            Sort::Name => changes.sort_by(by_name),
            Sort::Change => changes.sort_by(|a, b| {
                b.log().abs().total_cmp(&a.log().abs()).then_with(|| by_name(a, b))
            }),
        }
        let pages = Pages::new(asked.page, changes.len());
        Self {
            policy: then.policy.name(),
            aim: then.aim(),
            outcome: status::outcome_name(plan.outcome),
            expected_freshness: plan.freshness,
            pulls_per_hour: plan.pulls * HOUR_SECS,
            sooner,
            later,
            same: changes.len() - sooner - later,
            settings: lines(now, then),
            pages,
            sources: pages.cut(changes),
        }
    }

    /// Returns the options of `harvest broker tune` for the same settings.
    pub(super) fn options(&self) -> String {
        let aim = self.aim.as_ref().map_or_else(String::new, |it| match it.setting.as_str() {
            "interval" => format!(" --interval \"{} s\"", it.value),
            setting => format!(" --{} {}", setting.replace('_', "-"), it.value),
        });
        format!("--policy {}{aim}", self.policy)
    }
}

impl Change {
    fn new(planned: &Planned, new_interval: f64, model: Model) -> Self {
        let interval = planned.interval_secs;
        Self {
            name: planned.name.clone(),
            interval_seconds: interval,
            new_interval_seconds: new_interval,
            pulls_per_hour: hourly(interval),
            new_pulls_per_hour: hourly(new_interval),
            expected_freshness: planned.source.freshness_at(interval, model),
            new_expected_freshness: planned.source.freshness_at(new_interval, model),
        }
    }

    /// Returns the logarithm of the new interval divided by the present interval.
    fn log(&self) -> f64 {
        let log = (self.new_interval_seconds / self.interval_seconds).ln();
        if log.is_nan() { 0.0 } else { log }
    }
}

/// Returns the lines for `[freshness]`, with a comment that names a line to remove.
fn lines(now: Freshness, then: Freshness) -> String {
    let name = |aim: Aim| aim.field.name();
    let (old, new) = (Aim::of(now), Aim::of(then));
    let aim = new.map_or_else(String::new, |aim| match aim.field {
        Field::Interval => format!("{} = \"{}\"\n", name(aim), aim.written()),
        _ => format!("{} = {:?}\n", name(aim), aim.value),
    });
    let gone = old.map(name).filter(|old| new.map(name) != Some(*old));
    let remove = gone.map_or_else(String::new, |old| format!("# and without the line {old}\n"));
    format!("[freshness]\npolicy = \"{}\"\n{aim}{remove}", then.policy.name())
}

#[cfg(test)]
mod tests;
