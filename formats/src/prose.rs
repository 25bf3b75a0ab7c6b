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

/// Longest span of inline markup, in bytes; a sign that is not closed within it is text.
const SPAN_BYTES_MAX: usize = 2 * 1024;

/// Splits at the first `sign` within `SPAN_BYTES_MAX`, unless the text begins with it.
fn closed<'t>(text: &'t str, sign: &str) -> Option<(&'t str, &'t str)> {
    let near = text.get(..text.floor_char_boundary(SPAN_BYTES_MAX))?;
    let end = near.find(sign).filter(|end| 0 < *end)?;
    Some((text.get(..end)?, text.get(end + sign.len()..)?))
}
