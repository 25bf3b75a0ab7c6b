//! Rendering of a chart as SVG text.
//!
//! Colors are attributes, so a renderer without style sheets draws them, too. In a standalone chart a style
//! replaces them if the reader prefers dark. In a page they are the page's own.

use std::fmt::Write as _;

use super::layout::{Anchor, Label, Layout, SAMPLE};
use super::number::coordinate;
use super::palette::{Role, SHADED};
use super::text::{self, SIZE, TITLE_SIZE};
use super::trace::{Spot, Trace};
use super::{Chart, DESCRIPTION_CHARS_MAX, SERIES_MAX, TITLE_CHARS_MAX, WIDTH_UNITS};
use crate::templates::escape;

/// The document around a chart.
#[derive(Clone, Debug)]
pub(super) enum Document {
    /// None: the chart is a file of its own.
    Standalone,
    /// A page; the chart's ids begin with this prefix.
    Page(String),
}

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

/// The font of a standalone chart.
const FONT: &str = "system-ui, Helvetica, Arial, sans-serif";

/// Draws `chart`.
pub(super) fn write(chart: &Chart, document: &Document) -> String {
    let layout = Layout::new(chart, matches!(document, Document::Standalone));
    let mut pen = Pen { out: String::new(), document, chart };
    pen.open(&layout);
    pen.frame(&layout);
    pen.plot(&layout);
    pen.out.push_str("</svg>\n");
    pen.out
}

/// The fill of an area.
#[derive(Clone, Copy, Debug)]
enum Fill {
    None,
    Plain(Role),
    /// The hatching of the series of this index.
    Hatch(usize),
}

struct Pen<'a> {
    out: String,
    document: &'a Document,
    chart: &'a Chart,
}

impl Pen<'_> {
    /// Begins the chart: title, description, style, background.
    fn open(&mut self, layout: &Layout) {
        let prefix = self.prefix().to_owned();
        let is_standalone = matches!(self.document, Document::Standalone);
        if is_standalone {
            self.put("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        }
        let _ = write!(
            self.out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"100%\" \
             viewBox=\"0 0 {WIDTH_UNITS} {}\" role=\"img\" \
             aria-labelledby=\"{prefix}-title {prefix}-desc\" font-size=\"{SIZE}\"",
            layout.whole,
        );
        if is_standalone {
            let _ = write!(self.out, " font-family=\"{FONT}\"");
        }
        let title = text::clip(&self.chart.title, TITLE_CHARS_MAX);
        let _ = write!(self.out, ">\n<title id=\"{prefix}-title\">");
        self.out.push_str(&escape(&title));
        let _ = write!(self.out, "</title>\n<desc id=\"{prefix}-desc\">");
        let description = text::clip(&self.chart.description, DESCRIPTION_CHARS_MAX);
        self.out.push_str(&escape(&description));
        self.put("</desc>\n");
        if is_standalone {
            self.style();
            self.put("<rect");
            self.paint("chart-ground", Fill::Plain(Role::Ground), None);
            self.put(" width=\"100%\" height=\"100%\"/>\n");
        }
        self.hatches(layout);
    }

    /// Writes the style of a standalone chart.
    fn style(&mut self) {
        let (light, dark) = (Role::Ground.light(), Role::Ground.dark());
        let _ = write!(
            self.out,
            "<style>\n.chart {{ color-scheme: light dark; background: {light}; display: block; \
             max-width: 48rem; margin: 0 auto }}\n\
             @media (prefers-color-scheme: dark) {{\n.chart {{ background: {dark} }}\n",
        );
        for role in SHADED {
            let (name, color) = (role.name(), role.dark());
            let _ = writeln!(
                self.out,
                ".chart-fill-{name} {{ fill: {color} }} .chart-stroke-{name} {{ stroke: {color} }}"
            );
        }
        self.put("}\n</style>\n");
    }

    /// Defines the hatchings of bars.
    fn hatches(&mut self, layout: &Layout) {
        let prefix = self.prefix().to_owned();
        for (index, trace) in layout.traces.iter().enumerate() {
            let (angle, room) = HATCHES[index];
            if !matches!(trace, Trace::Bars(_)) || room == 0 {
                continue;
            }
            let _ = write!(
                self.out,
                "<pattern id=\"{prefix}-fill-{}\" width=\"{room}\" height=\"{room}\" \
                 patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate({angle})\">\
                 <rect width=\"{room}\" height=\"{room}\"",
                index + 1,
            );
            self.paint("chart-hatch", Fill::Plain(Role::Ground), None);
            self.put("/><path");
            self.paint("chart-hatch", Fill::None, Some(Role::Series(index)));
            let _ = write!(self.out, " d=\"M0 {0}H{room}\" stroke-width=\"3\"", room / 2);
            self.put("/></pattern>\n");
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
        self.put("<g class=\"chart-plot\" transform=\"translate(");
        push_pair(&mut self.out, layout.left, layout.top);
        self.put(")\">\n");
        self.grid(layout);
        for (_, label) in &layout.y_ticks {
            self.text(label, "chart-y", Role::Muted, "");
        }
        for label in layout.x_ticks.iter().flat_map(|(_, labels)| labels) {
            self.text(label, "chart-x", Role::Muted, "");
        }
        // Small marks are drawn in front of large ones.
        for rank in 0..4 {
            for (index, trace) in layout.traces.iter().enumerate() {
                if rank == self::rank(trace) && !trace.is_empty() {
                    let _ =
                        writeln!(self.out, "<g class=\"chart-series chart-series-{}\">", index + 1);
                    self.trace(index, trace);
                    self.put("</g>\n");
                }
            }
        }
        for (_, label) in &layout.names {
            self.text(label, "chart-name", Role::Text, HALO);
        }
        if layout.traces.iter().all(Trace::is_empty) {
            let label = Label {
                text: "Nothing to show: there are no data.".to_owned(),
                x: layout.width / 2.0,
                y: layout.height / 2.0,
                anchor: Anchor::Middle,
            };
            self.text(&label, "chart-note", Role::Muted, "");
        }
        self.put("</g>\n");
    }

    fn grid(&mut self, layout: &Layout) {
        self.put("<path");
        self.paint("chart-grid", Fill::None, Some(Role::Line));
        let mut path = String::new();
        for (y, _) in &layout.y_ticks {
            push_level(&mut path, *y, layout.width);
        }
        let _ = write!(self.out, " d=\"{path}\"/>\n<path");
        self.paint("chart-frame", Fill::None, Some(Role::Muted));
        let mut path = "M0 0V".to_owned();
        coordinate(&mut path, layout.height);
        path.push('H');
        coordinate(&mut path, layout.width);
        if let Some(zero) = layout.zero {
            push_level(&mut path, zero, layout.width);
        }
        for (x, _) in &layout.x_ticks {
            path.push('M');
            push_pair(&mut path, *x, layout.height);
            path.push_str("v5");
        }
        let _ = writeln!(self.out, " d=\"{path}\"/>");
    }

    fn trace(&mut self, index: usize, trace: &Trace) {
        match trace {
            Trace::Line(runs, marked) => {
                let mut path = String::new();
                for run in runs.iter().filter(|run| 1 < run.len()) {
                    for (index, spot) in run.iter().enumerate() {
                        path.push_str(if index == 0 { "M" } else { "L" });
                        push_pair(&mut path, spot.x, spot.y);
                    }
                }
                self.line(index, &path);
                self.markers(index, marked);
            }
            Trace::Points(spots) => self.markers(index, spots),
            Trace::Bars(bars) => {
                let mut path = String::new();
                for bar in bars {
                    path.push('M');
                    push_pair(&mut path, bar.left, bar.top);
                    path.push('H');
                    coordinate(&mut path, bar.right);
                    path.push('V');
                    coordinate(&mut path, bar.bottom);
                    path.push('H');
                    coordinate(&mut path, bar.left);
                    path.push('Z');
                }
                self.bars(index, &path);
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
        self.put("<path");
        self.paint("chart-line", Fill::None, Some(Role::Series(index)));
        self.put(" stroke-width=\"3\" stroke-linejoin=\"round\"");
        if !DASHES[index].is_empty() {
            let _ = write!(self.out, " stroke-dasharray=\"{}\"", DASHES[index]);
        }
        let _ = writeln!(self.out, " d=\"{path}\"/>");
    }

    fn markers(&mut self, index: usize, spots: &[Spot]) {
        if spots.is_empty() {
            return;
        }
        let (shape, is_filled) = MARKERS[index];
        let color = Role::Series(index);
        self.put("<path");
        if is_filled {
            self.paint("chart-marks", Fill::Plain(color), Some(Role::Ground));
        } else {
            self.paint("chart-marks", Fill::None, Some(color));
            self.put(" stroke-width=\"2.5\"");
        }
        self.put(" d=\"");
        for spot in spots {
            self.put("M");
            push_pair(&mut self.out, spot.x, spot.y);
            self.put(shape);
        }
        self.put("\"/>\n");
    }

    fn bars(&mut self, index: usize, path: &str) {
        let fill = match HATCHES[index] {
            (_, 0) => Fill::Plain(Role::Series(index)),
            _ => Fill::Hatch(index),
        };
        self.put("<path");
        self.paint("chart-bars", fill, Some(Role::Series(index)));
        let _ = writeln!(self.out, " d=\"{path}\"/>");
    }

    fn highlight(&mut self, index: usize, spot: Spot) {
        let color = Role::Series(index);
        for (radius, fill, stroke) in [(7.5, Role::Ground, Some(color)), (3.5, color, None)] {
            self.put("<circle");
            self.paint("chart-mark", Fill::Plain(fill), stroke);
            self.put(" stroke-width=\"2.5\" cx=\"");
            coordinate(&mut self.out, spot.x);
            self.put("\" cy=\"");
            coordinate(&mut self.out, spot.y);
            let _ = writeln!(self.out, "\" r=\"{radius}\"/>");
        }
    }

    /// Draws the sample of a series in the legend, to the left of its `label`.
    fn sample(&mut self, index: usize, trace: &Trace, label: &Label) {
        let (left, right, y) = (label.x - SAMPLE, label.x - 8.0, label.y);
        let middle = Spot { x: f64::midpoint(left, right), y };
        let mut path = "M".to_owned();
        match trace {
            Trace::Line(..) => {
                push_pair(&mut path, left, y);
                path.push('H');
                coordinate(&mut path, right);
                self.line(index, &path);
                self.markers(index, &[middle]);
            }
            Trace::Points(_) => self.markers(index, &[middle]),
            Trace::Bars(_) => {
                push_pair(&mut path, left + 4.0, y - 7.0);
                path.push('H');
                coordinate(&mut path, right);
                path.push_str("v14H");
                coordinate(&mut path, left + 4.0);
                path.push('Z');
                self.bars(index, &path);
            }
            Trace::Highlight(_) => self.highlight(index, middle),
        }
    }

    fn text(&mut self, label: &Label, class: &str, role: Role, more: &str) {
        self.put("<text");
        self.paint(class, Fill::Plain(role), (more == HALO).then_some(Role::Ground));
        self.put(" x=\"");
        coordinate(&mut self.out, label.x);
        self.put("\" y=\"");
        coordinate(&mut self.out, label.y);
        self.put("\" dy=\".35em\"");
        match label.anchor {
            Anchor::Start => {}
            Anchor::Middle => self.put(" text-anchor=\"middle\""),
            Anchor::End => self.put(" text-anchor=\"end\""),
        }
        self.put(more);
        self.put(">");
        self.out.push_str(&escape(&label.text));
        self.put("</text>\n");
    }

    /// Adds the class and the colors of an element; in a standalone chart also the style's classes of the colors.
    fn paint(&mut self, class: &str, fill: Fill, stroke: Option<Role>) {
        let prefix = self.prefix().to_owned();
        let (color, inner) = match fill {
            Fill::None => ("none".to_owned(), None),
            Fill::Plain(role) => (self.color(role), Some(role)),
            Fill::Hatch(index) => (format!("url(#{prefix}-fill-{})", index + 1), None),
        };
        let _ = write!(self.out, " class=\"{class}");
        if matches!(self.document, Document::Standalone) {
            for (what, role) in [("fill", inner), ("stroke", stroke)] {
                if let Some(role) = role.filter(|role| SHADED.contains(role)) {
                    let _ = write!(self.out, " chart-{what}-{}", role.name());
                }
            }
        }
        let _ = write!(self.out, "\" fill=\"{color}\"");
        if let Some(role) = stroke {
            let color = self.color(role);
            let _ = write!(self.out, " stroke=\"{color}\"");
        }
    }

    fn color(&self, role: Role) -> String {
        match self.document {
            Document::Standalone => role.light().to_owned(),
            Document::Page(_) => role.inherited(),
        }
    }

    fn prefix(&self) -> &str {
        match self.document {
            Document::Standalone => "chart",
            Document::Page(prefix) => prefix,
        }
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }
}

/// Outline that keeps a name readable on a line.
const HALO: &str = " stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\"";

fn push_pair(out: &mut String, x: f64, y: f64) {
    coordinate(out, x);
    out.push(' ');
    coordinate(out, y);
}

/// Adds a line across the plot.
fn push_level(out: &mut String, y: f64, width: f64) {
    out.push('M');
    push_pair(out, 0.0, y);
    out.push('H');
    coordinate(out, width);
}

/// Returns the rank of a trace: lower ones are drawn first.
fn rank(trace: &Trace) -> usize {
    match trace {
        Trace::Bars(_) => 0,
        Trace::Line(..) => 1,
        Trace::Points(_) => 2,
        Trace::Highlight(_) => 3,
    }
}
