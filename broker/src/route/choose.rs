//! Choice: which brokers are worth asking, by their content summaries.
//!
//! A broker is worth asking if its best objects for the words of the query would score high by the statistics of all
//! brokers. Its summary tells what the best object for each word scores where all words are equally rare; how rare they
//! are, the summaries tell together. A word that few objects have decides, as far as a filter can tell. A word that
//! nobody has may be misspelled: then the words like it count, of which the index of a broker will suggest one.
//!
//! Source: R. Aly et al., "Taily: shard selection using the tail of score distributions", 2013 (scores of each word in a
//! summary). The yardsticks: L. Si et al., "A language modeling framework for resource selection and results merging",
//! 2002 (λ 0.5); J. Callan et al., "Searching distributed collections with inference networks", 1995 (CORI).
//!
//! # Differences from the paper
//!
//! Of the scores of a word the highest is told, not mean and variance: few hits are looked at. Only the most telling
//! words are told. Any other word that the filter has occurs once, in an object as good as a broker's usual best.
//!
//! Sans-I/O.

use levenshtein_automata::{Distance, LevenshteinAutomatonBuilder};
use query::stem::stem;
use query::words::split;
use query::{Node, Query, Value};

use super::summary::{Content, Counts};

/// Maximum number of words of a query that are looked at.
const WORDS_MAX: usize = 64;

/// Lengths of a word that may be misspelled, in characters.
const MISSPELLED_CHARS: std::ops::RangeInclusive<usize> = 4..=40;
/// Length of the shortest word in which two letters may be wrong, in characters; its ending is cut off already.
const TWO_EDITS_CHARS_MIN: usize = 5;
/// Maximum number of words of brokers that are compared with the misspelled ones of a query.
const COMPARED_MAX: usize = 300_000;

/// What of a query can be held against summaries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Stems, each as often as it is written.
    pub(crate) words: Vec<String>,
    /// Whether it also asks for what summaries do not tell: patterns, ranges, all objects.
    pub(crate) is_more: bool,
}

impl Wanted {
    /// Returns what a query wants. Words that it excludes say nothing.
    pub(crate) fn of(query: &Query) -> Self {
        let mut leaves = Vec::new();
        let mut wanted = Self { words: Vec::new(), is_more: query.root == Node::All };
        query.for_each_wanted(&mut |leaf| match &leaf.value {
            Value::Word(text) | Value::Phrase(text) => {
                leaves.extend(split(text).into_iter().map(|it| Query::word(&it).root));
            }
            _ => wanted.is_more = true,
        });
        for node in Node::without_stop_words(&leaves).into_iter().take(WORDS_MAX) {
            if let Node::Leaf(leaf) = node
                && let Value::Word(word) = &leaf.value
            {
                wanted.words.push(stem(word).into_owned());
            }
        }
        wanted
    }
}

/// Returns the brokers that may have something, by the place of their contents in `all`, the best first.
pub(crate) fn ranked(wanted: &Wanted, all: &[&Content]) -> Vec<usize> {
    ranked_by(wanted, all, best)
}

/// Returns the same by another measure: the scores of all contents, by how often each has the words.
fn ranked_by(
    wanted: &Wanted,
    all: &[&Content],
    measure: fn(&[&Content], &[Vec<Counts>]) -> Vec<f64>,
) -> Vec<usize> {
    let mut counts: Vec<Vec<Counts>> = all
        .iter()
        .map(|content| wanted.words.iter().map(|it| counts(content, it)).collect())
        .collect();
    count_similar(&wanted.words, all, &mut counts);
    let scores = measure(all, &counts);
    let has_any = |at: usize| {
        wanted.is_more || counts.get(at).is_some_and(|it| it.iter().any(|it| 0 < it.objects))
    };
    let size = |at: usize| all.get(at).map_or(0, |it| it.objects);
    let mut ranked: Vec<(usize, f64)> =
        scores.into_iter().enumerate().filter(|it| has_any(it.0)).collect();
    // Of equal ones, the larger first.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| size(b.0).cmp(&size(a.0))));
    ranked.into_iter().map(|it| it.0).collect()
}

/// Returns how often a broker has a word.
fn counts(content: &Content, word: &str) -> Counts {
    match content.terms.get(word) {
        Some(counts) => *counts,
        None if content.rare.may_have(word) => {
            let sum: u64 = content.terms.values().map(|it| it.best).sum();
            let best = sum / (content.terms.len() as u64).max(1);
            Counts { objects: 1, occurrences: 1, best }
        }
        None => Counts::default(),
    }
}

/// Counts words like each one that nobody has.
fn count_similar(words: &[String], all: &[&Content], counts: &mut [Vec<Counts>]) {
    let mut left = COMPARED_MAX;
    for (at, word) in words.iter().enumerate() {
        let chars = word.chars().count();
        let is_known = counts.iter().filter_map(|it| it.get(at)).any(|it| 0 < it.objects);
        if is_known || !MISSPELLED_CHARS.contains(&chars) || left == 0 {
            continue;
        }
        let edits = if chars < TWO_EDITS_CHARS_MIN { 1 } else { 2 };
        let similar = LevenshteinAutomatonBuilder::new(edits, true).build_dfa(word);
        for (content, counts) in all.iter().zip(counts.iter_mut()) {
            let Some(count) = counts.get_mut(at) else { continue };
            for (_, like) in content
                .terms
                .iter()
                .take(left)
                .filter(|it| matches!(similar.eval(it.0), Distance::Exact(_)))
            {
                count.objects = count.objects.saturating_add(like.objects);
                count.occurrences = count.occurrences.saturating_add(like.occurrences);
                count.best = count.best.max(like.best);
            }
            left = left.saturating_sub(content.terms.len());
        }
    }
}

/// Sums up what the best object for each word would score by the statistics of all.
#[expect(clippy::cast_precision_loss, reason = "logarithms of ratios")]
fn best(all: &[&Content], counts: &[Vec<Counts>]) -> Vec<f64> {
    let objects = all.iter().map(|it| it.objects as f64).sum::<f64>();
    let rarity = |word: usize| {
        let having = counts.iter().filter_map(|it| it.get(word)).map(|it| it.objects as f64);
        let having = having.sum::<f64>().min(objects);
        (1.0 + (objects - having + 0.5) / (having + 0.5)).ln()
    };
    let words = counts.first().map_or(0, Vec::len);
    let rarities: Vec<f64> = (0..words).map(rarity).collect();
    let score = |counts: &Vec<Counts>| {
        counts.iter().zip(&rarities).map(|(it, rarity)| it.best as f64 * rarity).sum()
    };
    counts.iter().map(score).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use query::parse;

    use super::super::bloom::Bloom;
    use super::*;

    /// How much a broker's own words count beside those of all, by the language model.
    const LAMBDA: f64 = 0.5;

    #[expect(clippy::cast_precision_loss, reason = "shares of large numbers")]
    fn language(all: &[&Content], counts: &[Vec<Counts>]) -> Vec<f64> {
        let share = |often: u64, of: u64| often as f64 / of.max(1) as f64;
        let words: u64 = all.iter().map(|it| it.words).sum();
        let of_all = |word: usize| {
            let often = counts.iter().filter_map(|it| it.get(word)).map(|it| it.occurrences).sum();
            share(often, words)
        };
        let score = |(content, counts): (&&Content, &Vec<Counts>)| {
            let of_word = |(at, own): (usize, &Counts)| {
                let background = of_all(at);
                // A word that nobody has tells nothing.
                if background == 0.0 {
                    return 0.0;
                }
                let own = share(own.occurrences, content.words);
                (LAMBDA * own + (1.0 - LAMBDA) * background).ln()
            };
            counts.iter().enumerate().map(of_word).sum()
        };
        all.iter().zip(counts).map(score).collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "shares of large numbers")]
    fn cori(all: &[&Content], counts: &[Vec<Counts>]) -> Vec<f64> {
        let brokers = all.len() as f64;
        let mean = all.iter().map(|it| it.words as f64).sum::<f64>() / brokers.max(1.0);
        let having = |word: usize| {
            counts.iter().filter_map(|it| it.get(word)).filter(|it| 0 < it.objects).count() as f64
        };
        let score = |(content, counts): (&&Content, &Vec<Counts>)| {
            let of_word = |(at, own): (usize, &Counts)| {
                let size = content.words as f64 / mean.max(1.0);
                let often = own.objects as f64 / (own.objects as f64 + 50.0 + 150.0 * size);
                let rarity = ((brokers + 0.5) / having(at).max(0.5)).ln() / (brokers + 1.0).ln();
                0.4 + 0.6 * often * rarity
            };
            counts.iter().enumerate().map(of_word).sum()
        };
        all.iter().zip(counts).map(score).collect()
    }

    fn content(objects: u64, terms: &[(&str, u64)], rare: &[&str]) -> Content {
        let mut bloom = Bloom::for_words(rare.len());
        rare.iter().for_each(|it| bloom.insert(it));
        let terms = terms.iter().map(|(term, count)| {
            let (occurrences, best) = (count * 2, count * 10);
            ((*term).to_owned(), Counts { objects: *count, occurrences, best })
        });
        Content {
            objects,
            words: objects * 100,
            terms: terms.collect::<HashMap<_, _>>(),
            rare: bloom,
            ..Content::default()
        }
    }

    fn check(query: &str, expected: &[usize]) {
        let all = [
            content(1_000, &[("rock", 600), ("ice", 10)], &["quartz"]),
            content(1_000, &[("rock", 50), ("garden", 700)], &["trowel"]),
            content(100, &[("ice", 60), ("glacier", 40)], &[]),
        ];
        let all: Vec<&Content> = all.iter().collect();
        let wanted = Wanted::of(&parse(query).unwrap());
        assert_eq!(ranked(&wanted, &all), expected, "{query}");
        assert_eq!(ranked_by(&wanted, &all, language), expected, "{query} by the language model");
        assert_eq!(ranked_by(&wanted, &all, cori), expected, "{query} by CORI");
    }

    #[test]
    fn who_has_the_words_is_asked_first() {
        check("rocks", &[0, 1]);
        check("ice glaciers", &[2, 0]);
        check("gardening", &[1]);
        // Some word of it may be there.
        check("the quartz of a zebra", &[0]);
        check("zebra", &[]);
        // Summaries tell nothing of these.
        check("type:*", &[0, 1, 2]);
    }

    #[test]
    fn a_rare_word_decides() {
        let all =
            [content(1_000, &[("rock", 900)], &[]), content(1_000, &[("rock", 300)], &["quartz"])];
        let all: Vec<&Content> = all.iter().collect();
        let wanted = Wanted::of(&parse("rock quartz").unwrap());
        assert_eq!(ranked_by(&wanted, &all, language), [1, 0]);
    }

    #[test]
    fn a_misspelled_word_is_asked_of_who_has_it() {
        check("glaicer", &[2]);
        check("gerden", &[1]);
        // A word that somebody has is not taken for another one.
        check("quartz", &[0]);
        check("rcok", &[0, 1]);
    }

    #[test]
    fn a_query_wants_its_words_without_endings() {
        let wanted = |text: &str| Wanted::of(&parse(text).unwrap());
        assert_eq!(wanted("Gathering the streams -excluded").words, ["gather", "stream"]);
        assert_eq!(wanted("title:\"Change Log\"").words, ["chang", "log"]);
        assert!(wanted("*").is_more && wanted("summar*").is_more && !wanted("a b").is_more);
    }
}
