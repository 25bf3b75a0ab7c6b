//! The place of the key index in a collection: it is there, or it is said why not.

use std::time::Instant;

use crate::keys::Keys;

/// The key index, or why there is none.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(super) keys: Option<Keys>,
    /// How often it was made anew.
    pub(super) made: u64,
    pub(super) failure: Option<Failure>,
}

/// An attempt to make the index that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: sled::Error,
    /// Whether a damaged member was in the way.
    pub(super) is_damage: bool,
    /// When to try again.
    pub(super) until: Instant,
}

impl Slot {
    pub(crate) fn new(keys: Keys) -> Self {
        Self { keys: Some(keys), made: 0, failure: None }
    }
}
