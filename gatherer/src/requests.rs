//! An administrator's requests to the loops that walk trees and harvest repositories.
//!
//! Sans-I/O.

use std::collections::BTreeSet;

/// Requests that are not yet fulfilled.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Whether to gather everything.
    pub(crate) gather: bool,
    /// Roots whose held deletions are released.
    pub(crate) confirm: BTreeSet<String>,
    /// Whether new settings are in force.
    pub(crate) reload: bool,
}
