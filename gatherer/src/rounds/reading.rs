//! Reading annotations outside of passes: a file that keeps changing causes a walk only if the
//! annotations in it have changed.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use essence::annotations::sources::QUIET;

use super::{Done, Job, Rounds};

impl Rounds {
    /// Returns when to read annotations; `None` while a pass or another read is under way.
    pub(super) fn reading_due(&self) -> Option<Instant> {
        self.read_due.filter(|_| !self.passing && !self.reading)
    }

    /// Starts to read annotations if it is time. A pass reads them itself.
    pub(super) fn start_reading(&mut self, now: Instant) {
        if self.inbox.poll_annotations(now) {
            self.read_due = Some(now);
        }
        if self.reading_due().is_some_and(|due| due <= now) {
            (self.reading, self.read_due) = (true, None);
            let site = self.shared.site.clone();
            let annotations = self.shared.config().essence.annotations.clone();
            self.spawn(Job::Read, move || Done::Read(site.read_annotations(&annotations)));
        }
    }

    /// Handles the end of reading annotations; `is_new` says whether they have changed.
    pub(super) fn handle_read(&mut self, is_new: bool, now: Instant) {
        self.reading = false;
        if is_new {
            self.pass_due = now;
        } else {
            self.wait_for_quiet(now);
        }
    }

    /// Schedules another read of annotation files that have just changed.
    pub(super) fn wait_for_quiet(&mut self, now: Instant) {
        if self.shared.site.annotating.again.load(Relaxed) {
            self.read_due = Some(now + QUIET);
        }
    }
}
