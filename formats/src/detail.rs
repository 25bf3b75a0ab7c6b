//! The detail of a record: from names alone to all words and the beginning of the text.
//!
//! Source: TR §4, whose summaries range from full text to highly abridged "signatures".
//!
//! # Differences from the paper
//!
//! Essence kept the words of a document by its type (all of a short text, headings of others). Here every
//! type keeps the most telling words ([`crate::text`] defines them), as many as the site allows.

use serde::{Deserialize, Serialize};

use crate::limit::Limit;

/// Bounds on the attributes of a record beside those that every record has: address, title, author,
/// type, size, MD5, dates and language. A type that is published with its full text has it at any detail.
/// Every record also keeps its origin, marks of missing content, identifiers, and the attributes
/// that the site has declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// Longest `Partial-Text`, in bytes.
    pub partial_text_bytes_max: usize,
    /// Maximum number of different words in `Keywords`, the most telling; `None`: each word, once.
    pub keywords_max: Option<usize>,
    /// Longest `Description`, in bytes.
    pub description_bytes_max: usize,
    /// Longest `Abstract`, in bytes.
    pub abstract_bytes_max: usize,
    /// Longest value of each attribute that only some types have, in bytes: lines beyond it are left out.
    pub other_bytes_max: usize,
    /// Maximum number of `URL-References`.
    pub references_max: usize,
    /// Whether the language of a text that declares none is detected.
    pub language: bool,
    /// Whether a text has a `Text-Print`.
    pub text_print: bool,
}

impl Detail {
    /// Search by names and dates alone.
    pub const NAMES: Self = Self {
        partial_text_bytes_max: 0,
        keywords_max: Some(0),
        description_bytes_max: 0,
        abstract_bytes_max: 0,
        other_bytes_max: 0,
        references_max: 0,
        language: false,
        text_print: false,
    };
    /// The fewest words that still find most objects.
    pub const TERSE: Self = Self { keywords_max: Some(40), language: true, ..Self::NAMES };
    /// Enough words for nine tenths of the hits of the full text. Descriptions are left out: their few words
    /// each weigh much in ranking, and more is found without them.
    pub const BRIEF: Self =
        Self { keywords_max: Some(80), other_bytes_max: 100, text_print: true, ..Self::TERSE };
    /// All words, the beginning of the text, and all references.
    pub const RICH: Self = Self {
        partial_text_bytes_max: 16 * 1024,
        keywords_max: None,
        description_bytes_max: 500,
        abstract_bytes_max: 4 * 1024,
        other_bytes_max: Limit::Value.standard(),
        references_max: usize::MAX,
        language: true,
        text_print: true,
    };
    /// All levels, with their names in the settings; the least first.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("names", Self::NAMES),
        ("terse", Self::TERSE),
        ("brief", Self::BRIEF),
        ("rich", Self::RICH),
    ];
}

/// Attributes that every record keeps at any level: its origin, its missing content, its identifiers, its date
/// and its language.
pub(crate) const KEPT: &[&str] = &[
    "Nested-Filename",
    "Members",
    "Truncated",
    "Link-Target",
    "Identifier",
    "Message-Id",
    "Date",
    "Date-Source",
    "Language",
    "Language-Source",
];

/// Returns the first lines of a value that fit into `bytes_max` bytes. No line is cut, since that
/// might change its meaning.
pub(crate) fn whole_lines(value: &str, bytes_max: usize) -> &str {
    if value.len() <= bytes_max {
        return value;
    }
    let front = value.as_bytes().get(..=bytes_max).unwrap_or_default();
    let end = memchr::memrchr(b'\n', front).unwrap_or(0);
    value.get(..end).unwrap_or_default().trim_end()
}

impl Default for Detail {
    /// [`RICH`](Self::RICH).
    fn default() -> Self {
        Self::RICH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_left_out() {
        for (value, bytes_max, expected) in [
            ("one", 3, "one"),
            ("one", 2, ""),
            ("one\ntwo", 7, "one\ntwo"),
            ("one\ntwo", 6, "one"),
            ("one\ntwo", 3, "one"),
            ("one\ntwo", 2, ""),
            ("\u{e9}\u{e9}", 3, ""),
            ("one", 0, ""),
        ] {
            assert_eq!(whole_lines(value, bytes_max), expected, "{value:?} {bytes_max}");
        }
    }
}
