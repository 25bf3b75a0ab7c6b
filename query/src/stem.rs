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

/// Returns whether two words with one [`stem`] differ in their inflection alone: `operates` and
/// `operated` do, `operator` and `operation` are words of their own.
pub fn is_inflected(one: &str, other: &str) -> bool {
    one == other || uninflected(one) == uninflected(other)
}

/// Returns an English word without the endings of plural, person and tense, and without an `e` or the
/// second of two equal letters at its end.
fn uninflected(word: &str) -> Cow<'_, str> {
    let mut ends = ["ies", "ied", "ie"].iter().filter_map(|it| word.strip_suffix(it));
    if let Some(base) = ends.find(|it| 1 < it.len()) {
        return Cow::Owned(format!("{base}y"));
    }
    let base = match word.strip_suffix("sses") {
        Some(it) => word.get(..it.len() + 2).unwrap_or(word),
        None => word.strip_suffix('s').filter(|it| !it.ends_with(['s', 'u'])).unwrap_or(word),
    };
    let has_vowel = |it: &&str| it.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    let past = || base.strip_suffix("ed").filter(|it| !it.ends_with('e'));
    let verb = base.strip_suffix("ing").or_else(past).filter(has_vowel);
    let base = verb.unwrap_or(base);
    let base = base.strip_suffix('e').unwrap_or(base);
    let mut ends = base.chars().rev();
    match (ends.next(), ends.next()) {
        (Some(last), Some(before)) if last == before => {
            Cow::Borrowed(base.get(..base.len() - last.len_utf8()).unwrap_or(base))
        }
        _ => Cow::Borrowed(base),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflections_are_told_from_derivations() {
        let check = |words: &str, expected: bool| {
            let (one, other) = words.split_once(' ').unwrap();
            assert_eq!(stem(one), stem(other), "{words}");
            assert_eq!(is_inflected(one, other), expected, "{words}");
            assert_eq!(is_inflected(other, one), expected, "{words}");
        };
        for words in [
            "operator operators",
            "operates operated",
            "operating operate",
            "class classes",
            "box boxes",
            "query queries",
            "carried carry",
            "play plays",
            "playing play",
            "studying study",
            "stop stopping",
            "fall falling",
            "fell fells",
            "evening evenings",
            "need needed",
            "needs need",
            "tie ties",
            "movie movies",
            "try tries",
            "size sizes",
            "horse horses",
            "string strings",
        ] {
            check(words, true);
        }
        for words in [
            "operator operation",
            "operate operations",
            "happy happiness",
            "possible possibly",
            "general generalization",
        ] {
            check(words, false);
        }
    }
}
