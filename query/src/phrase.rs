//! Search for a phrase in one pass over a text, all its beginnings at once (shift-and).
//!
//! Sans-I/O.

use std::collections::BTreeMap;

/// Words that must stand side by side: each at the position after that of the word before it.
#[derive(Clone, Debug)]
pub struct Phrase {
    /// For each word, a bit for each of its places in the phrase.
    places: BTreeMap<String, Vec<u64>>,
    /// Number of words.
    len: usize,
    /// Prefix of one further word.
    beginning: Option<String>,
}

/// The parts of a phrase that the words of a text match. Bit `n` says that words up to a position
/// match the first `n + 1` words of the phrase.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Up to the position before this one.
    before: Vec<u64>,
    /// Up to this position.
    here: Vec<u64>,
    position: usize,
}

impl Phrase {
    /// Returns the phrase of `words` and, if given, one further word that begins with `beginning`.
    pub fn new(words: Vec<String>, beginning: Option<String>) -> Self {
        let len = words.len();
        let mut places: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (at, word) in words.into_iter().enumerate() {
            let bits = places.entry(word).or_insert_with(|| vec![0; len.div_ceil(64)]);
            if let Some(block) = bits.get_mut(at / 64) {
                *block |= 1 << (at % 64);
            }
        }
        Self { places, len, beginning }
    }

    /// Returns its words, without one of which the beginning alone is known.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// Returns the beginning of its last word, if that is all that is known of it.
    pub(crate) fn beginning(&self) -> Option<&str> {
        self.beginning.as_deref()
    }

    /// Reads the `word` at `position` of a text; returns whether the phrase ends here. Several words
    /// may have the same position.
    pub fn step(&self, progress: &mut Progress, word: &str, position: usize) -> bool {
        progress.move_to(position, self.len.div_ceil(64));
        if let Some(places) = self.places.get(word) {
            let mut carry = 1;
            let blocks = progress.here.iter_mut().zip(&progress.before).zip(places);
            for ((here, before), places) in blocks {
                *here |= (before << 1 | carry) & places;
                carry = before >> 63;
            }
        }
        match &self.beginning {
            Some(it) => self.is_whole(&progress.before) && word.starts_with(it.as_str()),
            None => self.is_whole(&progress.here),
        }
    }

    /// Returns whether `matched` has the bit of the last word.
    fn is_whole(&self, matched: &[u64]) -> bool {
        let Some(last) = self.len.checked_sub(1) else { return true };
        matched.get(last / 64).is_some_and(|block| block >> (last % 64) & 1 == 1)
    }
}

impl Progress {
    /// Moves to `position`, if not there yet. A phrase has so many `blocks` of bits.
    fn move_to(&mut self, position: usize, blocks: usize) {
        if position != self.position {
            std::mem::swap(&mut self.before, &mut self.here);
            if position != self.position + 1 {
                self.before.clear();
            }
            self.here.clear();
            self.position = position;
        }
        self.before.resize(blocks, 0);
        self.here.resize(blocks, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Returns at how many positions the phrase ends; each character is a word, and those of one
    /// string have one position.
    fn ends(phrase: &str, beginning: Option<&str>, text: &[String]) -> usize {
        let words = phrase.chars().map(String::from).collect();
        let phrase = Phrase::new(words, beginning.map(str::to_owned));
        let mut progress = Progress::default();
        let mut ends = |(at, stack): (usize, &String)| {
            let mut step = |c: char| phrase.step(&mut progress, &c.to_string(), at);
            stack.chars().fold(false, |ends, c| step(c) | ends)
        };
        text.iter().enumerate().filter(|it| ends(*it)).count()
    }

    /// Returns in how many places `text` has the characters of `phrase`.
    fn naive(phrase: &str, text: &[String]) -> usize {
        let has = |window: &&[String]| {
            window.iter().zip(phrase.chars()).all(|(stack, c)| stack.contains(c))
        };
        text.windows(phrase.len()).filter(has).count()
    }

    proptest! {
        #[test]
        fn a_phrase_is_found_at_every_occurrence(
            phrase in "[ab]{1,5}|[ab]{63,66}",
            mut text in vec("[abc]{1,2}", 0..20),
        ) {
            prop_assert_eq!(ends(&phrase, None, &text), naive(&phrase, &text));
            text.splice(..0, phrase.chars().map(String::from));
            prop_assert_eq!(ends(&phrase, None, &text), naive(&phrase, &text));
        }

        #[test]
        fn a_phrase_with_a_prefix_ends_in_any_word_with_it(
            phrase in "[ab]{0,3}",
            text in vec("[abc]{1,2}", 0..20),
        ) {
            prop_assert_eq!(ends(&phrase, Some("b"), &text), naive(&format!("{phrase}b"), &text));
        }
    }

    #[test]
    fn a_gap_interrupts_a_phrase() {
        let (phrase, mut progress) =
            (Phrase::new(vec!["a".to_owned(); 2], None), Progress::default());
        let mut step = |at| phrase.step(&mut progress, "a", at);
        assert_eq!([1, 3, 4, 4, 6].map(&mut step), [false, false, true, true, false]);
    }
}
