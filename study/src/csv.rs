//! CSV of a study's tables.
//!
//! Source: RFC 4180: a header line, CRLF at the end of each line, quotes around a field that holds
//! a comma, a quote or a line break. The tables are those of Liu §4 and the costs of §3.
//!
//! [`report`] writes all tables as one: the first column names the table of a line, and the others
//! are the columns of all tables, empty where a table lacks them.
//!
//! # Differences from the paper
//!
//! Intervals are in seconds and rates a day. Unknown values are empty fields. Times are in UTC.
//!
//! Sans-I/O.

use std::fmt::Display;
use std::iter;

use freshness::date::date_time;
use freshness::history::Cost;

use crate::log::Traffic;
use crate::model::Prediction;
use crate::report::{ClassRow, MonthRow, Overall, Report, SourceMonth, SourceRow};

const DAY_SECS: f64 = 86_400.0;
const SECOND_MS: f64 = 1_000.0;

/// First columns of the combined table: the table of a line, and its keys.
const FIRST: [&str; 5] = ["section", "source", "month", "class", "model"];

const SOURCES: &str = "source,class,updates,records,known_secs,last_update,secs_per_update,\
                       interval_mean_secs,interval_deviation_secs,interval_variation,\
                       updates_a_day,records_a_day,freshness,requests,requests_empty,\
                       records_brought,requests_failed,bytes,took_secs";
const MONTHS: &str = "month,updates,records,records_a_day";
const SOURCE_MONTHS: &str = "source,month,updates,records,records_a_day";
const CLASSES: &str = "class,interval_max_secs,sources,share,share_up_to";
const OVERALL: &str = "sources,sources_changed,updates,records,known_secs,interval_mean_secs,\
                       interval_deviation_secs,interval_variation,source_means_mean_secs,\
                       source_means_deviation_secs,updates_a_day,records_a_day,freshness,\
                       requests,requests_empty,records_brought,requests_failed,bytes,took_secs";
const PREDICTIONS: &str = "model,requests_predicted,requests_predicted_per_source,late_share_max";

/// Writes all tables as one. The sections are `total`, `month`, `class`, `model` (the predictions),
/// `source` and `source_month`, in this order; the columns are those of all sections.
pub fn report<K: Display>(report: &Report<K>, predictions: &[Prediction]) -> String {
    type Lines<'a> = Box<dyn Iterator<Item = Line> + 'a>;
    let sections: [(&str, &str, Lines<'_>); 6] = [
        ("total", OVERALL, Box::new(iter::once_with(|| overall_line(&report.overall)))),
        ("month", MONTHS, Box::new(report.months.iter().map(month_line))),
        ("class", CLASSES, Box::new(report.classes.iter().map(class_line))),
        ("model", PREDICTIONS, Box::new(predictions.iter().map(prediction_line))),
        ("source", SOURCES, Box::new(report.sources.iter().map(source_line))),
        (
            "source_month",
            SOURCE_MONTHS,
            Box::new(report.source_months.iter().map(source_month_line)),
        ),
    ];
    let mut columns = FIRST.to_vec();
    for name in sections.iter().flat_map(|(_, columns, _)| columns.split(',')) {
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    let mut text = columns.join(",") + END;
    for (section, names, lines) in sections {
        let positions: Vec<Option<usize>> =
            names.split(',').map(|name| columns.iter().position(|it| *it == name)).collect();
        for Line(line) in lines {
            let mut fields = vec![""; columns.len()];
            fields[0] = section;
            for (position, field) in positions.iter().zip(&line) {
                if let Some(position) = position {
                    fields[*position] = field;
                }
            }
            text.push_str(&fields.join(","));
            text.push_str(END);
        }
    }
    text
}

const END: &str = "\r\n";

fn source_line<K: Display>(row: &SourceRow<K>) -> Line {
    Line::default()
        .text(&row.source)
        .text(row.class.name())
        .text(row.updates)
        .text(row.records)
        .text(row.known_secs)
        .maybe(row.updated_secs.map(date_time))
        .maybe(row.interval_secs)
        .maybe(row.intervals.mean())
        .maybe(row.intervals.deviation())
        .maybe(row.intervals.variation())
        .a_day(row.frequency)
        .a_day(row.record_rate)
        .maybe(row.freshness)
        .cost(row.cost)
        .traffic(row.traffic)
}

fn month_line(row: &MonthRow) -> Line {
    Line::default().month(row)
}

fn source_month_line<K: Display>(row: &SourceMonth<K>) -> Line {
    Line::default().text(&row.source).month(&row.row)
}

fn class_line(row: &ClassRow) -> Line {
    Line::default()
        .text(row.class.name())
        .maybe(row.class.interval_max())
        .text(row.sources)
        .text(row.share)
        .text(row.share_up_to)
}

fn overall_line(all: &Overall) -> Line {
    Line::default()
        .text(all.sources)
        .text(all.sources_changed)
        .text(all.updates)
        .text(all.records)
        .text(all.known_secs)
        .maybe(all.intervals.mean())
        .maybe(all.intervals.deviation())
        .maybe(all.intervals.variation())
        .maybe(all.means.mean())
        .maybe(all.means.deviation())
        .a_day(all.frequency)
        .a_day(all.record_rate)
        .maybe(all.freshness)
        .cost(all.cost)
        .traffic(all.traffic)
}

fn prediction_line(row: &Prediction) -> Line {
    let sources = row.requests.len().max(1) as f64;
    Line::default()
        .text(row.model.name())
        .text(row.total)
        .text(row.total / sources)
        .text(row.late_share_max)
}

/// The fields of a line, quoted where they must be.
#[derive(Default)]
struct Line(Vec<String>);

impl Line {
    fn text(mut self, field: impl Display) -> Self {
        let field = field.to_string();
        self.0.push(if field.contains([',', '"', '\r', '\n']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        });
        self
    }

    fn maybe(self, field: Option<impl Display>) -> Self {
        match field {
            Some(field) => self.text(field),
            None => self.text(""),
        }
    }

    /// Adds a rate a second, as a rate a day.
    fn a_day(self, rate: Option<f64>) -> Self {
        self.maybe(rate.map(|rate| rate * DAY_SECS))
    }

    fn month(self, row: &MonthRow) -> Self {
        self.text(row.month).text(row.updates).text(row.records).a_day(Some(row.record_rate))
    }

    fn cost(self, cost: Cost) -> Self {
        self.text(cost.requests).text(cost.requests_empty).text(cost.records)
    }

    fn traffic(self, traffic: Traffic) -> Self {
        let took_secs = traffic.took_ms as f64 / SECOND_MS;
        self.text(traffic.requests_failed).text(traffic.bytes).text(took_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Study;
    use crate::model::{Demand, Synchronization, predict};
    use freshness::history::Settings;

    /// Two sources over eight days, one with a name that needs quotes.
    fn study() -> Study<&'static str> {
        let mut study = Study::new(Settings::default(), 2);
        for (day, records) in [(0, 50), (1, 3), (2, 1), (3, 0), (4, 5), (7, 7), (8, 0)] {
            study.handle("a \"b\", c", day * 86_400, records).unwrap();
        }
        let traffic = Traffic { requests_failed: 1, bytes: 2_048, took_ms: 1_500 };
        study.handle_traffic("a \"b\", c", traffic).unwrap();
        study.handle("still", 0, 7).unwrap();
        study.handle("still", 691_200, 0).unwrap();
        study
    }

    fn check(found: Line, expected: &str) {
        assert_eq!(found.0.join(","), expected);
    }

    #[test]
    fn tables_are_written_line_by_line() {
        let report = study().report(0);
        // Intervals of 1, 2 and 3 days; fresh on 2 days of 8 and for half of the others.
        check(
            source_line(&report.sources[0]),
            "\"a \"\"b\"\", c\",daily,4,16,691200,1970-01-08T00:00:00Z,172800,172800,\
             86400,0.5,0.5,2,0.625,7,2,66,1,2048,1.5",
        );
        check(source_line(&report.sources[1]), "still,never,0,0,691200,,,,,,0,0,1,2,1,7,0,0,0");
        check(month_line(&report.months[0]), "1970-01,4,16,2");
        check(source_month_line(&report.source_months[0]), "\"a \"\"b\"\", c\",1970-01,4,16,2");
        for (class, expected) in report.classes.iter().zip([
            "daily,259200,1,0.5,0.5",
            "weekly,1296000,0,0,0.5",
            "monthly,5184000,0,0,0.5",
            "quarterly,15552000,0,0,0.5",
            "yearly,46656000,0,0,0.5",
            "longer,,0,0,0.5",
            "never,,1,0.5,1",
        ]) {
            check(class_line(class), expected);
        }
        check(
            overall_line(&report.overall),
            "2,1,4,16,1382400,172800,86400,0.5,172800,,0.25,1,0.8125,9,3,73,1,2048,1.5",
        );
        let two = [Demand { latency: 60.0, frequency: 0.0 }; 2];
        let row = predict(&two, Synchronization::Uniform, 3_600.0, 1.0);
        check(prediction_line(&row), "uniform,120,60,0");
    }

    #[test]
    fn every_line_has_the_fields_of_the_header() {
        let report = study().report(0);
        let row = predict(&[], Synchronization::Uniform, 3_600.0, 1.0);
        for (Line(line), columns) in [
            (source_line(&report.sources[1]), SOURCES),
            (month_line(&report.months[0]), MONTHS),
            (source_month_line(&report.source_months[0]), SOURCE_MONTHS),
            (class_line(&report.classes[0]), CLASSES),
            (overall_line(&report.overall), OVERALL),
            (prediction_line(&row), PREDICTIONS),
        ] {
            assert_eq!(line.len(), columns.split(',').count(), "{columns}");
        }
    }

    /// Returns the fields of a line without quotes, by the names of their columns.
    fn by_column<'a>(header: &'a str, line: &'a str) -> Vec<(&'a str, &'a str)> {
        assert_eq!(line.split(',').count(), header.split(',').count(), "{line}");
        header.split(',').zip(line.split(',')).filter(|(_, field)| !field.is_empty()).collect()
    }

    #[test]
    fn one_table_holds_all() {
        let found = study().report(0);
        let two = [Demand { latency: 60.0, frequency: 0.0 }; 2];
        let row = predict(&two, Synchronization::Uniform, 3_600.0, 1.0);
        let text = report(&found, &[row]);
        let mut lines = text.split_terminator("\r\n");
        let header = lines.next().unwrap();
        let lines: Vec<&str> = lines.collect();
        let sections: Vec<&str> = lines.iter().map(|it| it.split_once(',').unwrap().0).collect();
        let mut expected = vec!["total", "month"];
        expected.extend(["class"; 7]);
        expected.extend(["model", "source", "source", "source_month"]);
        assert_eq!(sections, expected);
        let names: std::collections::BTreeSet<&str> = header.split(',').collect();
        assert_eq!(names.len(), header.split(',').count(), "each column is there once");

        let month = by_column(header, lines[1]);
        let expected = [
            ("section", "month"),
            ("month", "1970-01"),
            ("updates", "4"),
            ("records", "16"),
            ("records_a_day", "2"),
        ];
        assert_eq!(month, expected);
        let model = by_column(header, lines[9]);
        let expected = [
            ("section", "model"),
            ("model", "uniform"),
            ("requests_predicted", "120"),
            ("requests_predicted_per_source", "60"),
            ("late_share_max", "0"),
        ];
        assert_eq!(model, expected);
        let still = by_column(header, lines[11]);
        assert!(still.contains(&("source", "still")) && still.contains(&("class", "never")));
        assert!(lines[12].contains("\"a \"\"b\"\", c\""), "{}", lines[12]);
    }
}
