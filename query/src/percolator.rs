//! The percolator: it finds, of many queries, those that a record matches.
//!
//! Queries are found by what a record must have so that they can match, mostly the rarest of their words in
//! all its forms, or a word that fits one of their patterns; each found is then held against the record by its
//! [`Matcher`]. Ranges and what only excludes need nothing in particular: they are held against each record.
//!
//! Source: prospective search, as in Yan and Garcia-Molina, "The SIFT information dissemination system" (1999),
//! whose index of queries by one of their words this is.
//!
//! Sans-I/O.

use std::collections::HashMap;

use regex::{RegexSet, RegexSetBuilder};
use soif::Record;

use crate::Query;
use crate::matcher::{Matcher, Split, of_record};

/// Largest automaton of all patterns together, in bytes; queries whose patterns do not fit in are held against each
/// record.
const PATTERNS_BYTES_MAX: usize = 64 << 20;

/// Queries prepared for matching records. Threads may share it.
#[derive(Clone, Debug, Default)]
pub struct Percolator {
    queries: Vec<Matcher>,
    /// The numbers of the queries that need a key.
    by_key: HashMap<u64, Vec<u32>>,
    /// All patterns that are needed, and the number of the query of each.
    patterns: RegexSet,
    by_pattern: Vec<u32>,
    /// Those that need nothing in particular.
    any: Vec<u32>,
}

impl Percolator {
    /// Prepares queries, whose numbers are their places from 0.
    pub fn new<'a>(queries: impl IntoIterator<Item = &'a Query>) -> Self {
        let (mut percolator, mut patterns) = (Self::default(), Vec::new());
        for (number, query) in (0..).zip(queries) {
            let matcher = Matcher::new(query);
            match matcher.needed() {
                None => percolator.any.push(number),
                Some(needed) => {
                    for key in needed.keys {
                        percolator.by_key.entry(key).or_default().push(number);
                    }
                    percolator.by_pattern.extend(needed.patterns.iter().map(|_| number));
                    patterns.extend(needed.patterns);
                }
            }
            percolator.queries.push(matcher);
        }
        let set = RegexSetBuilder::new(patterns).size_limit(PATTERNS_BYTES_MAX).build();
        percolator.patterns = set.unwrap_or_else(|_too_large| {
            percolator.any.append(&mut percolator.by_pattern);
            percolator.any.sort_unstable();
            RegexSet::default()
        });
        percolator
    }

    /// Returns the numbers of the queries that `record` matches, ascending.
    pub fn matching(&self, record: &Record) -> Vec<u32> {
        if self.queries.is_empty() {
            return Vec::new();
        }
        let (split, mut by_key, mut found) = (Split::new(record), Vec::new(), self.any.clone());
        let mut of_key = |key| by_key.extend(self.by_key.get(&key).into_iter().flatten());
        of_record(&split, &mut of_key, &mut |word| {
            if !self.by_pattern.is_empty() {
                let fit = self.patterns.matches(word).into_iter();
                found.extend(fit.filter_map(|it| self.by_pattern.get(it)));
            }
        });
        found.append(&mut by_key);
        found.sort_unstable();
        found.dedup();
        found.retain(|number| {
            let matcher = usize::try_from(*number).ok().and_then(|it| self.queries.get(it));
            matcher.is_some_and(|it| it.takes(record, &split))
        });
        found
    }

    /// Returns the numbers of the queries that are held against each record, ascending.
    pub fn held_against_all(&self) -> &[u32] {
        &self.any
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse;

    const WORDS: [&str; 24] = [
        "apple",
        "apples",
        "gathering",
        "gathered",
        "Haus",
        "Häuser",
        "Haustür",
        "Handel",
        "Handelsblatt",
        "cheval",
        "chevaux",
        "книга",
        "книги",
        "도서관",
        "도서관에",
        "كتاب",
        "والكتاب",
        "C++",
        "GitHub",
        "git",
        "ภาษาไทย",
        "東京都",
        "to",
        "be",
    ];

    fn word() -> impl Strategy<Value = String> {
        proptest::sample::select(&WORDS[..]).prop_map(str::to_owned)
    }

    fn leaf() -> impl Strategy<Value = String> {
        prop_oneof![
            6 => word(),
            1 => word().prop_map(|it| format!("title:{it}")),
            1 => word().prop_map(|it| format!("publisher:{it}")),
            1 => (word(), word()).prop_map(|(one, two)| format!("\"{one} {two}\"")),
            1 => word().prop_map(|it| format!("\"{it}\"")),
            1 => Just("ap*".to_owned()),
            1 => Just("/ga.*/".to_owned()),
            1 => Just("publisher:*".to_owned()),
            1 => Just("size:>10".to_owned()),
            1 => Just("type:PDF".to_owned()),
            1 => Just("\"apple ha*\"".to_owned()),
        ]
    }

    fn text() -> impl Strategy<Value = String> {
        leaf().prop_recursive(3, 12, 3, |inner| {
            let some = proptest::collection::vec(inner.clone(), 2..4);
            prop_oneof![
                some.clone().prop_map(|it| format!("({})", it.join(" AND "))),
                some.clone().prop_map(|it| format!("({})", it.join(" OR "))),
                some.prop_map(|it| format!("({})", it.join(" "))),
                inner.prop_map(|it| format!("(NOT {it})")),
            ]
        })
    }

    fn record() -> impl Strategy<Value = Record> {
        let texts = proptest::collection::vec(proptest::collection::vec(word(), 0..6), 3);
        let language = proptest::sample::select(&["", "de", "fr", "ru", "ko", "ar", "en de"][..]);
        (texts, language, any::<bool>()).prop_map(|(texts, language, is_pdf)| {
            let mut record = Record::new("FILE", "http://h/a");
            record.push("Gatherer-Id", "0123456789abcdef");
            record.push("Title", texts[0].join(" "));
            record.push("Full-Text", texts[1].join(" "));
            if !texts[2].is_empty() {
                record.push("Publisher", texts[2].join(" "));
            }
            record.push("Language", language);
            record.push("Type", if is_pdf { "PDF" } else { "Text" });
            record.push("File-Size", "20");
            record
        })
    }

    proptest! {
        #[test]
        fn it_finds_what_each_query_finds(
            texts in proptest::collection::vec(text(), 1..30),
            record in record(),
        ) {
            let queries: Vec<Query> = texts.iter().filter_map(|it| parse(it).ok()).collect();
            let all = Percolator::new(&queries).matching(&record);
            let each = (0..).zip(&queries).filter(|it| it.1.matches(&record).is_some());
            prop_assert_eq!(all, each.map(|it| it.0).collect::<Vec<u32>>(), "{:?}", texts);
        }
    }

    #[test]
    fn few_queries_are_held_against_all() {
        let texts = ["apple AND /b.*/", "size:>10", "NOT apple", "ap*", "pear OR size:1", "*"];
        let queries = texts.map(|it| parse(it).unwrap());
        assert_eq!(Percolator::new(&queries).held_against_all(), [1, 2, 4, 5]);
    }
}
