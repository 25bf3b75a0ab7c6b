//! When the collection is seen to: once in a while, and soon again while something is known to be damaged.

use std::time::{Duration, Instant};

use tokio::task::JoinError;

use super::Rounds;
use crate::heal::{Tidied, report_tidied};

/// How often a part of the collection is checked for damage.
pub(super) const TIDY_EVERY: Duration = Duration::from_secs(60);

/// The first pause while something is damaged; each is twice the one before.
pub(super) const HEAL_PAUSE_MIN: Duration = Duration::from_secs(1);

impl Rounds {
    /// Sees to damage of the collection, and rewrites it without what is superseded, if that is worth
    /// it.
    pub(super) fn start_tidying(&mut self) {
        if self.tidying.is_empty() {
            let site = self.shared.site.clone();
            self.tidying.spawn_blocking(move || site.tidy());
        }
    }

    /// Takes what came of it.
    pub(super) fn handle_tidied(&mut self, tidied: Result<Tidied, JoinError>, now: Instant) {
        if report_tidied(tidied) {
            self.pass_due = now;
        }
        // What was damaged may have been gathered again long before it is time.
        if self.shared.site.collection.health().damaged.is_empty() {
            self.heal_pause = HEAL_PAUSE_MIN;
        } else {
            self.tidy_due = self.tidy_due.min(now + self.heal_pause);
            self.heal_pause = (self.heal_pause * 2).min(TIDY_EVERY);
        }
    }
}
