//! The automaton that finds the words of a stem in an ordered list.
//!
//! The stemmer ([`query::stem`]) returns the stem of a word. [`Inflected`] does the reverse: in an
//! ordered list, it visits only words that begin like the stem and end in endings that the stemmer
//! knows. The caller then checks the accepted words with the stemmer itself.
//!
//! Sans-I/O.

use std::fmt;

use query::stem::root;
use tantivy_fst::Automaton;

/// Pieces of endings that the stemmer removes or replaces: any number may follow a word's root.
const ENDINGS: [&str; 37] = [
    "abil", "abl", "al", "anc", "ant", "at", "bil", "bl", "e", "ed", "enc", "ent", "er", "err",
    "ful", "i", "ibil", "ibl", "ic", "ing", "ion", "ism", "ist", "it", "iv", "iz", "l", "less",
    "li", "ly", "ment", "ness", "og", "or", "ous", "s", "y",
];

/// Accepts every word with the given stem, and few other words. An accepted word consists of the
/// root, the stem's last letter (once, doubled as in `hopping`, or as `i` or `y`), and endings.
#[derive(Clone, Debug)]
pub(super) struct Inflected {
    pub(super) stem: String,
    root: Vec<u8>,
    /// The stem's last letter, which follows the root; `None` if the root is the whole stem.
    last: Option<u8>,
    /// Whether endings may follow the stem.
    open: bool,
    endings: Endings,
}

impl Inflected {
    pub(super) fn new(stem: &str) -> Self {
        let root = root(stem);
        Self {
            stem: stem.to_owned(),
            root: root.as_bytes().to_vec(),
            last: stem.as_bytes().get(root.len()).copied(),
            open: stem.is_ascii(),
            endings: Endings::new(),
        }
    }

    /// Returns the common prefix of all accepted words.
    pub(super) fn root(&self) -> &[u8] {
        &self.root
    }

    /// Returns the state after the first `bytes` bytes of the root.
    fn at(&self, bytes: usize) -> WordState {
        if bytes < self.root.len() {
            return WordState::Root(bytes);
        }
        let last = if self.last.is_some() { LastLetter::Before } else { LastLetter::Behind };
        WordState::Ending { last, nodes: Endings::BETWEEN }
    }
}

/// State of [`Inflected`] in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordState {
    /// After the given number of bytes of the root.
    Root(usize),
    /// After the root: the progress in the stem's last letter, and the possible nodes in the tree
    /// of endings, one bit each.
    Ending { last: LastLetter, nodes: u128 },
    /// No accepted word begins like this.
    Elsewhere,
}

/// Progress in the stem's last letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastLetter {
    Before,
    /// The letter has occurred once and may be doubled.
    Once,
    Behind,
}

impl Automaton for Inflected {
    type State = WordState;

    fn start(&self) -> WordState {
        self.at(0)
    }

    fn is_match(&self, state: &WordState) -> bool {
        matches!(state, WordState::Ending { nodes, .. } if nodes & Endings::BETWEEN != 0)
    }

    fn can_match(&self, state: &WordState) -> bool {
        *state != WordState::Elsewhere
    }

    fn accept(&self, state: &WordState, byte: u8) -> WordState {
        match *state {
            WordState::Root(bytes) if self.root.get(bytes) == Some(&byte) => self.at(bytes + 1),
            WordState::Ending { last, nodes } if self.open => {
                let same = self.last == Some(byte);
                let (last, ends) = match last {
                    LastLetter::Before if same => (LastLetter::Once, Endings::BETWEEN),
                    LastLetter::Before if matches!(byte, b'i' | b'y') => {
                        (LastLetter::Behind, Endings::BETWEEN)
                    }
                    LastLetter::Once if same => (LastLetter::Behind, Endings::BETWEEN),
                    _ => (LastLetter::Behind, 0),
                };
                match self.endings.step(nodes, byte) | ends {
                    0 => WordState::Elsewhere,
                    nodes => WordState::Ending { last, nodes },
                }
            }
            WordState::Root(_) | WordState::Ending { .. } | WordState::Elsewhere => {
                WordState::Elsewhere
            }
        }
    }
}

/// A tree of letters for [`ENDINGS`]; after a complete ending, matching continues at the top.
#[derive(Clone)]
struct Endings {
    /// The next node, by letter and node; 0 if there is none.
    after: [[u8; Self::NODES]; 26],
    /// The nodes at which an ending is complete.
    whole: u128,
}

impl fmt::Debug for Endings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endings").finish_non_exhaustive()
    }
}

impl Endings {
    /// The node before the first ending, between two endings, and after the last ending.
    const BETWEEN: u128 = 1;
    /// Upper bound of the number of nodes; each node is one bit of a `u128`.
    const NODES: usize = 128;

    fn new() -> Self {
        let mut tree = Self { after: [[0; Self::NODES]; 26], whole: 0 };
        let mut nodes = 0;
        for ending in ENDINGS {
            let mut node = 0;
            for letter in ending.bytes() {
                let Some(after) =
                    tree.row_mut(letter).and_then(|row| row.get_mut(usize::from(node)))
                else {
                    continue;
                };
                if *after == 0 {
                    nodes += 1;
                    *after = nodes;
                }
                node = *after;
            }
            tree.whole |= 1_u128.checked_shl(node.into()).unwrap_or_default();
        }
        tree
    }

    fn row_mut(&mut self, letter: u8) -> Option<&mut [u8; Self::NODES]> {
        self.after.get_mut(usize::from(letter.checked_sub(b'a')?))
    }

    fn step(&self, mut nodes: u128, letter: u8) -> u128 {
        let row = letter.checked_sub(b'a').and_then(|it| self.after.get(usize::from(it)));
        let Some(row) = row else { return 0 };
        let mut all = 0;
        while nodes != 0 {
            let node = nodes.trailing_zeros();
            nodes &= nodes - 1;
            let after = usize::try_from(node).ok().and_then(|it| row.get(it)).copied().unwrap_or(0);
            if after != 0 {
                let bit = 1_u128.checked_shl(after.into()).unwrap_or_default();
                all |= if self.whole & bit == 0 { bit } else { bit | Self::BETWEEN };
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepts(stem: &str, word: &str) -> bool {
        let inflected = Inflected::new(stem);
        let mut state = inflected.start();
        for byte in word.bytes() {
            if !inflected.can_match(&state) {
                return false;
            }
            state = inflected.accept(&state, byte);
        }
        inflected.is_match(&state)
    }

    #[track_caller]
    fn check(word: &str, stem: &str) {
        assert_eq!(query::stem::stem(word), stem);
        assert!(accepts(stem, word), "{word} is not found by its stem {stem}");
    }

    #[test]
    fn words_are_found_by_their_stems() {
        check("gathered", "gather");
        check("possibility", "possibl");
        check("relational", "relat");
        check("hopping", "hop");
        check("hoping", "hope");
        check("happiness", "happi");
        check("happy", "happi");
        check("dying", "die");
        check("skies", "sky");
        check("controlled", "control");
        check("generalizations", "general");
        check("hospitalities", "hospit");
        check("analogies", "analog");
        check("condeferred", "condef");
        check("going", "go");
        check("x86", "x86");
        check("c", "c");
        check("日", "日");
        check("c++", "c++");
        check(".nets", ".nets");
        check("über", "über");
    }

    #[test]
    fn other_words_are_not_accepted() {
        for word in ["gate", "gatherings of", "gatherx1z", "gath", "together", ""] {
            assert!(!accepts("gather", word), "{word}");
        }
        assert!(!accepts("日", "日本"));
    }

    #[test]
    fn every_ending_is_in_the_tree() {
        for ending in ENDINGS {
            let after = |nodes, letter| Endings::new().step(nodes, letter);
            let nodes = ending.bytes().fold(Endings::BETWEEN, after);
            assert_ne!(nodes & Endings::BETWEEN, 0, "{ending}");
        }
    }

    fn word() -> impl Strategy<Value = String> {
        const SEVERAL: &[&str] = &[
            "s", "es", "ed", "ing", "ly", "y", "e", "er", "ies", "ied", "ational", "tional",
            "ization", "ousness", "fulness", "iveness", "ability", "ibility", "icity", "ality",
            "ancy", "ency", "icate", "ative", "alize", "ogy", "ogist", "ement", "ant", "ism",
            "ical", "lessly", "bly", "eedly", "ingly", "erred", "'s", "iti", "bb", "tt", "ll",
        ];
        let root =
            prop_oneof!["[a-z]{1,6}", "[aeiouy]{0,1}[bdtlsn][aeiouy][bdtlsn]", "[a-z0-9]{1,3}"];
        let ends = proptest::collection::vec(proptest::sample::select(SEVERAL), 0..4);
        (root, ends).prop_map(|(root, ends)| root + &ends.concat().replace('\'', ""))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn every_word_is_found_by_its_stem(word in word()) {
            let stem = query::stem::stem(&word);
            prop_assert!(word.starts_with(root(&stem)), "{} does not begin like {}", word, stem);
            prop_assert!(accepts(&stem, &word), "{} is not found by its stem {}", word, stem);
        }
    }
}
