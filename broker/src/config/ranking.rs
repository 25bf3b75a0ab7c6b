//! `[ranking]`: how many words a hit has, and what comes first.
//!
//! ```toml
//! [ranking]
//! match = "all"
//! near = 1.0
//!
//! [ranking.fields.title]
//! weight = 8.0
//! ```
//!
//! Sans-I/O.

use std::ops::RangeInclusive;
use std::time::Duration;

use settings::Table;

use crate::answer::Matching;
use crate::engine::Ranking;

/// The weights and shares that the settings accept.
const WEIGHTS: RangeInclusive<f64> = 0.0..=100.0;
/// The same for `k1`.
const SATURATIONS: RangeInclusive<f64> = 0.01..=100.0;
/// The same for `age_half`: a day to a hundred years.
const HALVES: RangeInclusive<Duration> =
    Duration::from_secs(86_400)..=Duration::from_secs(36_525 * 86_400);

/// Reads the table; what is missing or wrong keeps its default.
pub(super) fn read(table: &Table<'_>) -> Ranking {
    let mut ranking = Ranking::default();
    if let Some(name) = table.choice("match", &Matching::ALL.map(Matching::name)) {
        ranking.matching = Matching::by_name(name).unwrap_or_default();
    }
    ranking.feedback = table.boolean("feedback", ranking.feedback);
    number(table, "k1", SATURATIONS, &mut ranking.k1);
    let factors = &mut ranking.factors;
    for (key, factor) in [
        ("title", &mut factors.title),
        ("title_exact", &mut factors.title_exact),
        ("name", &mut factors.name),
        ("near", &mut factors.near),
        ("standing", &mut factors.standing),
        ("age", &mut factors.age),
    ] {
        number(table, key, WEIGHTS, factor);
    }
    if let Some(half) = table.duration_within("age_half", HALVES) {
        factors.age_half_secs = half.as_secs_f32();
    }
    let fields = table.table("fields");
    for (name, field) in &mut ranking.fields {
        let table = fields.table(name);
        number(&table, "weight", WEIGHTS, &mut field.weight);
        number(&table, "length", 0.0..=1.0, &mut field.length);
    }
    ranking
}

#[expect(clippy::cast_possible_truncation, reason = "a weight has few digits")]
fn number(table: &Table<'_>, key: &str, range: RangeInclusive<f64>, into: &mut f32) {
    if let Some(number) = table.float(key, range) {
        *into = number as f32;
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    use super::*;

    fn parse(text: &str) -> Result<Ranking, String> {
        let text = format!("name = 'n'\ndata = 'd'\n{text}");
        let join = |all: Vec<settings::Mistake>| {
            all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        Config::parse(&text).map(|it| it.ranking).map_err(join)
    }

    #[test]
    fn every_weight_can_be_set() {
        assert_eq!(parse(""), Ok(Ranking::default()));
        let ranking = parse(
            "[ranking]\nmatch = 'any'\nfeedback = true\nk1 = 2\ntitle = 0.1\ntitle_exact = 0.2\n\
             name = 0.3\nnear = 0.4\nstanding = 0\nage = 0.6\nage_half = '7 days'\n\
             [ranking.fields]\ntitle = { weight = 9, length = 0 }\ntext = { weight = 0.5 }",
        )
        .unwrap();
        let mut expected = Ranking::default();
        (expected.matching, expected.feedback, expected.k1) = (Matching::Any, true, 2.0);
        (expected.fields[0].1.weight, expected.fields[0].1.length) = (9.0, 0.0);
        expected.fields[6].1.weight = 0.5;
        expected.factors = crate::engine::Factors {
            title: 0.1,
            title_exact: 0.2,
            name: 0.3,
            near: 0.4,
            standing: 0.0,
            age: 0.6,
            age_half_secs: 604_800.0,
        };
        assert_eq!(ranking, expected);
    }

    #[test]
    fn wrong_weights_are_named() {
        let check = |text: &str, expected: &str| {
            let mistakes = parse(text).unwrap_err();
            assert!(mistakes.contains(expected), "{text}: {mistakes}");
        };
        check("[ranking]\nmatch = 'some'", "4:9: \"match\" is \"some\"; expected one of");
        check("[ranking]\nk1 = 0", "expected a number from 0.01 to 100");
        check("[ranking]\nnear = -1", "4:8: \"near\" is -1; expected a number from 0 to 100");
        check("[ranking]\nage = nan", "\"age\" is nan");
        check("[ranking]\nage_half = '1 s'", "age_half");
        check("[ranking]\nfeedback = 1", "true or false");
        check("[ranking]\nneer = 1", "neer");
        check("[ranking.fields.title]\nlength = 2", "\"length\" is 2");
        check("[ranking.fields.body]\nweight = 2", "body");
    }
}
