//! Rendering of a chart as SVG text.
//!
//! Colors are attributes, so a renderer without style sheets draws them, too. In a standalone chart
//! a style replaces them if the reader prefers dark. In a page they are the page's own.

use std::fmt::{self, Write as _};

use super::layout::{Anchor, Label, Layout, PLOT_HEIGHT, SAMPLE};
use super::number::Units;
use super::palette::{Role, SHADED};
use super::text::{self, SIZE, TITLE_SIZE};
use super::trace::{Area, Spot, Trace};
use super::{Chart, DESCRIPTION_CHARS_MAX, SERIES_MAX, TITLE_CHARS_MAX, WIDTH_UNITS};
use crate::templates::escape;

/// Dash patterns of lines by series: lengths of dashes and gaps.
const DASHES: [&str; SERIES_MAX] =
    ["", "9 5", "2 4", "12 4 2 4", "16 6", "6 3 2 3 2 3", "5 3", "16 4 5 4"];

/// Markers of points by series: a path around its start, and whether it is filled.
const MARKERS: [(&str, bool); SERIES_MAX] = [
    ("m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", true),
    ("m-4-4h8v8h-8z", true),
    ("m0-5l5 9h-10z", true),
    ("m0-6l6 6l-6 6l-6-6z", true),
    ("m0 5l5-9h-10z", true),
    ("m-5 0h10m-5-5v10", false),
    ("m-4-4l8 8m-8 0l8-8", false),
    ("m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", false),
];

/// Hatching of bars by series: direction in degrees, and distance. The first series is solid.
const HATCHES: [(u32, u32); SERIES_MAX] =
    [(0, 0), (45, 8), (135, 8), (90, 6), (0, 6), (45, 14), (135, 14), (90, 12)];

const FONT: &str = "system-ui, Helvetica, Arial, sans-serif";

/// Draws `chart` for a page, with ids that begin with `page_prefix`; without it, as its own file.
pub(super) fn write(chart: &Chart, page_prefix: Option<&str>) -> String {
    let is_standalone = page_prefix.is_none();
    let layout = Layout::new(chart, is_standalone);
    let prefix = page_prefix.unwrap_or("chart");
    let mut pen = Pen { out: String::new(), prefix, is_standalone, chart };
    pen.open(&layout);
    pen.frame(&layout);
    pen.plot(&layout);
    pen.put("</svg>\n");
    pen.out
}

#[derive(Clone, Copy, Debug)]
enum Fill {
    None,
    Plain(Role),
    /// The hatching of the series of this index.
    Hatch(usize),
}

struct Pen<'a> {
    out: String,
    prefix: &'a str,
    is_standalone: bool,
    chart: &'a Chart,
}

/// The coordinates of a path.
impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Units(self.x), Units(self.y))
    }
}

/// The path of a rectangle.
impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = Spot { x: self.left, y: self.top };
        let (right, bottom, left) = (Units(self.right), Units(self.bottom), Units(self.left));
        write!(f, "M{start}H{right}V{bottom}H{left}Z")
    }
}

impl Pen<'_> {
    /// Begins the chart: title, description, style, background.
    fn open(&mut self, layout: &Layout) {
        let prefix = self.prefix;
        let (before, font) = match self.is_standalone {
            true => {
                ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", format!(" font-family=\"{FONT}\""))
            }
            false => ("", String::new()),
        };
        let title = escape(&text::clip(&self.chart.title, TITLE_CHARS_MAX));
        let description = escape(&text::clip(&self.chart.description, DESCRIPTION_CHARS_MAX));
        self.put(format_args!(
            "{before}<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"100%\" \
             viewBox=\"0 0 {WIDTH_UNITS} {}\" role=\"img\" \
             aria-labelledby=\"{prefix}-title {prefix}-desc\" font-size=\"{SIZE}\"{font}>\n\
             <title id=\"{prefix}-title\">{title}</title>\n\
             <desc id=\"{prefix}-desc\">{description}</desc>\n",
            layout.whole,
        ));
        if self.is_standalone {
            self.style();
            let paint = self.paint("chart-ground", Fill::Plain(Role::Ground), None);
            self.put(format_args!("<rect{paint} width=\"100%\" height=\"100%\"/>\n"));
        }
        self.hatches(layout);
    }

    /// Writes the style of a standalone chart.
    fn style(&mut self) {
        let (light, dark) = (Role::Ground.light(), Role::Ground.dark());
        self.put(format_args!(
            "<style>\n.chart {{ color-scheme: light dark; background: {light}; display: block; \
             max-width: 48rem; margin: 0 auto }}\n\
             @media (prefers-color-scheme: dark) {{\n.chart {{ background: {dark} }}\n",
        ));
        for role in SHADED {
            let (name, color) = (role.name(), role.dark());
            self.put(format_args!(
                ".chart-fill-{name} {{ fill: {color} }} .chart-stroke-{name} {{ stroke: {color} }}\n"
            ));
        }
        self.put("}\n</style>\n");
    }

    fn hatches(&mut self, layout: &Layout) {
        let prefix = self.prefix;
        for (index, trace) in layout.traces.iter().enumerate() {
            let (angle, room) = HATCHES[index];
            if !matches!(trace, Trace::Bars(_)) || room == 0 {
                continue;
            }
            let ground = self.paint("chart-hatch", Fill::Plain(Role::Ground), None);
            let stripe = self.paint("chart-hatch", Fill::None, Some(Role::Series(index)));
            self.put(format_args!(
                "<pattern id=\"{prefix}-fill-{}\" width=\"{room}\" height=\"{room}\" \
                 patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate({angle})\">\
                 <rect width=\"{room}\" height=\"{room}\"{ground}/>\
                 <path{stripe} d=\"M0 {}H{room}\" stroke-width=\"3\"/></pattern>\n",
                index + 1,
                room / 2,
            ));
        }
    }

    /// Draws title, legend, axis labels and notes.
    fn frame(&mut self, layout: &Layout) {
        for line in &layout.title {
            let more = format!(" font-size=\"{TITLE_SIZE}\" font-weight=\"600\"");
            self.text(line, "chart-title", Role::Text, &more);
        }
        for (index, label) in &layout.legend {
            self.sample(*index, &layout.traces[*index], label);
            self.text(label, "chart-name", Role::Text, "");
        }
        for label in [&layout.y_label, &layout.x_label].into_iter().flatten() {
            self.text(label, "chart-axis", Role::Muted, "");
        }
        for note in &layout.notes {
            self.text(note, "chart-note", Role::Muted, "");
        }
    }

    /// Draws the plot, in its own coordinates.
    fn plot(&mut self, layout: &Layout) {
        let corner = Spot { x: layout.left, y: layout.top };
        self.put(format_args!("<g class=\"chart-plot\" transform=\"translate({corner})\">\n"));
        self.grid(layout);
        for (_, label) in &layout.y_ticks {
            self.text(label, "chart-y", Role::Muted, "");
        }
        for label in layout.x_ticks.iter().flat_map(|(_, labels)| labels) {
            self.text(label, "chart-x", Role::Muted, "");
        }
        // Small marks are drawn in front of large ones.
        let mut traces: Vec<(usize, &Trace)> = layout.traces.iter().enumerate().collect();
        traces.retain(|(_, trace)| !trace.is_empty());
        traces.sort_by_key(|(_, trace)| rank(trace));
        for (index, trace) in &traces {
            self.put(format_args!("<g class=\"chart-series chart-series-{}\">\n", index + 1));
            self.trace(*index, trace);
            self.put("</g>\n");
        }
        for (_, label) in &layout.names {
            self.text(label, "chart-name", Role::Text, HALO);
        }
        if traces.is_empty() {
            let label = Label {
                text: "Nothing to show: there are no data.".to_owned(),
                x: layout.width / 2.0,
                y: PLOT_HEIGHT / 2.0,
                anchor: Anchor::Middle,
            };
            self.text(&label, "chart-note", Role::Muted, "");
        }
        self.put("</g>\n");
    }

    fn grid(&mut self, layout: &Layout) {
        let right = Units(layout.width);
        let level = |y: f64| format!("M{}H{right}", Spot { x: 0.0, y });
        let grid: String = layout.y_ticks.iter().map(|(y, _)| level(*y)).collect();
        let mut frame = format!("M0 0V{}H{right}", Units(PLOT_HEIGHT));
        frame.extend(layout.zero.map(level));
        for (x, _) in &layout.x_ticks {
            let _ = write!(frame, "M{}v5", Spot { x: *x, y: PLOT_HEIGHT });
        }
        let lines = self.paint("chart-grid", Fill::None, Some(Role::Line));
        let sides = self.paint("chart-frame", Fill::None, Some(Role::Muted));
        self.put(format_args!("<path{lines} d=\"{grid}\"/>\n<path{sides} d=\"{frame}\"/>\n"));
    }

    fn trace(&mut self, index: usize, trace: &Trace) {
        match trace {
            Trace::Line(runs, marked) => {
                let mut path = String::new();
                for run in runs.iter().filter(|run| 1 < run.len()) {
                    for (index, spot) in run.iter().enumerate() {
                        let _ = write!(path, "{}{spot}", if index == 0 { "M" } else { "L" });
                    }
                }
                self.line(index, &path);
                self.markers(index, marked);
            }
            Trace::Bars(bars) => {
                self.bars(index, &bars.iter().map(ToString::to_string).collect::<String>());
            }
            Trace::Highlight(spot) => {
                if let Some(spot) = spot {
                    self.highlight(index, *spot);
                }
            }
        }
    }

    fn line(&mut self, index: usize, path: &str) {
        if path.is_empty() {
            return;
        }
        let paint = self.paint("chart-line", Fill::None, Some(Role::Series(index)));
        let dashes = match DASHES[index] {
            "" => String::new(),
            dashes => format!(" stroke-dasharray=\"{dashes}\""),
        };
        self.put(format_args!(
            "<path{paint} stroke-width=\"3\" stroke-linejoin=\"round\"{dashes} d=\"{path}\"/>\n"
        ));
    }

    fn markers(&mut self, index: usize, spots: &[Spot]) {
        if spots.is_empty() {
            return;
        }
        let (shape, is_filled) = MARKERS[index];
        let color = Role::Series(index);
        let paint = if is_filled {
            self.paint("chart-marks", Fill::Plain(color), Some(Role::Ground))
        } else {
            self.paint("chart-marks", Fill::None, Some(color)) + " stroke-width=\"2.5\""
        };
        let path: String = spots.iter().map(|spot| format!("M{spot}{shape}")).collect();
        self.put(format_args!("<path{paint} d=\"{path}\"/>\n"));
    }

    fn bars(&mut self, index: usize, path: &str) {
        let fill = match HATCHES[index] {
            (_, 0) => Fill::Plain(Role::Series(index)),
            _ => Fill::Hatch(index),
        };
        let paint = self.paint("chart-bars", fill, Some(Role::Series(index)));
        self.put(format_args!("<path{paint} d=\"{path}\"/>\n"));
    }

    fn highlight(&mut self, index: usize, spot: Spot) {
        let color = Role::Series(index);
        for (radius, fill, stroke) in [(7.5, Role::Ground, Some(color)), (3.5, color, None)] {
            let paint = self.paint("chart-mark", Fill::Plain(fill), stroke);
            let (x, y) = (Units(spot.x), Units(spot.y));
            self.put(format_args!(
                "<circle{paint} stroke-width=\"2.5\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>\n"
            ));
        }
    }

    /// Draws the sample of a series in the legend, to the left of its `label`.
    fn sample(&mut self, index: usize, trace: &Trace, label: &Label) {
        let (left, right, y) = (label.x - SAMPLE, label.x - 8.0, label.y);
        let middle = Spot { x: f64::midpoint(left, right), y };
        match trace {
            Trace::Line(..) => {
                self.line(index, &format!("M{}H{}", Spot { x: left, y }, Units(right)));
                self.markers(index, &[middle]);
            }
            Trace::Bars(_) => {
                let start = Spot { x: left + 4.0, y: y - 7.0 };
                let path = format!("M{start}H{}v14H{}Z", Units(right), Units(start.x));
                self.bars(index, &path);
            }
            Trace::Highlight(_) => self.highlight(index, middle),
        }
    }

    fn text(&mut self, label: &Label, class: &str, role: Role, more: &str) {
        let paint = self.paint(class, Fill::Plain(role), (more == HALO).then_some(Role::Ground));
        let (x, y) = (Units(label.x), Units(label.y));
        let anchor = match label.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.put(format_args!(
            "<text{paint} x=\"{x}\" y=\"{y}\" dy=\".35em\"{anchor}{more}>{}</text>\n",
            escape(&label.text),
        ));
    }

    /// Returns the attributes for the class and the colors of an element; in a standalone chart
    /// also the classes by which the style changes the colors.
    fn paint(&self, class: &str, fill: Fill, stroke: Option<Role>) -> String {
        let color = |role: Role| {
            if self.is_standalone { role.light().to_owned() } else { role.inherited() }
        };
        let (filled, inner) = match fill {
            Fill::None => ("none".to_owned(), None),
            Fill::Plain(role) => (color(role), Some(role)),
            Fill::Hatch(index) => (format!("url(#{}-fill-{})", self.prefix, index + 1), None),
        };
        let mut paint = format!(" class=\"{class}");
        for (what, role) in [("fill", inner), ("stroke", stroke)] {
            if let Some(role) = role.filter(|it| self.is_standalone && SHADED.contains(it)) {
                let _ = write!(paint, " chart-{what}-{}", role.name());
            }
        }
        let _ = write!(paint, "\" fill=\"{filled}\"");
        if let Some(role) = stroke {
            let _ = write!(paint, " stroke=\"{}\"", color(role));
        }
        paint
    }

    fn put(&mut self, text: impl fmt::Display) {
        let _ = write!(self.out, "{text}");
    }
}

/// Outline that keeps a name readable on a line.
const HALO: &str = " stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\"";

/// Returns the rank of a trace: lower ones are drawn first.
fn rank(trace: &Trace) -> usize {
    match trace {
        Trace::Bars(_) => 0,
        Trace::Line(..) => 1,
        Trace::Highlight(_) => 2,
    }
}
