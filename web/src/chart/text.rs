//! Text in a chart: cleaning, cutting, wrapping, and estimates of its width.

/// Size of all text but the title, in units: 10 pixels on a phone that is 360 wide, 7 points in a
/// column of a paper.
pub(super) const SIZE: f64 = 18.0;

pub(super) const TITLE_SIZE: f64 = 21.0;

/// Height of a line of text of [`SIZE`].
pub(super) const LINE: f64 = 22.0;

/// Returns `text` in one line of at most `chars_max` characters, all of them allowed in XML.
pub(super) fn clip(text: &str, chars_max: usize) -> String {
    let mut clean = text.trim().chars().map(|c| match c {
        c if c.is_whitespace() && c != '\u{a0}' => ' ',
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => '\u{fffd}',
        c => c,
    });
    let mut kept: String = clean.by_ref().take(chars_max).collect();
    if clean.next().is_some() {
        kept.pop();
        kept.push('…');
    }
    kept
}

/// Estimates the width of `text` at `size`; rather too wide, because the reader's font is unknown.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | ' ' | '\u{a0}' => 0.34,
        '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.96,
        'A'..='Z' => 0.72,
        '\0'..='\u{7f}' => 0.62,
        '\u{80}'..='\u{10ff}' => 0.75,
        '\u{2000}'..='\u{22ff}' => 0.85,
        _ => 1.05,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// Returns `text`, cut so that it is no wider than `width_max` at `size`.
pub(super) fn fit(text: &str, size: f64, width_max: f64) -> String {
    let mut kept = text.to_owned();
    while width_max < width(&kept, size) && kept.chars().count() > 1 {
        kept.truncate(kept.trim_end_matches('…').len());
        kept.pop();
        kept.push('…');
    }
    kept
}

/// Breaks `text` at spaces into lines no wider than `width_max`; a wider word stays whole.
pub(super) fn wrap(text: &str, size: f64, width_max: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= width_max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::templates::escape;

    #[test]
    fn text_is_one_safe_line() {
        let check = |text: &str, expected: &str| {
            assert_eq!(escape(&clip(text, 9)), expected, "{text:?}");
        };
        check("", "");
        check(" a\n\tb ", "a  b");
        check("123456789", "123456789");
        check("1234567890", "12345678…");
        check("<\"&'>", "&lt;&quot;&amp;&#39;&gt;");
        check("a\0b\u{ffff}\u{85}", "a\u{fffd}b\u{fffd}");
        assert_eq!(clip("abc", 0), "…");
    }

    #[test]
    fn text_is_cut_to_a_width() {
        let check = |text: &str, expected: &str| assert_eq!(fit(text, 10.0, 30.0), expected);
        check("", "");
        check("abcd", "abcd");
        check("abcdef", "abc…");
        check("……………", "…");
    }

    #[test]
    fn lines_break_at_spaces() {
        let check = |text: &str, expected: &[&str]| assert_eq!(wrap(text, 10.0, 60.0), expected);
        check("", &[]);
        check("  ", &[]);
        check("an hour", &["an hour"]);
        check("an hour or more of it", &["an hour or", "more of it"]);
        check("incomprehensibilities", &["incomprehensibilities"]);
    }
}
