//! Inline markup of AsciiDoc: emphasis, links, cross references and attributes become their shown text.
//!
//! Source: the AsciiDoc Language Documentation (Asciidoctor), "Text" and "Macros".
//!
//! # Differences from the specification
//!
//! * Substitutions are done in one pass, left to right. An attribute's value is not read again, so nothing
//!   can grow without limit.

use std::collections::HashMap;

use super::References;
use crate::names::NameTable;
use crate::prose::{SPAN_BYTES_MAX, closed};

/// Longest value of an attribute that is put in the place of its name, in bytes.
pub(super) const VALUE_BYTES_MAX: usize = 1024;

/// The attributes that a document sets, by their names.
#[derive(Default)]
pub(super) struct Attributes<'t> {
    pub(super) values: HashMap<&'t str, &'t str>,
    /// Length by which they may still make the text longer, in bytes, and whether it was not enough.
    pub(super) room: usize,
    pub(super) has_more: bool,
}

impl<'t> Attributes<'t> {
    /// Returns the text that is put in the place of a name, if there is one.
    fn fill(&mut self, name: &str) -> Option<&'t str> {
        let value = self.values.get(name).copied().or_else(|| character(name))?;
        if VALUE_BYTES_MAX < value.len() {
            return None;
        }
        let room = self.room.checked_sub(value.len().saturating_sub(name.len()));
        self.has_more |= room.is_none();
        self.room = room?;
        Some(value)
    }
}

/// Returns `text` without markup, and adds its links to `references`.
pub(super) fn plain(
    text: &str,
    attributes: &mut Attributes<'_>,
    references: &mut References,
) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['*', '_', '`', '+', '#', '<', '{', '[', '\\', '(']) {
        let (before, marked) = rest.split_at(at);
        shown.push_str(before);
        rest = span(marked, &mut shown, attributes, references).unwrap_or_else(|| {
            let mut characters = marked.chars();
            shown.extend(characters.next());
            characters.as_str()
        });
    }
    shown.push_str(rest);
    references.add_bare(&shown);
    shown
}

/// Adds the shown text of the span that `marked` starts with; returns the text after the span.
fn span<'t>(
    marked: &'t str,
    shown: &mut String,
    attributes: &mut Attributes<'_>,
    references: &mut References,
) -> Option<&'t str> {
    if let Some(escaped) = marked.strip_prefix('\\') {
        return Some(escaped);
    }
    if let Some(inner) = marked.strip_prefix("<<") {
        let (inner, after) = closed(inner, ">>")?;
        let (target, text) = inner.split_once(',').unwrap_or((inner, inner));
        shown.push_str(if text.trim().is_empty() { target } else { text.trim() });
        return Some(after);
    }
    if let Some(inner) = marked.strip_prefix('{') {
        let (name, after) = closed(inner, "}")?;
        shown.push_str(attributes.fill(name)?);
        return Some(after);
    }
    if let Some(inner) = marked.strip_prefix("[[") {
        return closed(inner, "]]").map(|(_, after)| after);
    }
    if let Some(inner) = marked.strip_prefix("(((") {
        // An index entry shows nothing.
        return closed(inner, ")))").map(|(_, after)| after);
    }
    if let Some(inner) = marked.strip_prefix('[') {
        return bracket(inner, shown, references);
    }
    // Inside a word, a single sign is not markup: `snake_case`, `2*3`.
    let in_word = shown.ends_with(char::is_alphanumeric);
    for sign in ["**", "__", "``", "##", "*", "_", "`", "+", "#"] {
        if let Some(inner) = marked.strip_prefix(sign) {
            let opens =
                sign.len() == 2 || !in_word && inner.starts_with(|it: char| !it.is_whitespace());
            let (inner, after) = closed(inner, sign).filter(|_| opens)?;
            let closes = sign.len() == 2 || !after.starts_with(char::is_alphanumeric);
            let plain = inner.trim_matches(['`', '+']);
            shown.push_str(Some(plain).filter(|it| closes && !it.contains('\n'))?);
            return Some(after);
        }
    }
    None
}

/// Reads the brackets of an inline macro, whose name and target are already shown: `link:target[text]`,
/// `https://target[text]`.
fn bracket<'t>(inner: &'t str, shown: &mut String, references: &mut References) -> Option<&'t str> {
    let near = shown.floor_char_boundary(shown.len().saturating_sub(SPAN_BYTES_MAX));
    let word = shown.get(near..)?.rsplit(char::is_whitespace).next()?;
    let word = word.trim_start_matches(['(', '"', '\'']);
    let (before, target) = word.split_once(':')?;
    let name = before.rsplit(|it: char| !it.is_ascii_lowercase() && it != '+').next()?;
    let word = word.get(before.len() - name.len()..)?;
    let start = shown.len() - word.len();
    if name == "footnote" {
        // A footnote may have links.
        shown.truncate(start);
        shown.push(' ');
        return Some(inner);
    }
    let (text, after) =
        closed(inner, "]").or_else(|| inner.strip_prefix(']').map(|it| ("", it)))?;
    if name.is_empty() {
        return None;
    }
    match name {
        "http" | "https" | "ftp" => references.add(word),
        "link" | "xref" => references.add(target),
        _ => {}
    }
    // Attributes of a link follow its text.
    let text = match text.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default(),
        None => text.split(",window=").next().unwrap_or_default().trim_end_matches('^'),
    };
    let text = match (name, text) {
        ("anchor" | "indexterm", _) => String::new(),
        // `linkgit:git-add[1]` and `man:ls[1]` are manual pages.
        (_, number) if number.len() == 1 && number.starts_with(|it: char| it.is_ascii_digit()) => {
            format!("{target}({number})")
        }
        ("image" | "icon", "") => String::new(),
        (_, "") => target.trim_start_matches("//").to_owned(),
        (_, text) => text.to_owned(),
    };
    shown.truncate(start);
    shown.push_str(&text);
    Some(after)
}

/// Returns the value of a predefined attribute: a character that would be markup.
fn character(name: &str) -> Option<&'static str> {
    if matches!(name, "nbsp" | "sp") { Some(" ") } else { CHARACTERS.get(name) }
}

/// Predefined attributes and their values.
static CHARACTERS: NameTable = NameTable::of(
    "empty: blank: zwsp: apos:' quot:\" lsquo:\u{2018} rsquo:\u{2019} ldquo:\u{201c} \
     rdquo:\u{201d} plus:+ asterisk:* caret:^ tilde:~ backtick:` backslash:\\ startsb:[ \
     endsb:] vbar:| amp:& lt:< gt:> two-colons::: two-semicolons:;; litdd:--",
);
