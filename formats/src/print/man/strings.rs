//! The strings of troff: those that a text defines (`.ds name text`), and those of the packages.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::tex_fonts::accented;
use super::{glyphs, split_name};
use crate::text::Body;

/// Maximum number of strings that are remembered.
const STRINGS_MAX: usize = 200;
/// Longest string that is remembered, in bytes.
const STRING_BYTES_MAX: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct TroffStrings {
    texts: HashMap<String, String>,
}

impl TroffStrings {
    /// Defines a string: `.ds name text`.
    pub(crate) fn define(&mut self, arguments: &str) {
        let arguments = arguments.trim();
        let (name, text) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        let text = text.trim_start();
        let text = text.strip_prefix('"').unwrap_or(text);
        if self.texts.len() < STRINGS_MAX && text.len() <= STRING_BYTES_MAX {
            self.texts.insert(name.to_owned(), text.to_owned());
        }
    }

    /// Replaces `\*x`, `\*(xx` and `\*[name]` by the strings, those of ms for accents included.
    pub(crate) fn interpolate<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !text.contains("\\*") {
            return Cow::Borrowed(text);
        }
        let mut filled = Body::new(text.len().saturating_mul(2).saturating_add(STRING_BYTES_MAX));
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("\\*") {
            filled.push(before);
            let (name, after) = split_name(after);
            rest = after;
            if let Some(text) = self.texts.get(name) {
                filled.push(text);
                continue;
            }
            let accent = ACCENTS.iter().find(|it| it.0 == name).map(|it| it.1);
            let letter = after.chars().next();
            if let Some(made) = accent.zip(letter).and_then(|it| accented(it.0, it.1)) {
                filled.push(made.encode_utf8(&mut [0; 4]));
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
            filled.push(if glyph == "\\" { "\\e" } else { &glyph });
        }
        filled.push(rest);
        Cow::Owned(filled.finish())
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
