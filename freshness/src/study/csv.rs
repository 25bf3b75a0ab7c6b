//! The tables of a study as text of comma-separated values.
//!
//! Source: RFC 4180: a header line, CRLF at the end of each line, quotes around a field that holds a
//! comma, a quote or a line break. The tables are those of Liu §4 and the costs of §3.
//!
//! # Differences from the paper
//!
//! Intervals are in seconds and rates a day. What is not known is an empty field. Times are in UTC.
//!
//! Sans-I/O.

use std::fmt::Display;

use super::date::date_time;
use super::history::Cost;
use super::model::Prediction;
use super::report::{ClassRow, MonthRow, Overall, SourceMonth, SourceRow};

const DAY_SECS: f64 = 86_400.0;

/// One line for each source, in the order of the rows (table 2).
pub fn sources<K: Display>(rows: &[SourceRow<K>]) -> String {
    let mut table = Table::new(
        "source,class,updates,records,known_secs,last_update,secs_per_update,\
         interval_mean_secs,interval_deviation_secs,interval_variation,updates_a_day,\
         records_a_day,freshness,requests,requests_empty,records_brought",
    );
    for row in rows {
        table.text(&row.source).text(row.class.name());
        table.text(row.updates).text(row.records).text(row.known_secs);
        table.maybe(row.updated_secs.map(date_time)).maybe(row.interval_secs);
        table.maybe(row.intervals.mean()).maybe(row.intervals.deviation());
        table.maybe(row.intervals.variation());
        table.a_day(row.frequency).a_day(row.record_rate).maybe(row.freshness);
        table.cost(row.cost).end();
    }
    table.text
}

/// One line for each month of all sources together, in the order of the rows (table 1).
pub fn months(rows: &[MonthRow]) -> String {
    let mut table = Table::new("month,updates,records,records_a_day");
    for row in rows {
        table.month(row).end();
    }
    table.text
}

/// One line for each month of each source, in the order of the rows (table 1).
pub fn source_months<K: Display>(rows: &[SourceMonth<K>]) -> String {
    let mut table = Table::new("source,month,updates,records,records_a_day");
    for SourceMonth { source, row } in rows {
        table.text(source).month(row).end();
    }
    table.text
}

/// One line for each class, in the order of the rows (the figure of §4).
pub fn classes(rows: &[ClassRow]) -> String {
    let mut table = Table::new("class,interval_max_secs,sources,share,share_up_to");
    for row in rows {
        table.text(row.class.name()).maybe(row.class.interval_max());
        table.text(row.sources).text(row.share).text(row.share_up_to).end();
    }
    table.text
}

/// One line for all sources together.
pub fn overall(all: &Overall) -> String {
    let mut table = Table::new(
        "sources,sources_changed,updates,records,known_secs,interval_mean_secs,\
         interval_deviation_secs,interval_variation,source_means_mean_secs,\
         source_means_deviation_secs,updates_a_day,records_a_day,freshness,requests,\
         requests_empty,records_brought",
    );
    table.text(all.sources).text(all.sources_changed);
    table.text(all.updates).text(all.records).text(all.known_secs);
    table.maybe(all.intervals.mean()).maybe(all.intervals.deviation());
    table.maybe(all.intervals.variation());
    table.maybe(all.means.mean()).maybe(all.means.deviation());
    table.a_day(all.frequency).a_day(all.record_rate).maybe(all.freshness);
    table.cost(all.cost).end();
    table.text
}

/// One line for each model: requests in the period on the harvester's side, and on average on a
/// source's.
pub fn predictions(rows: &[Prediction]) -> String {
    let mut table = Table::new("model,requests,requests_per_source,late_share_max");
    for row in rows {
        let sources = row.requests.len().max(1) as f64;
        table.text(row.model.name()).text(row.total).text(row.total / sources);
        table.text(row.late_share_max).end();
    }
    table.text
}

/// Text that grows field by field.
struct Table {
    text: String,
    begun: bool,
}

impl Table {
    fn new(header: &str) -> Self {
        Self { text: format!("{header}\r\n"), begun: false }
    }

    fn text(&mut self, field: impl Display) -> &mut Self {
        if self.begun {
            self.text.push(',');
        }
        self.begun = true;
        let field = field.to_string();
        if field.contains([',', '"', '\r', '\n']) {
            self.text.push('"');
            self.text.push_str(&field.replace('"', "\"\""));
            self.text.push('"');
        } else {
            self.text.push_str(&field);
        }
        self
    }

    fn maybe(&mut self, field: Option<impl Display>) -> &mut Self {
        match field {
            Some(field) => self.text(field),
            None => self.text(""),
        }
    }

    /// A rate that is given in numbers a second.
    fn a_day(&mut self, rate: Option<f64>) -> &mut Self {
        self.maybe(rate.map(|rate| rate * DAY_SECS))
    }

    fn month(&mut self, row: &MonthRow) -> &mut Self {
        self.text(row.month).text(row.updates).text(row.records).a_day(Some(row.record_rate))
    }

    fn cost(&mut self, cost: Cost) -> &mut Self {
        self.text(cost.requests).text(cost.requests_empty).text(cost.records)
    }

    fn end(&mut self) {
        self.text.push_str("\r\n");
        self.begun = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Demand, Settings, Study, Synchronization, predict};

    /// Two sources over eight days, one with a name that needs quotes.
    fn study() -> Study<&'static str> {
        let mut study = Study::new(Settings { source_months_max: 2, ..Settings::default() });
        for (day, records) in [(0, 50), (1, 3), (2, 1), (3, 0), (4, 5), (7, 7), (8, 0)] {
            study.handle("a \"b\", c", day * 86_400, records).unwrap();
        }
        study.handle("still", 0, 7).unwrap();
        study.handle("still", 691_200, 0).unwrap();
        study
    }

    #[track_caller]
    fn check(found: &str, expected: &[&str]) {
        let lines: Vec<&str> = found.split("\r\n").collect();
        assert_eq!(lines.split_first().map(|(_, rest)| rest), Some(expected));
    }

    #[test]
    fn tables_are_written_line_by_line() {
        let report = study().report(0);
        check(
            &sources(&report.sources),
            &[
                // Intervals of 1, 2 and 3 days; fresh 2 days of 8 and half of the others.
                "\"a \"\"b\"\", c\",daily,4,16,691200,1970-01-08T00:00:00Z,172800,172800,\
                 86400,0.5,0.5,2,0.625,7,2,66",
                "still,never,0,0,691200,,,,,,0,0,1,2,1,7",
                "",
            ],
        );
        check(&months(&report.months), &["1970-01,4,16,2", ""]);
        check(&source_months(&report.source_months), &["\"a \"\"b\"\", c\",1970-01,4,16,2", ""]);
        check(
            &classes(&report.classes),
            &[
                "daily,259200,1,0.5,0.5",
                "weekly,1296000,0,0,0.5",
                "monthly,5184000,0,0,0.5",
                "quarterly,15552000,0,0,0.5",
                "yearly,46656000,0,0,0.5",
                "longer,,0,0,0.5",
                "never,,1,0.5,1",
                "",
            ],
        );
        let line = "2,1,4,16,1382400,172800,86400,0.5,172800,,0.25,1,0.8125,9,3,73";
        check(&overall(&report.overall), &[line, ""]);
    }

    #[test]
    fn every_line_has_the_fields_of_the_header() {
        let report = study().report(0);
        let all = overall(&report.overall);
        let plain = sources(&report.sources[1..]);
        for text in [&all, &plain] {
            let counts: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
            assert_eq!(counts, [16, 16]);
        }
    }

    #[test]
    fn predictions_have_both_sides() {
        let two = [Demand { latency: 60.0, frequency: 0.0 }; 2];
        let row = predict(&two, Synchronization::Uniform, 3_600.0, 1.0);
        check(&predictions(&[row]), &["uniform,120,60,0", ""]);
    }
}
