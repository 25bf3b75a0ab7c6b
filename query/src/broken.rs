//! Words that a hyphen breaks at the end of a line.
//!
//! Only small letters around the break are taken for such: `X-` and `1-` at the end of a line are of
//! names and numbers.
//!
//! Sans-I/O.

use std::ops::Range;

/// Returns where the back of the word begins whose front is at `front` in `text`; `None` if that is no
/// broken word.
pub(crate) fn back(text: &str, front: Range<usize>) -> Option<usize> {
    let (_, back) = halves(text.get(front.end..)?)?;
    let is_broken =
        text.get(front)?.ends_with(char::is_lowercase) && back.starts_with(char::is_lowercase);
    is_broken.then(|| text.len() - back.len())
}

/// Parts a text at its first hyphen, if a line ends behind that; leaves out blanks before the back.
pub(crate) fn halves(text: &str) -> Option<(&str, &str)> {
    let (front, back) = text.split_once('-')?;
    let back = back.strip_prefix('\r').unwrap_or(back).strip_prefix('\n')?;
    Some((front, back.trim_start_matches([' ', '\t'])))
}
