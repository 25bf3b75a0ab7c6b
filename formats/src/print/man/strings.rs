//! The strings of troff: those that a text defines (`.ds name text`), and those of the packages.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::tex_fonts::accented;
use super::{glyphs, split_name};
use crate::Draft;
use crate::limit::Limit;

/// Longest string that is remembered, in bytes.
const STRING_BYTES_MAX: usize = 200;
/// Length by which strings may make a line longer, in bytes; the others stay names.
const FILLED_BYTES_MAX: usize = 16 * 1024;
/// Length by which strings may make a text longer, in bytes; the others print nothing.
const ADDED_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct TroffStrings {
    texts: HashMap<String, String>,
    /// Whether there are too many.
    has_more: bool,
    /// Whether one is too long.
    has_longer: bool,
    /// Length of all strings that were filled in, in bytes.
    added: usize,
}

impl TroffStrings {
    /// Defines a string: `.ds name text`.
    pub(crate) fn define(&mut self, arguments: &str) {
        let arguments = arguments.trim();
        let (name, text) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let text = text.trim_start();
        let text = text.strip_prefix('"').unwrap_or(text);
        let is_room = self.texts.len() < Limit::Abbreviations.bound();
        if STRING_BYTES_MAX < text.len() {
            self.has_longer = true;
        } else if is_room {
            self.texts.insert(name.to_owned(), text.to_owned());
        } else {
            self.has_more = true;
        }
    }

    /// Says if some strings are not known or not printed.
    pub(crate) fn report(&self, draft: &mut Draft<'_>) {
        if self.has_more {
            draft.cut(Limit::Abbreviations.cut_at(self.texts.len()));
        }
        if self.has_longer {
            draft.cut(Limit::Value.cut_at(STRING_BYTES_MAX));
        }
        if ADDED_BYTES_MAX < self.added {
            draft.cut(Limit::Text.cut_at(ADDED_BYTES_MAX));
        }
    }

    /// Replaces `\*x`, `\*(xx` and `\*[name]` by the strings, those of ms for accents included.
    pub(crate) fn interpolate<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        if !text.contains("\\*") {
            return Cow::Borrowed(text);
        }
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("\\*") {
            // Strings may be much longer than their names.
            if 2 * text.len() + FILLED_BYTES_MAX < filled.len() {
                break;
            }
            filled.push_str(before);
            let (name, after) = split_name(after);
            rest = after;
            if let Some(text) = self.texts.get(name) {
                self.added = self.added.saturating_add(text.len());
                if self.added <= ADDED_BYTES_MAX {
                    filled.push_str(text);
                }
                continue;
            }
            let accent = ACCENTS.iter().find(|it| it.0 == name).map(|it| it.1);
            let letter = after.chars().next();
            if let Some(made) = accent.zip(letter).and_then(|it| accented(it.0, it.1)) {
                filled.push(made);
                rest = after.get(letter.map_or(0, char::len_utf8)..).unwrap_or_default();
                continue;
            }
            let mut glyph = String::new();
            match name {
                "Q" | "U" => glyph.push('"'),
                "EM" => glyph.push('-'),
                name => glyphs::push(name, &mut glyph),
            }
            // A printed backslash must not begin an escape.
            filled.push_str(if glyph == "\\" { "\\e" } else { &glyph });
        }
        filled.push_str(rest);
        Cow::Owned(filled)
    }
}

/// The accents of ms, as strings before the letter.
const ACCENTS: &[(&str, char)] = &[
    ("`", '\u{300}'),
    ("'", '\u{301}'),
    ("^", '\u{302}'),
    ("~", '\u{303}'),
    (":", '\u{308}'),
    ("C", '\u{30c}'),
    (",", '\u{327}'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_add_a_bounded_length() {
        let mut strings = TroffStrings::default();
        strings.define(&format!("a {}", "x".repeat(STRING_BYTES_MAX)));
        let filled: usize = (0..100_000).map(|_| strings.interpolate("\\*a").len()).sum();
        assert!(ADDED_BYTES_MAX - STRING_BYTES_MAX < filled && filled <= ADDED_BYTES_MAX);
        let mut draft = Draft::default();
        strings.report(&mut draft);
        assert_eq!(draft.problems, [Limit::Text.cut_at(ADDED_BYTES_MAX).problem()]);
    }

    #[test]
    fn a_long_string_is_not_too_many() {
        let mut strings = TroffStrings::default();
        strings.define(&format!("a {}", "x".repeat(STRING_BYTES_MAX + 1)));
        let mut draft = Draft::default();
        strings.report(&mut draft);
        assert_eq!(draft.problems, [Limit::Value.cut_at(STRING_BYTES_MAX).problem()]);
    }
}
