//! Layout of a chart: positions of margins, ticks and names.
//!
//! Lines and highlighted points have their names beside them, where there is room. The legend names
//! the bars, all lines if one of them has no room, and highlighted points without room.

use super::scale::{CATEGORIES_SHOWN_MAX, Fit, Range, TICKS_MAX, Tick, project};
use super::text::{self, LINE, SIZE, TITLE_SIZE};
use super::trace::{Area, BarIndex, Plot, Spot, Trace};
use super::{
    Axis, Chart, LABEL_CHARS_MAX, Marks, Point, Scale, Series, TITLE_CHARS_MAX, WIDTH_UNITS,
};

/// Height of every plot, in units.
pub(super) const PLOT_HEIGHT: f64 = 300.0;

/// Room at the edges of the chart.
pub(super) const EDGE: f64 = 16.0;

/// Room to the right of a plot without names there: for half the label of a tick at its end.
const RIGHT: f64 = 36.0;

/// Distance between the plot and the labels of its ticks.
const TICK_ROOM: f64 = 8.0;

/// Least distance between the labels of two ticks.
const LABEL_ROOM: f64 = 10.0;

/// Maximum room for names at the ends of lines.
const NAMES_MAX: f64 = 160.0;

/// Maximum room for the labels of the y axis. Numbers need less.
const Y_LABELS_MAX: f64 = 225.0;

/// Distance between a point and its name.
const NAME_ROOM: f64 = 10.0;

/// Half the height that a name needs.
const NAME_HALF: f64 = 10.0;

/// Width of the sample of a series in the legend, with its room.
pub(super) const SAMPLE: f64 = 52.0;

/// Distance between two entries of the legend.
const ENTRY_ROOM: f64 = 20.0;

/// Maximum number of lines of the label of one category.
const CATEGORY_LINES_MAX: usize = 2;

/// The part of a text that is at the text's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A text and its position; `y` is the middle of its height.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub text: String,
    pub x: f64,
    pub y: f64,
    pub anchor: Anchor,
}

/// A chart laid out. Ticks, traces and names are in units from the upper left corner of the plot,
/// everything else in units from that of the chart.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub title: Vec<Label>,
    pub legend: Vec<(usize, Label)>,
    pub notes: Vec<Label>,
    pub left: f64,
    pub top: f64,
    pub width: f64,
    /// Height of the chart.
    pub whole: f64,
    pub x_label: Option<Label>,
    pub y_label: Option<Label>,
    /// Positions of the ticks with the lines of their labels.
    pub x_ticks: Vec<(f64, Vec<Label>)>,
    pub y_ticks: Vec<(f64, Label)>,
    /// Position of 0 on a linear y axis, if it is within the plot.
    pub zero: Option<f64>,
    pub traces: Vec<Trace>,
    /// Names beside their marks, each with the index of its series.
    pub names: Vec<(usize, Label)>,
}

impl Label {
    fn new(text: impl Into<String>, x: f64, y: f64, anchor: Anchor) -> Self {
        Self { text: text.into(), x, y, anchor }
    }

    fn area(&self) -> Area {
        let width = text::width(&self.text, SIZE);
        let left = match self.anchor {
            Anchor::Start => self.x,
            Anchor::Middle => self.x - width / 2.0,
            Anchor::End => self.x - width,
        };
        let (top, bottom) = (self.y - NAME_HALF, self.y + NAME_HALF);
        Area { left, top, right: left + width, bottom }
    }
}

impl Layout {
    /// Lays out `chart`, with its title if `titled`.
    pub(super) fn new(chart: &Chart, titled: bool) -> Self {
        let (x, y) = ranges(chart);
        let names: Vec<String> =
            chart.drawn().iter().map(|it| text::clip(&it.name, LABEL_CHARS_MAX)).collect();
        let width = f64::from(WIDTH_UNITS) - 2.0 * EDGE;
        let mut layout = Self { left: EDGE, width, ..Self::default() };
        if let (Some(x), Some(y)) = (x, y) {
            layout.draw(chart, &Plot { x, y, width: 0.0, height: PLOT_HEIGHT }, &names);
        }
        layout.stack(chart, titled, &names);
        layout
    }

    /// Lays out the plot and the labels along its sides.
    fn draw(&mut self, chart: &Chart, plot: &Plot<'_>, names: &[String]) {
        self.y_ticks = y_ticks(&plot.y);
        let widths = self.y_ticks.iter().map(|(_, label)| text::width(&label.text, SIZE));
        self.left = EDGE + widths.fold(0.0, f64::max) + TICK_ROOM;
        self.zero = match chart.y.scale {
            Scale::Linear => plot.y.position(0.0).filter(|it| 0.0 < *it && *it < 1.0),
            Scale::Logarithmic | Scale::Categories(_) => None,
        };
        self.zero = self.zero.map(|it| (1.0 - it) * PLOT_HEIGHT);

        let width = f64::from(WIDTH_UNITS) - self.left - RIGHT;
        let lines =
            chart.drawn().iter().zip(names).filter(|(it, _)| matches!(it.marks, Marks::Line(_)));
        let room = lines.map(|(_, name)| text::width(name, SIZE)).fold(0.0, f64::max);
        if 0.0 < room && room <= NAMES_MAX {
            self.width = f64::from(WIDTH_UNITS) - self.left - NAME_ROOM - room - EDGE / 2.0;
            self.traces = traces(chart, plot, self.width);
            if let Some(names) = ends(&self.traces, names, self.width + NAME_ROOM + room) {
                self.names = names;
            }
        }
        if self.names.is_empty() {
            self.width = width;
            self.traces = traces(chart, plot, self.width);
        }
        self.name_highlights(names);
        self.x_ticks = x_ticks(&plot.x, &chart.x, self.left, self.width);
    }

    /// Puts the names of highlighted points beside them where there is room.
    fn name_highlights(&mut self, names: &[String]) {
        let plot = Area { left: 0.0, top: 0.0, right: self.width, bottom: PLOT_HEIGHT };
        for (index, trace) in self.traces.iter().enumerate() {
            let Trace::Highlight(Some(spot)) = trace else { continue };
            if names[index].is_empty() {
                continue;
            }
            let marks = self.traces.iter().filter_map(|it| match it {
                Trace::Highlight(Some(it)) => Some(around(*it)),
                _ => None,
            });
            let taken: Vec<Area> =
                marks.chain(self.names.iter().map(|(_, it)| it.area())).collect();
            let is_free = |label: &Label| {
                let area = label.area();
                plot.holds(&area)
                    && !taken.iter().any(|it| it.meets(&area))
                    && !self.traces.iter().any(|it| it.touches(&area))
            };
            if let Some(label) = beside(*spot, &names[index]).into_iter().find(is_free) {
                self.names.push((index, label));
            }
        }
    }

    /// Stacks the parts above and below the plot.
    fn stack(&mut self, chart: &Chart, titled: bool, names: &[String]) {
        let mut y = EDGE;
        let width = f64::from(WIDTH_UNITS) - 2.0 * EDGE;
        if titled {
            let title = text::clip(&chart.title, TITLE_CHARS_MAX);
            for line in text::wrap(&title, TITLE_SIZE, width) {
                let line = text::fit(&line, TITLE_SIZE, width);
                self.title.push(Label::new(line, EDGE, y + 12.0, Anchor::Start));
                y += TITLE_SIZE + 5.0;
            }
            y += if self.title.is_empty() { 0.0 } else { 6.0 };
        }
        y = self.list(names, y, width);
        let label = axis_label(&chart.y);
        if !label.is_empty() {
            self.y_label = Some(Label::new(label, EDGE, y + LINE / 2.0, Anchor::Start));
            y += LINE + 2.0;
        }
        // The label of the highest tick is half above the plot.
        y += NAME_HALF;
        self.top = y;
        y += PLOT_HEIGHT;
        let rows = self.x_ticks.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
        y += TICK_ROOM + rows as f64 * LINE;
        let label = axis_label(&chart.x);
        if !label.is_empty() {
            let middle = self.left + self.width / 2.0;
            let half = text::width(&label, SIZE) / 2.0;
            let middle = middle.max(half + EDGE).min(f64::from(WIDTH_UNITS) - half - EDGE);
            self.x_label = Some(Label::new(label, middle, y + LINE / 2.0 + 2.0, Anchor::Middle));
            y += LINE + 2.0;
        }
        let more = chart.series.len() - chart.drawn().len();
        if 0 < more {
            let text = format!("{more} more series not drawn");
            self.notes.push(Label::new(text, EDGE, y + LINE / 2.0 + 2.0, Anchor::Start));
            y += LINE + 2.0;
        }
        self.whole = (y + EDGE / 2.0).ceil();
    }

    /// Lists in the legend the series without a name beside them; returns the legend's lower end.
    fn list(&mut self, names: &[String], top: f64, width: f64) -> f64 {
        let (mut x, mut y) = (EDGE, top);
        for (index, (trace, name)) in self.traces.iter().zip(names).enumerate() {
            let is_named = self.names.iter().any(|(named, _)| *named == index);
            if name.is_empty() || is_named || trace.is_empty() {
                continue;
            }
            let name = text::fit(name, SIZE, width - SAMPLE);
            let wide = SAMPLE + text::width(&name, SIZE);
            if EDGE < x && width + EDGE < x + wide {
                (x, y) = (EDGE, y + LINE + 2.0);
            }
            let label = Label::new(name, x + SAMPLE, y + LINE / 2.0, Anchor::Start);
            self.legend.push((index, label));
            x += wide + ENTRY_ROOM;
        }
        if self.legend.is_empty() { top } else { y + LINE + 8.0 }
    }
}

/// Returns the ranges of both axes over the points whose two values can both be shown.
fn ranges(chart: &Chart) -> (Option<Range<'_>>, Option<Range<'_>>) {
    let series = chart.drawn();
    let has = |wanted: fn(&Marks) -> bool| series.iter().any(|it| wanted(&it.marks));
    let bars = has(|it| matches!(it, Marks::Bars(_)));
    let lines = has(|it| matches!(it, Marks::Line(_)));
    let fit = match (bars, lines) {
        (true, _) => Fit::Bars,
        (false, true) => Fit::Exact,
        (false, false) => Fit::Padded(0.03),
    };
    // A point that one axis cannot show does not stretch the other.
    let shown = |(x, y): &Point| project(&chart.x, *x).is_some() && project(&chart.y, *y).is_some();
    let points = || series.iter().flat_map(Series::values).copied().filter(shown);
    let x = Range::new(&chart.x, points().map(|it| it.0), fit);
    let y = Range::new(&chart.y, points().map(|it| it.1), Fit::Nice { zero: bars });
    (x, y)
}

/// Traces every series into a plot of `width`.
fn traces(chart: &Chart, plot: &Plot<'_>, width: f64) -> Vec<Trace> {
    let plot = Plot { width, ..plot.clone() };
    let is_bars = |it: &&Series| matches!(it.marks, Marks::Bars(_));
    let of = chart.drawn().iter().filter(is_bars).count();
    let mut index = 0;
    let traced = chart.drawn().iter().map(|series| {
        let trace = plot.trace(series, BarIndex { index, of });
        index += usize::from(is_bars(&series));
        trace
    });
    traced.collect()
}

/// Returns names at the right ends of all lines; `None` if one covers something or passes `right`.
fn ends(traces: &[Trace], names: &[String], right: f64) -> Option<Vec<(usize, Label)>> {
    let all = Area { left: 0.0, top: -NAME_HALF, right, bottom: PLOT_HEIGHT + NAME_HALF };
    let mut named: Vec<(usize, Label)> = Vec::new();
    for (index, (trace, name)) in traces.iter().zip(names).enumerate() {
        let Trace::Line(runs, _) = trace else { continue };
        let Some(end) = runs.last().and_then(|run| run.last()).filter(|_| !name.is_empty()) else {
            continue;
        };
        let label = Label::new(name, end.x + NAME_ROOM, end.y, Anchor::Start);
        let area = label.area();
        let is_free = all.holds(&area)
            && !named.iter().any(|(_, it)| it.area().meets(&area))
            && !traces.iter().any(|it| it.touches(&area));
        if !is_free {
            return None;
        }
        named.push((index, label));
    }
    Some(named)
}

/// Returns the area that the mark of a highlighted point covers.
fn around(spot: Spot) -> Area {
    let room = NAME_ROOM - 1.0;
    Area { left: spot.x - room, top: spot.y - room, right: spot.x + room, bottom: spot.y + room }
}

/// Returns the possible labels beside a point, the best first.
fn beside(spot: Spot, name: &str) -> Vec<Label> {
    let (near, far) = (NAME_ROOM + 2.0, NAME_ROOM + NAME_HALF + 2.0);
    let positions = [
        (near, 0.0, Anchor::Start),
        (-near, 0.0, Anchor::End),
        (0.0, -far, Anchor::Middle),
        (0.0, far, Anchor::Middle),
        (near, far, Anchor::Start),
        (near, -far, Anchor::Start),
        (-near, far, Anchor::End),
        (-near, -far, Anchor::End),
    ];
    positions.map(|(x, y, anchor)| Label::new(name, spot.x + x, spot.y + y, anchor)).into()
}

fn y_ticks(y: &Range<'_>) -> Vec<(f64, Label)> {
    let place = |count| {
        let tick = |tick: Tick| {
            let at = (1.0 - tick.at) * PLOT_HEIGHT;
            let text = text::fit(&tick.label, SIZE, Y_LABELS_MAX);
            (at, Label::new(text, -TICK_ROOM, at, Anchor::End))
        };
        y.ticks(count).into_iter().map(tick).collect()
    };
    fitting(TICKS_MAX - 2, place, |a: &(f64, Label), b| LINE <= a.0 - b.0)
}

fn x_ticks(x: &Range<'_>, axis: &Axis, left: f64, width: f64) -> Vec<(f64, Vec<Label>)> {
    let is_named = matches!(axis.scale, Scale::Categories(_));
    let place = |count: usize| {
        let ticks = x.ticks(count);
        let room = width / ticks.len().max(1) as f64 - LABEL_ROOM;
        let tick = |tick: Tick| {
            let lines = match is_named {
                true => text::wrap(&tick.label, SIZE, room),
                false => vec![tick.label],
            };
            let half = lines.iter().map(|it| text::width(it, SIZE)).fold(0.0, f64::max) / 2.0;
            let at = tick.at * width;
            let middle = at.max(half + 2.0 - left).min(f64::from(WIDTH_UNITS) - 2.0 - half - left);
            let label = |(row, line): (usize, String)| {
                let y = PLOT_HEIGHT + TICK_ROOM + (row as f64 + 0.5) * LINE;
                Label::new(line, middle, y, Anchor::Middle)
            };
            (at, lines.into_iter().take(CATEGORY_LINES_MAX + 1).enumerate().map(label).collect())
        };
        ticks.into_iter().map(tick).collect()
    };
    let apart = |a: &(f64, Vec<Label>), b: &(f64, Vec<Label>)| {
        let right = a.1.iter().map(|it| it.area().right).fold(f64::NEG_INFINITY, f64::max);
        let left = b.1.iter().map(|it| it.area().left).fold(f64::INFINITY, f64::min);
        a.1.len().max(b.1.len()) <= CATEGORY_LINES_MAX && right + LABEL_ROOM <= left
    };
    fitting(if is_named { CATEGORIES_SHOWN_MAX } else { TICKS_MAX }, place, apart)
}

/// Returns the result of `place` for the largest count, up to `most`, with which all neighbors are
/// apart; without such a count, at most one item.
fn fitting<T>(
    most: usize,
    place: impl Fn(usize) -> Vec<T>,
    apart: impl Fn(&T, &T) -> bool,
) -> Vec<T> {
    let mut counts = (2..=most).rev().map(&place);
    let found = counts.find(|ticks| ticks.windows(2).all(|pair| apart(&pair[0], &pair[1])));
    found.unwrap_or_else(|| place(1).into_iter().take(1).collect())
}

fn axis_label(axis: &Axis) -> String {
    let label = text::clip(&axis.label, LABEL_CHARS_MAX);
    let unit = text::clip(&axis.unit, LABEL_CHARS_MAX / 2);
    let whole = match (label.is_empty(), unit.is_empty()) {
        (_, true) => label,
        (true, false) => unit,
        (false, false) => format!("{label} ({unit})"),
    };
    text::fit(&whole, SIZE, f64::from(WIDTH_UNITS) - 2.0 * EDGE)
}
