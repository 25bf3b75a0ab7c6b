//! Charts: from data to SVG text, without a script.
//!
//! [`Chart::standalone`] writes a file that looks right alone, in a browser or in a paper;
//! [`Chart::inline`] writes an element for a page of ours, in the page's own colors. Up to
//! [`SERIES_MAX`] series are told apart by dash, marker and hatching, not by color alone.
//!
//! Any input gives a chart of at most [`BYTES_MAX`] bytes: what is not finite is a gap, long texts are
//! cut, and of many points those are drawn that can be told apart (module `trace`).
//!
//! Sans-I/O.

mod layout;
mod number;
mod palette;
mod scale;
mod svg;
mod text;
mod trace;

/// Series in a chart; those beyond are not drawn, and the chart says so.
pub const SERIES_MAX: usize = 8;

/// Length of a chart's SVG text, in bytes.
pub const BYTES_MAX: usize = 2 * 1024 * 1024;

/// Width of every chart, in units of its `viewBox`. It takes all the width that it is given.
pub const WIDTH_UNITS: u32 = 640;

/// Length of a title, in characters; the rest is cut.
pub const TITLE_CHARS_MAX: usize = 120;

/// Length of a description, in characters; the rest is cut.
pub const DESCRIPTION_CHARS_MAX: usize = 2_000;

/// Length of an axis' label and of a series' name, in characters; the rest is cut.
pub const LABEL_CHARS_MAX: usize = 40;

/// Length of the label of one category, in characters; the rest is cut.
pub const CATEGORY_CHARS_MAX: usize = 24;

/// Length of what the ids of a chart begin with, in characters; the rest is cut.
pub const PREFIX_CHARS_MAX: usize = 60;

/// A point: x and y. One that is not finite, or that its axis cannot show, is a gap.
///
/// Values further from 0 than 10¹⁵⁰ are drawn there, and values nearer to it than 10⁻¹⁵⁰ as 0.
pub type Point = (f64, f64);

/// What is drawn: series over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its name: heading of a standalone chart, and what assistive technology calls it.
    pub title: String,
    /// What it shows, for who does not see it.
    pub description: String,
    /// The axis from left to right.
    pub x: Axis,
    /// The axis from bottom to top.
    pub y: Axis,
    /// What is drawn, in this order; the place of a series decides how it looks.
    pub series: Vec<Series>,
}

/// One axis. Its range follows the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What is measured.
    pub label: String,
    /// What it is measured in; empty if in nothing.
    pub unit: String,
    /// How values are laid out.
    pub scale: Scale,
    /// How numbers are written.
    pub format: Format,
}

/// How an axis lays out its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By their logarithm; what is not above 0 is a gap.
    Logarithmic,
    /// One place for each label: its values are the labels' indices, from 0.
    Categories(Vec<String>),
}

/// How an axis writes its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As they are.
    #[default]
    Plain,
    /// As per cent: 0.5 as 50 %.
    Percent,
}

/// One series of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is called, at its end or in the legend; an empty name is not shown.
    pub name: String,
    /// What is drawn of it.
    pub marks: Marks,
}

/// How a series is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Marks {
    /// A line with markers, broken at gaps. The points are taken in ascending order of x.
    Line(Vec<Point>),
    /// The points alone.
    Points(Vec<Point>),
    /// Bars from 0; on a logarithmic axis from its lower end.
    Bars(Vec<Point>),
    /// One point that stands out, with its name beside it.
    Highlight(Point),
}

impl Axis {
    /// A linear axis of plain numbers, without a unit.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// The same measured in `unit`.
    #[must_use]
    pub fn unit(self, unit: impl Into<String>) -> Self {
        Self { unit: unit.into(), ..self }
    }

    /// The same, logarithmic.
    #[must_use]
    pub fn logarithmic(self) -> Self {
        Self { scale: Scale::Logarithmic, ..self }
    }

    /// The same with a place for each of `labels`.
    #[must_use]
    pub fn categories(self, labels: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let labels = labels.into_iter().map(Into::into).collect();
        Self { scale: Scale::Categories(labels), ..self }
    }

    /// The same with its numbers written as per cent.
    #[must_use]
    pub fn percent(self) -> Self {
        Self { format: Format::Percent, ..self }
    }
}

impl Series {
    /// A line with markers.
    pub fn line(name: impl Into<String>, points: Vec<Point>) -> Self {
        Self { name: name.into(), marks: Marks::Line(points) }
    }

    /// Points alone.
    pub fn points(name: impl Into<String>, points: Vec<Point>) -> Self {
        Self { name: name.into(), marks: Marks::Points(points) }
    }

    /// Bars.
    pub fn bars(name: impl Into<String>, points: Vec<Point>) -> Self {
        Self { name: name.into(), marks: Marks::Bars(points) }
    }

    /// One point that stands out, labelled `name`.
    pub fn highlight(name: impl Into<String>, point: Point) -> Self {
        Self { name: name.into(), marks: Marks::Highlight(point) }
    }

    fn values(&self) -> &[Point] {
        match &self.marks {
            Marks::Line(points) | Marks::Points(points) | Marks::Bars(points) => points,
            Marks::Highlight(point) => std::slice::from_ref(point),
        }
    }
}

impl Chart {
    /// Draws a file of its own: an XML document with its title, light or dark as the reader prefers,
    /// light where nothing is preferred.
    pub fn standalone(&self) -> String {
        svg::write(self, &svg::Place::Alone)
    }

    /// Draws an `svg` element for an HTML page, without its title, which the page shows.
    ///
    /// Its colors are the page's custom properties `--text`, `--muted`, `--line`, `--ground` and, if
    /// there are such, `--series-1` to `--series-8`. It has no style of its own, which the policy of
    /// our pages would forbid. `prefix` begins its ids: ASCII letters, digits, `-` and `_`, another
    /// for each chart of a page; other characters count as `-`, and those beyond
    /// [`PREFIX_CHARS_MAX`] not at all.
    pub fn inline(&self, prefix: &str) -> String {
        let clean = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        svg::write(
            self,
            &svg::Place::Inside(prefix.chars().take(PREFIX_CHARS_MAX).map(clean).collect()),
        )
    }

    /// The series that are drawn.
    fn drawn(&self) -> &[Series] {
        &self.series[..self.series.len().min(SERIES_MAX)]
    }
}
