//! What is known of damage since the collection was opened, and what was done about it.
//!
//! Source: ours.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use net::clock;

use crate::error::Error;
use crate::log::Address;

/// When sources are read from the start again if they have not brought what is lost.
const ASK_AGAIN: Duration = Duration::from_secs(6 * 3600);

/// How far the search for damage and its repair are.
#[derive(Debug, Default)]
pub(crate) struct Mending {
    /// The last member scrubbed: its segment's number, and where it ends.
    pub(crate) scrubbed: Address,
    /// Members found damaged since the collection was opened.
    pub(crate) found: HashSet<Address>,
    /// When sources were last asked for what was in these holes.
    pub(crate) asked: HashMap<Address, Instant>,
    /// Why the last commit was refused.
    pub(crate) refusing: Option<String>,
    /// Whether that was for want of space.
    pub(crate) no_room: bool,
}

impl Mending {
    /// Remembers how the last commit went.
    pub(crate) fn refused(&mut self, error: Option<&Error>) {
        let refused = error.filter(|it| it.may_pass());
        self.refusing = refused.map(Error::to_string);
        self.no_room = matches!(refused, Some(Error::NoRoom { .. } | Error::Full { .. }));
    }

    /// Whether sources are to be asked for what was in these holes.
    pub(crate) fn is_to_ask(&self, holes: &[Address]) -> bool {
        let now = clock::monotonic();
        let is_old = |at: &Instant| ASK_AGAIN <= now.saturating_duration_since(*at);
        holes.iter().any(|it| self.asked.get(it).is_none_or(is_old))
    }
}
