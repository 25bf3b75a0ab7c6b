//! Tests of charts as readers get them: the SVG text is parsed as XML and its elements measured.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "chart/parsed.rs"]
mod parsed;
#[path = "chart/xml.rs"]
mod xml;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use parsed::{ParsedChart, check};
use proptest::prelude::*;
use web::chart::{Axis, Chart, Marks, Point, SERIES_MAX, Scale, Series};
use xml::Element;

/// Checks `chart` alone and in a page, and writes it to a file for people to look at.
fn drawn(name: &str, chart: &Chart) -> ParsedChart {
    let alone = chart.standalone();
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.svg")), &alone).unwrap();
    let inside = check(&chart.inline("a"));
    assert!(
        inside.elements.iter().all(|it| it.name != "style" && !it.attributes.contains_key("style"))
    );
    check(&alone)
}

fn chart(x: Axis, y: Axis, series: Vec<Series>) -> Chart {
    let (title, description) = ("A chart".to_owned(), "What it shows.".to_owned());
    Chart { title, description, x, y, series }
}

fn plain(series: Vec<Series>) -> Chart {
    chart(Axis::new("x"), Axis::new("y"), series)
}

/// Freshness against pulls an hour, today's point on it.
fn curve() -> Chart {
    let points =
        (0..=40).map(|it| f64::from(it) * 25.0).map(|cost| (cost, 1.0 - (-cost / 200.0).exp()));
    Chart {
        title: "Freshness against cost".to_owned(),
        description: "Freshness rises fast up to 400 pulls an hour, and slowly from there."
            .to_owned(),
        x: Axis::new("Cost").unit("pulls an hour"),
        y: Axis::new("Freshness").percent(),
        series: vec![
            Series::line("attainable", points.collect()),
            Series::highlight("today: 86 %", (420.0, 0.86)),
        ],
    }
}

/// A chart with the maximum number of lines, one of them broken.
fn lines(apart: f64) -> Chart {
    let line = |index: u32| {
        let level = f64::from(index) * apart;
        let at = move |step: u32| {
            let x = f64::from(step) / 20.0;
            let y = 0.1 + level + (x * 3.0 + f64::from(index)).sin() * 0.04 + x * 0.1;
            (x, if index == 2 && step == 9 { f64::NAN } else { y })
        };
        Series::line(format!("T{} majority", index + 1), (0..=20).map(at).collect())
    };
    chart(
        Axis::new("Share of type 1").percent(),
        Axis::new("Cost ratio"),
        (0..8).map(line).collect(),
    )
}

fn classes() -> Chart {
    let labels =
        ["under an hour", "hour to day", "day to week", "week to month", "over a month", "never"];
    let bars = |name: &str, heights: [f64; 6]| {
        Series::bars(name, heights.iter().zip(0..).map(|(y, x)| (f64::from(x), *y)).collect())
    };
    Chart {
        title: "Sources by their mean update interval, in this archive and in the one before"
            .to_owned(),
        description: "Most sources change between once a day and once a month.".to_owned(),
        x: Axis::new("Mean update interval").categories(labels),
        y: Axis::new("Sources"),
        series: vec![
            bars("this year", [12.0, 80.0, 340.0, 421.0, 150.0, 30.0]),
            bars("the year before", [8.0, 60.0, 310.0, 460.0, 190.0, 71.0]),
        ],
    }
}

#[test]
fn a_curve_has_its_names_beside_it() {
    let chart = curve();
    let seen = drawn("curve", &chart);
    assert_eq!(seen.texts("chart-name"), ["attainable", "today: 86 %"]);
    assert_eq!(seen.texts("chart-y").first(), Some(&"0\u{a0}%"));
    assert_eq!(seen.texts("chart-y").last(), Some(&"100\u{a0}%"));
    insta::assert_snapshot!("curve", chart.inline("freshness"));
}

#[test]
fn names_that_would_collide_are_in_a_legend() {
    let beside = |seen: &ParsedChart| {
        seen.elements.iter().filter(|it| it.is_in("chart-name") && it.is_in("chart-plot")).count()
    };
    assert_eq!(beside(&drawn("lines_apart", &lines(0.12))), 8);
    let near = lines(0.01);
    let seen = drawn("lines_near", &near);
    assert_eq!((beside(&seen), seen.texts("chart-name").len()), (0, 8));
    insta::assert_snapshot!("lines_near", near.standalone());
}

#[test]
fn bars_begin_at_zero_and_have_their_classes() {
    let chart = classes();
    let seen = drawn("classes", &chart);
    assert_eq!(seen.texts("chart-x").join(" "), {
        let Scale::Categories(labels) = &chart.x.scale else { unreachable!() };
        labels.join(" ")
    });
    let bars = seen.spots("chart-bars");
    assert_eq!(bars.len(), 2 * 6 * 4);
    let on_ground = bars.iter().filter(|(_, y)| (y - seen.height).abs() < 0.1).count();
    assert_eq!(on_ground, bars.len() / 2);
    insta::assert_snapshot!("classes", chart.standalone());
}

#[test]
fn decades_are_even() {
    let points =
        (0..60).map(|it| 10f64.powf(f64::from(it) / 12.0)).map(|it| (it, 3e7 / it.powf(1.5)));
    let line: Vec<Point> = (0..=5).map(|it| (10f64.powi(it), 10f64.powi(8 - 2 * it))).collect();
    let chart = chart(
        Axis::new("Interval").unit("s").logarithmic(),
        Axis::new("Updates").logarithmic(),
        vec![
            Series::line("measured", points.collect()),
            Series::line("as predicted", line),
            Series::line("none", vec![(0.0, 1.0), (-1.0, 5.0), (1e300, -1.0)]),
        ],
    );
    let seen = drawn("decades", &chart);
    assert_eq!(seen.texts("chart-x"), ["1", "10", "100", "1000", "10,000", "100,000"]);
    let gaps: Vec<f64> = seen.x_ticks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (gap - gaps[0]).abs() < 0.21), "{gaps:?}");
    insta::assert_snapshot!("decades", chart.inline("decades"));
}

#[test]
fn a_bar_stays_in_its_category() {
    let axis = Axis::new("x").categories((0..20).map(|it| it.to_string()));
    let bars = vec![(3.0, 1.0), (9.0, 2.0), (11.0, 3.0)];
    let seen = drawn("sparse", &chart(axis, Axis::new("y"), vec![Series::bars("", bars)]));
    let bars = seen.spots("chart-bars");
    for bar in bars.chunks(4) {
        assert!(bar[1].0 - bar[0].0 < seen.width / 20.0, "{bar:?}");
    }
}

#[test]
fn two_charts_share_no_id() {
    let ids = |prefix: &str| -> BTreeSet<String> {
        let seen = check(&classes().inline(prefix));
        seen.elements.iter().filter_map(|it| it.attributes.get("id").cloned()).collect()
    };
    let (a, b) = (ids("a"), ids("b"));
    assert!(a.len() == 3 && a.is_disjoint(&b), "{a:?} {b:?}");
}

#[test]
fn highlighted_points_are_named_beside_them_or_in_the_legend() {
    let wave = (0..=50).map(|it| f64::from(it) / 5.0).map(|x| (x, (x * 1.3).sin() * (x - 4.0)));
    let seen = drawn(
        "highlights",
        &plain(vec![
            Series::line("measured", wave.collect()),
            Series::highlight("start", (0.0, 0.0)),
            Series::highlight("end", (10.0, -6.0)),
            Series::highlight("beside the end", (9.9, -5.9)),
            Series::highlight("a name that is longer than the plot's", (5.0, 0.0)),
        ]),
    );
    let named = |it: &&Element| it.is_in("chart-name");
    let beside: BTreeSet<&str> = seen
        .elements
        .iter()
        .filter(named)
        .filter(|it| it.is_in("chart-plot"))
        .map(|it| it.text.as_str())
        .collect();
    assert_eq!(seen.elements.iter().filter(named).count(), 5);
    assert_eq!(beside, BTreeSet::from(["end", "measured", "start"]));
    assert_eq!(seen.spots("chart-mark").len(), 4 * 2);
}

#[test]
fn months_are_thinned_until_they_fit() {
    let labels = (0..48).map(|it| format!("{}-{:02}", 2021 + it / 12, it % 12 + 1));
    let bars = (0..48).map(|it| (f64::from(it), f64::from(it * 37 % 101) * 120.0)).collect();
    let chart = chart(
        Axis::new("Month").categories(labels),
        Axis::new("Updated records"),
        vec![Series::bars("", bars)],
    );
    let seen = drawn("months", &chart);
    let shown = seen.texts("chart-x");
    assert_eq!(shown, ["2021-01", "2022-01", "2023-01", "2024-01"]);
    assert_eq!(seen.spots("chart-bars").len(), 48 * 4);
}

#[test]
fn a_chart_without_data_says_so() {
    for series in [
        vec![],
        vec![Series::line("none", vec![]), Series::bars("none", vec![])],
        vec![Series::line("gaps", vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)])],
        vec![Series::highlight("nowhere", (f64::NAN, 0.0))],
    ] {
        let chart = plain(series);
        assert_eq!(
            drawn("empty", &chart).texts("chart-note"),
            ["Nothing to show: there are no data."]
        );
    }
    insta::assert_snapshot!("empty", plain(vec![]).standalone());
    // A point that one of the axes cannot show is not drawn either.
    let log = chart(
        Axis::new("x"),
        Axis::new("y").logarithmic(),
        vec![Series::line("a", vec![(1.0, 0.0), (f64::NAN, 2.0)])],
    );
    assert_eq!(drawn("empty_log", &log).texts("chart-note").len(), 1);
}

#[test]
fn gaps_break_a_line() {
    let nan = f64::NAN;
    let points =
        vec![(0.0, 1.0), (1.0, 2.0), (2.0, nan), (3.0, 3.0), (nan, 1.0), (4.0, 1.0), (5.0, 2.0)];
    let seen = drawn("gaps", &plain(vec![Series::line("a", points)]));
    let drawn = seen.elements.iter().find(|it| it.is_in("chart-series") && it.is_in("chart-line"));
    let path = &drawn.unwrap().attributes["d"];
    assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 2), "{path}");
    assert_eq!(seen.spots("chart-marks").len(), 5, "the one between two gaps, too");
}

#[test]
fn series_beyond_the_last_are_counted() {
    let series =
        (0..11).map(|it| Series::line(format!("s{it}"), vec![(0.0, 0.0), (1.0, f64::from(it))]));
    let seen = drawn("more", &plain(series.collect()));
    assert_eq!(seen.texts("chart-note"), ["3 more series not drawn"]);
    assert_eq!(seen.texts("chart-name").len(), SERIES_MAX);
}

#[test]
fn text_stays_text() {
    let text = "</title><script>\"&'\u{0}\u{8}]]>";
    let mut chart = curve();
    (chart.title, chart.description) = (text.to_owned(), text.repeat(200));
    (chart.x.label, chart.y.unit) = (text.to_owned(), text.to_owned());
    chart.series[0].name = text.to_owned();
    let seen = drawn("text", &chart);
    assert!(seen.elements.iter().all(|it| it.name != "script"));
    assert_eq!(seen.elements[1].text, "</title><script>\"&'\u{fffd}\u{fffd}]]>");
    let seen = check(&chart.inline("a\"><b"));
    assert_eq!(seen.elements[0].attributes["aria-labelledby"], "a---b-title a---b-desc");
}

#[test]
fn many_points_keep_their_outline() {
    const SERIES: u32 = 8;
    let noise = |it: u32| f64::from(it.wrapping_mul(2_654_435_761) >> 16) / 65_536.0;
    let mut points: Vec<Point> = (0..100_000).map(|it| (f64::from(it), noise(it))).collect();
    points[54_321].1 = 9.0;
    points[54_322].1 = -9.0;
    let seen = drawn("many_line", &plain(vec![Series::line("", points.clone())]));
    let heights: Vec<f64> = seen.spots("chart-line").iter().map(|it| it.1).collect();
    assert!(heights.len() < 5 * 640, "{}", heights.len());
    // The range is -10 to 10.
    for (spike, at) in [(9.0, 0.05), (-9.0, 0.95)] {
        let y = at * seen.height;
        assert!(heights.iter().any(|it| (it - y).abs() < 0.11), "{spike}");
    }
    for marks in [Marks::Line, Marks::Bars] {
        let broken = |shift: u32| {
            let point = move |it: u32| {
                (
                    noise(it + shift),
                    if it.is_multiple_of(3) { f64::NAN } else { noise(it * 7 + shift) },
                )
            };
            Series { name: format!("s{shift}"), marks: marks((0..20_000).map(point).collect()) }
        };
        let chart = plain((0..SERIES).map(broken).collect());
        let elements = check(&chart.inline("a")).elements.len();
        assert!(elements < 100, "{elements} elements");
    }
}

#[test]
fn strange_ranges_have_ticks() {
    let huge = f64::MAX;
    for points in [
        vec![(5.0, 5.0)],
        vec![(0.0, 0.0)],
        vec![(7.0, 3.0); 9],
        vec![(-huge, huge), (huge, -huge)],
        vec![(0.0, 5e-324), (1e-310, 0.0)],
        vec![(1e15, 1e15), (1e15 + 0.125, 1e15 + 0.25)],
        vec![(0.0, 1e-200), (1.0, 1e200)],
    ] {
        for marks in [Marks::Line, Marks::Bars] {
            let series = vec![Series { name: "a".to_owned(), marks: marks(points.clone()) }];
            let seen = drawn("strange", &plain(series));
            assert!(!seen.x_ticks.is_empty() && 1 < seen.y_ticks.len(), "{points:?}: {seen:?}");
        }
    }
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        prop::num::f64::ANY,
        -1e3..1e3,
        0.0..1.0,
        (-320..308_i32).prop_map(|it| 10f64.powi(it)),
        (0..9_i32).prop_map(f64::from),
        (0..9_i32).prop_map(|it| 1e12 + f64::from(it)),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(any::<char>(), 0..130).prop_map(String::from_iter),
        prop::collection::vec("[a-zW%]{1,20}", 0..9).prop_map(|words| words.join(" ")),
    ]
}

fn axis() -> impl Strategy<Value = Axis> {
    let scale = prop_oneof![
        Just(Scale::Linear),
        Just(Scale::Logarithmic),
        prop::collection::vec(text(), 0..30).prop_map(Scale::Categories),
    ];
    (text(), text(), scale, any::<bool>()).prop_map(|(label, unit, scale, is_share)| {
        let axis = Axis { label, unit, scale, ..Axis::default() };
        if is_share { axis.percent() } else { axis }
    })
}

fn series() -> impl Strategy<Value = Series> {
    let points = prop::collection::vec((number(), number()), 0..40);
    let marks = (0..3, points).prop_map(|(kind, points)| match kind {
        0 => Marks::Line(points),
        1 => Marks::Bars(points),
        _ => Marks::Highlight(points.first().copied().unwrap_or((0.0, 0.0))),
    });
    (text(), marks).prop_map(|(name, marks)| Series { name, marks })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_input_gives_a_sound_chart(
        title in text(),
        description in text(),
        x in axis(),
        y in axis(),
        series in prop::collection::vec(series(), 0..10),
        prefix in text(),
    ) {
        let chart = Chart { title, description, x, y, series };
        check(&chart.standalone());
        check(&chart.inline(&prefix));
    }
}
