//! The way back from a stem to its words: an automaton that finds them in an ordered list.
//!
//! The stemmer ([`query::stem`]) says what stem a word has. [`Inflected`] goes through an ordered list without looking at more than those
//! words that begin like the stem and end in endings the stemmer knows. What it lets pass is then held
//! against the stemmer itself.
//!
//! Sans-I/O.

use std::fmt;

use query::stem::root;
use tantivy_fst::Automaton;

/// Endings that the stemmer takes off or puts others in place of, in parts: what stands after a
/// word's root is any number of these.
const ENDINGS: [&str; 37] = [
    "abil", "abl", "al", "anc", "ant", "at", "bil", "bl", "e", "ed", "enc", "ent", "er", "err",
    "ful", "i", "ibil", "ibl", "ic", "ing", "ion", "ism", "ist", "it", "iv", "iz", "l", "less",
    "li", "ly", "ment", "ness", "og", "or", "ous", "s", "y",
];

/// Accepts every word whose stem is the one given, and not many others: its root, the stem's last
/// letter (once, doubled as in `hopping`, or as `i` or `y`), and endings.
#[derive(Clone, Debug)]
pub(super) struct Inflected {
    /// The stem.
    pub(super) stem: String,
    root: Vec<u8>,
    /// The stem's letter after the root.
    last: Option<u8>,
    /// Whether endings may follow.
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

    /// What all words that it accepts begin with.
    pub(super) fn root(&self) -> &[u8] {
        &self.root
    }

    /// Where the first so many bytes of the root lead.
    fn at(&self, bytes: usize) -> At {
        if bytes < self.root.len() {
            return At::Root(bytes);
        }
        let last = if self.last.is_some() { Last::Before } else { Last::Behind };
        At::Ending { last, places: Endings::BETWEEN }
    }
}

/// Where in a word [`Inflected`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// So many bytes into the root.
    Root(usize),
    /// After the root: how it stands with the stem's last letter, and the places in the endings
    /// that it may be at, one bit each.
    Ending { last: Last, places: u128 },
    /// In no word that is looked for.
    Elsewhere,
}

/// How it stands with the stem's last letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    Before,
    /// It may be doubled.
    Once,
    Behind,
}

impl Automaton for Inflected {
    type State = At;

    fn start(&self) -> At {
        self.at(0)
    }

    fn is_match(&self, state: &At) -> bool {
        matches!(state, At::Ending { places, .. } if places & Endings::BETWEEN != 0)
    }

    fn can_match(&self, state: &At) -> bool {
        *state != At::Elsewhere
    }

    fn accept(&self, state: &At, byte: u8) -> At {
        match *state {
            At::Root(bytes) if self.root.get(bytes) == Some(&byte) => self.at(bytes + 1),
            At::Ending { last, places } if self.open => {
                let same = self.last == Some(byte);
                let (last, ends) = match last {
                    Last::Before if same => (Last::Once, Endings::BETWEEN),
                    Last::Before if matches!(byte, b'i' | b'y') => (Last::Behind, Endings::BETWEEN),
                    Last::Once if same => (Last::Behind, Endings::BETWEEN),
                    _ => (Last::Behind, 0),
                };
                match self.endings.step(places, byte) | ends {
                    0 => At::Elsewhere,
                    places => At::Ending { last, places },
                }
            }
            At::Root(_) | At::Ending { .. } | At::Elsewhere => At::Elsewhere,
        }
    }
}

/// A tree of [`ENDINGS`] whose leaves lead back to its top.
#[derive(Clone)]
struct Endings {
    /// By letter and by the place before it: the place that the letter leads to, 0 where there is none.
    after: [[u8; Self::PLACES]; 26],
    /// The places after which an ending is whole.
    whole: u128,
}

impl fmt::Debug for Endings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endings").finish_non_exhaustive()
    }
}

impl Endings {
    /// The place before the first ending, between two, and after the last.
    const BETWEEN: u128 = 1;
    /// More places than [`ENDINGS`] have; one bit each.
    const PLACES: usize = 128;

    fn new() -> Self {
        let mut tree = Self { after: [[0; Self::PLACES]; 26], whole: 0 };
        let mut places = 0;
        for ending in ENDINGS {
            let mut place = 0;
            for letter in ending.bytes() {
                let Some(after) =
                    tree.row_mut(letter).and_then(|row| row.get_mut(usize::from(place)))
                else {
                    continue;
                };
                if *after == 0 {
                    places += 1;
                    *after = places;
                }
                place = *after;
            }
            tree.whole |= 1_u128.checked_shl(place.into()).unwrap_or_default();
        }
        tree
    }

    fn row_mut(&mut self, letter: u8) -> Option<&mut [u8; Self::PLACES]> {
        self.after.get_mut(usize::from(letter.checked_sub(b'a')?))
    }

    /// Returns the places that `letter` leads to.
    fn step(&self, mut places: u128, letter: u8) -> u128 {
        let row = letter.checked_sub(b'a').and_then(|it| self.after.get(usize::from(it)));
        let Some(row) = row else { return 0 };
        let mut all = 0;
        while places != 0 {
            let place = places.trailing_zeros();
            places &= places - 1;
            let after =
                usize::try_from(place).ok().and_then(|it| row.get(it)).copied().unwrap_or(0);
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
    use query::stem::Stemmer;

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
        assert_eq!(Stemmer::default().stem(word), stem);
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
        check("über", "über");
    }

    #[test]
    fn other_words_are_not_looked_at() {
        for word in ["gate", "gatherings of", "gatherx1z", "gath", "together", ""] {
            assert!(!accepts("gather", word), "{word}");
        }
        assert!(!accepts("日", "日本"));
    }

    #[test]
    fn every_ending_is_one() {
        for ending in ENDINGS {
            let after = |places, letter| Endings::new().step(places, letter);
            let places = ending.bytes().fold(Endings::BETWEEN, after);
            assert_ne!(places & Endings::BETWEEN, 0, "{ending}");
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
            let stem = Stemmer::default().stem(&word);
            prop_assert!(word.starts_with(root(&stem)), "{} does not begin like {}", word, stem);
            prop_assert!(accepts(&stem, &word), "{} is not found by its stem {}", word, stem);
        }
    }
}
