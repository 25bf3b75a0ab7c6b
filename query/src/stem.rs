//! Stems of words: two words with one stem of the English stemmer (Porter 2) are forms of one word.
//!
//! Sans-I/O.

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};

/// Returns the stem of a word from [`Words`](crate::words::Words). A word with characters beyond
/// ASCII or with signs (`.net`) is its own stem.
pub fn stem(word: &str) -> Cow<'_, str> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // A new stemmer for each word costs nothing: it is only the address of a function.
    if is_plain { Stemmer::new(Algorithm::English).stem(word) } else { Cow::Borrowed(word) }
}

/// Returns a prefix of all words with the stem `stem`. Only words with it need the stemmer.
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
