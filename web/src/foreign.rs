//! Text of others, before it is shown on a page or in a terminal.

use std::borrow::Cow;

/// Replaces characters that reorder text, and control characters other than line breaks and tabs,
/// which command a terminal, by U+FFFD. Marks of direction and joiners stay: whole languages need
/// them.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let reorders = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || reorders(c);
    if text.contains(hidden) {
        text.replace("\r\n", "\n").replace(hidden, "\u{fffd}").into()
    } else {
        text.into()
    }
}

/// Replaces invisible characters, and characters that change the direction of text, by U+FFFD.
pub fn visible(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2028}' | '\u{2029}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if hidden(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_reorders_its_neighbors_or_commands_a_terminal() {
        let check = |text: &str, expected: &str| assert_eq!(harmless(text), expected, "{text:?}");
        check("a\u{202e}txt.exe\u{2066}b", "a\u{fffd}txt.exe\u{fffd}b");
        check("a\0b\u{1b}[31mc\u{85}", "a\u{fffd}b\u{fffd}[31mc\u{fffd}");
        check("a\u{1b}[2Jb\n\u{9b}c\td", "a\u{fffd}[2Jb\n\u{fffd}c\td");
        check("one\r\n\ttwo\u{202c}", "one\n\ttwo\u{fffd}");
        check("می\u{200c}خواهم \u{200f}שלום", "می\u{200c}خواهم \u{200f}שלום");
    }
}
