//! Conditions on records: comparisons, and what joins them.

use std::borrow::Cow;

use regex::bytes::Regex;
use soif::Record;

/// What a record has to be like.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// An attribute is, or is not, this.
    Is { attribute: String, value: String, negated: bool },
    /// An attribute matches, or does not.
    Matches { attribute: String, pattern: Regex, negated: bool },
    /// All of these.
    All(Vec<Self>),
    /// At least one of these.
    Any(Vec<Self>),
}

impl Condition {
    pub(super) fn holds(&self, record: &Record) -> bool {
        match self {
            Self::Is { attribute, value, negated } => {
                (*value_of(record, attribute) == *value.as_bytes()) != *negated
            }
            Self::Matches { attribute, pattern, negated } => {
                pattern.is_match(&value_of(record, attribute)) != *negated
            }
            Self::All(all) => all.iter().all(|it| it.holds(record)),
            Self::Any(any) => any.iter().any(|it| it.holds(record)),
        }
    }
}

/// The attribute's value; nothing where there is none. The object's URL is an attribute here.
fn value_of<'r>(record: &'r Record, attribute: &str) -> Cow<'r, [u8]> {
    if attribute.eq_ignore_ascii_case("URL") {
        return Cow::Borrowed(record.url.as_bytes());
    }
    Cow::Borrowed(record.get(attribute).unwrap_or_default())
}
