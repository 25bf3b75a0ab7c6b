//! The values that markup tables take from a document, by attribute and precedence.

use std::collections::HashSet;

use foldhash::fast::RandomState;

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
    /// The same values. A page may repeat them millions of times.
    seen: HashSet<String, RandomState>,
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
            let (rank, values, seen) = (rule.rank, Vec::new(), HashSet::default());
            self.slots.push(Slot { attribute, rank, values, seen, bytes: 0 });
        }
        let Some(slot) = self.slots.iter_mut().find(|it| is_same(it)) else { return };
        let room = Limit::Value.bound().saturating_sub(slot.bytes);
        if slot.seen.contains(&value) {
            return;
        }
        self.is_cut |= room < value.len();
        let kept = if slot.values.is_empty() { front(&value, room) } else { &*value };
        if kept.len() <= room && !kept.is_empty() {
            slot.bytes += kept.len() + 1;
            slot.seen.insert(kept.to_owned());
            slot.values.push(kept.to_owned());
        }
    }

    /// Puts the values that win into a draft; the words of the others become keywords.
    pub(super) fn fill(mut self, tables: &Tables, draft: &mut Draft<'_>) {
        if self.is_cut {
            draft.cut(Limit::Value.cut());
        }
        self.slots.sort_by_key(|it| (it.attribute, it.rank));
        let mut slots = self.slots.into_iter().peekable();
        while let Some(slot) = slots.next() {
            let (attribute, mut values) = (slot.attribute, slot.values);
            let mut rest = Vec::new();
            let mut seen = if attribute.adds_up() { slot.seen } else { HashSet::default() };
            while let Some(other) = slots.next_if(|it| it.attribute == attribute) {
                let target = if attribute.adds_up() { &mut values } else { &mut rest };
                target.extend(other.values.into_iter().filter(|it| seen.insert(it.clone())));
            }
            if attribute.is_one() && 1 < values.len() {
                rest.extend(values.drain(1..));
            }
            match attribute {
                Attribute::Title => draft.title = values.concat(),
                Attribute::Author => draft.authors = values,
                Attribute::Description => draft.description = values.concat(),
                Attribute::Abstract => draft.r#abstract = values.join("\n"),
                Attribute::Keywords => draft.keywords = values.join("\n"),
                // The builder handles these two: links, and text in its own order.
                Attribute::References | Attribute::Text => {}
                other => match tables.name(other) {
                    "Date" => values.iter().for_each(|it| draft.date(it, DateSource::Markup)),
                    name => draft.other(name, values.join("\n")),
                },
            }
            for words in rest {
                draft.words.push_str(&words);
                draft.words.push('\n');
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
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::Type;
    use crate::testing::render;

    #[test]
    fn repeated_values_take_linear_time() {
        let names: Vec<String> = (0..3_000).map(|it| format!("{it:x}")).collect();
        let (names, again) = (names.join(";"), ";bb7".repeat(500_000));
        let page = format!("<meta name=citation_authors content='{names}{again}'>");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(render("p.html", Type::Html, page.as_bytes())));
        let seen = receiver.recv_timeout(Duration::from_secs(5)).unwrap();
        assert!(seen.contains("Author: 0 | 1 | 2 |"), "{seen}");
        assert!(!seen.contains("bytes in one attribute"), "{seen}");
    }

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
