//! What an administrator has asked for: of those who walk trees, and of those who harvest repositories.
//!
//! Sans-I/O.

use std::collections::BTreeSet;

/// What has been asked for and is still to be done.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Everything is to be gathered.
    pub(crate) gather: bool,
    /// Roots whose held deletions are released.
    pub(crate) confirm: BTreeSet<String>,
    /// New settings are in force.
    pub(crate) reload: bool,
}
