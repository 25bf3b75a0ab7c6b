//! The damage found since the opening, and the progress of its repair.
//!
//! Source: ours.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use net::clock;

use crate::error::Error;
use crate::log::Address;

/// Time after which sources that have not sent the lost objects are read again.
const REQUEST_AGAIN: Duration = Duration::from_secs(6 * 3600);

/// The progress of the search for damage and of its repair.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    /// The last member scrubbed: the number of its segment, and the offset of its end.
    pub(crate) scrubbed: Address,
    /// Members found damaged since the collection was opened.
    pub(crate) damaged: HashSet<Address>,
    /// For each hole, the time at which its sources' cursors were last set back.
    pub(crate) requested: HashMap<Address, Instant>,
    /// The reason why the last commit was refused, if it may pass by itself; `None` after a commit.
    pub(crate) refusing: Option<String>,
    /// Whether the last commit was refused because the disk was full.
    pub(crate) no_room: bool,
}

impl Repairs {
    /// Records the outcome of the last commit.
    pub(crate) fn refused(&mut self, error: Option<&Error>) {
        let refused = error.filter(|it| it.may_pass());
        self.refusing = refused.map(Error::to_string);
        self.no_room = matches!(refused, Some(Error::NoRoom { .. } | Error::Full { .. }));
    }

    /// Returns whether the cursors of these holes' sources should be set back (again).
    pub(crate) fn should_request(&self, holes: &[Address]) -> bool {
        let now = clock::monotonic();
        let is_old = |at: &Instant| REQUEST_AGAIN <= now.saturating_duration_since(*at);
        holes.iter().any(|it| self.requested.get(it).is_none_or(is_old))
    }
}
