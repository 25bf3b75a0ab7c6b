//! Layers: several sorted sources of entries, read as one.
//!
//! Source: O'Neil et al., "The log-structured merge-tree" (1996).

use std::collections::{BTreeMap, btree_map};
use std::io;

use super::run::Cursor;

/// Keys and values; `None` as a value means that the key is removed.
pub(super) type Table = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// One of several sorted sources of entries.
pub(super) enum Layer<'a> {
    Table(
        Option<(&'a Vec<u8>, &'a Option<Vec<u8>>)>,
        btree_map::Range<'a, Vec<u8>, Option<Vec<u8>>>,
    ),
    Run(Cursor),
}

impl<'a> Layer<'a> {
    pub(super) fn table(table: &'a Table, from: &[u8]) -> Self {
        let mut rest = table.range(from.to_vec()..);
        Self::Table(rest.next(), rest)
    }

    pub(super) fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Table(head, _) => head.map(|(key, _)| key.as_slice()),
            Self::Run(cursor) => cursor.key(),
        }
    }

    pub(super) fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Table(head, _) => head.and_then(|(_, value)| value.as_deref()),
            Self::Run(cursor) => cursor.value(),
        }
    }

    pub(super) fn advance(&mut self) -> io::Result<()> {
        match self {
            Self::Table(head, rest) => *head = rest.next(),
            Self::Run(cursor) => cursor.advance()?,
        }
        Ok(())
    }
}

/// Sorted sources of entries, the newest first. Of several entries of a key the newest counts.
#[derive(Default)]
pub(super) struct Layers<'a>(pub(super) Vec<Layer<'a>>);

impl Layers<'_> {
    /// Returns the index of the layer with the least key, the newest of several; `None` at the end.
    pub(super) fn least(&self) -> Option<usize> {
        let mut least: Option<(usize, &[u8])> = None;
        for (at, layer) in self.0.iter().enumerate() {
            let Some(key) = layer.key() else { continue };
            if least.is_none_or(|(_, known)| key < known) {
                least = Some((at, key));
            }
        }
        least.map(|(at, _)| at)
    }

    /// Advances every layer past the key of layer `at`, which must be the least.
    pub(super) fn pass(&mut self, at: usize) -> io::Result<()> {
        let (newer, older) = self.0.split_at_mut(at + 1);
        let Some(passed) = newer.last_mut() else { return Ok(()) };
        for layer in older {
            if layer.key().is_some() && layer.key() == passed.key() {
                layer.advance()?;
            }
        }
        passed.advance()
    }
}
