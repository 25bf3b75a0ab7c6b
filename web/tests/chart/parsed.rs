//! Measurements of a parsed chart, and the checks for every chart.

use std::collections::BTreeSet;

use web::chart::BYTES_MAX;

use crate::xml::{self, Element};

/// A point in a path, in units.
type Spot = (f64, f64);

/// A parsed chart: its elements, and its plot in units of the plot.
#[derive(Debug)]
pub(crate) struct ParsedChart {
    pub(crate) elements: Vec<Element>,
    pub(crate) width: f64,
    pub(crate) height: f64,
    shift: Spot,
    pub(crate) x_ticks: Vec<f64>,
    pub(crate) y_ticks: Vec<f64>,
}

impl ParsedChart {
    fn new(svg: &str) -> Self {
        assert!(svg.len() <= BYTES_MAX, "{} bytes", svg.len());
        let elements = xml::parse(svg);
        let path = |class: &str| {
            let found =
                elements.iter().find(|it| it.attributes.contains_key("d") && it.is_in(class));
            found.unwrap().attributes["d"].clone()
        };
        let frame = path("chart-frame");
        let size = frame.strip_prefix("M0 0V").unwrap().split('M').next().unwrap();
        let (height, width) = size.split_once('H').unwrap();
        let at = |piece: &str| piece.split([' ', 'H', 'v']).map(|it| it.parse().unwrap()).collect();
        let ticks: Vec<Vec<f64>> =
            frame.split('M').filter(|it| it.ends_with("v5")).map(at).collect();
        let levels: Vec<Vec<f64>> = path("chart-grid").split('M').skip(1).map(at).collect();
        let plot = elements.iter().find(|it| it.is_in("chart-plot")).unwrap();
        let shift = plot.attributes["transform"].strip_prefix("translate(").unwrap();
        let (left, top) = shift.strip_suffix(')').unwrap().split_once(' ').unwrap();
        Self {
            width: width.parse().unwrap(),
            height: height.parse().unwrap(),
            shift: (left.parse().unwrap(), top.parse().unwrap()),
            x_ticks: ticks.iter().map(|it| it[0]).collect(),
            y_ticks: levels.iter().map(|it| it[1]).collect(),
            elements,
        }
    }

    pub(crate) fn texts(&self, class: &str) -> Vec<&str> {
        self.elements.iter().filter(|it| it.is_in(class)).map(|it| it.text.as_str()).collect()
    }

    /// Returns the points of all series that are drawn as `class`.
    pub(crate) fn spots(&self, class: &str) -> Vec<Spot> {
        let drawn = self.elements.iter().filter(|it| it.is_in("chart-series") && it.is_in(class));
        drawn
            .flat_map(|it| match it.attributes.get("d") {
                Some(path) => spots(path),
                None if it.name == "circle" => vec![(it.number("cx"), it.number("cy"))],
                None => Vec::new(),
            })
            .collect()
    }
}

/// Returns the points of a path's absolute commands; its relative ones draw markers.
fn spots(path: &str) -> Vec<Spot> {
    let mut found: Vec<Spot> = Vec::new();
    for piece in path.split_inclusive(|c: char| c.is_ascii_alphabetic()) {
        assert!(!piece.contains("NaN") && !piece.contains("inf"), "{path}");
    }
    let mut starts: Vec<usize> =
        path.match_indices(['M', 'L', 'H', 'V']).map(|(at, _)| at).collect();
    starts.push(path.len());
    for pair in starts.windows(2) {
        let (command, rest) = path[pair[0]..pair[1]].split_at(1);
        let rest = rest.split(|c: char| c.is_ascii_alphabetic()).next().unwrap();
        let numbers: Vec<f64> = rest.split(' ').map(|it| it.parse().unwrap()).collect();
        found.push(match command {
            "H" => (numbers[0], found.last().unwrap().1),
            "V" => (found.last().unwrap().0, numbers[0]),
            _ => (numbers[0], numbers[1]),
        });
    }
    found
}

/// Estimates the area of a text in the narrow Helvetica: left, top, right, bottom, in chart units.
fn area(element: &Element, size: f64, shift: Spot) -> [f64; 4] {
    let size = element.attributes.get("font-size").map_or(size, |it| it.parse().unwrap());
    let em = |c: char| match c {
        c if "ijlIfrt.,:;|!'\"`()[]{}/\\- ".contains(c) => 0.25,
        c if c.is_ascii() => 0.5,
        _ => 0.4,
    };
    let wide = element.text.chars().map(em).sum::<f64>() * size;
    let (dx, dy) = if element.is_in("chart-plot") { shift } else { (0.0, 0.0) };
    let (x, y) = (element.number("x") + dx, element.number("y") + dy);
    let left = match element.attributes.get("text-anchor").map(String::as_str) {
        None => x,
        Some("middle") => x - wide / 2.0,
        Some(_) => x - wide,
    };
    [left, y - size * 0.45, left + wide, y + size * 0.45]
}

/// Checks the rules that hold for every chart, and returns it parsed.
pub(crate) fn check(svg: &str) -> ParsedChart {
    let seen = ParsedChart::new(svg);
    let root = &seen.elements[0];
    assert_eq!((root.name.as_str(), root.attributes["role"].as_str()), ("svg", "img"));
    let ids: Vec<&str> =
        seen.elements.iter().filter_map(|it| it.attributes.get("id")).map(String::as_str).collect();
    assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "{ids:?}");
    assert!(root.attributes["aria-labelledby"].split(' ').all(|id| ids.contains(&id)));

    let (width, height) = (seen.width, seen.height);
    assert!(200.0 < width && 200.0 < height, "a plot of {width} by {height}");
    for (x, y) in seen.spots("chart-series") {
        assert!((0.0..=width).contains(&x) && (0.0..=height).contains(&y), "{x} {y} is outside");
    }
    assert!(seen.x_ticks.is_sorted_by(|a, b| a < b), "{:?}", seen.x_ticks);
    assert!(seen.y_ticks.is_sorted_by(|a, b| a > b), "{:?}", seen.y_ticks);
    assert!(seen.x_ticks.iter().all(|it| (0.0..=width).contains(it)), "{:?}", seen.x_ticks);
    assert!(seen.y_ticks.iter().all(|it| (0.0..=height).contains(it)), "{:?}", seen.y_ticks);

    let whole: Vec<f64> =
        root.attributes["viewBox"].split(' ').map(|it| it.parse().unwrap()).collect();
    let texts: Vec<&Element> = seen.elements.iter().filter(|it| it.name == "text").collect();
    let areas: Vec<[f64; 4]> =
        texts.iter().map(|it| area(it, root.number("font-size"), seen.shift)).collect();
    for (index, a) in areas.iter().enumerate() {
        let [left, top, right, bottom] = *a;
        let is_inside = 0.0 <= left && right <= whole[2] && 0.0 <= top && bottom <= whole[3];
        assert!(is_inside, "{:?} is outside", texts[index].text);
        for (other, b) in areas[..index].iter().enumerate() {
            let meets = left < b[2] && b[0] < right && top < b[3] && b[1] < bottom;
            assert!(!meets, "{:?} covers {:?}", texts[index].text, texts[other].text);
        }
    }
    seen
}
