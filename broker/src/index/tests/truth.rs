//! Boolean queries against a naive evaluator of the same tree.

use proptest::prelude::*;

use super::*;
use query::{Leaf, Node, Value};

/// Whether an object whose words are the bits of `words` satisfies `node`.
fn holds(node: &Node, words: u32) -> bool {
    match node {
        Node::All => true,
        Node::Leaf(Leaf { value: Value::Word(word), .. }) => {
            WORDS.iter().position(|it| it == word).is_some_and(|bit| words >> bit & 1 == 1)
        }
        Node::Leaf(_) => panic!("only words are asked for"),
        Node::And(nodes) => nodes.iter().all(|node| holds(node, words)),
        Node::Or(nodes) => nodes.iter().any(|node| holds(node, words)),
        Node::Not(node) => !holds(node, words),
        Node::Prefer { required, .. } => required.iter().all(|node| holds(node, words)),
    }
}

const WORDS: [&str; 4] = ["alpha", "bravo", "charlie", "delta"];

fn expression() -> impl Strategy<Value = String> {
    let word = prop::sample::select(&WORDS[..]).prop_map(str::to_owned);
    let leaf = prop_oneof![9 => word, 1 => Just("*".to_owned())];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|it| it.join(" AND ")),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|it| it.join(" OR ")),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|it| it.join(" ")),
            inner.clone().prop_map(|it| format!("NOT {it}")),
            inner.clone().prop_map(|it| format!("-({it})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("+({a}) ({b})")),
            inner.prop_map(|it| format!("({it})")),
        ]
    })
}

#[test]
fn boolean_queries_agree_with_their_truth_table() {
    let site = Site::new();
    for words in 0..1_u32 << WORDS.len() {
        let text: Vec<&str> = WORDS
            .iter()
            .enumerate()
            .filter(|(bit, _)| words >> bit & 1 == 1)
            .map(|(_, word)| *word)
            .collect();
        site.put(&format!("http://x/{words}"), &[("Partial-Text", &text.join(" "))]);
        if words == 7 {
            site.apply();
        }
    }
    site.apply();
    proptest!(ProptestConfig::with_cases(300), |(text in expression())| {
        let query = parse(&text).unwrap();
        let expected: Vec<String> = (0..1_u32 << WORDS.len())
            .filter(|words| holds(&query.root, *words))
            .map(|words| words.to_string())
            .collect();
        let mut seen = names(&site.ask(&text, |_| ()));
        seen.sort_by_key(|name| name.parse::<u32>().unwrap());
        prop_assert_eq!(seen, expected, "{}", text);
    });
}
