//! Extents: the objects of each view and each pulled query, in memory.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use collection::Subset;
use serde::{Deserialize, Serialize};

use super::standing::Standing;

/// A view as it is kept, or a query that is pulled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The name of its selection, which stands for its definition.
    pub(super) selection: String,
    /// The version from which on it is known who left it.
    pub(super) since: u64,
}

/// The objects of all that is kept.
#[derive(Debug)]
pub(super) struct Extents {
    pub(super) kept: BTreeMap<String, (Kept, Subset)>,
    /// The horizon up to which it is forgotten who left.
    pub(super) horizon: u64,
}

impl Extents {
    /// Takes a change of an object into the extents in which it was or is.
    pub(super) fn change(&mut self, serial: u64, before: &Standing, after: &Standing) {
        for (name, left) in &before.left {
            if let Some((_, subset)) = self.kept.get_mut(name) {
                subset.remove_left(left.last);
            }
        }
        for name in after.within.iter() {
            if let Some((_, subset)) = self.kept.get_mut(name) {
                Arc::make_mut(&mut subset.members).insert(serial);
            }
        }
        for (name, left) in &after.left {
            if let Some((_, subset)) = self.kept.get_mut(name) {
                // It may have been counted already, by its last change.
                Arc::make_mut(&mut subset.members).remove(serial);
                subset.add_left(left.last, left.by);
            }
        }
    }
}
