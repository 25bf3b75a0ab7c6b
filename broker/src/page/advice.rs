//! Advice for when nothing is found.
//!
//! Sans-I/O.

use query::{Leaf, Node, Query, Value};
use serde::Serialize;

use super::parameters::Parameters;

/// Advice that is shown when there are no hits.
#[derive(Debug, Serialize)]
pub(super) struct Advice {
    pub(super) text: &'static str,
    pub(super) label: String,
    pub(super) address: Option<String>,
}

pub(super) fn advice(asked: &Parameters, query: &Query) -> Vec<Advice> {
    let mut all = Vec::new();
    if !asked.filters.is_empty() {
        let address = Some(asked.unfiltered().address());
        let label = "search without filters".to_owned();
        all.push(Advice { text: "The filters may leave too little:", label, address });
    }
    if let Some(word) = only_word(query) {
        for (text, wider) in [
            ("It may be spelled differently:", format!("{word}~1")),
            ("It may be the beginning of a word:", format!("{word}*")),
        ] {
            let address = Some(asked.asking(wider.clone()).address());
            all.push(Advice { text, label: wider, address });
        }
    }
    let has_words = asked.text.as_deref().is_none_or(|it| query::plain(it) != Query::all());
    let text = if has_words {
        "Fewer or more general words find more; “How to ask” above shows what can be written."
    } else {
        "Only letters and digits can be searched, and signs of names like C++."
    };
    all.push(Advice { text, label: String::new(), address: None });
    all
}

/// Returns the word of a query that consists of one wanted word.
fn only_word(query: &Query) -> Option<&str> {
    match &query.root {
        // Other words would need quotes or escapes.
        Node::Leaf(Leaf { field: None, value: Value::Word(word) }) => {
            Some(word.as_str()).filter(|it| it.chars().all(char::is_alphanumeric))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use query::parse;

    use super::*;
    use crate::page::parameters::Unknown;

    fn asked(query: &str) -> Parameters {
        Parameters::parse(Some(query), Unknown::Refused).unwrap()
    }

    fn check_advice(query: &str, expected: &[&str]) {
        let text = asked(query).text.unwrap();
        let given = advice(&asked(query), &parse(&text).unwrap());
        let labels: Vec<_> =
            given.iter().filter(|it| it.address.is_some()).map(|it| it.label.as_str()).collect();
        assert_eq!(labels, expected, "{query}");
        assert!(given.iter().any(|it| it.address.is_none()));
    }

    #[test]
    fn advice_without_hits_fits_the_query() {
        check_advice("q=havrest", &["havrest~1", "havrest*"]);
        check_advice("q=old+oak", &[]);
        check_advice("q=old&type=PDF", &["search without filters", "old~1", "old*"]);
        check_advice("q=title:old", &[]);
        check_advice("q=%22old+oak%22", &[]);
        check_advice("q=...", &[]);
    }
}
