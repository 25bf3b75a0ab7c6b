//! Conditions on records: comparisons, joined by "and" and "or".

use regex::bytes::Regex;
use soif::Record;

#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// An attribute is equal, or not equal, to this value.
    Is { attribute: String, value: String, negated: bool },
    /// An attribute matches, or does not match, this pattern.
    Matches { attribute: String, pattern: Regex, negated: bool },
    /// All of these hold.
    All(Vec<Self>),
    /// At least one of these holds.
    Any(Vec<Self>),
}

impl Condition {
    pub(super) fn holds(&self, record: &Record) -> bool {
        match self {
            Self::Is { attribute, value, negated } => {
                (value_of(record, attribute) == value.as_bytes()) != *negated
            }
            Self::Matches { attribute, pattern, negated } => {
                pattern.is_match(value_of(record, attribute)) != *negated
            }
            Self::All(all) => all.iter().all(|it| it.holds(record)),
            Self::Any(any) => any.iter().any(|it| it.holds(record)),
        }
    }
}

/// Returns the attribute's value; empty if there is none. `URL` means the object's URL.
fn value_of<'r>(record: &'r Record, attribute: &str) -> &'r [u8] {
    if attribute.eq_ignore_ascii_case("URL") {
        return record.url.as_bytes();
    }
    record.get(attribute).unwrap_or_default()
}
