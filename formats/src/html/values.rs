//! The values that markup tables take from a document, by attribute and precedence.

use std::borrow::Cow;

use super::super::markup::{Action, Attribute, Rule, Tables};
use super::super::{DateSource, Draft};
use crate::text::one_line;

/// Longest value, in bytes.
pub(super) const VALUE_BYTES_MAX: usize = 4 * 1024;
/// Maximum length of all values of one map together, in bytes.
const SLOT_BYTES_MAX: usize = 8 * 1024;
/// Maximum number of values of one map.
const SLOT_VALUES_MAX: usize = 500;
/// Maximum number of maps with values.
const SLOTS_MAX: usize = 200;

/// The values of a document.
#[derive(Debug, Default)]
pub(super) struct Values {
    slots: Vec<Slot>,
}

/// The values of one map.
#[derive(Debug)]
struct Slot {
    attribute: Attribute,
    rank: u16,
    values: Vec<String>,
    bytes: usize,
}

impl Values {
    /// Returns whether the attribute has a value from a rule of the same or a better rank.
    pub(super) fn has(&self, attribute: Attribute, rule: &Rule) -> bool {
        self.slots.iter().any(|it| it.attribute == attribute && it.rank <= rule.rank)
    }

    /// Adds a value by a rule; several, if the rule splits it.
    pub(super) fn add(&mut self, rule: &Rule, value: &str) {
        let Action::Attribute(attribute) = rule.action else { return };
        match &rule.split {
            Some(split) => value.split(&**split).for_each(|it| self.add_one(attribute, rule, it)),
            None => self.add_one(attribute, rule, value),
        }
    }

    fn add_one(&mut self, attribute: Attribute, rule: &Rule, value: &str) {
        let value = one_line(value, VALUE_BYTES_MAX);
        if value.is_empty() {
            return;
        }
        let value = match attribute {
            Attribute::Identifier => identifier(&rule.prefix, &value),
            Attribute::Language => value.replace('_', "-"),
            _ if rule.prefix.is_empty() => value,
            _ => format!("{}{value}", rule.prefix),
        };
        let existing =
            self.slots.iter().position(|it| it.attribute == attribute && it.rank == rule.rank);
        if existing.is_none() && self.slots.len() < SLOTS_MAX {
            let (rank, values) = (rule.rank, Vec::new());
            self.slots.push(Slot { attribute, rank, values, bytes: 0 });
        }
        let at = existing.unwrap_or(self.slots.len() - 1);
        let Some(slot) = self.slots.get_mut(at).filter(|it| it.rank == rule.rank) else { return };
        let is_room =
            slot.values.len() < SLOT_VALUES_MAX && slot.bytes + value.len() <= SLOT_BYTES_MAX;
        if is_room && !slot.values.contains(&value) {
            slot.bytes += value.len();
            slot.values.push(value);
        }
    }

    /// Puts the values that win into a draft; the others become keywords.
    pub(super) fn fill(mut self, tables: &Tables, draft: &mut Draft<'_>) {
        self.slots.sort_by_key(|it| (it.attribute, it.rank));
        let mut slots = self.slots.into_iter().peekable();
        while let Some(slot) = slots.next() {
            let (attribute, mut values) = (slot.attribute, slot.values);
            let mut rest = Vec::new();
            while let Some(other) = slots.next_if(|it| it.attribute == attribute) {
                let target = if attribute.adds_up() { &mut values } else { &mut rest };
                let new = other.values.into_iter().filter(|it| !target.contains(it));
                let new: Vec<String> = new.collect();
                target.extend(new);
            }
            if attribute.is_one() && 1 < values.len() {
                rest.extend(values.drain(1..));
            }
            match attribute {
                Attribute::Title => draft.title = values.concat(),
                Attribute::Author => draft.authors = values,
                Attribute::Description => draft.description = values.concat(),
                Attribute::Abstract => draft.r#abstract = values.join("\n"),
                Attribute::Keywords => rest.splice(..0, values).for_each(drop),
                // The builder handles these two: links, and text in its own order.
                Attribute::References | Attribute::Text => {}
                other => match tables.name(other) {
                    "Date" => values.iter().for_each(|it| draft.date(it, DateSource::Markup)),
                    name => draft.other(name, values.join("\n")),
                },
            }
            for words in rest {
                draft.keywords.push_str(&words);
                draft.keywords.push('\n');
            }
        }
    }
}

impl Attribute {
    /// Returns whether a record has only one value of this attribute.
    fn is_one(self) -> bool {
        matches!(self, Self::Title | Self::Description | Self::Language)
    }
}

/// Returns an identifier with the scheme that it shows (`doi:`) or has already, else `scheme`.
fn identifier(scheme: &str, value: &str) -> String {
    const RESOLVERS: &str = "https://doi.org/ http://doi.org/ https://dx.doi.org/ \
                             http://dx.doi.org/ doi: info:doi/";
    let begins = |begin: &str| {
        value.get(..begin.len()).is_some_and(|front| front.eq_ignore_ascii_case(begin))
    };
    let bare = RESOLVERS.split(' ').find(|it| begins(it)).and_then(|it| value.get(it.len()..));
    let value = bare.unwrap_or(value).trim();
    if value.starts_with("10.") && value.contains('/') {
        return format!("doi:{value}");
    }
    let scheme = if begins(scheme) { "" } else { scheme };
    format!("{scheme}{value}")
}

/// Returns a document's own text, and then as much of the text around it as `bytes_max` allows.
pub(super) fn joined(own: String, around: &str, bytes_max: usize) -> Cow<'static, str> {
    let mut own = own;
    let around = around.trim();
    if !around.is_empty() {
        own.truncate(own.trim_end().len());
        if !own.is_empty() {
            own.push('\n');
        }
        let room = bytes_max.saturating_sub(own.len());
        own.push_str(around.get(..around.floor_char_boundary(room)).unwrap_or_default());
    }
    Cow::Owned(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_have_their_scheme() {
        for (scheme, value, expected) in [
            ("doi:", "10.1000/182", "doi:10.1000/182"),
            ("", "https://doi.org/10.1000/182", "doi:10.1000/182"),
            ("", "DOI: 10.1000/182", "doi:10.1000/182"),
            ("isbn:", "0-201-89683-4", "isbn:0-201-89683-4"),
            ("isbn:", "ISBN:0201896834", "ISBN:0201896834"),
            ("", "urn:x:y", "urn:x:y"),
            ("", "10.5 apples", "10.5 apples"),
        ] {
            assert_eq!(identifier(scheme, value), expected);
        }
    }
}
