//! Summarizing by type: one object in, one record out.
//!
//! Source: TR §4 and Figure 3; the attributes are those of the user's manual.
//!
//! Sans-I/O.

use crate::config::FullText;

/// How much a record says. All bounds are per object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Types whose records carry `Full-Text` in place of `Partial-Text`.
    pub full_text: FullText,
    /// Longest `Partial-Text`, in bytes.
    pub partial_text_bytes_max: usize,
    /// Longest `Full-Text`, in bytes.
    pub full_text_bytes_max: usize,
    /// How much of the text is read for `Keywords`, in bytes.
    pub keywords_text_bytes_max: usize,
    /// Longest `Keywords`, in bytes.
    pub keywords_bytes_max: usize,
    /// Longest `URL-References`, in bytes.
    pub references_bytes_max: usize,
    /// Most `URL-References`.
    pub references_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            full_text: FullText::None,
            partial_text_bytes_max: 16 * 1024,
            full_text_bytes_max: 4 * 1024 * 1024,
            keywords_text_bytes_max: 1024 * 1024,
            keywords_bytes_max: 128 * 1024,
            references_bytes_max: 64 * 1024,
            references_max: 1_000,
        }
    }
}
