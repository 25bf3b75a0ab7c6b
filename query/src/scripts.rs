//! Scripts without spaces between words.
//!
//! A Han or kana character is a word by itself. Of Thai, Lao, Burmese and Khmer, two neighbors are a
//! word, as single letters would be too frequent to be of use. A letter with its marks counts as one.
//!
//! Sans-I/O.

use unicode_normalization::char::is_combining_mark;

/// Returns whether `c` is Han or kana: a word by itself.
pub(crate) fn stands_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// Returns whether `c` is Thai, Lao, Burmese or Khmer.
fn is_paired(c: char) -> bool {
    matches!(c, '\u{e01}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{a9e0}'..='\u{a9ff}' | '\u{aa60}'..='\u{aa7f}')
}

/// Returns whether no spaces stand between words of the script of `c`.
pub(crate) fn is_unspaced(c: char) -> bool {
    stands_alone(c) || is_paired(c)
}

/// Returns whether `c` is an invisible sign that parts no words of scripts with spaces: a soft hyphen,
/// a place for a line break, a sign against one, a byte order mark.
pub(crate) fn is_within_words(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// Returns whether `c` is an invisible sign between or within words.
pub(crate) fn is_invisible(c: char) -> bool {
    is_within_words(c) || matches!(c, '\u{200c}' | '\u{200d}')
}

/// Returns the lengths, in bytes, of the first letter of `text` and of the next one, each with its
/// marks; `None` if `text` does not begin with a letter of a script whose words are pairs. The
/// second length is 0 if the first letter is the last one.
pub(crate) fn pair(text: &str) -> Option<(usize, usize)> {
    let unit_len = |text: &str| -> Option<usize> {
        let mut chars = text.chars();
        chars.next().filter(|it| is_paired(*it) && it.is_alphanumeric())?;
        let after = chars.as_str();
        let is_mark = |c: char| is_paired(c) && is_combining_mark(c) || is_invisible(c);
        Some(text.len() - after.trim_start_matches(is_mark).len())
    };
    let first = unit_len(text)?;
    Some((first, text.get(first..).and_then(unit_len).unwrap_or_default()))
}
