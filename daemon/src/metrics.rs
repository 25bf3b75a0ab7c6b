//! Metrics in Prometheus' text format, version 0.0.4.
//!
//! Source: Prometheus, "Exposition formats". Each name has one `HELP` and one `TYPE` line, then its
//! samples.
//!
//! Sans-I/O.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The `content-type` of [`render`]'s text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Behavior of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only rises, from 0 at the start of the process; its name ends in `_total`.
    Counter,
    /// It rises and falls.
    Gauge,
}

/// One value under a name and labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Letters, digits and `_`; unit last, `_total` after it for a counter.
    pub name: &'static str,
    /// One sentence for people.
    pub help: &'static str,
    /// The behavior of the value; the same for all samples of a name.
    pub kind: Kind,
    /// Name and value of each label, in the order to show them.
    pub labels: Vec<(&'static str, String)>,
    /// The value; NaN and infinities are allowed.
    pub value: f64,
}

impl Sample {
    /// Returns a counter without labels.
    pub fn counter(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name, help, kind: Kind::Counter, labels: Vec::new(), value }
    }

    /// Returns a gauge without labels.
    pub fn gauge(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name, help, kind: Kind::Gauge, labels: Vec::new(), value }
    }

    /// Returns the sample with one more label.
    #[must_use]
    pub fn with(mut self, label: &'static str, value: impl Into<String>) -> Self {
        self.labels.push((label, value.into()));
        self
    }
}

/// Renders `samples`. The samples of one name are grouped at the position of the first.
pub fn render(samples: &[Sample]) -> String {
    let mut out = String::new();
    let mut done = BTreeSet::new();
    for first in samples {
        if !done.insert(first.name) {
            continue;
        }
        let kind = match first.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        // Writing to a String cannot fail.
        let _ = write!(out, "# HELP {} ", first.name);
        escape(&mut out, first.help, false);
        let _ = writeln!(out, "\n# TYPE {} {kind}", first.name);
        for sample in samples.iter().filter(|it| it.name == first.name) {
            render_one(&mut out, sample);
        }
    }
    out
}

fn render_one(out: &mut String, sample: &Sample) {
    out.push_str(sample.name);
    for (i, (name, value)) in sample.labels.iter().enumerate() {
        let _ = write!(out, "{}{name}=\"", if i == 0 { '{' } else { ',' });
        escape(out, value, true);
        out.push('"');
    }
    if !sample.labels.is_empty() {
        out.push('}');
    }
    let value = sample.value;
    if value.is_nan() {
        out.push_str(" NaN\n");
    } else if value.is_infinite() {
        out.push_str(if 0.0 < value { " +Inf\n" } else { " -Inf\n" });
    } else {
        let _ = writeln!(out, " {value}");
    }
}

fn escape(out: &mut String, text: &str, quotes: bool) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(samples: &[Sample], expected: &str) {
        assert_eq!(render(samples), expected);
    }

    #[test]
    fn names_are_grouped_and_described_once() {
        let pulls = |source: &str, value| {
            Sample::counter("pulls_total", "Pulls.", value).with("source", source)
        };
        check(
            &[pulls("a", 1.0), Sample::gauge("objects", "Objects.", 1_234_567.0), pulls("b", 2.5)],
            "# HELP pulls_total Pulls.\n# TYPE pulls_total counter\n\
             pulls_total{source=\"a\"} 1\npulls_total{source=\"b\"} 2.5\n\
             # HELP objects Objects.\n# TYPE objects gauge\nobjects 1234567\n",
        );
    }

    #[test]
    fn special_characters_are_escaped() {
        check(
            &[Sample::gauge("g", "a\\b\nc \"d\"", f64::NAN).with("l", "a\\b\n\"c\"").with("m", "")],
            "# HELP g a\\\\b\\nc \"d\"\n# TYPE g gauge\ng{l=\"a\\\\b\\n\\\"c\\\"\",m=\"\"} NaN\n",
        );
        check(
            &[Sample::gauge("i", "", f64::INFINITY), Sample::gauge("j", "", f64::NEG_INFINITY)],
            "# HELP i \n# TYPE i gauge\ni +Inf\n# HELP j \n# TYPE j gauge\nj -Inf\n",
        );
    }

    #[test]
    fn no_samples_give_no_text() {
        check(&[], "");
    }
}
