//! Traces: the points of a series in units of the plot, reduced to those that can be distinguished.
//!
//! In each column of one unit, a line keeps its first, least, largest and last point, which look
//! the same as all points. The bars of one column become one, as long as the longest of them.

use std::collections::BTreeSet;

use super::scale::Range;
use super::{Marks, Point, Series};

/// Maximum number of points and gaps of a line in a column that is not reduced.
const ITEMS_MAX: usize = 4;

/// Minimum distance between two markers on a line, in units.
const MARKERS_APART: f64 = 30.0;

const BAR_MAX: f64 = 64.0;

/// Share of the available room that bars fill.
const BAR_SHARE: f64 = 0.8;

/// A point in the plot: units from its left and from its top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spot {
    pub x: f64,
    pub y: f64,
}

/// An area, in units from the left and the top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

/// The plot and the scales of its sides.
#[derive(Clone, Debug)]
pub(super) struct Plot<'a> {
    pub x: Range<'a>,
    pub y: Range<'a>,
    pub width: f64,
    pub height: f64,
}

/// Index of a series among the series of bars, and the number of these.
#[derive(Clone, Copy, Debug)]
pub(super) struct BarIndex {
    pub index: usize,
    pub of: usize,
}

/// The drawn form of one series.
#[derive(Clone, Debug)]
pub(super) enum Trace {
    /// Runs without a gap, each of one point or more, and the spots with a marker.
    Line(Vec<Vec<Spot>>, Vec<Spot>),
    Bars(Vec<Area>),
    /// The highlighted point, if it can be shown.
    Highlight(Option<Spot>),
}

impl Area {
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    pub(super) fn holds(&self, other: &Self) -> bool {
        self.left <= other.left
            && other.right <= self.right
            && self.top <= other.top
            && other.bottom <= self.bottom
    }

    /// Returns whether the line from `a` to `b` comes into the area.
    fn is_crossed(&self, a: Spot, b: Spot) -> bool {
        // Liang and Barsky: the part of the line, from 0 to 1, that is within all four sides.
        let (mut from, mut to) = (0.0_f64, 1.0_f64);
        let sides = [
            (a.x - b.x, a.x - self.left),
            (b.x - a.x, self.right - a.x),
            (a.y - b.y, a.y - self.top),
            (b.y - a.y, self.bottom - a.y),
        ];
        for (toward, room) in sides {
            if toward > 0.0 {
                to = to.min(room / toward);
            } else if toward < 0.0 {
                from = from.max(room / toward);
            } else if room < 0.0 {
                return false;
            }
        }
        from <= to
    }
}

impl Plot<'_> {
    fn spot(&self, (x, y): Point) -> Option<Spot> {
        let (x, y) = (self.x.position(x)?, self.y.position(y)?);
        Some(Spot { x: x * self.width, y: (1.0 - y) * self.height })
    }

    /// Traces `series`; `bar_index` is used if it has bars.
    pub(super) fn trace(&self, series: &Series, bar_index: BarIndex) -> Trace {
        match &series.marks {
            Marks::Line(points) => {
                let runs = runs(self.ordered(points));
                let markers = markers(&runs);
                Trace::Line(runs, markers)
            }
            Marks::Bars(points) => Trace::Bars(self.bars(points, bar_index)),
            Marks::Highlight(point) => Trace::Highlight(self.spot(*point)),
        }
    }

    /// Returns the points of a line from left to right, with its gaps.
    fn ordered(&self, points: &[Point]) -> Vec<Option<Spot>> {
        let mut last = f64::NEG_INFINITY;
        let keyed = points.iter().map(|point| {
            // A gap is at its x. If the axis cannot show that x, it follows the point before.
            last = self.x.position(point.0).unwrap_or(last);
            (last, self.spot(*point))
        });
        let mut keyed: Vec<(f64, Option<Spot>)> = keyed.collect();
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
        keyed.into_iter().map(|(_, spot)| spot).collect()
    }

    fn bars(&self, points: &[Point], bar_index: BarIndex) -> Vec<Area> {
        let mut spots: Vec<Spot> = points.iter().filter_map(|it| self.spot(*it)).collect();
        spots.sort_by(|a, b| a.x.total_cmp(&b.x));
        let gaps = spots.windows(2).map(|pair| pair[1].x - pair[0].x).filter(|gap| *gap > 0.0);
        let room = gaps.fold(self.x.band() * self.width, f64::min);
        let many = bar_index.of.max(1) as f64;
        let width = (room * BAR_SHARE / many).clamp(1.0, BAR_MAX);
        let shift = (bar_index.index as f64 - many / 2.0) * width;
        let base = (1.0 - self.y.base()) * self.height;
        let mut bars = Vec::new();
        for column in spots.chunk_by(|a, b| column(a.x) == column(b.x)) {
            let top = column.iter().map(|it| it.y).fold(base, f64::min);
            let bottom = column.iter().map(|it| it.y).fold(base, f64::max);
            let left = (column[0].x + shift).clamp(0.0, self.width - width);
            bars.push(Area { left, top, right: left + width, bottom });
        }
        bars
    }
}

impl Trace {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Line(runs, _) => runs.is_empty(),
            Self::Bars(bars) => bars.is_empty(),
            Self::Highlight(spot) => spot.is_none(),
        }
    }

    /// Returns whether the line, the bars or the center of the highlighted point meet `area`.
    pub(super) fn touches(&self, area: &Area) -> bool {
        match self {
            Self::Line(runs, _) => runs.iter().any(|run| {
                area.is_crossed(run[0], run[0])
                    || run.windows(2).any(|pair| area.is_crossed(pair[0], pair[1]))
            }),
            Self::Bars(bars) => bars.iter().any(|bar| bar.meets(area)),
            Self::Highlight(spot) => spot.is_some_and(|it| area.is_crossed(it, it)),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "places in a plot are small numbers")]
fn column(place: f64) -> i32 {
    place.floor() as i32
}

/// Returns the runs between gaps, each column reduced.
fn runs(line: Vec<Option<Spot>>) -> Vec<Vec<Spot>> {
    let mut last = 0;
    let mut columns: Vec<(i32, Vec<Option<Spot>>)> = Vec::new();
    for item in line {
        last = item.map_or(last, |spot| column(spot.x));
        match columns.last_mut() {
            Some((at, items)) if *at == last => items.push(item),
            _ => columns.push((last, vec![item])),
        }
    }
    let items = columns.into_iter().flat_map(|(_, items)| reduced(items));
    let items: Vec<Option<Spot>> = items.collect();
    let runs = items.split(Option::is_none).filter(|run| !run.is_empty());
    runs.map(|run| run.iter().flatten().copied().collect()).collect()
}

/// Returns the first, highest, lowest and last point of one column, in their order. Gaps between
/// points are too narrow to be seen and left out; a gap at the column's start or end stays.
fn reduced(items: Vec<Option<Spot>>) -> Vec<Option<Spot>> {
    if items.len() <= ITEMS_MAX {
        return items;
    }
    let spots: Vec<(usize, Spot)> =
        items.iter().enumerate().filter_map(|(index, it)| Some((index, (*it)?))).collect();
    let by_height = |a: &&(usize, Spot), b: &&(usize, Spot)| a.1.y.total_cmp(&b.1.y);
    let kept = [
        spots.first(),
        spots.iter().min_by(by_height),
        spots.iter().max_by(by_height),
        spots.last(),
    ];
    let kept: BTreeSet<usize> = kept.into_iter().flatten().map(|(index, _)| *index).collect();
    let mut kept: Vec<Option<Spot>> = kept.into_iter().map(|index| items[index]).collect();
    for (end, at_start) in [(items.first(), true), (items.last(), false)] {
        if end.is_some_and(Option::is_none) {
            kept.insert(if at_start { 0 } else { kept.len() }, None);
        }
    }
    kept
}

/// Returns the points with a marker: those alone in their run, and others that are at least
/// [`MARKERS_APART`] to the right of the marker before.
fn markers(runs: &[Vec<Spot>]) -> Vec<Spot> {
    let mut last = f64::NEG_INFINITY;
    let mut marked = Vec::new();
    for run in runs {
        for spot in run {
            if run.len() == 1 || last + MARKERS_APART <= spot.x {
                last = spot.x;
                marked.push(*spot);
            }
        }
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spots(heights: &[f64]) -> Vec<Option<Spot>> {
        let spot = |y: &f64| y.is_finite().then_some(Spot { x: 0.5, y: *y });
        heights.iter().map(spot).collect()
    }

    #[test]
    fn a_column_keeps_its_outline() {
        let check = |heights: &[f64], expected: &[&[f64]]| {
            let runs: Vec<Vec<f64>> = runs(spots(heights))
                .iter()
                .map(|run| run.iter().map(|it| it.y).collect())
                .collect();
            assert_eq!(runs, expected, "{heights:?}");
        };
        let gap = f64::NAN;
        check(&[], &[]);
        check(&[gap], &[]);
        check(&[3.0], &[&[3.0]]);
        check(&[3.0, gap, 4.0], &[&[3.0], &[4.0]]);
        check(&[3.0, 5.0, 4.0, 9.0, 1.0, 2.0, 6.0], &[&[3.0, 9.0, 1.0, 6.0]]);
        check(&[9.0, 5.0, 4.0, 3.0, 1.0], &[&[9.0, 1.0]]);
        check(&[gap, 9.0, 5.0, gap, 4.0, 1.0, gap], &[&[9.0, 1.0]]);
    }

    #[test]
    fn lines_that_cross_an_area_are_detected() {
        let area = Area { left: 10.0, top: 10.0, right: 20.0, bottom: 20.0 };
        let check = |a: (f64, f64), b: (f64, f64), expected: bool| {
            let [a, b] = [a, b].map(|(x, y)| Spot { x, y });
            assert_eq!(area.is_crossed(a, b), expected, "{a:?} {b:?}");
        };
        check((0.0, 0.0), (30.0, 30.0), true);
        check((0.0, 15.0), (30.0, 15.0), true);
        check((0.0, 0.0), (9.0, 30.0), false);
        check((0.0, 15.0), (30.0, 60.0), false);
        check((15.0, 15.0), (15.0, 15.0), true);
        check((15.0, 25.0), (15.0, 25.0), false);
        check((15.0, 0.0), (15.0, 9.0), false);
    }
}
