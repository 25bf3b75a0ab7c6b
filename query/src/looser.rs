//! Looser readings of a query: any of its words, or nothing but words.
//!
//! Sans-I/O.

use std::collections::BTreeSet;

use crate::record::head;
use crate::stop_words::is_stop_word;
use crate::words::{Words, split};
use crate::{LEAVES_MAX, Node, QUERY_BYTES_MAX, Query};

impl Query {
    /// Returns the query whose matches may follow those of this one if they are too few.
    ///
    /// Only operands side by side at the top of the tree loosen. Of these, plain words in the
    /// default attributes become an OR: a record needs one of them, and those with more of them
    /// have higher scores. All other operands (with attributes, phrases, patterns, groups, NOT) stay
    /// required. Stop words and words without a letter or digit (`&`) are left out.
    ///
    /// `None` if there are fewer than two different such words. Every record that matches this query
    /// matches the loosened one, which loosens no further.
    pub fn loosened(&self) -> Option<Self> {
        let Node::Beside(members) = &self.root else { return None };
        let (plain, mut members): (Vec<_>, Vec<_>) =
            members.iter().cloned().partition(|it| it.plain_word().is_some());
        let is_telling = |it: &str| !is_stop_word(it) && !split(it).is_empty();
        let telling = plain.into_iter().filter(|it| it.plain_word().is_some_and(is_telling));
        let telling: Vec<Node> = telling.collect();
        let different: BTreeSet<_> =
            telling.iter().filter_map(Node::plain_word).map(split).collect();
        if different.len() < 2 {
            return None;
        }
        members.insert(0, Node::or(telling));
        Some(Self { root: Node::beside(members) })
    }

    /// Returns whether `other` differs from this query in nothing but plain words, one alone or several side by side.
    /// Operators, signs, attributes, quotes and patterns mean what is written: nobody searches for anything else instead.
    pub fn differs_in_plain_words(&self, other: &Self) -> bool {
        let own = strict(&self.root);
        own.is_some() && own == strict(&other.root)
    }

    /// Returns whether its conditions stand side by side, or it is a single one: neither operators nor signs join them.
    pub fn is_side_by_side(&self) -> bool {
        strict(&self.root).is_some()
    }
}

/// Returns those of the operands side by side that are no plain words; `None`: there are operators or signs.
fn strict(root: &Node) -> Option<Vec<&Node>> {
    let members = match root {
        Node::Beside(members) => members.as_slice(),
        leaf @ Node::Leaf(_) => std::slice::from_ref(leaf),
        _ => return None,
    };
    Some(members.iter().filter(|it| it.plain_word().is_none()).collect())
}

/// Returns the query for the words of any text side by side, without operators and attributes: for a
/// typed query that does not parse. The query is [`Node::All`] if the text has no word.
///
/// Words without a space or a sign between them (`日本語`) stay one word, which means a phrase. Words
/// beyond [`QUERY_BYTES_MAX`] and [`LEAVES_MAX`] are left out.
pub fn plain(text: &str) -> Query {
    let text = head(text, QUERY_BYTES_MAX);
    let (mut words, mut word) = (Words::new(text), String::new());
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    while let Some(span) = words.next_into(&mut word) {
        match runs.last_mut().filter(|run| span.start <= run.end) {
            Some(run) => run.end = run.end.max(span.end),
            None => runs.push(span.start..span.end),
        }
    }
    let words = runs.into_iter().take(LEAVES_MAX).filter_map(|run| text.get(run));
    Query { root: Node::beside(words.map(|it| Query::word(it).root).collect()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse;

    fn check_loosened(query: &str, expected: &str) {
        let loosened = parse(query).unwrap().loosened();
        let shown = loosened.as_ref().map_or_else(|| "-".to_owned(), Query::to_string);
        assert_eq!(shown, expected, "{query}");
        if let Some(loosened) = loosened {
            assert_eq!(parse(&shown).as_ref(), Ok(&loosened), "{query}");
            assert_eq!(loosened.loosened(), None, "{query}");
        }
    }

    #[test]
    fn words_side_by_side_become_any_of_them() {
        check_loosened("gather stream", "gather OR stream");
        check_loosened("the gathering of & foo-bar", "gathering OR foo-bar");
        check_loosened(
            "a1 -x b1 title:y \"c d\" e* (f OR g)",
            "(a1 OR b1) -x title:y \"c d\" e* (f OR g)",
        );
        check_loosened("cat cat dog", "cat OR cat OR dog");
        check_loosened("a1 (b1 c1)", "a1 OR b1 OR c1");
        for query in [
            "*",
            "cat",
            "the cat",
            "cat CAT",
            "cat &",
            "to be or not to be",
            "cat AND dog",
            "cat OR dog",
            "+cat dog",
            "(cat dog) AND x",
            "title:(cat dog)",
            "cat title:dog",
        ] {
            check_loosened(query, "-");
        }
    }

    fn check_plain(text: &str, expected: &str) {
        assert_eq!(plain(text).to_string(), expected, "{text:?}");
    }

    #[test]
    fn any_text_has_plain_words() {
        check_plain("", "*");
        check_plain("(& :", "*");
        check_plain("Re: harvest (a", "Re harvest a");
        check_plain("AND title:x -b \"c h*v", "\\AND title x b c h v");
        check_plain("(日本語 text検索", "日本語 text検索");
        check_plain("(C++11 & .NET: GitHub.", "C++11 .NET GitHub");
        check_plain(&"a ".repeat(LEAVES_MAX + 1), &vec!["a"; LEAVES_MAX].join(" "));
        check_plain(&"é".repeat(QUERY_BYTES_MAX), "*");
    }

    #[test]
    fn what_is_strict_is_kept() {
        let differs = |one: &str, other: &str| {
            parse(one).unwrap().differs_in_plain_words(&parse(other).unwrap())
        };
        assert!(
            differs("pyhton", "python")
                && differs("pyhton type:PDF dictionry", "python type:PDF dictionary")
        );
        for (one, other) in [
            ("+pyhton +dictionry", "+python +dictionary"),
            ("pyhton AND dictionry", "python AND dictionary"),
            ("pyhton OR x", "python OR x"),
            ("title:pyhton", "title:python"),
            ("x \"a pyhton\"", "x \"a python\""),
        ] {
            assert!(!differs(one, other), "{one}");
        }
    }

    proptest! {
        #[test]
        fn plain_words_read_back(text in any::<String>()) {
            let query = plain(&text);
            let written = query.to_string();
            if written.len() <= QUERY_BYTES_MAX {
                prop_assert_eq!(parse(&written), Ok(query), "written as {:?}", written);
            }
        }
    }
}
