//! Charts: from data to SVG text, without a script.
//!
//! [`Chart::standalone`] writes a file that looks right alone, in a browser or in a paper.
//! [`Chart::inline`] writes an element for one of our pages, in the page's colors. Up to
//! [`SERIES_MAX`] series differ by dash, marker and hatching, not by color alone.
//!
//! Any input gives a chart of at most [`BYTES_MAX`] bytes: values that are not finite are gaps,
//! long texts are cut, and points that cannot be distinguished are not all drawn (`trace`).
//!
//! Sans-I/O.

mod layout;
mod number;
mod palette;
mod scale;
mod svg;
mod text;
mod trace;

/// Maximum number of series in a chart; further ones are not drawn, and the chart says so.
pub const SERIES_MAX: usize = 8;

/// Greatest length of a chart's SVG text, in bytes.
pub const BYTES_MAX: usize = 2 * 1024 * 1024;

/// Width of every chart, in units of its `viewBox`. It fills the width of its container.
pub const WIDTH_UNITS: u32 = 640;

/// Greatest length of a title, in characters; the rest is cut.
pub const TITLE_CHARS_MAX: usize = 120;

/// Greatest length of a description, in characters; the rest is cut.
pub const DESCRIPTION_CHARS_MAX: usize = 2_000;

/// Greatest length of an axis' label and of a series' name, in characters; the rest is cut.
pub const LABEL_CHARS_MAX: usize = 40;

/// Greatest length of the label of one category, in characters; the rest is cut.
pub const CATEGORY_CHARS_MAX: usize = 24;

/// Greatest length of the prefix of a chart's ids, in characters; the rest is cut.
pub const PREFIX_CHARS_MAX: usize = 60;

/// A point: x and y. A point that is not finite, or that an axis cannot show, is a gap.
///
/// Values further from 0 than 10¹⁵⁰ are drawn as if at 10¹⁵⁰ or -10¹⁵⁰. Values nearer to 0 than
/// 10⁻¹⁵⁰ are drawn as 0, on a logarithmic axis as 10⁻¹⁵⁰.
pub type Point = (f64, f64);

/// A chart: series over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title: heading of a standalone chart, and its name for assistive technology.
    pub title: String,
    /// A description for readers who cannot see the chart.
    pub description: String,
    /// The axis from left to right.
    pub x: Axis,
    /// The axis from bottom to top.
    pub y: Axis,
    /// The series, drawn in this order; the index of a series decides its look.
    pub series: Vec<Series>,
}

/// One axis. Its range follows the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// The quantity.
    pub label: String,
    /// The unit; empty if there is none.
    pub unit: String,
    /// The layout of values.
    pub scale: Scale,
    /// Whether values are shares, written as per cent: 0.5 as 50 %.
    pub percent: bool,
}

/// Layout of an axis' values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic; a value that is not above 0 is a gap.
    Logarithmic,
    /// One position for each label; values are the labels' indices, from 0.
    Categories(Vec<String>),
}

/// One series of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name, shown at the series' end or in the legend; an empty name is not shown.
    pub name: String,
    /// The marks and their points.
    pub marks: Marks,
}

/// Marks of a series, with its points.
#[derive(Clone, Debug, PartialEq)]
pub enum Marks {
    /// A line with markers, broken at gaps. The points are taken in ascending order of x.
    Line(Vec<Point>),
    /// Bars from 0; on a logarithmic axis from its lower end.
    Bars(Vec<Point>),
    /// One highlighted point, with its name beside it.
    Highlight(Point),
}

impl Axis {
    /// Returns a linear axis of plain numbers, without a unit.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Sets the unit.
    #[must_use]
    pub fn unit(self, unit: impl Into<String>) -> Self {
        Self { unit: unit.into(), ..self }
    }

    /// Makes the axis logarithmic.
    #[must_use]
    pub fn logarithmic(self) -> Self {
        Self { scale: Scale::Logarithmic, ..self }
    }

    /// Gives the axis one position for each of `labels`.
    #[must_use]
    pub fn categories(self, labels: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let labels = labels.into_iter().map(Into::into).collect();
        Self { scale: Scale::Categories(labels), ..self }
    }

    /// Writes the numbers as per cent.
    #[must_use]
    pub fn percent(self) -> Self {
        Self { percent: true, ..self }
    }
}

impl Series {
    /// Returns a line with markers.
    pub fn line(name: impl Into<String>, points: Vec<Point>) -> Self {
        Self { name: name.into(), marks: Marks::Line(points) }
    }

    /// Returns bars.
    pub fn bars(name: impl Into<String>, points: Vec<Point>) -> Self {
        Self { name: name.into(), marks: Marks::Bars(points) }
    }

    /// Returns one highlighted point, labelled `name`.
    pub fn highlight(name: impl Into<String>, point: Point) -> Self {
        Self { name: name.into(), marks: Marks::Highlight(point) }
    }

    fn values(&self) -> &[Point] {
        match &self.marks {
            Marks::Line(points) | Marks::Bars(points) => points,
            Marks::Highlight(point) => std::slice::from_ref(point),
        }
    }
}

impl Chart {
    /// Draws a file of its own: an XML document with its title, light or dark as the reader
    /// prefers, light without a preference.
    pub fn standalone(&self) -> String {
        svg::write(self, None)
    }

    /// Draws an `svg` element for an HTML page, without its title, which the page shows.
    ///
    /// Its colors are the page's custom properties `--text`, `--muted`, `--line`, `--ground` and,
    /// if present, `--series-1` to `--series-8`. It has no style of its own, which the policy of
    /// our pages would forbid. Its ids begin with `prefix`: ASCII letters, digits, `-` and `_`,
    /// different for each chart of a page. Other characters become `-`, and those beyond
    /// [`PREFIX_CHARS_MAX`] are cut.
    pub fn inline(&self, prefix: &str) -> String {
        let clean = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let prefix: String = prefix.chars().take(PREFIX_CHARS_MAX).map(clean).collect();
        svg::write(self, Some(&prefix))
    }

    /// Returns the series that are drawn.
    fn drawn(&self) -> &[Series] {
        &self.series[..self.series.len().min(SERIES_MAX)]
    }
}
