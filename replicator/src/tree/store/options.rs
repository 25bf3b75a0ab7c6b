//! Options of a store: bounds of a tree or a collection's log, and the generations to keep.

use super::super::access::Access;
use super::super::error::Error;
use super::super::manifest::Totals;
use crate::version::Kind;

/// Default number of generations kept besides the present one, for readers without a lease.
pub const GENERATIONS_KEPT: usize = 3;
/// Default limit of a tree's bytes.
pub const TREE_BYTES_MAX: u64 = 1 << 40;
/// Default limit of a tree's entries.
pub const ENTRIES_MAX: u64 = 20_000_000;

/// The options of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The kind of its versions; those of another kind are refused.
    pub kind: Kind,
    /// Generations to keep besides the present one.
    pub generations_kept: usize,
    /// Maximum number of bytes of a tree.
    pub bytes_max: u64,
    /// Maximum number of entries of a tree.
    pub entries_max: u64,
    /// The access to a tree; collections are always private.
    pub access: Access,
}

impl Options {
    /// Refuses totals beyond the limits.
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
            access: Access::default(),
        }
    }
}
