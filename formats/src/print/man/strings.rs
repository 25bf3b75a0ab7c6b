//! The strings of troff: those that a text defines (`.ds name text`), and those of the packages.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::tex_fonts::accented;
use super::{glyphs, split_name};
use crate::Draft;
use crate::limit::Limit;

/// Length by which strings may make a text longer, in bytes; the others print nothing.
const ADDED_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct TroffStrings {
    texts: HashMap<String, String>,
    /// Whether there are too many.
    has_more: bool,
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
        let is_room =
            self.texts.len() < Limit::Abbreviations.bound() || self.texts.contains_key(name);
        if is_room {
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
        strings.define(&format!("a {}", "x".repeat(1_000)));
        let filled: usize = (0..100_000).map(|_| strings.interpolate("\\*a").len()).sum();
        assert!(ADDED_BYTES_MAX - 1_000 < filled && filled <= ADDED_BYTES_MAX);
        let mut draft = Draft::default();
        strings.report(&mut draft);
        assert_eq!(draft.problems, [Limit::Text.cut_at(ADDED_BYTES_MAX).problem()]);
    }

    #[test]
    fn strings_of_a_line_are_all_filled_in() {
        let mut strings = TroffStrings::default();
        strings.define(&format!("a {}", "x".repeat(1_000)));
        assert_eq!(strings.interpolate(&"\\*a".repeat(100)).len(), 100_000);
    }
}
