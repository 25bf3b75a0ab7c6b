//! The data of the page's template: this module prepares all text, so that the template only
//! arranges it.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use serde::Serialize;
use web::templates::grouped;

use super::curve::CurvePoint;
use super::format::{factor, number, percent, span};
use super::parameters::{Field, POWER_MAX, Parameters, Sort, duration_written};
use super::sentences::{self, Card};
use super::table::{self, NAME_CHARS_MAX, Row};
use super::view::{Change, Pages, Preview, View};
use crate::config::Freshness;
use crate::page::shortened;

/// Lowest and highest value of the slider for θ.
const THETA_SLIDER: (f64, f64) = (0.5, 0.999);
const THETAS: [f64; 7] = [0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999];
/// Prices to choose from; the slider ranges from the first to the last.
const PRICES: [f64; 7] = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6];
const THETA_POLICIES: [(&str, &str); 3] = [
    ("oap", "fewest pulls (oap)"),
    ("uap", "one interval for all (uap)"),
    ("ioap", "each source by itself (ioap)"),
];

/// The data of `freshness.html`.
#[derive(Debug, Serialize)]
pub(super) struct TemplateData {
    lead: String,
    cards: Vec<Card>,
    notes: Vec<String>,
    /// The chart as SVG text made in this module; it has no names of sources.
    chart: Option<String>,
    points: Vec<[String; 2]>,
    forms: Forms,
    wrong: BTreeMap<&'static str, String>,
    preview: Option<PreviewShown>,
    columns: Vec<&'static str>,
    sources: Vec<Row>,
    list: Vec<PageLink>,
    sources_total: usize,
    /// The query part of the URL of the same data as JSON.
    json: String,
}

#[derive(Debug, Serialize)]
struct Forms {
    theta: String,
    theta_words: String,
    thetas: Vec<Choice>,
    policies: Vec<Choice>,
    power: String,
    price_words: String,
    prices: Vec<Choice>,
    pulls_per_hour: String,
    interval: String,
    /// Whether the request uses a form other than the first.
    others: bool,
}

/// A value to choose: an option or a link.
#[derive(Debug, Serialize)]
struct Choice {
    value: String,
    label: String,
    /// Query part of a URL that chooses this value.
    address: String,
    chosen: bool,
}

#[derive(Debug, Serialize)]
struct PreviewShown {
    lead: String,
    cards: Vec<Card>,
    notes: Vec<String>,
    sorts: Vec<Choice>,
    rows: Vec<ChangeShown>,
    pages: Vec<PageLink>,
    settings: String,
    /// The options of `harvest broker tune` for the same settings.
    options: String,
    /// Process id of the broker, for the signal that makes it read new settings.
    process: u32,
}

#[derive(Debug, Serialize)]
struct ChangeShown {
    name: String,
    interval: String,
    new_interval: String,
    factor: String,
    hourly: String,
    new_hourly: String,
    freshness: String,
    new_freshness: String,
}

#[derive(Debug, Serialize)]
struct PageLink {
    label: String,
    address: String,
    current: bool,
}

impl TemplateData {
    /// Returns the page for `view`. `process` is the process id of the broker.
    pub(super) fn new(view: &View, asked: &Parameters, now_ms: u64, process: u32) -> Self {
        let at = |list| asked.address(asked.sort, asked.page, list);
        let address = at(asked.list);
        let joint = if address.len() <= 1 { "" } else { "&" };
        let mistakes = asked.mistakes.iter();
        let in_numbers = |it: &CurvePoint| [number(it.pulls_per_hour), percent(it.freshness)];
        Self {
            lead: sentences::lead(view),
            cards: sentences::cards(view),
            notes: sentences::notes(view),
            chart: view.curve.as_ref().map(|it| sentences::chart(view, it).inline("curve")),
            points: view.curve.iter().flat_map(|it| &it.points).map(in_numbers).collect(),
            forms: Forms::new(view, asked),
            wrong: mistakes.map(|it| (it.field.name(), it.message.clone())).collect(),
            preview: view.preview.as_ref().map(|it| PreviewShown::new(view, it, asked, process)),
            columns: table::columns(),
            sources: view.sources.iter().map(|it| Row::new(it, now_ms)).collect(),
            list: links(view.list, at),
            sources_total: view.sources_total,
            json: format!("{address}{joint}format=json"),
        }
    }
}

impl Forms {
    fn new(view: &View, asked: &Parameters) -> Self {
        let now = (view.policy, view.aim.as_ref());
        let (policy, aim) = view.preview.as_ref().map_or(now, |it| (it.policy, it.aim.as_ref()));
        let aimed = |field: Field| aim.filter(|it| it.setting == field.name()).map(|it| it.value);
        let of = |field: Field| aimed(field).unwrap_or_else(|| default_of(field));
        let (theta, price) = (of(Field::Theta), of(Field::Price));
        let typed = |field: Field, otherwise: String| {
            asked.mistake_in(field).map_or(otherwise, |it| it.typed.clone())
        };
        let choices = |field: Field, values: &[f64], label: fn(f64) -> String| {
            let choice = |value: &f64| Choice {
                value: value.to_string(),
                label: label(*value),
                address: format!("?{}={value}", field.name()),
                chosen: aimed(field).is_some_and(|it| (value - it).abs() <= 1e-9 * value),
            };
            values.iter().map(choice).collect()
        };
        let named = |(name, label): (&str, &str)| Choice {
            value: name.to_owned(),
            label: label.to_owned(),
            address: String::new(),
            chosen: name == policy,
        };
        let others = [Field::Price, Field::PricePower, Field::PullsPerHour, Field::Interval];
        Self {
            theta: theta.clamp(THETA_SLIDER.0, THETA_SLIDER.1).to_string(),
            theta_words: format!("θ = {theta}: {} fresh", percent(theta)),
            thetas: choices(Field::Theta, &THETAS, percent),
            policies: THETA_POLICIES.into_iter().map(named).collect(),
            power: format!("{:.2}", price.max(1.0).log10().min(POWER_MAX)),
            price_words: format!("a = {} pulls", number(price)),
            prices: choices(Field::Price, &PRICES, number),
            pulls_per_hour: typed(Field::PullsPerHour, of(Field::PullsPerHour).to_string()),
            interval: typed(Field::Interval, duration_written(of(Field::Interval))),
            others: aimed(Field::Theta).is_none()
                || others.iter().any(|it| asked.mistake_in(*it).is_some()),
        }
    }
}

fn default_of(field: Field) -> f64 {
    let Freshness { price, pulls_per_hour, interval, theta, .. } = Freshness::default();
    match field {
        Field::Price => price,
        Field::PullsPerHour => pulls_per_hour,
        Field::Interval => interval,
        _ => theta,
    }
}

impl PreviewShown {
    fn new(view: &View, preview: &Preview, asked: &Parameters, process: u32) -> Self {
        let sorts = Sort::ALL.map(|sort| Choice {
            value: sort.name().to_owned(),
            label: if sort == Sort::Name { "By name" } else { "Largest change first" }.to_owned(),
            address: asked.address(sort, 1, asked.list),
            chosen: sort == asked.sort,
        });
        Self {
            lead: sentences::preview_lead(view, preview),
            cards: sentences::preview_cards(view, preview),
            notes: sentences::preview_notes(view, preview),
            sorts: sorts.into(),
            rows: preview.sources.iter().map(ChangeShown::new).collect(),
            pages: links(preview.pages, |page| asked.address(asked.sort, page, asked.list)),
            settings: preview.settings.clone(),
            options: preview.options(),
            process,
        }
    }
}

impl ChangeShown {
    fn new(change: &Change) -> Self {
        Self {
            name: shortened(&change.name, NAME_CHARS_MAX),
            interval: span(change.interval_seconds),
            new_interval: span(change.new_interval_seconds),
            factor: factor(change.interval_seconds, change.new_interval_seconds),
            hourly: number(change.pulls_per_hour),
            new_hourly: number(change.new_pulls_per_hour),
            freshness: percent(change.expected_freshness),
            new_freshness: percent(change.new_expected_freshness),
        }
    }
}

/// Returns links to the current page, the pages next to it, the first and the last page; no links
/// if there is only one page.
fn links(pages: Pages, address: impl Fn(usize) -> String) -> Vec<PageLink> {
    let Pages { page, of, .. } = pages;
    if of == 1 {
        return Vec::new();
    }
    let mut numbers = vec![1, page.saturating_sub(1).max(1), page, (page + 1).min(of), of];
    numbers.dedup();
    let link = |number: usize| PageLink {
        label: grouped(number as u64),
        address: address(number),
        current: number == page,
    };
    numbers.into_iter().map(link).collect()
}
