//! Pseudo-relevance feedback: a query of plain words is expanded by what its best hits are about.
//!
//! Source: V. Lavrenko, W. B. Croft, "Relevance-based language models" (2001), mixed with the query
//! as in N. Abdul-Jaleel et al., "UMass at TREC 2004: novelty and HARD" (RM3): the best documents
//! are taken for relevant, the probability of a word in them is estimated from its share of each,
//! weighed by the document's share of the scores, and the most probable words join the query, whose
//! own words keep the share λ.
//!
//! Differences: the scores are BM25F's; and words that many objects have do not join, since they
//! would find nearly everything.
//!
//! Sans-I/O.

use std::collections::HashMap;

use query::{Leaf, Node, Query, Value};
use soif::Record;

use super::counted::counted;

/// Number of the best hits that are taken for relevant.
pub(crate) const DOCUMENTS: usize = 5;
/// Number of words that join the query.
const WORDS: usize = 30;
/// The share of the query's own words in the expanded one (λ).
const OWN: f32 = 0.6;

/// Returns how many words a query has, if it consists of plain words alone, so that it may be
/// expanded. Signs, quotation marks, operators, attributes and patterns are strict.
pub(crate) fn plain_words(query: &Query) -> Option<usize> {
    let is_word = |it: &Node| matches!(it, Node::Leaf(Leaf { field: None, value: Value::Word(_) }));
    match &query.root {
        word if is_word(word) => Some(1),
        Node::Beside(members) if members.iter().all(is_word) => {
            Some(Node::without_stop_words(members).len())
        }
        _ => None,
    }
}

/// Returns the words that join a query of `words` words, each with its weight beside that of 1 for
/// each word of the query. `best` are the best hits with their scores.
#[expect(clippy::cast_precision_loss, reason = "a share")]
pub(crate) fn expansion(words: usize, best: &[(f32, Record)]) -> Vec<(String, f32)> {
    let scores: f32 = best.iter().map(|it| it.0).sum();
    let mut shares: HashMap<String, f32> = HashMap::new();
    for (score, record) in best.iter().filter(|it| 0.0 < it.0) {
        let counted = counted(record);
        let length: u32 = counted.iter().map(|it| it.1).sum();
        for (word, count) in counted {
            *shares.entry(word).or_default() += score / scores * count as f32 / length as f32;
        }
    }
    let mut joined: Vec<(String, f32)> = shares.into_iter().collect();
    joined.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    joined.truncate(WORDS);
    let sum: f32 = joined.iter().map(|it| it.1).sum();
    // The query's words, of weight 1 each, are the share `OWN` of the whole.
    let whole = words as f32 * (1.0 - OWN) / OWN;
    for (_, weight) in &mut joined {
        *weight *= whole / sum;
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_are_expanded() {
        let check = |query: &str, expected: Option<usize>| {
            assert_eq!(plain_words(&query::parse(query).unwrap()), expected, "{query}");
        };
        check("oak", Some(1));
        check("the old oak", Some(2));
        for query in
            ["*", "+old oak", "old -oak", "\"old oak\"", "old AND oak", "title:oak", "old oa*"]
        {
            check(query, None);
        }
    }

    #[test]
    fn words_of_the_best_hits_join_with_their_share() {
        let record = |text: &str| {
            let mut record = Record::new("FILE", "x:");
            record.push("Full-Text", text);
            record
        };
        let best = [(3.0, record("oak acorn acorn leaf")), (1.0, record("oak elm"))];
        let joined = expansion(3, &best);
        let words: Vec<&str> = joined.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(words, ["acorn", "oak", "leaf", "elm"]);
        let sum: f32 = joined.iter().map(|it| it.1).sum();
        assert!((sum - 2.0).abs() < 1e-5, "0.6 of the weights are the query's: {sum}");
        assert!((joined[0].1 - 0.375 * 2.0).abs() < 1e-5, "{joined:?}");
        assert_eq!(expansion(3, &[]), []);
        let many: String = (0..999).map(|it| format!("word{it} ")).collect();
        assert_eq!(expansion(1, &[(1.0, record(&many))]).len(), WORDS);
    }
}
