//! Inline markup of reStructuredText: emphasis, literals, links and roles become their shown text.
//!
//! Source: docutils' reStructuredText Markup Specification, "Inline Markup".
//!
//! # Differences from the specification
//!
//! * In the specification, no letter may follow marked-up text. Here, signs are removed wherever they form
//!   pairs.

use super::References;
use crate::prose::closed;

/// Returns `text` without markup, and adds its links to `references`.
pub(super) fn plain(text: &str, references: &mut References) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '|', '\\', ':']) {
        let (before, marked) = rest.split_at(at);
        shown.push_str(before);
        let at_start = before.chars().next_back().is_none_or(|it| !it.is_alphanumeric());
        rest = span(marked, at_start, &mut shown, references).unwrap_or_else(|| {
            let mut characters = marked.chars();
            shown.extend(characters.next());
            characters.as_str()
        });
    }
    shown.push_str(rest);
    references.add_bare(&shown);
    // References to notes.
    if shown.contains("]_") { shown.replace("]_", "]") } else { shown }
}

/// Adds the shown text of the span that `marked` starts with; returns the text after the span.
fn span<'t>(
    marked: &'t str,
    at_start: bool,
    shown: &mut String,
    references: &mut References,
) -> Option<&'t str> {
    if let Some(escaped) = marked.strip_prefix('\\') {
        let mut characters = escaped.chars();
        shown.extend(characters.next().filter(|it| !it.is_whitespace()));
        return Some(characters.as_str());
    }
    if let Some(role) = marked.strip_prefix(':') {
        // `:role:` before a backquote is not shown.
        let end = role.find(|it: char| !it.is_ascii_alphanumeric() && !"-_.:+".contains(it))?;
        let (name, quoted) = role.split_at(end);
        let shows = at_start && name.len() > 1 && name.ends_with(':') && quoted.starts_with('`');
        return if shows { interpreted(quoted.get(1..)?, true, shown, references) } else { None };
    }
    if let Some(literal) = marked.strip_prefix("``") {
        let (inner, after) = closed(literal, "``")?;
        shown.push_str(inner);
        return Some(after);
    }
    if let Some(quoted) = marked.strip_prefix('`') {
        return interpreted(quoted, false, shown, references);
    }
    if !at_start {
        return None;
    }
    for sign in ["**", "*", "|"] {
        if let Some(inner) = marked.strip_prefix(sign) {
            let opens = inner.starts_with(|it: char| !it.is_whitespace() && it != '*');
            let (inner, after) = closed(inner, sign).filter(|_| opens)?;
            shown.push_str(inner);
            return Some(after.trim_start_matches('_'));
        }
    }
    None
}

/// Reads text between backquotes: `text`, `text <target>`.
fn interpreted<'t>(
    quoted: &'t str,
    is_role: bool,
    shown: &mut String,
    references: &mut References,
) -> Option<&'t str> {
    let (inner, after) = closed(quoted, "`")?;
    let target = inner.strip_suffix('>').and_then(|it| it.rsplit_once('<'));
    let after_link = after.trim_start_matches('_');
    match target {
        Some((text, target)) => {
            // The target of a role is a name. The target of a link is a URL, or the name of a link (ends in `_`).
            if !is_role && after_link.len() < after.len() && !target.ends_with('_') {
                references.add(&target.split_whitespace().collect::<String>());
            }
            let text = text.trim_end();
            shown.push_str(if text.is_empty() { target } else { text });
        }
        None => shown.push_str(inner.trim_start_matches(['~', '!'])),
    }
    Some(after_link)
}
