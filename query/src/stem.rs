//! Which words are forms of one: those that the English stemmer (Porter 2) cuts down to the same stem.
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
    /// Returns the stem of a word as [`Words`](crate::words::Words) gives it; a word with letters
    /// beyond ASCII is its own.
    pub fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        if word.is_ascii() { self.english.stem(word) } else { Cow::Borrowed(word) }
    }
}

/// Returns what every word begins with whose stem is `stem`: few words do, and only those are worth
/// the stemmer.
pub fn root(stem: &str) -> &str {
    let other = match stem.len() {
        // What is cut down to one letter begins with it.
        0 | 1 => 0,
        // Of `dying`, `lying`, `tying`.
        3 if stem.ends_with("ie") => 2,
        _ => 1,
    };
    // Only what is ASCII is cut.
    stem.get(..stem.len() - other).filter(|_| stem.is_ascii()).unwrap_or(stem)
}
