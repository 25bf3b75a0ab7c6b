//! Laying statements over a record.
//!
//! Sans-I/O.

use std::borrow::Cow;
use std::collections::HashSet;

use ::soif::Record;
use formats::limit::Limit;

use super::{Effect, Statement, VALUE_BYTES_MAX};
use crate::rules::drop_places;

/// Value of an attribute while statements are laid over it.
#[derive(Debug, Default)]
struct Value<'s> {
    all: Option<Vec<u8>>,
    /// The lines of `all`, once lines were added.
    lines: Option<HashSet<Cow<'s, [u8]>>>,
    /// Length of the lines that were added, in bytes.
    added: usize,
    /// Whether lines were left out.
    is_cut: bool,
}

impl<'s> Value<'s> {
    fn change(&mut self, it: &'s Statement) {
        if it.effect == Effect::Replace {
            let all = (!it.value.is_empty()).then(|| it.value.clone());
            *self = Self { all, ..Self::default() };
            return;
        }
        let own = self.all.as_deref().unwrap_or_default();
        let known = self
            .lines
            .get_or_insert_with(|| lines(own).map(|line| Cow::Owned(line.to_vec())).collect());
        for line in lines(&it.value).filter(|it| !it.is_empty()) {
            let all = self.all.get_or_insert_default();
            if known.contains(line) {
                continue;
            }
            self.added += line.len() + 1;
            self.is_cut |= VALUE_BYTES_MAX < self.added;
            if !self.is_cut {
                known.insert(Cow::Borrowed(line));
                if !all.is_empty() {
                    all.push(b'\n');
                }
                all.extend(line);
            }
        }
    }
}

fn lines(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|it| *it == b'\n')
}

/// Applies statements to a record, in order. Attributes keep their order; new ones are added at the
/// end, in the order of the statements.
pub(super) fn lay_over<'s>(statements: impl Iterator<Item = &'s Statement>, record: &mut Record) {
    let mut values: Vec<(String, Value<'s>)> = Vec::new();
    for it in statements {
        let known = values.iter().position(|(name, _)| name.eq_ignore_ascii_case(&it.attribute));
        let at = known.unwrap_or_else(|| {
            let own = record.attributes().iter();
            let own = own.map(|it| &it.name).find(|name| name.eq_ignore_ascii_case(&it.attribute));
            let name = own.unwrap_or(&it.attribute).clone();
            let before = record.get_all(&name).collect::<Vec<_>>();
            let all = (!before.is_empty()).then(|| before.join(&b'\n'));
            values.push((name, Value { all, ..Value::default() }));
            values.len() - 1
        });
        if let Some((_, value)) = values.get_mut(at) {
            value.change(it);
        }
    }
    let is_cut = values.iter().any(|(_, it)| it.is_cut);
    for (name, value) in values {
        drop_places(record, &name, value.all.as_deref().unwrap_or_default());
        match value.all {
            Some(value) => record.set(name, value),
            None => {
                record.remove(&name);
            }
        }
    }
    if is_cut {
        let line = Limit::Value.cut_at(VALUE_BYTES_MAX).to_string();
        let before = record.text("Truncated").map(|it| format!("{it}\n"));
        record.set("Truncated", before.unwrap_or_default() + &line);
    }
}
