//! Prose: summarizers of texts that people write and read directly, with light markup.

pub(crate) mod asciidoc;
pub(crate) mod changes;
pub(crate) mod faq;
pub(crate) mod formatted;
pub mod mail;
pub(crate) mod markdown;
pub(crate) mod news;
pub(crate) mod plain;
pub(crate) mod references;
pub(crate) mod rfc;
pub(crate) mod rst;
pub(crate) mod wais;

use crate::text::front;

/// Longest span of inline markup, in bytes; a sign that is not closed within it is text.
const SPAN_BYTES_MAX: usize = 2 * 1024;

/// Length of a paragraph above which its next lines are a new one, in bytes.
const PARAGRAPH_BYTES_MAX: usize = 64 * 1024;

/// Returns the pieces of a line, each at most `PARAGRAPH_BYTES_MAX`.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let piece = front(rest, PARAGRAPH_BYTES_MAX);
        rest = rest.get(piece.len()..).unwrap_or_default();
        (!piece.is_empty()).then_some(piece)
    })
}

/// Splits at the first `sign` within `SPAN_BYTES_MAX`, unless the text begins with it.
fn closed<'t>(text: &'t str, sign: &str) -> Option<(&'t str, &'t str)> {
    let near = text.get(..text.floor_char_boundary(SPAN_BYTES_MAX))?;
    let end = near.find(sign).filter(|end| 0 < *end)?;
    Some((text.get(..end)?, text.get(end + sign.len()..)?))
}
