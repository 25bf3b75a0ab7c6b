//! Stop words: English words that say how a sentence is built, not what it is about.
//!
//! Nearly every English text has them, so beside other words they tell no two records apart, and a
//! text without one of them may be just what is looked for.
//!
//! Sans-I/O.

use crate::words::split;
use crate::{Leaf, Node, Value};

/// The stop words, in order.
#[rustfmt::skip]
static WORDS: [&str; 151] = [
    "a", "about", "above", "after", "again", "against", "all", "also", "although", "am",
    "among", "an", "and", "another", "any", "are", "as", "at", "be", "because", "been",
    "before", "being", "below", "between", "both", "but", "by", "can", "cannot", "could", "did",
    "do", "does", "doing", "done", "down", "during", "each", "either", "else", "ever", "few",
    "for", "from", "further", "had", "has", "have", "having", "he", "her", "here", "hers",
    "herself", "him", "himself", "his", "how", "however", "i", "if", "in", "into", "is", "it",
    "its", "itself", "just", "many", "me", "might", "more", "most", "much", "must", "my",
    "myself", "neither", "no", "nor", "not", "of", "off", "on", "once", "only", "onto", "or",
    "other", "our", "ours", "ourselves", "out", "over", "own", "same", "shall", "she", "should",
    "since", "so", "some", "such", "than", "that", "the", "their", "theirs", "them",
    "themselves", "then", "there", "these", "they", "this", "those", "though", "through", "to",
    "too", "toward", "towards", "under", "until", "up", "upon", "us", "very", "was", "we",
    "were", "what", "when", "where", "whether", "which", "while", "who", "whom", "whose", "why",
    "will", "with", "would", "yet", "you", "your", "yours", "yourself", "yourselves",
];

/// Beginnings of contractions that are no stop words alone (`won't`), in order.
#[rustfmt::skip]
static BEGINNINGS: [&str; 20] = [
    "ain", "aren", "couldn", "didn", "doesn", "don", "hadn", "hasn", "haven", "isn", "let",
    "mightn", "mustn", "needn", "shan", "shouldn", "wasn", "weren", "won", "wouldn",
];

/// Endings of contractions, in order. Alone they may be names: `vitamin d`.
#[rustfmt::skip]
static ENDINGS: [&str; 7] = [
    "d", "ll", "m", "re", "s", "t", "ve",
];

/// Returns whether a word, as typed, is a stop word. Words in capitals are not (`IT`, `US`, `WHO`),
/// and neither are words with signs other than those at the end of a sentence (`--all`).
pub(crate) fn is_stop_word(typed: &str) -> bool {
    let word = typed.trim_end_matches(['.', ',', ';', ':', '!', '?']);
    let is_acronym = 1 < word.len() && word.bytes().all(|byte| byte.is_ascii_uppercase());
    if is_acronym && !matches!(word, "AND" | "OR" | "NOT") {
        return false;
    }
    let word = word.to_ascii_lowercase();
    let is_in = |words: &[&str], word: &str| words.binary_search(&word).is_ok();
    match word.split_once(['\'', '\u{2019}']) {
        None => is_in(&WORDS, &word),
        Some((beginning, ending)) => {
            is_in(&ENDINGS, ending) && (is_in(&WORDS, beginning) || is_in(&BEGINNINGS, beginning))
        }
    }
}

impl Node {
    /// Returns those members of a [`Node::Beside`] that are conditions and count in the ranking:
    /// all but the plain stop words in the default attributes. If nothing that is wanted would
    /// remain (`to be or not to be`, `the who -band`), returns all members.
    pub fn without_stop_words(members: &[Self]) -> Vec<&Self> {
        let telling: Vec<_> = members.iter().filter(|it| !it.is_stop_word()).collect();
        if telling.iter().any(|it| it.is_wanted()) { telling } else { members.iter().collect() }
    }

    /// Returns the text of a plain word in the default attributes.
    pub(crate) fn plain_word(&self) -> Option<&str> {
        match self {
            Self::Leaf(Leaf { field: None, value: Value::Word(text) }) => Some(text),
            _ => None,
        }
    }

    fn is_stop_word(&self) -> bool {
        self.plain_word().is_some_and(is_stop_word)
    }

    /// Returns whether the node asks for something, and not only for the lack of something.
    fn is_wanted(&self) -> bool {
        match self {
            Self::All | Self::Not(_) => false,
            Self::Leaf(leaf) => leaf.value.has_words(),
            Self::And(nodes) | Self::Beside(nodes) | Self::Or(nodes) => {
                nodes.iter().any(Self::is_wanted)
            }
            Self::Prefer { required, optional } => {
                required.iter().chain(optional).any(Self::is_wanted)
            }
        }
    }
}

impl Value {
    /// Returns false if the value has no word to look for, as in `&`.
    fn has_words(&self) -> bool {
        match self {
            Self::Word(text) | Self::Phrase(text) | Self::Prefix(text) | Self::Fuzzy(text, _) => {
                !split(text).is_empty()
            }
            Self::Regex(_) | Self::Range(..) | Self::Present => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn the_words_are_in_order() {
        assert!(WORDS.is_sorted() && BEGINNINGS.is_sorted() && ENDINGS.is_sorted());
    }

    #[test]
    fn a_word_is_judged_as_typed() {
        for word in ["the", "The", "this?", "AND", "don't", "It\u{2019}s", "let's", "I", "a"] {
            assert!(is_stop_word(word), "{word}");
        }
        for word in
            ["", "cat", "IT", "US", "--all", "to-do", "t", "d", "don", "cat's", "a+", "\u{e0}"]
        {
            assert!(!is_stop_word(word), "{word}");
        }
    }

    #[test]
    fn stop_words_count_where_nothing_else_is_wanted() {
        for (query, expected) in [
            ("the cat in the hat", "cat hat"),
            ("to be or not to be", "to be or not to be"),
            ("the who -band", "the who -band"),
            ("the & *", "the & *"),
            ("who is \"the who\"", "\"the who\""),
            ("what is title:the", "title:the"),
            ("the (-cat OR -dog)", "the (-cat OR -dog)"),
            ("the (is OR -cat)", "(is OR -cat)"),
            ("how (to AND the) do* -a", "(to AND the) do* -a"),
            ("the US and IT", "US IT"),
        ] {
            let Node::Beside(members) = parse(query).unwrap().root else { panic!("{query}") };
            let telling = Node::without_stop_words(&members).into_iter().cloned().collect();
            let kept = Node::beside(telling);
            assert_eq!(kept, parse(expected).unwrap().root, "{query}");
        }
    }
}
