//! The slot of the key index in a collection: the index, or the reason that there is none.

use std::time::Instant;

use crate::keys::Keys;

/// The key index, or the reason that there is none.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(super) keys: Option<Keys>,
    /// Number of rebuilds.
    pub(super) made: u64,
    pub(super) failure: Option<Failure>,
}

/// A failed attempt to build the index.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: sled::Error,
    /// Whether a damaged member was the cause.
    pub(super) is_damage: bool,
    /// The time of the next attempt.
    pub(super) until: Instant,
}

impl Slot {
    pub(crate) fn new(keys: Keys) -> Self {
        Self { keys: Some(keys), made: 0, failure: None }
    }
}
