//! Tests that compare the page's numbers with eq. 3, computed by hand for two sources.

use std::collections::BTreeMap;

use freshness::interval::{Bounds, Workload};
use proptest::prelude::*;

use super::*;
use crate::config::PolicyName;
use crate::status::Errors;

const DAY_SECS: f64 = 86_400.0;
const BOUNDS: Bounds = Bounds { interval_min: 10.0, interval_max: DAY_SECS };

/// λ (in changes a second) and N of two sources.
const PAIR: [(f64, u64); 2] = [(0.1, 1_000), (0.025, 4_000)];

fn planned_of(name: &str, rate: f64, elements: u64, interval_secs: f64) -> Planned {
    let source = interval::Source::new(rate, elements, BOUNDS);
    Planned { name: name.to_owned(), source, estimated: source, interval_secs }
}

fn status(name: &str) -> SourceStatus {
    SourceStatus {
        name: name.to_owned(),
        errors: Errors { by_kind: BTreeMap::new(), ..Errors::default() },
        ..SourceStatus::default()
    }
}

/// Returns the sources under `settings`, at the intervals of the plan.
fn present(settings: Freshness, sources: &[(f64, u64)]) -> Present {
    let weighed: Vec<_> =
        sources.iter().map(|(rate, n)| interval::Source::new(*rate, *n, BOUNDS)).collect();
    let plan = interval::plan(&weighed, settings.settings().policy, settings.model);
    let names: Vec<String> = (0..sources.len()).map(|n| format!("s{n:04}")).collect();
    let planned = names.iter().zip(sources).zip(&plan.intervals);
    Present {
        settings,
        expected: Expected {
            outcome: plan.outcome,
            freshness: plan.freshness,
            pulls: plan.pulls,
            shortest: 0,
            longest: 0,
            contradictory: 0,
        },
        measured: Some(0.893),
        planned: planned.map(|((name, (rate, n)), it)| planned_of(name, *rate, *n, *it)).collect(),
        sources: names.iter().map(|it| status(it)).collect(),
        held_back: Vec::new(),
    }
}

/// Returns the page of the two sources in the linear model, whose intervals one can compute by
/// hand.
fn view(query: &str) -> View {
    let settings = Freshness { model: Model::Linear, ..Freshness::default() };
    View::new(present(settings, &PAIR), &Parameters::parse(Some(query)))
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} instead of {expected}");
}

/// Computes eq. 3: I = 2 (1 − θ) ΣN / Σ√λ / √λ, with the same cost of a pull for every source.
fn by_hand(theta: f64) -> [f64; 2] {
    let elements: f64 = PAIR.iter().map(|(_, n)| *n as f64).sum();
    let roots: f64 = PAIR.iter().map(|(rate, _)| rate.sqrt()).sum();
    PAIR.map(|(rate, _)| 2.0 * (1.0 - theta) * elements / roots / rate.sqrt())
}

/// With best estimation each source keeps its learned interval, and the settings have no aim.
#[test]
fn best_estimation_has_no_aim() {
    let mut present = present(Freshness::default(), &PAIR);
    for (it, interval) in present.planned.iter_mut().zip([600.0, 1_200.0]) {
        it.estimated.bounds = Bounds { interval_min: interval, interval_max: interval };
    }
    let view = View::new(present, &Parameters::parse(Some("policy=best_estimation&sort=name")));
    let preview = view.preview.unwrap();
    assert_eq!(preview.aim, None);
    let expected = "[freshness]\npolicy = \"best_estimation\"\n# and without the line theta\n";
    assert_eq!(preview.settings, expected);
    for (it, interval) in preview.sources.iter().zip([600.0, 1_200.0]) {
        assert!((it.new_interval_seconds - interval).abs() < 1e-9, "{it:?}");
    }
}

#[test]
fn a_preview_is_eq_3() {
    let view = view("theta=0.95&sort=name");
    let (now, then) = (by_hand(0.9), by_hand(0.95));
    let preview = view.preview.as_ref().unwrap();
    for (change, (now, then)) in preview.sources.iter().zip(now.iter().zip(then)) {
        near(change.interval_seconds, *now);
        near(change.new_interval_seconds, then);
        near(change.new_pulls_per_hour, 3_600.0 / then);
    }
    // Eq. 1 for the first source alone: half of the changes of an interval are missing on average.
    near(preview.sources[0].new_expected_freshness, 1.0 - 0.1 * then[0] / (2.0 * 1_000.0));
    near(view.pulls_per_hour, now.iter().map(|it| 3_600.0 / it).sum());
    near(preview.pulls_per_hour, 2.0 * view.pulls_per_hour);
    near(preview.expected_freshness, 0.95);
    near(view.expected_freshness, 0.9);
    assert_eq!((preview.sooner, preview.later, preview.same), (2, 0, 0));
    assert_eq!((preview.outcome, view.outcome), ("met", "met"));
    assert_eq!(view.today, CurvePoint { pulls_per_hour: view.pulls_per_hour, freshness: 0.893 });
}

#[test]
fn every_policy_can_be_tried() {
    let check = |query: &str, policy: &str, expected: [f64; 2]| {
        let view = view(&format!("{query}&sort=name"));
        let preview = view.preview.unwrap();
        assert_eq!(preview.policy, policy);
        for (change, expected) in preview.sources.iter().zip(expected) {
            near(change.new_interval_seconds, expected);
        }
    };
    // UAP: I = 2 (1 − θ) ΣN / Σλ; IOAP: 2 (1 − θ) N / λ.
    check("policy=uap&theta=0.9", "uap", [2.0 * 0.1 * 5_000.0 / 0.125; 2]);
    check("policy=ioap&theta=0.95", "ioap", [1_000.0, 16_000.0]);
    check("interval=2+h", "fixed", [7_200.0; 2]);
    // 30 pulls an hour, divided in the ratio of the square roots of the rates, 2 : 1.
    check("pulls_per_hour=30", "budget", [3_600.0 / 20.0, 3_600.0 / 10.0]);
    // Adly §6: I = √(2 C ΣN / (a λ)), with a in pulls a second.
    let combined = PAIR.map(|(rate, _)| (2.0 * 5_000.0 / (1_000.0 / 3_600.0 * rate)).sqrt());
    check("price=1000", "combined_cost", combined);
}

#[test]
fn an_aim_out_of_bounds_is_named_with_the_best_possible() {
    let preview = view("theta=0.9999").preview.unwrap();
    assert_eq!(preview.outcome, "all_shortest");
    // All sources at 10 s: of ΣN objects, Σλ · 10 / 2 are stale.
    near(preview.expected_freshness, 1.0 - 0.125 * 10.0 / 2.0 / 5_000.0);
    near(preview.pulls_per_hour, 720.0);
    assert_eq!(view("pulls_per_hour=0").preview.unwrap().outcome, "all_longest");
}

#[test]
fn the_curve_ends_beyond_its_marked_points() {
    for query in ["", "theta=0.98"] {
        let view = view(query);
        let curve = view.curve.as_ref().unwrap();
        let last = curve.points.last().unwrap();
        let shown = view.preview.as_ref().map_or(view.pulls_per_hour, |it| it.pulls_per_hour);
        assert!(shown < last.pulls_per_hour, "{query}: {shown} {last:?}");
    }
}

#[test]
fn the_largest_change_comes_first_and_pages_are_bounded() {
    let sources: Vec<(f64, u64)> = (1..=250).map(|n| (1e-6 * f64::from(n), 1_000)).collect();
    let mut present = present(Freshness::default(), &sources);
    present.planned[7].interval_secs *= 40.0;
    let at = |query: &str| View::new(present.clone(), &Parameters::parse(Some(query)));
    let first = at("theta=0.9").preview.unwrap();
    assert_eq!((first.sources[0].name.as_str(), first.sooner), ("s0007", 1));
    assert_eq!((first.sources.len(), first.pages), (100, Pages { page: 1, of: 3, rows: 250 }));
    let last = at("theta=0.9&sort=name&page=3&list=999");
    let preview = last.preview.unwrap();
    assert_eq!((preview.sources.len(), preview.sources[49].name.as_str()), (50, "s0249"));
    assert_eq!(
        (last.list.page, last.sources.len(), last.sources[0].name.as_str()),
        (3, 50, "s0200")
    );
}

#[test]
fn a_page_without_sources_is_made() {
    for query in ["", "theta=0.95", "price=0", "interval=1+s"] {
        let view = View::new(present(Freshness::default(), &[]), &Parameters::parse(Some(query)));
        assert_eq!((view.curve, view.sources_total, view.pulls_per_hour), (None, 0, 0.0));
    }
}

#[test]
fn the_lines_for_the_settings_file_give_the_previewed_settings() {
    let check = |now: PolicyName, query: &str, expected: &str| {
        let now = Freshness { policy: now, ..Freshness::default() };
        let then = Parameters::parse(Some(query)).settings(now).unwrap();
        let lines = lines(now, then);
        assert_eq!(lines, expected);
        let text = format!("name = \"x\"\ndata = \"/x\"\n{lines}");
        let read = crate::config::Config::parse(&text).unwrap();
        assert_eq!(read.freshness, Freshness { policy: then.policy, ..read.freshness });
        assert_eq!(read.freshness.aim(), then.aim());
    };
    let oap = PolicyName::Oap;
    check(oap, "theta=0.95", "[freshness]\npolicy = \"oap\"\ntheta = 0.95\n");
    check(
        oap,
        "price=1000",
        "[freshness]\npolicy = \"combined_cost\"\nprice = 1000.0\n# and without the line theta\n",
    );
    check(
        oap,
        "price=1e9&utm",
        "[freshness]\npolicy = \"combined_cost\"\nprice = 1000000000.0\n# and without the line theta\n",
    );
    check(
        PolicyName::Budget,
        "interval=90+min",
        "[freshness]\npolicy = \"fixed\"\ninterval = \"90 min\"\n# and without the line pulls_per_hour\n",
    );
}

proptest! {
    #[test]
    fn the_page_is_made_for_any_sources(
        sources in prop::collection::vec((any::<f64>(), any::<u64>(), any::<f64>()), 0..6),
        theta in any::<f64>(), price in any::<f64>(),
    ) {
        let mut present = present(Freshness::default(), &[]);
        present.planned = sources
            .iter()
            .map(|(rate, elements, interval)| {
                let source = interval::Source {
                    workload: Workload { rate: *rate, elements: *elements },
                    pull_secs: *interval,
                    ..interval::Source::new(*rate, *elements, BOUNDS)
                };
                let name = "x".to_owned();
                Planned { name, source, estimated: source, interval_secs: *interval }
            })
            .collect();
        for query in [format!("theta={theta}"), format!("price={price}"), "pulls_per_hour=7".to_owned()] {
            let asked = Parameters::parse(Some(&query));
            let view = View::new(present.clone(), &asked);
            prop_assert!(serde_json::to_string(&view).is_ok());
            let shown = super::super::template_data::TemplateData::new(&view, &asked, 0, 1);
            prop_assert!(serde_json::to_string(&shown).is_ok());
        }
    }
}
