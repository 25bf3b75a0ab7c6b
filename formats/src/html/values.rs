//! The values that markup tables take from a document, by attribute and precedence.

use super::super::markup::{Action, Attribute, Rule, Tables};
use super::super::{DateSource, Draft};
use crate::limit::Limit;
use crate::text::{front, squeezed};

/// The values of a document.
#[derive(Debug, Default)]
pub(super) struct Values {
    slots: Vec<Slot>,
    /// Whether a map had more than [`Limit::Value`].
    is_cut: bool,
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
        let value = squeezed(value);
        if value.is_empty() {
            return;
        }
        let value = match attribute {
            Attribute::Identifier => identifier(&rule.prefix, &value),
            Attribute::Language => value.replace('_', "-"),
            _ if rule.prefix.is_empty() => value,
            _ => format!("{}{value}", rule.prefix),
        };
        let is_same = |it: &Slot| it.attribute == attribute && it.rank == rule.rank;
        if !self.slots.iter().any(is_same) {
            let (rank, values) = (rule.rank, Vec::new());
            self.slots.push(Slot { attribute, rank, values, bytes: 0 });
        }
        let Some(slot) = self.slots.iter_mut().find(|it| is_same(it)) else { return };
        let room = Limit::Value.bound().saturating_sub(slot.bytes);
        // The search through all values is left out where nothing fits any more.
        if self.is_cut && room < value.len() || slot.values.contains(&value) {
            return;
        }
        self.is_cut |= room < value.len();
        let kept = if slot.values.is_empty() { front(&value, room) } else { &*value };
        if kept.len() <= room && !kept.is_empty() {
            slot.bytes += kept.len() + 1;
            slot.values.push(kept.to_owned());
        }
    }

    /// Puts the values that win into a draft; the others become keywords.
    pub(super) fn fill(mut self, tables: &Tables, draft: &mut Draft<'_>) {
        if self.is_cut {
            draft.cut(Limit::Value.cut());
        }
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
