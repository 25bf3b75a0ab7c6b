//! Stems of words: two words with one stem of the English stemmer (Porter 2) are forms of one word.
//!
//! Sans-I/O.

use std::borrow::Cow;
use std::fmt;

/// The stemmer; cheap to make.
#[derive(Clone, Copy)]
pub struct Stemmer {
    english: frostem::Stemmer,
}

impl fmt::Debug for Stemmer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stemmer").finish_non_exhaustive()
    }
}

impl Default for Stemmer {
    fn default() -> Self {
        Self { english: frostem::Stemmer::new(frostem::Algorithm::English) }
    }
}

impl Stemmer {
    /// Returns the stem of a word of [`Words`](crate::words::Words); a word with letters beyond
    /// ASCII is its own stem.
    pub fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        if word.is_ascii() { self.english.stem(word) } else { Cow::Borrowed(word) }
    }
}

/// Returns the common prefix of all words with the stem `stem`. Few words have that prefix; only
/// those are worth the stemmer.
pub fn root(stem: &str) -> &str {
    let other = match stem.len() {
        // A word with a stem of one letter begins with that letter.
        0 | 1 => 0,
        // The stems of `dying`, `lying`, `tying`.
        3 if stem.ends_with("ie") => 2,
        _ => 1,
    };
    // The stemmer changes only ASCII words.
    stem.get(..stem.len() - other).filter(|_| stem.is_ascii()).unwrap_or(stem)
}
