//! Names with signs or capitals inside: `C++`, `F#`, `.NET`, `parseQuery`.
//!
//! Only ASCII names are recognized.
//!
//! Sans-I/O.

use std::ops::Range;

use crate::scripts::is_unspaced;

/// Longest name before a `++` or `#`, in letters.
pub(crate) const SIGNED_LETTERS_MAX: usize = 16;
/// Maximum number of parts of a name with capitals inside; one with more is data.
pub(crate) const PARTS_MAX: usize = 8;
/// Shortest part, in bytes: with a shorter one, a name has no parts.
pub(crate) const PART_BYTES_MIN: usize = 2;

/// Returns the length of the sign between a run of letters and digits and the text `after` it, in
/// bytes: 2 for `++`, 1 for `#`, 0 if there is none.
pub(crate) fn sign_len(run: &str, after: &str) -> usize {
    if SIGNED_LETTERS_MAX < run.len() || !run.bytes().all(|it| it.is_ascii_alphabetic()) {
        return 0;
    }
    let ends = |sign: &str, is_part: fn(char) -> bool| {
        let is_part = |c: char| is_part(c) && !is_unspaced(c);
        after.strip_prefix(sign).is_some_and(|it| !it.starts_with(is_part))
    };
    if ends("++", char::is_alphabetic) { 2 } else { usize::from(ends("#", char::is_alphanumeric)) }
}

/// Returns whether the text `before` a letter ends in a dot that begins a name: one at the start, or
/// after a space, an opening bracket or quotation mark, a slash, or a script without spaces.
pub(crate) fn is_dotted(before: &str) -> bool {
    let opens = |c: char| {
        c.is_whitespace()
            || is_unspaced(c)
            || "([{<\"'`/\u{201c}\u{2018}\u{201e}\u{ab}「『（".contains(c)
    };
    before.strip_suffix('.').is_some_and(|it| it.chars().next_back().is_none_or(opens))
}

/// Returns where the parts of a name with capitals inside lie in it: those of `HTTPServer` are `HTTP`
/// and `Server`. Digits belong to the part before them. Empty if the name has only one part, more
/// than [`PARTS_MAX`], or one shorter than [`PART_BYTES_MIN`].
pub(crate) fn parts(run: &str) -> Vec<Range<usize>> {
    let byte = |at: usize| run.as_bytes().get(at).copied().unwrap_or_default();
    let is_capital = |at: usize| byte(at).is_ascii_uppercase();
    // The `s` of `URLs` is no part.
    let is_plural = |at: usize| at + 1 == run.len() && byte(at) == b's';
    let begins = |at: &usize| {
        is_capital(*at)
            && (!is_capital(*at - 1) || byte(*at + 1).is_ascii_lowercase() && !is_plural(*at + 1))
    };
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for end in (1..run.len()).filter(begins).chain([run.len()]) {
        if parts.len() == PARTS_MAX || end - start < PART_BYTES_MIN {
            return Vec::new();
        }
        parts.push(start..end);
        start = end;
    }
    if parts.len() == 1 { Vec::new() } else { parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_begin_parts() {
        for (name, expected) in [
            ("parseQuery", "parse Query"),
            ("GitHub", "Git Hub"),
            ("HTTPServer", "HTTP Server"),
            ("utf8Decoder", "utf8 Decoder"),
            ("HTTP2Server", "HTTP2 Server"),
            ("PostgreSQL", "Postgre SQL"),
            ("fooURLs", "foo URLs"),
            ("aaBbCcDdEeFfGgHh", "aa Bb Cc Dd Ee Ff Gg Hh"),
            ("aaBbCcDdEeFfGgHhIi", ""),
            ("Capital", ""),
            ("CAPITALS", ""),
            ("URLs", ""),
            ("eBay", ""),
            ("LaTeX", ""),
            ("dQw4w9WgXcQ", ""),
            ("SHA256", ""),
            ("", ""),
        ] {
            let parts: Vec<_> = parts(name).into_iter().map(|it| &name[it]).collect();
            assert_eq!(parts.join(" "), expected, "{name}");
        }
    }
}
