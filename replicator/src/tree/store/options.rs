//! What is allowed in a tree, or in the log of a collection, and what is kept of it.

use super::super::error::Error;
use super::super::manifest::Totals;
use super::super::passage::Passage;
use crate::version::Kind;

/// How many generations are kept besides the present one, if nothing else is said: for readers without a lease.
pub const GENERATIONS_KEPT: usize = 3;
/// How much a tree may have, in bytes, if nothing else is said.
pub const TREE_BYTES_MAX: u64 = 1 << 40;
/// How many entries a tree may have, if nothing else is said.
pub const ENTRIES_MAX: u64 = 20_000_000;

/// What is allowed, and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What versions are of; those of another kind are refused.
    pub kind: Kind,
    /// Generations besides the present one.
    pub generations_kept: usize,
    /// Of a tree.
    pub bytes_max: u64,
    /// Of a tree.
    pub entries_max: u64,
    /// Who gets at a tree; of a collection it is the owner alone, whatever this says.
    pub passage: Passage,
}

impl Options {
    /// Refuses what is beyond.
    pub(crate) fn check(&self, totals: Totals) -> Result<(), Error> {
        let (Self { bytes_max, entries_max, .. }, Totals { entries, bytes }) = (*self, totals);
        if bytes <= bytes_max && entries <= entries_max {
            return Ok(());
        }
        Err(Error::Bounds { bytes, entries, bytes_max, entries_max })
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kind: Kind::Tree,
            generations_kept: GENERATIONS_KEPT,
            bytes_max: TREE_BYTES_MAX,
            entries_max: ENTRIES_MAX,
            passage: Passage::default(),
        }
    }
}
