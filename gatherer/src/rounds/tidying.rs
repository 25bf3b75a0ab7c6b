//! The schedule of the collection's maintenance: at regular intervals, and sooner while there is
//! damage.

use std::time::{Duration, Instant};

use tokio::task::JoinError;

use super::Rounds;
use crate::heal::{TidyOutcome, report_tidied};

/// Time between two checks, each of a part of the collection.
pub(super) const TIDY_EVERY: Duration = Duration::from_secs(60);

/// First pause before the next repair while there is damage; each further pause is twice as long.
pub(super) const HEAL_PAUSE_MIN: Duration = Duration::from_secs(1);

impl Rounds {
    /// Starts to repair the collection, and to compact it if that is worthwhile.
    pub(super) fn start_tidying(&mut self) {
        if self.tidying.is_empty() {
            let site = self.shared.site.clone();
            self.tidying.spawn_blocking(move || site.tidy());
        }
    }

    pub(super) fn handle_tidied(&mut self, outcome: Result<TidyOutcome, JoinError>, now: Instant) {
        if report_tidied(outcome) {
            self.pass_due = now;
        }
        // Damaged objects may be gathered again long before the next regular check.
        if self.shared.site.collection.health().damaged.is_empty() {
            self.heal_pause = HEAL_PAUSE_MIN;
        } else {
            self.tidy_due = self.tidy_due.min(now + self.heal_pause);
            self.heal_pause = (self.heal_pause * 2).min(TIDY_EVERY);
        }
    }
}
