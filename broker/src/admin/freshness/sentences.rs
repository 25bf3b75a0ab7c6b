//! The sentences, the figures (cards) and the chart of the page.
//!
//! Sans-I/O.

use serde::Serialize;
use web::chart::{Axis, Chart, Series};
use web::templates::grouped;

use super::curve::{Curve, CurvePoint};
use super::format::{number, percent, span};
use super::table::NAME_CHARS_MAX;
use super::view::{Preview, View};
use crate::page::shortened;
use crate::status::Aim;

/// Minimum share by which the present pulls exceed the plan's for a note to mention it.
const YOUNG_SHARE_MIN: f64 = 0.02;

/// A figure, with its label above it and its unit below.
#[derive(Debug, Serialize)]
pub(super) struct Card {
    label: &'static str,
    value: String,
    note: String,
}

impl Card {
    fn new(label: &'static str, value: String, note: impl Into<String>) -> Self {
        Self { label, value, note: note.into() }
    }
}

fn aim(policy: &str, aim: Option<&Aim>) -> String {
    let Some(&Aim { value, .. }) = aim else {
        return "a pull of each source as often as it changes (policy best_estimation)".to_owned();
    };
    let (share, pulls) = (percent(value), number(value));
    match policy {
        "oap" => format!("{share} fresh with as few pulls as possible (policy oap, θ = {value})"),
        "uap" => format!("{share} fresh with one interval for all (policy uap, θ = {value})"),
        "ioap" => format!("{share} fresh for each source by itself (policy ioap, θ = {value})"),
        "fixed" => format!("a pull of every source each {} (policy fixed)", span(value)),
        "combined_cost" => format!(
            "the lowest total cost of pulls and staleness, where an hour in which all is stale costs \
             {pulls} pulls (policy combined_cost, price a = {value})"
        ),
        _ => format!("the best freshness for {pulls} pulls an hour (policy budget)"),
    }
}

/// Returns the first sentences of the page: the aim and the present state.
pub(super) fn lead(view: &View) -> String {
    let aim = aim(view.policy, view.aim.as_ref());
    if view.sources_planned == 0 {
        return format!(
            "The settings ask for {aim}. There is no plan yet: the change rate of a source is known \
             from its second pull on."
        );
    }
    let measured = match view.measured_freshness {
        Some(measured) => format!("the measured freshness is {}", percent(measured)),
        None => "nothing has been measured yet".to_owned(),
    };
    format!(
        "The settings ask for {aim}; {measured}. The present intervals take {} pulls an hour, and are \
         expected to keep everything {} fresh.",
        number(view.pulls_per_hour),
        percent(view.expected_freshness),
    )
}

/// Returns the first sentence of a preview: its effect.
pub(super) fn preview_lead(view: &View, preview: &Preview) -> String {
    format!(
        "For {}: {} pulls an hour instead of {}, and an expected freshness of {} instead of {}.",
        aim(preview.policy, preview.aim.as_ref()),
        number(preview.pulls_per_hour),
        number(view.pulls_per_hour),
        percent(preview.expected_freshness),
        percent(view.expected_freshness),
    )
}

pub(super) fn cards(view: &View) -> Vec<Card> {
    let (value, note) = match view.aim.as_ref().map(|it| (it.setting.as_str(), it.value)) {
        Some(("theta", value)) => (percent(value), "freshness θ"),
        Some(("interval", value)) => (span(value), "between pulls"),
        Some(("price", value)) => (number(value), "pulls for a stale hour"),
        Some((_, value)) => (number(value), "pulls an hour"),
        None => ("–".to_owned(), "as often as each changes"),
    };
    let aim = Card::new("Aimed at", value, note);
    let if_planned = |text: String| if 0 < view.sources_planned { text } else { "–".to_owned() };
    let measured = view.measured_freshness.map_or_else(|| "–".to_owned(), percent);
    let known = format!("{} with a known rate", grouped(view.sources_planned as u64));
    vec![
        aim,
        Card::new("Measured", measured, "freshness"),
        Card::new("Expected", if_planned(percent(view.expected_freshness)), "freshness"),
        Card::new("Load", if_planned(number(view.pulls_per_hour)), "pulls an hour"),
        Card::new("Sources", grouped(view.sources_total as u64), known),
    ]
}

pub(super) fn preview_cards(view: &View, preview: &Preview) -> Vec<Card> {
    let to =
        |now: f64, then: f64, word: fn(f64) -> String| format!("{} → {}", word(now), word(then));
    let fresh = to(view.expected_freshness, preview.expected_freshness, percent);
    let load = to(view.pulls_per_hour, preview.pulls_per_hour, number);
    let count = |label, count: usize| Card::new(label, grouped(count as u64), "sources");
    vec![
        Card::new("Expected", fresh, "freshness"),
        Card::new("Load", load, "pulls an hour"),
        count("More often", preview.sooner),
        count("Less often", preview.later),
        count("As now", preview.same),
    ]
}

/// Returns notes on the present aim: obstacles and other facts that an administrator should know.
pub(super) fn notes(view: &View) -> Vec<String> {
    let mut notes = Vec::new();
    let total = grouped(view.sources_total as u64);
    if 0 < view.sources_planned {
        let planned = &view.planned;
        notes.extend(obstacle(
            view.outcome,
            view.policy,
            planned.freshness,
            planned.pulls_per_hour,
        ));
        notes.extend(held_back(&view.held_back));
        notes.extend(too_many(view.pulls_per_hour, view.pulls_per_hour_max));
        if (1.0 + YOUNG_SHARE_MIN) * planned.pulls_per_hour < view.pulls_per_hour {
            notes.push(format!(
                "Some sources are new: no interval is longer than the source has been watched. In \
                 time, {} pulls an hour will suffice, and keep {} fresh.",
                number(planned.pulls_per_hour),
                percent(planned.freshness)
            ));
        }
        let unplanned = view.sources_total.saturating_sub(view.sources_planned);
        if 0 < unplanned {
            notes.push(format!(
                "Of {total} sources, {} have no known rate yet: they are pulled, but the figures of \
                 plans leave them out.",
                grouped(unplanned as u64)
            ));
        }
    }
    if 0 < view.sources_followed {
        notes.push(format!(
            "Of {total} sources, {} followed: a long poll brings their changes at once, whatever the \
             interval is.",
            match view.sources_followed {
                1 => "1 is".to_owned(),
                many => format!("{} are", grouped(many as u64)),
            }
        ));
    }
    notes
}

pub(super) fn preview_notes(view: &View, preview: &Preview) -> Vec<String> {
    let (fresh, load) = (preview.expected_freshness, preview.pulls_per_hour);
    let obstacle = obstacle(preview.outcome, preview.policy, fresh, load);
    obstacle.into_iter().chain(too_many(load, view.pulls_per_hour_max)).collect()
}

/// Describes why a plan misses its aim, and the best result that is possible; `None` if the plan
/// meets its aim.
fn obstacle(outcome: &str, policy: &str, freshness: f64, hourly: f64) -> Option<String> {
    let (fresh, hourly) = (percent(freshness), number(hourly));
    let shortest = "every source is at its shortest interval (interval_min)";
    let longest = "every source is at its longest interval (interval_max, or with the \
                   linear model until each object has changed once)";
    match (outcome, policy) {
        ("all_shortest", "budget") => Some(format!(
            "Within the bounds the budget cannot be spent: {shortest}, which takes {hourly} pulls an \
             hour and keeps {fresh} fresh."
        )),
        ("all_shortest", _) => Some(format!(
            "The aim cannot be met within the bounds: {shortest}; the best possible freshness is {fresh}."
        )),
        ("all_longest", "budget") => Some(format!(
            "The bounds need more than the budget: {longest}, which takes {hourly} pulls an hour."
        )),
        ("all_longest", "fixed") => Some(format!(
            "The interval is beyond the bounds: {longest}, which keeps {fresh} fresh."
        )),
        ("partly", _) => Some(format!(
            "The bounds of some sources prevent the aim; the resulting freshness is {fresh}."
        )),
        ("all_longest", _) => Some(format!(
            "The bounds give more than the aim: {longest}, which keeps {fresh} fresh."
        )),
        _ => None,
    }
}

fn held_back(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| {
        format!(
            "Below the aim even at their shortest interval, so that the others are pulled more often: {}.",
            names.iter().map(|it| shortened(it, NAME_CHARS_MAX)).collect::<Vec<_>>().join(", ")
        )
    })
}

fn too_many(hourly: f64, max: f64) -> Option<String> {
    let most = number(max);
    (max < hourly).then(|| {
        format!(
            "That is more than pulls_per_minute_max allows, {most} pulls an hour: sources are \
             pulled later than planned."
        )
    })
}

/// Returns the chart of the curve, with marks for now and for the preview.
pub(super) fn chart(view: &View, curve: &Curve) -> Chart {
    let place = |it: &CurvePoint| (it.pulls_per_hour, it.freshness);
    let (now, fresh) = (&view.today, percent(view.today.freshness));
    let mut series = vec![
        Series::line("attainable", curve.points.iter().map(place).collect()),
        Series::highlight(format!("now: {fresh}"), place(now)),
    ];
    let mut description = format!(
        "Best freshness for each number of pulls, from {} pulls an hour on. Now: {} pulls an hour, \
         {fresh} fresh.",
        number(curve.points.first().map_or(0.0, |it| it.pulls_per_hour)),
        number(now.pulls_per_hour),
    );
    if let Some(preview) = &view.preview {
        let (pulls_per_hour, freshness) = (preview.pulls_per_hour, preview.expected_freshness);
        let (load, fresh) = (number(pulls_per_hour), percent(freshness));
        let then = CurvePoint { pulls_per_hour, freshness };
        series.push(Series::highlight(format!("preview: {fresh}"), place(&then)));
        description += &format!(" Preview: {load} pulls an hour, {fresh} fresh.");
    }
    Chart {
        title: "Freshness against cost".to_owned(),
        description,
        x: Axis::new("Cost").unit("pulls an hour"),
        y: Axis::new("Freshness").percent(),
        series,
    }
}
