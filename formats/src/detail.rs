//! How much a record says: from names alone to all words and the beginning of the text.
//!
//! Source: TR §4, whose summaries range from full text to highly abridged "signatures".
//!
//! # Differences from the paper
//!
//! Essence kept the words of a document by its type (all of a short text, headings of others). Here every
//! type keeps the words that tell most ([`crate::text`] says which), as many as the site allows.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};

/// How much a record says beside what every record has: address, title, author, type, size, sum and dates.
/// A type that is published with its full text has that in any case; and so has every record what tells
/// where it is from and what is missing, identifiers, and what the site has declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// Longest `Partial-Text`, in bytes.
    pub partial_text_bytes_max: usize,
    /// Most different words in `Keywords`, those that tell most; `None`: every word of the text, once.
    pub keywords_max: Option<usize>,
    /// Longest `Description`, in bytes.
    pub description_bytes_max: usize,
    /// Longest `Abstract`, in bytes.
    pub abstract_bytes_max: usize,
    /// Longest value of each attribute that only some types have, in bytes: lines that do not fit are left out.
    pub other_bytes_max: usize,
    /// Most `URL-References`.
    pub references_max: usize,
}

impl Detail {
    /// What a broker can find by names and dates, and by nothing else.
    pub const NAMES: Self = Self {
        partial_text_bytes_max: 0,
        keywords_max: Some(0),
        description_bytes_max: 0,
        abstract_bytes_max: 0,
        other_bytes_max: 0,
        references_max: 0,
    };
    /// The fewest words by which most can be found.
    pub const TERSE: Self = Self { keywords_max: Some(40), ..Self::NAMES };
    /// Words enough to find nine tenths of what the full text finds. Without the description: those of a few
    /// words each count for much in ranking, and more is found without.
    pub const BRIEF: Self = Self { keywords_max: Some(80), other_bytes_max: 100, ..Self::NAMES };
    /// All words, the beginning of the text, and what the object refers to.
    pub const RICH: Self = Self {
        partial_text_bytes_max: 16 * 1024,
        keywords_max: None,
        description_bytes_max: 500,
        abstract_bytes_max: 4 * 1024,
        other_bytes_max: 16 * 1024,
        references_max: usize::MAX,
    };
    /// All of these, with the names that the settings have for them; the least first.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("names", Self::NAMES),
        ("terse", Self::TERSE),
        ("brief", Self::BRIEF),
        ("rich", Self::RICH),
    ];
}

/// Attributes that are in every record that has them, however little it says: where the object is from, what
/// is missing in it, and by what it is known elsewhere.
const KEPT: &[&str] =
    &["Nested-Filename", "Members", "Truncated", "Link-Target", "Identifier", "Message-Id"];

/// Whether an attribute is kept however little a record says.
pub(crate) fn is_kept(attribute: &str) -> bool {
    KEPT.contains(&attribute)
}

/// Returns the first lines of a value that have room in `bytes_max`: what is cut within a line may say
/// something else.
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
    fn what_has_no_room_is_left_out_by_lines() {
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
